//! Sweeps, counts, times and seeds of the runs a test expands to.

use std::collections::BTreeSet;

use proptest::prelude::*;
use wg_frame::time::Span;
use wg_plan::{FaultKind, Turn, run_seed};

use crate::outline::{BASE, changed, good, refused, shown};

fn sweep(axes: &str) -> String {
    format!("{BASE} sweep\n{axes}")
}

#[test]
fn the_last_axis_varies_fastest_and_repeats_are_innermost() {
    let campaign = good(&sweep(
        "  axis of=protocol values='udp raw'\n  axis of=payload values='64B 128B 256B'\n  repeat times=2\n",
    ));
    let order: Vec<(u32, &str, &str, u32)> = campaign
        .runs
        .iter()
        .map(|run| (run.index, run.point["protocol"].as_str(), run.point["payload"].as_str(), run.repeat))
        .collect();
    let mut wanted = Vec::new();
    for protocol in ["udp", "raw"] {
        for payload in ["64B", "128B", "256B"] {
            for repeat in 0..2 {
                wanted.push((wanted.len() as u32, protocol, payload, repeat));
            }
        }
    }
    assert_eq!(order, wanted);
    assert_eq!(
        campaign.axes.iter().map(|axis| axis.of.as_str()).collect::<Vec<_>>(),
        ["protocol", "payload"]
    );
}

#[test]
fn only_the_bad_point_of_a_sweep_is_named() {
    let diagnostics =
        refused(&sweep("  axis of=protocol values='raw udp'\n  axis of=payload values='64B 1500B'\n"));
    let said = shown(&diagnostics);
    assert_eq!(diagnostics.len(), 2, "{said}");
    for (diagnostic, flow) in diagnostics.iter().zip([10, 20]) {
        assert_eq!((diagnostic.line, diagnostic.element.as_str()), (22, "<axis of=\"payload\">"));
        assert!(
            diagnostic.message.starts_with(&format!("payload \"1500B\" of flow {flow}, protocol udp")),
            "{said}"
        );
    }
}

#[test]
fn a_sweep_reaches_only_what_it_names() {
    let campaign = good(&sweep("  axis of=period values='3ms 4ms' flow=20\n  axis of=through values=task\n"));
    let run = &campaign.runs[1];
    assert_eq!(run.sends.iter().map(|send| send.period).collect::<Vec<_>>(), [2, 4].map(Span::from_millis));
    assert_eq!(run.relays[0].through, Turn::Task);
    assert_eq!(run.link_rate, None);
    let rates = good(&sweep("  axis of=rate values='100Mbit/s 1Gbit/s'\n"));
    assert_eq!(
        rates.runs.iter().map(|run| run.link_rate.map(u64::from)).collect::<Vec<_>>(),
        [Some(100_000_000), Some(1_000_000_000)]
    );
}

#[test]
fn times_follow_the_definition() {
    let run = &good(BASE).runs[0];
    // Flow 20 is offset by 1 ms and ends one period after its last message.
    assert_eq!(run.duration, Span::from_millis(2_001));
    assert_eq!(run.sends.iter().map(|send| send.warm_up_count).collect::<Vec<_>>(), [2, 2]);
    // 200 ms and twice 512 KiB at 1 Gbit/s: there and back through one switch.
    assert_eq!(run.drain, Span::from_picos(200_000_000_000 + 2 * 524_288 * 8 * 1_000));
    let huge = good(&changed(&[("switch name=sw1", "switch name=sw1 buffer=1024MiB")]));
    assert_eq!(huge.runs[0].drain, Span::from_millis(5_000));
}

#[test]
fn a_duration_is_filled_and_the_earlier_end_wins() {
    let timed = good(&changed(&[
        ("warm-up=5ms", "duration=1001ms"),
        ("count=1000", "offset=0s"),
        ("count=1000", "fill=random"),
    ]));
    let run = &timed.runs[0];
    assert_eq!(run.sends.iter().map(|send| send.count).collect::<Vec<_>>(), [501, 500]);
    assert_eq!(run.duration, Span::from_millis(1_001));
    let counted = good(&changed(&[("warm-up=5ms", "duration=1h")]));
    assert_eq!(counted.runs[0].duration, Span::from_millis(2_001));
}

#[test]
fn faults_are_sorted_and_kept_apart() {
    let campaign = good(&changed(&[(
        "  relay flow=20",
        "  relay flow=20\n   fault kind=misdirect sequence='9 5-6' to=other\n   fault kind=reorder sequence=100",
    )]));
    let faults = &campaign.runs[0].relays[0].faults;
    assert_eq!(faults[0].kind, FaultKind::Misdirect { to: 2 });
    assert_eq!(faults[0].sequences, [(5, 6), (9, 9)]);
    assert_eq!((faults[1].kind, faults[1].sequences.as_slice()), (FaultKind::Reorder, &[(100, 100)][..]));
}

#[test]
fn load_is_counted_in_bytes_on_the_wire() {
    // MAPS 2015, Table 2: 1472 B of payload, bursts of 10, at 1 Gbit/s.
    for (load, interval_ps) in [
        ("25%", 492_160_000),
        ("50%", 246_080_000),
        ("70%", 175_771_429),
        ("75%", 164_053_333),
        ("100%", 123_040_000),
    ] {
        let inject = format!("  relay flow=20\n  inject on=other to=sensor load={load}");
        let campaign = good(&changed(&[("  relay flow=20", &inject)]));
        assert_eq!(campaign.runs[0].injects[0].interval, Span::from_picos(interval_ps), "{load}");
    }
}

#[test]
fn seeds_are_those_of_splitmix64() {
    // The published sequence of SplitMix64 from the seed 1234567.
    let published = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423_u64];
    assert_eq!([0, 1, 2].map(|index| run_seed(1_234_567, index)), published);
    let campaign = good(&sweep("  repeat times=3\n"));
    let seeds: BTreeSet<u64> = campaign.runs.iter().map(|run| run.seed).collect();
    assert_eq!(seeds.len(), 3);
    assert_eq!(campaign.runs[2].seed, run_seed(1, 2));
}

#[test]
fn too_many_runs_are_refused_without_making_them() {
    let values: Vec<String> = (12..1_400).map(|n| format!("{n}B")).collect();
    let said = shown(&refused(&sweep(&format!(
        "  axis of=payload values='{}'\n  repeat times=10000\n",
        values.join(" ")
    ))));
    assert!(said.contains("the sweep expands to 13880000 runs (limit: 10000)"), "{said}");
}

proptest! {
    /// The number of runs is the product of what was written, and every point is there as often as repeats say.
    #[test]
    fn runs_are_the_product(
        payloads in prop::collection::btree_set(12_u32..=1_472, 1..6),
        periods in prop::collection::btree_set(1_u32..50, 1..5),
        both in any::<bool>(),
        repeats in 1_u32..4,
    ) {
        let list = |values: &BTreeSet<u32>, unit: &str| {
            values.iter().map(|value| format!("{value}{unit}")).collect::<Vec<_>>().join(" ")
        };
        let protocols = if both { "udp raw" } else { "raw" };
        let campaign = good(&sweep(&format!(
            "  axis of=payload values='{}'\n  axis of=protocol values='{protocols}'\n  axis of=period values='{}'\n  repeat times={repeats}\n",
            list(&payloads, "B"),
            list(&periods, "ms"),
        )));
        let points = payloads.len() * (1 + usize::from(both)) * periods.len();
        prop_assert_eq!(campaign.runs.len(), points * repeats as usize);
        let distinct: BTreeSet<String> = campaign.runs.iter().map(|run| format!("{:?}", run.point)).collect();
        prop_assert_eq!(distinct.len(), points);
        for (number, run) in campaign.runs.iter().enumerate() {
            prop_assert_eq!(run.index as usize, number);
            prop_assert_eq!(run.repeat, number as u32 % repeats);
            for send in &run.sends {
                prop_assert_eq!(format!("{}B", send.payload), run.point["payload"].clone());
                prop_assert_eq!(send.period.to_string(), run.point["period"].clone());
            }
        }
    }

    /// However period, offset and duration lie: every message is due inside the duration, and the next is not.
    #[test]
    fn counts_fill_the_duration(period_us in 10_i64..5_000, offset_us in 0_i64..3_000, duration_us in 3_000_i64..90_000) {
        let campaign = good(&changed(&[
            ("warm-up=5ms", &format!("duration={duration_us}us")),
            ("period=2ms payload=64B count=1000", &format!("period={period_us}us payload=64B offset={offset_us}us")),
            ("count=1000", "count=1"),
        ]));
        let send = &campaign.runs[0].sends[0];
        let last = offset_us + (i64::from(send.count) - 1) * period_us;
        prop_assert!(last < duration_us || duration_us <= offset_us);
        prop_assert!(last + period_us >= duration_us);
    }
}
