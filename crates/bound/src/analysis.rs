//! Analysis of a network by one method: question, refusal and answer.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wg_plan::Diagnostic;

use crate::curve::Bucket;
use crate::knowledge;
use crate::method::{Choice, Method};
use crate::model::{Model, Multiplexing, Place, Scheduled, Server, Takes, problem};
use crate::nodes::Layout;
use crate::number::{Enclosure, Number};
use crate::plp::{self, Solver};
use crate::rational::Rational;
use crate::rules::Rule;
use crate::separate;
use crate::tfa::{self, Total};
use crate::values::{Settings, Shift};

/// Version of the JSON form of [`Answer`].
pub const BOUNDS_SCHEMA: u32 = 1;

impl Multiplexing {
    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Arbitrary => "arbitrary",
        }
    }
}

/// A question as text; what it leaves open follows the input's wishes, or the default.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Method: `tfa`, `sfa`, `pmoo` or `plp`.
    pub method: String,
    /// Order of service: `fifo` or `arbitrary`.
    #[serde(default)]
    pub multiplexing: Option<String>,
    /// Whether input-link shaping is used.
    #[serde(default)]
    pub grouping: Option<bool>,
    /// Arithmetic: `exact` or `rounded`.
    #[serde(default)]
    pub arithmetic: Option<String>,
}

/// Reason why there is no result.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The input or the question is invalid.
    Input(Vec<Diagnostic>),
    /// Servers depend on one another and no fixed point can be proved.
    NoFixedPoint(Diagnostic),
}

/// Bounds of a network.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Version, [`BOUNDS_SCHEMA`].
    pub schema: u32,
    /// Name of the network.
    pub name: String,
    /// Name of the method.
    pub method: &'static str,
    /// Order of service.
    pub multiplexing: &'static str,
    /// Input-link shaping: `on` or `off`.
    pub grouping: &'static str,
    /// Whether frames are received completely before they are forwarded.
    pub packetizer: bool,
    /// Arithmetic: `exact` or `rounded`.
    pub arithmetic: &'static str,
    /// Unit of time: `s`, or `own`.
    pub time_unit: &'static str,
    /// Assumptions of the bounds.
    pub assumptions: Vec<String>,
    /// Remarks on this answer.
    pub notes: Vec<String>,
    /// Bounds of the flows.
    pub flows: Vec<FlowBound>,
    /// Bounds of the servers, by total flow analysis.
    pub servers: Vec<ServerBound>,
    /// Limits, and whether the bounds meet them.
    pub limits: Vec<Judged>,
}

/// Bounds of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowBound {
    /// Name of the flow.
    pub flow: String,
    /// Bounds for each of its targets.
    pub targets: Vec<TargetBound>,
}

/// Bound to one target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetBound {
    /// Name of the target.
    pub target: String,
    /// Names of the servers on the path.
    pub path: Vec<String>,
    /// Upper bound of the delay; null: unbounded.
    pub delay: Option<f64>,
    /// The delay as an exact fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_exact: Option<String>,
    /// Delay at each server and between servers; by total flow analysis only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<f64>,
}

/// Bounds of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerBound {
    /// Name of the server.
    pub server: String,
    /// Upper bound of the delay over all classes; null: unbounded.
    pub delay: Option<f64>,
    /// The delay as an exact fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_exact: Option<String>,
    /// Upper bound of the backlog in bits; null: unbounded.
    pub backlog_bits: Option<f64>,
    /// The backlog as an exact fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_exact: Option<String>,
    /// Load: demanded share of its rate.
    pub load: f64,
    /// The load as an exact fraction.
    pub load_exact: String,
    /// Long-term service rate, in bits and the unit of time.
    pub rate: f64,
}

/// A limit, and whether the bound meets it.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Name of the flow.
    pub flow: String,
    /// Name of the target.
    pub target: String,
    /// Upper limit of the delay, in the unit of the answer.
    pub at_most: f64,
    /// The limit as written.
    pub written: String,
    /// The bound of the delay; null: unbounded.
    pub delay: Option<f64>,
    /// Whether the bound meets the limit.
    pub kept: bool,
    /// Line of the limit in the file.
    pub line: u32,
}

impl Question {
    /// Parses the question; what it leaves open follows the wishes of the model.
    ///
    /// # Errors
    /// [`Refusal::Input`] for unknown words and impossible combinations.
    pub fn understood(&self, model: &Model) -> Result<Choice, Refusal> {
        let refuse = |element: &str, message: &str, limit: &str, cure: &str| {
            Refusal::Input(vec![problem(0, element, message, limit, cure)])
        };
        let Some(method) = Method::read(&self.method) else {
            let message = format!("there is no method \"{}\"", self.method);
            return Err(refuse("--method", &message, "tfa, sfa, pmoo or plp", "choose one of them"));
        };
        let multiplexing = match self.multiplexing.as_deref() {
            Some("fifo") => Multiplexing::Fifo,
            Some("arbitrary") => Multiplexing::Arbitrary,
            Some(other) => {
                let message = format!("there is no multiplexing \"{other}\"");
                return Err(refuse("--multiplexing", &message, "fifo or arbitrary", "choose one of them"));
            }
            None if method == Method::Pmoo => Multiplexing::Arbitrary,
            None if method == Method::Plp => Multiplexing::Fifo,
            None => model.wishes.multiplexing.unwrap_or(Multiplexing::Fifo),
        };
        let rounded = match self.arithmetic.as_deref() {
            None | Some("exact") => false,
            Some("rounded") => true,
            Some(other) => {
                let message = format!("there is no arithmetic \"{other}\"");
                return Err(refuse("--arithmetic", &message, "exact or rounded", "choose one of them"));
            }
        };
        if rounded && method == Method::Plp {
            return Err(refuse(
                "--arithmetic",
                "plp is exact: what its multipliers prove is a fraction",
                "exact",
                "leave --arithmetic out",
            ));
        }
        if let Some((element, message, limit, cure)) = unfit(method, multiplexing, model) {
            return Err(refuse(element, message, limit, cure));
        }
        let grouping = self.grouping.or(model.wishes.grouping).unwrap_or(false);
        // In arbitrary order, what leaves is bounded by the latency of the left-over service, which is less than the
        // busy period.
        let shift = match (method, multiplexing) {
            (Method::Tfa | Method::Plp, Multiplexing::Fifo) => Shift::Delay,
            _ => Shift::LeftOver,
        };
        let settings = Settings { multiplexing, grouping, packetizer: model.wishes.packetizer, shift };
        Ok(Choice { method, settings, rounded })
    }
}

/// Reason why method, order of service and network cannot be combined: element, message, limit and cure.
fn unfit(
    method: Method,
    multiplexing: Multiplexing,
    model: &Model,
) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    let shaped = |server: &Server| server.rules.values().any(|rule| matches!(rule, Rule::Shaped(_)));
    match (method, multiplexing) {
        (_, Multiplexing::Arbitrary) if model.servers.iter().any(shaped) => Some((
            if method == Method::Pmoo { "--method" } else { "--multiplexing" },
            "a credit-based shaper holds frames back while the line is free, and arbitrary multiplexing rests on servers \
             that serve whenever something waits",
            "--multiplexing fifo",
            "take tfa or sfa with --multiplexing fifo",
        )),
        (Method::Pmoo, Multiplexing::Fifo) => Some((
            "--method",
            "pmoo does not go with fifo multiplexing: it lets the cross traffic of a whole path be served first",
            "--multiplexing arbitrary",
            "its bounds hold for servers of any order, so ask for --multiplexing arbitrary; or take plp, tfa or sfa",
        )),
        (Method::Plp, Multiplexing::Arbitrary) => Some((
            "--method",
            "plp does not go with arbitrary multiplexing: its programme rests on the order of arrival",
            "--multiplexing fifo",
            "take pmoo, sfa or tfa",
        )),
        _ => None,
    }
}

/// Computes the bounds of a network.
///
/// # Errors
/// [`Refusal`], if there is no answer.
pub fn analyse(model: &Model, choice: Choice) -> Result<Answer, Refusal> {
    analyse_with(model, choice, None)
}

/// As [`analyse`], with a solver of linear programmes for the method that needs one.
///
/// # Errors
/// As [`analyse`].
pub fn analyse_with(
    model: &Model,
    choice: Choice,
    solver: Option<&mut Solver<'_>>,
) -> Result<Answer, Refusal> {
    if choice.rounded {
        return analysed::<Enclosure>(model, choice, |_, _, _| Ok(None));
    }
    let mut solver = solver;
    let programmes = |model: &Model, layout: &Layout, total: &Total<Rational>| match solver.as_deref_mut() {
        Some(solver) => Ok(Some(plp::analyse(model, layout, choice.settings, total, solver))),
        None => Err(plp::Unfit("plp needs a solver of linear programmes, and there is none here".to_owned())),
    };
    analysed::<Rational>(model, choice, programmes)
}

/// Result of one analysis.
struct Computed<N> {
    /// Bounds of servers; `None` if they depend on one another and only flows are bounded.
    total: Option<Total<N>>,
    ends: Vec<Vec<Option<N>>>,
    /// Numbers of linear programmes: proved and not.
    programmes: Option<(usize, usize)>,
}

fn computed<N: Number>(
    model: &Model,
    layout: &Layout,
    choice: Choice,
    programmes: &mut impl FnMut(&Model, &Layout, &Total<N>) -> Result<Option<plp::Found>, plp::Unfit>,
) -> Result<Computed<N>, Refusal> {
    // Servers are always bounded by the total of their flows.
    let of_servers = match choice.settings.multiplexing {
        Multiplexing::Fifo => Settings { shift: Shift::Delay, ..choice.settings },
        Multiplexing::Arbitrary => choice.settings,
    };
    let total: Option<Total<N>> = match tfa::analyse(model, layout, of_servers) {
        Ok(total) => Some(total),
        // Flows that are bounded one by one need no bounds of servers.
        Err(_) if choice.method == Method::Sfa && !choice.settings.grouping => None,
        Err(cycle) => return Err(no_fixed_point(model, choice, &cycle.servers)),
    };
    let mut proved = None;
    let nothing = Total::nothing(layout);
    let known = total.as_ref().unwrap_or(&nothing);
    let ends: Vec<Vec<Option<N>>> = match choice.method {
        Method::Tfa => total_delays(model, layout, known),
        Method::Plp => {
            let unfit = |plp::Unfit(message): plp::Unfit| {
                Refusal::Input(vec![problem(0, "--method", &message, "", "take tfa or sfa")])
            };
            let found = programmes(model, layout, known).map_err(unfit)?;
            let found = found.unwrap_or(plp::Found { ends: Vec::new(), proved: 0, unproved: 0 });
            proved = Some((found.proved, found.unproved));
            let value = |end: Option<Rational>| end.as_ref().map(N::of);
            found.ends.into_iter().map(|ends| ends.into_iter().map(value).collect()).collect()
        }
        Method::Sfa | Method::Pmoo => separate::analyse::<N>(model, layout, choice, total.as_ref())
            .map_err(|servers| no_fixed_point(model, choice, &servers))?,
    };
    Ok(Computed { total, ends, programmes: proved })
}

impl<N: Number> Computed<N> {
    /// The minimum of this and another analysis, of less knowledge.
    fn lessened(&mut self, other: Self) {
        for (own, others) in self.ends.iter_mut().zip(other.ends) {
            for (end, less) in own.iter_mut().zip(others) {
                *end = knowledge::lesser(end.take(), less);
            }
        }
        match (&mut self.total, other.total) {
            (Some(own), Some(less)) => own.lessened(less),
            (own, less) => *own = own.take().or(less),
        }
        if let (Some(own), Some(others)) = (&mut self.programmes, other.programmes) {
            *own = (own.0 + others.0, own.1 + others.1);
        }
    }
}

fn analysed<N: Number>(
    model: &Model,
    choice: Choice,
    mut programmes: impl FnMut(&Model, &Layout, &Total<N>) -> Result<Option<plp::Found>, plp::Unfit>,
) -> Result<Answer, Refusal> {
    model.check().map_err(Refusal::Input)?;
    let loads = model.loads();
    model.check_loads(&loads).map_err(Refusal::Input)?;
    let layout = Layout::of(model);
    let mut found = computed::<N>(model, &layout, choice, &mut programmes);
    for part in knowledge::parts(model) {
        if part.check_loads(&part.loads()).is_err() {
            continue;
        }
        match (&mut found, computed(&part, &layout, choice, &mut programmes)) {
            (Ok(found), Ok(less)) => found.lessened(less),
            (Err(Refusal::NoFixedPoint(_)), Ok(less)) => found = Ok(less),
            _ => {}
        }
    }
    let Computed { total, mut ends, programmes } = found?;
    let is_known = total.is_some();
    let total = total.unwrap_or_else(|| Total::nothing(&layout));
    if choice.method == Method::Tfa {
        // For each server the part that bounds it best.
        ends = total_delays(model, &layout, &total);
    }
    for (flow, ends) in model.flows.iter().zip(&mut ends) {
        for (_, end) in flow.targets.iter().zip(ends).filter(|(target, _)| target.unbounded) {
            *end = None;
        }
    }
    let mut flows = flow_bounds(model, &layout, &ends, (choice.method == Method::Tfa).then_some(&total));
    flows.extend(model.scheduled.iter().map(scheduled));
    let (arithmetic, grouping) = (
        if choice.rounded { "rounded" } else { "exact" },
        if choice.settings.grouping { "on" } else { "off" },
    );
    let full = full_buffers(&layout, &total);
    let dropping = dropping(model, &layout, &total);
    let lossy: BTreeSet<usize> = dropping.iter().flat_map(|place| place.flows.iter().copied()).collect();
    let limits = judged(model, &ends, (&full, &lossy));
    let mut notes = [notes(model, choice, (&loads, programmes), &flows), losses(model, &full)].concat();
    let told = dropping.iter().filter(|place| !is_told(model, place, &full));
    notes.extend(told.map(|place| dropped(model, place)));
    notes.extend(dropped_of_schedules(model));
    notes.extend((!is_known).then(|| NO_SERVERS.to_owned()));
    Ok(Answer {
        schema: BOUNDS_SCHEMA,
        name: model.name.clone(),
        method: choice.method.name(),
        multiplexing: choice.settings.multiplexing.name(),
        grouping,
        packetizer: choice.settings.packetizer,
        arithmetic,
        time_unit: model.unit.name(),
        assumptions: assumptions(model, choice, &layout),
        notes,
        flows,
        servers: server_bounds(model, &layout, &total, &loads),
        limits,
    })
}

/// Note for a network with bounds of flows but not of servers.
const NO_SERVERS: &str = "servers have no bounds: total flow analysis finds no delays that hold together";

fn no_fixed_point(model: &Model, choice: Choice, servers: &[usize]) -> Refusal {
    let mut names: Vec<&str> = servers.iter().map(|server| model.servers[*server].name.as_str()).collect();
    let count = names.len();
    names.truncate(20);
    let more = if count > names.len() { format!(" and {} more", count - names.len()) } else { String::new() };
    let message = format!(
        "{} servers depend on one another, {}{more}, and {} finds no delays that hold together",
        count,
        names.join(", "),
        choice.method.name()
    );
    let cure = "lower the load, break the cycle by other paths, or try --grouping on: whether the network is stable is not decided";
    Refusal::NoFixedPoint(problem(0, "network", &message, "a fixed point", cure))
}

/// Delays to each target of each flow, as sums over the path.
fn total_delays<N: Number>(model: &Model, layout: &Layout, total: &Total<N>) -> Vec<Vec<Option<N>>> {
    let mut ends = Vec::with_capacity(model.flows.len());
    for (index, flow) in model.flows.iter().enumerate() {
        let mut sums: Vec<Option<N>> = Vec::with_capacity(flow.steps.len());
        for (position, step) in flow.steps.iter().enumerate() {
            let node = layout.hops[layout.first[index] + position].node;
            let before = match step.before {
                Some(before) => sums[before].clone(),
                None => Some(N::zero()),
            };
            let here = total.bounds[node].delay.as_ref();
            sums.push(before.and_then(|sum| Some(sum.plus(&N::of(&step.wait)).plus(here?))));
        }
        let end = |target: &crate::model::Target| {
            sums[target.last].as_ref().map(|sum| sum.plus(&N::of(&target.wait)))
        };
        ends.push(flow.targets.iter().map(end).collect());
    }
    ends
}

fn text<N: Number>(value: Option<&N>) -> Option<String> {
    value.and_then(Number::exact).map(|value| value.to_string())
}

fn flow_bounds<N: Number>(
    model: &Model,
    layout: &Layout,
    ends: &[Vec<Option<N>>],
    total: Option<&Total<N>>,
) -> Vec<FlowBound> {
    let bound = |(index, flow): (usize, &crate::model::Flow)| {
        let targets = flow.targets.iter().zip(&ends[index]).map(|(target, delay)| {
            let path = flow.path(target.last);
            let hops = total.map_or_else(Vec::new, |total| {
                let node = |step: &usize| layout.hops[layout.first[index] + step].node;
                path.iter()
                    .filter_map(|step| total.bounds[node(step)].delay.as_ref().map(Number::upper))
                    .collect()
            });
            TargetBound {
                target: target.name.clone(),
                path: path.iter().map(|step| model.servers[flow.steps[*step].server].name.clone()).collect(),
                delay: delay.as_ref().map(Number::upper).filter(|delay| delay.is_finite()),
                delay_exact: text(delay.as_ref()),
                hops,
            }
        });
        FlowBound { flow: flow.name.clone(), targets: targets.collect() }
    };
    model.flows.iter().enumerate().map(bound).collect()
}

fn scheduled(flow: &Scheduled) -> FlowBound {
    let target = |(target, path, delay): &(String, Vec<String>, Option<Rational>)| TargetBound {
        target: target.clone(),
        path: path.clone(),
        delay: delay.as_ref().map(Rational::to_f64_up),
        delay_exact: delay.as_ref().map(ToString::to_string),
        hops: Vec::new(),
    };
    FlowBound { flow: flow.name.clone(), targets: flow.targets.iter().map(target).collect() }
}

fn server_bounds<N: Number>(
    model: &Model,
    layout: &Layout,
    total: &Total<N>,
    loads: &[Rational],
) -> Vec<ServerBound> {
    let mut delays: Vec<Option<N>> = vec![Some(N::zero()); model.servers.len()];
    let mut backlogs = delays.clone();
    for (node, bound) in layout.nodes.iter().zip(&total.bounds) {
        let delay = &mut delays[node.server];
        *delay = delay.as_ref().zip(bound.delay.as_ref()).map(|(a, b)| a.greater(b));
        let backlog = &mut backlogs[node.server];
        *backlog = backlog.as_ref().zip(bound.backlog.as_ref()).map(|(a, b)| a.plus(b));
    }
    let bound = |(index, server): (usize, &crate::model::Server)| ServerBound {
        server: server.name.clone(),
        delay: delays[index].as_ref().map(Number::upper).filter(|value| value.is_finite()),
        delay_exact: text(delays[index].as_ref()),
        backlog_bits: backlogs[index].as_ref().map(Number::upper).filter(|value| value.is_finite()),
        backlog_exact: text(backlogs[index].as_ref()),
        load: loads[index].to_f64_up(),
        load_exact: loads[index].to_string(),
        rate: server.rate().to_f64_down(),
    };
    model.servers.iter().enumerate().map(bound).collect()
}

/// No limit is met where frames may be lost: the bound is only of those that arrive.
fn judged<N: Number>(
    model: &Model,
    ends: &[Vec<Option<N>>],
    (full, lossy): (&BTreeSet<(usize, u8)>, &BTreeSet<usize>),
) -> Vec<Judged> {
    let mut all = Vec::new();
    for limit in &model.limits {
        for flow in
            model.scheduled.iter().filter(|flow| limit.flow.as_ref().is_none_or(|name| *name == flow.name))
        {
            all.extend(flow.targets.iter().map(|(target, _, delay)| Judged {
                flow: flow.name.clone(),
                target: target.clone(),
                at_most: limit.at_most.to_f64_down(),
                written: limit.written.clone(),
                delay: delay.as_ref().map(Rational::to_f64_up),
                kept: flow.drops.is_empty() && delay.as_ref().is_some_and(|delay| *delay <= limit.at_most),
                line: limit.line,
            }));
        }
        for (index, (flow, ends)) in model.flows.iter().zip(ends).enumerate() {
            if limit.flow.as_ref().is_some_and(|name| *name != flow.name) {
                continue;
            }
            let is_full = |step: &crate::model::Step| full.contains(&(step.server, step.class));
            let loses = lossy.contains(&index) || flow.steps.iter().any(is_full);
            for (target, delay) in flow.targets.iter().zip(ends) {
                // With an enclosure, the upper end of the bound decides.
                let keeps = |delay: &N| match delay.exact() {
                    Some(exact) => exact <= limit.at_most,
                    None => Rational::from_f64(delay.upper()).is_some_and(|upper| upper <= limit.at_most),
                };
                all.push(Judged {
                    flow: flow.name.clone(),
                    target: target.name.clone(),
                    at_most: limit.at_most.to_f64_down(),
                    written: limit.written.clone(),
                    delay: delay.as_ref().map(Number::upper).filter(|delay| delay.is_finite()),
                    kept: !loses && delay.as_ref().is_some_and(keeps),
                    line: limit.line,
                });
            }
        }
    }
    all
}

fn assumptions(model: &Model, choice: Choice, layout: &Layout) -> Vec<String> {
    let mut all = vec![
        "every flow keeps its arrival curve where it enters the network".to_owned(),
        "every server guarantees its service curve".to_owned(),
    ];
    all.push(match choice.settings.multiplexing {
        Multiplexing::Fifo => {
            "every server serves the frames of one class in the order in which they come".to_owned()
        }
        Multiplexing::Arbitrary => {
            "every server serves whenever something waits, in any order (a strict service curve)".to_owned()
        }
    });
    if choice.settings.grouping {
        all.push("nothing comes over a link faster than its capacity".to_owned());
    }
    if model.servers.iter().any(|server| server.reserved.is_some()) {
        all.push(
            "time-triggered frames take their windows and no more, and clocks keep the schedule".to_owned(),
        );
    }
    let rules = || model.servers.iter().flat_map(|server| server.rules.values());
    if rules().any(|rule| matches!(rule, Rule::Shaped(_))) {
        all.push(
            "a shaped class sends as soon as it has credit, and its slope is kept by the port's clock"
                .to_owned(),
        );
    }
    if rules().any(|rule| matches!(rule, Rule::Gated(_))) {
        all.push(
            "gates keep their schedule by the port's clock; when they open beside other ports and senders is not used"
                .to_owned(),
        );
    }
    if layout.nodes.iter().any(|node| !node.higher.is_empty()) {
        all.push("a frame of a higher class waits for at most one frame of a lower, the longest".to_owned());
    }
    if !layout.is_feed_forward() {
        all.push(
            "delays in the cycle are finite: the fixed point bounds them (proved to be the only one)"
                .to_owned(),
        );
    }
    all.extend(model.assumptions.iter().cloned());
    all
}

/// Servers and classes whose full buffer bounds the delay.
fn full_buffers<N: Number>(layout: &Layout, total: &Total<N>) -> BTreeSet<(usize, u8)> {
    let full = layout.nodes.iter().zip(&total.bounds).filter(|(_, bound)| bound.full);
    full.map(|(node, _)| (node.server, node.class)).collect()
}

/// Places not proved to accept all frames that come.
fn dropping<'a, N: Number>(model: &'a Model, layout: &Layout, total: &Total<N>) -> Vec<&'a Place> {
    let exactly = |value: &N| value.exact().or_else(|| Rational::from_f64(value.upper()));
    let hop = |(flow, step): &(usize, usize)| layout.first[*flow] + step;
    let takes_all = |place: &&Place| match &place.takes {
        Takes::NotAll(_) => false,
        Takes::Room { parts, bits } => {
            let backlog = |node: usize| {
                let bound = &total.bounds[node];
                if bound.full { None } else { bound.backlog.as_ref().and_then(exactly) }
            };
            let waits = |(at, most): &(Vec<(usize, usize)>, Option<Rational>)| {
                let nodes: BTreeSet<usize> = at.iter().map(|at| layout.hops[hop(at)].node).collect();
                let all =
                    nodes.into_iter().try_fold(Rational::ZERO, |sum, node| Some(&sum + &backlog(node)?));
                match (all, most) {
                    (Some(all), Some(most)) => Some((&all).min(most).clone()),
                    (all, most) => all.or_else(|| most.clone()),
                }
            };
            let all = parts.iter().try_fold(Rational::ZERO, |sum, part| Some(&sum + &waits(part)?));
            all.is_some_and(|all| all <= *bits)
        }
        Takes::Opening { of, openings } => of.iter().all(|comes| {
            let shift = total.shifts[hop(&comes.at)].as_ref().and_then(exactly);
            shift.is_some_and(|shift| openings.hold(comes, &shift))
        }),
        Takes::Contract { of, bucket, run } => {
            let mut came = Bucket { burst: Rational::ZERO, rate: Rational::ZERO };
            for (at, least) in of {
                let Some(shift) = total.shifts[hop(at)].as_ref().and_then(exactly) else { return false };
                let Some(own) = model.flows[at.0].arrival.first() else { return false };
                let varies = (&shift - least).max(Rational::ZERO);
                came.burst = &(&came.burst + &own.burst) + &(&own.rate * &varies);
                came.rate = &came.rate + &own.rate;
            }
            let beyond = (&came.rate - &bucket.rate).max(Rational::ZERO);
            &came.burst + &(&beyond * run) <= bucket.burst
        }
    };
    model.places.iter().filter(|place| !takes_all(place)).collect()
}

/// Whether a place is the buffer of a server already reported as possibly full.
fn is_told(model: &Model, place: &Place, full: &BTreeSet<(usize, u8)>) -> bool {
    let Takes::Room { parts, .. } = &place.takes else { return false };
    let at = parts.iter().flat_map(|(at, _)| at);
    let servers: BTreeSet<usize> = at.map(|(flow, step)| model.flows[*flow].steps[*step].server).collect();
    servers.len() == 1 && full.iter().any(|(server, _)| servers.contains(server))
}

/// The remark about a place.
fn dropped(model: &Model, place: &Place) -> String {
    let why = match &place.takes {
        Takes::NotAll(why) => why.as_str(),
        Takes::Room { .. } => "more may wait there at once than it holds",
        Takes::Contract { .. } => "more may come than it lets pass",
        Takes::Opening { .. } => "they may come while it is closed",
    };
    let names: Vec<&str> = place.flows.iter().map(|flow| model.flows[*flow].name.as_str()).collect();
    may_drop(&place.name, &names, why)
}

fn may_drop(place: &str, names: &[&str], why: &str) -> String {
    let more = if names.len() > 20 { format!(" and {} more", names.len() - 20) } else { String::new() };
    format!(
        "{place} may drop frames of flows {}{more}: {why}; delays are of what passes, and no limit of these flows is kept",
        names.iter().take(20).copied().collect::<Vec<_>>().join(", ")
    )
}

/// Remarks about places that may drop frames of scheduled flows.
fn dropped_of_schedules(model: &Model) -> Vec<String> {
    let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for flow in &model.scheduled {
        for (place, why) in &flow.drops {
            places.entry((place, why)).or_default().push(&flow.name);
        }
    }
    places.into_iter().map(|((place, why), names)| may_drop(place, &names, why)).collect()
}

/// Remarks about servers and classes with a full buffer.
fn losses(model: &Model, full: &BTreeSet<(usize, u8)>) -> Vec<String> {
    let servers: BTreeSet<usize> = full.iter().map(|(server, _)| *server).collect();
    let said = |server: usize| {
        format!(
            "more may come to server \"{}\" at once than its buffer holds: what finds it full is lost, delays there are of what \
             finds room, and no limit of a flow through it is kept",
            model.servers[server].name
        )
    };
    servers.into_iter().map(said).collect()
}

fn notes(
    model: &Model,
    choice: Choice,
    (loads, programmes): (&[Rational], Option<(usize, usize)>),
    flows: &[FlowBound],
) -> Vec<String> {
    let mut all = model.notes.clone();
    if let Some((proved, unproved)) = programmes {
        let rest = if unproved > 0 {
            format!("; {unproved} others are not, and there the bound of total flow analysis stands")
        } else {
            String::new()
        };
        all.push(format!(
            "the values of {proved} linear programmes are proved exactly by their multipliers{rest}"
        ));
    }
    for (server, _) in model.servers.iter().zip(loads).filter(|(_, load)| **load == Rational::ONE) {
        all.push(format!(
            "server \"{}\" is fully loaded (load = 1): served in order of arrival its delay is bounded, and what arbitrary \
             multiplexing leaves to all its flows together is nothing, so its busy period is not",
            server.name
        ));
    }
    for (server, load) in model.servers.iter().zip(loads).filter(|(_, load)| **load > Rational::ONE) {
        all.push(format!(
            "more is sent to server \"{}\" than it serves (load {:.6}): classes that shapers or gates keep apart from that are \
             bounded, others are not, and what finds a buffer full is lost",
            server.name,
            load.to_f64_up()
        ));
    }
    let unbounded: Vec<&str> = flows
        .iter()
        .filter(|flow| flow.targets.iter().any(|target| target.delay.is_none()))
        .map(|flow| flow.flow.as_str())
        .take(20)
        .collect();
    if !unbounded.is_empty() {
        all.push(format!("{} gives no bound for {}", choice.method.name(), unbounded.join(", ")));
    }
    all
}
