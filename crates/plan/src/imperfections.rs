//! What distinguishes a simulated node from a perfect one beside its clock and its host model: errors of its timestamps,
//! events of its host that recur, frames of its own.
//!
//! Real hosts and switches have their own; a bench of real frames takes nothing from here.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use crate::network::Distribution;

/// Errors of the timestamps of a node, drawn for each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamps {
    /// Of what an application reads.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub application_error: Distribution,
    /// Of what the driver reads.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub driver_error: Distribution,
    /// Of what the interface, or the port of a switch, stamps.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub wire_error: Distribution,
    /// What an application takes to read its clock: a message leaves, and a reception is known, as much later.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub read_cost: Distribution,
    /// The least read cost is subtracted from every timestamp of an application.
    #[serde(default, skip_serializing_if = "is_false")]
    pub subtract_read_cost: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Something a host does now and then by itself, which holds up the threads it has to wake meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEvent {
    /// From the beginning of one to that of the next.
    pub period: Span,
    /// When the first begins, after the epoch.
    #[serde(default)]
    pub offset: Span,
    /// How long each lasts.
    pub duration: Span,
    /// By how much a thread that is woken meanwhile is held up; of a ramp, at its beginning.
    pub latency: Distribution,
    /// By how much at its end, where it rises or falls evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp_to: Option<Span>,
    /// The threads it holds up.
    #[serde(default)]
    pub threads: HeldUp,
}

/// Threads that an event holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldUp {
    /// Those that send and those that receive.
    #[default]
    Both,
    /// Those that send.
    Send,
    /// Those that receive.
    Receive,
}

/// Frames that a switch sends by itself, as those of a spanning tree or of a discovery protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFrames {
    /// Between two of a port.
    pub period: Span,
    /// When the first is sent, after the epoch.
    #[serde(default)]
    pub offset: Span,
    /// Length, destination address to FCS.
    pub length: u16,
    /// Priority at the output port, 0 to 7.
    pub priority: u8,
    /// Ports, ascending; empty: all that have a link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
}

/// Threads of an injector that send and sleep, instead of a schedule that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingThreads {
    /// How many.
    pub number: u16,
    /// What the call that sends one frame takes.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub send_cost: Distribution,
    /// How much longer than asked a thread sleeps.
    #[serde(default, skip_serializing_if = "Distribution::is_none")]
    pub sleep_overhead: Distribution,
}
