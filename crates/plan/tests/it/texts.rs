//! Trees and texts nobody meant: an answer, never a panic.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use wg_plan::{Campaign, Diagnostic, Element, NoCaptures, Protocol, Scheduling, compile, compile_json};

use crate::outline::{BASE, tree};

fn answer(text: &str) -> Result<Campaign, Vec<Diagnostic>> {
    let mut answer: BTreeMap<String, Value> =
        serde_json::from_str(&compile_json(text, &NoCaptures, Scheduling::Done)).expect("an object");
    if let Some(campaign) = answer.remove("campaign") {
        assert!(answer.is_empty());
        return Ok(serde_json::from_value(campaign).expect("a campaign"));
    }
    assert!(answer.remove("beyond").is_some_and(|more| more.is_u64()));
    let diagnostics = answer.remove("diagnostics").expect("one of two");
    assert!(answer.is_empty());
    Err(serde_json::from_value(diagnostics).expect("a list"))
}

#[test]
fn json_says_what_compile_says() {
    let good = tree(BASE);
    assert_eq!(answer(&serde_json::to_string(&good).unwrap()), compile(&good));
    let mut bad = good;
    bad.children.clear();
    assert_eq!(answer(&serde_json::to_string(&bad).unwrap()), compile(&bad));
    for none in ["", "null", "[]", "{", "{\"tag\": 1}", "\u{0}", &"[".repeat(100_000)] {
        assert_eq!(answer(none).unwrap_err()[0].line, 0, "{none:.20}");
    }
    let deep = format!("{}{}", "{\"tag\":\"test\",\"children\":[".repeat(10_000), "]}".repeat(10_000));
    assert!(answer(&deep).is_err());
}

/// Values an author or a vandal may write into any attribute.
#[expect(clippy::too_many_lines, reason = "a table")]
fn values() -> impl Strategy<Value = String> {
    let picked = vec![
        "",
        " ",
        "0",
        "1",
        "-1",
        "2",
        "10",
        "20",
        "65535",
        "4294967295",
        "4294967296",
        "99999999999999999999",
        "2ms",
        "0ns",
        "1ns",
        "2562047h",
        "106min",
        "64B",
        "0B",
        "1500B",
        "16MiB",
        "1Gbit/s",
        "0bit/s",
        "400Gbit/s",
        "50%",
        "100%",
        "1ppm",
        "0%",
        "429496%",
        "mac",
        "sensor",
        "other",
        "sw1",
        "mac sw1",
        "sw1 sw1",
        "mac:1 sw1:1024",
        "udp",
        "raw",
        "loss",
        "reorder",
        "misdirect",
        "payload",
        "period",
        "load",
        "rate",
        "through",
        "latency.p99",
        "lost",
        "0-4294967295",
        "4294967295",
        "5 5",
        "2ms 3ms",
        "1ms",
        "128ms",
        "100s",
        "-5us",
        "-20ppm",
        "100000ppm",
        "64ms",
        "1518B",
        "rc",
        "tt",
        "be",
        "both",
        "B",
        "sw1:2",
        "sw1:3",
        "sensor other",
        "1e-9",
        "0%:1us 100%:100s",
        "65535",
        "1s",
        "udp raw",
        "é",
        "\u{0}",
    ];
    prop_oneof![prop::sample::select(picked).prop_map(str::to_owned), "\\PC{0,12}"]
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn mutate(element: &mut Element, which: &mut usize, attribute: usize, value: &str) {
    if *which == 0 {
        let names = [
            "name",
            "between",
            "rate",
            "delay",
            "buffer",
            "id",
            "protocol",
            "from",
            "to",
            "deadline",
            "vlan",
            "flow",
            "period",
            "payload",
            "count",
            "offset",
            "on",
            "through",
            "sequence",
            "kind",
            "load",
            "burst",
            "of",
            "values",
            "times",
            "measure",
            "at-most",
            "at-least",
            "warm-up",
            "duration",
            "drain",
            "seed",
            "fill",
            "bag",
            "lmax",
            "vl",
            "window",
            "early",
            "late",
            "skew-max",
            "raster",
            "raster-others",
            "network",
            "networks",
            "host",
            "spacing",
            "rate-limit",
            "sub-links",
            "sub-link",
            "distribution",
            "at",
            "until",
            "port",
            "sent-by",
            "by",
            "share",
            "link",
            "forwarding-mode",
            "pacing",
            "switch",
            "drift",
            "wander",
            "granularity",
            "snap",
            "length",
            "queue",
            "jitter",
            "priority",
            "ports",
        ];
        let name = element.attributes.keys().nth(attribute).cloned();
        let name = name.unwrap_or_else(|| names[attribute % names.len()].to_owned());
        element.attributes.insert(name, value.to_owned());
    }
    *which = which.wrapping_sub(1);
    for child in &mut element.children {
        mutate(child, which, attribute, value);
    }
}

const LARGE: &str = "\
test name=large seed=1 bench=sim
 network host=ideal
  end-system name=mac
   clock offset=-5us drift=-20ppm wander=3ppb granularity=8ns
    temperature at=1s drift=5ppm
   timestamps application-error=10ns wire-error='0%:-20ns 100%:60ns' read-cost='0%:20ns 100%:90ns' subtract-read-cost=least
   event period=1s duration=1ms latency=16us ramp-to=150us threads=receive
  end-system name=sensor host=tuned
   host interrupts=coalesced interrupt-wait=50us interrupt-frames=8 send-wake-up='0%:1us 100%:2us' ring=64
  end-system name=other
  end-system name=h1
  end-system name=h2
  switch name=sw1 kind=mixed-criticality forwarding-mode=cut-through integration=shuffling raster=50us raster-others=2
   vlan id=0 ports='1 2 3'
   vlan id=5 ports='1 2'
  switch name=sw2 kind=arinc664 policing=frames shared-buffer=1MiB delay='0%:1us 100%:2us' mixed-rate-delay=3us line-drift=-40ppm interframe-gap=11B longest-frame=9018B
   own-frames period=2s frame=100B ports='1 2'
  hub name=hub delay=460ns
  link between='mac sw1' rate=1Gbit/s
  link between='sensor sw1' rate=1Gbit/s
  link between='other sw1' rate=1Gbit/s
  link between='mac sw2' rate=1Gbit/s network=B
  link between='sensor sw2' rate=1Gbit/s network=B
  link between='h1 hub' rate=10Mbit/s
  link between='h2 hub' rate=10Mbit/s
 flows
  flow id=10 protocol=udp from=mac to=sensor deadline=1s
  flow id=20 protocol=raw from=mac to=sensor vlan=5
  flow id=30 protocol=rc from=mac to=sensor bag=1ms lmax=200B sub-links=2 skew-max=4ms networks=both
  flow id=40 protocol=tt from=mac to='sensor other' period=10ms offset=1ms early=2us late=1ms window=250us
   window port=sw1:2 offset=1500us length=300us
  flow id=50 protocol=be from=h1 to=h2
 tasks warm-up=5ms duration=1s drain=1s
  send flow=10 period=2ms payload=64B distribution=exponential
  receive flow=10 on=sensor
  send flow=20 period=2ms payload=64B count=10 offset=1ms fill=random burst=2 spacing=20us
  relay flow=20 on=sensor through=task
   fault kind=loss sequence=5
   fault kind=misdirect sequence=7-8 to=other
  send flow=30 period=5ms payload=64B sub-link=2
  receive flow=30
  send flow=40 period=10ms payload=64B
  receive flow=40
  send flow=50 load=1% payload=64B rate-limit=1Mbit/s
  receive flow=50
  inject on=other to=sensor load=50% payload=100B burst=2
  capture on=sw1 snap=96B
 faults
  bit-errors link='mac sw1' rate=1e-9 sent-by=mac from=1ms until=1s
  wrong-length link='mac sw2' sent-by=sw2 length=60B share=1%
  loss link='mac sw1' flow=30 sequence='3-5 8'
  delay link='mac sw1' share=1% by=1ms
  cut link='sensor sw1' from=100ms until=200ms
  babble flow=30 from=1ms until=2ms load=10% length=64B
  restart switch=sw2 from=100ms until=200ms
  step-clock on=mac at=5ms by=-1us
 sweep
  axis of=payload values='64B 128B' flow=10
  axis of=load values='0% 5%'
  repeat times=2
 limits
  limit flow=20 measure=rtt.p99 at-most=1s
  limit measure=lost at-most=0
";

#[test]
fn the_large_test_is_good() {
    assert_eq!(compile(&tree(LARGE)).map(|campaign| campaign.runs.len()), Ok(8));
}

fn trees() -> impl Strategy<Value = Element> {
    let text = prop_oneof![
        prop::sample::select(vec![
            "test", "network", "flows", "flow", "send", "tasks", "relay", "fault", "sweep", "axis"
        ])
        .prop_map(str::to_owned),
        "[a-z]{0,6}"
    ];
    let attributes = prop::collection::btree_map("name|flow|id|of|values|between|[a-z]{1,4}", values(), 0..5);
    let leaf = (text, any::<u32>(), attributes).prop_map(|(tag, line, attributes)| Element {
        tag,
        line,
        attributes,
        children: Vec::new(),
    });
    leaf.prop_recursive(4, 40, 6, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..6)).prop_map(|(mut element, children)| {
            element.children = children;
            element
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn any_text_gets_an_answer(text in "\\PC*") {
        prop_assert!(answer(&text).is_err());
    }

    #[test]
    fn any_tree_gets_an_answer(mut tree in trees()) {
        tree.tag = "test".to_owned();
        prop_assert!(compile(&tree).is_err());
    }

    /// A few attributes of a large good test overwritten: accepted or refused with reasons, and if accepted,
    /// everything a bench relies on holds.
    #[test]
    fn a_damaged_test_gets_an_answer(
        changes in prop::collection::vec((0_usize..64, 0_usize..73, values()), 1..4)
    ) {
        let mut tree = tree(LARGE);
        for (which, attribute, value) in &changes {
            mutate(&mut tree, &mut which.clone(), *attribute, value);
        }
        match compile(&tree) {
            Err(diagnostics) => {
                prop_assert!(!diagnostics.is_empty());
                prop_assert!(diagnostics.iter().all(|d| !d.message.is_empty() && !d.cure.is_empty()));
                prop_assert!(diagnostics.is_sorted_by_key(|d| d.line));
            }
            Ok(campaign) => {
                prop_assert!(!campaign.runs.is_empty());
                for run in &campaign.runs {
                    prop_assert_eq!(run.sends.len(), run.flows.len());
                    let ends: usize = run.flows.iter().map(|flow| flow.receivers().count()).sum();
                    prop_assert_eq!(run.receives.len() + run.relays.len(), ends);
                    for send in &run.sends {
                        prop_assert!(send.period.as_picos() > 0 && send.count > 0);
                    }
                    for flow in &run.flows {
                        prop_assert_eq!(flow.virtual_link.is_some(), flow.protocol == Protocol::Rc);
                        prop_assert_eq!(flow.schedule.is_some(), flow.protocol == Protocol::Tt);
                    }
                    prop_assert!(run.incidents.is_sorted_by_key(|incident| incident.at));
                    for inject in &run.injects {
                        prop_assert!(inject.interval.as_picos() > 0 && inject.load_ppm > 0);
                    }
                }
            }
        }
    }
}
