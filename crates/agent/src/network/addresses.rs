//! Whose address is whose. Where nobody has told hosts of one another's, they ask (ARP), and a network of virtual links has no way for
//! such a question; so whoever plays their cards answers it.

use std::collections::BTreeMap;

use wg_frame::arp::{Message, Operation, SMALLEST};
use wg_frame::ethernet::MacAddress;
use wg_net::{Interface, NetError, PortSender};
use wg_plan::Network;

/// Answers hosts that ask, by a socket of its own: no frame of the test waits there.
pub(super) struct Answers {
    addresses: Addresses,
    sender: PortSender,
    /// What is to be sent, and by which port.
    answer: Option<(usize, [u8; SMALLEST])>,
}

impl Answers {
    /// For the end systems of a network, which `interfaces` lead to.
    pub(super) fn open(network: &Network, interfaces: &[Interface]) -> Result<Self, NetError> {
        let sender = PortSender::packet(interfaces)?;
        Ok(Self { addresses: Addresses::of(network), sender, answer: None })
    }

    /// Takes up a question. False: the frame, which came by `port`, is none.
    pub(super) fn take_up(&mut self, port: usize, frame: &[u8]) -> bool {
        let Some(question) = Message::read(frame) else { return false };
        self.answer = self.addresses.answer(&question).map(|answer| (port, answer));
        true
    }

    /// Sends what answers the question that was taken up.
    pub(super) fn send(&mut self) {
        if let Some((port, answer)) = self.answer.take() {
            self.sender.push(port, &answer);
            self.sender.flush(|_| {});
        }
    }
}

/// By IPv4 address the end system's MAC address.
#[derive(Debug, Default)]
struct Addresses(BTreeMap<[u8; 4], MacAddress>);

impl Addresses {
    /// Those of a network.
    fn of(network: &Network) -> Self {
        let ends = network.nodes.iter().filter(|node| node.is_end_system());
        Self(ends.map(|node| (node.ipv4, node.mac)).collect())
    }

    /// The frame that answers; none where the message asks nothing, or after somebody else.
    fn answer(&self, message: &Message) -> Option<[u8; SMALLEST]> {
        let Message { operation: Operation::Request, sender, target: (_, asked) } = *message else {
            return None;
        };
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
        let question =
            |of| Message { operation: Operation::Request, sender, target: (MacAddress([0; 6]), of) };
        let frame = addresses.answer(&question([10, 0, 0, 2])).expect("an answer");
        let answer = Message::read(&frame).expect("a message");
        assert_eq!(
            (answer.operation, answer.sender),
            (Operation::Reply, (MacAddress([2; 6]), [10, 0, 0, 2]))
        );
        assert_eq!(answer.target, sender);
        assert_eq!(frame[..6], [1; 6]);
        assert_eq!(addresses.answer(&question([10, 0, 0, 9])), None, "somebody else");
        let own = Message { sender: (MacAddress([2; 6]), [10, 0, 0, 2]), ..question([10, 0, 0, 2]) };
        assert_eq!(addresses.answer(&own), None, "itself");
        assert_eq!(
            addresses.answer(&Message { operation: Operation::Reply, ..question([10, 0, 0, 2]) }),
            None
        );
    }
}
