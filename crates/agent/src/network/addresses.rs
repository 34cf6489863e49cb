//! Whose address is whose. Where nobody has told hosts of one another's, they ask (ARP), and a network of virtual links has no way for
//! such a question; so whoever plays their cards answers it.

use std::collections::BTreeMap;

use wg_frame::arp::{Message, Operation, SMALLEST};
use wg_frame::ethernet::MacAddress;
use wg_plan::Network;

/// By IPv4 address the end system's MAC address.
#[derive(Debug, Default)]
pub(super) struct Addresses(BTreeMap<[u8; 4], MacAddress>);

impl Addresses {
    /// Those of a network.
    pub(super) fn of(network: &Network) -> Self {
        let ends = network.nodes.iter().filter(|node| node.is_end_system());
        Self(ends.map(|node| (node.ipv4, node.mac)).collect())
    }

    /// The frame that answers; none where the message asks nothing, or after somebody else.
    pub(super) fn answer(&self, message: &Message) -> Option<[u8; SMALLEST]> {
        let Message { operation: Operation::Request, sender, target: (_, asked) } = *message else { return None };
        let mac = *self.0.get(&asked)?;
        // A host that asks after itself wants to know whether somebody else has its address.
        if asked == sender.1 {
            return None;
        }
        let mut frame = [0; SMALLEST];
        Message { operation: Operation::Reply, sender: (mac, asked), target: sender }.write(&mut frame);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_after_another_is_answered() {
        let addresses = Addresses(BTreeMap::from([([10, 0, 0, 2], MacAddress([2; 6]))]));
        let sender = (MacAddress([1; 6]), [10, 0, 0, 1]);
        let question = |of| Message { operation: Operation::Request, sender, target: (MacAddress([0; 6]), of) };
        let frame = addresses.answer(&question([10, 0, 0, 2])).expect("an answer");
        let answer = Message::read(&frame).expect("a message");
        assert_eq!((answer.operation, answer.sender), (Operation::Reply, (MacAddress([2; 6]), [10, 0, 0, 2])));
        assert_eq!(answer.target, sender);
        assert_eq!(frame[..6], [1; 6]);
        assert_eq!(addresses.answer(&question([10, 0, 0, 9])), None, "somebody else");
        let own = Message { sender: (MacAddress([2; 6]), [10, 0, 0, 2]), ..question([10, 0, 0, 2]) };
        assert_eq!(addresses.answer(&own), None, "itself");
        assert_eq!(addresses.answer(&Message { operation: Operation::Reply, ..question([10, 0, 0, 2]) }), None);
    }
}
