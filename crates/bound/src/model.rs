//! Model of a network for an analysis: servers, and flows that pass them along trees.

use std::collections::BTreeMap;

use wg_plan::Diagnostic;

use crate::curve::{Bucket, RateLatency};
use crate::instants::{GateTimes, Instants};
use crate::openings::{Comes, Openings};
use crate::rational::Rational;
use crate::rules::{Fragments, Rule};

/// A network of servers.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Name of the network.
    pub name: String,
    /// Unit of time.
    pub unit: TimeUnit,
    /// Servers: output ports.
    pub servers: Vec<Server>,
    /// Its flows.
    pub flows: Vec<Flow>,
    /// Settings that its file requests, if the caller leaves them open.
    pub wishes: Wishes,
    /// Assumptions of the input besides those of the method, one sentence each.
    pub assumptions: Vec<String>,
    /// Upper limits of delays.
    pub limits: Vec<Limit>,
    /// Remarks on the network, one sentence each.
    pub notes: Vec<String>,
    /// Flows with a bound by their schedule.
    pub scheduled: Vec<Scheduled>,
    /// Places that may drop frames.
    pub places: Vec<Place>,
}

/// A place that drops frames if they do not fit or are not admitted.
#[derive(Clone, Debug)]
pub struct Place {
    /// Name in texts.
    pub name: String,
    /// Indices of the flows whose frames it may drop.
    pub flows: Vec<usize>,
    /// Condition for accepting frames.
    pub takes: Takes,
}

/// Traffic with a common bound: flows, each with a step of it, and the greatest number of their bits that fit.
pub type Waiting = (Vec<(usize, usize)>, Option<Rational>);

/// Condition under which a place accepts frames.
#[derive(Clone, Debug)]
pub enum Takes {
    /// Limited room for all traffic that waits at steps of flows.
    Room {
        /// Traffic with a common bound: flows, each with a step of it, and the greatest number of their bits that fit
        /// before they come to this place.
        parts: Vec<Waiting>,
        /// Room in bits on the wire.
        bits: Rational,
    },
    /// A bucket for all traffic that comes to steps of flows.
    Contract {
        /// Flows, each with a step of it, and the least time from its entry into the network to there.
        of: Vec<((usize, usize), Rational)>,
        /// The bucket, in bits on the wire.
        bucket: Bucket<Rational>,
        /// Duration for which it holds.
        run: Rational,
    },
    /// A gate that must be open when frames come.
    Opening {
        /// Arrival times of the frames.
        of: Vec<Comes>,
        /// Open times of the gate.
        openings: Openings,
    },
    /// It does not accept everything, for this reason.
    NotAll(String),
}

/// Unit of time of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds; data in bits.
    #[default]
    Seconds,
    /// The file's own unit: it states none.
    Own,
}

impl TimeUnit {
    /// Name in answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Own => "own",
        }
    }
}

/// Order in which a server serves frames of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplexing {
    /// First in, first out.
    Fifo,
    /// Any order, as long as something is served (work-conserving).
    Arbitrary,
}

/// Settings requested by a file.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The order of service.
    pub multiplexing: Option<Multiplexing>,
    /// Whether the traffic of one link is limited by that link.
    pub grouping: Option<bool>,
    /// Whether frames are received completely before they are forwarded.
    pub packetizer: bool,
}

/// An output port.
#[derive(Clone, Debug)]
pub struct Server {
    /// Name, unique in a model.
    pub name: String,
    /// Guaranteed service: the maximum of these.
    pub service: Vec<RateLatency<Rational>>,
    /// Rate of the link behind it, which limits its output.
    pub capacity: Option<Rational>,
    /// Windows of a schedule, closed to all flows, if there are any.
    pub reserved: Option<Reserved>,
    /// Rules of its classes beside strict priority.
    pub rules: BTreeMap<u8, Rule<Rational>>,
    /// Names of its classes.
    pub class_names: BTreeMap<u8, String>,
    /// When the gates of its classes are open.
    pub gate_times: BTreeMap<u8, GateTimes>,
    /// Whether frames leave before they have come completely.
    pub cuts_through: bool,
    /// Preemptable classes, if there are any.
    pub fragments: Option<Fragments<Rational>>,
    /// Greatest number of bits that wait in order of arrival, by class, for buffers of known size, without the frame on
    /// the line; frames beyond it are lost.
    pub buffers: BTreeMap<u8, Rational>,
    /// Line in the file; 0 if there is none.
    pub line: u32,
}

/// Line time that windows of time-triggered frames take, under each integration of SAE AS6802 (Zhao, Pop, Li, Chen,
/// Xiong: "Timing analysis of rate-constrained traffic in TTEthernet using network calculus", Real-Time Systems 53,
/// 2017; the relative position of several flows' windows is not used here).
#[derive(Clone, Debug)]
pub struct Reserved {
    /// Bits that may pass in each window, and its period.
    pub windows: Vec<(Rational, Rational)>,
    /// Whether a frame that would not end before a window does not begin, or begins in vain.
    pub guarded: bool,
}

impl Reserved {
    /// Greatest line time lost to frames of which `longest` is the longest, in any time. A window of `w` in a period
    /// `T` takes at most `w·(1 − w/(C·T)) + t·w/T` of any time `t`.
    pub fn of(&self, longest: &Rational, rate: &Rational) -> Bucket<Rational> {
        let mut all = Bucket { burst: Rational::ZERO, rate: Rational::ZERO };
        for (bits, period) in &self.windows {
            let lost = if self.guarded { bits + longest } else { bits.clone() };
            let each = &lost / period;
            let left = (&Rational::ONE - &(&each / rate)).max(Rational::ZERO);
            (all.burst, all.rate) = (&all.burst + &(&lost * &left), &all.rate + &each);
        }
        all
    }
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Name, unique in a model.
    pub name: String,
    /// Arrival curve: the minimum of these.
    pub arrival: Vec<Bucket<Rational>>,
    /// Longest frame, in bits; zero if unknown.
    pub longest_frame: Rational,
    /// Shortest frame, likewise.
    pub shortest_frame: Rational,
    /// Least wait before its first server.
    pub least_wait: Rational,
    /// When its messages are sent, if the plan says so.
    pub sent: Option<Instants>,
    /// Regulator in front of its first server, for a flow that goes on from another one.
    pub regulator: Option<Regulator>,
    /// Copies that its targets, and those of its parts, get.
    pub copies: Option<Copies>,
    /// Whether it is a part of the flow before it, and answers as that.
    pub is_part: bool,
    /// Path or tree: each step after the one before it.
    pub steps: Vec<Step>,
    /// Ends of the flow.
    pub targets: Vec<Target>,
    /// Line in the file; 0 if there is none.
    pub line: u32,
}

/// Regulator of a flow (ATS scheduler, IEEE Std 802.1Q-2022, 8.6.11). What leaves it is a flow by itself: it keeps the
/// bucket of the regulator, whatever came.
#[derive(Clone, Debug)]
pub struct Regulator {
    /// Index of the flow that comes to it, and of its target there.
    pub from: (usize, usize),
    /// Rate of its bucket.
    pub rate: Rational,
    /// Time in which its bucket fills.
    pub fills_in: Rational,
    /// Traffic within this never waits for the bucket.
    pub passes: Bucket<Rational>,
    /// Longest wait of a frame; one that would wait longer is dropped.
    pub longest_wait: Rational,
}

/// Copies of a flow over several ways (IEEE Std 802.1CB), of which the first to come is taken where they meet.
#[derive(Clone, Debug)]
pub struct Copies {
    /// Name of the target that gets one of them.
    pub target: String,
    /// Least time between messages.
    pub period: Rational,
    /// Sequence numbers that are remembered.
    pub history: Option<u32>,
    /// Time without a message after which they are forgotten.
    pub reset: Rational,
}

/// A server that a flow passes.
#[derive(Clone, Debug)]
pub struct Step {
    /// Index of the server.
    pub server: usize,
    /// Class there: a lower number is served first.
    pub class: u8,
    /// Index of the previous step in [`Flow::steps`]; `None` for the first.
    pub before: Option<usize>,
    /// Greatest wait before the server: wires and forwarding.
    pub wait: Rational,
    /// Part of the wait that may vary from frame to frame.
    pub variation: Rational,
}

/// An end of a flow.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the target.
    pub name: String,
    /// Index in [`Flow::steps`] of the last server on the path to it.
    pub last: usize,
    /// Delay after that server.
    pub wait: Rational,
    /// Least delay after that server.
    pub least_wait: Rational,
    /// Whether the delay there is unbounded, whatever its servers guarantee.
    pub unbounded: bool,
    /// Whether it is a regulator, from which the flow goes on.
    pub goes_on: bool,
}

/// An upper limit of a delay.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Name of the flow; `None`: all flows.
    pub flow: Option<String>,
    /// The limit, in the unit of the model.
    pub at_most: Rational,
    /// The limit as written.
    pub written: String,
    /// Line in the file.
    pub line: u32,
}

/// A flow whose delay follows from its schedule.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// Name of the flow.
    pub name: String,
    /// Targets, names of the servers on the path, and delay; `None` if a window may be missed repeatedly.
    pub targets: Vec<(String, Vec<String>, Option<Rational>)>,
    /// Places not proved to accept all its frames, with reasons.
    pub drops: Vec<(String, String)>,
}

/// A server on a path, with the wait before it.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Index of the server.
    pub server: usize,
    /// [`Step::class`].
    pub class: u8,
    /// [`Step::wait`].
    pub wait: Rational,
    /// [`Step::variation`].
    pub variation: Rational,
}

impl From<usize> for Passage {
    fn from(server: usize) -> Self {
        Self { server, class: 0, wait: Rational::ZERO, variation: Rational::ZERO }
    }
}

impl Flow {
    /// A flow without a path yet.
    pub fn new(name: impl Into<String>, arrival: Vec<Bucket<Rational>>) -> Self {
        Self {
            name: name.into(),
            arrival,
            longest_frame: Rational::ZERO,
            shortest_frame: Rational::ZERO,
            least_wait: Rational::ZERO,
            sent: None,
            regulator: None,
            copies: None,
            is_part: false,
            steps: Vec::new(),
            targets: Vec::new(),
            line: 0,
        }
    }

    /// A part of this flow on other ways.
    pub fn another_part(&self) -> Self {
        Self { steps: Vec::new(), targets: Vec::new(), is_part: true, ..self.clone() }
    }

    /// Adds the path to a target. A common beginning with another path is passed once.
    pub fn add_target(
        &mut self,
        name: impl Into<String>,
        path: impl IntoIterator<Item = Passage>,
        wait: Rational,
    ) {
        let mut at: Option<usize> = None;
        for Passage { server, class, wait, variation } in path {
            let known = self.steps.iter().position(|step| step.server == server && step.before == at);
            at = Some(known.unwrap_or_else(|| {
                self.steps.push(Step { server, class, before: at, wait, variation });
                self.steps.len() - 1
            }));
        }
        if let Some(last) = at {
            self.targets.push(Target {
                name: name.into(),
                last,
                wait,
                least_wait: Rational::ZERO,
                unbounded: false,
                goes_on: false,
            });
        }
    }

    /// The steps to `last`, in order.
    pub fn path(&self, last: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            core::iter::successors(Some(last), |step| self.steps[*step].before).collect();
        path.reverse();
        path
    }

    /// A server that the path to `last` passes twice.
    fn twice(&self, last: usize) -> Option<usize> {
        let mut seen: Vec<usize> = self.path(last).into_iter().map(|step| self.steps[step].server).collect();
        seen.sort_unstable();
        seen.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// Long-term rate of the flow.
    pub fn rate(&self) -> &Rational {
        self.arrival.iter().map(|bucket| &bucket.rate).min().unwrap_or(&Rational::ZERO)
    }
}

impl Server {
    /// A server without a capacity, a schedule or rules.
    pub fn new(name: impl Into<String>, service: Vec<RateLatency<Rational>>) -> Self {
        Self {
            name: name.into(),
            service,
            capacity: None,
            reserved: None,
            rules: BTreeMap::new(),
            class_names: BTreeMap::new(),
            gate_times: BTreeMap::new(),
            cuts_through: false,
            fragments: None,
            buffers: BTreeMap::new(),
            line: 0,
        }
    }

    /// Long-term rate of the server.
    pub fn rate(&self) -> &Rational {
        self.service.iter().map(|piece| &piece.rate).max().unwrap_or(&Rational::ZERO)
    }
}

impl Model {
    /// Long-term load of each server.
    pub fn loads(&self) -> Vec<Rational> {
        let mut longest = vec![Rational::ZERO; self.servers.len()];
        for (flow, step) in self.flows.iter().flat_map(|flow| flow.steps.iter().map(move |step| (flow, step)))
        {
            longest[step.server] = (&longest[step.server]).max(&flow.longest_frame).clone();
        }
        let kept = |(server, longest): (&Server, &Rational)| {
            let windows = server.reserved.as_ref();
            windows.map_or(Rational::ZERO, |windows| windows.of(longest, server.rate()).rate)
        };
        let mut rates: Vec<Rational> = self.servers.iter().zip(&longest).map(kept).collect();
        for flow in &self.flows {
            for step in &flow.steps {
                rates[step.server] = &rates[step.server] + flow.rate();
            }
        }
        rates.iter().zip(&self.servers).map(|(rate, server)| rate / server.rate()).collect()
    }

    /// A flow and those from which it goes on behind regulators, the first of them last.
    pub fn course(&self, flow: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(Some(flow), |flow| Some(self.flows[*flow].regulator.as_ref()?.from.0))
    }

    /// Flows and their steps from the beginning of a flow's course to one of its steps.
    pub(crate) fn whole_path(&self, flow: usize, last: usize) -> Vec<(usize, usize)> {
        let mut paths: Vec<Vec<(usize, usize)>> = Vec::new();
        let mut at = Some((flow, last));
        while let Some((flow, last)) = at {
            paths.push(self.flows[flow].path(last).into_iter().map(|step| (flow, step)).collect());
            let before = self.flows[flow].regulator.as_ref().map(|regulator| regulator.from);
            at = before.map(|(before, target)| (before, self.flows[before].targets[target].last));
        }
        paths.into_iter().rev().flatten().collect()
    }

    /// The flows that pass a server, in order.
    pub fn flows_at(&self, server: usize) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(move |flow| flow.steps.iter().any(|step| step.server == server))
    }

    /// Removes servers that no flow passes.
    pub(crate) fn drop_idle(&mut self) {
        let mut used = vec![false; self.servers.len()];
        for step in self.flows.iter().flat_map(|flow| &flow.steps) {
            used[step.server] = true;
        }
        let mut places = vec![0; used.len()];
        let mut kept = Vec::new();
        for (index, server) in core::mem::take(&mut self.servers).into_iter().enumerate() {
            places[index] = kept.len();
            if used[index] {
                kept.push(server);
            }
        }
        self.servers = kept;
        for step in self.flows.iter_mut().flat_map(|flow| &mut flow.steps) {
            step.server = places[step.server];
        }
    }

    /// Checks that the values are valid for an analysis. Readers check more; this holds for every model.
    ///
    /// # Errors
    /// All errors, in order.
    pub fn check(&self) -> Result<(), Vec<Diagnostic>> {
        let mut found = Vec::new();
        let mut names = BTreeMap::new();
        for server in &self.servers {
            let new = names.insert(&server.name, ()).is_none();
            let element = format!("server \"{}\"", server.name);
            let faults = server_faults(server, new);
            found.extend(
                faults
                    .iter()
                    .map(|(message, limit, cure)| problem(server.line, &element, message, limit, cure)),
            );
        }
        let mut names = BTreeMap::new();
        for flow in &self.flows {
            let new = names.insert(&flow.name, ()).is_none() || flow.is_part;
            let element = format!("flow \"{}\"", flow.name);
            let faults = flow_faults(flow, new);
            found.extend(
                faults
                    .iter()
                    .map(|(message, limit, cure)| problem(flow.line, &element, message, limit, cure)),
            );
            if let Some(server) = flow.targets.iter().find_map(|target| flow.twice(target.last)) {
                let message = format!("its path passes server \"{}\" twice", self.servers[server].name);
                found.push(problem(flow.line, &element, &message, "once", "give a path without a loop"));
            }
        }
        if self.flows.is_empty() && self.scheduled.is_empty() {
            let cure = "add a flow with a path and an arrival curve";
            found.push(problem(0, "network", "it has no flow", "at least 1", cure));
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

/// Message, limit and cure of an error.
type Fault = (&'static str, &'static str, &'static str);

fn chosen<const N: usize>(all: [(bool, Fault); N]) -> Vec<Fault> {
    all.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, fault)| fault).collect()
}

fn server_faults(server: &Server, new: bool) -> Vec<Fault> {
    let stopped = server.service.is_empty() || server.service.iter().any(|piece| piece.rate.signum() <= 0);
    let early = server.service.iter().any(|piece| piece.latency.signum() < 0);
    let closed = server.capacity.as_ref().is_some_and(|capacity| capacity.signum() <= 0);
    chosen([
        (!new, ("its name is given twice", "", "give each server a name of its own")),
        (stopped, ("its rate is not above zero", "above 0", "give the rate of the link behind the port")),
        (early, ("its latency is below zero", "at least 0", "give the latency of the port, or 0")),
        (closed, ("its capacity is not above zero", "above 0", "give the rate of the link, or leave it out")),
    ])
}

fn flow_faults(flow: &Flow, new: bool) -> Vec<Fault> {
    let negative = flow.arrival.iter().any(|bucket| bucket.burst.signum() < 0 || bucket.rate.signum() < 0);
    let frame = flow.longest_frame.signum() < 0;
    chosen([
        (!new, ("its name is given twice", "", "give each flow a name of its own")),
        (flow.targets.is_empty(), ("it goes nowhere", "at least 1 server", "give the servers on its path")),
        (
            flow.arrival.is_empty(),
            ("it has no arrival curve", "at least 1 leaky bucket", "give a burst and a rate"),
        ),
        (negative, ("a burst or a rate of it is below zero", "at least 0", "give what it sends at most")),
        (frame, ("its longest frame is below zero", "at least 0", "give the length of its longest frame")),
    ])
}

/// A diagnostic about an input.
pub(crate) fn problem(line: u32, element: &str, message: &str, limit: &str, cure: &str) -> Diagnostic {
    Diagnostic {
        line,
        element: element.to_owned(),
        message: message.to_owned(),
        limit: limit.to_owned(),
        cure: cure.to_owned(),
    }
}
