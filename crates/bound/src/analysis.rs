//! Analysis of a network by one method: question, refusal and answer.

use std::collections::BTreeSet;

use crate::answer::{Answer, BOUNDS_SCHEMA, Judged};
use crate::conditions::{
    assumptions, dropped, dropped_by_regulator, dropped_of_schedules, dropping, full_buffers, is_told,
    losses, notes,
};
use crate::cycles;
use crate::knowledge;
use crate::method::{Choice, Method};
use crate::model::{Model, Multiplexing, problem};
use crate::nodes::Layout;
use crate::number::{Enclosure, Number};
use crate::phases;
use crate::plp::{self, Solver};
use crate::question::Refusal;
use crate::rational::Rational;
use crate::regulators::regulated;
use crate::results::{self, flow_bounds, scheduled, server_bounds};
use crate::separate;
use crate::tfa::{self, Total};
use crate::values::{Settings, Shift};

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

/// The least of all analyses of a network, with what is known of its flows or less.
fn of_parts<N: Number>(
    model: &Model,
    layout: &Layout,
    choice: Choice,
    programmes: &mut impl FnMut(&Model, &Layout, &Total<N>) -> Result<Option<plp::Found>, plp::Unfit>,
) -> Result<Computed<N>, Refusal> {
    let mut found = computed::<N>(model, layout, choice, programmes);
    for part in knowledge::parts(model) {
        // With less knowledge a server may count as overloaded.
        if part.loads().iter().any(|load| *load > Rational::ONE) {
            continue;
        }
        match (&mut found, computed(&part, layout, choice, programmes)) {
            (Ok(found), Ok(less)) => found.lessened(less),
            (Err(Refusal::NoFixedPoint(_)), Ok(less)) => found = Ok(less),
            _ => {}
        }
    }
    found
}

fn analysed<N: Number>(
    model: &Model,
    choice: Choice,
    mut programmes: impl FnMut(&Model, &Layout, &Total<N>) -> Result<Option<plp::Found>, plp::Unfit>,
) -> Result<Answer, Refusal> {
    model.check().map_err(Refusal::Input)?;
    let loads = model.loads();
    let layout = Layout::of(model);
    let Computed { total, mut ends, programmes } = of_parts::<N>(model, &layout, choice, &mut programmes)?;
    let is_known = total.is_some();
    let total = total.unwrap_or_else(|| Total::nothing(&layout));
    if choice.method == Method::Tfa {
        // For each server the part that bounds it best.
        ends = total_delays(model, &layout, &total);
    }
    let phased = choice.uses_phases().then(|| phases::analyse(model, &layout, &total)).flatten();
    let cyclic = cycles::analyse(model, &layout, choice.settings, &total).map_err(Refusal::Input)?;
    known_ends(model, &mut ends, [phased.as_ref().map(|known| &known.ends), cyclic.as_ref()]);
    let multiplexing = choice.settings.multiplexing;
    let starts = regulated(model, multiplexing, &ends).starts;
    join(&starts, &mut ends);
    // Buffers are bounded by total flow analysis.
    let is_regulated = model.flows.iter().any(|flow| flow.regulator.is_some());
    let of_total = if is_regulated { total_delays(model, &layout, &total) } else { Vec::new() };
    let behind = regulated(model, multiplexing, &of_total);
    let mut flows = flow_bounds(
        model,
        &layout,
        (&starts, &ends),
        (choice.method == Method::Tfa).then_some((&total, phased.as_ref())),
    );
    flows.extend(model.scheduled.iter().map(scheduled));
    let (arithmetic, grouping) = (
        if choice.rounded { "rounded" } else { "exact" },
        if choice.settings.grouping { "on" } else { "off" },
    );
    let full = full_buffers(&layout, &total);
    let dropping = dropping(model, &layout, &total, &behind.held);
    let places = dropping.iter().flat_map(|place| place.flows.iter().copied());
    let lossy: BTreeSet<usize> = places.chain(behind.dropped.iter().copied()).collect();
    let limits = judged(model, &ends, (&full, &lossy));
    let mut notes = [notes(model, choice, (&loads, programmes), &flows), losses(model, &full)].concat();
    let told = dropping.iter().filter(|place| !is_told(model, place, &full));
    notes.extend(told.map(|place| dropped(model, place)));
    notes.extend(behind.dropped.iter().map(|flow| dropped_by_regulator(model, *flow)));
    notes.extend(dropped_of_schedules(model));
    notes.extend(results::copies(model, &flows));
    notes.extend((!is_known).then(|| NO_SERVERS.to_owned()));
    Ok(Answer {
        schema: BOUNDS_SCHEMA,
        name: model.name.clone(),
        method: choice.method.name(),
        multiplexing: choice.settings.multiplexing.name(),
        grouping,
        packetizer: choice.settings.packetizer,
        arithmetic,
        phases: if choice.has_known_phases { "known" } else { "any" },
        time_unit: model.unit.name(),
        assumptions: assumptions(model, choice, &layout, phased.as_ref()),
        notes,
        flows,
        servers: server_bounds(model, &layout, (&total, &behind.held), &loads),
        limits,
    })
}

/// Adds to the delays of flows behind regulators what lies before.
fn join<N: Number>(starts: &[Option<N>], ends: &mut [Vec<Option<N>>]) {
    for (start, ends) in starts.iter().zip(ends) {
        for end in ends {
            *end = start.as_ref().zip(end.take()).map(|(start, end)| start.plus(&end));
        }
    }
}

/// Takes known instants and cycles into account, and targets that have no bound.
fn known_ends<N: Number>(model: &Model, ends: &mut [Vec<Option<N>>], known: [Option<&cycles::Ends>; 2]) {
    for known in known.into_iter().flatten() {
        for (end, known) in ends.iter_mut().flatten().zip(known.iter().flatten()) {
            *end = knowledge::lesser(end.take(), known.as_ref().map(N::of));
        }
    }
    for (flow, ends) in model.flows.iter().zip(ends) {
        for (_, end) in flow.targets.iter().zip(ends).filter(|(target, _)| target.unbounded) {
            *end = None;
        }
    }
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
pub(crate) fn total_delays<N: Number>(
    model: &Model,
    layout: &Layout,
    total: &Total<N>,
) -> Vec<Vec<Option<N>>> {
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
            let loses = model
                .course(index)
                .any(|part| lossy.contains(&part) || model.flows[part].steps.iter().any(is_full));
            for (target, delay) in flow.targets.iter().zip(ends).filter(|(target, _)| !target.goes_on) {
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
