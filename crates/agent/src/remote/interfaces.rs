//! Descriptions of this host's interfaces for a lab.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use crate::proto;

/// All interfaces except loopback; `allowed` and `in_use` give the permission and current user of each. Read-only.
pub fn described(
    allowed: impl Fn(&str) -> bool,
    in_use: impl Fn(&str) -> String,
) -> Vec<proto::InterfaceDescription> {
    let mut addresses: BTreeMap<String, Vec<Ipv4Addr>> = BTreeMap::new();
    for one in if_addrs::get_if_addrs().unwrap_or_default() {
        if let IpAddr::V4(address) = one.ip() {
            addresses.entry(one.name).or_default().push(address);
        }
    }
    let reports = crate::tools::doctor::interfaces();
    let own = reports.into_iter().filter(|report| report.name != "lo");
    own.map(|report| {
        let fact = |name: &str| {
            let text = fs::read_to_string(format!("/sys/class/net/{}/{name}", report.name));
            text.map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        let mac: Option<Vec<u8>> =
            fact("address").split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        proto::InterfaceDescription {
            mac: mac.filter(|mac| mac.len() == 6).unwrap_or_default(),
            ipv4: addresses
                .remove(&report.name)
                .unwrap_or_default()
                .iter()
                .map(ToString::to_string)
                .collect(),
            rate_bps: report.rate_bps.unwrap_or_default(),
            mtu: fact("mtu").parse().unwrap_or_default(),
            // Drivers without carrier detection report "unknown" for a working interface.
            up: matches!(fact("operstate").as_str(), "up" | "unknown"),
            allowed: allowed(&report.name),
            in_use: in_use(&report.name),
            timestamps: report.detail,
            neighbours: super::neighbours::of(&report.name),
            name: report.name,
        }
    })
    .collect()
}

/// First IPv4 address of an interface.
pub fn address_of(interface: &str) -> Option<Ipv4Addr> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.into_iter().filter(|one| one.name == interface).find_map(|one| match one.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}
