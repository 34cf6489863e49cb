//! Reachability of addresses at an interface by ARP (RFC 826), with requests as long as the test's frames, so that the
//! path must support this length.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use wg_frame::arp::{self, Message, Operation};
use wg_frame::ethernet::{HEADER_LEN, MacAddress};
use wg_net::{NetError, NoInterface, Protocols, Socket, hardware_address, interface_named};

/// Requests per address, so that a lost one does not count as no answer.
const TRIES: u32 = 3;
/// Longest frame received completely.
const LARGEST: usize = 9_100;

type Mac = [u8; 6];

/// Reason why the request failed.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// Unknown interface.
    #[error(transparent)]
    Interface(#[from] NoInterface),
    /// Refused by the kernel.
    #[error(transparent)]
    Refused(#[from] NetError),
    /// Not Ethernet.
    #[error("{0} is no Ethernet interface")]
    NotEthernet(String),
    /// The request cannot be sent.
    #[error(
        "{interface} sends no frame of {bytes} bytes after its header: {why}; its MTU must be that large"
    )]
    Unsent {
        /// Name of the interface.
        interface: String,
        /// Bytes after the Ethernet header.
        bytes: usize,
        /// Cause.
        why: String,
    },
}

/// Requests each of `addresses` at `interface` on behalf of `own`, with `bytes` after the Ethernet header. Returns the
/// hardware addresses that answered for each within `wait`. Blocks for at most `wait`, and for a third of it if all
/// answer the first request.
///
/// # Errors
/// See [`ReachError`].
pub fn ask(
    interface: &str,
    own: Ipv4Addr,
    addresses: &[Ipv4Addr],
    bytes: usize,
    wait: Duration,
) -> Result<Vec<Vec<Mac>>, ReachError> {
    let at = interface_named(interface)?;
    let mac = hardware_address(interface)?.ok_or_else(|| ReachError::NotEthernet(interface.into()))?;
    let mut socket = Socket::packet(at.index, &[mac.into()], Protocols::Only(arp::ETHER_TYPE))?;
    let mut found: Vec<Vec<Mac>> = vec![Vec::new(); addresses.len()];
    let mut buffer = vec![0; LARGEST];
    for _ in 0..TRIES {
        for (address, _) in addresses.iter().zip(&found).filter(|(_, macs)| macs.is_empty()) {
            socket.send(&request(mac, own, *address, bytes), None).map_err(|failure| ReachError::Unsent {
                interface: interface.into(),
                bytes,
                why: match failure {
                    wg_net::SendFailure::NoRoom => "its queue is full".into(),
                    wg_net::SendFailure::Refused(error) => error.to_string(),
                },
            })?;
        }
        let end = Instant::now() + wait / TRIES;
        // A second answer for an address may follow the first immediately.
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if !socket.wait(None, i64::try_from(left.as_nanos()).unwrap_or(i64::MAX)).is_ok_and(|r| r.frames)
            {
                continue;
            }
            while let Ok(Some(received)) = socket.receive(&mut buffer, false) {
                let Some((of, mac)) = reply(&buffer[..received.len.min(LARGEST)]) else { continue };
                for (_, macs) in addresses.iter().zip(&mut found).filter(|(address, _)| **address == of) {
                    if !macs.contains(&mac) {
                        macs.push(mac);
                    }
                }
            }
        }
        if found.iter().all(|macs| !macs.is_empty()) {
            break;
        }
    }
    Ok(found)
}

/// Request with `bytes` after the Ethernet header, padded with zeros.
fn request(mac: Mac, own: Ipv4Addr, of: Ipv4Addr, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; HEADER_LEN + bytes.max(arp::LEN)];
    let nobody = MacAddress([0; 6]);
    let (sender, target) = ((MacAddress(mac), own.octets()), (nobody, of.octets()));
    Message { operation: Operation::Request, sender, target }.write(&mut frame);
    frame
}

/// Address in a reply and the hardware address that answered.
fn reply(frame: &[u8]) -> Option<(Ipv4Addr, Mac)> {
    let Message { operation, sender: (mac, of), .. } = Message::read(frame)?;
    (operation == Operation::Reply).then_some((of.into(), mac.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 0, 1];
    const PEER: Mac = [2, 0, 0, 0, 0, 2];

    #[test]
    fn a_request_has_the_length_asked_for_and_is_no_reply() {
        let (own, of) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        for (bytes, length) in [(46, 60), (1500, 1514), (0, 42)] {
            let frame = request(MAC, own, of, bytes);
            assert_eq!(frame.len(), length);
            assert_eq!((&frame[..6], &frame[6..12], &frame[12..14]), (&[0xff; 6][..], &MAC[..], &[8, 6][..]));
            assert_eq!((&frame[28..32], &frame[38..42]), (&own.octets()[..], &of.octets()[..]));
            assert_eq!(reply(&frame), None);
        }
    }

    #[test]
    fn a_reply_names_the_hardware_of_its_sender() {
        let of = Ipv4Addr::new(10, 0, 0, 2);
        let mut frame = request(PEER, of, Ipv4Addr::new(10, 0, 0, 1), 46);
        frame[20..22].copy_from_slice(&[0, 2]);
        assert_eq!(reply(&frame), Some((of, PEER)));
        for cut in 0..HEADER_LEN + arp::LEN {
            assert_eq!(reply(&frame[..cut]), None);
        }
        frame[14] = 1;
        assert_eq!(reply(&frame), None);
    }
}
