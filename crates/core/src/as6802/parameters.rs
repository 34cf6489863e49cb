//! Parameters of a cluster, and the timeouts, windows and bounds that follow from them.

use wg_frame::time::Span;
use wg_frame::tte::ControlRepr;

use super::MASTERS;

/// Integrity of compression masters, and with it the startup procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Integrity {
    /// A master takes up any coldstart frame; acknowledgements are compressed.
    #[default]
    Standard,
    /// A master takes up coldstart frames of others only; acknowledgements pass one by one.
    High,
}

/// Numbers of masters at which a device changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Thresholds {
    /// Masters in schedule, or heard of, from which a device is synchronised.
    pub sync: u8,
    /// Masters heard of from which a device begins tentatively; more than may be faulty.
    pub tentative: u8,
    /// Masters out of schedule from which a device detects an asynchronous clique; more than may be faulty.
    pub asynchronous: u8,
}

/// The parameters of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parameters {
    /// Standard or high integrity.
    pub integrity: Integrity,
    /// Synchronisation domain in the cluster's protocol control frames.
    pub domain: u8,
    /// Synchronisation priority in the cluster's protocol control frames.
    pub priority: u8,
    /// Time between two integration frames of a master.
    pub integration_cycle: Span,
    /// Integration cycles in a cluster cycle; then they count from 0 again.
    pub cycles: u32,
    /// Upper bound of the difference between the clocks of synchronised devices.
    pub precision: Span,
    /// Greatest transmission delay of a frame between a master and a compression master.
    pub max_transmission_delay: Span,
    /// Processing time of a compression master, its windows not included.
    pub calculation_overhead: Span,
    /// Transmission time of a protocol control frame on the slowest line, gap included.
    pub frame_time: Span,
    /// Number of synchronisation masters.
    pub masters: u8,
    /// Number of these masters that may fail.
    pub faulty_masters: u8,
    /// Number of redundant channels.
    pub channels: u8,
    /// Numbers of masters at which a device changes state.
    pub thresholds: Thresholds,
    /// Good cycles after which a synchronised device is stable.
    pub stable_cycles: u32,
    /// Bad cycles that a stable device tolerates.
    pub unstable_cycles: u32,
}

/// Parameters that no cluster can work with: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No masters, or more than the membership has bits.
    #[error("a cluster has 1 to 32 synchronisation masters, not {0}")]
    Masters(u8),
    /// Too few correct masters for a fault-tolerant mean.
    #[error(
        "{faulty} faulty masters need at least {needed} in all, and there are {masters}; add masters or lower the number"
    )]
    Faulty {
        /// Number of masters that may be faulty.
        faulty: u8,
        /// Least number of masters.
        needed: u8,
        /// Number of masters in the cluster.
        masters: u8,
    },
    /// More faulty masters than the compression function can tolerate.
    #[error("the compression function tolerates up to 2 faulty masters, not {0}")]
    TooManyFaulty(u8),
    /// A threshold above the correct masters, or not above the faulty ones.
    #[error(
        "a threshold of {threshold} masters is not within {least} to {most}: more than can be faulty, and no more than are left then"
    )]
    Threshold {
        /// The threshold given.
        threshold: u8,
        /// Least threshold: one above the faulty masters.
        least: u8,
        /// Greatest threshold: the number of correct masters.
        most: u8,
    },
    /// A time that is not positive.
    #[error("precision, delay and cycle are positive times")]
    NotPositive,
    /// The windows do not fit into the integration cycle.
    #[error(
        "an integration cycle of {cycle} is too short: its windows end {needed} after its beginning; lengthen it"
    )]
    Cycle {
        /// The integration cycle given.
        cycle: Span,
        /// Least integration cycle.
        needed: Span,
    },
    /// No cycle, or a cluster cycle longer than a clock can show.
    #[error("{0} integration cycles make no cluster cycle; give 1 or more, of a day in all at most")]
    Cycles(u32),
    /// A number of channels out of range.
    #[error("a cluster has 1 to 3 channels, not {0}")]
    Channels(u8),
}

const TICK: Span = Span::from_picos(1);
const DAY: Span = Span::from_millis(86_400_000);

impl Thresholds {
    /// Thresholds for this many masters and faulty masters: a majority, and more than are faulty.
    pub const fn of(masters: u8, faulty: u8) -> Self {
        let majority = masters / 2 + 1;
        let more = faulty + 1;
        Self { sync: if majority > more { majority } else { more }, tentative: more, asynchronous: more }
    }
}

fn times(span: Span, n: i64) -> Span {
    span.checked_mul(n).unwrap_or(DAY)
}

impl Parameters {
    /// Checks that a cluster can work with these parameters.
    ///
    /// # Errors
    /// [`ParameterError`] for the first thing that is wrong.
    pub fn check(&self) -> Result<(), ParameterError> {
        let Self { masters, faulty_masters: faulty, thresholds, .. } = *self;
        if masters == 0 || masters > MASTERS {
            return Err(ParameterError::Masters(masters));
        }
        if faulty > 2 {
            return Err(ParameterError::TooManyFaulty(faulty));
        }
        if masters < 2 * faulty + 1 {
            return Err(ParameterError::Faulty { faulty, needed: 2 * faulty + 1, masters });
        }
        let (least, most) = (faulty + 1, masters - faulty);
        for threshold in [thresholds.sync, thresholds.tentative] {
            if !(least..=most).contains(&threshold) {
                return Err(ParameterError::Threshold { threshold, least, most });
            }
        }
        if thresholds.asynchronous < least {
            let threshold = thresholds.asynchronous;
            return Err(ParameterError::Threshold { threshold, least, most: masters });
        }
        if !(1..=3).contains(&self.channels) {
            return Err(ParameterError::Channels(self.channels));
        }
        let positive = [self.precision, self.max_transmission_delay, self.integration_cycle];
        if positive.iter().any(|span| *span <= Span::ZERO || *span > DAY) {
            return Err(ParameterError::NotPositive);
        }
        // Both are at work on a cycle until its clocks are corrected, and every window is clear of the next cycle's.
        let needed = self.receive_pit() + times(self.acceptance(), 4) + self.precision;
        if self.integration_cycle < needed {
            return Err(ParameterError::Cycle { cycle: self.integration_cycle, needed });
        }
        let cluster = self.integration_cycle.checked_mul(i64::from(self.cycles));
        if self.cycles == 0 || cluster.is_none_or(|cluster| cluster > DAY) {
            return Err(ParameterError::Cycles(self.cycles));
        }
        Ok(())
    }

    /// Length of the cluster cycle.
    pub fn cluster_cycle(&self) -> Span {
        times(self.integration_cycle, i64::from(self.cycles))
    }

    /// Acceptance window on either side of a scheduled instant: the precision, and half as much again where two masters
    /// may fail.
    pub fn acceptance(&self) -> Span {
        let half = Span::from_picos(self.precision.as_picos() / 2);
        if self.faulty_masters == 2 { self.precision + half } else { self.precision }
    }

    /// Longest observation window: how long frames of one cycle are collected.
    pub fn max_observation_window(&self) -> Span {
        times(self.precision, i64::from(self.faulty_masters) + 1)
    }

    /// Dispatch delay: how long a compressed frame waits for a better one of its cycle.
    pub fn dispatch_delay(&self) -> Span {
        times(self.acceptance(), 2) + TICK
    }

    /// Delay from the first frame's permanence to the sending of the compressed one, without correction.
    pub fn compression_master_delay(&self) -> Span {
        self.max_observation_window() + self.calculation_overhead + self.dispatch_delay()
    }

    /// Offset in its cycle at which a compression master expects the compressed instant.
    pub fn compressed_pit(&self) -> Span {
        self.max_transmission_delay + self.max_observation_window() + self.calculation_overhead
    }

    /// Offset in their cycle at which end systems expect the compressed frame to be permanent.
    pub fn receive_pit(&self) -> Span {
        times(self.max_transmission_delay, 2) + self.compression_master_delay()
    }

    /// Delay from a coldstart frame to its acknowledgement.
    pub fn coldstart_offset(&self) -> Span {
        self.receive_pit() + self.frame_time
    }

    /// Delay from sending an acknowledgement to its return.
    pub fn acknowledge_round_trip(&self) -> Span {
        self.receive_pit()
    }

    /// Time for which acknowledgements may pass after a coldstart frame did.
    pub fn acknowledge_enabled(&self) -> Span {
        times(self.receive_pit() + self.coldstart_offset(), i64::from(self.channels)) + self.precision
    }

    /// Delay from an acknowledgement to the first cycle: no acknowledgement passes later than that after another.
    pub fn acknowledge_offset(&self) -> Span {
        self.acknowledge_enabled() + self.precision
    }

    /// Time for which a compression master waits for integration frames after an acknowledgement.
    pub fn wait_for_integration(&self) -> Span {
        self.receive_pit() + self.acknowledge_offset() + self.precision
    }

    /// Listening time of a device: two cycles, in which a synchronised cluster is heard, and a coldstart in progress.
    pub fn listen_timeout(&self) -> Span {
        times(self.integration_cycle, 2) + self.acknowledge_enabled() + self.acknowledge_offset()
    }

    /// Time between two coldstart frames of a master: as long as one takes to have an effect.
    pub fn coldstart_timeout(&self) -> Span {
        self.acknowledge_enabled() + self.acknowledge_offset() + times(self.integration_cycle, 2)
    }

    /// Delay from losing the others to the next coldstart frame.
    pub fn restart_timeout(&self) -> Span {
        self.coldstart_timeout()
    }

    /// Greatest difference of two synchronised clocks, where oscillators are off by at most `drift_ppb` and each device
    /// reads the instant of a frame with an error of up to `reading`.
    ///
    /// Devices that heard the same frames differ by what they read wrong, ε = 2·`reading` (one sets its clock by it,
    /// the other by its own). Until the next correction, R = a cycle and its windows later, they drift apart by 2ρR. A
    /// device that one channel leaves out follows the other alone; each compressed instant lies among those of correct
    /// masters, so it is off by half their spread δ at most: δ ≤ δ/2 + 2ρR + ε, hence δ = 2·(2ρR + ε).
    pub fn precision_bound(&self, drift_ppb: i64, reading: Span) -> Span {
        let until = self.integration_cycle + self.receive_pit() + times(self.acceptance(), 2);
        let drift = i128::from(until.as_picos()) * 2 * i128::from(drift_ppb);
        let drift = i64::try_from((drift + 999_999_999) / 1_000_000_000).unwrap_or(DAY.as_picos());
        times(Span::from_picos(drift) + times(reading, 2), 2)
    }

    /// Longest time from power-up of the last device to synchronisation of all correct ones, with one fault.
    ///
    /// A device listens; then the first master asks. A coldstart comes to nothing when too few heard it, because
    /// compression masters still listened or a faulty master took part; it is repeated after the coldstart timeout, and
    /// everybody who fell out of it listens and asks again in no more than that. Two attempts that fail are allowed
    /// for, by the one fault and by having begun before the last device had power, and the third succeeds: offset,
    /// acknowledgement and its offset, and three cycles to be in schedule.
    pub fn startup_bound(&self) -> Span {
        let attempt = self.acknowledge_enabled()
            + self.acknowledge_round_trip()
            + self.acknowledge_offset()
            + times(self.integration_cycle, 3);
        times(self.listen_timeout(), 2) + times(self.coldstart_timeout() + attempt, 3)
    }

    /// Whether `frame` has this cluster's domain and priority.
    pub const fn is_own(&self, frame: &ControlRepr) -> bool {
        frame.sync_domain == self.domain && frame.sync_priority == self.priority
    }
}
