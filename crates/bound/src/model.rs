//! The network as an analysis sees it: servers, and flows that pass them along trees.

use std::collections::BTreeMap;

use wg_plan::Diagnostic;

use crate::curve::{Bucket, RateLatency};
use crate::openings::{Comes, Openings};
use crate::rational::Rational;
use crate::rules::{Fragments, Rule};

/// A network of servers.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// What it is called.
    pub name: String,
    /// What an instant is counted in.
    pub unit: TimeUnit,
    /// Its servers: output ports.
    pub servers: Vec<Server>,
    /// Its flows.
    pub flows: Vec<Flow>,
    /// What its file asks for, where the caller does not say.
    pub wishes: Wishes,
    /// What the input rests on besides the method, one sentence each.
    pub assumptions: Vec<String>,
    /// Bounds that may not be exceeded.
    pub limits: Vec<Limit>,
    /// What to know of the network, one sentence each.
    pub notes: Vec<String>,
    /// Flows that a schedule bounds.
    pub scheduled: Vec<Scheduled>,
    /// Where frames may be dropped.
    pub places: Vec<Place>,
}

/// Where frames are dropped that find no room or are not let pass.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it is, as texts name it.
    pub name: String,
    /// The flows whose frames it may drop.
    pub flows: Vec<usize>,
    /// What it takes.
    pub takes: Takes,
}

/// What waits together: flows, each with a step of it, and the most bits of them that find room.
pub type Waiting = (Vec<(usize, usize)>, Option<Rational>);

/// What a place takes of the frames that come to it.
#[derive(Clone, Debug)]
pub enum Takes {
    /// So many bits of all that waits at these steps of flows.
    Room {
        /// What waits together: flows, each with a step of it, and the most bits of them that find room before they come
        /// to this place.
        parts: Vec<Waiting>,
        /// On the wire.
        bits: Rational,
    },
    /// What keeps to a bucket, of all that comes to these steps of flows.
    Contract {
        /// Flows, each with a step of it, and the least time from where it enters the network to there.
        of: Vec<((usize, usize), Rational)>,
        /// The bucket, of bits on the wire.
        bucket: Bucket<Rational>,
        /// For how long it is kept.
        run: Rational,
    },
    /// What comes while a gate is open.
    Opening {
        /// When frames come.
        of: Vec<Comes>,
        /// When it is open.
        openings: Openings,
    },
    /// Not everything, and why.
    NotAll(String),
}

/// What an instant is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds; data in bits.
    #[default]
    Seconds,
    /// Whatever the file means: it gives no unit at all.
    Own,
}

impl TimeUnit {
    /// As answers write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Own => "own",
        }
    }
}

/// In which order a server serves frames of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplexing {
    /// What comes first is served first.
    Fifo,
    /// In any order, as long as something is served.
    Arbitrary,
}

/// What a file asks for.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The order of service.
    pub multiplexing: Option<Multiplexing>,
    /// Whether what comes over one link is capped by that link.
    pub grouping: Option<bool>,
    /// Whether frames are received whole before they go on.
    pub packetizer: bool,
}

/// An output port.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name, once in a model.
    pub name: String,
    /// What it guarantees: the maximum of these.
    pub service: Vec<RateLatency<Rational>>,
    /// The rate of the link behind it: nothing leaves faster.
    pub capacity: Option<Rational>,
    /// What a schedule keeps from all flows: windows, where there are any.
    pub reserved: Option<Reserved>,
    /// Rules of its classes beside strict priority.
    pub rules: BTreeMap<u8, Rule<Rational>>,
    /// Which classes send frames in fragments, where any does.
    pub fragments: Option<Fragments<Rational>>,
    /// Of classes whose buffer is known, the most bits that wait in order of arrival, beside the frame on the line: what
    /// finds no more room is lost.
    pub buffers: BTreeMap<u8, Rational>,
    /// Line of the file it is written in; 0 where there is none.
    pub line: u32,
}

/// What windows of time-triggered frames take of a line, under each integration of SAE AS6802 (Zhao, Pop, Li, Chen, Xiong: "Timing
/// analysis of rate-constrained traffic in TTEthernet using network calculus", Real-Time Systems 53, 2017; how windows of several
/// flows lie to one another is not used here).
#[derive(Clone, Debug)]
pub struct Reserved {
    /// Of each window the bits that may pass in it, and how often it comes.
    pub windows: Vec<(Rational, Rational)>,
    /// Whether a frame that would not be through before a window does not begin, or begins in vain.
    pub guarded: bool,
}

impl Reserved {
    /// What is lost of the line to frames of which `longest` is the longest, at most so much in any time. A window of `w` in a
    /// period `T` is in any time `t` at most `w·(1 − w/(C·T)) + t·w/T`.
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
    /// Its name, once in a model.
    pub name: String,
    /// What it sends at most: the minimum of these.
    pub arrival: Vec<Bucket<Rational>>,
    /// Its longest frame, in bits; zero where nobody says.
    pub longest_frame: Rational,
    /// Where it goes: each step after the one before it.
    pub steps: Vec<Step>,
    /// Where it ends.
    pub targets: Vec<Target>,
    /// Line of the file it is written in; 0 where there is none.
    pub line: u32,
}

/// A server that a flow passes.
#[derive(Clone, Debug)]
pub struct Step {
    /// The server.
    pub server: usize,
    /// Its class there: a lower number is served before a higher.
    pub class: u8,
    /// The step before, an index into [`Flow::steps`]; none of the first.
    pub before: Option<usize>,
    /// What it waits for before the server, at most: wires and forwarding.
    pub wait: Rational,
    /// How much of that may vary from frame to frame.
    pub variation: Rational,
}

/// An end of a flow.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// The last server on the way to it, an index into [`Flow::steps`].
    pub last: usize,
    /// What comes after that server.
    pub wait: Rational,
    /// Whether no time bounds how late what comes there is, whatever its servers guarantee.
    pub unbounded: bool,
}

/// A delay that may not be exceeded.
#[derive(Clone, Debug)]
pub struct Limit {
    /// The flow; all where none is named.
    pub flow: Option<String>,
    /// At most this, in the unit of the model.
    pub at_most: Rational,
    /// As it is written.
    pub written: String,
    /// Line of the file.
    pub line: u32,
}

/// A flow whose delay is that of its schedule.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// Its name.
    pub name: String,
    /// Targets, the names of the servers on the way, and the delay; none where a window may be missed again and again.
    pub targets: Vec<(String, Vec<String>, Option<Rational>)>,
    /// Places of which it is not proved that they take all its frames, and why.
    pub drops: Vec<(String, String)>,
}

/// What a flow waits for on the way to a server.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The server.
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
    /// A flow without a way yet.
    pub fn new(name: impl Into<String>, arrival: Vec<Bucket<Rational>>) -> Self {
        Self {
            name: name.into(),
            arrival,
            longest_frame: Rational::ZERO,
            steps: Vec::new(),
            targets: Vec::new(),
            line: 0,
        }
    }

    /// Adds the way to a target. What it shares with the beginning of another way is passed once.
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
            self.targets.push(Target { name: name.into(), last, wait, unbounded: false });
        }
    }

    /// The steps to `last`, in their order.
    pub fn path(&self, last: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            core::iter::successors(Some(last), |step| self.steps[*step].before).collect();
        path.reverse();
        path
    }

    /// A server that the way to `last` passes twice.
    fn twice(&self, last: usize) -> Option<usize> {
        let mut seen: Vec<usize> = self.path(last).into_iter().map(|step| self.steps[step].server).collect();
        seen.sort_unstable();
        seen.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// What it sends in the long run.
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
            fragments: None,
            buffers: BTreeMap::new(),
            line: 0,
        }
    }

    /// Its rate in the long run.
    pub fn rate(&self) -> &Rational {
        self.service.iter().map(|piece| &piece.rate).max().unwrap_or(&Rational::ZERO)
    }
}

impl Model {
    /// How much of each server is asked for in the long run.
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

    /// The flows that pass a server, in their order.
    pub fn flows_at(&self, server: usize) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(move |flow| flow.steps.iter().any(|step| step.server == server))
    }

    /// Forgets servers that no flow passes.
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

    /// Whether the values are such as an analysis may meet. Readers check more; this holds for every model.
    ///
    /// # Errors
    /// Everything that is wrong, in order.
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
            let new = names.insert(&flow.name, ()).is_none();
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

    /// Refuses servers that more is asked of than they serve; not those that keep classes apart by rules.
    ///
    /// # Errors
    /// One for each, with the flows that pass it.
    pub fn check_loads(&self, loads: &[Rational]) -> Result<(), Vec<Diagnostic>> {
        let mut found = Vec::new();
        let over = loads.iter().enumerate().filter(|(_, load)| **load > Rational::ONE);
        for (index, load) in over.filter(|(index, _)| self.servers[*index].rules.is_empty()) {
            let server = &self.servers[index];
            let mut names: Vec<&str> = self.flows_at(index).map(|flow| flow.name.as_str()).collect();
            let count = names.len();
            names.truncate(20);
            let more = if count > names.len() {
                format!(" and {} more", count - names.len())
            } else {
                String::new()
            };
            let message = format!(
                "its load is {:.6} (exactly {load}): more is sent to it than it serves, by the {count} flows {}{more}",
                load.to_f64_up(),
                names.join(", ")
            );
            let cure =
                "lower the rates of these flows, send some another way, or give the port a faster link";
            found.push(problem(
                server.line,
                &format!("server \"{}\"", server.name),
                &message,
                "at most 1",
                cure,
            ));
        }
        if found.is_empty() { Ok(()) } else { Err(found) }
    }
}

/// What is wrong, the limit and the cure.
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

/// A finding about an input.
pub(crate) fn problem(line: u32, element: &str, message: &str, limit: &str, cure: &str) -> Diagnostic {
    Diagnostic {
        line,
        element: element.to_owned(),
        message: message.to_owned(),
        limit: limit.to_owned(),
        cure: cure.to_owned(),
    }
}
