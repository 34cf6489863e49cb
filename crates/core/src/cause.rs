//! Why a frame was dropped.

use crate::arinc664::redundancy::ReceptionDrop;
use crate::queue::Full;

/// Why a core dropped a frame. One vocabulary for ports, switches and end systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No room in a queue, a port or the shared buffer.
    Full(Full),
    /// The port it came in by does not carry its VLAN.
    ForeignVlan,
    /// It goes to a group address that ends at the next bridge (IEEE Std 802.1Q-2022, 8.6.3).
    ReservedAddress,
    /// No output port but the one it came in by.
    NoEgress,
    /// Its frame check sequence was wrong.
    FrameCheck,
    /// It was a runt or a giant: shorter or longer than its receiver takes.
    WrongLength,
    /// Its virtual link or critical-traffic identifier may not enter here, or not with this length; or it is longer
    /// than its traffic class allows.
    Filtered,
    /// It broke the contract of its virtual link, or would have to wait too long to keep that of its stream.
    Policed,
    /// Its number does not follow in the sequence of its virtual link on this network.
    Integrity,
    /// Its copy from the other network came first.
    SecondCopy,
    /// Its number lies too far from those of its stream to tell whether a copy came before (IEEE Std 802.1CB-2017,
    /// 7.4.3.4).
    Rogue,
    /// Its service data unit is longer than the filter of its stream allows (IEEE Std 802.1Q-2022, 8.6.5.3).
    OversizeSdu,
    /// Its stream is blocked, because one of its frames was too long.
    StreamBlocked,
    /// The gate of its stream is closed, by its list or for good (IEEE Std 802.1Q-2022, 8.6.5.4).
    StreamGateClosed,
    /// The octets that may pass the gate of its stream in this interval are used up.
    OctetsExceeded,
    /// The meter of its stream coloured it red, or yellow where yellow frames are dropped (IEEE Std 802.1Q-2022,
    /// 8.6.5.5).
    MeteredRed,
    /// It came outside the window in which it is accepted.
    OutOfWindow,
    /// A younger frame of its flow took its place before its window came.
    Superseded,
    /// Its window closed over it, and the rule says that it is then of no use.
    MissedWindow,
    /// It is time-triggered, and this port has no window for it.
    NoWindow,
    /// The queue of its virtual link or of its schedule at the sender had no room for it, or it is longer than they
    /// allow.
    Regulator,
    /// The receive ring had no room for it.
    Overrun,
    /// The byte FIFO in front of the receive ring had no room for all of it.
    FifoOverrun,
    /// The device that held it restarted, or was down when it came.
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
