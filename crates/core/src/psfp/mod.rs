//! Per-stream filtering and policing (IEEE Std 802.1Q-2022, 8.6.5.2): what each stream has to keep to where it enters a bridge.
//!
//! A stream is known by what IEEE Std 802.1CB-2017 identifies it by: its destination address and VLAN (6.4), or its source
//! address and VLAN (6.5), or headers of its datagrams (6.7). Its filter limits the length of service data units, then its [gate](StreamGate) passes it or not,
//! then its [meter](FlowMeter) colours it. A frame that is no stream's passes as if there were no filters.
//!
//! One filter is of one stream. Several may share a gate, whose octets and closing are then of all their frames together, or a
//! meter, whose tokens are.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::frame::{Frame, Marks};
use crate::switch::{Arrival, Ingress, Verdict};

mod gate;
mod meter;

pub use gate::{Passage, StreamGate, StreamGateConfig, StreamGateEntry, StreamGateError};
pub use meter::{Colour, FlowMeter, MeterConfig};

/// What a stream is known by at an input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identification {
    /// Null stream identification: destination address and VLAN.
    Destination(MacAddress, u16),
    /// Source address and VLAN stream identification.
    Source(MacAddress, u16),
    /// IP stream identification: the number that the driver gave to headers of datagrams. A filter that leaves some of them
    /// open has a number for each that it meets.
    Headers(u16),
}

/// A gate or meter of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instance<T> {
    /// Of its own.
    Own(T),
    /// That of another filter, by its number.
    Of(usize),
}

/// The filter of a stream.
#[derive(Clone, Debug)]
pub struct StreamFilterConfig {
    /// Index of the input port.
    pub port: usize,
    /// What its frames are known by: any of these.
    pub streams: Vec<Identification>,
    /// Longest service data unit, octets; `None`: any.
    pub max_sdu: Option<u16>,
    /// A longer one blocks the stream for good (`StreamBlockedDueToOversizeFrameEnable`).
    pub block_oversize: bool,
    /// Its gate.
    pub gate: Option<Instance<StreamGateConfig>>,
    /// Its meter.
    pub meter: Option<Instance<MeterConfig>>,
}

/// The counters of a filter (IEEE Std 802.1Q-2022, 8.6.5.3), under the names they have there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames of the stream (`MatchingFramesCount`).
    pub matching: u64,
    /// Of those, discarded as too long, or because one was (`NotPassingSDUCount`).
    pub not_passing_sdu: u64,
    /// Of the others, discarded by the gate (`NotPassingFramesCount`).
    pub not_passing: u64,
    /// Of the others, discarded by the meter (`RedFramesCount`).
    pub red: u64,
    /// Of those that passed, yellow.
    pub yellow: u64,
}

impl Counters {
    /// Frames that passed all of it.
    pub const fn passed(&self) -> u64 {
        self.matching - self.not_passing_sdu - self.not_passing - self.red
    }
}

/// Filters that cannot work: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PsfpError {
    /// The list of a gate.
    #[error("stream filter {filter}: {error}")]
    Gate {
        /// In the order they were given.
        filter: usize,
        /// What is wrong.
        error: StreamGateError,
    },
    /// Two filters for one stream at one port.
    #[error("stream filter {0} is for a stream that has one at that port; give each stream one")]
    Twice(usize),
    /// The filter whose gate or meter one shares has none of its own.
    #[error(
        "stream filter {filter} shares the {part} of filter {of}, which has none of its own; give it one"
    )]
    NothingToShare {
        /// In the order they were given.
        filter: usize,
        /// "gate" or "meter".
        part: &'static str,
        /// The other filter.
        of: usize,
    },
}

#[derive(Clone, Debug)]
struct Filter {
    max_sdu: u16,
    block_oversize: bool,
    /// `StreamBlockedDueToOversizeFrame`.
    blocked: bool,
    /// Places in the tables of all gates and all meters.
    gate: Option<usize>,
    meter: Option<usize>,
    counters: Counters,
}

/// The filters of a bridge.
#[derive(Clone, Debug)]
pub struct StreamFilters {
    places: BTreeMap<(usize, Identification), usize>,
    filters: Vec<Filter>,
    gates: Vec<StreamGate>,
    meters: Vec<FlowMeter>,
    /// A stream is known by its source: a second look-up is due.
    by_source: bool,
    /// A stream is known by its headers: a third one.
    by_headers: bool,
}

impl StreamFilters {
    /// Filters, which are numbered in this order.
    ///
    /// # Errors
    /// [`PsfpError`] for the first that cannot work.
    pub fn new(configs: Vec<StreamFilterConfig>) -> Result<Self, PsfpError> {
        let mut own = Self {
            places: BTreeMap::new(),
            filters: Vec::new(),
            gates: Vec::new(),
            meters: Vec::new(),
            by_source: false,
            by_headers: false,
        };
        let (mut gates, mut meters) = (Vec::new(), Vec::new());
        for (number, config) in configs.into_iter().enumerate() {
            for stream in config.streams {
                if own.places.insert((config.port, stream), number).is_some() {
                    return Err(PsfpError::Twice(number));
                }
                own.by_source |= matches!(stream, Identification::Source(..));
                own.by_headers |= matches!(stream, Identification::Headers(_));
            }
            gates.push(config.gate);
            meters.push(config.meter);
            own.filters.push(Filter {
                max_sdu: config.max_sdu.unwrap_or(u16::MAX),
                block_oversize: config.block_oversize,
                blocked: false,
                gate: None,
                meter: None,
                counters: Counters::default(),
            });
        }
        let gate =
            |filter, config| StreamGate::new(config).map_err(|error| PsfpError::Gate { filter, error });
        let gates_of = instances("gate", gates, &mut own.gates, gate)?;
        let meters_of = instances("meter", meters, &mut own.meters, |_, config| Ok(FlowMeter::new(config)))?;
        for (filter, (gate, meter)) in own.filters.iter_mut().zip(gates_of.into_iter().zip(meters_of)) {
            (filter.gate, filter.meter) = (gate, meter);
        }
        Ok(own)
    }

    /// What the filters counted since the beginning, by number. A restart does not begin anew.
    pub fn counters(&self) -> impl Iterator<Item = Counters> + '_ {
        self.filters.iter().map(|filter| filter.counters)
    }

    fn place(&self, port: usize, frame: &Frame) -> Option<usize> {
        let by_destination = Identification::Destination(frame.destination, frame.vlan);
        let mut place = self.places.get(&(port, by_destination)).copied();
        if place.is_none() && self.by_source {
            place = self.places.get(&(port, Identification::Source(frame.source, frame.vlan))).copied();
        }
        if place.is_none() && self.by_headers {
            place = self.places.get(&(port, Identification::Headers(frame.virtual_link))).copied();
        }
        place
    }
}

/// Octets of the service data unit of a frame: what lies between its addresses, tag and type and its check sequence.
const fn service_data_unit(frame: &Frame) -> u16 {
    let around = if frame.marks.has(Marks::TAGGED) { 22 } else { 18 };
    frame.length.saturating_sub(around)
}

impl Ingress for StreamFilters {
    fn judge(&mut self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict {
        let Arrival { port, ref frame, complete } = *arrival;
        let Some(place) = self.place(port, frame) else { return Verdict::Bridge };
        let filter = &mut self.filters[place];
        let counters = &mut filter.counters;
        counters.matching += 1;
        let octets = service_data_unit(frame);
        if filter.blocked || octets > filter.max_sdu {
            counters.not_passing_sdu += 1;
            let cause = if filter.blocked { Cause::StreamBlocked } else { Cause::OversizeSdu };
            filter.blocked |= filter.block_oversize;
            return Verdict::Refuse(cause);
        }
        let mut priority = None;
        if let Some(gate) = filter.gate.and_then(|gate| self.gates.get_mut(gate)) {
            let cause = match gate.handle_frame(clock.read(complete), octets) {
                Passage::Pass(internal) => {
                    priority = internal;
                    None
                }
                Passage::Closed => Some(Cause::StreamGateClosed),
                Passage::OctetsExceeded => Some(Cause::OctetsExceeded),
            };
            if let Some(cause) = cause {
                counters.not_passing += 1;
                return Verdict::Refuse(cause);
            }
        }
        let mut drop_eligible = false;
        if let Some(meter) = filter.meter.and_then(|meter| self.meters.get_mut(meter)) {
            let came_so = frame.marks.has(Marks::DROP_ELIGIBLE);
            match meter.handle_frame(complete, frame.length, came_so) {
                Colour::Green => {}
                Colour::Yellow => {
                    counters.yellow += 1;
                    // The drop eligible indicator is a bit of the tag.
                    drop_eligible = frame.marks.has(Marks::TAGGED);
                }
                Colour::Red => {
                    counters.red += 1;
                    return Verdict::Refuse(Cause::MeteredRed);
                }
            }
        }
        if priority.is_some() || drop_eligible {
            Verdict::BridgeAs { priority, drop_eligible }
        } else {
            Verdict::Bridge
        }
    }

    fn handle_restart(&mut self) {
        self.filters.iter_mut().for_each(|filter| filter.blocked = false);
        self.gates.iter_mut().for_each(StreamGate::handle_restart);
        self.meters.iter_mut().for_each(FlowMeter::handle_restart);
    }
}

/// Makes the gates or meters of filters; returns the place of each filter's in `made`.
fn instances<C, T>(
    part: &'static str,
    configs: Vec<Option<Instance<C>>>,
    made: &mut Vec<T>,
    make: impl Fn(usize, C) -> Result<T, PsfpError>,
) -> Result<Vec<Option<usize>>, PsfpError> {
    let mut places = Vec::new();
    let mut shared = Vec::new();
    for (filter, config) in configs.into_iter().enumerate() {
        places.push(match config {
            None => None,
            Some(Instance::Own(config)) => {
                made.push(make(filter, config)?);
                Some(made.len() - 1)
            }
            Some(Instance::Of(of)) => {
                shared.push((filter, of));
                None
            }
        });
    }
    // What is shared is of its own, so no chain can lead back to where it began.
    let own = places.clone();
    for (filter, of) in shared {
        let place = own.get(of).copied().flatten();
        places[filter] = Some(place.ok_or(PsfpError::NothingToShare { filter, part, of })?);
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
