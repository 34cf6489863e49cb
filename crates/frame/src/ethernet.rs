//! Ethernet II frames (IEEE 802.3-2022, clause 3) as software sees them: destination address to the end of
//! the payload, without preamble and FCS.
//!
//! Two lengths are easily confused, so each has its name: the *frame length* counts DA to FCS (RFC 1242, 3.5) and is
//! the one in records and reports; the *wire length* adds preamble, start delimiter and the least gap and is what
//! occupies the line.

use core::fmt;
use core::str::FromStr;

use crate::bytes::{array_at, put_u16, u16_at};

/// Length of destination, source and type, in bytes.
pub const HEADER_LEN: usize = 14;
/// Length of the frame check sequence, in bytes (802.3, 3.2.9).
pub const FCS_LEN: usize = 4;
/// Shortest frame, DA to FCS, in bytes (802.3, 4A.4.2: minFrameSize 512 bits).
pub const MIN_FRAME_LEN: usize = 64;
/// Shortest frame without its FCS, in bytes: the least that a sender hands over, padded if need be (802.3, 3.2.8).
pub const MIN_FRAME_LEN_WITHOUT_FCS: usize = MIN_FRAME_LEN - FCS_LEN;
/// Header and FCS: what a frame is longer than its payload, in bytes.
pub const FRAME_OVERHEAD: usize = HEADER_LEN + FCS_LEN;
/// Longest payload of a frame, in bytes (802.3, 3.2.7: maxBasicDataSize).
pub const MAX_PAYLOAD_LEN: usize = 1_500;
/// Longest frame without tags, DA to FCS, in bytes (802.3, 3.2.7: maxBasicFrameSize).
pub const MAX_FRAME_LEN: usize = MAX_PAYLOAD_LEN + FRAME_OVERHEAD;
/// Length of preamble (7) and start delimiter (1), in bytes (802.3, 3.2.1 and 3.2.2).
pub const PREAMBLE_LEN: usize = 8;
/// Interpacket gap (802.3, 4A.4.2), in bytes.
pub const GAP_LEN: usize = 12;
/// Preamble and gap of a frame on the line, in bytes.
pub const WIRE_OVERHEAD: usize = PREAMBLE_LEN + GAP_LEN;
/// Wire length of the shortest frame, in bytes.
pub const MIN_WIRE_LEN: usize = MIN_FRAME_LEN + WIRE_OVERHEAD;

/// Wire length in bytes of a frame of `frame_len` (DA to FCS): shorter frames are padded first, so no frame takes less
/// than [`MIN_WIRE_LEN`].
pub const fn wire_len(frame_len: usize) -> usize {
    let padded = if frame_len < MIN_FRAME_LEN { MIN_FRAME_LEN } else { frame_len };
    padded.saturating_add(WIRE_OVERHEAD)
}

/// A MAC address (IEEE 802-2014, clause 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xFF; 6]);

    /// Whether it is a group address (I/G bit; broadcast is a group).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
    /// Whether it is one of the 16 group addresses that no bridge forwards (IEEE Std 802.1Q-2022, 8.6.3, table 8-1).
    pub const fn is_reserved(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xC2, 0x00, 0x00, 0x00..=0x0F])
    }
    /// The 48 bits of the address as a number.
    pub const fn bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
    /// The address `by` numbers higher.
    #[must_use]
    pub const fn offset_by(self, by: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = self.bits().wrapping_add(by).to_be_bytes();
        Self([a, b, c, d, e, f])
    }
    /// Whether it was assigned locally (U/L bit).
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 == 2
    }
}

impl fmt::Display for MacAddress {
    /// Six pairs of lower-case hexadecimal digits with colons, as Linux tools print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is no MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a MAC address is six pairs of hexadecimal digits with colons or hyphens, like 02:00:00:00:00:01")]
pub struct MacAddressError;

impl FromStr for MacAddress {
    type Err = MacAddressError;

    /// Six pairs of hexadecimal digits, all separated by colons or all by hyphens (IEEE 802-2014, 8.1).
    fn from_str(text: &str) -> Result<Self, MacAddressError> {
        let bytes: &[u8; 17] = text.as_bytes().try_into().map_err(|_| MacAddressError)?;
        let separator = bytes[2];
        let mut octets = [0; 6];
        for (i, octet) in octets.iter_mut().enumerate() {
            let [high, low] = [bytes[3 * i], bytes[3 * i + 1]];
            *octet = nibble(high)? << 4 | nibble(low)?;
            let separated = bytes.get(3 * i + 2).is_none_or(|found| *found == separator);
            if !separated || !matches!(separator, b':' | b'-') {
                return Err(MacAddressError);
            }
        }
        Ok(Self(octets))
    }
}

fn nibble(digit: u8) -> Result<u8, MacAddressError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(MacAddressError),
    }
}

/// Type of the content of an Ethernet II frame; never a length (802.3, 3.2.6: types begin at 1536).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(u16);

impl EtherType {
    /// Internet protocol version 4 (RFC 894).
    pub const IPV4: Self = Self(0x0800);
    /// A customer VLAN tag follows (IEEE 802.1Q-2022, table 9-1).
    pub const VLAN: Self = Self(0x8100);
    /// A protocol control frame (SAE AS6802).
    pub const PROTOCOL_CONTROL: Self = Self(0x891D);
    /// The Precision Time Protocol (IEEE Std 1588-2019, annex E).
    pub const PTP: Self = Self(0x88F7);
    /// A redundancy tag follows (IEEE Std 802.1CB-2017, 7.8).
    pub const REDUNDANCY: Self = Self(0xF1C1);
    /// Local Experimental Ethertype 1 (IEEE 802a-2003, 3.2): a message of Wiregauge directly after the header.
    pub const PROBE: Self = Self(0x88B5);

    /// The type of this number.
    ///
    /// # Errors
    /// [`EthernetError::Length`] below 1536.
    pub const fn new(number: u16) -> Result<Self, EthernetError> {
        if number < 0x0600 { Err(EthernetError::Length { found: number }) } else { Ok(Self(number)) }
    }
    /// Number of the type.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Reason why bytes are not a valid Ethernet II frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EthernetError {
    /// Too short for the header.
    #[error("{len} B cannot hold the 14 B of an Ethernet header")]
    TooShort {
        /// Length of the frame without FCS, in bytes.
        len: usize,
    },
    /// A length field (802.3, 3.2.6), or one of the undefined values 1501 to 1535, where the type should be.
    #[error("type field {found} is below 1536: no Ethernet II frame")]
    Length {
        /// The field.
        found: u16,
    },
}

/// A view of an Ethernet II frame without FCS.
///
/// `T` must give the same bytes at every call, as slices, arrays and vectors do; then no accessor panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<T>(T);

impl<T: AsRef<[u8]>> Frame<T> {
    /// A view of `bytes`, which must hold the header.
    ///
    /// # Errors
    /// [`EthernetError::TooShort`].
    pub fn new_checked(bytes: T) -> Result<Self, EthernetError> {
        let len = bytes.as_ref().len();
        if len < HEADER_LEN { Err(EthernetError::TooShort { len }) } else { Ok(Self(bytes)) }
    }
    /// Returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }
    /// Destination address.
    pub fn destination(&self) -> MacAddress {
        MacAddress(array_at(self.0.as_ref(), 0))
    }
    /// Source address.
    pub fn source(&self) -> MacAddress {
        MacAddress(array_at(self.0.as_ref(), 6))
    }
    /// The type field, which may be a length.
    pub fn type_field(&self) -> u16 {
        u16_at(self.0.as_ref(), 12)
    }
    /// The bytes after the header, padding included: Ethernet II cannot tell them apart.
    pub fn payload(&self) -> &[u8] {
        &self.0.as_ref()[HEADER_LEN..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Frame<T> {
    /// Sets the destination address.
    pub fn set_destination(&mut self, address: MacAddress) {
        self.0.as_mut()[..6].copy_from_slice(&address.0);
    }
    /// Sets the source address.
    pub fn set_source(&mut self, address: MacAddress) {
        self.0.as_mut()[6..12].copy_from_slice(&address.0);
    }
    /// Sets the type.
    pub fn set_ethertype(&mut self, ethertype: EtherType) {
        put_u16(self.0.as_mut(), 12, ethertype.get());
    }
    /// The bytes after the header.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.0.as_mut()[HEADER_LEN..]
    }
}

/// The content of an Ethernet II header. A group address as source is accepted, so that a receiver can report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// Type of the content.
    pub ethertype: EtherType,
}

impl Repr {
    /// Parses the header of `frame`.
    ///
    /// # Errors
    /// [`EthernetError::Length`] when the frame is not Ethernet II.
    pub fn parse<T: AsRef<[u8]>>(frame: &Frame<T>) -> Result<Self, EthernetError> {
        let ethertype = EtherType::new(frame.type_field())?;
        Ok(Self { destination: frame.destination(), source: frame.source(), ethertype })
    }

    /// Writes the header; the bytes after it stay.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, frame: &mut Frame<T>) {
        frame.set_destination(self.destination);
        frame.set_source(self.source);
        frame.set_ethertype(self.ethertype);
    }
}
