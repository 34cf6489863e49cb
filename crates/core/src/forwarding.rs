//! Forwarding table: VLAN membership, static and learnt entries.
//!
//! The table is a hash table of fixed size, probed over a few neighbouring places only, as in switch hardware: a
//! look-up costs the same however many stations there are, and a full neighbourhood means that an address
//! is not learnt and its frames are flooded, never that the table grows. Static entries live in a table of their
//! own, so that learning can neither displace nor contradict them (IEEE Std 802.1Q-2022, 8.8.1).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::address_table::{AddressTable, TableLimits};
use crate::frame::Frame;

/// Neighbouring places that an address may take.
const PROBES: usize = 8;

/// A set of ports, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSet {
    /// Bits of ports 0 to 63: all ports of nearly every device.
    first: u64,
    /// Bits of the further ports, 64 each.
    others: Box<[u64]>,
}

impl PortSet {
    /// The empty set for a device with `ports` ports.
    pub fn none(ports: usize) -> Self {
        Self { first: 0, others: vec![0; ports.div_ceil(64).saturating_sub(1)].into_boxed_slice() }
    }
    /// All of `ports` ports.
    pub fn all(ports: usize) -> Self {
        Self::of(ports, 0..ports)
    }
    /// The set of `members`, without those that the device does not have.
    pub fn of(ports: usize, members: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::none(ports);
        for port in members.into_iter().filter(|port| *port < ports) {
            set.set(port, true);
        }
        set
    }
    /// Whether `port` is in the set.
    #[inline]
    pub fn has(&self, port: usize) -> bool {
        self.word(port / 64) >> (port % 64) & 1 == 1
    }
    /// Adds or removes `port`, which the device must have.
    #[inline]
    pub fn set(&mut self, port: usize, is_in: bool) {
        let word = match port / 64 {
            0 => &mut self.first,
            word => &mut self.others[word - 1],
        };
        let bit = 1 << (port % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
    }
    /// The ports 64·`word` and above, as bits; 0 beyond the last.
    #[inline]
    pub(crate) fn word(&self, word: usize) -> u64 {
        match word.checked_sub(1) {
            None => self.first,
            Some(other) => self.others.get(other).copied().unwrap_or(0),
        }
    }
    /// The ports in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        core::iter::once(&self.first).chain(&self.others).enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            core::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.checked_sub(1)?;
                Some(at * 64 + bit as usize)
            })
        })
    }
}

/// Parameters of address learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learning {
    /// Ageing time: entries unused for longer are removed (IEEE Std 802.1Q-2022, 8.8.3: 300 s by default).
    pub ageing: Span,
    /// Places in the table; rounded up to a power of two, 8 at least.
    pub places: usize,
}

/// Forwarding decision for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Send it out of this port.
    Port(usize),
    /// Send it out of every port of this group but the one it came in by.
    Group(usize),
    /// Send it out of every port of its VLAN but the one it came in by.
    Flood,
}

#[derive(Clone, Copy, Debug)]
struct AddressEntry {
    /// VLAN and address; 0 when empty (no station has the address 0 in VLAN 0).
    key: u64,
    port: u32,
    /// Instant of the last frame from the address.
    seen: RunTime,
}

const EMPTY: AddressEntry = AddressEntry { key: 0, port: 0, seen: RunTime::from_picos(i64::MIN) };
/// Marks a port number that is the index of a group.
const GROUP: u32 = 1 << 31;

/// The forwarding table of a switch.
#[derive(Clone, Debug)]
pub struct Forwarding {
    ports: usize,
    fixed: Box<[AddressEntry]>,
    learnt: Box<[AddressEntry]>,
    learning: Option<Learning>,
    /// Table of exact size, in place of `learnt`; `None`: the size is not modelled.
    table: Option<Box<AddressTable>>,
    groups: Vec<PortSet>,
    /// Member ports of each VLAN; `None`: tags are ignored and every port carries everything.
    vlans: Option<BTreeMap<u16, PortSet>>,
    everywhere: PortSet,
}

impl Forwarding {
    /// An empty table for a switch with `ports` ports that ignores tags.
    pub fn new(ports: usize, learning: Option<Learning>) -> Self {
        let places = learning.map_or(0, |learning| learning.places.next_power_of_two().max(PROBES));
        Self {
            ports,
            fixed: vec![EMPTY; PROBES].into_boxed_slice(),
            learnt: vec![EMPTY; places].into_boxed_slice(),
            learning,
            table: None,
            groups: Vec::new(),
            vlans: None,
            everywhere: PortSet::all(ports),
        }
    }

    /// An empty table for a switch with a learning table of exact size.
    pub fn limited(ports: usize, limits: TableLimits) -> Self {
        Self { table: Some(Box::new(AddressTable::new(limits))), ..Self::new(ports, None) }
    }

    /// Makes the switch VLAN-aware, with `members` as the member ports of `vlan`. A VLAN without members carries
    /// nothing.
    pub fn set_vlan(&mut self, vlan: u16, members: PortSet) {
        self.vlans.get_or_insert_default().insert(vlan, members);
    }

    /// Static entry: frames to `station` in `vlan` leave by `port`.
    pub fn set_station(&mut self, vlan: u16, station: MacAddress, port: usize) {
        self.set_fixed(vlan, station, port as u32);
    }

    /// Static entry: frames to the group `address` in `vlan` leave by `members`.
    pub fn set_group(&mut self, vlan: u16, address: MacAddress, members: PortSet) {
        let group = self.groups.len() as u32;
        self.groups.push(members);
        self.set_fixed(vlan, address, GROUP | group);
    }

    /// Adds a group of ports that no address leads to, for an [ingress rule](crate::switch::Ingress), and returns its
    /// number.
    pub fn add_group(&mut self, members: PortSet) -> usize {
        self.groups.push(members);
        self.groups.len() - 1
    }

    /// Removes all learnt entries; static entries stay.
    pub fn forget(&mut self) {
        self.learnt.fill(EMPTY);
        if let Some(table) = &mut self.table {
            table.forget();
        }
    }

    /// Learns that the sender of `frame` is behind `port`. Group addresses are never learnt (8.7).
    #[inline(always)]
    pub fn learn(&mut self, now: RunTime, port: usize, frame: &Frame) {
        if let Some(learning) = self.learning {
            self.learn_ageing(learning, now, port, frame);
        } else if self.table.is_some() {
            self.learn_limited(now, port, frame);
        }
    }

    /// Learns into the hash table, whose entries expire by age only.
    fn learn_ageing(&mut self, learning: Learning, now: RunTime, port: usize, frame: &Frame) {
        if frame.source.is_group() {
            return;
        }
        let key = self.key(frame.vlan, frame.source);
        let mask = self.learnt.len() - 1;
        let mut free = None;
        for at in neighbourhood(key, mask) {
            let place = &mut self.learnt[at];
            if place.key == key {
                *place = AddressEntry { key, port: port as u32, seen: now };
                return;
            }
            if free.is_none() && (place.key == 0 || now - place.seen > learning.ageing) {
                free = Some(at);
            }
        }
        if let Some(at) = free {
            self.learnt[at] = AddressEntry { key, port: port as u32, seen: now };
        }
    }

    /// Learns into the table of exact size.
    #[cold]
    fn learn_limited(&mut self, now: RunTime, port: usize, frame: &Frame) {
        let key = self.key(frame.vlan, frame.source);
        if let Some(table) = self.table.as_mut().filter(|_| !frame.source.is_group()) {
            table.learn(now, port as u32, key);
        }
    }

    /// Forwarding decision for `frame`.
    #[inline(always)]
    pub fn route(&self, now: RunTime, frame: &Frame) -> Route {
        let key = self.key(frame.vlan, frame.destination);
        let mask = self.fixed.len() - 1;
        for at in neighbourhood(key, mask) {
            let place = &self.fixed[at];
            if place.key == key {
                return match place.port & GROUP {
                    0 => Route::Port(place.port as usize),
                    _ => Route::Group((place.port & !GROUP) as usize),
                };
            }
        }
        let Some(learning) = self.learning else {
            return self.table.as_ref().map_or(Route::Flood, |table| limited_route(table, now, key));
        };
        let mask = self.learnt.len() - 1;
        for at in neighbourhood(key, mask) {
            let place = &self.learnt[at];
            if place.key == key && now - place.seen <= learning.ageing {
                return Route::Port(place.port as usize);
            }
        }
        Route::Flood
    }

    /// Whether `port` carries the VLAN of `frame`, in and out (8.6.2 and 8.6.4).
    #[inline]
    pub fn carries(&self, port: usize, frame: &Frame) -> bool {
        match &self.vlans {
            None => true,
            Some(vlans) => vlans.get(&frame.vlan).is_some_and(|members| members.has(port)),
        }
    }

    /// Member ports of a group or a flood; `None` for a VLAN without members.
    pub fn members(&self, route: Route, frame: &Frame) -> Option<&PortSet> {
        match (route, &self.vlans) {
            (Route::Port(_), _) => None,
            (Route::Group(group), _) => self.groups.get(group),
            (Route::Flood, None) => Some(&self.everywhere),
            (Route::Flood, Some(vlans)) => vlans.get(&frame.vlan),
        }
    }

    /// Number of ports of the switch.
    pub const fn ports(&self) -> usize {
        self.ports
    }

    /// Key of an address. Learning is per VLAN where the switch is VLAN-aware (independent VLAN learning).
    fn key(&self, vlan: u16, address: MacAddress) -> u64 {
        let vlan = if self.vlans.is_some() { vlan } else { 0 };
        u64::from(vlan) << 48 | address.bits()
    }

    /// Adds a static entry. The table grows until every entry finds a place near its own: entries come from the plan
    /// and are few.
    fn set_fixed(&mut self, vlan: u16, address: MacAddress, port: u32) {
        let key = self.key(vlan, address);
        let place = AddressEntry { key, port, seen: RunTime::ZERO };
        if !put(&mut self.fixed, place) {
            let mut entries: Vec<AddressEntry> = self.fixed.iter().copied().filter(|p| p.key != 0).collect();
            entries.push(place);
            let mut size = self.fixed.len();
            loop {
                size *= 2;
                let mut larger = vec![EMPTY; size].into_boxed_slice();
                if entries.iter().all(|&entry| put(&mut larger, entry)) {
                    self.fixed = larger;
                    break;
                }
            }
        }
    }
}

/// Forwarding decision for a destination that may be in the table of exact size.
#[cold]
fn limited_route(table: &AddressTable, now: RunTime, key: u64) -> Route {
    table.port(now, key).map_or(Route::Flood, |port| Route::Port(port as usize))
}

/// Puts `place` into its neighbourhood, over an entry of the same key if there is one.
fn put(table: &mut [AddressEntry], place: AddressEntry) -> bool {
    let mask = table.len() - 1;
    for at in neighbourhood(place.key, mask) {
        if table[at].key == place.key || table[at].key == 0 {
            table[at] = place;
            return true;
        }
    }
    false
}

/// Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4): addresses that count up scatter.
fn neighbourhood(key: u64, mask: usize) -> impl Iterator<Item = usize> {
    let start = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
    (0..PROBES).map(move |step| (start + step) & mask)
}
