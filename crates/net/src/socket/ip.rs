//! Fields of the IP header of datagrams that a UDP access point sends and receives, and ICMP messages that answer them.

use crate::ancillary::IcmpAnswer;

use super::{AsFd, NetError, Socket, set_option};

/// Number of ICMP messages that answered datagrams with "destination unreachable".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreachable {
    /// Nobody listens on the port.
    pub port: u64,
    /// Any other reason: host, network, prohibited.
    pub other: u64,
}

impl Unreachable {
    pub(super) fn count(&mut self, icmp: Option<IcmpAnswer>) {
        match icmp {
            Some(answer) if answer.is_unreachable() && answer.is_of_port() => self.port += 1,
            Some(answer) if answer.is_unreachable() => self.other += 1,
            _ => {}
        }
    }
}

impl Socket {
    /// Enables reports of TTL (hop limit) and traffic class of received datagrams, and sends with `ttl`.
    ///
    /// # Errors
    /// None on a supported kernel.
    pub fn report_ip_headers(&self, ttl: u8) -> Result<(), NetError> {
        let ttl = i32::from(ttl);
        let (level, options) = if self.ipv6 {
            let hops =
                [(libc::IPV6_RECVHOPLIMIT, 1), (libc::IPV6_RECVTCLASS, 1), (libc::IPV6_UNICAST_HOPS, ttl)];
            (libc::IPPROTO_IPV6, hops)
        } else {
            (libc::IPPROTO_IP, [(libc::IP_RECVTTL, 1), (libc::IP_RECVTOS, 1), (libc::IP_TTL, ttl)])
        };
        for (option, value) in options {
            set_option(self.fd.as_fd(), level, option, value)
                .map_err(|e| NetError::of("cannot set or read fields of the IP header", "", e))?;
        }
        Ok(())
    }

    /// Sends with this traffic class: DSCP in its six upper bits, then ECN.
    ///
    /// # Errors
    /// None on a supported kernel.
    pub fn set_traffic_class(&self, class: u8) -> Result<(), NetError> {
        let (level, option) = if self.ipv6 {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
        } else {
            (libc::IPPROTO_IP, libc::IP_TOS)
        };
        set_option(self.fd.as_fd(), level, option, i32::from(class))
            .map_err(|e| NetError::of("cannot set the traffic class", "", e))
    }

    /// Sends with this priority (`SO_PRIORITY`, socket(7)): queueing disciplines choose a queue by it, and a VLAN
    /// interface the priority of the tag (`egress-qos-map`, ip-link(8)). To be called after
    /// [`set_traffic_class`](Self::set_traffic_class), which sets another one.
    ///
    /// # Errors
    /// 7 needs CAP_NET_ADMIN.
    pub fn set_priority(&self, priority: u8) -> Result<(), NetError> {
        set_option(self.fd.as_fd(), libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority))
            .map_err(|e| NetError::of("cannot set the priority", "0 to 6 need no privilege", e))
    }

    /// ICMP messages that have come so far; [`transmit_timestamps`](Self::transmit_timestamps) reads them.
    pub fn unreachable(&self) -> Unreachable {
        self.unreachable
    }
}
