//! Link layer discovery (IEEE Std 802.1AB-2016, clause 8): what a neighbour announces about itself and its port.

use core::fmt;

use crate::bytes::u16_at;

/// EtherType of a discovery frame.
pub const ETHER_TYPE: u16 = 0x88CC;
/// Organisation of IEEE 802.1 (802.1Q-2018, D.2), and the subtype of its port VLAN identifier.
const PORT_VLAN: [u8; 4] = [0x00, 0x80, 0xC2, 1];
const HEADER_LEN: usize = 2;
const LONGEST: u16 = 0x1FF;

/// Reason why bytes are not a valid discovery message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LldpError {
    /// It ends within an element.
    #[error("the element at byte {at} of the discovery message has {len} B, and {left} B are left")]
    CutShort {
        /// Offset of the element.
        at: usize,
        /// Length stated in the element.
        len: usize,
        /// Number of bytes after its header.
        left: usize,
    },
    /// A mandatory element is missing, empty, or out of order.
    #[error("a discovery message begins with {0}")]
    Order(&'static str),
}

/// An element: type and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Type, 0 to 127.
    pub kind: u8,
    /// Value, at most 511 B.
    pub value: &'a [u8],
}

/// The elements of a message, as far as they can be read; an error is the last item.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Elements<'a> {
    /// The elements after the EtherType, from `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, LldpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        let left = self.bytes.len().checked_sub(at + HEADER_LEN)?;
        let header = u16_at(self.bytes, at);
        // Seven bits of type, nine of length.
        let [first, _] = header.to_be_bytes();
        let (kind, len) = (first >> 1, usize::from(header & LONGEST));
        if len > left {
            self.at = self.bytes.len();
            return Some(Err(LldpError::CutShort { at, len, left }));
        }
        let begin = at + HEADER_LEN;
        self.at = begin + len;
        // The end of the message; padding follows.
        if kind == 0 {
            self.at = self.bytes.len();
            return None;
        }
        Some(Ok(Element { kind, value: &self.bytes[begin..begin + len] }))
    }
}

/// A name of a neighbour or its port, with its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identifier<'a> {
    /// Subtype (802.1AB, tables 8-2 and 8-3).
    pub subtype: u8,
    /// The name as sent.
    pub bytes: &'a [u8],
    /// Subtype of a MAC address, which differs between chassis and ports.
    mac_subtype: u8,
}

impl fmt::Display for Identifier<'_> {
    /// A MAC address in its usual notation, any other name as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.subtype == self.mac_subtype && self.bytes.len() == 6 {
            for (i, byte) in self.bytes.iter().enumerate() {
                write!(f, "{}{byte:02x}", if i == 0 { "" } else { ":" })?;
            }
            return Ok(());
        }
        text(f, self.bytes)
    }
}

/// Writes untrusted text: unprintable characters become question marks.
fn text(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    for chunk in bytes.utf8_chunks() {
        for one in chunk.valid().chars() {
            write!(f, "{}", if one.is_control() { '?' } else { one })?;
        }
        if !chunk.invalid().is_empty() {
            f.write_str("?")?;
        }
    }
    Ok(())
}

/// Text sent by a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub &'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text(f, self.0)
    }
}

/// Content of a neighbour's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Identifier of the device.
    pub chassis: Identifier<'a>,
    /// Identifier of its port.
    pub port: Identifier<'a>,
    /// Time to live in s; 0: the neighbour leaves.
    pub time_to_live_s: u16,
    /// Port description; empty if not sent.
    pub port_description: Text<'a>,
    /// System name; empty if not sent.
    pub system_name: Text<'a>,
    /// VLAN of untagged frames; `None` if not sent, or if there is none.
    pub port_vlan: Option<u16>,
}

impl<'a> Repr<'a> {
    /// Parses a message, which begins after the EtherType.
    ///
    /// # Errors
    /// See [`LldpError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LldpError> {
        let mut elements = Elements::new(bytes);
        let mut first = |kind: u8, name: &'static str| match elements.next() {
            Some(Ok(element)) if element.kind == kind => Ok(element.value),
            Some(Err(error)) => Err(error),
            _ => Err(LldpError::Order(name)),
        };
        let identifier = |value: &'a [u8], mac_subtype, name| match value {
            [subtype, bytes @ ..] if !bytes.is_empty() => {
                Ok(Identifier { subtype: *subtype, bytes, mac_subtype })
            }
            _ => Err(LldpError::Order(name)),
        };
        let chassis = identifier(first(1, "a chassis")?, 4, "a chassis that has a name")?;
        let port = identifier(first(2, "a port behind the chassis")?, 3, "a port that has a name")?;
        let lives = first(3, "a time to live behind the port")?;
        if lives.len() < 2 {
            return Err(LldpError::Order("a time to live of two bytes"));
        }
        let mut found = Self {
            chassis,
            port,
            time_to_live_s: u16_at(lives, 0),
            port_description: Text::default(),
            system_name: Text::default(),
            port_vlan: None,
        };
        for element in elements {
            let Element { kind, value } = element?;
            match kind {
                4 => found.port_description = Text(value),
                5 => found.system_name = Text(value),
                127 if value.len() >= 6 && value[..4] == PORT_VLAN => {
                    found.port_vlan = Some(u16_at(value, 4)).filter(|vlan| *vlan != 0);
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    fn element(kind: u8, value: &[u8]) -> Vec<u8> {
        let header = u16::from(kind) << 9 | u16::try_from(value.len()).expect("short");
        [header.to_be_bytes().as_slice(), value].concat()
    }

    fn message(more: &[Vec<u8>]) -> Vec<u8> {
        let mut all = Vec::new();
        all.extend(element(1, &[4, 0x02, 0, 0, 0, 0, 0x0A]));
        all.extend(element(2, b"\x05ge-0/0/3"));
        all.extend(element(3, &120_u16.to_be_bytes()));
        all.extend(more.concat());
        all.extend(element(0, &[]));
        all
    }

    #[test]
    fn a_neighbour_says_which_port_the_cable_is_in() {
        let vlan = element(127, &[0x00, 0x80, 0xC2, 1, 0, 7]);
        let bytes = message(&[element(4, b"to the robot"), element(5, b"sw\n1\xFF"), vlan]);
        let padded = [bytes.as_slice(), &[0xAA; 20]].concat();
        let found = Repr::parse(&padded).expect("sound");
        let shown = format!("{}, {}, {}", found.chassis, found.port, found.port_description);
        assert_eq!(shown, "02:00:00:00:00:0a, ge-0/0/3, to the robot");
        assert_eq!(found.system_name.to_string(), "sw?1?");
        assert_eq!((found.time_to_live_s, found.port_vlan), (120, Some(7)));
        assert_eq!(Repr::parse(&message(&[])).expect("the rest may be missing").port_vlan, None);
    }

    #[test]
    fn what_is_no_message_is_told() {
        let bytes = message(&[]);
        assert_eq!(Repr::parse(&bytes[9..]), Err(LldpError::Order("a chassis")));
        assert_eq!(Repr::parse(&bytes[..9]), Err(LldpError::Order("a port behind the chassis")));
        assert_eq!(Repr::parse(&bytes[..12]), Err(LldpError::CutShort { at: 9, len: 9, left: 1 }));
        assert_eq!(Repr::parse(&element(1, &[4])), Err(LldpError::Order("a chassis that has a name")));
        assert_eq!(Repr::parse(&[]), Err(LldpError::Order("a chassis")));
    }
}
