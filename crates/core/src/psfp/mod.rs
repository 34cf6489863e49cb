//! Per-stream filtering and policing (IEEE Std 802.1Q-2022, 8.6.5.2): what each stream has to keep to where it enters a bridge.
//!
//! A stream is known by what IEEE Std 802.1CB-2017 identifies it by: its destination address and VLAN (6.4), or its source
//! address and VLAN (6.5), or headers of its datagrams (6.7). Its filter limits the length of service data units, then its [gate](StreamGate) passes it or not,
//! then its [meter](FlowMeter) colours it. A frame that is no stream's passes as if there were no filters.
//!
//! One filter is of one stream and has its own gate and meter: the standard lets several share one, which is left out.

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
    pub gate: Option<StreamGateConfig>,
    /// Its meter.
    pub meter: Option<MeterConfig>,
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
}

#[derive(Clone, Debug)]
struct Filter {
    max_sdu: u16,
    block_oversize: bool,
    /// `StreamBlockedDueToOversizeFrame`.
    blocked: bool,
    gate: Option<StreamGate>,
    meter: Option<FlowMeter>,
    counters: Counters,
}

/// The filters of a bridge.
#[derive(Clone, Debug)]
pub struct StreamFilters {
    places: BTreeMap<(usize, Identification), usize>,
    filters: Vec<Filter>,
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
        let mut own =
            Self { places: BTreeMap::new(), filters: Vec::new(), by_source: false, by_headers: false };
        for (number, config) in configs.into_iter().enumerate() {
            for stream in config.streams {
                if own.places.insert((config.port, stream), number).is_some() {
                    return Err(PsfpError::Twice(number));
                }
                own.by_source |= matches!(stream, Identification::Source(..));
                own.by_headers |= matches!(stream, Identification::Headers(_));
            }
            let gate = config.gate.map(StreamGate::new).transpose();
            own.filters.push(Filter {
                max_sdu: config.max_sdu.unwrap_or(u16::MAX),
                block_oversize: config.block_oversize,
                blocked: false,
                gate: gate.map_err(|error| PsfpError::Gate { filter: number, error })?,
                meter: config.meter.map(FlowMeter::new),
                counters: Counters::default(),
            });
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
        if let Some(gate) = &mut filter.gate {
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
        if let Some(meter) = &mut filter.meter {
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
        for filter in &mut self.filters {
            filter.blocked = false;
            filter.gate.iter_mut().for_each(StreamGate::handle_restart);
            filter.meter.iter_mut().for_each(FlowMeter::handle_restart);
        }
    }
}

#[cfg(test)]
mod tests;
