//! Facts of one interface.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use wg_net::ethtool::{self, Feature};

use super::fact::{Fact, Value};
use super::texts;
use super::tree::Tree;
use crate::tools::doctor;

/// Driver features by kernel name, and their fact names.
const FEATURES: [(&str, &str); 6] = [
    ("offload-gro", "rx-gro"),
    ("offload-gro-hardware", "rx-gro-hw"),
    ("offload-lro", "rx-lro"),
    ("offload-tso", "tx-tcp-segmentation"),
    ("offload-gso", "tx-generic-segmentation"),
    ("vlan-filter", "rx-vlan-filter"),
];

/// All facts of the interface.
pub(super) fn facts(tree: &Tree, name: &str) -> Vec<Fact> {
    let shown = shown_in_sys(tree, name);
    let mut facts = link_facts(tree, name, &shown);
    facts.extend(timestamp_facts(name));
    facts.extend(driver_facts(name));
    facts.extend(queue_facts(tree, name, &shown));
    facts.extend(kernel_facts(tree, name, &shown));
    facts.into_iter().map(|fact| fact.on(name)).collect()
}

/// Checks that `/sys` shows this interface and not one of the same name in another network namespace, since `/sys`
/// shows the namespace in which it was mounted.
fn shown_in_sys(tree: &Tree, name: &str) -> Result<(), String> {
    let elsewhere = || "/sys shows another network namespace here".to_owned();
    let index = wg_net::interface_named(name).map_err(|error| error.to_string())?.index;
    let shown = tree.number(&format!("/sys/class/net/{name}/ifindex")).map_err(|_| elsewhere())?;
    let address = tree.read(&format!("/sys/class/net/{name}/address")).map_err(|_| elsewhere())?;
    let same = mac(name).is_ok_and(|own| own == address);
    if shown == i64::from(index) && same { Ok(()) } else { Err(elsewhere()) }
}

/// MAC address of an Ethernet interface; zeros for loopback.
fn mac(name: &str) -> Result<String, String> {
    let told = wg_net::hardware_address(name).map_err(|error| error.to_string())?;
    let bytes = if name == "lo" { Some([0; 6]) } else { told };
    let bytes = bytes.ok_or_else(|| "it is no Ethernet interface".to_owned())?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).join(":"))
}

fn link_facts(tree: &Tree, name: &str, shown: &Result<(), String>) -> Vec<Fact> {
    let shown = || shown.clone();
    let of = |what: &str| format!("/sys/class/net/{name}/{what}");
    let addresses = if_addrs::get_if_addrs().map_err(|error| error.to_string());
    let ipv4 = addresses.map(|all| -> Vec<String> {
        let own = all.iter().filter(|one| one.name == name).map(if_addrs::Interface::ip);
        own.filter(IpAddr::is_ipv4).map(|address| address.to_string()).collect()
    });
    let rate = || {
        let told = wg_net::line_rate(name).ok_or("its driver does not tell: it is virtual, or down")?;
        Ok(i64::try_from(told).unwrap_or(i64::MAX))
    };
    let driver = || wg_net::driver(name).ok_or_else(|| "it is virtual and has no driver".to_owned());
    vec![
        Fact::of("state", shown().and_then(|()| tree.read(&of("operstate")))),
        Fact::of("mtu-bytes", shown().and_then(|()| tree.number(&of("mtu")))),
        Fact::of("mac", mac(name)),
        Fact::of("ipv4", ipv4),
        Fact::of("driver", shown().and_then(|()| driver())),
        Fact::of("rate-bps", shown().and_then(|()| rate())),
    ]
}

fn timestamp_facts(name: &str) -> Vec<Fact> {
    let report = doctor::interface(name);
    let can = wg_net::timestamp_capability(name).map_err(|error| error.to_string());
    let of = |pick: &dyn Fn() -> Value| can.as_ref().map(|_| pick()).map_err(Clone::clone);
    let filters = || {
        let filters = can.as_ref().map(|can| can.receive_filters()).unwrap_or_default();
        filters.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into()
    };
    vec![
        Fact::of("timestamps-transmit", of(&|| report.transmit.into())).noted(&report.detail),
        Fact::of("timestamps-receive", of(&|| report.receive.into())).noted(&report.detail),
        Fact::of("timestamp-filters", of(&filters)),
        Fact::of("timestamp-clock", of(&|| report.clock.clone().unwrap_or_default().into())),
    ]
}

fn driver_facts(name: &str) -> Vec<Fact> {
    let features = ethtool::features(name);
    let mut facts: Vec<Fact> =
        FEATURES.iter().map(|(called, kernel)| feature(called, kernel, &features)).collect();
    let coalescing = ethtool::coalescing(name);
    let of = |pick: fn(&ethtool::Coalescing) -> Value| coalescing.as_ref().map(pick).map_err(refusal);
    facts.extend([
        Fact::of("coalescing-receive-us", of(|told| i64::from(told.rx_usecs).into())),
        Fact::of("coalescing-receive-frames", of(|told| i64::from(told.rx_frames).into())),
        Fact::of("coalescing-transmit-us", of(|told| i64::from(told.tx_usecs).into())),
        Fact::of("coalescing-adaptive", of(|told| (told.adaptive_rx || told.adaptive_tx).into())),
    ]);
    let pause = ethtool::pause(name);
    let of = |pick: fn(&ethtool::Pause) -> Value| pause.as_ref().map(pick).map_err(refusal);
    facts.extend([
        Fact::of("eee", ethtool::eee(name).map_err(|error| refusal(&error))),
        Fact::of("pause-receive", of(|told| told.rx.into())),
        Fact::of("pause-transmit", of(|told| told.tx.into())),
    ]);
    facts
}

/// Receive queues, interrupt coalescing, and XDP programs and sockets on the queues.
fn queue_facts(tree: &Tree, name: &str, shown: &Result<(), String>) -> Vec<Fact> {
    let set = |what: &str| {
        shown.clone().and_then(|()| {
            let path = format!("/sys/class/net/{name}/{what}");
            tree.number(&path).map_err(|why| format!("{why} (older kernels have no such setting)"))
        })
    };
    let xdp = wg_net::xdp_support(name).map_err(|error| match error.kind() {
        io::ErrorKind::Unsupported => "this kernel does not tell what drivers have for XDP".into(),
        _ => refusal(&error),
    });
    let queues = ethtool::receive_queues(name).map(i64::from).map_err(|error| refusal(&error));
    vec![
        Fact::of("receive-queues", queues),
        Fact::of("deferred-interrupts", set("napi_defer_hard_irqs")),
        Fact::of("flush-timeout-ns", set("gro_flush_timeout")),
        Fact::of("polled-by-threads", set("threaded").map(|told| told != 0)),
        Fact::of("xdp-by-driver", xdp.as_ref().map(|has| has.by_driver).map_err(Clone::clone)),
        Fact::of("xdp-zero-copy", xdp.map(|has| has.zero_copy)),
    ]
}

fn feature(called: &'static str, kernel: &str, features: &io::Result<BTreeMap<String, Feature>>) -> Fact {
    let seen = features.as_ref().map_err(refusal).and_then(|all| {
        all.get(kernel).copied().ok_or_else(|| format!("this kernel has no feature {kernel}"))
    });
    let fixed = matches!(seen, Ok(Feature { changeable: false, .. }));
    Fact::of(called, seen.map(|one| one.active)).noted(if fixed { "the driver has it fixed" } else { "" })
}

/// Reason why a driver does not report a value.
fn refusal(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::Unsupported {
        return "its driver has no such setting, or does not tell".into();
    }
    format!("its driver does not tell ({error})")
}

fn kernel_facts(tree: &Tree, name: &str, shown: &Result<(), String>) -> Vec<Fact> {
    let port = format!("/sys/class/net/{name}/brport/bridge/bridge/vlan_filtering");
    let bridge = match shown {
        Err(why) => Fact::of::<bool>("bridge-vlan-filter", Err(why.clone())),
        Ok(()) if tree.has(&format!("/sys/class/net/{name}/brport")) => {
            Fact::of("bridge-vlan-filter", tree.number(&port).map(|told| told != 0))
        }
        Ok(()) => Fact::of("bridge-vlan-filter", Ok(false)).noted("it is no port of a bridge"),
    };
    vec![
        bridge,
        Fact::of("reverse-path-filter", reverse_path_filter(tree, name)),
        Fact::of("interrupt-cpus", shown.clone().and_then(|()| interrupt_cpus(tree, name))),
    ]
}

/// The kernel uses the greater of two settings (ip-sysctl, `rp_filter`).
fn reverse_path_filter(tree: &Tree, name: &str) -> Result<i64, String> {
    let of = |which: &str| tree.number(&format!("/proc/sys/net/ipv4/conf/{which}/rp_filter"));
    Ok(of("all")?.max(of(name)?))
}

/// Processors that handle the interrupts of an interface: `NUMBER: CPUS` for each.
fn interrupt_cpus(tree: &Tree, name: &str) -> Result<Vec<String>, String> {
    let device = format!("/sys/class/net/{name}/device");
    let is_virtio = tree.read(&format!("{device}/modalias")).is_ok_and(|told| told.starts_with("virtio:"));
    // The interrupts of a virtio device are those of its bus device.
    let of = if is_virtio { format!("{device}/../msi_irqs") } else { format!("{device}/msi_irqs") };
    let own = tree.names(&of).unwrap_or_default();
    let mut numbers: Vec<u32> = own.iter().filter_map(|number| number.parse().ok()).collect();
    if numbers.is_empty() {
        numbers = texts::interrupts_of(&tree.read("/proc/interrupts")?, name);
    }
    if numbers.is_empty() {
        return Err("the kernel names no interrupts of it; a virtual interface has none".into());
    }
    numbers
        .iter()
        .map(|number| {
            Ok(format!("{number}: {}", tree.read(&format!("/proc/irq/{number}/smp_affinity_list"))?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn loopback_is_examined_like_any_other() {
        let facts = facts(&Tree::here(), "lo");
        let value =
            |name: &str| facts.iter().find(|fact| fact.name == name).expect("it is told").seen.clone();
        assert!(matches!(value("mtu-bytes"), Ok(Value::Number(bytes)) if bytes > 0));
        assert!(matches!(value("offload-gro"), Ok(Value::Truth(_))), "{facts:?}");
        assert_eq!(value("timestamps-transmit"), Ok("software".into()));
        assert!(value("eee").expect_err("it has no cable").contains("no such setting"));
        assert!(facts.iter().all(|fact| fact.interface == "lo"));
    }

    #[test]
    fn the_stricter_filter_counts_and_interrupts_are_those_of_the_device() {
        let root = std::env::temp_dir().join(format!("wiregauge-interface-{}", std::process::id()));
        for (path, text) in [
            ("proc/sys/net/ipv4/conf/all/rp_filter", "1\n"),
            ("proc/sys/net/ipv4/conf/eth1/rp_filter", "0\n"),
            ("sys/class/net/eth1/device/msi_irqs/44", "msix\n"),
            ("proc/irq/44/smp_affinity_list", "0-3\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let tree = Tree::below(&root);
        let (filter, cpus) = (reverse_path_filter(&tree, "eth1"), interrupt_cpus(&tree, "eth1"));
        let missing = reverse_path_filter(&tree, "eth2");
        fs::remove_dir_all(&root).expect("it was made here");
        assert_eq!(filter, Ok(1));
        assert_eq!(cpus, Ok(vec!["44: 0-3".to_owned()]));
        assert!(missing.expect_err("there is none").contains("eth2"));
    }
}
