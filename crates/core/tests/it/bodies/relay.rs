//! The relay.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::relay::{FaultKind, Faults, MOST_HELD, Output, Relay};
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// Each message comes out once and as its fault says, a swapped one behind a later one or at its time, within the
/// bounds.
#[expect(clippy::too_many_lines, reason = "a body is read beside its oracle")]
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let mut given = Vec::new();
    for _ in 0..input.byte() % 6 {
        let first = input.below(200) as u32;
        let last = first + input.below(20) as u32;
        let what = match input.byte() % 5 {
            0 => FaultKind::Loss,
            1 => FaultKind::Duplicate,
            2 => FaultKind::Corrupt,
            3 => FaultKind::Misdirect { to: u16::from(input.byte()) },
            _ => FaultKind::Reorder,
        };
        given.push((first, last, what));
    }
    let planned = |sequence: u32| {
        let first = given.iter().find(|(first, last, _)| (*first..=*last).contains(&sequence));
        first.map(|(.., what)| *what)
    };
    let (period, drain) = (input.step(1_000).abs(), input.step(50_000).abs());
    let mut core =
        Relay::new(Faults::new(given.iter().copied()), Span::from_picos(period), Span::from_picos(drain));
    let patience = (4 * period).max((drain / 2).min(100_000_000_000));
    // By ticket: its number, and for a held one when it came. Tickets tell messages of one number apart.
    let mut held: BTreeMap<u32, (u32, i64)> = BTreeMap::new();
    let mut left: BTreeSet<u32> = BTreeSet::new();
    let (mut time, mut ticket) = (0_i64, 0_u32);
    while !input.is_done() {
        // As a clock of a run: it never goes back.
        time += input.step(1_000).abs();
        let now = RunTime::from_picos(time);
        let mut behind = None;
        match input.byte() % 16 {
            0 => core.handle_end(),
            1..4 => core.handle_deadline(now),
            _ => {
                let (sequence, warm_up) = (input.below(220) as u32, input.one_in(8));
                let what = core.handle_message(now, sequence, warm_up, ticket);
                assert_eq!(what, if warm_up { None } else { planned(sequence) });
                let returns = matches!(what, None | Some(FaultKind::Duplicate));
                if what == Some(FaultKind::Reorder) && held.len() < MOST_HELD {
                    held.insert(ticket, (sequence, time));
                } else {
                    let out = core.poll_output().expect("what is not held leaves at once");
                    let expected = match what {
                        None | Some(FaultKind::Reorder) => Output::Return(ticket),
                        Some(FaultKind::Duplicate) => Output::Twice(ticket),
                        Some(FaultKind::Corrupt) => Output::Corrupt(ticket),
                        Some(FaultKind::Misdirect { to }) => Output::Misdirect(ticket, to),
                        Some(FaultKind::Loss) => Output::Drop(ticket),
                    };
                    assert_eq!(out, expected);
                    assert!(left.insert(ticket));
                }
                behind = (returns && !warm_up).then_some(sequence);
                // What waited for this one and has it now must be out after this call.
                if let Some(sent) = behind {
                    let freed = held.values().filter(|(sequence, _)| *sequence < sent).count();
                    for _ in 0..freed {
                        let Some(Output::Return(late)) = core.poll_output() else { panic!("it waits on") };
                        let (sequence, _) = held.remove(&late).expect("it was held");
                        assert!(sequence < sent && left.insert(late));
                    }
                }
                ticket += 1;
            }
        }
        let latest = held.values().map(|(_, since)| *since).max();
        let mut flushed = 0;
        while let Some(output) = core.poll_output() {
            assert!(behind.is_none(), "only what waited leaves behind a message");
            let Output::Return(late) = output else { panic!("a held message is sent back whole") };
            assert!(held.remove(&late).is_some() && left.insert(late), "each once");
            flushed += 1;
        }
        assert!(flushed == 0 || held.is_empty(), "patience ends for all at once");
        let expected = latest.filter(|_| !held.is_empty()).map(|since| RunTime::from_picos(since + patience));
        match core.next_deadline().instant() {
            None => assert!(held.is_empty(), "someone waits for ever"),
            // Those that came last may have left behind another; the time set for them stays.
            Some(at) => assert!(expected.is_some_and(|due| at >= due)),
        }
    }
    core.handle_end();
    while let Some(Output::Return(late)) = core.poll_output() {
        assert!(held.remove(&late).is_some() && left.insert(late));
    }
    assert!(held.is_empty() && left.len() == ticket as usize, "every message comes out once");
}
