//! Ingress rules of a critical-traffic switch: virtual links and time-triggered frames by table, all others by address.
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
//! Each frame costs one look-up by port and virtual link, in a table for the whole switch: filter, account and egress
//! lie in one cache line. In a network of a thousand end systems that line is in no near cache, so a second one would
//! cost another wait.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;

use crate::arinc664::VirtualLinkId;
use crate::arinc664::filter::{self, Entry, FilterError, InputFilter};
use crate::arinc664::policing::{Account, Verdict as Judgement};
use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::frame::{Frame, TrafficClass};
use crate::line::SMALLEST_FRAME;
use crate::psfp::StreamFilters;
use crate::switch::{Arrival, Ingress, Verdict};
use crate::tte::dispatch::{Acceptance, AcceptanceWindow};

/// A virtual link that may enter by a port.
#[derive(Clone, Debug)]
pub struct VirtualLinkEntry {
    /// The virtual link and its frame lengths.
    pub entry: Entry,
    /// Policing account; `None`: not policed.
    pub account: Option<Account>,
    /// Output port or ports.
    pub to: Egress,
}

/// Output port or ports of a virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// A single port, by index.
    Port(usize),
    /// The ports of a group of the forwarding table, by its number.
    Group(usize),
}

/// A time-triggered flow that may enter by a port.
#[derive(Clone, Copy, Debug)]
pub struct TimeTriggeredEntry {
    /// Critical-traffic identifier.
    pub id: u16,
    /// Longest frame, destination address to FCS, in bytes.
    pub longest_frame: u16,
    /// Window in which the last bit may arrive, by the switch's clock; `None`: at any time.
    pub window: Option<AcceptanceWindow>,
    /// Number of its group of ports in the forwarding table.
    pub group: usize,
}

/// Traffic that may enter by a port.
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
    /// A port's filter has an error.
    #[error("input port {port}: {error}")]
    Filter {
        /// Index of the port.
        port: usize,
        /// The error.
        error: FilterError,
    },
    /// The same critical-traffic identifier twice at one port.
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

/// Filter, account and egress of a virtual link at a port.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Link {
    account: Option<Account>,
    to: Egress,
    entry: Entry,
    port: u16,
}

const _: () = assert!(core::mem::size_of::<Link>() == 64, "one line of cache");

/// Ingress rule for virtual links and time-triggered frames.
#[derive(Clone, Debug)]
pub struct CriticalIngress {
    links: Links,
    /// Time-triggered flows of each port, ascending by identifier.
    time_triggered: Vec<Vec<TimeTriggeredEntry>>,
}

/// The virtual links of all ports: a hash table by port and number, at most half full. The links lie in the table
/// itself: a separate index would cost another cache line.
#[derive(Clone, Debug)]
struct Links {
    slots: Box<[Link]>,
}

/// Marks an empty place: no switch has so many ports.
const FREE: u16 = u16::MAX;

impl Links {
    /// A table of `links`, which differ in port or number.
    fn new(links: Vec<(u16, VirtualLinkEntry)>) -> Self {
        let size = (2 * links.len()).next_power_of_two().max(2);
        let none = Entry { virtual_link: VirtualLinkId(0), lmin: 0, lmax: 0 };
        let free = Link { account: None, to: Egress::Port(0), entry: none, port: FREE };
        let mut table = Self { slots: alloc::vec![free; size].into_boxed_slice() };
        for (port, VirtualLinkEntry { entry, account, to }) in links {
            let mut slot = table.first(port, entry.virtual_link);
            while table.slots[slot].port != FREE {
                slot = (slot + 1) & (size - 1);
            }
            table.slots[slot] = Link { account, to, entry, port };
        }
        table
    }

    /// Fibonacci hashing, as the forwarding table has it: numbers that count up scatter.
    #[inline]
    fn first(&self, port: u16, id: VirtualLinkId) -> usize {
        let key = u64::from(port) << 16 | u64::from(id.0);
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn get(&mut self, port: u16, id: VirtualLinkId) -> Option<&mut Link> {
        let mut slot = self.first(port, id);
        loop {
            match &self.slots[slot] {
                Link { port: FREE, .. } => return None,
                known if known.port == port && known.entry.virtual_link == id => break,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
        Some(&mut self.slots[slot])
    }
}

impl CriticalIngress {
    /// A rule with one table for each port of the switch, by index.
    ///
    /// # Errors
    /// [`IngressError`] for the first table that cannot work.
    pub fn new(tables: Vec<InputTable>) -> Result<Self, IngressError> {
        let (mut links, mut time_triggered) = (Vec::new(), Vec::new());
        for (port, table) in tables.into_iter().enumerate() {
            let entries = table.virtual_links.iter().map(|link| link.entry).collect();
            InputFilter::new(entries).map_err(|error| IngressError::Filter { port, error })?;
            #[expect(clippy::cast_possible_truncation, reason = "a switch has at most 1024 ports")]
            links.extend(table.virtual_links.into_iter().map(|link| (port as u16, link)));
            let mut entries = table.time_triggered;
            entries.sort_by_key(|entry| entry.id);
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].id == pair[1].id) {
                return Err(IngressError::Twice { port, id: pair[0].id });
            }
            time_triggered.push(entries);
        }
        Ok(Self { links: Links::new(links), time_triggered })
    }

    fn virtual_link(&mut self, arrival: &Arrival) -> Verdict {
        let Frame { destination, length, .. } = arrival.frame;
        let seen = filter::Arrival {
            destination: MacAddress(destination.0),
            frame_len: usize::from(length),
            aligned: true,
            fcs_valid: true,
        };
        #[expect(clippy::cast_possible_truncation, reason = "a switch has at most 1024 ports")]
        let link = seen.virtual_link().ok().and_then(|id| self.links.get(arrival.port as u16, id));
        let Some(link) = link else { return Verdict::Refuse(Cause::Filtered) };
        if link.entry.check(seen.frame_len).is_err() {
            return Verdict::Refuse(Cause::Filtered);
        }
        let judgement =
            link.account.as_mut().map(|account| account.handle_frame(arrival.complete, seen.frame_len));
        match (judgement, link.to) {
            (None | Some(Judgement::Conforming), Egress::Port(port)) => Verdict::ToPort(port),
            (None | Some(Judgement::Conforming), Egress::Group(group)) => Verdict::ToGroup(group),
            (Some(Judgement::Excess { .. } | Judgement::BeyondAccount), _) => Verdict::Refuse(Cause::Policed),
        }
    }

    fn time_triggered(&self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        let Frame { virtual_link, length, .. } = arrival.frame;
        let entries = &self.time_triggered[arrival.port];
        let Ok(at) = entries.binary_search_by_key(&virtual_link, |entry| entry.id) else {
            return Verdict::Refuse(Cause::Filtered);
        };
        let entry = &entries[at];
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
        match arrival.frame.class {
            TrafficClass::BestEffort => Verdict::Bridge,
            _ if arrival.port >= self.time_triggered.len() => Verdict::Bridge,
            TrafficClass::RateConstrained => self.virtual_link(arrival),
            TrafficClass::TimeTriggered => self.time_triggered(clock, arrival),
        }
    }

    fn handle_restart(&mut self) {
        self.links
            .slots
            .iter_mut()
            .filter_map(|link| link.account.as_mut())
            .for_each(Account::handle_restart);
    }
}

/// All ingress rules of a switch. Without rules everything is forwarded by its address.
#[derive(Clone, Debug, Default)]
pub struct IngressRules {
    /// Rule for rate-constrained and time-triggered frames.
    pub critical: Option<CriticalIngress>,
    /// Stream filters for all other frames.
    pub streams: Option<Box<StreamFilters>>,
}

impl Ingress for IngressRules {
    #[inline(always)]
    fn judge(&mut self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        let is_critical = arrival.frame.class != TrafficClass::BestEffort;
        match (&mut self.critical, &mut self.streams) {
            (Some(rule), _) if is_critical => rule.judge(clock, arrival),
            (_, Some(filters)) if !is_critical => filters.judge(clock, arrival),
            _ => Verdict::Bridge,
        }
    }

    fn handle_restart(&mut self) {
        self.critical.iter_mut().for_each(CriticalIngress::handle_restart);
        self.streams.iter_mut().for_each(|filters| filters.handle_restart());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;
    use wg_frame::time::{RunTime, Span};

    use super::*;
    use crate::arinc664::policing::Mode;
    use crate::arinc664::{Bag, Contract};
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
        VirtualLinkEntry { entry, account: Some(account), to: Egress::Group(group) }
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
        /// The index against a map, over few ports and many numbers and the other way round.
        #[test]
        fn a_frame_meets_the_entry_of_its_port_and_number(
            entries in prop::collection::btree_set((0_usize..12, 0_u16..40), 0..120),
            asked in prop::collection::vec((0_usize..12, 0_u16..45), 0..60),
        ) {
            let mut tables = vec![InputTable::default(); 12];
            for (at, &(port, id)) in entries.iter().enumerate() {
                let to = if at % 2 == 0 { Egress::Port(at) } else { Egress::Group(at) };
                tables[port].virtual_links.push(VirtualLinkEntry { account: None, to, ..rc(id, 0) });
            }
            let mut rule = CriticalIngress::new(tables).unwrap();
            for (port, id) in asked {
                let expected = match entries.iter().position(|entry| *entry == (port, id)) {
                    None => Verdict::Refuse(Cause::Filtered),
                    Some(at) if at % 2 == 0 => Verdict::ToPort(at),
                    Some(at) => Verdict::ToGroup(at),
                };
                prop_assert_eq!(rule.judge(&TrueTime, &arrival(port, 0, frame(RC, id, 100))), expected);
            }
        }

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
                    Verdict::BridgeAs { .. } => prop_assert!(false, "a frame was changed"),
                    Verdict::ToPort(port) => prop_assert!(false, "to port {}", port),
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
