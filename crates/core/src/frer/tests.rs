//! Vectors derived by hand from 7.4.3.4, 7.4.3.5 and 7.4.4, and any sequences against a model that keeps sets, not
//! bits.

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;
use wg_frame::ethernet::MacAddress;

use super::*;
use crate::cause::Cause;
use crate::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use crate::frer::latent::{LatentErrorConfig, LatentErrors};
use crate::frer::{Elimination, Handled, Relay, StreamId, StreamTable, StreamTableError};

const MS: i64 = 1_000_000_000;
const RESET: i64 = 100 * MS;

fn vector(history_length: u32) -> Recovery {
    recovery(Algorithm::Vector { history_length }, false)
}

fn recovery(algorithm: Algorithm, individual: bool) -> Recovery {
    let reset = Span::from_picos(RESET);
    let config = RecoveryConfig { algorithm, reset, take_no_sequence: false, individual };
    Recovery::new(config).expect("a configuration that works")
}

fn at(ms: i64) -> RunTime {
    RunTime::from_picos(ms * MS)
}

/// Hands numbers in at one instant; a letter for each decision.
fn decide(core: &mut Recovery, numbers: &[u16]) -> std::string::String {
    let letter = |number: &u16| match core.handle_frame(at(0), Some(*number)) {
        Decision::Pass => 'P',
        Decision::Repeated => 'x',
        Decision::Rogue => 'R',
        Decision::Tagless => 't',
    };
    numbers.iter().map(letter).collect()
}

/// Counters: passed, discarded, rogue, out of order, lost, tagless, resets.
fn counted(core: &Recovery) -> [u64; 7] {
    let Counters { passed, discarded, rogue, out_of_order, lost, tagless, resets } = core.counters();
    [passed, discarded, rogue, out_of_order, lost, tagless, resets]
}

#[test]
fn vector_recovery_passes_the_first_of_each_number() {
    // Two paths in step; with history 2 numbers up to one off are known.
    let mut core = vector(2);
    assert_eq!(decide(&mut core, &[7, 7, 8, 8, 9, 9]), "PxPxPx");
    assert_eq!(counted(&core), [3, 3, 0, 0, 0, 0, 0]);
    // One off either way is accepted, two off is not: |delta| ≥ 2 is rogue.
    assert_eq!(decide(&mut core, &[11, 7, 10, 9, 9, 11]), "RRPxxP");
    assert_eq!(counted(&core), [5, 7, 2, 0, 0, 0, 0]);
}

#[test]
fn a_number_that_comes_late_passes_out_of_order_and_a_second_time_it_does_not() {
    let mut core = vector(4);
    // 10; 12 skips 11 (delta 2, out of order); 11 is late (delta −1, bit 1 is 0: passes out of order); then repeated.
    assert_eq!(decide(&mut core, &[10, 12, 11, 11, 12, 10]), "PPPxxx");
    assert_eq!(counted(&core), [3, 3, 0, 2, 0, 0, 0]);
    // delta 3 is the farthest: the history is then 15 . . 12, and 11 and 10 have left it, both seen.
    assert_eq!(decide(&mut core, &[15, 11, 19, 13, 14]), "PRRPP");
    assert_eq!(counted(&core), [6, 5, 2, 5, 0, 0, 0]);
}

#[test]
fn numbers_that_leave_the_history_unseen_are_lost_once() {
    let mut core = vector(3);
    // 0, then 2 and 4 skip 1 and 3. History of 3 after 2: 2 . 0; after 4: 4 . 2, by which 0 (seen) and 1 (lost) left.
    assert_eq!(decide(&mut core, &[0, 2, 4]), "PPP");
    assert_eq!(counted(&core), [3, 0, 0, 2, 1, 0, 0]);
    // 5: 2 leaves, seen. 6: 3 leaves, lost. 1 is rogue by now (delta −5).
    assert_eq!(decide(&mut core, &[5, 6, 1]), "PPR");
    assert_eq!(counted(&core), [5, 1, 1, 2, 2, 0, 0]);
}

#[test]
fn nothing_is_lost_before_the_first_number() {
    // The standard's text would count the 31 places that no number had taken yet.
    let mut core = vector(32);
    let all: Vec<u16> = (100..200).collect();
    assert!(decide(&mut core, &all).chars().all(|decision| decision == 'P'));
    assert_eq!(counted(&core), [100, 0, 0, 0, 0, 0, 0]);
    // Numbers from before the first still pass: their bits are 0 after a reset (7.4.3.3).
    let mut core = vector(8);
    assert_eq!(decide(&mut core, &[100, 95, 93, 92, 95]), "PPPRx");
}

#[test]
fn numbers_wrap() {
    let mut core = vector(4);
    assert_eq!(decide(&mut core, &[65_534, 65_535, 65_535, 0, 65_534, 1, 0, 65_533]), "PPxPxPxR");
    // Half the space away is rogue whatever the history: delta −32768.
    let mut core = vector(RecoveryConfig::LONGEST_HISTORY);
    assert_eq!(decide(&mut core, &[0, 32_768, 32_767, 32_768]), "PRPP");
}

#[test]
fn match_recovery_knows_the_last_number_only() {
    let mut core = recovery(Algorithm::Match, false);
    // A copy behind a younger one passes again: the rule, not a mistake.
    assert_eq!(decide(&mut core, &[5, 5, 6, 6, 5, 6, 9, 9, 8]), "PxPxPPPxP");
    assert_eq!(counted(&core), [6, 3, 0, 3, 0, 0, 0]);
}

#[test]
fn any_number_is_accepted_when_the_timer_ran_out() {
    for algorithm in [Algorithm::Match, Algorithm::Vector { history_length: 4 }] {
        let mut core = recovery(algorithm, false);
        let mut arrive = |ms, number| core.handle_frame(at(ms), Some(number));
        assert_eq!(arrive(0, 500), Decision::Pass);
        // What is discarded leaves the timer alone (7.4.3.4): it runs out at 100 ms, 100 ms after what passed.
        assert_eq!(arrive(99, 500), Decision::Repeated);
        assert_eq!(arrive(100, 500), Decision::Pass);
        // A frame that passes starts it again.
        assert_eq!(arrive(190, 501), Decision::Pass);
        assert_eq!(arrive(289, 501), Decision::Repeated);
        assert_eq!(arrive(290, 40_000), Decision::Pass);
        assert_eq!(counted(&core), [4, 2, 0, 0, 0, 0, 2], "{algorithm:?}");
        // It runs out once, however long nothing comes.
        core.advance(at(10_000));
        core.advance(at(20_000));
        assert_eq!(core.counters().resets, 3);
    }
}

#[test]
fn of_individual_recovery_what_is_discarded_keeps_the_timer_running() {
    let algorithm = Algorithm::Vector { history_length: 2 };
    for (individual, then) in [(true, Decision::Repeated), (false, Decision::Pass)] {
        let mut core = recovery(algorithm, individual);
        // A talker that is stuck at one number, every 60 ms.
        let last = (0..6).map(|step| core.handle_frame(at(60 * step), Some(9))).collect::<Vec<_>>();
        assert_eq!((last[0], last[1], last[2]), (Decision::Pass, Decision::Repeated, then));
        assert_eq!(core.counters().passed, if individual { 1 } else { 3 });
    }
}

#[test]
fn frames_without_a_number_pass_where_the_plan_says_so() {
    let config = RecoveryConfig {
        algorithm: Algorithm::Match,
        reset: Span::from_picos(RESET),
        take_no_sequence: true,
        individual: false,
    };
    let mut core = Recovery::new(config).unwrap();
    assert_eq!(core.handle_frame(at(0), None), Decision::Pass);
    assert_eq!(counted(&core), [1, 0, 0, 0, 0, 1, 0]);
    let mut core = vector(2);
    assert_eq!(core.handle_frame(at(0), None), Decision::Tagless);
    assert_eq!(counted(&core), [0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn what_cannot_work_is_refused() {
    let new = |algorithm, reset| {
        let reset = Span::from_picos(reset);
        Recovery::new(RecoveryConfig { algorithm, reset, take_no_sequence: false, individual: false })
            .map(|_| ())
    };
    for (history_length, works) in [(0, false), (1, false), (2, true), (32_768, true), (32_769, false)] {
        let expected = if works { Ok(()) } else { Err(RecoveryError::HistoryLength(history_length)) };
        assert_eq!(new(Algorithm::Vector { history_length }, 1), expected);
    }
    assert_eq!(new(Algorithm::Match, 0), Err(RecoveryError::Reset(Span::ZERO)));
}

#[test]
fn latent_errors_are_found_by_what_is_missing() {
    let config = LatentErrorConfig {
        paths: 3,
        difference: 4,
        period: Span::from_millis(10),
        reset_period: Span::from_millis(35),
    };
    let mut core = LatentErrors::new(config);
    // Of three paths each number passes once and is discarded twice.
    core.advance(at(9), 5, 10);
    assert_eq!(core.signalled(), 0);
    // At 10 ms: 8·2 − 12 = 4 are missing, as many as may be.
    core.advance(at(15), 8, 12);
    assert_eq!(core.signalled(), 0);
    // At 20 and 30 ms: 9·2 − 13 = 5 are missing. At 35 ms that is forgotten: nothing at 40 and 50 ms.
    core.advance(at(55), 9, 13);
    assert_eq!((core.signalled(), core.first()), (2, Some(at(20))));
    // At 60 ms it is 5 as at the reset; at 70 ms 10·2 − 25 = −5, ten apart: an error, before the reset of 70 ms.
    core.advance(at(60), 9, 13);
    core.advance(at(70), 10, 25);
    assert_eq!(core.signalled(), 3);
    // That reset took −5 for its base.
    core.advance(at(80), 10, 25);
    assert_eq!((core.signalled(), core.first()), (3, Some(at(20))));
}

/// What was accepted since the last reset, as numbers that do not wrap.
struct Model {
    history: i64,
    seen: BTreeSet<i64>,
    latest: Option<i64>,
    first: i64,
    lost: u64,
    runs_out: Option<i64>,
}

impl Model {
    fn judge(&mut self, now: i64, number: u16) -> Decision {
        if self.runs_out.is_some_and(|at| at <= now) {
            self.count_lost();
            (self.latest, self.runs_out) = (None, None);
            self.seen.clear();
        }
        let Some(latest) = self.latest else {
            (self.latest, self.first) = (Some(number.into()), number.into());
            self.seen.insert(number.into());
            self.runs_out = Some(now + RESET);
            return Decision::Pass;
        };
        // Of all numbers that look like this one the nearest; of two as near the lower.
        let candidate = (latest - 32_768..latest + 32_768)
            .find(|candidate| candidate.rem_euclid(65_536) == i64::from(number))
            .expect("one of 65536 in a row");
        if (candidate - latest).abs() >= self.history {
            return Decision::Rogue;
        }
        if !self.seen.insert(candidate) {
            return Decision::Repeated;
        }
        self.latest = Some(latest.max(candidate));
        self.runs_out = Some(now + RESET);
        Decision::Pass
    }

    fn count_lost(&mut self) {
        if let Some(latest) = self.latest {
            let left = self.first..=latest - self.history;
            self.lost += left.filter(|number| !self.seen.contains(number)).count() as u64;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn vector_recovery_is_what_a_set_of_numbers_says(
        history_length in 2_u32..40,
        start in any::<u16>(),
        frames in prop::collection::vec((-45_i32..45, 0_i64..30, 0_u32..60), 1..300),
    ) {
        let mut core = vector(history_length);
        let mut model = Model {
            history: i64::from(history_length),
            seen: BTreeSet::new(),
            latest: None,
            first: 0,
            lost: 0,
            runs_out: None,
        };
        let (mut now, mut number) = (0, start);
        for (step, wait, rare) in frames {
            // Mostly the next numbers, some far away, now and then a long silence.
            number = number.wrapping_add(if rare < 40 { (step.rem_euclid(4) - 1) as u16 } else { step as u16 });
            now += if rare == 59 { RESET } else { wait * MS };
            let expected = model.judge(now, number);
            prop_assert_eq!(core.handle_frame(RunTime::from_picos(now), Some(number)), expected);
        }
        model.count_lost();
        // What has not left the history at a reset is not counted as lost, by either.
        prop_assert_eq!(core.counters().lost, model.lost);
        let Counters { passed, discarded, rogue, out_of_order, .. } = core.counters();
        prop_assert!(rogue <= discarded && out_of_order < passed);
    }

    /// Two paths that lose and delay at will within the history: every number that came passes exactly once.
    #[test]
    fn within_the_history_every_number_passes_once(
        copies in prop::collection::vec((0_u16..8, 0_u16..8, 0_u8..4), 1..200),
    ) {
        let mut arrivals: Vec<(u16, u16)> = Vec::new();
        for (number, (a, b, lost)) in (0_u16..).zip(&copies) {
            // Numbers are sent in step; a copy comes up to 7 steps later, so that at most 7 numbers lie between.
            if *lost != 1 { arrivals.push((number + a, number)); }
            if *lost != 2 { arrivals.push((number + b, number)); }
        }
        arrivals.sort_unstable();
        let mut core = vector(8);
        let mut passed = std::vec![0; copies.len()];
        for (_, number) in &arrivals {
            passed[usize::from(*number)] += u32::from(core.handle_frame(at(0), Some(*number)) == Decision::Pass);
        }
        prop_assert!(passed.iter().all(|times| *times == 1), "{:?}", passed);
        prop_assert_eq!(core.counters().rogue + core.counters().lost, 0);
    }
}

fn address(member: u8) -> MacAddress {
    MacAddress([3, 0, 0, 0, 0, member])
}

fn stream(member: u8) -> StreamId {
    StreamId { destination: address(member), vlan: 5 }
}

/// Stream 1 leaves as 1 and 3, stream 4 as 1.
fn relays() -> Vec<Relay> {
    std::vec![
        Relay { stream: stream(1), leaves: std::vec![address(1), address(3)] },
        Relay { stream: stream(4), leaves: std::vec![address(1)] },
    ]
}

/// Streams 1 and 4 go on as 1.
fn junction() -> Elimination {
    let recovery = RecoveryConfig {
        algorithm: Algorithm::Vector { history_length: 4 },
        reset: Span::from_picos(RESET),
        take_no_sequence: false,
        individual: false,
    };
    let members = std::vec![address(1), address(4)];
    Elimination { stream: stream(1), members, recovery, individual: None, latent: None }
}

fn relaying(relays: Vec<Relay>) -> Result<StreamTable, StreamTableError> {
    StreamTable::new(Vec::new(), Vec::new())?.with_relays(std::vec![junction()], relays)
}

fn member_frame(member: u8, number: u16, marks: Marks) -> Frame {
    Frame {
        destination: address(member),
        source: MacAddress([2; 6]),
        length: 100,
        vlan: 5,
        virtual_link: 0,
        handle: Handle(7),
        priority: 0,
        class: TrafficClass::BestEffort,
        sequence: number,
        network: NetworkId::A,
        marks,
    }
}

/// What becomes of a frame, branch by branch.
fn relayed(table: &mut StreamTable, ms: i64, frame: Frame) -> Vec<Result<MacAddress, Cause>> {
    let Handled::Branches(branches) = table.handle_frame(at(ms), &frame) else { panic!("a relay") };
    let what = (0..branches.count()).map(|branch| match table.relay(at(ms), branches, branch, &frame) {
        Handled::Pass(own) => {
            assert_eq!(Frame { destination: frame.destination, ..own }, frame, "nothing else changes");
            Ok(own.destination)
        }
        Handled::Discard(cause) => Err(cause),
        other => panic!("{other:?}"),
    });
    what.collect()
}

/// One stream comes by two ways to a junction and leaves as one; the other branch of the first is not asked.
#[test]
fn a_relay_keeps_numbers_and_removes_copies_where_streams_join() {
    let twice = [relays(), relays()].concat();
    assert_eq!(relaying(twice).unwrap_err(), StreamTableError::Twice(stream(1)));
    let mut table = relaying(relays()).unwrap();
    let mut comes = |member, number, marks| relayed(&mut table, 0, member_frame(member, number, marks));
    let (one, three) = (Ok(address(1)), Ok(address(3)));
    assert_eq!(comes(1, 10, Marks::R_TAG), [one, three]);
    assert_eq!(comes(4, 10, Marks::R_TAG), [Err(Cause::SecondCopy)]);
    assert_eq!(comes(4, 11, Marks::R_TAG), [one]);
    assert_eq!(comes(1, 11, Marks::R_TAG), [Err(Cause::SecondCopy), three]);
    assert_eq!(comes(4, 30, Marks::R_TAG), [Err(Cause::Rogue)]);
    assert_eq!(comes(4, 12, Marks::none()), [Err(Cause::Integrity)]);
    let counted = table.joined(at(1));
    assert_eq!((counted.len(), &counted[0].came[..]), (1, &[2, 4][..]));
    assert_eq!((counted[0].recovery.passed, counted[0].recovery.discarded), (2, 3));
    table.handle_restart();
    assert!(table.eliminated(at(1)).is_empty());
    assert_eq!(relayed(&mut table, 2, member_frame(4, 500, Marks::R_TAG)), [one]);
}
