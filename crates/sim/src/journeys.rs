//! Journeys of messages for the search of bad cases: greatest latencies, and passages of nodes.
//!
//! Nothing is written: many short runs of one test that differ in the offsets of their senders are simulated in memory,
//! in parallel. Each gives the same results as `simulate` for the same plan.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;
use wg_frame::time::{RunTime, Span};
use wg_plan::{Network, Run};
use wg_record::{Point, Record, RecordFlags};

use crate::engine::simulate;
use crate::error::SimError;
use crate::order::order;
use crate::sink::Sink;

/// The message of a flow with the greatest latency to a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Longest {
    /// Number of the flow.
    pub flow: u16,
    /// The receiver, as index of the network's nodes.
    pub receiver: u16,
    /// Sequence number of the message.
    pub sequence: u32,
    /// Latency from application to application, in ps.
    pub latency: i64,
}

/// The passage of a message at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Passage {
    /// Number of the flow.
    pub flow: u16,
    /// Sequence number of the message.
    pub sequence: u32,
    /// Index of the node.
    pub node: u16,
    /// Ingress port; 0 at its sender.
    pub port: u16,
    /// Time of the application's call, or of the arrival at the switch, in ps.
    pub time: i64,
    /// Length of its frame in bytes; 0 at its sender.
    pub length: u16,
}

/// Results of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Journeys {
    /// Greatest latency of each flow and receiver with a received message, in their order.
    pub longest: Vec<Longest>,
    /// Passages of messages, by time; empty unless requested.
    pub passages: Vec<Passage>,
}

/// Collects journeys. Memory: an entry for each message, and with `passages` one for each node that it passes.
#[derive(Default)]
struct Seen {
    sent: BTreeMap<(u16, u32), RunTime>,
    longest: BTreeMap<(u16, u16), Longest>,
    passages: Option<Vec<Passage>>,
    /// Records of this instant.
    instant: Vec<Record>,
}

impl Seen {
    fn look_at(&mut self, record: &Record) {
        match record.point {
            Point::ApplicationSend => {
                self.sent.insert((record.flow, record.sequence), record.time);
                self.passed(record, 0, 0);
            }
            Point::SwitchIn => self.passed(record, record.port, record.length),
            Point::ApplicationReceive => {
                let Some(sent) = self.sent.get(&(record.flow, record.sequence)) else { return };
                let latency = (record.time - *sent).as_picos();
                let found =
                    Longest { flow: record.flow, receiver: record.node, sequence: record.sequence, latency };
                let known = self.longest.entry((record.flow, record.node)).or_insert(found);
                if latency > known.latency {
                    *known = found;
                }
            }
            _ => {}
        }
    }

    fn passed(&mut self, record: &Record, port: u16, length: u16) {
        let Some(passages) = &mut self.passages else { return };
        passages.push(Passage {
            flow: record.flow,
            sequence: record.sequence,
            node: record.node,
            port,
            time: record.time.as_picos(),
            length,
        });
    }
}

impl Sink for Seen {
    /// True time: bounds hold for it, and clocks of the test may show any.
    fn is_shown_time(&self) -> bool {
        false
    }

    fn record(&mut self, record: &Record) {
        if !record.flags.has(RecordFlags::RETURN) {
            self.instant.push(*record);
        }
    }

    fn begin_instant(&mut self, _instant: RunTime) {
        let mut instant = std::mem::take(&mut self.instant);
        instant.drain(..).for_each(|record| self.look_at(&record));
        self.instant = instant;
    }

    fn sort_instant(&mut self) {
        self.instant.sort_by_key(order);
    }

    fn advance(&mut self, _now: RunTime, _end: RunTime) -> Result<(), SimError> {
        Ok(())
    }
}

fn one(network: &Network, run: &Run, offsets: &[i64], passages: bool) -> Result<Journeys, SimError> {
    let mut run = run.clone();
    for (send, offset) in run.sends.iter_mut().zip(offsets) {
        send.offset = Span::from_picos(*offset);
    }
    let mut seen = Seen { passages: passages.then(Vec::new), ..Seen::default() };
    simulate(network, &run, &mut seen)?;
    seen.begin_instant(RunTime::from_picos(i64::MAX));
    Ok(Journeys {
        longest: seen.longest.into_values().collect(),
        passages: seen.passages.unwrap_or_default(),
    })
}

/// Simulates `run` once for each list of offsets (of its senders in their order, in ps) on `threads` threads; with
/// `passages` also collects passages. Results are in the order of the lists, independent of the threads.
///
/// # Errors
/// The first error of [`simulate`], in the order of the lists.
pub fn journeys(
    network: &Network,
    run: &Run,
    offsets: &[Vec<i64>],
    passages: bool,
    threads: usize,
) -> Result<Vec<Journeys>, SimError> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(own) = offsets.get(index) else { return found };
            found.push((index, one(network, run, own, passages)));
        }
    };
    let mut all: Vec<Option<Result<Journeys, SimError>>> = offsets.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(offsets.len())).map(|_| scope.spawn(worker)).collect();
        let own = worker();
        let joined = others.into_iter().flat_map(|other| other.join().unwrap_or_default());
        for (index, found) in own.into_iter().chain(joined) {
            all[index] = Some(found);
        }
    });
    all.into_iter().map(|found| found.unwrap_or(Err(SimError::Defect))).collect()
}
