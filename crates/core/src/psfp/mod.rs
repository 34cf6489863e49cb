//! Per-stream filtering and policing (IEEE Std 802.1Q-2022, 8.6.5.2) at the input ports of a bridge.
//!
//! Streams are identified as in IEEE Std 802.1CB-2017: by destination address and VLAN (6.4), by source address and
//! VLAN (6.5), or by headers of datagrams (6.7). The stream's filter limits the length of service data units, then its
//! [gate](StreamGate) passes the frame or not, then its [meter](FlowMeter) colours it. A frame of no stream passes
//! unfiltered.
//!
//! One filter serves one stream. Several filters may share a gate, whose octets and closing then count the frames of
//! all, or a meter, whose tokens do.

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

/// Stream identification at an input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identification {
    /// Null stream identification: destination address and VLAN.
    Destination(MacAddress, u16),
    /// Source address and VLAN stream identification.
    Source(MacAddress, u16),
    /// IP stream identification: the number that the driver assigned to the headers of the datagram. A filter with
    /// wildcards has several numbers.
    Headers(u16),
}

/// A gate or meter of a filter, its own or shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instance<T> {
    /// An instance of the filter's own.
    Own(T),
    /// The instance of another filter, by the number of that filter.
    Of(usize),
}

/// Configuration of a stream filter.
#[derive(Clone, Debug)]
pub struct StreamFilterConfig {
    /// Index of the input port.
    pub port: usize,
    /// Identifications of its frames: any of these matches.
    pub streams: Vec<Identification>,
    /// Longest service data unit, octets; `None`: no limit.
    pub max_sdu: Option<u16>,
    /// Whether a longer one blocks the stream for good (`StreamBlockedDueToOversizeFrameEnable`).
    pub block_oversize: bool,
    /// Stream gate; `None`: none.
    pub gate: Option<Instance<StreamGateConfig>>,
    /// Flow meter; `None`: none.
    pub meter: Option<Instance<MeterConfig>>,
}

/// Counters of a filter (IEEE Std 802.1Q-2022, 8.6.5.3), with the names of the standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames of the stream (`MatchingFramesCount`).
    pub matching: u64,
    /// Frames discarded as too long, or because one was (`NotPassingSDUCount`).
    pub not_passing_sdu: u64,
    /// Frames discarded by the gate (`NotPassingFramesCount`).
    pub not_passing: u64,
    /// Frames discarded by the meter (`RedFramesCount`).
    pub red: u64,
    /// Frames that passed and were coloured yellow.
    pub yellow: u64,
}

impl Counters {
    /// Frames that passed filter, gate and meter.
    pub const fn passed(&self) -> u64 {
        self.matching - self.not_passing_sdu - self.not_passing - self.red
    }
}

/// Invalid filters: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PsfpError {
    /// A filter's gate has an invalid list.
    #[error("stream filter {filter}: {error}")]
    Gate {
        /// Number of the filter, in the order given.
        filter: usize,
        /// The error.
        error: StreamGateError,
    },
    /// Two filters for one stream at one port.
    #[error("stream filter {0} is for a stream that has one at that port; give each stream one")]
    Twice(usize),
    /// A filter shares the gate or meter of one that has none of its own.
    #[error(
        "stream filter {filter} shares the {part} of filter {of}, which has none of its own; give it one"
    )]
    NothingToShare {
        /// Number of the filter, in the order given.
        filter: usize,
        /// "gate" or "meter".
        part: &'static str,
        /// Number of the filter that it refers to.
        of: usize,
    },
}

#[derive(Clone, Debug)]
struct Filter {
    max_sdu: u16,
    block_oversize: bool,
    /// `StreamBlockedDueToOversizeFrame`.
    blocked: bool,
    /// Index in the table of all gates, and below in that of all meters.
    gate: Option<usize>,
    meter: Option<usize>,
    counters: Counters,
}

/// The stream filters of a bridge.
#[derive(Clone, Debug)]
pub struct StreamFilters {
    places: BTreeMap<(usize, Identification), usize>,
    filters: Vec<Filter>,
    gates: Vec<StreamGate>,
    meters: Vec<FlowMeter>,
    /// Whether any filter identifies by source address, which takes a second look-up.
    by_source: bool,
    /// Whether any filter identifies by headers, which takes a third look-up.
    by_headers: bool,
}

impl StreamFilters {
    /// The filters, numbered in the order given.
    ///
    /// # Errors
    /// [`PsfpError`] for the first invalid filter.
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

    /// Counters of the filters, by number. A restart does not reset them.
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

/// Length in octets of a frame's service data unit: the bytes between type and frame check sequence.
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

/// Makes the gates or meters of filters; returns the index in `made` for each filter.
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
    // A shared instance belongs to a filter of its own, so no chain can be circular.
    let own = places.clone();
    for (filter, of) in shared {
        let place = own.get(of).copied().flatten();
        places[filter] = Some(place.ok_or(PsfpError::NothingToShare { filter, part, of })?);
    }
    Ok(places)
}

#[cfg(test)]
mod tests;
