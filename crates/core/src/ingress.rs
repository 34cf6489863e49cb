//! What a critical-traffic switch asks of every frame: virtual links and time-triggered frames by table, all else by
//! address.
//!
//! A rate-constrained frame passes the [filter] of its input port, then the
//! [account](crate::arinc664::policing) of its virtual link there, and goes to its group of ports. A time-triggered
//! frame is admitted by its identifier and its length and, where the plan gives a window of arrival, if its last bit
//! came within it by the switch's clock. Filter before account, because the account charges bytes of a virtual link
//! and must not be charged by frames that are none of its own (ARINC 664 part 7 has the switch's filtering function
//! before its traffic policing; AIM "AFDX / ARINC 664 Tutorial", switch).
//!
//! The filter checks the frame check sequence only where the frame is whole when it is judged, that is, never in a
//! cut-through switch: the [switch](crate::switch) drops such frames itself.
//!
//! Each frame costs one look-up by the number of its virtual link.

use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;

use crate::arinc664::filter::{self, Entry, FilterError, InputFilter};
use crate::arinc664::policing::{Account, Verdict as Judgement};
use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::frame::{Frame, TrafficClass};
use crate::line::SMALLEST_FRAME;
use crate::switch::{Arrival, Ingress, Verdict};
use crate::tte::dispatch::{Acceptance, AcceptanceWindow};

/// A virtual link that may enter by a port.
#[derive(Clone, Debug)]
pub struct VirtualLinkEntry {
    /// Which, and of which lengths.
    pub entry: Entry,
    /// Its account; `None`: it is not policed.
    pub account: Option<Account>,
    /// Number of its group of ports in the forwarding table.
    pub group: usize,
}

/// A time-triggered flow that may enter by a port.
#[derive(Clone, Copy, Debug)]
pub struct TimeTriggeredEntry {
    /// Its critical-traffic identifier.
    pub id: u16,
    /// Longest frame, destination address to FCS, in bytes.
    pub longest_frame: u16,
    /// When its last bit may come, by the switch's clock; `None`: at any time.
    pub window: Option<AcceptanceWindow>,
    /// Number of its group of ports in the forwarding table.
    pub group: usize,
}

/// What may enter by a port.
#[derive(Clone, Debug, Default)]
pub struct InputTable {
    /// Virtual links.
    pub virtual_links: Vec<VirtualLinkEntry>,
    /// Time-triggered flows.
    pub time_triggered: Vec<TimeTriggeredEntry>,
}

/// A table that cannot work: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IngressError {
    /// The filter of a port.
    #[error("input port {port}: {error}")]
    Filter {
        /// Index of the port.
        port: usize,
        /// What is wrong.
        error: FilterError,
    },
    /// The same identifier twice at one port.
    #[error(
        "input port {port}: critical-traffic identifier {id} is listed twice at one input port; list it once"
    )]
    Twice {
        /// Index of the port.
        port: usize,
        /// The identifier.
        id: u16,
    },
}

#[derive(Clone, Debug)]
struct Link {
    account: Option<Account>,
    group: usize,
}

#[derive(Clone, Debug)]
struct Port {
    filter: InputFilter,
    /// In the order of the filter's entries.
    links: Vec<Link>,
    /// As they were at first.
    fresh: Vec<Link>,
    /// Ascending by identifier.
    time_triggered: Vec<TimeTriggeredEntry>,
}

/// The rule of a switch that knows virtual links and time-triggered frames.
#[derive(Clone, Debug)]
pub struct CriticalIngress {
    ports: Vec<Port>,
}

impl CriticalIngress {
    /// A rule with one table for each port of the switch, by index.
    ///
    /// # Errors
    /// [`IngressError`] for the first table that cannot work.
    pub fn new(tables: Vec<InputTable>) -> Result<Self, IngressError> {
        let ports = tables.into_iter().enumerate().map(|(port, table)| Port::new(port, table));
        Ok(Self { ports: ports.collect::<Result<_, _>>()? })
    }
}

impl Port {
    fn new(port: usize, table: InputTable) -> Result<Self, IngressError> {
        let InputTable { mut virtual_links, mut time_triggered } = table;
        virtual_links.sort_by_key(|link| link.entry.virtual_link);
        let entries = virtual_links.iter().map(|link| link.entry).collect();
        let filter = InputFilter::new(entries).map_err(|error| IngressError::Filter { port, error })?;
        let links =
            virtual_links.into_iter().map(|VirtualLinkEntry { account, group, .. }| Link { account, group });
        let links: Vec<Link> = links.collect();
        time_triggered.sort_by_key(|entry| entry.id);
        if let Some(pair) = time_triggered.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(IngressError::Twice { port, id: pair[0].id });
        }
        Ok(Self { filter, fresh: links.clone(), links, time_triggered })
    }

    fn virtual_link(&mut self, arrival: &Arrival) -> Verdict {
        let Frame { destination, length, .. } = arrival.frame;
        let seen = filter::Arrival {
            destination: MacAddress(destination.0),
            frame_len: usize::from(length),
            aligned: true,
            fcs_valid: true,
        };
        let Ok(at) = self.filter.position(&seen) else { return Verdict::Refuse(Cause::Filtered) };
        let link = &mut self.links[at];
        let judgement =
            link.account.as_mut().map(|account| account.handle_frame(arrival.complete, seen.frame_len));
        match judgement {
            None | Some(Judgement::Conforming) => Verdict::ToGroup(link.group),
            Some(Judgement::Excess { .. } | Judgement::BeyondAccount) => Verdict::Refuse(Cause::Policed),
        }
    }

    fn time_triggered(&self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        let Frame { virtual_link, length, .. } = arrival.frame;
        let Ok(at) = self.time_triggered.binary_search_by_key(&virtual_link, |entry| entry.id) else {
            return Verdict::Refuse(Cause::Filtered);
        };
        let entry = &self.time_triggered[at];
        if !(SMALLEST_FRAME..=entry.longest_frame).contains(&length) {
            return Verdict::Refuse(Cause::Filtered);
        }
        let acceptance = entry.window.map(|window| window.judge(clock.read(arrival.complete)));
        match acceptance {
            None | Some(Acceptance::InSchedule(_)) => Verdict::ToGroup(entry.group),
            Some(Acceptance::Early(_) | Acceptance::Late(_)) => Verdict::Refuse(Cause::OutOfWindow),
        }
    }
}

impl Ingress for CriticalIngress {
    #[inline]
    fn judge(&mut self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        let Some(port) = self.ports.get_mut(arrival.port) else { return Verdict::Bridge };
        match arrival.frame.class {
            TrafficClass::BestEffort => Verdict::Bridge,
            TrafficClass::RateConstrained => port.virtual_link(arrival),
            TrafficClass::TimeTriggered => port.time_triggered(clock, arrival),
        }
    }

    fn handle_restart(&mut self) {
        for port in &mut self.ports {
            port.links.clone_from(&port.fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;
    use wg_frame::time::{RunTime, Span};

    use super::*;
    use crate::arinc664::policing::Mode;
    use crate::arinc664::{Bag, Contract, VirtualLinkId};
    use crate::clock::{DisciplinedClock, TrueTime};
    use crate::frame::{Handle, Marks, NetworkId};
    use crate::oscillator::Oscillator;
    use crate::tte::dispatch::Instants;
    use wg_frame::ethernet::MacAddress;

    fn frame(class: TrafficClass, id: u16, length: u16) -> Frame {
        let destination = match class {
            TrafficClass::BestEffort => MacAddress([2, 0, 0, 0, 0, 1]),
            _ => MacAddress(VirtualLinkId(id).destination().0),
        };
        Frame {
            destination,
            source: MacAddress::default(),
            length,
            vlan: 0,
            virtual_link: id,
            handle: Handle(0),
            priority: 0,
            class,
            network: NetworkId::A,
            sequence: 0,
            marks: Marks::none(),
        }
    }

    fn arrival(port: usize, at_us: i64, frame: Frame) -> Arrival {
        Arrival { port, frame, complete: RunTime::ZERO + Span::from_micros(at_us) }
    }

    fn rc(id: u16, group: usize) -> VirtualLinkEntry {
        let contract = Contract::new(Bag::ALL[0], 200).unwrap();
        let account = Account::new(contract, Span::ZERO, Mode::ByteBased).unwrap();
        let entry = Entry { virtual_link: VirtualLinkId(id), lmin: 64, lmax: 200 };
        VirtualLinkEntry { entry, account: Some(account), group }
    }

    fn tt(id: u16, group: usize, window: Option<AcceptanceWindow>) -> TimeTriggeredEntry {
        TimeTriggeredEntry { id, longest_frame: 100, window, group }
    }

    const RC: TrafficClass = TrafficClass::RateConstrained;
    const TT: TrafficClass = TrafficClass::TimeTriggered;

    #[test]
    fn each_class_meets_its_own_rule() {
        let window = AcceptanceWindow::new(
            Instants::new(Span::from_micros(100), Span::from_millis(1)).unwrap(),
            Span::from_micros(1),
            Span::from_micros(2),
        )
        .unwrap();
        let first = InputTable {
            virtual_links: vec![rc(9, 4), rc(7, 3)],
            time_triggered: vec![tt(2, 6, Some(window)), tt(1, 5, None)],
        };
        let mut rule = CriticalIngress::new(vec![first, InputTable::default()]).unwrap();
        let mut judge = |port, at, frame| rule.judge(&TrueTime, &arrival(port, at, frame));
        assert_eq!(judge(0, 0, frame(TrafficClass::BestEffort, 7, 1_522)), Verdict::Bridge);
        assert_eq!(judge(0, 0, frame(RC, 7, 200)), Verdict::ToGroup(3));
        assert_eq!(judge(0, 0, frame(RC, 9, 64)), Verdict::ToGroup(4));
        assert_eq!(judge(0, 999, frame(RC, 7, 200)), Verdict::Refuse(Cause::Policed));
        assert_eq!(judge(0, 1_000, frame(RC, 7, 201)), Verdict::Refuse(Cause::Filtered));
        assert_eq!(judge(0, 1_000, frame(RC, 7, 200)), Verdict::ToGroup(3));
        assert_eq!(judge(1, 0, frame(RC, 7, 64)), Verdict::Refuse(Cause::Filtered));
        assert_eq!(judge(0, 0, frame(TT, 1, 100)), Verdict::ToGroup(5));
        assert_eq!(judge(0, 0, frame(TT, 1, 101)), Verdict::Refuse(Cause::Filtered));
        assert_eq!(judge(0, 0, frame(TT, 3, 64)), Verdict::Refuse(Cause::Filtered));
        assert_eq!(judge(0, 1_102, frame(TT, 2, 64)), Verdict::ToGroup(6));
        assert_eq!(judge(0, 1_103, frame(TT, 2, 64)), Verdict::Refuse(Cause::OutOfWindow));
        rule.handle_restart();
        // The accounts are full again.
        let again = rule.judge(&TrueTime, &arrival(0, 1_001, frame(RC, 7, 200)));
        assert_eq!(again, Verdict::ToGroup(3));
        // A clock 10 µs ahead sees the frame 10 µs later in its period.
        let ahead =
            DisciplinedClock::new(Oscillator::default(), Span::from_micros(10), Span::from_picos(1)).unwrap();
        let late = rule.judge(&ahead, &arrival(0, 101, frame(TT, 2, 64)));
        assert_eq!(late, Verdict::Refuse(Cause::OutOfWindow));
        assert_eq!(rule.judge(&ahead, &arrival(0, 90, frame(TT, 2, 64))), Verdict::ToGroup(6));
    }

    #[test]
    fn a_table_that_cannot_work_names_its_port() {
        let twice = InputTable { virtual_links: vec![rc(7, 0), rc(7, 1)], time_triggered: Vec::new() };
        let error = CriticalIngress::new(vec![InputTable::default(), twice]).unwrap_err();
        let id = VirtualLinkId(7);
        assert_eq!(error, IngressError::Filter { port: 1, error: FilterError::Twice(id) });
        let twice =
            InputTable { virtual_links: Vec::new(), time_triggered: vec![tt(3, 0, None), tt(3, 1, None)] };
        assert_eq!(CriticalIngress::new(vec![twice]).unwrap_err(), IngressError::Twice { port: 0, id: 3 });
    }

    proptest! {
        /// Whatever comes in, what passes keeps the contract over every window: at most Lmax·(1 + (J + t)/BAG) bytes
        /// in any t.
        #[test]
        fn what_passes_keeps_its_contract_whatever_comes(
            arrivals in prop::collection::vec((0_i64..900, 0_u16..3, 60_u16..210, any::<bool>()), 1..200),
        ) {
            let table = InputTable { virtual_links: vec![rc(0, 0), rc(1, 1)], time_triggered: Vec::new() };
            let mut rule = CriticalIngress::new(vec![table]).unwrap();
            let (mut now, mut passed) = (0, [Vec::new(), Vec::new()]);
            for (step, id, length, best_effort) in arrivals {
                now += step;
                let class = if best_effort { TrafficClass::BestEffort } else { RC };
                match rule.judge(&TrueTime, &arrival(0, now, frame(class, id, length))) {
                    Verdict::Bridge => prop_assert!(best_effort),
                    Verdict::ToGroup(group) => {
                        prop_assert!(!best_effort && group == usize::from(id) && (64..=200).contains(&length));
                        passed[group].push((now, i64::from(length)));
                    }
                    Verdict::Refuse(cause) => {
                        let filtered = id == 2 || !(64..=200).contains(&length);
                        prop_assert_eq!(cause == Cause::Filtered, filtered);
                    }
                }
            }
            for kept in passed {
                for first in 0..kept.len() {
                    let mut sent = 0;
                    for (at, length) in &kept[first..] {
                        sent += length;
                        prop_assert!(sent * 1_000 <= 200 * (1_000 + at - kept[first].0));
                    }
                }
            }
        }
    }
}
