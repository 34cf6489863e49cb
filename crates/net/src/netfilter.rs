//! Packet filters of this network namespace that could drop frames: chains of nftables, tables of the older iptables.
//!
//! Queries load no modules: of the older tables only those already loaded are read.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::{fs, io};

use crate::netlink::{self, attribute};
use crate::sys::{get_option, socket};

/// `NFNL_SUBSYS_NFTABLES` and `NFT_MSG_GETCHAIN` of linux/netfilter.
const GET_CHAIN: u16 = 10 << 8 | 4;
/// Length of `struct nfgenmsg`, in bytes.
const FAMILY_HEADER: usize = 4;
/// `enum nft_chain_attributes` and `enum nft_hook_attributes`.
const TABLE: u16 = 1;
const NAME: u16 = 3;
const HOOK: u16 = 4;
const POLICY: u16 = 5;
const USE: u16 = 6;
const TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
/// `IPT_SO_GET_INFO` of linux/netfilter_ipv4/ip_tables.h.
const GET_INFO: libc::c_int = 64;

/// A base chain of nftables, which frames pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Family, table and name: `inet filter input`.
    pub name: String,
    /// Hook: `input`, `prerouting`, `ingress`, …
    pub hook: &'static str,
    /// Type: `filter`, `nat` or `route`.
    pub kind: String,
    /// Whether its policy drops frames that match no rule.
    pub drops: bool,
    /// Number of rules.
    pub rules: u32,
}

/// The base chains of nftables.
///
/// # Errors
/// The kernel refuses: CAP_NET_ADMIN is missing.
pub fn chains() -> io::Result<Vec<Chain>> {
    let mut found = Vec::new();
    // All families (AF_UNSPEC).
    let body = [0; FAMILY_HEADER];
    let asked = netlink::list(libc::NETLINK_NETFILTER, &netlink::listing(GET_CHAIN, &body), |body| {
        found.extend(chain(body));
    });
    match asked {
        // A kernel without nftables has no chains: it lacks the socket family or the subsystem.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EINVAL)) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
        Ok(()) => Ok(found),
    }
}

/// A number in network byte order.
fn number(attributes: &[u8], wanted: u16) -> Option<u32> {
    Some(u32::from_be_bytes(attribute(attributes, wanted)?.get(..4)?.try_into().ok()?))
}

/// A base chain; `None` for a chain reached only from rules.
fn chain(body: &[u8]) -> Option<Chain> {
    let family = *body.first()?;
    let attributes = body.get(FAMILY_HEADER..)?;
    let hook = number(attribute(attributes, HOOK)?, HOOK_NUMBER)?;
    let text = |kind| attribute(attributes, kind).map(netlink::text).unwrap_or_default();
    Some(Chain {
        name: format!("{} {} {}", family_name(family), text(TABLE), text(NAME)),
        hook: hook_name(family, hook),
        kind: text(TYPE),
        drops: number(attributes, POLICY) == Some(0),
        rules: number(attributes, USE).unwrap_or(0),
    })
}

/// `NFPROTO_*` of linux/netfilter.h.
fn family_name(family: u8) -> &'static str {
    match family {
        1 => "inet",
        2 => "ip",
        3 => "arp",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        _ => "unknown",
    }
}

fn hook_name(family: u8, hook: u32) -> &'static str {
    const OF_ARP: [&str; 3] = ["input", "output", "forward"];
    const OF_DEVICES: [&str; 2] = ["ingress", "egress"];
    const OF_PACKETS: [&str; 6] = ["prerouting", "input", "forward", "output", "postrouting", "ingress"];
    let names: &[&'static str] = match family {
        3 => &OF_ARP,
        5 => &OF_DEVICES,
        _ => &OF_PACKETS,
    };
    usize::try_from(hook).ok().and_then(|at| names.get(at)).copied().unwrap_or("unknown")
}

/// A table of the older iptables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name: `filter`, `raw`, …
    pub name: String,
    /// Number of entries beyond those of an empty table; `None` if the kernel does not report it.
    pub entries: Option<u32>,
}

/// The loaded tables of the older iptables.
///
/// # Errors
/// The list of tables cannot be read: the right is missing.
pub fn tables() -> io::Result<Vec<Table>> {
    let names = match fs::read_to_string("/proc/thread-self/net/ip_tables_names") {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names: BTreeSet<&str> = names.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    Ok(names.iter().map(|name| Table { name: (*name).to_owned(), entries: entries(name).ok() }).collect())
}

/// Number of entries from `struct ipt_getinfo`: a name of 32 bytes, the hooks, five and five offsets, the number of
/// entries, their bytes.
fn entries(table: &str) -> io::Result<u32> {
    let mut asked = [0_u8; 84];
    for (to, from) in asked.iter_mut().take(31).zip(table.bytes()) {
        *to = from;
    }
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let told = get_option(socket.as_fd(), libc::SOL_IP, GET_INFO, asked)?;
    let word = |at| netlink::word(&told, at).unwrap_or(0);
    // A built-in chain is one entry, its policy; the last entry ends the table.
    Ok(word(76).saturating_sub(word(32).count_ones() + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_length(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = [&((4 + value.len()) as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn described(hooked: bool) -> Vec<u8> {
        let hook = with_length(HOOK | 0x8000, &with_length(HOOK_NUMBER, &1_u32.to_be_bytes()));
        [
            vec![1, 0, 0, 0],
            with_length(TABLE, b"filter\0"),
            with_length(NAME, b"input\0"),
            if hooked { hook } else { Vec::new() },
            with_length(POLICY, &0_u32.to_be_bytes()),
            with_length(USE, &12_u32.to_be_bytes()),
            with_length(TYPE, b"filter\0"),
        ]
        .concat()
    }

    #[test]
    fn a_chain_that_frames_pass_is_read() {
        let expected = Chain {
            name: "inet filter input".into(),
            hook: "input",
            kind: "filter".into(),
            drops: true,
            rules: 12,
        };
        assert_eq!(chain(&described(true)), Some(expected));
        assert_eq!(chain(&described(false)), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..120), at in 0_usize..60, byte: u8) {
            let _ = chain(&bytes);
            let mut whole = described(true);
            let at = at % whole.len();
            whole[at] = byte;
            let _ = chain(&whole);
        }
    }
}
