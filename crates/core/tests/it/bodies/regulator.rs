//! The virtual-link regulator.

use std::collections::VecDeque;

use wg_core::Deadline;
use wg_core::arinc664::regulator::Regulator;
use wg_core::arinc664::{Bag, Contract};
use wg_core::clock::TrueTime;
use wg_frame::time::RunTime;

use crate::input::Input;

/// Spacing, order within a sub-virtual-link, bounds and conservation after any calls in any order of time.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let bag = Bag::ALL[usize::from(input.byte() % 8)];
    let contract = Contract::new(bag, 64 + (input.word() % 1_455) as u16).expect("within bounds");
    let count = 1 + usize::from(input.byte() % 4);
    let capacities: Vec<_> = (0..count).map(|_| 1 + usize::from(input.byte() % 6)).collect();
    let mut core = Regulator::new(contract, &capacities).expect("one to four with room");
    let mut queues = vec![VecDeque::new(); count];
    let (mut time, mut latest, mut next, mut last_out) = (0, i64::MIN, 0_u32, None);
    while !input.is_done() {
        time += input.step(bag.span().as_picos());
        let now = RunTime::from_picos(time);
        match input.byte() % 16 {
            0 => {
                let expected: Vec<u32> = queues.iter_mut().flat_map(|queue| queue.drain(..)).collect();
                assert_eq!(core.handle_reset(), expected);
                last_out = None;
            }
            1..5 => {
                core.handle_deadline(now);
                latest = latest.max(time);
            }
            _ => {
                let (sub, len) = (usize::from(input.byte() % 5), input.below(1_600) as usize);
                latest = latest.max(time);
                let fits = sub < count && (64..=usize::from(contract.lmax())).contains(&len);
                let taken = fits && queues[sub].len() < capacities[sub];
                assert_eq!(core.handle_frame(now, sub, len, next).is_ok(), taken);
                if taken {
                    queues[sub].push_back(next);
                }
                next += 1;
            }
        }
        if !input.one_in(4) {
            while let Some(out) = core.poll_output(&TrueTime) {
                assert_eq!(queues[out.sub_virtual_link].pop_front(), Some(out.frame));
                assert!(out.eligible_at.as_picos() <= latest);
                assert!(last_out.is_none_or(|last| out.eligible_at - last >= bag.span()));
                last_out = Some(out.eligible_at);
            }
            let due = core.next_deadline();
            assert!(due > Deadline::at(RunTime::from_picos(latest)), "something was left that is due");
        }
        assert_eq!(core.waiting(), queues.iter().map(VecDeque::len).sum::<usize>());
    }
}
