//! When hosts are about to send, by the plan: the network is awake then and need not be woken.
//!
//! Waking a thread takes tens of microseconds, by which every frame would be late. So the thread stays awake from shortly before
//! a frame is likely until shortly after, as long as its share of the core lasts; otherwise it sleeps and the frame wakes it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use wg_frame::time::{RunTime, Span};
use wg_plan::schedule::{Schedule, ScheduleError};
use wg_plan::wire::{frame_length, sized_as};
use wg_plan::{FlowId, Run};

/// How long before a message is due its frame may arrive.
const EARLY: Span = Span::from_micros(60);
/// How long after a message is due the thread waits for its frame: hosts take a while to send.
const TAIL: Span = Span::from_micros(120);

/// The messages that hosts will send.
#[derive(Debug, Default)]
pub(super) struct Expected {
    senders: Vec<Sender>,
    /// The senders of each flow, by place.
    of_flow: BTreeMap<FlowId, Vec<usize>>,
    /// The next message of each sender that has one; entries whose message has arrived meanwhile are skipped.
    next: BinaryHeap<Reverse<(RunTime, usize)>>,
    /// When the last message of all is due.
    last: Option<RunTime>,
}

#[derive(Debug)]
struct Sender {
    schedule: Schedule,
    /// When the next message of the sender is due.
    due: Option<RunTime>,
}

impl Expected {
    /// The messages of a run.
    ///
    /// # Errors
    /// A sender of the plan has no schedule.
    pub(super) fn of(run: &Run) -> Result<Self, ScheduleError> {
        let mut own = Self::default();
        for send in &run.sends {
            let Some(flow) = run.flows.iter().find(|flow| flow.id == send.flow) else { continue };
            let within = flow.virtual_link.is_some_and(|link| link.number_within);
            let length = frame_length(sized_as(flow.protocol, within), flow.vlan, send.payload);
            let mut schedule = Schedule::new(run, send, u16::try_from(length).unwrap_or(u16::MAX))?;
            own.last = own.last.max(schedule.last_due());
            let due = schedule.next().map(|due| due.at);
            own.next.extend(due.map(|at| Reverse((at, own.senders.len()))));
            own.of_flow.entry(send.flow).or_default().push(own.senders.len());
            own.senders.push(Sender { schedule, due });
        }
        Ok(own)
    }

    /// When the last message is due.
    pub(super) const fn last(&self) -> Option<RunTime> {
        self.last
    }

    /// When the next frame is likely, possibly in the past; `None` if no more frames are expected.
    pub(super) fn next(&mut self, now: RunTime) -> Option<RunTime> {
        while let Some(&Reverse((at, number))) = self.next.peek() {
            if self.senders[number].due != Some(at) {
                self.next.pop();
            } else if at + TAIL >= now {
                return Some(at);
            } else {
                self.next.pop();
                self.go_on(number);
            }
        }
        None
    }

    /// Notes that a message of `flow` arrived at `now`: the thread need not stay awake for it any more.
    pub(super) fn came(&mut self, flow: FlowId, now: RunTime) {
        let is_due = |number: &usize| self.senders[*number].due.is_some_and(|due| due <= now + EARLY);
        if let Some(number) = self.of_flow.get(&flow).into_iter().flatten().copied().find(|one| is_due(one)) {
            self.go_on(number);
        }
    }

    fn go_on(&mut self, number: usize) {
        let sender = &mut self.senders[number];
        sender.due = sender.schedule.next().map(|due| due.at);
        self.next.extend(sender.due.map(|at| Reverse((at, number))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_plan::{Flow, Protocol, Route, Send};

    #[test]
    fn each_message_is_likely_round_its_instant_until_it_has_come() {
        let send = Send::periodic(1, Span::from_millis(1), 64, 3);
        let flow = Flow::plain(1, Protocol::Udp, Route::default());
        let run = Run { flows: vec![flow], sends: vec![send], ..Run::default() };
        let mut expected = Expected::of(&run).expect("a schedule");
        let at = |us: i64| RunTime::ZERO + Span::from_micros(us);
        assert_eq!(expected.last(), Some(at(2_000)));
        assert_eq!(expected.next(at(0)), Some(at(0)));
        assert_eq!(expected.next(at(119)), Some(at(0)));
        assert_eq!(expected.next(at(121)), Some(at(1_000)));
        expected.came(2, at(950));
        assert_eq!(expected.next(at(950)), Some(at(1_000)));
        expected.came(1, at(950));
        assert_eq!(expected.next(at(950)), Some(at(2_000)));
        assert_eq!(expected.next(at(2_121)), None);
    }
}
