//! Fields of the IPv4 header of datagrams that a UDP access point sends and receives, and ICMP messages that answer them.

use super::{AsFd, NetError, Socket, set_option};

/// `ICMP_DEST_UNREACH` and `ICMP_PORT_UNREACH` of linux/icmp.h.
const DESTINATION_UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE: u8 = 3;

/// Number of ICMP messages that answered datagrams with "destination unreachable".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreachable {
    /// Nobody listens on the port.
    pub port: u64,
    /// Any other reason: host, network, prohibited.
    pub other: u64,
}

impl Unreachable {
    pub(super) fn count(&mut self, icmp: Option<(u8, u8)>) {
        match icmp {
            Some((DESTINATION_UNREACHABLE, PORT_UNREACHABLE)) => self.port += 1,
            Some((DESTINATION_UNREACHABLE, _)) => self.other += 1,
            _ => {}
        }
    }
}

impl Socket {
    /// Enables reports of TTL and traffic class of received datagrams, and sends with `ttl`.
    ///
    /// # Errors
    /// None on a supported kernel.
    pub fn report_ip_headers(&self, ttl: u8) -> Result<(), NetError> {
        for (option, value) in [(libc::IP_RECVTTL, 1), (libc::IP_RECVTOS, 1), (libc::IP_TTL, i32::from(ttl))]
        {
            set_option(self.fd.as_fd(), libc::IPPROTO_IP, option, value)
                .map_err(|e| NetError::of("cannot set or read fields of the IPv4 header", "", e))?;
        }
        Ok(())
    }

    /// Sends with this traffic class: DSCP in its six upper bits, then ECN.
    ///
    /// # Errors
    /// None on a supported kernel.
    pub fn set_traffic_class(&self, class: u8) -> Result<(), NetError> {
        set_option(self.fd.as_fd(), libc::IPPROTO_IP, libc::IP_TOS, i32::from(class))
            .map_err(|e| NetError::of("cannot set the traffic class", "", e))
    }

    /// ICMP messages that have come so far; [`transmit_timestamps`](Self::transmit_timestamps) reads them.
    pub fn unreachable(&self) -> Unreachable {
        self.unreachable
    }
}
