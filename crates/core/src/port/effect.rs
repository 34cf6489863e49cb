//! Effects of a port.

use wg_frame::time::RunTime;

use crate::cause::Cause;
use crate::frame::Frame;

/// What becomes of a frame inside a device, reported if it [follows](super::NodeShared::follows) copies: a driver that
/// keeps the bytes of a frame in a buffer then knows when the buffer is free.
///
/// A frame that is handed in is one copy. Each copy has one end: [`Sent`](Self::Sent), or a drop, or at a host the
/// delivery. An aborted one waits again and has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// This copy became this many, more than one. Reported before anything else about any of them; for a stream's frame
    /// first the number of member streams, then what becomes of each copy.
    Copied(u32),
    /// Waits in a queue.
    Waits,
    /// Was sent, and its transmission has ended.
    Sent,
}

/// An effect of a port, for the driver to carry out or record.
#[derive(Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Effect {
    /// The first bit of the preamble leaves now. The driver owes
    /// [`Port::handle_line_free`](super::Port::handle_line_free).
    Transmit {
        /// The frame.
        frame: Frame,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The transmission in progress is cut off now: what is on the wire of the frame reaches nobody whole. The driver
    /// owes [`Port::handle_line_free`](super::Port::handle_line_free) with the end of the gap. The frame waits again,
    /// or is dropped next.
    Abort {
        /// The frame.
        frame: Frame,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
    /// The frame on the wire is sent in fragments (IEEE Std 802.3-2022, clause 99), and one of them ends or begins.
    Fragment {
        /// The frame.
        frame: Frame,
        /// Edge of the fragment.
        edge: FragmentEdge,
    },
    /// A frame ended here.
    Drop {
        /// The frame.
        frame: Frame,
        /// The reason.
        cause: Cause,
    },
    /// Fate of a copy, if copies are followed.
    Follow {
        /// The frame.
        frame: Frame,
        /// Fate of the copy.
        life: Life,
    },
}

/// The end or the beginning of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum FragmentEdge {
    /// The fragment in progress is not the last, so the frame ends later than stated. The port itself knows when the
    /// line is free.
    Cut {
        /// The end of transmission stated before.
        instead_of: RunTime,
    },
    /// The frame continues: the first bit of a preamble leaves now. The driver owes
    /// [`Port::handle_line_free`](super::Port::handle_line_free).
    Continue {
        /// Remaining bytes of the frame, FCS included.
        left: u16,
        /// Token to hand back with the end of the transmission.
        transmission: Transmission,
    },
}

/// The obligation to report when the line is free after a transmission: hand it to
/// [`Port::handle_line_free`](super::Port::handle_line_free). It cannot be copied, so no transmission is answered
/// twice.
#[must_use = "a port stays silent until its transmission is answered"]
#[derive(Debug, PartialEq, Eq)]
pub struct Transmission(pub(super) ());
