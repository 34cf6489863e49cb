//! Traffic policing: one token account per virtual link at a switch's input port.
//!
//! An account AC starts full at Smax·(1 + J/BAG), is refilled at Smax/BAG and never holds more than it started
//! with. Byte-based policing lets a frame of S bytes pass if AC ≥ S and charges S; frame-based policing lets it
//! pass if AC ≥ Smax and charges Smax. J is the jitter the switch grants the virtual link at this port. The
//! formula is what publications on ARINC 664p7 policing agree on ("credited token bucket", byte- and
//! frame-based); the standard's own text is not free and was not read.
//!
//! # Exact
//! AC is kept in units of a byte / BAG, that is, AC·BAG in byte·ps: then the refill is Smax units per
//! picosecond, a frame costs S·BAG, the ceiling is Smax·(BAG + J), and all are integers. Nothing is rounded, so
//! nothing drifts however long a run is. A floating-point or "tokens per tick" account would drop a conforming
//! frame sooner or later, and the bed would blame the network.
//!
//! # Time
//! Accounts are charged in the order of calls. Calls at equal instants are judged one after the other against
//! the same refill. A call earlier than the one before is judged at the later of the two instants: time that
//! has been paid out cannot be taken back. A late call needs no rule, since an account has no deadline.

use alloc::vec::Vec;

use wg_frame::time::{RunTime, Span};

use super::{Contract, VirtualLinkId};

/// Basis of the charge for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Length of the frame.
    ByteBased,
    /// Smax, whatever its length: counts frames.
    FrameBased,
}

/// Whether a frame conforms to its virtual link's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame conforms and was charged.
    Conforming,
    /// The frame does not conform and was not charged; it would have passed `early_by` later.
    Excess {
        /// Time by which the frame came too early.
        early_by: Span,
    },
    /// Cost above the capacity of a full account: the frame can never pass, and was not charged.
    BeyondAccount,
}

/// The token account of one virtual link at one input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    mode: Mode,
    smax: u16,
    bag_ps: u64,
    /// Smax·(BAG + J), in byte·ps.
    ceiling: u64,
    /// AC·BAG, in byte·ps.
    level: u64,
    updated: RunTime,
}

/// Greatest jitter that an account may grant, so that every sum fits 64 bits. No network varies by more.
pub const MAX_GRANTED_JITTER: Span = Span::from_millis(3_600_000);

/// A jitter that cannot be granted: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "policing jitter {0} is not between 0ps and {MAX_GRANTED_JITTER}; \
     give the greatest delay variation of the virtual link at this port"
)]
pub struct JitterError(pub Span);

impl Account {
    /// A full account for `contract` (Smax is its Lmax, in bytes of the frame, DA to FCS) that grants `jitter`.
    ///
    /// # Errors
    /// [`JitterError`].
    pub fn new(contract: Contract, jitter: Span, mode: Mode) -> Result<Self, JitterError> {
        if !(Span::ZERO..=MAX_GRANTED_JITTER).contains(&jitter) {
            return Err(JitterError(jitter));
        }
        let bag_ps = contract.bag().span().as_picos().unsigned_abs();
        let smax = contract.lmax();
        let ceiling = u64::from(smax) * (bag_ps + jitter.as_picos().unsigned_abs());
        Ok(Self { mode, smax, bag_ps, ceiling, level: ceiling, updated: RunTime::from_picos(i64::MIN) })
    }

    /// The switch restarts: the account is full, as it was at first.
    pub fn handle_restart(&mut self) {
        (self.level, self.updated) = (self.ceiling, RunTime::from_picos(i64::MIN));
    }

    /// Judges a frame of `frame_len` bytes (DA to FCS) that arrives at `now`, and charges it if it passes.
    ///
    /// Byte-based policing alone lets a frame longer than Smax pass when the jitter has filled the account;
    /// that is the [filter](super::filter)'s to refuse.
    pub fn handle_frame(&mut self, now: RunTime, frame_len: usize) -> Verdict {
        self.refill(now);
        let charged = match self.mode {
            Mode::ByteBased => frame_len as u64,
            Mode::FrameBased => u64::from(self.smax),
        };
        // A product beyond 64 bits is beyond every account.
        let cost = charged.saturating_mul(self.bag_ps);
        if cost > self.ceiling {
            return Verdict::BeyondAccount;
        }
        if let Some(left) = self.level.checked_sub(cost) {
            self.level = left;
            return Verdict::Conforming;
        }
        let missing_ps = (cost - self.level).div_ceil(u64::from(self.smax));
        Verdict::Excess { early_by: Span::from_picos(i64::try_from(missing_ps).unwrap_or(i64::MAX)) }
    }

    fn refill(&mut self, now: RunTime) {
        if now <= self.updated {
            return;
        }
        // The first refill spans from the beginning of time; a product beyond 64 bits is more than there is room for.
        let elapsed_ps = now.as_picos().abs_diff(self.updated.as_picos());
        let gained = u64::from(self.smax).saturating_mul(elapsed_ps);
        self.level += gained.min(self.ceiling - self.level);
        self.updated = now;
    }
}

/// The accounts of one input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPolicer {
    /// Ascending by virtual link.
    accounts: Vec<(VirtualLinkId, Account)>,
}

/// Two accounts of one virtual link at one port, an error of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} has two accounts at one input port; give it one")]
pub struct TwoAccounts(pub VirtualLinkId);

/// A frame of a virtual link that has no account here; the filter should have refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} has no account at this input port")]
pub struct NoAccount(pub VirtualLinkId);

impl InputPolicer {
    /// A port with these accounts.
    ///
    /// # Errors
    /// [`TwoAccounts`].
    pub fn new(mut accounts: Vec<(VirtualLinkId, Account)>) -> Result<Self, TwoAccounts> {
        accounts.sort_by_key(|(virtual_link, _)| *virtual_link);
        match accounts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(TwoAccounts(pair[0].0)),
            None => Ok(Self { accounts }),
        }
    }

    /// Judges a frame by its virtual link's account; one binary search.
    ///
    /// # Errors
    /// [`NoAccount`]: nothing was judged.
    pub fn handle_frame(
        &mut self,
        now: RunTime,
        virtual_link: VirtualLinkId,
        frame_len: usize,
    ) -> Result<Verdict, NoAccount> {
        match self.accounts.binary_search_by_key(&virtual_link, |(id, _)| *id) {
            Ok(at) => Ok(self.accounts[at].1.handle_frame(now, frame_len)),
            Err(_) => Err(NoAccount(virtual_link)),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::arinc664::{Bag, MAX_FRAME_LEN};

    #[derive(Clone, Copy, Debug)]
    struct Setting {
        bag: Bag,
        smax: u16,
        jitter_ps: i64,
        mode: Mode,
    }

    impl Setting {
        fn account(self) -> Account {
            let contract = Contract::new(self.bag, self.smax).unwrap();
            Account::new(contract, Span::from_picos(self.jitter_ps), self.mode).unwrap()
        }
        fn bag_ps(self) -> i128 {
            i128::from(self.bag.span().as_picos())
        }
        fn charged(self, len: usize) -> i128 {
            match self.mode {
                Mode::ByteBased => len as i128,
                Mode::FrameBased => i128::from(self.smax),
            }
        }
    }

    fn setting() -> impl Strategy<Value = Setting> {
        let jitter = prop_oneof![Just(0_i64), 0_i64..2_000, 0_i64..600_000_000, 0_i64..300_000_000_000];
        let mode = prop_oneof![Just(Mode::ByteBased), Just(Mode::FrameBased)];
        (prop::sample::select(&Bag::ALL[..]), 64_u16..=1518, jitter, mode)
            .prop_map(|(bag, smax, jitter_ps, mode)| Setting { bag, smax, jitter_ps, mode })
    }

    /// Ascending arrivals: gaps around the BAG, in bursts, and odd picoseconds.
    fn arrivals(setting: Setting) -> impl Strategy<Value = Vec<(i64, usize)>> {
        let bag = setting.bag.span().as_picos();
        let gap = prop_oneof![Just(0), 0..1_000_i64, 0..bag, bag - 3..bag + 3, 0..3 * bag];
        prop::collection::vec((gap, 64..=usize::from(setting.smax)), 1..60).prop_map(|steps| {
            let mut now = 0;
            steps
                .into_iter()
                .map(|(gap, len)| {
                    now += gap;
                    (now, len)
                })
                .collect()
        })
    }

    fn judged(setting: Setting, arrivals: &[(i64, usize)]) -> Vec<bool> {
        let mut account = setting.account();
        arrivals
            .iter()
            .map(|&(at, len)| account.handle_frame(RunTime::from_picos(at), len) == Verdict::Conforming)
            .collect()
    }

    /// Virtual scheduling (ITU-T I.371, annex A): keeps a theoretical arrival time as a fraction with
    /// denominator Smax instead of an account. Same language of sequences, different arithmetic.
    fn by_virtual_scheduling(setting: Setting, arrivals: &[(i64, usize)]) -> Vec<bool> {
        let smax = i128::from(setting.smax);
        let mut theoretical = i128::MIN / 2;
        arrivals
            .iter()
            .map(|&(at, len)| {
                let now = i128::from(at) * smax;
                let after = theoretical.max(now) + setting.charged(len) * setting.bag_ps();
                let passes = after - now <= (setting.bag_ps() + i128::from(setting.jitter_ps)) * smax;
                if passes {
                    theoretical = after;
                }
                passes
            })
            .collect()
    }

    /// The contract as network calculus writes it, over every window of accepted frames, cross-multiplied.
    fn breach(setting: Setting, arrivals: &[(i64, usize)], passed: &[bool]) -> Option<(usize, usize)> {
        let kept: Vec<_> =
            arrivals.iter().zip(passed).filter(|(_, passed)| **passed).map(|(a, _)| *a).collect();
        for first in 0..kept.len() {
            let mut sent = 0;
            for last in first..kept.len() {
                sent += setting.charged(kept[last].1) * setting.bag_ps();
                let window = i128::from(kept[last].0 - kept[first].0);
                let granted = setting.bag_ps() + i128::from(setting.jitter_ps) + window;
                if sent > granted * i128::from(setting.smax) {
                    return Some((first, last));
                }
            }
        }
        None
    }

    proptest! {
        #[test]
        fn the_account_agrees_with_virtual_scheduling(
            (setting, arrivals) in setting().prop_flat_map(|s| (Just(s), arrivals(s)))
        ) {
            prop_assert_eq!(judged(setting, &arrivals), by_virtual_scheduling(setting, &arrivals));
        }

        #[test]
        fn accepted_traffic_is_within_its_contract(
            (setting, arrivals) in setting().prop_flat_map(|s| (Just(s), arrivals(s)))
        ) {
            prop_assert_eq!(breach(setting, &arrivals, &judged(setting, &arrivals)), None);
        }

        /// Frames at least a BAG apart when they became eligible, each delayed by at most J.
        #[test]
        fn conforming_traffic_is_never_dropped(
            setting in setting(),
            frames in prop::collection::vec((0_i64..2_000_000_000, 0.0_f64..=1.0, 64_usize..=1518), 1..80),
            spread in any::<bool>(),
        ) {
            let mut eligible = 0;
            let mut arrivals = Vec::new();
            for (idle, delayed, len) in frames {
                eligible += setting.bag.span().as_picos() + if spread { idle } else { 0 };
                let delay = if spread { (delayed * setting.jitter_ps as f64) as i64 } else { 0 };
                arrivals.push((eligible + delay.min(setting.jitter_ps), len.min(usize::from(setting.smax))));
            }
            arrivals.sort_unstable();
            prop_assert!(judged(setting, &arrivals).iter().all(|passed| *passed));
        }

        /// A frame refused as `early_by` too early passes then, and not a picosecond before.
        #[test]
        fn early_by_is_exact((setting, arrivals) in setting().prop_flat_map(|s| (Just(s), arrivals(s)))) {
            let mut account = setting.account();
            for (at, len) in arrivals {
                let now = RunTime::from_picos(at);
                if let Verdict::Excess { early_by } = account.handle_frame(now, len) {
                    let then = now + early_by;
                    prop_assert_eq!(account.clone().handle_frame(then, len), Verdict::Conforming);
                    let just_before = account.clone().handle_frame(then - Span::from_picos(1), len);
                    prop_assert_eq!(just_before, Verdict::Excess { early_by: Span::from_picos(1) });
                }
            }
        }
    }

    /// Wrong accounts, each of which a property above must tell from the right one.
    #[test]
    fn wrong_accounts_are_found_out() {
        let setting = Setting { bag: Bag::ALL[0], smax: 999, jitter_ps: 500_000_000, mode: Mode::ByteBased };
        let bag = setting.bag.span().as_picos();
        let wrong =
            |arrivals: &[(i64, usize)], refill: &dyn Fn(i64) -> f64, ceiling: f64, charge_excess: bool| {
                let (mut level, mut last) = (ceiling, 0);
                arrivals
                    .iter()
                    .map(|&(at, len)| {
                        level = (level + refill(at - last)).min(ceiling);
                        last = at;
                        let passes = level >= len as f64;
                        if passes || charge_excess {
                            level -= len as f64;
                        }
                        passes
                    })
                    .collect::<Vec<_>>()
            };
        let exact = |elapsed: i64| elapsed as f64 * 999.0 / bag as f64;
        let flood: Vec<_> = (0..100).map(|i| (i * bag / 3, 999)).collect();
        // Unbounded savings and a doubled ceiling let too much pass.
        assert!(breach(setting, &flood, &wrong(&flood, &exact, 3_000.0, false)).is_some());
        // Charging what was refused starves the sender: virtual scheduling disagrees.
        let starved = wrong(&flood, &exact, 1_498.5, true);
        assert_ne!(starved, by_virtual_scheduling(setting, &flood));
        // Tokens in whole bytes per microsecond drop a conforming sender.
        let steady: Vec<_> = (0..100).map(|i| (i * bag, 999)).collect();
        let coarse = |elapsed: i64| ((elapsed / 1_000_000) as f64 * (999.0_f64 / 1_000.0).floor()).floor();
        assert!(wrong(&steady, &coarse, 1_498.5, false).contains(&false));
        assert!(judged(setting, &steady).iter().all(|passed| *passed));
    }

    #[test]
    fn calls_out_of_order_are_paid_once() {
        let setting = Setting { bag: Bag::ALL[0], smax: 100, jitter_ps: 0, mode: Mode::FrameBased };
        let mut account = setting.account();
        let at = |ps| RunTime::from_picos(ps);
        assert_eq!(account.handle_frame(at(2_000_000_000), 100), Verdict::Conforming);
        let early_by = setting.bag.span();
        assert_eq!(account.handle_frame(at(5), 100), Verdict::Excess { early_by });
        assert_eq!(account.handle_frame(at(3_000_000_000), 100), Verdict::Conforming);
        assert_eq!(account.handle_frame(at(3_000_000_000), 100), Verdict::Excess { early_by });
    }

    #[test]
    fn a_frame_that_can_never_pass_is_told_apart() {
        let setting = Setting { bag: Bag::ALL[0], smax: 100, jitter_ps: 500_000_000, mode: Mode::ByteBased };
        let mut account = setting.account();
        assert_eq!(account.handle_frame(RunTime::ZERO, 151), Verdict::BeyondAccount);
        assert_eq!(account.handle_frame(RunTime::ZERO, 150), Verdict::Conforming);
    }

    #[test]
    fn each_virtual_link_has_its_own_account() {
        let setting = Setting { bag: Bag::ALL[0], smax: 100, jitter_ps: 0, mode: Mode::FrameBased };
        let accounts = |ids: &[u16]| ids.iter().map(|id| (VirtualLinkId(*id), setting.account())).collect();
        assert_eq!(InputPolicer::new(accounts(&[2, 1, 2])), Err(TwoAccounts(VirtualLinkId(2))));
        let mut port = InputPolicer::new(accounts(&[5, 2])).unwrap();
        let now = RunTime::ZERO;
        assert_eq!(port.handle_frame(now, VirtualLinkId(2), 64), Ok(Verdict::Conforming));
        assert!(matches!(port.handle_frame(now, VirtualLinkId(2), 64), Ok(Verdict::Excess { .. })));
        assert_eq!(port.handle_frame(now, VirtualLinkId(5), 64), Ok(Verdict::Conforming));
        assert_eq!(port.handle_frame(now, VirtualLinkId(3), 64), Err(NoAccount(VirtualLinkId(3))));
        let longest = Contract::new(Bag::ALL[7], MAX_FRAME_LEN as u16).unwrap();
        assert!(Account::new(longest, MAX_GRANTED_JITTER, Mode::ByteBased).is_ok());
        for jitter in [Span::from_picos(-1), MAX_GRANTED_JITTER + Span::from_picos(1)] {
            assert_eq!(Account::new(longest, jitter, Mode::ByteBased), Err(JitterError(jitter)));
        }
    }
}
