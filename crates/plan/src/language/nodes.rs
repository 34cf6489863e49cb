//! What a simulated node does beside its work: its clock, its timestamps, its events.

use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, optional, required, usual};
use super::element::{Element, list, many, nothing};
use super::types;
use crate::network::{Distribution, HeldUp};

elements! {
    /// A node's oscillator; without it the clock is perfect. It shows offset + (1 + drift) * time, rounded
    /// down to the granularity; schedules and timestamps of the node follow it.
    clock "clock" holds list(&[many("temperature")]) {
        /// Its offset at the epoch, the start of the warm-up; at most {limit}.
        OFFSET: Span = usual("offset", &types::SIGNED_TIME, "0s")
            .within_as("24h either way", "one day either way")
            .cure("write an offset within the limit");
        /// Its drift, positive if it is fast; at most 100000ppm (10 %) either way.
        DRIFT: i64 = usual("drift", &types::DRIFT, "0ppb")
            .within("100000ppm either way")
            .cure("write the drift of an oscillator, for example 20ppm");
        /// Standard deviation of the change of drift from one second to the next, at most {limit}; seeded.
        WANDER: u32 = usual("wander", &types::WANDER, "0ppb")
            .within("1000ppm")
            .cure("write how much the drift changes from one second to the next, for example 10ppb");
        /// Resolution of its readings, {limit}. Default: a picosecond.
        GRANULARITY: Span = optional("granularity", &types::TIME).within("more than 0s, at most 1s");
    }
    /// A change of temperature, and what it does to the oscillator.
    temperature "temperature" named AT holds nothing() {
        /// Time after the epoch; at most one change at any time.
        AT: Span = required("at", &types::TIME);
        /// Change of the drift; changes add up.
        DRIFT: i64 = required("drift", &types::DRIFT);
    }
    /// Errors of the timestamps of a simulated node, drawn for each of them and seeded, before the clock
    /// rounds down to its granularity; without it they are exact. A real machine has its own.
    timestamps "timestamps" holds nothing() {
        /// Error of what an application reads. Default: none.
        APPLICATION_ERROR: Distribution = optional("application-error", &types::TIMESTAMP_ERROR)
            .within("0s to 100ms");
        /// Error of what the driver reads. Default: none.
        DRIVER_ERROR: Distribution = optional("driver-error", &types::TIMESTAMP_ERROR).within("0s to 100ms");
        /// Error of what the interface, or the port of a switch, timestamps. Default: none.
        WIRE_ERROR: Distribution = optional("wire-error", &types::TIMESTAMP_ERROR).within("0s to 100ms");
        /// What it takes an application to read its clock, {limit}: a message leaves, and its arrival is
        /// known, as much later. Default: nothing.
        READ_COST: Distribution = optional("read-cost", &types::DISTRIBUTION).within("0s to 10s");
        /// What the test bed subtracts from the timestamps of applications; with read-cost only.
        SUBTRACT_READ_COST: bool = usual("subtract-read-cost", &types::SUBTRACT_READ_COST, "no");
    }
    /// Something a simulated host does now and then by itself, in true time: it holds up each thread that has
    /// to be woken meanwhile; one that is at work already goes on. Its beginnings, ends and deeds are in
    /// truth.parquet.
    event "event" holds nothing() {
        /// From the beginning of one to that of the next, {limit}.
        PERIOD: Span = required("period", &types::TIME).within("1us to 168h");
        /// When the first begins, after the epoch.
        OFFSET: Span = usual("offset", &types::TIME, "0s");
        /// How long each lasts, more than 0s, at most its period.
        DURATION: Span = required("duration", &types::TIME).within("more than 0s, at most 168h");
        /// By how much a thread is held up, {limit}; with ramp-to one time, at the beginning.
        LATENCY: Distribution = required("latency", &types::DISTRIBUTION).within("0s to 10s");
        /// By how much at its end, {limit}: it rises or falls evenly. Default: no ramp.
        RAMP_TO: Span = optional("ramp-to", &types::TIME).within("0s to 10s");
        /// The threads it holds up.
        THREADS: HeldUp = usual("threads", &types::HELD_UP, "both");
    }
}
