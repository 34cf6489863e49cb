//! What all devices of a cluster know, and what follows from it.

use wg_frame::time::Span;
use wg_frame::tte::ControlRepr;

use super::MASTERS;

/// What a cluster assumes of failing devices, and so how it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum Integrity {
    /// A master takes up any coldstart frame; acknowledgements are compressed.
    #[default]
    Standard,
    /// A master takes up coldstart frames of others only; acknowledgements pass one by one.
    High,
}

/// How many masters it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Thresholds {
    /// In schedule, or heard of, to be synchronised.
    pub sync: u8,
    /// Heard of, to begin with; more than may be faulty.
    pub tentative: u8,
    /// Out of schedule, to be of another opinion; more than may be faulty.
    pub asynchronous: u8,
}

/// The parameters of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Parameters {
    /// Standard or high.
    pub integrity: Integrity,
    /// Of the cluster's frames.
    pub domain: u8,
    /// Of the cluster's frames.
    pub priority: u8,
    /// Between two integration frames of a master.
    pub integration_cycle: Span,
    /// In a cluster cycle; then they count from 0 again.
    pub cycles: u32,
    /// The clocks of synchronised devices differ by less.
    pub precision: Span,
    /// Longest that a frame is under way between a master and a compression master.
    pub max_transmission_delay: Span,
    /// What a compression master takes beside its windows.
    pub calculation_overhead: Span,
    /// A frame on the slowest line, gap included.
    pub frame_time: Span,
    /// Synchronisation masters.
    pub masters: u8,
    /// Of these, how many may fail.
    pub faulty_masters: u8,
    /// Redundant channels.
    pub channels: u8,
    /// How many masters it takes.
    pub thresholds: Thresholds,
    /// Good cycles from synchronised to stable.
    pub stable_cycles: u32,
    /// Bad cycles that a stable device tolerates.
    pub unstable_cycles: u32,
}

/// Parameters no cluster can work with: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// No masters, or more than bits.
    #[error("a cluster has 1 to 32 synchronisation masters, not {0}")]
    Masters(u8),
    /// Too few correct masters for an average.
    #[error(
        "{faulty} faulty masters need at least {needed} in all, and there are {masters}; add masters or lower the number"
    )]
    Faulty {
        /// That may be faulty.
        faulty: u8,
        /// That it takes.
        needed: u8,
        /// That there are.
        masters: u8,
    },
    /// The compression function knows no more.
    #[error("the compression function tolerates up to 2 faulty masters, not {0}")]
    TooManyFaulty(u8),
    /// A threshold above the correct masters, or not above the faulty ones.
    #[error(
        "a threshold of {threshold} masters is not within {least} to {most}: more than can be faulty, and no more than are left then"
    )]
    Threshold {
        /// As given.
        threshold: u8,
        /// Least that is above the faulty ones.
        least: u8,
        /// Most that correct masters reach.
        most: u8,
    },
    /// A time that is none.
    #[error("precision, delay and cycle are positive times")]
    NotPositive,
    /// Windows do not fit.
    #[error(
        "an integration cycle of {cycle} is too short: its windows end {needed} after its beginning; lengthen it"
    )]
    Cycle {
        /// As given.
        cycle: Span,
        /// The least.
        needed: Span,
    },
    /// More than a clock can show, or no cycle.
    #[error("{0} integration cycles make no cluster cycle; give 1 or more, of a day in all at most")]
    Cycles(u32),
    /// More or less channels than there can be.
    #[error("a cluster has 1 to 3 channels, not {0}")]
    Channels(u8),
}

const TICK: Span = Span::from_picos(1);
const DAY: Span = Span::from_millis(86_400_000);

impl Thresholds {
    /// Majority, and more than are faulty.
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
    /// Whether a cluster can work with them.
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

    /// The cluster cycle.
    pub fn cluster_cycle(&self) -> Span {
        times(self.integration_cycle, i64::from(self.cycles))
    }

    /// Either side of a scheduled instant: the precision, and half as much again where two masters may fail.
    pub fn acceptance(&self) -> Span {
        let half = Span::from_picos(self.precision.as_picos() / 2);
        if self.faulty_masters == 2 { self.precision + half } else { self.precision }
    }

    /// Longest that frames of one cycle are collected.
    pub fn max_observation_window(&self) -> Span {
        times(self.precision, i64::from(self.faulty_masters) + 1)
    }

    /// A compressed frame waits so long for a better one of its cycle.
    pub fn dispatch_delay(&self) -> Span {
        times(self.acceptance(), 2) + TICK
    }

    /// From the first frame's permanence to the compressed one being sent, without correction.
    pub fn compression_master_delay(&self) -> Span {
        self.max_observation_window() + self.calculation_overhead + self.dispatch_delay()
    }

    /// When in its cycle a compression master expects the compressed instant.
    pub fn compressed_pit(&self) -> Span {
        self.max_transmission_delay + self.max_observation_window() + self.calculation_overhead
    }

    /// When in their cycle end systems expect the compressed frame to be permanent.
    pub fn receive_pit(&self) -> Span {
        times(self.max_transmission_delay, 2) + self.compression_master_delay()
    }

    /// From a coldstart frame to its acknowledgement.
    pub fn coldstart_offset(&self) -> Span {
        self.receive_pit() + self.frame_time
    }

    /// From an acknowledgement sent to it being back.
    pub fn acknowledge_round_trip(&self) -> Span {
        self.receive_pit()
    }

    /// How long acknowledgements may pass after a coldstart frame did.
    pub fn acknowledge_enabled(&self) -> Span {
        times(self.receive_pit() + self.coldstart_offset(), i64::from(self.channels)) + self.precision
    }

    /// From an acknowledgement to the first cycle: no acknowledgement passes later than that after another.
    pub fn acknowledge_offset(&self) -> Span {
        self.acknowledge_enabled() + self.precision
    }

    /// How long a compression master waits for integration frames after an acknowledgement.
    pub fn wait_for_integration(&self) -> Span {
        self.receive_pit() + self.acknowledge_offset() + self.precision
    }

    /// How long a device listens: two cycles, in which a synchronised cluster is heard, and a coldstart in progress.
    pub fn listen_timeout(&self) -> Span {
        times(self.integration_cycle, 2) + self.acknowledge_enabled() + self.acknowledge_offset()
    }

    /// Between two coldstart frames of a master: as long as one takes to have an effect.
    pub fn coldstart_timeout(&self) -> Span {
        self.acknowledge_enabled() + self.acknowledge_offset() + times(self.integration_cycle, 2)
    }

    /// From losing the others to the next coldstart frame.
    pub fn restart_timeout(&self) -> Span {
        self.coldstart_timeout()
    }

    /// The greatest difference of two synchronised clocks, where oscillators are off by at most `drift_ppb` and each
    /// takes the instant of a frame up to `reading` wrong.
    ///
    /// Devices that heard the same frames differ by what they read wrong, ε = 2·`reading` (one sets its clock by it, the
    /// other by its own). Until the next correction, R = a cycle and its windows later, they drift apart by 2ρR. A device
    /// that one channel leaves out follows the other alone; each compressed instant lies among those of correct masters,
    /// so it is off by half their spread δ at most: δ ≤ δ/2 + 2ρR + ε, hence δ = 2·(2ρR + ε).
    pub fn precision_bound(&self, drift_ppb: i64, reading: Span) -> Span {
        let until = self.integration_cycle + self.receive_pit() + times(self.acceptance(), 2);
        let drift = i128::from(until.as_picos()) * 2 * i128::from(drift_ppb);
        let drift = i64::try_from((drift + 999_999_999) / 1_000_000_000).unwrap_or(DAY.as_picos());
        times(Span::from_picos(drift) + times(reading, 2), 2)
    }

    /// The longest from the last device having power to all correct ones being synchronised, with one fault.
    ///
    /// A device listens; then the first master asks. A coldstart comes to nothing when too few heard it, because
    /// compression masters still listened or a faulty master took part; it is repeated after the coldstart timeout, and
    /// everybody who fell out of it listens and asks again in no more than that. Two attempts that fail are allowed for,
    /// by the one fault and by having begun before the last device had power, and the third succeeds: offset,
    /// acknowledgement and its offset, and three cycles to be in schedule.
    pub fn startup_bound(&self) -> Span {
        let attempt = self.acknowledge_enabled()
            + self.acknowledge_round_trip()
            + self.acknowledge_offset()
            + times(self.integration_cycle, 3);
        times(self.listen_timeout(), 2) + times(self.coldstart_timeout() + attempt, 3)
    }

    /// Whether `frame` is of this cluster.
    pub const fn is_own(&self, frame: &ControlRepr) -> bool {
        frame.sync_domain == self.domain && frame.sync_priority == self.priority
    }
}
