//! Trees and texts nobody meant: an answer, never a panic.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;
use wg_plan::{Campaign, Diagnostic, Element, compile, compile_json};

use crate::outline::{BASE, tree};

fn answer(text: &str) -> Result<Campaign, Vec<Diagnostic>> {
    let mut answer: BTreeMap<String, Value> = serde_json::from_str(&compile_json(text)).expect("an object");
    assert_eq!(answer.len(), 1);
    match answer.remove("campaign") {
        Some(campaign) => Ok(serde_json::from_value(campaign).expect("a campaign")),
        None => {
            Err(serde_json::from_value(answer.remove("diagnostics").expect("one of two")).expect("a list"))
        }
    }
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
        "mac:1 sw1:256",
        "udp",
        "raw",
        "drop",
        "swap",
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
        "udp raw",
        "é",
        "\u{0}",
    ];
    prop_oneof![prop::sample::select(picked).prop_map(str::to_owned), "\\PC{0,12}"]
}

fn mutate(element: &mut Element, which: &mut usize, attribute: usize, value: &str) {
    if *which == 0 {
        let names = [
            "name", "between", "rate", "delay", "buffer", "id", "protocol", "from", "to", "deadline", "vlan",
            "flow", "period", "payload", "count", "offset", "on", "through", "sequence", "kind", "load",
            "burst", "of", "values", "times", "measure", "at-most", "at-least", "warm-up", "duration",
            "drain", "seed", "fill",
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
test name=large seed=1
 network
  end-system name=mac
  end-system name=sensor
  end-system name=other
  switch name=sw1
  link between='mac sw1' rate=1Gbit/s
  link between='sensor sw1' rate=1Gbit/s
  link between='other sw1' rate=1Gbit/s
 flows
  flow id=10 protocol=udp from=mac to=sensor deadline=1s
  flow id=20 protocol=raw from=mac to=sensor vlan=5
 tasks warm-up=5ms duration=1s drain=1s
  send flow=10 period=2ms payload=64B
  receive flow=10 on=sensor
  send flow=20 period=2ms payload=64B count=10 offset=1ms fill=random
  relay flow=20 on=sensor through=task
   fault kind=drop sequence=5
   fault kind=misdirect sequence=7-8 to=other
  inject on=other to=sensor load=50% payload=100B burst=2
 sweep
  axis of=payload values='64B 128B' flow=10
  axis of=load values='0% 5%'
  repeat times=2
 limits
  limit flow=20 measure=rtt.p99 at-most=1s
  limit measure=lost at-most=0
";

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
        changes in prop::collection::vec((0_usize..30, 0_usize..33, values()), 1..4)
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
                    prop_assert_eq!(run.receives.len() + run.relays.len(), run.flows.len());
                    for send in &run.sends {
                        prop_assert!(send.period.as_picos() > 0 && send.count > 0);
                    }
                    for inject in &run.injects {
                        prop_assert!(inject.interval.as_picos() > 0 && inject.load_ppm > 0);
                    }
                }
            }
        }
    }
}
