//! Clusters of AS6802 devices from cold start: that all synchronise, when, and how closely.

mod cluster;

use cluster::{Cluster, Fault, Setup, Shares};
use wg_core::as6802::Integrity;

/// Draws that are the same everywhere (splitmix64, Steele et al. 2014).
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, limit: i64) -> i64 {
        ((u128::from(self.next()) * limit.max(1) as u128) >> 64) as i64
    }
    pub(crate) fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(high - low + 1)
    }
}

const US: i64 = 1_000_000;

/// One cluster, from its seed.
fn setup(seed: u64) -> Setup {
    let mut draws = Draws(seed);
    let channels = draws.within(1, 3) as u8;
    let faulty_masters = draws.below(3) as u8;
    let masters = draws.within(2 * i64::from(faulty_masters) + 1, 8) as u8;
    let integrity = if masters > 1 && draws.below(2) == 0 { Integrity::High } else { Integrity::Standard };
    let cycle = [1_000, 2_500, 10_000][draws.below(3) as usize] * US;
    // A master's fault takes a master to tolerate it, a channel's another channel.
    let mut faults = vec![Fault::None];
    if faulty_masters > 0 {
        // Around the windows, where a fault is neither in nor out, and far from them.
        let by = if draws.below(2) == 0 { draws.below(30 * US) } else { draws.below(cycle / 4) };
        let master = draws.below(i64::from(masters)) as usize;
        faults.extend([
            Fault::Early(master, by),
            Fault::Late(master, by),
            Fault::Silent(master),
            Fault::Inconsistent(master, by / 2),
            Fault::MasterOmits(master, draws.next()),
        ]);
    }
    if channels > 1 {
        let channel = draws.below(i64::from(channels)) as usize;
        faults.extend([Fault::ChannelSilent(channel), Fault::ChannelOmits(channel, draws.next())]);
    }
    let fault = faults[draws.below(faults.len() as i64) as usize];
    Setup {
        seed: draws.next(),
        integrity,
        channels,
        masters,
        faulty_masters,
        clients: draws.below(4) as u8,
        cycle,
        max_delay: draws.within(20, 120) * US,
        drift_ppb: draws.within(0, 100_000),
        powered_within: draws.below(5) * cycle,
        fault,
    }
}

/// Starts the clusters of `seeds` and says what went wrong.
fn start(seeds: std::ops::Range<u64>) {
    let mut wrong = Vec::new();
    let mut most = Shares::default();
    for seed in seeds.clone() {
        let setup = setup(seed);
        match Cluster::new(&setup).start() {
            Err(problem) => wrong.push(format!("seed {seed}: {problem}\n  {setup:?}")),
            Ok(shares) => {
                most.precision = most.precision.max(shares.precision);
                most.startup = most.startup.max(shares.startup);
            }
        }
    }
    println!("at most {most:?} of the bounds");
    let shown: Vec<_> = wrong.iter().take(12).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} of {} clusters:\n{}",
        wrong.len(),
        seeds.end - seeds.start,
        shown.join("\n")
    );
}

#[test]
fn clusters_synchronise_from_cold_start_under_every_single_fault() {
    start(0..300);
}

#[test]
#[ignore = "10^4 starts: `make test-all`, optimised"]
fn ten_thousand_clusters_synchronise_from_cold_start() {
    start(0..10_000);
}

fn sound() -> Setup {
    Setup {
        seed: 7,
        integrity: Integrity::Standard,
        channels: 2,
        masters: 4,
        faulty_masters: 1,
        clients: 2,
        cycle: 1_000 * US,
        max_delay: 50 * US,
        drift_ppb: 50_000,
        powered_within: 500 * US,
        fault: Fault::None,
    }
}

/// The judge of starting sees what is beyond the hypothesis.
#[test]
fn a_cluster_whose_only_channel_is_silent_does_not_start() {
    assert!(Cluster::new(&sound()).start().is_ok());
    let setup = Setup { channels: 1, fault: Fault::ChannelSilent(0), ..sound() };
    let problem = Cluster::new(&setup).start().expect_err("it cannot start");
    assert!(problem.contains("not within"), "{problem}");
}

/// The judge of precision sees oscillators that drift more than the bound knows of.
#[test]
fn clocks_that_drift_more_than_allowed_for_are_seen_to_be_too_far_apart() {
    let setup = Setup { drift_ppb: 90_000, ..sound() };
    let parameters = setup.parameters();
    let judged = Setup { drift_ppb: 10_000, ..setup.clone() };
    let mut cluster = Cluster::with(&setup, parameters);
    cluster.judge_by(&judged);
    let problem = cluster.start().expect_err("it drifts nine times as much");
    assert!(problem.contains("apart"), "{problem}");
}
