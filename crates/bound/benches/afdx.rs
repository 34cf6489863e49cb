//! Time to bound an AFDX network of 58 end systems, 8 switches and 265 multicast virtual links by total flow analysis:
//! in doubles rounded outward, and in fractions; with and without grouping.
//!
//! `cargo bench -p wg-bound --bench afdx`. One JSON object a line, the median of several rounds and its bar.
#![forbid(unsafe_code)]

use std::time::Instant;

use wg_bound::curve::{Bucket, RateLatency};
use wg_bound::model::{Flow, Model, Passage, Server};
use wg_bound::{Answer, Question, Rational, analyse};

const END_SYSTEMS: usize = 58;
const SWITCHES: usize = 8;
const VIRTUAL_LINKS: usize = 265;
const RATE: i128 = 100_000_000;
/// A build without optimisation measures nothing: it only shows, in the tests, that this runs.
const SMOKE: bool = cfg!(debug_assertions);
const ROUNDS: usize = if SMOKE { 1 } else { 31 };

/// The switch above each; the first two are the roots of two halves.
const ABOVE: [usize; SWITCHES] = [1, 0, 0, 1, 0, 1, 2, 3];

struct Ports {
    servers: Vec<Server>,
}

impl Ports {
    fn port(&mut self, name: &str) -> usize {
        if let Some(known) = self.servers.iter().position(|server| server.name == name) {
            return known;
        }
        let rate = Rational::integer(RATE);
        let service = vec![RateLatency { rate: rate.clone(), latency: Rational::new(1, 62_500) }];
        self.servers.push(Server { capacity: Some(rate), ..Server::new(name, service) });
        self.servers.len() - 1
    }

    /// From switch to switch along the tree.
    fn between(&mut self, from: usize, to: usize) -> Vec<usize> {
        let up = |mut at: usize| {
            let mut way = vec![at];
            while at > 1 {
                at = ABOVE[at];
                way.push(at);
            }
            way
        };
        let (mut there, mut back) = (up(from), up(to));
        while there.len() > 1 && back.len() > 1 && there[there.len() - 2] == back[back.len() - 2] {
            there.pop();
            back.pop();
        }
        back.reverse();
        if there.last() == back.first() {
            there.pop();
        }
        there.extend(back);
        there.windows(2).map(|pair| self.port(&format!("s{}-s{}", pair[0], pair[1]))).collect()
    }
}

/// The same network every time.
fn network() -> Model {
    let mut ports = Ports { servers: Vec::new() };
    let mut model = Model { name: "afdx".to_owned(), ..Model::default() };
    model.wishes.packetizer = true;
    for number in 0..VIRTUAL_LINKS {
        let source = number % END_SYSTEMS;
        let payload = [16, 60, 120, 282, 500, 1_000][number % 6];
        let bits = Rational::integer(8 * (payload + 67).max(84));
        let period = Rational::new([2, 4, 8, 16, 32, 128][number / 6 % 6], 1_000);
        let mut flow =
            Flow::new(format!("vl{number}"), vec![Bucket { burst: bits.clone(), rate: &bits / &period }]);
        flow.longest_frame = bits;
        for target in 0..1 + number % 7 {
            let receiver = (source + 1 + number * 7 + target * 11) % END_SYSTEMS;
            if receiver == source {
                continue;
            }
            let mut path = vec![ports.port(&format!("e{source}"))];
            path.extend(ports.between(source % SWITCHES, receiver % SWITCHES));
            path.push(ports.port(&format!("s{}-e{receiver}", receiver % SWITCHES)));
            flow.add_target(format!("e{receiver}"), path.into_iter().map(Passage::from), Rational::ZERO);
        }
        if !flow.targets.is_empty() {
            model.flows.push(flow);
        }
    }
    model.servers = ports.servers;
    model
}

fn bounded(model: &Model, arithmetic: &str, grouping: bool) -> Answer {
    let question = Question {
        method: "tfa".to_owned(),
        multiplexing: Some("fifo".to_owned()),
        grouping: Some(grouping),
        arithmetic: Some(arithmetic.to_owned()),
        phases: None,
    };
    let choice = question.understood(model).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    analyse(model, choice).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

fn main() {
    let model = network();
    let targets: usize = model.flows.iter().map(|flow| flow.targets.len()).sum();
    let hops: usize = model.flows.iter().map(|flow| flow.steps.len()).sum();
    println!(
        "{} virtual links, {targets} targets, {} ports, {hops} hops",
        model.flows.len(),
        model.servers.len()
    );
    for (arithmetic, bar) in [("rounded", 10.0), ("exact", 1_000.0)] {
        for grouping in [false, true] {
            let mut times: Vec<f64> = Vec::new();
            for _ in 0..ROUNDS {
                let begun = Instant::now();
                let answer = bounded(&model, arithmetic, grouping);
                times.push(begun.elapsed().as_secs_f64() * 1e3);
                assert!(
                    answer.flows.iter().all(|flow| flow.targets.iter().all(|target| target.delay.is_some()))
                );
            }
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            let grouped = if grouping { "grouped" } else { "ungrouped" };
            println!(
                "{{\"figure\": \"tfa_of_265_vls_{arithmetic}_{grouped}_ms\", \"value\": {median:.3}, \"bar\": {bar}}}"
            );
        }
    }
}
