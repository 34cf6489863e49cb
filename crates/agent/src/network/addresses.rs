//! Answers to address queries. A host that does not know the address of another one asks by ARP, and a network of virtual
//! links cannot carry the question. So the process that plays the interface cards answers it.

use std::collections::BTreeMap;

use wg_frame::arp::{Message, Operation, SMALLEST};
use wg_frame::ethernet::MacAddress;
use wg_net::{Interface, NetError, PortSender};
use wg_plan::Network;

/// Answers the ARP requests of hosts through a socket of its own, where no frame of the test has to wait.
pub(super) struct Answers {
    addresses: Addresses,
    sender: PortSender,
    /// Answers to be sent, with their ports.
    answer: Option<(usize, [u8; SMALLEST])>,
}

impl Answers {
    /// Answers for the end systems of a network, which `interfaces` lead to.
    pub(super) fn open(network: &Network, interfaces: &[Interface]) -> Result<Self, NetError> {
        let sender = PortSender::packet(interfaces)?;
        Ok(Self { addresses: Addresses::of(network), sender, answer: None })
    }

    /// Accepts a request that arrived at `port`; returns false if the frame is not a request.
    pub(super) fn take_up(&mut self, port: usize, frame: &[u8]) -> bool {
        let Some(question) = Message::read(frame) else { return false };
        self.answer = self.addresses.answer(&question).map(|answer| (port, answer));
        true
    }

    /// Sends the answer to the accepted request.
    pub(super) fn send(&mut self) {
        if let Some((port, answer)) = self.answer.take() {
            self.sender.push(port, &answer);
            self.sender.flush(|_| {});
        }
    }
}

/// The MAC address of each end system, by IPv4 address.
#[derive(Debug, Default)]
struct Addresses(BTreeMap<[u8; 4], MacAddress>);

impl Addresses {
    /// The addresses of a network.
    fn of(network: &Network) -> Self {
        let ends = network.nodes.iter().filter(|node| node.is_end_system());
        Self(ends.map(|node| (node.ipv4, node.mac)).collect())
    }

    /// The answering frame; `None` if the message is not a request, or asks for an address outside the test.
    fn answer(&self, message: &Message) -> Option<[u8; SMALLEST]> {
        let Message { operation: Operation::Request, sender, target: (_, asked) } = *message else {
            return None;
        };
        let mac = *self.0.get(&asked)?;
        // A host that asks for its own address checks whether another host uses it.
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
