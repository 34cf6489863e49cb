//! Inputs of a switch: its configuration, an arriving frame, and the ingress rule that judges it.

use wg_frame::time::{RunTime, Span};

use crate::cause::Cause;
use crate::clock::LocalClock;
use crate::frame::Frame;
use crate::queue::Capacity;

/// Time at which a frame is forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ForwardingMode {
    /// After its last bit has arrived.
    #[default]
    StoreAndForward,
    /// After its header has arrived, if the egress port is idle and as fast as the ingress port.
    CutThrough,
}

/// The ingress rule's decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it by address.
    Bridge,
    /// Forward it by address, with these changes.
    BridgeAs {
        /// Internal priority value in this switch; `None`: unchanged.
        priority: Option<u8>,
        /// True if the frame becomes drop eligible.
        drop_eligible: bool,
    },
    /// Forward it out of this port, as a frame of a virtual link. VLANs are ignored.
    ToPort(usize),
    /// Forward it to a group of the forwarding table, as a frame of a virtual link.
    ToGroup(usize),
    /// Drop it.
    Refuse(Cause),
}

/// The ingress rule applied to every frame: filters, policing and virtual-link tables.
pub trait Ingress {
    /// Judges a frame. Called once for each frame, in the order they are handled; the frames of a port come in the
    /// order they were complete. `clock` is the switch's own.
    fn judge(&mut self, clock: &impl LocalClock, arrival: &Arrival) -> Verdict;

    /// The switch restarts: the state of the rule is reset.
    fn handle_restart(&mut self) {}
}

/// The empty rule: everything is forwarded by its address.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl Ingress for AdmitAll {
    fn judge(&mut self, _clock: &impl LocalClock, _arrival: &Arrival) -> Verdict {
        Verdict::Bridge
    }
}

/// Configuration of a switch, without its ports.
#[derive(Clone, Copy, Debug)]
pub struct SwitchConfig {
    /// Time from the last bit in (cut-through: the last bit of the header) to the earliest first bit out.
    pub processing_delay: Span,
    /// Additional delay between ports of different line rates.
    pub mixed_rate_delay: Span,
    /// Store-and-forward or cut-through.
    pub mode: ForwardingMode,
    /// Capacity of all ports together.
    pub shared: Capacity,
}

/// An arriving frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Ingress port.
    pub port: usize,
    /// The frame.
    pub frame: Frame,
    /// Instant of its last bit.
    pub complete: RunTime,
}
