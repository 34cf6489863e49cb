//! A frame as a descriptor: all fields that the cores decide by, without the bytes.
//!
//! 32 bytes and `Copy`, so that queues and links hold frames by value. Payload is left out: no core looks at it. The
//! driver knows a frame and its payload by the [`Handle`] it gave it: a simulator by the message, a live program by the
//! buffer.

use wg_frame::ethernet::MacAddress;
use wg_frame::{rtag, vlan};

use crate::line::{LONGEST_FRAME, SMALLEST_FRAME, bytes};

/// The kind of traffic a frame belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficClass {
    /// Forwarded by MAC address, without a promise.
    #[default]
    BestEffort,
    /// Forwarded by virtual link within a contract (ARINC 664 part 7).
    RateConstrained,
    /// Sent and forwarded at planned instants (SAE AS6802).
    TimeTriggered,
}

/// One of the redundant networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum NetworkId {
    /// Network A, or the only one.
    #[default]
    A,
    /// Network B.
    B,
}

impl NetworkId {
    /// Whether it is network A, or the only one.
    pub const fn is_a(&self) -> bool {
        matches!(self, Self::A)
    }
}

/// Identifies a frame to its driver. Cores copy it to every copy of the frame and never interpret it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// Protocol stacks a host can tell apart.
pub const STACKS: usize = 8;

/// Marks of a frame: a set of bits, and the number of the protocol stack that the frame passes in hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// A bit was inverted on the way: the frame check sequence is wrong.
    pub const FCS_ERROR: Self = Self(1);
    /// Sent on both redundant networks. Virtual links and time-triggered flows have this in their configuration
    /// instead.
    pub const BOTH_NETWORKS: Self = Self(2);
    /// Carries an 802.1Q tag, whatever its VLAN and priority.
    pub const TAGGED: Self = Self(4);
    /// Carries a redundancy tag (IEEE Std 802.1CB-2017, 7.8), whose number is the frame's.
    pub const R_TAG: Self = Self(64);
    /// The drop eligible indicator of its 802.1Q tag is set (IEEE Std 802.1Q-2022, 9.6).
    pub const DROP_ELIGIBLE: Self = Self(128);
    const STACK_SHIFT: u32 = 3;

    /// No marks.
    pub const fn none() -> Self {
        Self(0)
    }
    /// Marks of a frame that passes protocol stack `number` of its hosts, see [`Self::stack`]; 0 is the default.
    ///
    /// Panics unless `number` is below [`STACKS`].
    pub const fn of_stack(number: u8) -> Self {
        assert!((number as usize) < STACKS, "wg-core misuse: a host has fewer protocol stacks");
        Self(number << Self::STACK_SHIFT)
    }
    /// Number of the protocol stack that the frame passes in hosts, less than [`STACKS`].
    pub const fn stack(self) -> usize {
        (self.0 >> Self::STACK_SHIFT) as usize % STACKS
    }
    /// The union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This set less `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Whether all of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Length of its tags, in bytes.
    pub const fn tag_bytes(self) -> u32 {
        let vlan = if self.has(Self::TAGGED) { bytes(vlan::TAG_LEN) } else { 0 };
        vlan + if self.has(Self::R_TAG) { bytes(rtag::TAG_LEN) } else { 0 }
    }
}

/// One frame.
/// Aligned to 16 bytes, as it is copied: a load that straddles two stores just made waits until both have reached the
/// cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub struct Frame {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// Length in bytes, destination address to FCS inclusive (RFC 1242, 3.5), as sent: padding included.
    pub length: u16,
    /// VLAN identifier; 0 without tag or [priority-tagged](Marks::TAGGED) (IEEE Std 802.1Q-2022, 9.6).
    pub vlan: u16,
    /// Virtual link, or identifier of critical traffic; for best-effort frames the number that the driver assigned to
    /// the headers of the datagram, where switches identify streams by them, otherwise 0.
    pub virtual_link: u16,
    /// Sequence number: 16 bits of a redundancy tag, 8 bits of a virtual link. Before the sender numbers the frame: its
    /// sub-virtual-link.
    pub sequence: u16,
    /// The driver's handle.
    pub handle: Handle,
    /// Priority code point, 0 to 7; 7 is the most urgent. Within a device its low three bits may be an
    /// [internal priority](Self::with_internal_priority).
    pub priority: u8,
    /// Kind of traffic.
    pub class: TrafficClass,
    /// Redundant network it travels on.
    pub network: NetworkId,
    /// Tag, copies, damage.
    pub marks: Marks,
}

/// Lengths of frames that a receiver accepts: others are runts and giants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FrameLengths {
    /// Shortest frame accepted, in bytes.
    pub shortest: u16,
    /// Longest frame accepted, in bytes without tags (IEEE Std 802.3-2022, 4.2.7.1: maxBasicFrameSize, qTagPrefixSize).
    pub longest: u16,
}

impl Default for FrameLengths {
    fn default() -> Self {
        Self::STANDARD
    }
}

impl FrameLengths {
    /// The lengths of IEEE Std 802.3.
    pub const STANDARD: Self = Self { shortest: SMALLEST_FRAME, longest: LONGEST_FRAME };

    /// Whether the length of `frame` is accepted.
    #[inline]
    pub const fn have(self, frame: &Frame) -> bool {
        frame.length >= self.shortest
            && (frame.length <= self.longest
                || frame.length as u32 <= self.longest as u32 + frame.marks.tag_bytes())
    }
}

impl Frame {
    const INTERNAL: u8 = 0x80;

    /// The frame with `priority` (0 to 7) as internal priority value: it is queued by it until it leaves the device,
    /// whatever its code point (IEEE Std 802.1Q-2022, 8.6.5.4).
    #[must_use]
    pub const fn with_internal_priority(mut self, priority: u8) -> Self {
        self.priority = Self::INTERNAL | (self.leaving().priority & 7) << 3 | priority & 7;
        self
    }

    /// Whether the frame has an internal priority value.
    #[inline]
    pub const fn has_internal_priority(&self) -> bool {
        self.priority & Self::INTERNAL != 0
    }

    /// The frame as it leaves the device: with the priority of its code point.
    #[must_use]
    pub const fn leaving(mut self) -> Self {
        if self.has_internal_priority() {
            self.priority = self.priority >> 3 & 7;
        }
        self
    }
}

const _: () = assert!(core::mem::size_of::<Frame>() <= 32, "descriptors are copied at every hop");
