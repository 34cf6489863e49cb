//! Reasons why a frame was dropped.

use crate::arinc664::redundancy::ReceptionDrop;
use crate::queue::Full;

/// Reason why a core dropped a frame, common to ports, switches and end systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No space in a queue, a port or the shared buffer.
    Full(Full),
    /// Ingress port that does not carry the VLAN of the frame.
    ForeignVlan,
    /// Group address that ends at the next bridge (IEEE Std 802.1Q-2022, 8.6.3).
    ReservedAddress,
    /// No output port other than the ingress port.
    NoEgress,
    /// Wrong frame check sequence.
    FrameCheck,
    /// Runt or giant: shorter or longer than its receiver accepts.
    WrongLength,
    /// Virtual link or critical-traffic identifier not permitted at this port, or not with this length; or frame longer
    /// than its traffic class allows.
    Filtered,
    /// Violation of the contract of its virtual link, or too long a wait to keep that of its stream.
    Policed,
    /// Number that does not follow in the sequence of its virtual link on this network.
    Integrity,
    /// Second copy: the one from the other network came first.
    SecondCopy,
    /// Number too far from those of its stream to tell whether a copy came before (IEEE Std 802.1CB-2017, 7.4.3.4).
    Rogue,
    /// Service data unit longer than the filter of its stream allows (IEEE Std 802.1Q-2022, 8.6.5.3).
    OversizeSdu,
    /// Stream blocked, because one of its frames was too long.
    StreamBlocked,
    /// Stream gate closed, by its list or permanently (IEEE Std 802.1Q-2022, 8.6.5.4).
    StreamGateClosed,
    /// Octets exceeded that may pass the stream gate in this interval.
    OctetsExceeded,
    /// Frame coloured red by the meter of its stream, or yellow if yellow frames are dropped (IEEE Std 802.1Q-2022,
    /// 8.6.5.5).
    MeteredRed,
    /// Arrival outside the window in which the frame is accepted.
    OutOfWindow,
    /// Frame replaced by a younger one of its flow before its window came.
    Superseded,
    /// Window missed, under a rule that discards frames after their window.
    MissedWindow,
    /// Time-triggered frame at a port without a window for it.
    NoWindow,
    /// No space in the sender's queue of its virtual link or schedule, or frame longer than these allow.
    Regulator,
    /// No space in the receive ring.
    Overrun,
    /// No space for the whole frame in the byte FIFO before the receive ring.
    FifoOverrun,
    /// Restart or failure of the device that held the frame.
    Down,
}

impl From<ReceptionDrop> for Cause {
    fn from(reason: ReceptionDrop) -> Self {
        match reason {
            ReceptionDrop::Integrity(_) => Self::Integrity,
            ReceptionDrop::SecondCopy { .. } => Self::SecondCopy,
        }
    }
}
