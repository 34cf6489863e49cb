//! TTEthernet frames: critical traffic, and the protocol control frames of SAE AS6802.
//!
//! A frame of critical traffic is recognised by its destination address: a marker of four bytes and the identifier of
//! its flow. The layout of protocol control frames is that of Wireshark's `packet-tte-pcf.c`, whose authors are
//! TTTech's. Their integration cycle, membership and clock are the inputs of the permanence, compression and clique
//! functions (ECSS-E-ST-50-16C, the free text of the standard's space profile).

use crate::bytes::{put, u32_at, u64_at};
use crate::ethernet::MacAddress;
use crate::time::Span;

/// Identifier of a critical-traffic flow: the last two bytes of the destination address, big endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CriticalTrafficId(pub u16);

impl CriticalTrafficId {
    /// First four bytes of every destination address: the marker. Operators choose it; this is the one of the public
    /// demonstrations (t-crest/patmos, `tte.c`).
    pub const MARKER: [u8; 4] = [0xAB, 0xAD, 0xBA, 0xBE];

    /// The destination address of the flow's frames.
    pub const fn destination(self) -> MacAddress {
        let [a, b, c, d] = Self::MARKER;
        let [high, low] = self.0.to_be_bytes();
        MacAddress([a, b, c, d, high, low])
    }
    /// The flow of an address; `None` without the marker.
    pub const fn from_destination(address: MacAddress) -> Option<Self> {
        match address.0 {
            [0xAB, 0xAD, 0xBA, 0xBE, high, low] => Some(Self(u16::from_be_bytes([high, low]))),
            _ => None,
        }
    }
}

/// The transparent clock of a protocol control frame: the delay collected on its way, in 2⁻¹⁶ ns (Wireshark's
/// packet-tte-pcf.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransparentClock(pub u64);

impl TransparentClock {
    /// A delay, rounded up to a unit, so that [`delay`](Self::delay) returns it exactly; `None` if negative.
    pub fn from_delay(delay: Span) -> Option<Self> {
        let ps = u128::try_from(delay.as_picos()).ok()?;
        u64::try_from((ps * 8_192).div_ceil(125)).ok().map(Self)
    }
    /// The delay, rounded down to a picosecond: 125/8192 ps a unit. The greatest value is 3 days.
    pub fn delay(self) -> Span {
        let ps = u128::from(self.0) * 125 / 8_192;
        Span::from_picos(i64::try_from(ps).unwrap_or(i64::MAX))
    }
    /// The sum with another device's delay; `None` beyond 64 bits or for a negative delay.
    pub fn plus(self, delay: Span) -> Option<Self> {
        self.0.checked_add(Self::from_delay(delay)?.0).map(Self)
    }
}

/// Length of the fields of a protocol control frame, in bytes; padding follows.
pub const CONTROL_LEN: usize = 28;

/// Type of a protocol control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlType {
    /// Integration frame.
    Integration = 0x2,
    /// Coldstart frame.
    Coldstart = 0x4,
    /// Coldstart acknowledgement frame.
    ColdstartAcknowledge = 0x8,
}

/// Reason why bytes are not a valid protocol control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The frame ends within the fields.
    #[error("{len} B behind the type 0x891d cannot hold the 28 B of a protocol control frame")]
    TooShort {
        /// Number of bytes after the type field.
        len: usize,
    },
    /// An undefined type.
    #[error(
        "type {found:#x} of a protocol control frame is none of 2 (integration), 4 (coldstart) and 8 (acknowledgement)"
    )]
    Type {
        /// The type.
        found: u8,
    },
}

/// A view of a protocol control frame behind its EtherType. See [`ethernet::Frame`](crate::ethernet::Frame) about `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlFrame<T>(T);

impl<T: AsRef<[u8]>> ControlFrame<T> {
    /// A view of `bytes`, which must hold the fields.
    ///
    /// # Errors
    /// [`ControlError::TooShort`].
    pub fn new_checked(bytes: T) -> Result<Self, ControlError> {
        let len = bytes.as_ref().len();
        if len < CONTROL_LEN { Err(ControlError::TooShort { len }) } else { Ok(Self(bytes)) }
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Integration cycle.
    pub fn integration_cycle(&self) -> u32 {
        u32_at(self.0.as_ref(), 0)
    }
    /// Membership: a bit for each synchronisation master.
    pub fn membership(&self) -> u32 {
        u32_at(self.0.as_ref(), 4)
    }
    /// Synchronisation priority.
    pub fn sync_priority(&self) -> u8 {
        self.0.as_ref()[12]
    }
    /// Synchronisation domain.
    pub fn sync_domain(&self) -> u8 {
        self.0.as_ref()[13]
    }
    /// The type field, 0 to 15.
    pub fn type_field(&self) -> u8 {
        self.0.as_ref()[14] & 0x0F
    }
    /// Transparent clock: delay collected on the way.
    pub fn transparent_clock(&self) -> TransparentClock {
        TransparentClock(u64_at(self.0.as_ref(), 20))
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> ControlFrame<T> {
    /// Sets the transparent clock, as every device on the way does.
    pub fn set_transparent_clock(&mut self, clock: TransparentClock) {
        put(self.0.as_mut(), 20, clock.0.to_be_bytes());
    }
}

/// The content of a protocol control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlRepr {
    /// Integration cycle.
    pub integration_cycle: u32,
    /// Membership: a bit for each synchronisation master.
    pub membership: u32,
    /// Synchronisation priority.
    pub sync_priority: u8,
    /// Synchronisation domain.
    pub sync_domain: u8,
    /// Type of the frame.
    pub control_type: ControlType,
    /// Transparent clock: delay collected on the way.
    pub transparent_clock: TransparentClock,
}

impl ControlRepr {
    /// Parses `frame`; reserved fields are ignored.
    ///
    /// # Errors
    /// [`ControlError::Type`].
    pub fn parse<T: AsRef<[u8]>>(frame: &ControlFrame<T>) -> Result<Self, ControlError> {
        let control_type = match frame.type_field() {
            0x2 => ControlType::Integration,
            0x4 => ControlType::Coldstart,
            0x8 => ControlType::ColdstartAcknowledge,
            found => return Err(ControlError::Type { found }),
        };
        Ok(Self {
            integration_cycle: frame.integration_cycle(),
            membership: frame.membership(),
            sync_priority: frame.sync_priority(),
            sync_domain: frame.sync_domain(),
            control_type,
            transparent_clock: frame.transparent_clock(),
        })
    }

    /// Writes the fields, reserved ones as zero; the padding after them stays.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, frame: &mut ControlFrame<T>) {
        let bytes = frame.0.as_mut();
        bytes[..CONTROL_LEN].fill(0);
        put(bytes, 0, self.integration_cycle.to_be_bytes());
        put(bytes, 4, self.membership.to_be_bytes());
        put(bytes, 12, [self.sync_priority, self.sync_domain, self.control_type as u8]);
        put(bytes, 20, self.transparent_clock.0.to_be_bytes());
    }
}
