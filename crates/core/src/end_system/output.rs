//! Effects of a host.

use alloc::boxed::Box;

use wg_frame::time::RunTime;

use crate::cause::Cause;
use crate::fifo::Fifo;
use crate::frame::Frame;
use crate::port::{Effect, FragmentEdge, Life, Transmission};
use crate::virtual_link_layer::VirtualLinkLayer;

/// Instants of handing a message down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Instant of the application's call.
    pub application: RunTime,
    /// Instant at which the frame joins the egress queue, or the virtual link layer.
    pub queued: RunTime,
}

/// Instants of handing a frame up. They may lie ahead: they are certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Instant at which the driver sees it.
    pub driver: RunTime,
    /// Instant at which the application has it.
    pub application: RunTime,
}

/// An effect of a host, for the driver to carry out or record. Ports are counted from 0.
///
/// The frame lies at one place in all of them: whoever takes one looks at it before anything else.
#[derive(Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Output {
    /// The driver takes the frame and the transmission begins. The driver of this core owes
    /// [`Host::handle_line_free`].
    Transmit {
        /// The frame.
        frame: Frame,
        /// Output port, from 0.
        port: usize,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The transmission in progress is cut off now: what is on the wire of the frame reaches nobody whole. The driver
    /// of this core owes [`Host::handle_line_free`] with the end of the gap. The frame waits again, or is dropped next.
    Abort {
        /// The frame.
        frame: Frame,
        /// Output port, from 0.
        port: usize,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The frame on the wire is sent in fragments, and one of them ends or begins. Of one that begins the driver owes
    /// [`Host::handle_line_free`].
    Fragment {
        /// The frame.
        frame: Frame,
        /// Output port, from 0.
        port: usize,
        /// Edge of the fragment.
        edge: FragmentEdge,
    },
    /// A frame, or one of its copies, ended here.
    Dropped {
        /// The frame.
        frame: Frame,
        /// The port it was for or came by; the first port if it was dropped before.
        port: usize,
        /// The reason.
        cause: Cause,
        /// Whether it was dropped before it was copied to the ports, so that all its copies end with it.
        all_copies: bool,
    },
    /// The application gets a frame. The instants may lie ahead: they are certain, and acting on them before
    /// they come would be too early.
    Deliver {
        /// The frame.
        frame: Frame,
        /// The port it came by.
        port: usize,
        /// Instant at which the driver saw it.
        driver: RunTime,
        /// Instant at which the application has it.
        application: RunTime,
    },
    /// A frame to the host itself has left the transmit lane: it goes up again and meets no interface. The driver of
    /// this core owes [`Host::handle_loopback`].
    Loopback {
        /// The frame.
        frame: Frame,
    },
    /// Fate of a frame, if [copies are followed](Host::follow_copies).
    Follow {
        /// The frame.
        frame: Frame,
        /// The port of the copy; the first for a frame that became two.
        port: usize,
        /// The event.
        life: Life,
    },
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
            | Self::Deliver { frame, .. }
            | Self::Loopback { frame }
            | Self::Follow { frame, .. } => frame,
        }
    }

    pub(super) fn lost(port: usize, frame: Frame, cause: Cause) -> Self {
        Self::Dropped { port, frame, cause, all_copies: false }
    }
    pub(super) fn lost_before_ports(frame: Frame, cause: Cause) -> Self {
        Self::Dropped { port: 0, frame, cause, all_copies: true }
    }
    #[inline(always)]
    pub(super) fn of(port: usize, effect: Effect) -> Self {
        match effect {
            Effect::Transmit { frame, transmission } => Self::Transmit { port, frame, transmission },
            Effect::Abort { frame, transmission } => Self::Abort { port, frame, transmission },
            Effect::Fragment { frame, edge } => Self::Fragment { port, frame, edge },
            Effect::Drop { frame, cause } => Self::lost(port, frame, cause),
            Effect::Follow { frame, life } => Self::Follow { port, frame, life },
        }
    }
}

/// Carries out an effect of a port, and accounts for the output jitter.
#[inline]
pub(super) fn carry_out(
    outputs: &mut Fifo<Output>,
    layer: &mut Option<Box<VirtualLinkLayer>>,
    now: RunTime,
    port: usize,
    effect: Effect,
) {
    if let Some(layer) = layer {
        match &effect {
            Effect::Transmit { frame, .. } => layer.begins(port, frame, now),
            Effect::Abort { frame, .. } => layer.waits_again(port, frame),
            Effect::Drop { frame, .. } => layer.leaves(port, frame),
            Effect::Fragment { .. } | Effect::Follow { .. } => {}
        }
    }
    outputs.push_back(Output::of(port, effect));
}
