//! Virtual links and time-triggered flows, judged by oracles that count instead of compute.

use proptest::prelude::*;
use wg_frame::time::Span;
use wg_plan::{
    Campaign, Integration, NoCaptures, NodeKind, Scheduling, TimeTriggered, compile, compile_scheduling,
};

use crate::outline::{good, refused, shown, tree};

const US: i64 = 1_000_000;

/// A hand-set window in ticks of 20 µs, with its period.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    offset: i64,
    length: i64,
    period: i64,
}

const TICK_US: i64 = 20;

fn ticks() -> impl Strategy<Value = Ticks> {
    // 1, 1.2, 2, 3 and 4 ms.
    prop::sample::select(vec![50_i64, 60, 100, 150, 200]).prop_flat_map(|period| {
        (1_i64..12, Just(period)).prop_flat_map(|(length, period)| {
            (1..=period - length).prop_map(move |offset| Ticks { offset, length, period })
        })
    })
}

/// Each flow has a sender of its own; all windows are at the port to the one receiver.
fn at_one_port(windows: &[Ticks]) -> String {
    let mut text = "test name=windows\n network\n  switch name=sw kind=mixed-criticality\n".to_owned();
    text += "  end-system name=to\n  link between='to sw:250' rate=1Gbit/s\n";
    for k in 0..windows.len() {
        text += &format!("  end-system name=e{k}\n  link between='e{k} sw' rate=1Gbit/s\n");
    }
    text += " flows\n";
    for (k, w) in windows.iter().enumerate() {
        let id = k + 1;
        let [offset, length, period] = [w.offset, w.length, w.period].map(|ticks| ticks * TICK_US);
        text += &format!("  flow id={id} protocol=tt from=e{k} to=to period={period}us late=1us\n");
        text += &format!("   window port=sw:250 offset={offset}us length={length}us\n");
    }
    text += " tasks\n";
    for k in 1..=windows.len() {
        text += &format!("  send flow={k} period=10ms payload=64B count=1\n  receive flow={k}\n");
    }
    text
}

/// Draws the whole cycle, tick by tick: the pairs that are open at once.
fn drawn(windows: &[Ticks]) -> Vec<(usize, usize)> {
    let cycle = 600; // of 50, 60, 100, 150, 200
    let mut pairs = Vec::new();
    for tick in 0..cycle {
        let open: Vec<usize> = (0..windows.len())
            .filter(|k| {
                let since = (tick - windows[*k].offset).rem_euclid(windows[*k].period);
                since < windows[*k].length
            })
            .collect();
        for (i, a) in open.iter().enumerate() {
            pairs.extend(open[i + 1..].iter().map(|b| (*a, *b)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Refused exactly when a drawing of the cycle shows two windows open in one tick, and what is named clashes there.
    #[test]
    fn windows_clash_as_drawn(windows in prop::collection::vec(ticks(), 1..6)) {
        let pairs = drawn(&windows);
        match compile(&tree(&at_one_port(&windows))) {
            Ok(_) => prop_assert!(pairs.is_empty(), "{:?}", pairs),
            Err(found) => {
                prop_assert!(!pairs.is_empty(), "{}", shown(&found));
                for diagnostic in &found {
                    let named = |k: &usize| diagnostic.message.contains(&format!("flow {} ", k + 1));
                    prop_assert!(pairs.iter().any(|(a, b)| named(a) && named(b)), "{}", diagnostic);
                }
                // Every window that clashes is named in at least one message.
                let clashing = pairs.iter().flat_map(|(a, b)| [a, b]).all(|k| {
                    found.iter().any(|d| d.message.contains(&format!("flow {} ", k + 1)))
                });
                prop_assert!(clashing, "{}", shown(&found));
            }
        }
    }
}

/// A scheduler may ask for a plan whose windows clash: of flows that say neither offset nor window, or of all.
#[test]
fn windows_that_are_still_to_be_scheduled_may_clash() {
    let clash = Ticks { offset: 5, length: 3, period: 50 };
    let by_hand = at_one_port(&[clash, clash]);
    let open = by_hand
        .lines()
        .filter(|line| !line.contains("window port"))
        .fold(String::new(), |text, line| text + line + "\n");
    let whole = |text: &str, scheduling| compile_scheduling(&tree(text), &NoCaptures, scheduling);
    let first = by_hand.lines().find(|line| line.contains("window port")).expect("a window");
    let one_set = open.replacen("late=1us\n", &format!("late=1us\n{first}\n"), 1);
    for (text, allowed) in [
        (&by_hand, [Scheduling::Unjudged].as_slice()),
        (&open, &[Scheduling::Unjudged, Scheduling::Open]),
        // One is set by hand, the other is not: nothing of what is set clashes.
        (&one_set, &[Scheduling::Unjudged, Scheduling::Open, Scheduling::Done]),
    ] {
        for scheduling in [Scheduling::Unjudged, Scheduling::Open, Scheduling::Done] {
            assert_eq!(
                whole(text, scheduling).is_ok(),
                allowed.contains(&scheduling),
                "{scheduling:?}: {text}"
            );
        }
    }
}

#[derive(Clone, Debug)]
struct Chain {
    /// Processing delay in µs, integration, rate in Mbit/s and delay in ns of the link behind.
    switches: Vec<(i64, &'static str, u64, i64)>,
    first_rate: u64,
    payload: u32,
    period_us: i64,
    offset_us: i64,
    cut_through: bool,
}

fn chains() -> impl Strategy<Value = Chain> {
    let rate = || prop::sample::select(vec![100_u64, 1_000]);
    let integration = prop::sample::select(vec!["timely-block", "preemption", "shuffling"]);
    let switch = (0_i64..40, integration, rate(), 0_i64..5_000);
    (
        prop::collection::vec(switch, 1..6),
        rate(),
        12_u32..1_500,
        2_000_i64..9_000,
        0_i64..1_000,
        any::<bool>(),
    )
        .prop_map(|(switches, first_rate, payload, period_us, at, cut_through)| Chain {
            switches,
            first_rate,
            payload,
            period_us,
            offset_us: period_us * at / 1_000,
            cut_through,
        })
}

fn outline(chain: &Chain) -> String {
    let mut text = "test name=chain\n network\n  end-system name=a\n  end-system name=b\n".to_owned();
    let mode = if chain.cut_through { "cut-through" } else { "store-and-forward" };
    for (k, (delay, integration, ..)) in chain.switches.iter().enumerate() {
        text += &format!(
            "  switch name=s{k} kind=mixed-criticality delay={delay}us integration={integration} forwarding-mode={mode}\n"
        );
    }
    text += &format!("  link between='a s0' rate={}Mbit/s\n", chain.first_rate);
    for (k, (_, _, rate, delay)) in chain.switches.iter().enumerate() {
        let next = if k + 1 < chain.switches.len() { format!("s{}", k + 1) } else { "b".to_owned() };
        text += &format!("  link between='s{k} {next}' rate={rate}Mbit/s delay={delay}ns\n");
    }
    let (period, offset, payload) = (chain.period_us, chain.offset_us, chain.payload);
    text += &format!(" flows\n  flow id=1 protocol=tt from=a to=b period={period}us offset={offset}us\n");
    text += &format!(" tasks\n  send flow=1 period=1s payload={payload}B count=1\n  receive flow=1\n");
    text
}

fn schedule(campaign: &Campaign) -> TimeTriggered {
    campaign.runs[0].flows[0].schedule.clone().expect("time-triggered")
}

/// Picoseconds that so many bytes take.
fn bytes(count: i64, mbit: u64) -> i64 {
    count * 8 * US / mbit as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A frame held up at every switch as long as its integration allows still starts in each window with room to end
    /// in it, and reaches the receiver while it is accepted; one that is not held up arrives at the planned instant.
    #[test]
    fn derived_windows_carry_the_frame_to_its_end(chain in chains(), held in prop::collection::vec(0_i64..=100, 6)) {
        let Ok(campaign) = compile(&tree(&outline(&chain))) else {
            // Only the sender's own window may end beyond the period; all else is moved.
            let end = chain.offset_us * US + bytes(i64::from(chain.payload.max(46)) + 38, chain.first_rate) + 2 * US;
            prop_assert!(end > chain.period_us * US, "{}", shown(&refused(&outline(&chain))));
            return Ok(());
        };
        let plan = schedule(&campaign);
        let period = chain.period_us * US;
        let frame = i64::from(chain.payload.max(46)) + 18;
        prop_assert_eq!(i64::from(plan.longest_frame), frame);
        prop_assert_eq!(plan.windows.len(), chain.switches.len() + 1);
        for window in &plan.windows {
            prop_assert!(window.offset >= Span::ZERO && (window.offset + window.length).as_picos() <= period);
        }
        for scenario in [0, 100, -1] {
            let mut at = chain.offset_us * US;
            let mut rate = chain.first_rate;
            let mut arrival = 0;
            for (hop, window) in plan.windows.iter().enumerate() {
                let longest = match hop.checked_sub(1).map(|k| chain.switches[k].1) {
                    Some("shuffling") => bytes(1_542, rate),
                    Some("preemption") => bytes(20, rate),
                    _ => 0,
                };
                let share = if scenario < 0 { held[hop] } else { scenario };
                // The first opening at or before the frame is there or the next one.
                let phase = (at - window.offset.as_picos()).rem_euclid(period);
                let missed = phase >= window.length.as_picos();
                let opens = if missed { at - phase + period } else { at.max(at - phase) };
                let starts = opens + longest * share / 100;
                let since = (starts - window.offset.as_picos()).rem_euclid(period);
                let occupied = bytes(frame + 20, rate);
                prop_assert!(since + occupied <= window.length.as_picos(), "hop {} of {:?}", hop, plan);
                if scenario == 0 {
                    prop_assert_eq!(starts.rem_euclid(period), window.offset.as_picos());
                }
                let delay = if hop == 0 { 0 } else { chain.switches[hop - 1].3 * 1_000 };
                arrival = starts + bytes(frame + 8, rate) + delay;
                if let Some((processing, _, next, _)) = chain.switches.get(hop) {
                    at = arrival + processing * US;
                    rate = *next;
                }
            }
            let planned = plan.receptions[0].offset.as_picos();
            let late = (arrival - planned).rem_euclid(period);
            prop_assert!(late <= plan.late.as_picos(), "{} ps late of {:?}", late, plan);
            if scenario == 0 {
                prop_assert_eq!(late, 0);
            }
        }
    }
}

#[test]
fn a_window_that_would_cross_the_period_opens_with_the_next() {
    let chain = Chain {
        switches: vec![(2, "timely-block", 100, 0)],
        first_rate: 100,
        payload: 64,
        period_us: 1_000,
        offset_us: 985,
        cut_through: false,
    };
    let plan = schedule(&good(&outline(&chain)));
    assert_eq!(plan.windows[1].offset, Span::ZERO);
    // 82 B and the preamble at 100 Mbit/s.
    assert_eq!(plan.receptions[0].offset, Span::from_nanos(7_200));
}

#[test]
fn the_chain_of_a_frame_by_hand() {
    let chain = Chain {
        switches: vec![(2, "timely-block", 1_000, 100), (3, "shuffling", 100, 50)],
        first_rate: 100,
        payload: 64,
        period_us: 1_000,
        offset_us: 10,
        cut_through: false,
    };
    let campaign = good(&outline(&chain));
    let plan = schedule(&campaign);
    let ns = Span::from_nanos;
    // 90 B with preamble take 7.2 us and 0.72 us, 102 B with the gap 8.16 us and 0.816 us, 1542 B 123.36 us.
    assert_eq!(
        plan.windows.iter().map(|window| (window.offset, window.length)).collect::<Vec<_>>(),
        [(ns(10_000), ns(10_160)), (ns(19_200), ns(2_816)), (ns(23_020), ns(8_160 + 2_000 + 123_360))]
    );
    assert_eq!(plan.receptions[0].offset, ns(23_020 + 7_200 + 50));
    assert_eq!((plan.early, plan.late), (ns(1_000), ns(133_520)));
    let NodeKind::Switch(switch) = &campaign.network.nodes[3].kind else { panic!("a switch") };
    assert_eq!(switch.integration, Integration::Shuffling);
}

/// Virtual links from `from` to a common receiver.
#[derive(Clone, Copy, Debug)]
struct Link {
    from: usize,
    bag_ms: u64,
    lmax: u64,
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    let link = (0_usize..6, 0_u32..4, prop::sample::select(vec![150_u64, 500, 1_000, 1_518]))
        .prop_map(|(from, k, lmax)| Link { from, bag_ms: 1 << k, lmax });
    prop::collection::vec(link, 1..24)
}

fn with_links(links: &[Link]) -> String {
    let mut text =
        "test name=links\n network\n  switch name=sw kind=arinc664\n  end-system name=to\n".to_owned();
    text += "  link between='to sw' rate=100Mbit/s\n";
    for k in 0..6 {
        text += &format!("  end-system name=e{k}\n  link between='e{k} sw' rate=100Mbit/s\n");
    }
    text += " flows\n";
    for (k, link) in links.iter().enumerate() {
        let (id, Link { from, bag_ms, lmax }) = (k + 1, link);
        text += &format!("  flow id={id} protocol=rc from=e{from} to=to bag={bag_ms}ms lmax={lmax}B\n");
    }
    text += " tasks\n";
    for k in 1..=links.len() {
        text += &format!("  send flow={k} period=1s payload=64B count=1\n  receive flow={k}\n");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Judged in bits per 8 ms, which every BAG here divides.
    #[test]
    fn virtual_links_are_refused_where_a_link_or_an_end_system_cannot_keep_them(links in links()) {
        let bits = |link: &Link| (link.lmax + 20) * 8 * (8 / link.bag_ms);
        let room = 800_000;
        let all: u64 = links.iter().map(bits).sum();
        let mut wrong = u32::from(all > room);
        for sender in 0..6 {
            let own = links.iter().filter(|link| link.from == sender);
            wrong += u32::from(own.clone().map(bits).sum::<u64>() > room);
            // 460 us at 100 Mbit/s are 5750 B.
            wrong += u32::from(own.map(|link| link.lmax + 20).sum::<u64>() > 5_750);
        }
        match compile(&tree(&with_links(&links))) {
            Ok(campaign) => {
                prop_assert_eq!(wrong, 0);
                for (flow, link) in campaign.runs[0].flows.iter().zip(&links) {
                    let contract = flow.virtual_link.expect("rate-constrained");
                    prop_assert_eq!(u64::from(contract.contract.lmax()), link.lmax);
                    prop_assert_eq!(contract.contract.bag().span(), Span::from_millis(link.bag_ms as i64));
                }
            }
            Err(found) => prop_assert_eq!(found.len() as u32, wrong, "{}", shown(&found)),
        }
    }
}

/// One switch at 100 Mbit/s between "mac" and "sensor", each with its clock; the run lasts a second.
fn clocked(mac: &str, switch: &str, sensor: &str) -> String {
    let clock = |of: &str, indent: &str| match of {
        "" => String::new(),
        of => format!("{indent}clock {of}\n"),
    };
    format!(
        "test name=clocks\n network\n  end-system name=mac\n{}  end-system name=sensor\n{}  switch name=sw kind=mixed-criticality\n{}  \
         link between='mac sw:1' rate=100Mbit/s\n  link between='sensor sw:2' rate=100Mbit/s\n flows\n  \
         flow id=7 protocol=tt from=mac to=sensor period=1ms offset=100us\n tasks duration=1s\n  \
         send flow=7 period=1ms payload=18B\n  receive flow=7\n",
        clock(mac, "   "),
        clock(sensor, "   "),
        clock(switch, "   "),
    )
}

#[test]
fn clocks_that_part_within_the_run_are_named_with_their_window_and_time() {
    let said = |mac, switch, sensor| good(&clocked(mac, switch, sensor)).warnings;
    for quiet in [
        ["", "", ""],
        // Together, whatever they are off.
        ["drift=50ppm", "drift=50ppm", "drift=50ppm"],
        // 2us of room last for two seconds.
        ["drift=-1ppm", "", ""],
        // An early frame waits in the switch for its window, nearly a period long.
        ["drift=20ppm", "drift=20ppm", "drift=20ppm offset=1us"],
    ] {
        assert_eq!(said(quiet[0], quiet[1], quiet[2]), Vec::<String>::new(), "{quiet:?}");
    }
    let one = |mac, switch, sensor, parts: &[&str]| {
        let warnings = said(mac, switch, sensor);
        let [warning] = &warnings[..] else { panic!("one warning: {warnings:?}") };
        for part in parts {
            assert!(warning.contains(part), "{part}: {warning}");
        }
    };
    // The window is 2us longer than the frame: 2us / 20ppm = 100ms, and a bit.
    let late = [
        "\"mac\" (drift -20ppm)",
        "\"sw\" (drift 0ppm)",
        "from 101ms",
        "flow 7",
        "late",
        "port 2 of \"sw\"",
        "8720ns",
    ];
    one("drift=-20ppm", "", "", &late);
    // Ahead by 1us and then slower: it takes 3us to be 2us late.
    one("drift=-20ppm offset=1us", "", "", &["offset 1us", "from 151ms"]);
    // 1us early is accepted, and the receiver's clock is the slow one; a fast switch sends early as well.
    one(
        "",
        "",
        "drift=-2500ppb",
        &["\"sensor\" (drift -2500ppb)", "from 401ms", "early", "accepts from 1us before"],
    );
    // No drift until it is warm.
    let warm = "drift=0ppm\n    temperature at=500ms drift=-20ppm";
    one(warm, "", "", &["changing with temperature", "from 601ms"]);
    // Off from the beginning on.
    one("offset=-3us", "", "", &["offset -3us", "from 0ps", "late"]);
}
