//! Cost of building forwarding tables.

use wg_core::frame::NetworkId;
use wg_plan::{HostModel, Link, Node, Receive};

use super::*;

#[test]
fn the_cycle_is_the_least_all_periods_divide() {
    assert_eq!(least_common_multiple(4, 6), Some(12));
    assert_eq!(least_common_multiple(7, 7), Some(7));
    assert_eq!(least_common_multiple(i64::MAX, i64::MAX - 1), None);
    assert_eq!(least_common_multiple(0, 0), None);
}

/// Islands of two end systems at a shaping switch, each with one flow whose copies are made and removed at its ends.
fn islands(count: u16) -> (Network, Run) {
    let (mut nodes, mut links, mut flows) = (Vec::new(), Vec::new(), Vec::new());
    for island in 0..count {
        let (from, switch, to) = (3 * island, 3 * island + 1, 3 * island + 2);
        let mut model = SwitchModel::cots(1 << 20);
        model.tsn = vec![wg_plan::PortTsn::default()];
        for (index, kind) in [
            (from, NodeKind::EndSystem { host: HostModel::ideal() }),
            (switch, NodeKind::Switch(model)),
            (to, NodeKind::EndSystem { host: HostModel::ideal() }),
        ] {
            nodes.push(Node::new(index, format!("n{index}"), kind));
        }
        for (node, port) in [(from, 1), (to, 2)] {
            links.push(Link {
                ends: [Attachment { node, port: 1 }, Attachment { node: switch, port }],
                rate: LineRate::new(1_000_000_000).expect("a rate"),
                delay: Span::ZERO,
                network: NetworkId::A,
            });
        }
        flows.push((island + 1, [from, switch, to]));
    }
    let network = Network { nodes, links };
    let frer = |[from, _, to]: [u16; 3]| Frer {
        replicate_at: from,
        eliminate_at: to,
        intermediate: false,
        history_length: None,
        reset: Span::from_millis(2_000),
        individual: None,
        latent_errors: None,
    };
    let run = Run {
        receives: flows.iter().map(|(id, [_, _, to])| Receive { flow: *id, on: *to }).collect(),
        flows: flows
            .iter()
            .map(|&(id, nodes)| {
                let route = network.route(NetworkId::A, &nodes).expect("neighbours");
                Flow { frer: Some(frer(nodes)), ..Flow::plain(id, Protocol::Udp, route) }
            })
            .collect(),
        ..Run::default()
    };
    (network, run)
}

/// A node looks only at flows listed for it: were all flows listed for each, or each looked through for all, the work
/// of building would grow with the product of both.
#[test]
fn no_node_looks_at_the_flows_of_others() {
    for count in [1, 10, 1_000] {
        let (network, run) = islands(count);
        let ports = crate::build::ports(&network).expect("ports");
        let tables = Tables::new(&network, &run, &ports);
        let total = |lists: &mut dyn Iterator<Item = usize>| lists.sum::<usize>();
        let count = usize::from(count);
        assert_eq!(total(&mut tables.own.iter().map(Vec::len)), 2 * count, "both ends");
        assert_eq!(
            total(&mut tables.copied.iter().map(Vec::len)),
            2 * count,
            "where copies are made and removed"
        );
        assert_eq!(total(&mut tables.entering.iter().map(Vec::len)), count, "the switch that shapes");
        assert_eq!(total(&mut tables.passages.iter().map(Vec::len)), count, "the switch");
        assert_eq!(total(&mut tables.flows.values().map(Vec::len)), count, "one of each number");
    }
}
