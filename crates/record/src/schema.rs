//! The record: one frame at one observation point.

use wg_frame::time::RunTime;

/// Version of the record columns; stored as `wiregauge.schema` in every segment and Parquet file.
pub const RECORD_SCHEMA: u32 = 1;

/// `flow` of a frame without a probe header of Wiregauge.
pub const FLOW_FOREIGN: u16 = u16::MAX;

/// One frame seen at one point. 32 bytes, so that a ring of them stays in cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the observation, on the run's timescale.
    pub time: RunTime,
    /// Sequence number in the probe header.
    pub sequence: u32,
    /// Flow in the probe header; [`FLOW_FOREIGN`] when there is none.
    pub flow: u16,
    /// Node that observed it (index in the plan).
    pub node: u16,
    /// Port of the node, counted from 1.
    pub port: u16,
    /// Frame length in bytes, destination address to FCS inclusive (RFC 1242, 3.5); an untagged minimum frame is 64.
    pub length: u16,
    /// Observation point.
    pub point: Point,
    /// Clock of the timestamp.
    pub clock: Clock,
    /// CRC verdict of the observer.
    pub crc: Crc,
    /// Reason of a drop; [`DropReason::None`] unless `point` is [`Point::Drop`].
    pub reason: DropReason,
    /// Leg and phase of the message.
    pub flags: RecordFlags,
}

/// A fixed vocabulary whose codes count up from 0, stored as a dictionary column.
pub trait Coded: Copy + 'static {
    /// Every value, in the order of the codes.
    fn all() -> &'static [Self];
    /// Name in files.
    fn text(self) -> &'static str;
    /// Code in files.
    fn number(self) -> u8;
}

/// Defines an enum that is a [`Coded`] vocabulary: variants with code and name in files.
#[macro_export]
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant = $code),* }
        impl $name {
            /// Every value, in order of its code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The name in files and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
            /// The value with this code.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }
            /// The code in files: its place in [`Self::ALL`].
            pub const fn code(self) -> u8 {
                self as u8
            }
        }
        impl $crate::Coded for $name {
            fn all() -> &'static [Self] { Self::ALL }
            fn text(self) -> &'static str { self.name() }
            fn number(self) -> u8 { self.code() }
        }
    };
}

coded! {
    /// Observation points in the order a message passes them.
    Point {
        /// Intended sending time by the schedule.
        IntendedSend = 0 "intended-send",
        /// The application's call, just before it hands the message to the access point.
        ApplicationSend = 1 "application-send",
        /// The kernel's software transmit timestamp, as the driver takes the frame (after any queue discipline).
        DriverSend = 2 "driver-send",
        /// The interface's hardware transmit timestamp.
        WireSend = 3 "wire-send",
        /// Reception by a switch.
        SwitchIn = 4 "switch-in",
        /// Transmission by a switch.
        SwitchOut = 5 "switch-out",
        /// Observation by a tap. At the ends of a flow it stands for the application, which no tap sees.
        Tap = 6 "tap",
        /// The interface's hardware receive timestamp.
        WireReceive = 7 "wire-receive",
        /// The kernel's software receive timestamp.
        DriverReceive = 8 "driver-receive",
        /// Delivery to the application.
        ApplicationReceive = 9 "application-receive",
        /// A drop, planted or by rule; see the reason.
        Drop = 10 "drop",
    }
}
coded! {
    /// The clock from which a time was read.
    Clock {
        /// The schedule itself.
        Schedule = 0 "schedule",
        /// `CLOCK_REALTIME` read in user space.
        Realtime = 1 "realtime",
        /// `CLOCK_REALTIME` read by the kernel for the frame.
        KernelRealtime = 2 "kernel-realtime",
        /// The interface's hardware clock.
        Hardware = 3 "hardware",
        /// The simulator's exact time.
        Simulated = 4 "simulated",
        /// The node's own simulated clock, with its errors.
        Local = 5 "local",
    }
}
coded! {
    /// The observer's verdict on the message CRC.
    Crc {
        /// Not checked here.
        Unchecked = 0 "unchecked",
        /// Matches.
        Ok = 1 "ok",
        /// Does not match: header or payload is damaged.
        Bad = 2 "bad",
    }
}
coded! {
    /// Reason why a frame was dropped.
    DropReason {
        /// Not dropped.
        None = 0 "none",
        /// A planted fault of the test.
        PlantedFault = 1 "planted-fault",
        /// The operating system refused the send (no buffer, queue full).
        SendRefused = 2 "send-refused",
        /// Damaged message, which a relay does not send on.
        CorruptAtRelay = 3 "corrupt-at-relay",
        /// No space in a queue, a port or a shared buffer.
        BufferFull = 4 "buffer-full",
        /// No space in the receive ring of the interface.
        RingFull = 5 "ring-full",
        /// No output port at a switch.
        NotForwarded = 6 "not-forwarded",
        /// Wrong frame check sequence.
        FrameCheck = 7 "frame-check",
        /// Not admitted by a switch at this port: no such virtual link here, or a wrong length; at any receiver, a runt
        /// or a giant.
        Filtered = 8 "filtered",
        /// Violation of the contract of its virtual link.
        Policed = 9 "policed",
        /// Number that does not follow in the sequence of its virtual link on this network.
        Integrity = 10 "integrity",
        /// Second copy: the one from the other network came first.
        SecondCopy = 11 "second-copy",
        /// Arrival outside the window in which a time-triggered frame is accepted.
        OutOfWindow = 12 "out-of-window",
        /// Message replaced by a younger one before its sending time.
        Superseded = 13 "superseded",
        /// No space in the sender's queue of its virtual link or schedule.
        RegulatorFull = 14 "regulator-full",
        /// Collision after the collision window.
        LateCollision = 15 "late-collision",
        /// Collision in all of its attempts.
        ExcessiveCollisions = 16 "excessive-collisions",
        /// Restart or failure of the device that held the frame.
        DeviceDown = 17 "device-down",
        /// No space for the whole frame in the byte FIFO before a receive ring.
        FifoFull = 18 "fifo-full",
        /// Service data unit longer than the filter of its stream allows.
        OversizeSdu = 19 "oversize-sdu",
        /// Stream blocked, because one of its frames was too long.
        StreamBlocked = 20 "stream-blocked",
        /// Stream gate closed at the entry to a switch.
        StreamGate = 21 "stream-gate",
        /// Octets exceeded that may pass the stream gate in an interval.
        IntervalOctets = 22 "interval-octets",
        /// Frame coloured red by the meter of its stream.
        RedFrame = 23 "red-frame",
    }
}

coded! {
    /// Kind of an entry of the truth: what a bench did to the traffic on purpose, or a fact that nobody in the network
    /// could observe.
    TruthKind {
        /// A link lost the frame.
        LinkLost = 0 "link-lost",
        /// A bit of the frame was inverted on a link.
        BitError = 1 "bit-error",
        /// A link delivered the frame twice.
        Duplicated = 2 "duplicated",
        /// A link delayed the frame; value: by how many picoseconds.
        Delayed = 3 "delayed",
        /// A link altered the payload without a wrong frame check sequence.
        Corrupted = 4 "corrupted",
        /// A link was cut; port: the one of this node.
        Cut = 5 "cut",
        /// A link was restored.
        Restored = 6 "restored",
        /// A switch went down.
        Down = 7 "down",
        /// A switch came back.
        Up = 8 "up",
        /// A sender began to babble.
        BabbleBegan = 9 "babble-began",
        /// A sender ceased to babble.
        BabbleEnded = 10 "babble-ended",
        /// A babbling sender sent a frame past every regulator.
        Babbled = 11 "babbled",
        /// A clock was stepped; value: by how many picoseconds, forward.
        ClockStepped = 12 "clock-stepped",
        /// A clock's reading minus true time at this time; value in picoseconds.
        ClockOffset = 13 "clock-offset",
        /// Frames collided on a hub; value: attempts of this frame so far.
        Collision = 14 "collision",
        /// A frame in progress was aborted for a time-triggered one and will be sent again.
        Preempted = 15 "preempted",
        /// A fault was planted in a relay.
        RelayFault = 16 "relay-fault",
        /// An event of a host began; value: its index among the host's events, from 0.
        HostEventBegan = 17 "host-event-began",
        /// An event of a host ended; value: its index.
        HostEventEnded = 18 "host-event-ended",
        /// An event of a host delayed the message; value: by how many picoseconds.
        HeldUp = 19 "held-up",
        /// A switch sent a frame of its own by this port.
        OwnFrame = 20 "own-frame",
        /// A device of an AS6802 cluster changed its state; value: its code, -1 without power.
        SyncState = 21 "sync-state",
        /// The membership at a device changed; value: a bit for each synchronisation master in schedule.
        SyncMembership = 22 "sync-membership",
        /// Clique detection found a device in the wrong clique; value: 0 synchronous, 1 asynchronous, 2 relative.
        SyncClique = 23 "sync-clique",
        /// The greatest difference of the clocks of a cluster's synchronised devices in an integration cycle; value in
        /// picoseconds, node: its first compression master.
        SyncPrecision = 24 "sync-precision",
        /// A PTP port changed its state; value: its number (IEEE Std 1588-2019, table 20), 3 (DISABLED) without power.
        PtpState = 25 "ptp-state",
        /// A PTP clock changed its grandmaster; value: the grandmaster's node, counted from 0 in the order of the plan.
        PtpGrandmaster = 26 "ptp-grandmaster",
        /// A selected corner of the credit of a shaped queue; value in 10^-9 bits, sequence: its traffic class.
        Credit = 27 "credit",
        /// A sender truncated or extended the frame; value: its new length in bytes.
        WrongLength = 28 "wrong-length",
    }
}

/// An entry of the truth: a fact beside the records, never an input of judging.
///
/// Times are true times, whatever the clocks of the nodes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// True time of the fact.
    pub time: RunTime,
    /// Value as defined by the kind, in its unit; 0 for kinds without value.
    pub value: i64,
    /// Sequence number of the frame concerned; 0 without one.
    pub sequence: u32,
    /// Flow of the frame concerned; [`FLOW_FOREIGN`] without one.
    pub flow: u16,
    /// The node; for an effect of a link, the one at its far end.
    pub node: u16,
    /// Number of its port, counted from 1; 0 for the node as a whole.
    pub port: u16,
    /// Kind of fact.
    pub kind: TruthKind,
    /// Leg and phase of the frame.
    pub flags: RecordFlags,
}

/// Leg and phase of the message a record belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordFlags(u8);

impl RecordFlags {
    /// On the way back from a relay.
    pub const RETURN: Self = Self(1);
    /// Sent during the warm-up.
    pub const WARM_UP: Self = Self(2);

    /// No flag.
    pub const fn empty() -> Self {
        Self(0)
    }
    /// The flags of this code; unknown bits are dropped.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 3)
    }
    /// The code in files.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// The union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Whether all of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
