//! Neighbour at the other end of a cable, as reported by a daemon of this host that receives link layer discovery (IEEE
//! Std 802.1AB): lldpd through its program, systemd-networkd through its stored frames. Nothing is sent, and only the
//! query program is started.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use wg_frame::ethernet::{self, HEADER_LEN};
use wg_frame::lldp;

use crate::clocks::program::answer;
use crate::proto;

const LLDPCLI: &str = "/usr/sbin/lldpcli";
const LLDPD: &str = "/run/lldpd.socket";
/// Folder of frames stored by systemd-networkd, one file per interface index: length (u64, little endian), frame.
const NETWORKD: &str = "/run/systemd/netif/lldp";
/// Timeout for the answer of a daemon.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of neighbours reported per interface; a cable has one.
const MOST: usize = 8;
/// Maximum length of a name, characters; no field of the protocol is longer.
const LONGEST: usize = 512;

/// Neighbours of an interface known to the daemons, without duplicates.
pub fn of(interface: &str) -> Vec<proto::Neighbour> {
    let mut found = by_lldpd(interface);
    if found.is_empty()
        && let Ok(one) = wg_net::interface_named(interface)
        && let Ok(kept) = fs::read(format!("{NETWORKD}/{}", one.index))
    {
        found = kept_frames(&kept);
    }
    found.truncate(MOST);
    found
}

fn by_lldpd(interface: &str) -> Vec<proto::Neighbour> {
    let program = Path::new(LLDPCLI);
    // A name that looks like an option is not an interface.
    if !program.is_file() || !Path::new(LLDPD).exists() || interface.starts_with('-') {
        return Vec::new();
    }
    let arguments = ["-f", "json0", "show", "neighbors", "ports", interface].map(str::to_owned);
    match answer(program, &arguments, Path::new("/"), PATIENCE) {
        Ok((true, said)) => shown(&said, interface),
        _ => Vec::new(),
    }
}

#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    lldp: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    interface: Vec<Heard>,
}

#[derive(Deserialize)]
struct Heard {
    name: String,
    via: String,
    #[serde(default)]
    chassis: Vec<Device>,
    #[serde(default)]
    port: Vec<Device>,
    #[serde(default)]
    vlan: Vec<Vlan>,
}

/// Chassis or port.
#[derive(Deserialize)]
struct Device {
    #[serde(default)]
    id: Vec<Value>,
    #[serde(default)]
    name: Vec<Value>,
    #[serde(default)]
    descr: Vec<Value>,
}

#[derive(Deserialize)]
struct Value {
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Vlan {
    #[serde(default, rename = "vlan-id")]
    id: String,
    #[serde(default)]
    pvid: bool,
}

/// Neighbours in the output of `lldpcli -f json0`, which may follow other text.
fn shown(said: &str, interface: &str) -> Vec<proto::Neighbour> {
    let Some(begin) = said.lines().position(|line| line.trim() == "{") else { return Vec::new() };
    let text: String = said.lines().skip(begin).flat_map(|line| [line, "\n"]).collect();
    let Ok(shown) = serde_json::from_str::<Shown>(&text) else { return Vec::new() };
    let heard = shown.lldp.into_iter().flat_map(|listed| listed.interface);
    heard.filter(|one| one.name == interface && one.via.starts_with("LLDP")).map(neighbour).collect()
}

fn neighbour(heard: Heard) -> proto::Neighbour {
    let first = |values: Option<&Vec<Value>>| {
        values.and_then(|all| all.first()).map(|one| line(&one.value)).unwrap_or_default()
    };
    let (chassis, port) = (heard.chassis.first(), heard.port.first());
    let untagged = heard.vlan.iter().find(|vlan| vlan.pvid);
    proto::Neighbour {
        chassis: first(chassis.map(|device| &device.id)),
        name: first(chassis.map(|device| &device.name)),
        port: first(port.map(|device| &device.id)),
        port_description: first(port.map(|device| &device.descr)),
        port_vlan: untagged.and_then(|vlan| vlan.id.parse().ok()).unwrap_or_default(),
        source: "lldpd".into(),
    }
}

/// Neighbours in frames with lengths, as systemd-networkd stores them.
fn kept_frames(mut bytes: &[u8]) -> Vec<proto::Neighbour> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let Ok(length) = usize::try_from(u64::from_le_bytes(*length)) else { break };
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        bytes = rest;
        found.extend(of_frame(frame));
    }
    found
}

fn of_frame(frame: &[u8]) -> Option<proto::Neighbour> {
    let view = ethernet::Frame::new_checked(frame).ok()?;
    if view.type_field() != lldp::ETHER_TYPE {
        return None;
    }
    let said = lldp::Repr::parse(&frame[HEADER_LEN..]).ok()?;
    Some(proto::Neighbour {
        chassis: line(&said.chassis.to_string()),
        name: line(&said.system_name.to_string()),
        port: line(&said.port.to_string()),
        port_description: line(&said.port_description.to_string()),
        port_vlan: said.port_vlan.unwrap_or_default().into(),
        source: "systemd-networkd".into(),
    })
}

/// Text from a remote station, made safe for one line.
fn line(text: &str) -> String {
    text.chars().take(LONGEST).map(|one| if one.is_control() { '?' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = r#"2026-01-01T00:00:00 [WARN/lldpctl] something

{
  "lldp": [{"interface": [
    {"name": "eth1", "via": "LLDP", "rid": "1", "age": "0 day, 00:00:05",
     "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:0a"}], "name": [{"value": "sw1"}]}],
     "port": [{"id": [{"type": "ifname", "value": "ge-0/0/3"}], "descr": [{"value": "to the\nrobot"}]}],
     "vlan": [{"vlan-id": "9", "pvid": false}, {"vlan-id": "7", "pvid": true, "value": "cell"}]},
    {"name": "eth1", "via": "CDPv2", "chassis": [], "port": []}
  ]}]
}
"#;

    #[test]
    fn lldpd_says_who_is_there() {
        let found = shown(SAID, "eth1");
        assert_eq!(found.len(), 1, "another protocol is not LLDP");
        let one = &found[0];
        assert_eq!(
            (one.chassis.as_str(), one.name.as_str(), one.port.as_str()),
            ("02:00:00:00:00:0a", "sw1", "ge-0/0/3")
        );
        assert_eq!((one.port_description.as_str(), one.port_vlan), ("to the?robot", 7));
        assert!(shown(SAID, "eth2").is_empty());
        assert!(shown("{\n\"lldp\": [{}]\n}", "eth1").is_empty() && shown("{\n", "eth1").is_empty());
    }

    #[test]
    fn frames_that_networkd_keeps_are_read() {
        let message = [
            &[0x02, 7, 4, 0x02, 0, 0, 0, 0, 0x0A, 0x04, 3, 5][..],
            b"p3",
            &[0x06, 2, 0, 120, 0x0A, 3],
            b"sw1",
            &[0xFE, 6, 0x00, 0x80, 0xC2, 1, 0, 7, 0, 0],
        ]
        .concat();
        let frame = [&[1, 0x80, 0xC2, 0, 0, 0x0E, 2, 0, 0, 0, 0, 0x0A, 0x88, 0xCC][..], &message].concat();
        let kept = [&(frame.len() as u64).to_le_bytes()[..], &frame].concat();
        let found = kept_frames(&[kept.clone(), kept.clone()].concat());
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].port.as_str(), found[0].port_vlan), ("sw1", "p3", 7));
        assert_eq!(kept_frames(&kept[..kept.len() - 1]), []);
        assert_eq!(kept_frames(&[0xFF; 40]), []);
    }
}
