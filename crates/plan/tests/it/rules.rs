//! One case per rule: what is changed in a good test, on which line it is reported, and in which words.

use std::collections::BTreeSet;

use crate::outline::{BASE, changed, good, refused, shown};

/// Each case must give exactly one diagnostic, on this line, with this text in it.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_rule_refuses_what_it_is_for() {
    let send = "send flow=10 period=2ms payload=64B count=1000";
    let relay = "  relay flow=20";
    let limit = "limit measure=lost at-most=0";
    let other = "link between='other sw1' rate=1Gbit/s";
    let cases: &[(&str, &str, u32, &str)] = &[
        // test
        ("name=base ", "", 1, "name is missing"),
        ("name=base", "name=-", 1, "name \"-\" is not a name of a test"),
        ("seed=1", "seed=x", 1, "seed \"x\" is not a whole number"),
        // network
        ("end-system name=other", "end-system name=o:o", 5, "is not a name"),
        (
            "  switch name=sw1",
            "  switch name=sw1\n  end-system name=mac",
            7,
            "already the name of a node on line 3",
        ),
        (
            "switch name=sw1",
            "switch name=sw1 kind=tsn",
            6,
            "kind \"tsn\" is not one of the choices; write cots",
        ),
        ("switch name=sw1", "switch name=sw1 buffer=1B", 6, "buffer \"1B\" is out of range (limit: 2KiB to"),
        (other, "link between='other sw9' rate=1Gbit/s", 9, "there is no node \"sw9\""),
        (other, "link between=other rate=1Gbit/s", 9, "names 1 ends"),
        (other, "link between='other other' rate=1Gbit/s", 9, "joins a node to itself"),
        (other, "link between='other sw1:1025' rate=1Gbit/s", 9, "port \"1025\" is out of range"),
        (other, "link between='other:2 sw1' rate=1Gbit/s", 9, "is not on network A"),
        (
            other,
            "link between='other sw1' rate=999kbit/s",
            9,
            "is no rate of an Ethernet link (limit: 1Mbit/s",
        ),
        (
            other,
            "link between='other sw1' rate=401Gbit/s",
            9,
            "is no rate of an Ethernet link (limit: 1Mbit/s",
        ),
        (
            other,
            "link between='other sw1' rate=1Gbit/s delay=11s",
            9,
            "delay \"11s\" is out of range (limit: 10s)",
        ),
        ("  link between='other sw1' rate=1Gbit/s\n", "", 5, "the node has no link"),
        (
            other,
            "link between='other sw1' rate=1Gbit/s\n  link between='other sw1:7' rate=1Gbit/s",
            10,
            "already has a link on line 9",
        ),
        ("between='sensor sw1'", "between='sensor sw1:2'", 0, ""),
        // flows
        ("id=10 protocol=udp from=mac", "id=10 protocol=udp from=sw1", 11, "from \"sw1\" is a switch"),
        (
            "id=10 protocol=udp from=mac to=sensor",
            "id=10 protocol=udp from=mac to='sensor mac'",
            11,
            "from \"mac\" to \"mac\"",
        ),
        ("id=10 protocol=udp from=mac", "id=10 protocol=udp from=MAC", 11, "write \"mac\", as it is spelt"),
        ("id=10 protocol=udp", "id=10 protocol=tcp", 11, "protocol \"tcp\" is not one of the choices"),
        ("id=10 protocol=udp", "id=10 deadline=0s protocol=udp", 11, "deadline \"0s\" is zero"),
        (
            "id=10 protocol=udp",
            "id=10 vlan=3 protocol=udp",
            11,
            "flow 10 has a VLAN tag, but protocol \"udp\"",
        ),
        (
            "id=20 protocol=raw",
            "id=20 vlan=0 protocol=raw",
            12,
            "vlan \"0\" is out of range (limit: 1 to 4094)",
        ),
        // tasks
        ("warm-up=5ms", "warm-up=5", 13, "warm-up \"5\" has no unit"),
        ("warm-up=5ms", "warm-up=101h drain=11min", 13, "drain \"11min\" is out of range"),
        ("offset=1ms", "offset=2401h", 13, "a run of this test lasts 100 days (limit: 100 days)"),
        (send, "send flow=10 period=0ns payload=64B count=1000", 14, "period \"0ns\" is zero"),
        (send, "send flow=10 period=-2ms payload=64B count=1000", 14, "period \"-2ms\" is negative"),
        (send, "send flow=10 period=671ns payload=18B count=1000", 14, "(limit: at least 672ns)"),
        (
            send,
            "send flow=10 period=2ms payload=1473B count=1000",
            14,
            "does not fit into one frame (limit: 12B to 1472B)",
        ),
        (send, "send flow=10 period=2ms payload=11B count=1000", 14, "cannot hold the 12B probe header"),
        (
            send,
            "send flow=10 period=2ms payload=64B count=0",
            14,
            "count \"0\" is out of range (limit: 1 to 4294967295)",
        ),
        (send, "send flow=10 period=2ms payload=64B", 14, "nothing says how many messages flow 10 sends"),
        (send, "send flow=10 period=2ms payload=64B count=1000 fill=zero", 14, "fill \"zero\""),
        (
            send,
            "send flow=10 period=2ms payload=64B count=1\n  send flow=10 period=2ms payload=64B count=1",
            15,
            "already has a sender on line 14",
        ),
        ("  receive flow=10\n", "", 14, "flow 10 is sent but neither received nor relayed"),
        ("receive flow=10", "receive flow=10\n  receive flow=10", 16, "already has a receiver on line 15"),
        ("receive flow=10", "receive flow=10\n  relay flow=10", 16, "already has a receiver on line 15"),
        ("receive flow=10", "receive flow=10 on=mac", 15, "is not where flow 10 ends; write on=\"sensor\""),
        (
            "receive flow=10",
            "receive flow=10\n  receive flow=30",
            16,
            "there is no flow 30; write one of 10, 20",
        ),
        (
            "  flow id=20",
            "  flow id=30 protocol=raw from=mac to=other\n  flow id=20",
            12,
            "flow 30 is never sent",
        ),
        // inject
        (relay, "  relay flow=20\n  inject on=other to=sensor load=100.0001%", 18, "more than the link"),
        (relay, "  relay flow=20\n  inject on=other to=sw1 load=10%", 18, "to \"sw1\" is a switch"),
        (
            relay,
            "  relay flow=20\n  inject on=other to=sensor load=10% payload=1473B",
            18,
            "limit: 12B to 1472B",
        ),
        (
            relay,
            "  relay flow=20\n  inject on=other to=sensor load=10% burst=10001",
            18,
            "burst \"10001\" is out of range",
        ),
        // faults
        (
            relay,
            "  relay flow=20\n   fault kind=loss sequence=5,7",
            18,
            "sequence \"5,7\" is not a whole number",
        ),
        (
            relay,
            "  relay flow=20\n   fault kind=loss sequence=1000",
            18,
            "flow 20 has no message 1000 (limit: 0 to 999)",
        ),
        (
            relay,
            "  relay flow=20\n   fault kind=reorder sequence=999",
            18,
            "is the last and has no successor (limit: 0 to 998)",
        ),
        (relay, "  relay flow=20\n   fault kind=reorder sequence='5 6'", 18, "message 6 already has a fault"),
        (relay, "  relay flow=20\n   fault kind=loss sequence='5-9 9'", 18, "message 9 already has a fault"),
        (
            relay,
            "  relay flow=20\n   fault kind=loss sequence=6\n   fault kind=reorder sequence=5",
            18,
            "message 6 already has a fault on line 19",
        ),
        (relay, "  relay flow=20\n   fault kind=misdirect sequence=6", 18, "needs a to"),
        (
            relay,
            "  relay flow=20\n   fault kind=misdirect sequence=6 to=sensor",
            18,
            "is an end of flow 20 itself",
        ),
        (
            relay,
            "  relay flow=20\n   fault kind=loss sequence=6 to=other",
            18,
            "only a misdirected message has a to",
        ),
        // limits
        (limit, "limit measure=lost", 19, "the limit has no bound"),
        (limit, "limit measure=lost at-most=1 at-least=0", 19, "two bounds"),
        (limit, "limit measure=lost at-most=1ms", 19, "at-most \"1ms\" is no number of messages"),
        (
            limit,
            "limit measure=latency at-most=1ms",
            19,
            "measure \"latency\" is unknown; write latency. and one of min",
        ),
        (limit, "limit measure=latency.max at-most=1Mbit/s", 19, "is a rate, but a time is wanted"),
        (limit, "limit measure=goodput at-least=1ms", 19, "is a time, but a rate is wanted"),
        (limit, "limit measure=loss at-most=101%", 19, "more than everything"),
        (limit, "limit measure=availability at-least=99.9999999%", 0, ""),
        (limit, "limit measure=loss at-most=-1%", 19, "at-most \"-1%\" is negative"),
        (limit, "limit measure=ipdv.max at-least=-1ms", 0, ""),
        (limit, "limit measure=ipdv.sd at-most=-1ms", 19, "at-most \"-1ms\" is negative"),
        (limit, "limit measure=ipdv.max at-most=--1ms", 19, "at-most \"--1ms\" is negative"),
        (limit, "limit measure=ipdv.max at-most=-9999999h", 19, "is too large"),
        (limit, "limit measure=offered_load at-least=0.5k/s", 0, ""),
        (limit, "limit measure=offered_load at-least=500", 19, "has no unit; write a number and one of /s"),
        (limit, "limit measure=reorder_extent.mean at-most=1.5", 0, ""),
        (limit, "limit measure=reorder_extent.mean at-most=1.", 19, "is a mean of counts"),
        (limit, "limit measure=reorder_extent.max at-most=1.5", 19, "is a count"),
        (limit, "limit flow=10 measure=tardiness.max at-most=1ms", 19, "flow 10 has no deadline"),
        (
            limit,
            "limit flow=10 measure=pair_latency.back_tx_app-back_rx_app.max at-most=1ms",
            19,
            "flow 10 is not relayed",
        ),
        (limit, "limit measure=latncy.max at-most=1ms", 19, "did you mean latency.max"),
        (limit, "limit flow=10 measure=rtt.max at-most=1ms", 19, "flow 10 is not relayed"),
        (limit, "limit flow=10 measure=late at-most=1", 19, "flow 10 has no deadline"),
        (limit, "limit flow=30 measure=lost at-most=1", 19, "there is no flow 30"),
        (limit, "limit flow='10 30' measure=lost at-most=1", 19, "there is no flow 30"),
        (limit, "limit flow='10 10' measure=lost at-most=1", 19, "already has this bound"),
        (
            limit,
            "limit flow='10 20' measure=rtt.p95 at-most=1ms",
            19,
            "flow 10 is not relayed, so it has no rtt.p95",
        ),
        (limit, "limit flow='10 20' measure=latency.p99.999 at-most=1ms", 0, ""),
        (limit, "limit flow=10 measure=unplanned at-most=0", 19, "unplanned frames belong to no flow"),
        (
            limit,
            "limit measure=lost at-most=0\n  limit flow=10 measure=lost at-least=1",
            20,
            "no value of lost can meet both",
        ),
    ];
    for (old, new, line, says) in cases {
        let outline = changed(&[(old, new)]);
        if *line == 0 {
            good(&outline);
            continue;
        }
        let diagnostics = refused(&outline);
        let said = shown(&diagnostics);
        assert_eq!(diagnostics.len(), 1, "{new}\n{said}");
        assert_eq!(diagnostics[0].line, *line, "{new}\n{said}");
        assert!(said.contains(says), "{new}\nwanted: {says}\nsaid: {said}");
        assert!(!diagnostics[0].cure.is_empty(), "{said}");
    }
}

#[test]
fn limits_of_the_ranges_are_inside_them() {
    for (old, new) in [
        ("payload=64B", "payload=1472B"),
        ("payload=64B", "payload=12B"),
        ("period=2ms payload=64B", "period=673ns payload=18B"),
        ("id=20 protocol=raw", "id=20 vlan=4094 priority=7 protocol=raw"),
        ("id=10 protocol=udp", "id=10 priority=7 dscp=63 protocol=udp"),
        ("rate=1Gbit/s", "rate=400Gbit/s"),
        ("rate=1Gbit/s", "rate=1Mbit/s"),
        ("  relay flow=20", "  relay flow=20\n   fault kind=reorder sequence='5 7-7 998'"),
        ("  relay flow=20", "  relay flow=20\n   fault kind=loss sequence=0-999"),
        ("  relay flow=20", "  relay flow=20\n  inject on=other to=sensor load=100%"),
        ("warm-up=5ms", "warm-up=99h drain=10min"),
    ] {
        good(&changed(&[(old, new)]));
    }
}

#[test]
fn a_loop_of_switches_names_its_links() {
    let outline = changed(&[
        ("  switch name=sw1", "  switch name=sw1\n  switch name=sw2\n  switch name=sw3"),
        ("link between='sensor sw1'", "link between='sensor sw2'"),
        (
            " flows",
            "  link between='sw1 sw2' rate=1Gbit/s\n  link between='sw2 sw3' rate=1Gbit/s\n  link between='sw1 sw3' rate=1Gbit/s\n flows",
        ),
    ]);
    let said = shown(&refused(&outline));
    assert!(said.contains("forwarding loop sw1 - sw2 - sw3 - sw1, links on lines 12, 13, 14"), "{said}");
}

#[test]
fn flows_that_fit_alone_but_not_together_are_named() {
    // 1538 B of wire in 20 us are 615 Mbit/s; the relayed flow loads both directions of both links.
    let outline = changed(&[
        ("period=2ms payload=64B", "period=20us payload=1472B"),
        ("period=2ms payload=64B", "period=20us payload=1500B"),
    ]);
    let said = shown(&refused(&outline));
    assert_eq!(said.matches("flows 10, 20 together take 1230.4Mbit/s").count(), 2, "{said}");
    assert!(
        said.contains("from \"mac\" to \"sw1\"") && said.contains("from \"sw1\" to \"sensor\""),
        "{said}"
    );
}

#[test]
fn a_relay_loads_the_way_back() {
    let outline = changed(&[
        ("id=10 protocol=udp from=mac to=sensor", "id=10 protocol=udp from=sensor to=mac"),
        ("period=2ms payload=64B", "period=20us payload=1472B"),
        ("period=2ms payload=64B", "period=20us payload=1500B"),
    ]);
    let said = shown(&refused(&outline));
    assert_eq!(said.matches("flows 10, 20 together").count(), 2, "{said}");
    assert!(
        said.contains("from \"sensor\" to \"sw1\"") && said.contains("from \"sw1\" to \"mac\""),
        "{said}"
    );
}

#[test]
fn independent_mistakes_are_all_reported_in_order() {
    let outline = changed(&[
        ("rate=1Gbit/s", "rate=1"),
        ("id=10 protocol=udp from=mac to=sensor", "id=10 protocol=udp from=mac to=nobody"),
        ("period=2ms payload=64B", "period=2 payload=64"),
        ("at-most=0", "at-most=none"),
    ]);
    let lines: Vec<u32> = refused(&outline).iter().map(|diagnostic| diagnostic.line).collect();
    assert_eq!(lines, [7, 11, 14, 14, 19]);
}

#[test]
fn one_broken_node_does_not_break_what_names_it() {
    let outline = changed(&[("end-system name=other", "end-system")]);
    let diagnostics = refused(&outline);
    assert_eq!(diagnostics.len(), 1, "{}", shown(&diagnostics));
}

#[test]
fn what_is_worth_knowing_is_warned_of() {
    for (old, new, says) in [
        ("warm-up=5ms", "duration=1s", "duration \"1s\" stops count \"1000\" after 500 messages"),
        ("warm-up=5ms", "duration=3s", "count \"1000\" ends before duration \"3s\""),
        ("id=10 protocol=udp", "id=10 deadline=1us protocol=udp", "deadline \"1us\" cannot be met"),
        ("measure=lost at-most=0", "measure=latency.p99.9 at-most=1s", "needs 2995"),
        (
            "  relay flow=20",
            "  relay flow=20\n  inject on=mac to=sensor load=10%",
            "flow 10, 20 over the same link",
        ),
        ("count=1000", "count=10000000", "the campaign lasts 5 h 33 min"),
    ] {
        let warnings = good(&changed(&[(old, new)])).warnings;
        assert!(warnings.iter().any(|warning| warning.contains(says)), "{new}: {warnings:?}");
    }
    assert_eq!(good(BASE).warnings, Vec::<String>::new());
}

/// Sizes at which a comparison of each with each would be felt: bounded before it begins.
#[test]
fn bulk_is_refused_before_it_costs() {
    let many = |line: &str, n: usize| format!("{line}\n").repeat(n);
    let flows: String = (1..=70_000)
        .map(|id| format!("  flow id={} protocol=udp from=mac to=sensor\n", id % 65_000 + 30))
        .collect();
    let values: Vec<String> = (1..=20_000).map(|n| format!("{n}B")).collect();
    let sweep = format!(" sweep\n  axis of=payload values='{}'\n flows", values.join(" "));
    let links = format!("{} flows", many("  link between='sw1 sw1' rate=1Gbit/s", 70_000));
    let limits = format!(" limits\n{}", many("  limit measure=sent at-least=1", 70_000));
    for (old, new, says) in [
        ("  flow id=20", format!("{flows}  flow id=20"), "more than 65534 <flow> elements"),
        (" flows", links, "more than 65534 <link> elements"),
        (" limits\n", limits, "more than 65534 <limit> elements"),
        (" flows", sweep, "the axis lists too many values (limit: 10000)"),
    ] {
        let diagnostics = refused(&changed(&[(old, &new)]));
        assert!(diagnostics.len() <= 200);
        assert!(shown(&diagnostics).contains(says), "{}", shown(&diagnostics[..1]));
    }
}

/// `ends` end systems on switches of at most 1024 ports each, in a chain, and so many flows over one of them.
fn large(ends: usize, flows: usize) -> String {
    let switches = ends.div_ceil(1_000);
    let mut text = "test name=large\n network\n".to_owned();
    text.extend((0..switches).map(|k| format!("  switch name=s{k}\n")));
    text.extend((0..ends).map(|k| format!("  end-system name=e{k}\n")));
    text.extend((1..switches).map(|k| format!("  link between='s{} s{k}' rate=100Gbit/s\n", k - 1)));
    text.extend((0..ends).map(|k| format!("  link between='e{k} s{}' rate=100Gbit/s\n", k / 1_000)));
    text += " flows\n";
    let ids = 1..=flows;
    text.extend(ids.clone().map(|id| {
        format!("  flow id={id} protocol=udp from=e{} to=e{}\n", id % ends, (id + 1 + id / ends) % ends)
    }));
    text += " tasks\n";
    text.extend(ids.clone().map(|id| format!("  send flow={id} period=1s payload=64B count=1\n")));
    text.extend(ids.map(|id| format!("  receive flow={id}\n")));
    text
}

#[test]
fn a_network_may_be_as_large_as_it_is_said() {
    let most = large(4_091, 65_534);
    let campaign = good(&most);
    assert_eq!(campaign.network.nodes.len(), 4_096);
    assert_eq!(campaign.runs[0].flows.len(), 65_534);
    let addresses: BTreeSet<_> = campaign.network.nodes.iter().map(|node| (node.mac, node.ipv4)).collect();
    assert_eq!(addresses.len(), 4_096);
    let beyond = refused(&changed(&[(" flows", &(many_nodes(4_093) + " flows"))]));
    let beyond = beyond.iter().find(|one| one.message.starts_with("the network has")).expect("one too many");
    assert_eq!((beyond.line, &*beyond.element), (4_102, "<end-system name=\"x4092\">"));
    assert_eq!(beyond.message, "the network has 4097 end systems, switches and hubs");
    assert_eq!((&*beyond.limit, &*beyond.cure), ("4096", "split the test"));
    let fits = refused(&changed(&[(" flows", &(many_nodes(4_092) + " flows"))]));
    assert!(!shown(&fits).contains("the network has"), "only links are missing: {}", shown(&fits[..1]));
}

fn many_nodes(nodes: usize) -> String {
    (0..nodes).map(|k| format!("  end-system name=x{k}\n")).collect()
}

#[test]
fn a_switch_runs_out_of_ports() {
    let full = |links: usize| {
        let nodes: String = (0..links).map(|i| format!("  switch name=x{i}\n")).collect();
        let links: String = (0..links).map(|i| format!("  link between='x{i} sw1' rate=1Gbit/s\n")).collect();
        changed(&[(" flows", &format!("{nodes}{links} flows"))])
    };
    // Three of its ports are those of the base test.
    let campaign = good(&full(1_021));
    assert_eq!(campaign.network.links.last().map(|link| link.ends[1].port), Some(1_024));
    let diagnostics = refused(&full(1_022));
    assert_eq!(diagnostics.len(), 1);
    let said = diagnostics[0].to_string();
    assert!(said.contains("switch \"sw1\" has no free port (limit: 1024 ports)"), "{said}");
    assert!(said.starts_with("2053: <link between=\"x1021 sw1\">"), "{said}");
}
