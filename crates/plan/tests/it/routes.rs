//! Routes in random trees of switches, judged by what a route is and not by how it is found.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wg_plan::Network;

use crate::outline::{good, refused, shown};

/// Switch `i > 0` hangs on a switch before it; end system `k` hangs on switch `homes[k]`.
fn outline(parents: &[usize], homes: &[usize], extra: &str) -> String {
    let mut text = "test name=routes\n network\n".to_owned();
    for i in 0..=parents.len() {
        text += &format!("  switch name=sw{i}\n");
    }
    for k in 0..homes.len() {
        text += &format!("  end-system name=e{k}\n");
    }
    for (k, home) in homes.iter().enumerate() {
        text += &format!("  link between='e{k} sw{home}' rate=1Gbit/s\n");
    }
    for (i, parent) in parents.iter().enumerate() {
        text += &format!("  link between='sw{} sw{parent}' rate=1Gbit/s\n", i + 1);
    }
    text += extra;
    text += " flows\n";
    for k in 1..homes.len() {
        text += &format!("  flow id={k} protocol=udp from=e{} to=e{k}\n", k - 1);
    }
    text += " tasks\n";
    for k in 1..homes.len() {
        text += &format!("  send flow={k} period=2ms payload=64B count=1\n  receive flow={k}\n");
    }
    text
}

/// The links between two switches of a tree, each by the switch that hangs on it.
pub(crate) fn between(parents: &[usize], a: usize, b: usize) -> BTreeSet<usize> {
    let up = |from: usize| {
        let above = std::iter::successors(Some(from), |at| at.checked_sub(1).map(|place| parents[place]));
        above.take_while(|at| *at > 0).collect::<BTreeSet<usize>>()
    };
    up(a).symmetric_difference(&up(b)).copied().collect()
}

fn linked(network: &Network, a: u16, b: u16) -> bool {
    network.links.iter().any(|link| {
        let ends = link.ends.map(|end| end.node);
        ends == [a, b] || ends == [b, a]
    })
}

fn trees() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    (1_usize..9).prop_flat_map(|switches| {
        let parents: Vec<_> = (1..switches).map(|i| 0..i).collect();
        (parents, prop::collection::vec(0..switches, 2..8))
    })
}

proptest! {
    #[test]
    fn a_route_is_a_simple_path_over_switches((parents, homes) in trees()) {
        let campaign = good(&outline(&parents, &homes, ""));
        let network = &campaign.network;
        for flow in &campaign.runs[0].flows {
            let path: Vec<u16> = flow.routes[0].nodes().collect();
            prop_assert_eq!(network.route(flow.routes[0].network, &path), Some(flow.routes[0].clone()));
            prop_assert_eq!((path[0], path[path.len() - 1]), (flow.from, flow.to));
            prop_assert!(path.windows(2).all(|pair| linked(network, pair[0], pair[1])));
            let distinct: BTreeSet<u16> = path.iter().copied().collect();
            prop_assert_eq!(distinct.len(), path.len());
            for node in &path[1..path.len() - 1] {
                prop_assert!(!network.nodes[usize::from(*node)].is_end_system());
            }
        }
    }

    #[test]
    fn ports_are_unique_and_addresses_follow_the_index((parents, homes) in trees()) {
        let network = good(&outline(&parents, &homes, "")).network;
        let ports: Vec<_> = network.links.iter().flat_map(|link| link.ends).collect();
        prop_assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), ports.len());
        for (index, node) in network.nodes.iter().enumerate() {
            let [high, low] = (index as u16 + 1).to_be_bytes();
            prop_assert_eq!(node.mac.0, [0x02, 0x57, 0x47, 0x00, high, low]);
            prop_assert_eq!(node.ipv4, [198, 18, high, low]);
            let mut own: Vec<u16> = ports.iter().filter(|p| usize::from(p.node) == index).map(|p| p.port).collect();
            own.sort_unstable();
            prop_assert_eq!(own.clone(), (1..=own.len() as u16).collect::<Vec<_>>());
        }
    }

    /// One more link between two switches of a tree closes a loop: it is refused where a flow has two ways then, and only
    /// there; with a rule the flow takes the shorter one.
    #[test]
    fn any_further_link_is_a_loop((parents, homes) in trees(), a in 0_usize..9, b in 0_usize..9) {
        let switches = parents.len() + 1;
        let (a, b) = (a % switches, b % switches);
        prop_assume!(a != b);
        let text = outline(&parents, &homes, &format!("  link between='sw{a} sw{b}' rate=1Gbit/s\n"));
        let circle = between(&parents, a, b);
        let two_ways = homes.windows(2).any(|pair| !between(&parents, pair[0], pair[1]).is_disjoint(&circle));
        if two_ways {
            let said = shown(&refused(&text));
            prop_assert!(said.contains("forwarding loop") || said.contains("already joined"), "{}", said);
        } else {
            good(&text);
        }
        let shortest = good(&text.replacen(" network\n", " network routing=shortest\n", 1));
        for (flow, pair) in shortest.runs[0].flows.iter().zip(homes.windows(2)) {
            let distance = |x: usize, y: usize| between(&parents, x, y).len();
            let [x, y] = [pair[0], pair[1]];
            let over = |p, q| distance(x, p) + 1 + distance(q, y);
            let least = distance(x, y).min(over(a, b)).min(over(b, a));
            prop_assert_eq!(flow.routes[0].hops.len(), least + 2);
        }
    }

    /// Taking any link between switches away leaves two parts, and every flow between them without a route.
    #[test]
    fn a_cut_is_named((parents, homes) in trees(), cut in 0_usize..8) {
        prop_assume!(!parents.is_empty());
        let cut = cut % parents.len();
        let whole = outline(&parents, &homes, "");
        let gone = format!("  link between='sw{} sw{}' rate=1Gbit/s\n", cut + 1, parents[cut]);
        // Members of the part below the cut link, by the parents alone.
        let mut below = BTreeSet::from([cut + 1]);
        for (i, parent) in parents.iter().enumerate() {
            if i != cut && below.contains(parent) {
                below.insert(i + 1);
            }
        }
        let broken = homes.windows(2).filter(|pair| below.contains(&pair[0]) != below.contains(&pair[1])).count();
        let spare = "  end-system name=x0\n  end-system name=x1\n";
        let anchors = format!("  link between='x0 sw{}' rate=1Gbit/s\n  link between='x1 sw{}' rate=1Gbit/s\n", cut + 1, parents[cut]);
        let text = whole.replacen(&gone, &format!("{spare}{anchors}"), 1);
        match wg_plan::compile(&crate::outline::tree(&text)) {
            Ok(_) => prop_assert_eq!(broken, 0),
            Err(diagnostics) => {
                prop_assert_eq!(diagnostics.len(), broken, "{}", shown(&diagnostics));
                prop_assert!(diagnostics.iter().all(|d| d.message.starts_with("there is no route")));
            }
        }
    }
}

#[test]
fn chosen_ports_are_reserved_first() {
    let text = outline(&[], &[0, 0], "").replacen("'e1 sw0'", "'e1 sw0:1'", 1);
    let links = good(&text).network.links;
    assert_eq!(links.iter().map(|link| link.ends[1].port).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_cable_without_a_switch_is_a_network() {
    let text = "test name=cable\n network\n  end-system name=a\n  end-system name=b\n  link between='a b' rate=1Gbit/s\n \
                flows\n  flow id=1 protocol=udp from=a to=b\n tasks\n  send flow=1 period=1ms payload=64B count=1\n  receive flow=1\n";
    assert_eq!(good(text).runs[0].flows[0].routes[0].nodes().collect::<Vec<_>>(), [0, 1]);
}
