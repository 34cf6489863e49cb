//! The premises of a certificate: the network as its steps use it, in exact fractions.

use serde::Serialize;

use crate::certificate_places::{PlacePremise, places};
use crate::curve::{Bucket, RateLatency};
use crate::model::{Flow, Model, Server};
use crate::rational::Rational;
use crate::rules::{Rule, Slope};

/// One leaky bucket of an arrival curve.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Burst in bits.
    pub burst: String,
    /// Rate in bits and the unit of time.
    pub rate: String,
}

/// One rate-latency curve of a service.
#[derive(Clone, Debug, Serialize)]
pub struct Piece {
    /// Rate in bits and the unit of time.
    pub rate: String,
    /// Latency in the unit of time.
    pub latency: String,
}

/// The network.
#[derive(Clone, Debug, Serialize)]
pub struct Premises {
    /// Output ports and processors.
    pub servers: Vec<ServerPremise>,
    /// Flows, each with its steps.
    pub flows: Vec<FlowPremise>,
    /// Places that may drop frames.
    pub places: Vec<PlacePremise>,
}

/// A server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerPremise {
    /// Name.
    pub server: String,
    /// Guaranteed service: the maximum of these.
    pub service: Vec<Piece>,
    /// Rate of the link behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<String>,
    /// Bits and periods of windows that are closed to all these flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<(String, String)>,
    /// Whether a frame that would not end before a window does not begin, or begins in vain.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub guarded: bool,
    /// Preemptable classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preemptable: Vec<u8>,
    /// Greatest part of their frames that cannot be cut, in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncut: Option<String>,
    /// Credit-based shapers at a port without gates: class, least and greatest idle slope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shaped: Vec<(u8, String, String)>,
    /// Classes with a rule beside strict priority.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ruled: Vec<u8>,
    /// Room for frames of a class, in bits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<(u8, String)>,
    /// Line in the file; 0 if there is none.
    pub line: u32,
}

/// A flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowPremise {
    /// Name.
    pub flow: String,
    /// Arrival curve: the minimum of these.
    pub arrival: Vec<Line>,
    /// Longest frame in bits.
    pub longest_frame: String,
    /// Flow and target from which it goes on behind a regulator, and the rate of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regulator: Option<RegulatorPremise>,
    /// The servers it passes.
    pub steps: Vec<StepPremise>,
    /// Its ends.
    pub targets: Vec<TargetPremise>,
    /// Line in the file; 0 if there is none.
    pub line: u32,
}

/// A regulator in front of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct RegulatorPremise {
    /// Indices of the flow that comes to it and of its target there.
    pub from: (usize, usize),
    /// Rate of its bucket.
    pub rate: String,
}

/// A server on the way of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct StepPremise {
    /// Name of the server.
    pub server: String,
    /// Class there.
    pub class: u8,
    /// Index of the step before; null for the first.
    pub before: Option<usize>,
    /// Greatest wait before the server: propagation, processing.
    pub wait: String,
    /// Part of the wait that varies.
    pub variation: String,
}

/// An end of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct TargetPremise {
    /// Name.
    pub target: String,
    /// Index of the last step.
    pub last: usize,
    /// Wait behind it.
    pub wait: String,
}

/// Buckets as text.
pub(crate) fn lines(buckets: &[Bucket<Rational>]) -> Vec<Line> {
    buckets.iter().map(|one| Line { burst: one.burst.to_string(), rate: one.rate.to_string() }).collect()
}

/// Rate-latency curves as text.
pub(crate) fn pieces(all: &[RateLatency<Rational>]) -> Vec<Piece> {
    all.iter().map(|one| Piece { rate: one.rate.to_string(), latency: one.latency.to_string() }).collect()
}

impl Premises {
    pub(crate) fn of(model: &Model) -> Self {
        Self {
            servers: model.servers.iter().map(server).collect(),
            flows: model.flows.iter().map(|one| flow(model, one)).collect(),
            places: places(model),
        }
    }
}

/// The slopes of a port whose rules are all shapers without a gate; else none, because gates change what others leave.
pub(crate) fn plain_slopes(server: &Server) -> Vec<(u8, &Slope<Rational>)> {
    let mut found = Vec::new();
    for (class, rule) in &server.rules {
        match rule {
            Rule::Shaped(slope) if slope.behind.is_none() => found.push((*class, slope)),
            _ => return Vec::new(),
        }
    }
    found
}

fn server(server: &Server) -> ServerPremise {
    let windows = server.reserved.iter().flat_map(|reserved| &reserved.windows);
    let fragments = server.fragments.as_ref();
    ServerPremise {
        server: server.name.clone(),
        service: pieces(&server.service),
        capacity: server.capacity.as_ref().map(ToString::to_string),
        windows: windows.map(|(bits, period)| (bits.to_string(), period.to_string())).collect(),
        guarded: server.reserved.as_ref().is_some_and(|reserved| reserved.guarded),
        preemptable: fragments.map_or_else(Vec::new, |one| one.classes.iter().copied().collect()),
        uncut: fragments.map(|one| one.uncut.to_string()),
        shaped: plain_slopes(server)
            .into_iter()
            .map(|(class, slope)| (class, slope.least.to_string(), slope.most.to_string()))
            .collect(),
        ruled: server.rules.keys().copied().collect(),
        buffers: server.buffers.iter().map(|(class, bits)| (*class, bits.to_string())).collect(),
        line: server.line,
    }
}

fn flow(model: &Model, flow: &Flow) -> FlowPremise {
    let steps = flow.steps.iter().map(|step| StepPremise {
        server: model.servers[step.server].name.clone(),
        class: step.class,
        before: step.before,
        wait: step.wait.to_string(),
        variation: step.variation.to_string(),
    });
    let targets = flow.targets.iter().map(|target| TargetPremise {
        target: target.name.clone(),
        last: target.last,
        wait: target.wait.to_string(),
    });
    let regulator = flow.regulator.as_ref();
    FlowPremise {
        flow: flow.name.clone(),
        arrival: lines(&flow.arrival),
        longest_frame: flow.longest_frame.to_string(),
        regulator: regulator.map(|one| RegulatorPremise { from: one.from, rate: one.rate.to_string() }),
        steps: steps.collect(),
        targets: targets.collect(),
        line: flow.line,
    }
}
