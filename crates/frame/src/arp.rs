//! Address resolution for IPv4 over Ethernet (RFC 826).

use crate::bytes::array_at;
use crate::ethernet::{HEADER_LEN, MacAddress};

/// EtherType of a message.
pub const ETHER_TYPE: u16 = 0x0806;
/// Length of a message in bytes.
pub const LEN: usize = 28;
/// Length of the shortest frame with a message, without FCS, in bytes.
pub const SMALLEST: usize = 60;
/// Hardware type, protocol type and address lengths: Ethernet and IPv4.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Request: who has the target's address?
    Request,
    /// Reply: the sender has its address.
    Reply,
}

impl Operation {
    const fn code(self) -> u16 {
        match self {
            Self::Request => 1,
            Self::Reply => 2,
        }
    }
}

/// An ARP message for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Request or reply.
    pub operation: Operation,
    /// Addresses of the sender.
    pub sender: (MacAddress, [u8; 4]),
    /// Addresses of the target; in a request without the hardware address.
    pub target: (MacAddress, [u8; 4]),
}

impl Message {
    /// The message in an untagged frame; `None`: there is none.
    pub fn read(frame: &[u8]) -> Option<Self> {
        let message = frame.get(HEADER_LEN..HEADER_LEN + LEN)?;
        if frame[12..14] != ETHER_TYPE.to_be_bytes() || message[..6] != KINDS {
            return None;
        }
        let code = u16::from_be_bytes(array_at(message, 6));
        let operation = [Operation::Request, Operation::Reply].into_iter().find(|one| one.code() == code)?;
        let at = |at: usize| (MacAddress(array_at(message, at)), array_at(message, at + 6));
        Some(Self { operation, sender: at(8), target: at(18) })
    }

    /// Writes the message as a frame, padded with zeros: a request to the broadcast address, a reply to its target.
    /// Bytes that do not fit are omitted.
    pub fn write(&self, frame: &mut [u8]) {
        let to = match self.operation {
            Operation::Request => MacAddress([0xff; 6]),
            Operation::Reply => self.target.0,
        };
        let [high, low] = self.operation.code().to_be_bytes();
        let parts: [&[u8]; 9] = [
            &to.0,
            &self.sender.0.0,
            &ETHER_TYPE.to_be_bytes(),
            &KINDS,
            &[high, low],
            &self.sender.0.0,
            &self.sender.1,
            &self.target.0.0,
            &self.target.1,
        ];
        let bytes = parts.into_iter().flatten().copied().chain(core::iter::repeat(0));
        frame.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for operation in [Operation::Request, Operation::Reply] {
            let message = Message {
                operation,
                sender: (MacAddress([2, 0, 0, 0, 0, 1]), [10, 0, 0, 1]),
                target: (MacAddress([2, 0, 0, 0, 0, 2]), [10, 0, 0, 2]),
            };
            let mut frame = [0xAA; SMALLEST];
            message.write(&mut frame);
            assert_eq!(Message::read(&frame), Some(message));
            assert_eq!(
                frame[..6],
                if operation == Operation::Reply { message.target.0.0 } else { [0xff; 6] }
            );
            assert!(frame[HEADER_LEN + LEN..].iter().all(|byte| *byte == 0));
            for cut in 0..HEADER_LEN + LEN {
                assert_eq!(Message::read(&frame[..cut]), None);
            }
            for (at, byte) in [(12, 9), (14, 1), (21, 3)] {
                let mut other = frame;
                other[at] = byte;
                assert_eq!(Message::read(&other), None, "byte {at}");
            }
        }
    }
}
