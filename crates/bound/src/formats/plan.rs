//! One run of a compiled test as a model: directed hops become servers, senders become arrival curves.
//!
//! Lengths are those on the wire, with preamble and gap. Features without a curve (exponential intervals, replays,
//! shared media, flooding) are refused by name; those that a curve can only widen (pauses, counts, rate limits) are
//! ignored.

mod buffers;
mod classes;
mod drops;
mod flows;
mod loads;
mod nodes;
mod phases;
mod regulated;
mod scheduled;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;
use wg_plan::wire::{frame_length, sized_as, wire_bits};
use wg_plan::{Attachment, Bound, Diagnostic, Distribution, Flow as PlannedFlow, Network, NodeIndex, Run};

use crate::instants::PICOS_PER_SECOND;
use crate::model::{Limit, Model, Multiplexing, Wishes, problem};
use crate::rational::Rational;

/// Bytes on the line before a frame, and with the gap after it.
const PREAMBLE: i128 = 8;
const AROUND_FRAME: i128 = 20;
/// Longest interrupt spacing of an adaptive driver: 4000 interrupts a second.
const LONGEST_ADAPTIVE_SPACING: Span = Span::from_micros(250);

/// A limit of the plan.
#[derive(Deserialize)]
pub struct PlannedLimit {
    /// Number of the flow.
    pub flow: Option<u16>,
    /// Name of the measure.
    pub measure: String,
    /// Side of the limit.
    pub bound: Bound,
    /// Value, in nanoseconds for a latency.
    pub value: f64,
    /// The limit as written.
    pub written: String,
    /// Line of the limit in the test.
    pub line: u32,
}

fn seconds(span: Span) -> Rational {
    Rational::new(i128::from(span.as_picos()), PICOS_PER_SECOND)
}

fn most(distribution: &Distribution) -> Rational {
    distribution.quantiles.last().map_or(Rational::ZERO, |(_, time)| seconds(*time))
}

fn least(distribution: &Distribution) -> Rational {
    seconds(distribution.least())
}

/// Greatest traffic of a sender.
#[derive(Clone)]
struct Traffic {
    /// Number of frames at once.
    frames: u64,
    /// Bits of one frame on the wire.
    bits: u64,
    /// Time between bursts.
    period: Span,
}

struct Reading<'a> {
    network: Cow<'a, Network>,
    run: &'a Run,
    servers: BTreeMap<Attachment, usize>,
    model: Model,
    found: Vec<Diagnostic>,
    /// Processor time of all frames due at once on a host, by node.
    busy: BTreeMap<NodeIndex, Rational>,
    /// Server of each host whose processor takes time for received frames, by node.
    readers: BTreeMap<NodeIndex, usize>,
    /// Shortest and longest frame of each flow of the model, in bytes.
    lengths: Vec<(i128, i128)>,
}

/// Reads one run of a plan.
///
/// # Errors
/// All features without a bound.
pub fn read(
    name: &str,
    network: &Network,
    run: &Run,
    limits: &[PlannedLimit],
) -> Result<Model, Vec<Diagnostic>> {
    let mut changed = run.switches.applied(network).into_owned();
    if let Some(rate) = run.link_rate {
        for link in &mut changed.links {
            link.rate = rate;
        }
    }
    let mut reading = Reading {
        network: Cow::Owned(changed),
        run,
        servers: BTreeMap::new(),
        model: Model {
            name: name.to_owned(),
            wishes: Wishes { multiplexing: Some(Multiplexing::Fifo), grouping: Some(true), packetizer: true },
            ..Model::default()
        },
        found: Vec::new(),
        busy: BTreeMap::new(),
        readers: BTreeMap::new(),
        lengths: Vec::new(),
    };
    reading.check_nodes();
    reading.check_run();
    reading.make_servers();
    reading.count_processors();
    reading.make_readers();
    reading.reserve();
    for flow in &run.flows {
        reading.flow(flow);
    }
    for (index, inject) in run.injects.iter().enumerate() {
        reading.inject(index, inject);
    }
    reading.own_frames();
    reading.buffer();
    reading.places();
    reading.check_slopes();
    reading.assume();
    reading.limits(limits);
    if !reading.found.is_empty() {
        return Err(reading.found);
    }
    let Reading { mut model, .. } = reading;
    model.drop_idle();
    model.check()?;
    Ok(model)
}

impl Reading<'_> {
    fn say(&mut self, element: &str, message: &str, cure: &str) {
        self.found.push(problem(0, element, message, "", cure));
    }

    fn name(&self, node: NodeIndex) -> &str {
        &self.network.nodes[usize::from(node)].name
    }

    /// Refuses features of the run without a curve, independent of its nodes.
    fn check_run(&mut self) {
        let mut said = Vec::new();
        let joins = |flow: &&PlannedFlow| flow.frer.is_some_and(|frer| frer.intermediate);
        for flow in self.run.flows.iter().filter(joins) {
            said.push((
                format!("flow {}", flow.id),
                "switches on its way join its member streams and part them again, and what comes of that is not bounded",
                "leave intermediate-recovery out",
            ));
        }
        let everywhere = |flow: &&PlannedFlow| flow.addresses.mac.destination == Some(MacAddress::BROADCAST);
        for flow in self.run.flows.iter().filter(everywhere) {
            said.push((
                format!("flow {}", flow.id),
                "it is a broadcast, and switches send it out of every port, where no flow is planned",
                "leave destination-mac out, and name its receivers",
            ));
        }
        if !self.run.clusters.is_empty() {
            said.push((
                "<as6802>".to_owned(),
                "its control frames go before all others and set clocks: neither is in a curve here",
                "leave it out",
            ));
        }
        if !self.run.ptp_domains.is_empty() {
            said.push((
                "<ptp-domain>".to_owned(),
                "its messages go out of every port and have no arrival curve here",
                "leave it out",
            ));
        }
        if !self.run.remote_logs.is_empty() {
            said.push((
                "<remote-log>".to_owned(),
                "what it sends depends on what is logged, and has no arrival curve",
                "leave it out",
            ));
        }
        for (element, message, cure) in said {
            self.say(&element, message, cure);
        }
    }

    fn assume(&mut self) {
        let all = ["a host begins no message later than its model says".to_owned()];
        self.jitters();
        self.model.assumptions.extend(all);
    }

    fn limits(&mut self, limits: &[PlannedLimit]) {
        for limit in limits {
            if limit.measure != "latency.max" || limit.bound != Bound::AtMost {
                continue;
            }
            let Some(nanos) = Rational::from_f64(limit.value) else { continue };
            let at_most = &nanos / &Rational::integer(1_000_000_000);
            let tested = |id: u16| self.run.flows.iter().any(|flow| flow.id == id && !flow.exchange);
            let flows: Vec<u16> = match limit.flow {
                Some(id) => vec![id],
                None => self.run.flows.iter().map(|flow| flow.id).filter(|id| tested(*id)).collect(),
            };
            for flow in flows {
                let written = limit.written.clone();
                let name = Some(flow.to_string());
                self.model.limits.push(Limit {
                    flow: name,
                    at_most: at_most.clone(),
                    written,
                    line: limit.line,
                });
            }
        }
    }
}

/// Bits of a flow's frame on the wire.
fn frame_bits(flow: &PlannedFlow, payload: u32) -> u64 {
    let within = flow.virtual_link.is_some_and(|link| link.number_within);
    wire_bits(sized_as(flow.protocol, within), flow.vlan, payload)
}

/// Bits of the longest frame that its contract allows.
fn longest_bits(flow: &PlannedFlow) -> u64 {
    let longest = flow
        .virtual_link
        .map_or(frame_length(flow.protocol, flow.vlan, 0), |link| u32::from(link.contract.lmax()));
    (u64::from(longest) + 20) * 8
}
