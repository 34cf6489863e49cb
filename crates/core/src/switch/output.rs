//! Effects of a switch.

use wg_frame::time::RunTime;

use crate::cause::Cause;
use crate::frame::Frame;
use crate::port::{Effect, FragmentEdge, Life, Transmission};

/// An effect of a switch, for the driver to carry out or record. A frame may have an internal priority value: on the
/// wire it is as in [`Frame::leaving`].
///
/// The frame lies at one place in all of them: whoever takes one looks at it before anything else.
#[derive(Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Output {
    /// The first bit of the preamble leaves now. The driver owes
    /// [`Switch::handle_line_free`](super::Switch::handle_line_free).
    Transmit {
        /// The frame.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The transmission in progress is cut off now: what is on the wire of the frame reaches nobody whole. The driver
    /// owes [`Switch::handle_line_free`](super::Switch::handle_line_free) with the end of the gap. The frame waits
    /// again, or is dropped next.
    Abort {
        /// The frame.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The frame on the wire is sent in fragments, and one of them ends or begins. Of one that begins the driver owes
    /// [`Switch::handle_line_free`](super::Switch::handle_line_free).
    Fragment {
        /// The frame.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Edge of the fragment.
        edge: FragmentEdge,
    },
    /// A copy of a frame ended here.
    Dropped {
        /// The frame.
        frame: Frame,
        /// Egress port that it was for; the ingress port if it was dropped before.
        port: usize,
        /// The reason.
        cause: Cause,
    },
    /// A copy for a port that [another instance](super::Switch::leave_ports) of this switch drives: to be handed to its
    /// [`handle_copy`](super::Switch::handle_copy) at this instant.
    Elsewhere {
        /// The frame, as it was let in.
        frame: Frame,
        /// Egress port.
        port: usize,
        /// Instant of its last bit.
        complete: RunTime,
    },
    /// Fate of a copy, if [copies are followed](super::Switch::follow_copies).
    Follow {
        /// The frame.
        frame: Frame,
        /// Egress port of the copy; the ingress port for a frame that became several.
        port: usize,
        /// Fate of the copy.
        life: Life,
    },
}

/// A frame that passes straight through a switch: unchanged, by one port and at once. The driver owes
/// [`Switch::handle_line_free`](super::Switch::handle_line_free).
#[derive(Debug, PartialEq, Eq)]
pub struct Passing {
    /// Egress port.
    pub port: usize,
    /// Token to hand back with the end of the transmission.
    pub transmission: Transmission,
}

impl Output {
    /// The frame concerned.
    #[inline]
    pub const fn frame(&self) -> &Frame {
        match self {
            Self::Transmit { frame, .. }
            | Self::Abort { frame, .. }
            | Self::Fragment { frame, .. }
            | Self::Dropped { frame, .. }
            | Self::Elsewhere { frame, .. }
            | Self::Follow { frame, .. } => frame,
        }
    }

    #[inline(always)]
    pub(super) fn of(port: usize, effect: Effect) -> Self {
        match effect {
            Effect::Transmit { frame, transmission } => Self::Transmit { port, frame, transmission },
            Effect::Abort { frame, transmission } => Self::Abort { port, frame, transmission },
            Effect::Fragment { frame, edge } => Self::Fragment { port, frame, edge },
            Effect::Drop { frame, cause } => Self::Dropped { port, frame, cause },
            Effect::Follow { frame, life } => Self::Follow { port, frame, life },
        }
    }
}
