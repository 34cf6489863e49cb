//! Two redundant networks, multicast, hubs: which way frames take on each.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wg_plan::{NetworkId, NodeKind};

use crate::outline::{BASE, good, refused, shown};

/// Switches of one network: `i > 0` hangs on a switch before it; end system `k` hangs on switch `homes[k]`.
#[derive(Clone, Debug)]
struct Side {
    parents: Vec<usize>,
    homes: Vec<usize>,
}

const ENDS: usize = 6;

fn sides() -> impl Strategy<Value = Side> {
    (1_usize..6).prop_flat_map(|switches| {
        let parents: Vec<_> = (1..switches).map(|i| 0..i).collect();
        (parents, prop::collection::vec(0..switches, ENDS))
            .prop_map(|(parents, homes)| Side { parents, homes })
    })
}

fn nodes(text: &mut String, side: &Side, name: &str, network: &str) {
    for i in 0..=side.parents.len() {
        *text += &format!("  switch name={name}{i} kind=arinc664\n");
    }
    for (i, parent) in side.parents.iter().enumerate() {
        let i = i + 1;
        *text += &format!("  link between='{name}{i} {name}{parent}' rate=1Gbit/s network={network}\n");
    }
    for (k, home) in side.homes.iter().enumerate() {
        *text += &format!("  link between='e{k} {name}{home}' rate=1Gbit/s network={network}\n");
    }
}

fn outline(a: &Side, b: &Side, to: &BTreeSet<usize>) -> String {
    let mut text = "test name=networks\n network\n".to_owned();
    for k in 0..ENDS {
        text += &format!("  end-system name=e{k}\n");
    }
    nodes(&mut text, a, "a", "A");
    nodes(&mut text, b, "b", "B");
    let to: Vec<String> = to.iter().map(|k| format!("e{k}")).collect();
    text += &format!(" flows\n  flow id=1 protocol=rc from=e0 to='{}' bag=1ms\n", to.join(" "));
    text +=
        "  flow id=2 protocol=udp from=e0 to=e1\n  flow id=3 protocol=be from=e0 to=e1 networks=B\n tasks\n";
    for id in 1..4 {
        text += &format!("  send flow={id} period=2ms payload=64B count=1\n  receive flow={id}\n");
    }
    text
}

proptest! {
    #[test]
    fn every_copy_takes_its_own_network_to_every_receiver(
        a in sides(), b in sides(), to in prop::collection::btree_set(1..ENDS, 1..ENDS)
    ) {
        let campaign = good(&outline(&a, &b, &to));
        let (network, run) = (&campaign.network, &campaign.runs[0]);
        let flow = &run.flows[0];
        prop_assert_eq!(flow.network, None);
        prop_assert_eq!(flow.receivers().collect::<BTreeSet<_>>(), to.iter().map(|k| *k as u16).collect());
        let mut reached = BTreeSet::new();
        for route in &flow.routes {
            let (side, way) = (route.network, route.nodes().collect::<Vec<_>>());
            prop_assert_eq!(way[0], flow.from);
            prop_assert!(reached.insert((side, way[way.len() - 1])), "twice");
            for pair in way.windows(2) {
                let joined = network.links.iter().any(|link| {
                    let ends = link.ends.map(|end| end.node);
                    link.network == side && (ends == [pair[0], pair[1]] || ends == [pair[1], pair[0]])
                });
                prop_assert!(joined, "{:?} on {:?}", pair, side);
            }
            prop_assert_eq!(way.iter().collect::<BTreeSet<_>>().len(), way.len());
            let inner = &way[1..way.len() - 1];
            let switches = inner.iter().all(|node| matches!(network.nodes[usize::from(*node)].kind, NodeKind::Switch(_)));
            prop_assert!(switches);
        }
        let both = [NetworkId::A, NetworkId::B];
        let wanted = both.into_iter().flat_map(|side| to.iter().map(move |k| (side, *k as u16)));
        prop_assert_eq!(reached, wanted.collect::<BTreeSet<_>>());
        prop_assert_eq!((run.flows[1].network, run.flows[2].network), (Some(NetworkId::A), Some(NetworkId::B)));
        prop_assert_eq!(run.receives.iter().filter(|receive| receive.flow == 1).count(), to.len());
        for link in &network.links {
            for end in link.ends.iter().filter(|end| network.nodes[usize::from(end.node)].is_end_system()) {
                prop_assert_eq!(end.port, if link.network == NetworkId::A { 1 } else { 2 });
            }
        }
    }

    /// One more link between two switches of a network closes a loop there, and only there.
    #[test]
    fn loops_are_named_with_their_network(a in sides(), mut b in sides(), i in 0_usize..9, k in 0_usize..9) {
        let switches = b.parents.len() + 1;
        prop_assume!(switches > 1);
        let i = i % switches;
        let k = (i + 1 + k % (switches - 1)) % switches;
        // The flows lead from one end of the link to the other.
        (b.homes[0], b.homes[1]) = (i, k);
        let text = outline(&a, &b, &BTreeSet::from([1]));
        let extra = format!("  link between='b{i} b{k}' rate=1Gbit/s network=B\n flows");
        let said = shown(&refused(&text.replacen(" flows", &extra, 1)));
        let named = said.contains("forwarding loop on network B") || said.contains("already joined on network B");
        prop_assert!(named, "{}", said);
    }
}

#[test]
fn ends_on_different_networks_have_no_route() {
    let text = "test name=apart\n network\n  end-system name=a\n  end-system name=b\n  end-system name=c\n  \
                switch name=s\n  switch name=t\n  link between='a s' rate=1Gbit/s\n  \
                link between='c s' rate=1Gbit/s\n  link between='b t' rate=1Gbit/s network=B\n flows\n  \
                flow id=1 protocol=udp from=a to=b\n tasks\n  send flow=1 period=1ms payload=64B count=1\n  receive flow=1\n";
    let said = refused(text);
    assert_eq!(said.len(), 1, "{}", shown(&said));
    assert_eq!(said[0].message, "there is no route from \"a\" to \"b\"");
}

#[test]
fn a_hub_is_a_network_of_its_own() {
    let text = "test name=hub\n network\n  end-system name=a\n  end-system name=b\n  hub name=h\n  \
                link between='a h' rate=10Mbit/s\n  link between='b h' rate=10Mbit/s\n flows\n  \
                flow id=1 protocol=udp from=a to=b\n tasks\n  send flow=1 period=1ms payload=64B count=1\n  relay flow=1\n";
    assert_eq!(good(text).runs[0].flows[0].routes[0].nodes().collect::<Vec<_>>(), [0, 2, 1]);
    let far = text.replacen("rate=10Mbit/s", "rate=10Mbit/s delay=30us", 1);
    let warnings = good(&far).warnings;
    assert!(warnings.iter().any(|warning| warning.contains("slot time")), "{warnings:?}");
}

/// What the core of a hub would refuse, the test is refused for.
#[test]
fn a_hub_longer_than_its_signals_is_refused() {
    let test = |delay: &str| {
        format!(
            "test name=hub\n network\n  end-system name=a\n  end-system name=b\n  hub name=h\n  \
             link between='a h' rate=10Mbit/s delay={delay}\n  link between='b h' rate=10Mbit/s\n flows\n  \
             flow id=1 protocol=udp from=a to=b\n tasks\n  send flow=1 period=10ms payload=64B count=3\n  receive flow=1\n"
        )
    };
    good(&test("102us"));
    let said = shown(&refused(&test("103us")));
    assert!(
        said.contains("a delay of 103us at hub \"h\" is longer than 1024 bit times (limit: 102400ns)"),
        "{said}"
    );
}

#[test]
fn a_clock_that_is_set_beyond_all_time_is_refused() {
    let test = |steps: u32| {
        let each = (0..steps).map(|k| format!("  step-clock on=mac at={}ms by=86400s\n", k + 1));
        format!("{BASE} faults\n{}", each.collect::<String>())
    };
    good(&test(50));
    let said = shown(&refused(&test(51)));
    assert!(said.contains("the clock of \"mac\" is set by too much in all"), "{said}");
}
