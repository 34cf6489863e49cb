//! Redundancy management: two networks carry every frame, the first valid copy wins.
//!
//! Copies of a frame carry the same sequence number on networks A and B. Of two copies that arrive within SkewMax
//! of each other, the first is forwarded and the second discarded; copies further apart count as different
//! frames and both are forwarded. With redundancy management off, both networks are forwarded as they come.
//! Source: AIM "AFDX / ARINC 664 Tutorial", Redundancy Management.
//!
//! What is remembered is each forwarded number whose second copy may still come. So a frame that one network
//! lost is taken from the other even if it arrives after younger frames, and is marked as overtaken. Road not
//! taken: to remember only the highest number and discard everything below it (omnetpp-models/afdx does), which
//! loses a frame that arrived intact, whenever the faster network dropped it.
//!
//! # Time
//! Skew equal to SkewMax is still within it. Calls at equal instants are judged in the order made. A call
//! earlier than one before counts as made at the later instant. There is no deadline: what is out of date is
//! forgotten at the next call. At most 256 numbers are remembered, each at most once; a call inspects those
//! remembered once.

use wg_frame::time::{RunTime, Span};

use super::Bag;
use super::integrity::{Continuity, Discontinuity, IntegrityChecker};
use crate::fifo::Fifo;
use crate::frame::NetworkId;

/// Whether second copies are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// First valid copy wins: of two copies within `skew_max`, the first is forwarded.
    FirstValidWins {
        /// SkewMax: greatest time between two copies of a frame.
        skew_max: Span,
    },
    /// Every frame is forwarded.
    Off,
}

/// A skew that redundancy management cannot work with: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "SkewMax {skew_max} is not between 0ps and {limit}: within 254 BAGs a number returns on another frame; \
     lower SkewMax or lengthen the BAG (the period)"
)]
pub struct SkewError {
    /// The requested SkewMax.
    pub skew_max: Span,
    /// Greatest SkewMax that the gap allows.
    pub limit: Span,
}

/// Decision on a frame that passed its network's integrity check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Deliver it.
    Forward {
        /// A younger frame was forwarded before it.
        overtaken: bool,
    },
    /// Discard it: the copy from the other network was forwarded.
    SecondCopy {
        /// Time by which the first copy arrived earlier.
        skew: Span,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Forwarded {
    number: u8,
    network: NetworkId,
    at: RunTime,
}

/// The skew of copies where every frame is forwarded.
const NO_SKEW: Span = Span::from_picos(-1);

/// Redundancy management of one virtual link at one receiver.
#[derive(Clone, Debug)]
pub struct RedundancyManager {
    /// SkewMax; negative where every frame is forwarded.
    skew_max: Span,
    now: RunTime,
    latest: Option<u8>,
    /// Forwarded frames, oldest first, without a second copy so far and not older than SkewMax.
    unmatched: Fifo<Forwarded>,
}

impl RedundancyManager {
    /// A manager for a virtual link with gap `bag`.
    ///
    /// # Errors
    /// [`SkewError`] for a negative SkewMax, or one in which the numbers come round.
    pub fn new(mode: Redundancy, bag: Bag) -> Result<Self, SkewError> {
        Self::with_interval(mode, bag.span())
    }

    /// A manager for a flow whose frames are sent `interval` apart or more.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_interval(mode: Redundancy, interval: Span) -> Result<Self, SkewError> {
        if let Redundancy::FirstValidWins { skew_max } = mode {
            let limit = interval.checked_mul(254).unwrap_or(Span::from_picos(i64::MAX));
            if skew_max < Span::ZERO || skew_max > limit {
                return Err(SkewError { skew_max, limit });
            }
        }
        let now = RunTime::from_picos(i64::MIN);
        let skew_max = match mode {
            Redundancy::FirstValidWins { skew_max } => skew_max,
            Redundancy::Off => NO_SKEW,
        };
        Ok(Self { skew_max, now, latest: None, unmatched: Fifo::new() })
    }

    /// All frames come over one network from now on: none is a second copy, so that no number has to be remembered.
    pub fn expect_one_network(&mut self) {
        self.skew_max = NO_SKEW;
        self.unmatched.clear();
    }

    /// Decides on a valid frame that arrived at `now` over `network`.
    pub fn handle_frame(&mut self, now: RunTime, network: NetworkId, number: u8) -> Decision {
        self.now = self.now.max(now);
        if self.skew_max < Span::ZERO {
            return self.forward(number);
        }
        while self.unmatched.front().is_some_and(|first| exceeds(self.now, first.at, self.skew_max)) {
            self.unmatched.pop_front();
        }
        let of_number =
            |unmatched: &Fifo<Forwarded>| unmatched.iter().find(|first| first.number == number).copied();
        if !self.unmatched.is_empty()
            && let Some(first) = of_number(&self.unmatched)
        {
            self.unmatched.retain(|other| other.number != number);
            if first.network != network {
                return Decision::SecondCopy { skew: self.now - first.at };
            }
        }
        self.unmatched.push_back(Forwarded { number, network, at: self.now });
        self.forward(number)
    }

    /// The receiving end system restarts.
    pub fn handle_reset(&mut self) {
        self.latest = None;
        self.unmatched.clear();
    }

    fn forward(&mut self, number: u8) -> Decision {
        let overtaken = self.latest.is_some_and(|latest| is_older(number, latest));
        if !overtaken {
            self.latest = Some(number);
        }
        Decision::Forward { overtaken }
    }
}

/// Whether `later − earlier`, neither less than zero, exceeds `span`, also where the difference is beyond what a
/// [`Span`] holds.
#[inline]
fn exceeds(later: RunTime, earlier: RunTime, span: Span) -> bool {
    later.as_picos().abs_diff(earlier.as_picos()) > span.as_picos().unsigned_abs()
}

/// Whether `number` lies up to half a lap before `latest`. Zero, after a sender's reset, begins anew.
fn is_older(number: u8, latest: u8) -> bool {
    number != 0 && latest != 0 && (1..=127).contains(&((255 + i32::from(latest) - i32::from(number)) % 255))
}

/// Reason why a receiver dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceptionDrop {
    /// Failed integrity check of its network.
    Integrity(Discontinuity),
    /// Second copy, this much after the first.
    SecondCopy {
        /// Time by which the first copy arrived earlier.
        skew: Span,
    },
}

/// A frame to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Continuation of its network's sequence.
    pub continuity: Continuity,
    /// A younger frame was delivered before it.
    pub overtaken: bool,
}

/// One virtual link at a receiving end system: an integrity checker per network, then redundancy management. One line
/// of cache, with the number that is remembered: few links have to remember two.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Receiver {
    checkers: [IntegrityChecker; 2],
    manager: RedundancyManager,
}

const _: () = assert!(core::mem::size_of::<Receiver>() == 64, "one line of cache");

impl Receiver {
    /// A receiver of a virtual link with gap `bag`.
    ///
    /// # Errors
    /// [`SkewError`].
    pub fn new(mode: Redundancy, bag: Bag) -> Result<Self, SkewError> {
        let checkers = [IntegrityChecker::new(); 2];
        Ok(Self { checkers, manager: RedundancyManager::new(mode, bag)? })
    }

    /// As [`RedundancyManager::expect_one_network`].
    pub fn expect_one_network(&mut self) {
        self.manager.expect_one_network();
    }

    /// Decides on a frame that arrived at `now` over `network`.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn handle_frame(
        &mut self,
        now: RunTime,
        network: NetworkId,
        number: u8,
    ) -> Result<Delivery, ReceptionDrop> {
        self.manager.now = self.manager.now.max(now);
        let checker = match network {
            NetworkId::A => &mut self.checkers[0],
            NetworkId::B => &mut self.checkers[1],
        };
        let continuity = checker.handle_frame(number).map_err(ReceptionDrop::Integrity)?;
        match self.manager.handle_frame(now, network, number) {
            Decision::Forward { overtaken } => Ok(Delivery { continuity, overtaken }),
            Decision::SecondCopy { skew } => Err(ReceptionDrop::SecondCopy { skew }),
        }
    }

    /// The receiving end system restarts.
    pub fn handle_reset(&mut self) {
        self.checkers = [IntegrityChecker::new(); 2];
        self.manager.handle_reset();
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::arinc664::integrity::{SequenceGenerator, successor};

    const BAG: i64 = 1_000_000_000;
    const SKEW: i64 = BAG / 2;

    fn on() -> Redundancy {
        Redundancy::FirstValidWins { skew_max: Span::from_picos(SKEW) }
    }

    fn receiver(mode: Redundancy) -> Receiver {
        Receiver::new(mode, Bag::ALL[0]).unwrap()
    }

    /// Sends `frames` over both networks, network B `lag` behind, minus the copies in `lost`; returns how often
    /// each frame was delivered.
    fn deliveries(
        mode: Redundancy,
        frames: usize,
        lag: i64,
        lost: impl Fn(NetworkId, usize) -> bool,
    ) -> Vec<u32> {
        let mut sender = SequenceGenerator::new();
        let mut arrivals = Vec::new();
        for frame in 0..frames {
            let number = sender.next_number();
            let sent = frame as i64 * BAG;
            for (network, at) in [(NetworkId::A, sent), (NetworkId::B, sent + lag)] {
                if !lost(network, frame) {
                    arrivals.push((at, network, frame, number));
                }
            }
        }
        arrivals.sort();
        let (mut core, mut count) = (receiver(mode), std::vec![0; frames]);
        for (at, network, frame, number) in arrivals {
            count[frame] += u32::from(core.handle_frame(RunTime::from_picos(at), network, number).is_ok());
        }
        count
    }

    /// What integrity checking leaves of one network: a copy that arrives after fewer than two lost in a row, or
    /// as the first of all.
    fn valid(frames: usize, lost: impl Fn(usize) -> bool) -> Vec<bool> {
        (0..frames)
            .map(|frame| {
                let run = (0..frame).rev().take_while(|earlier| lost(*earlier)).count();
                !lost(frame) && (run <= 1 || run == frame)
            })
            .collect()
    }

    proptest! {
        /// Frames of one network, lost and doubled ones among them: that no other network is there changes nothing.
        #[test]
        fn who_expects_one_network_decides_alike(
            frames in proptest::collection::vec((0..2 * SKEW, 0..6_u8), 0..100),
        ) {
            let (mut any, mut one) = (receiver(on()), receiver(on()));
            one.expect_one_network();
            let (mut at, mut number) = (0, 0);
            for (later, further) in frames {
                at += later;
                number = (0..further).fold(number, |number, _| successor(number));
                let [any, one] =
                    [&mut any, &mut one].map(|core| core.handle_frame(RunTime::from_picos(at), NetworkId::A, number));
                prop_assert_eq!(any, one);
            }
        }
    }

    /// Every pattern of losses of five frames on both networks, at every lag up to three BAGs either way of
    /// SkewMax: exactly the frames with a valid copy are delivered, once if the skew allows.
    #[test]
    fn all_loss_patterns_deliver_what_the_networks_left() {
        const FRAMES: usize = 5;
        let mut delivered_by_losses = [0_u64; 2 * FRAMES + 1];
        for pattern in 0_u32..1 << (2 * FRAMES) {
            let lost = |network: NetworkId, frame: usize| {
                pattern >> (frame + if network == NetworkId::A { 0 } else { FRAMES }) & 1 == 1
            };
            let a = valid(FRAMES, |frame| lost(NetworkId::A, frame));
            let b = valid(FRAMES, |frame| lost(NetworkId::B, frame));
            for (lag, within) in [(0, true), (SKEW, true), (SKEW + 1, false), (3 * BAG + 7, false)] {
                let expected: Vec<u32> = (0..FRAMES)
                    .map(|f| match (a[f], b[f]) {
                        (false, false) => 0,
                        (true, true) if !within => 2,
                        _ => 1,
                    })
                    .collect();
                assert_eq!(deliveries(on(), FRAMES, lag, lost), expected, "{pattern:010b} lag {lag}");
                let both: Vec<u32> = (0..FRAMES).map(|f| u32::from(a[f]) + u32::from(b[f])).collect();
                assert_eq!(deliveries(Redundancy::Off, FRAMES, lag, lost), both);
            }
            let delivered = (0..FRAMES).filter(|f| a[*f] || b[*f]).count() as u64;
            delivered_by_losses[pattern.count_ones() as usize] += delivered;
        }
        // Summed over all patterns with k losses; with at most two losses every frame has a valid copy but where
        // both of one frame are lost: 5 of the 45 pairs.
        assert_eq!(delivered_by_losses[..3], [5, 50, 45 * 5 - 5]);
    }

    /// Independent losses with probability p on each network: expectation by enumeration of short windows
    /// against a long run. Integrity checking looks back two frames and at the beginning of time, so the
    /// stationary probability of a valid copy is (1 − p)(1 − p²) per network.
    #[test]
    fn independent_losses_cost_what_the_closed_form_says() {
        const FRAMES: usize = 200_000;
        for loss_in_256 in [16_u64, 64, 128] {
            let mut state = 7_u64;
            let lost: Vec<[bool; 2]> = (0..FRAMES)
                .map(|_| {
                    [(); 2].map(|()| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        state >> 56 < loss_in_256
                    })
                })
                .collect();
            let count =
                deliveries(on(), FRAMES, SKEW, |network, f| lost[f][usize::from(network == NetworkId::B)]);
            assert!(count.iter().all(|times| *times <= 1));
            let p = loss_in_256 as f64 / 256.0;
            let expected = 1.0 - (1.0 - (1.0 - p) * (1.0 - p * p)).powi(2);
            let share = count.iter().sum::<u32>() as f64 / FRAMES as f64;
            // Five standard deviations, doubled for the correlation of neighbouring frames.
            let allowed = 10.0 * (expected * (1.0 - expected) / FRAMES as f64).sqrt();
            assert!((share - expected).abs() < allowed, "{share} for {expected} at p = {p}");
            // Redundancy without the integrity check's own losses would be told apart.
            assert!((share - (1.0 - p * p)).abs() > allowed || p < 0.1);
        }
    }

    proptest! {
        /// Any lags of the copies within SkewMax, so that frames may overtake each other.
        #[test]
        fn no_frame_is_delivered_twice_and_none_with_a_copy_is_lost(
            lags in prop::collection::vec((0..=SKEW, 0..=SKEW), 1..400),
            base in 0..BAG,
        ) {
            let mut core = RedundancyManager::new(on(), Bag::ALL[0]).unwrap();
            let mut sender = SequenceGenerator::new();
            let mut arrivals: Vec<_> = lags.iter().enumerate().flat_map(|(frame, &(a, b))| {
                let (number, sent) = (sender.next_number(), base + frame as i64 * BAG);
                [(sent + a, NetworkId::A, frame, number), (sent + b, NetworkId::B, frame, number)]
            }).collect();
            arrivals.sort();
            let mut count = std::vec![0; lags.len()];
            for (at, network, frame, number) in arrivals {
                let first = count[frame] == 0;
                match core.handle_frame(RunTime::from_picos(at), network, number) {
                    Decision::Forward { overtaken } => {
                        prop_assert!(first && !overtaken);
                        count[frame] += 1;
                    }
                    Decision::SecondCopy { skew } => {
                        let (a, b) = lags[frame];
                        prop_assert_eq!(skew.as_picos(), (a - b).abs());
                    }
                }
            }
            prop_assert!(count.iter().all(|times| *times == 1));
        }
    }

    #[test]
    fn a_frame_the_faster_network_lost_is_taken_late_and_marked() {
        let skew_max = Span::from_picos(3 * BAG);
        let mut core = receiver(Redundancy::FirstValidWins { skew_max });
        let mut arrive = |at, network, number| {
            core.handle_frame(RunTime::from_picos(at), network, number).map(|delivery| delivery.overtaken)
        };
        assert_eq!(arrive(0, NetworkId::A, 7), Ok(false));
        assert_eq!(arrive(20, NetworkId::A, 9), Ok(false));
        assert_eq!(
            arrive(30, NetworkId::B, 7),
            Err(ReceptionDrop::SecondCopy { skew: Span::from_picos(30) })
        );
        assert_eq!(
            arrive(40, NetworkId::B, 8),
            Ok(true),
            "remembering only the highest number would lose it"
        );
        assert_eq!(
            arrive(50, NetworkId::B, 9),
            Err(ReceptionDrop::SecondCopy { skew: Span::from_picos(30) })
        );
        let stale = Discontinuity { previous: 9, number: 9 };
        assert_eq!(arrive(60, NetworkId::B, 9), Err(ReceptionDrop::Integrity(stale)));
    }

    #[test]
    fn a_frame_without_integrity_still_tells_the_time() {
        let mut core = receiver(on());
        let mut arrive = |at, network, number| core.handle_frame(RunTime::from_picos(at), network, number);
        assert!(arrive(0, NetworkId::A, 7).is_ok());
        assert!(matches!(arrive(90, NetworkId::A, 7), Err(ReceptionDrop::Integrity(_))));
        assert_eq!(
            arrive(50, NetworkId::B, 7),
            Err(ReceptionDrop::SecondCopy { skew: Span::from_picos(90) })
        );
    }

    #[test]
    fn resets_and_bounds() {
        let mut core = receiver(on());
        let now = RunTime::ZERO;
        assert!(core.handle_frame(now, NetworkId::A, 77).is_ok());
        core.handle_reset();
        let again = Delivery { continuity: Continuity::First, overtaken: false };
        assert_eq!(
            core.handle_frame(now, NetworkId::B, 77),
            Ok(again),
            "the copy before the reset is forgotten"
        );
        for skew_ms in [0, 254] {
            let mode = Redundancy::FirstValidWins { skew_max: Span::from_millis(skew_ms) };
            assert!(RedundancyManager::new(mode, Bag::ALL[0]).is_ok());
        }
        for skew_ms in [-1, 255] {
            let skew_max = Span::from_millis(skew_ms);
            let error = SkewError { skew_max, limit: Span::from_millis(254) };
            let mode = Redundancy::FirstValidWins { skew_max };
            assert_eq!(RedundancyManager::new(mode, Bag::ALL[0]).err(), Some(error));
        }
    }
}
