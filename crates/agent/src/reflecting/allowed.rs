//! Which senders a reflector answers, and how often: it never answers more than it is asked by those it was told of.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use wg_frame::stamp::PORT;

/// Greatest number of addresses and of sessions that are kept at a time.
pub const MOST: usize = 4_096;
/// Silence after which a session is forgotten: REFWAIT of RFC 5357, clause 4.2.
pub const FORGOTTEN_NS: i64 = 900_000_000_000;

const SECOND_NS: i64 = 1_000_000_000;

/// Reason why a packet is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// From an address outside the allowed networks.
    NotAllowed,
    /// From a reflector's port: two reflectors would answer each other without end.
    FromReflector,
    /// Faster than allowed.
    TooFast,
    /// The tables of addresses or sessions are full.
    TooMany,
    /// Too short for a test packet of the mode.
    TooShort,
    /// Its hash is wrong.
    NotAuthentic,
}

impl Refusal {
    /// Name of its count.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::FromReflector => "from-a-reflector",
            Self::TooFast => "too-fast",
            Self::TooMany => "too-many-senders",
            Self::TooShort => "too-short",
            Self::NotAuthentic => "not-authentic",
        }
    }
}

/// Bounds of a reflector, and what their senders have used of them.
#[derive(Debug)]
pub struct Allowed {
    networks: Vec<IpNet>,
    own_port: u16,
    /// Packets per second of an address, or of a network of 64 bits of IPv6; as many may come at once.
    rate: u32,
    used: BTreeMap<IpAddr, Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// What may still come, in packets times ns of a second.
    left: i64,
    at: i64,
}

impl Allowed {
    /// Senders of `networks`, each address with at most `rate` packets a second, to a reflector at `own_port`.
    pub fn new(networks: Vec<IpNet>, own_port: u16, rate: u32) -> Self {
        Self { networks, own_port, rate, used: BTreeMap::new() }
    }

    /// Counts a packet from `source` at `now`, ns of a clock that never goes back.
    ///
    /// # Errors
    /// It must not be answered.
    pub fn admit(&mut self, source: SocketAddr, now: i64) -> Result<(), Refusal> {
        if !self.networks.iter().any(|network| network.contains(&source.ip())) {
            return Err(Refusal::NotAllowed);
        }
        if [PORT, self.own_port, 0].contains(&source.port()) {
            return Err(Refusal::FromReflector);
        }
        let full = i64::from(self.rate) * SECOND_NS;
        let account = account_of(source.ip());
        if !self.used.contains_key(&account) && self.used.len() >= MOST {
            self.used.retain(|_, bucket| now.saturating_sub(bucket.at) < SECOND_NS);
            if self.used.len() >= MOST {
                return Err(Refusal::TooMany);
            }
        }
        let bucket = self.used.entry(account).or_insert(Bucket { left: full, at: now });
        let passed = now.saturating_sub(bucket.at).clamp(0, SECOND_NS);
        *bucket = Bucket { left: (bucket.left + passed * i64::from(self.rate)).min(full), at: now };
        if bucket.left < SECOND_NS {
            return Err(Refusal::TooFast);
        }
        bucket.left -= SECOND_NS;
        Ok(())
    }
}

/// The address whose packets are counted together: of IPv6 the upper 64 bits, as a host may have any of the others.
fn account_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn allowed(rate: u32) -> Allowed {
        Allowed::new(vec!["10.0.0.0/16".parse().expect("a network")], 8_620, rate)
    }

    fn sender(host: u16, port: u16) -> SocketAddr {
        let [high, low] = host.to_be_bytes();
        (Ipv4Addr::new(10, 0, high, low), port).into()
    }

    #[test]
    fn a_host_of_ipv6_has_one_allowance_whatever_address_it_takes() {
        let mut allowed = Allowed::new(vec!["2001:db8::/32".parse().expect("a network")], 8_620, 1);
        let from =
            |text: &str| -> SocketAddr { (text.parse::<Ipv6Addr>().expect("an address"), 5_000).into() };
        assert_eq!(allowed.admit(from("2001:db8:0:1::1"), 0), Ok(()));
        assert_eq!(allowed.admit(from("2001:db8:0:1::2"), 0), Err(Refusal::TooFast));
        assert_eq!(allowed.admit(from("2001:db8:0:2::1"), 0), Ok(()));
        assert_eq!(allowed.admit(from("2001:db9::1"), 0), Err(Refusal::NotAllowed));
        assert_eq!(allowed.admit(sender(1, 5_000), 0), Err(Refusal::NotAllowed));
    }

    #[test]
    fn only_senders_of_the_networks_are_answered_and_no_reflector() {
        let mut allowed = allowed(10);
        let stranger = SocketAddr::from((Ipv4Addr::new(10, 1, 0, 1), 5_000));
        assert_eq!(allowed.admit(stranger, 0), Err(Refusal::NotAllowed));
        for port in [0, 862, 8_620] {
            assert_eq!(allowed.admit(sender(1, port), 0), Err(Refusal::FromReflector));
        }
        assert_eq!(allowed.admit(sender(1, 5_000), 0), Ok(()));
    }

    #[test]
    fn the_table_of_addresses_has_an_end_and_those_that_are_silent_leave_it() {
        let mut allowed = allowed(10);
        for host in 0..4_096 {
            assert_eq!(allowed.admit(sender(host, 5_000), 0), Ok(()));
        }
        assert_eq!(allowed.admit(sender(4_096, 5_000), 0), Err(Refusal::TooMany));
        assert_eq!(allowed.admit(sender(1, 5_001), 0), Ok(()), "one that is in it goes on");
        assert_eq!(allowed.admit(sender(4_096, 5_000), SECOND_NS), Ok(()));
    }

    proptest! {
        #[test]
        fn no_window_has_more_packets_than_the_rate_and_one_burst(
            rate in 1_u32..50, steps in proptest::collection::vec(0_i64..200_000_000, 1..200)
        ) {
            let mut allowed = allowed(rate);
            let (mut now, mut passed) = (0, Vec::new());
            for step in steps {
                now += step;
                if allowed.admit(sender(1, 5_000), now).is_ok() {
                    passed.push(now);
                }
            }
            for (first, from) in passed.iter().enumerate() {
                for (last, until) in passed.iter().enumerate().skip(first) {
                    let granted = i64::from(rate) * (SECOND_NS + until - from) / SECOND_NS;
                    prop_assert!(((last - first + 1) as i64) <= granted);
                }
            }
            prop_assert!(!passed.is_empty());
        }
    }
}
