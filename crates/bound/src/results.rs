//! Bounds of flows and servers, as an answer has them.

use crate::answer::{ClassBound, FlowBound, ServerBound, TargetBound};
use crate::knowledge;
use crate::model::{Flow, Model, Scheduled, Target};
use crate::nodes::Layout;
use crate::number::Number;
use crate::phases;
use crate::rational::Rational;
use crate::rules::GAP;
use crate::tfa::Total;

/// Factor by which a sum of few doubles, each rounded, is no more than the exact sum.
const ROUNDED_DOWN: f64 = 1.0 - 1e-14;

fn text<N: Number>(value: Option<&N>) -> Option<String> {
    value.and_then(Number::exact).map(|value| value.to_string())
}

fn shown<N: Number>(value: Option<&N>) -> Option<f64> {
    value.map(Number::upper).filter(|value| value.is_finite())
}

/// Bounds of flows, each with those behind its regulators. `starts`: delay up to the release by the regulator in front of
/// each flow; `total`: for total flow analysis.
pub(crate) fn flow_bounds<N: Number>(
    model: &Model,
    layout: &Layout,
    (starts, ends): (&[Option<N>], &[Vec<Option<N>>]),
    total: Option<(&Total<N>, Option<&phases::Known>)>,
) -> Vec<FlowBound> {
    let mut found: Vec<FlowBound> = Vec::with_capacity(model.flows.len());
    for (index, flow) in model.flows.iter().enumerate() {
        let target = |(target, delay): (&Target, &Option<N>)| {
            let path = model.whole_path(index, target.last);
            let stay = |(flow, step): &(usize, usize)| {
                let (total, phased) = total?;
                let hop = layout.first[*flow] + step;
                let known = phased.and_then(|known| known.stays[hop].as_ref()).map(N::of);
                let stay = knowledge::lesser(total.bounds[layout.hops[hop].node].delay.clone(), known);
                stay.as_ref().map(Number::upper)
            };
            let hops: Vec<f64> = path.iter().filter_map(stay).collect();
            let waits = if hops.is_empty() { Vec::new() } else { waits(model, &path, &hops, starts, target) };
            let server = |(flow, step): &(usize, usize)| {
                model.servers[model.flows[*flow].steps[*step].server].name.clone()
            };
            TargetBound {
                target: target.name.clone(),
                path: path.iter().map(server).collect(),
                delay: shown(delay.as_ref()),
                delay_exact: text(delay.as_ref()),
                least: least(model, &path, target),
                hops,
                waits,
            }
        };
        let targets = flow.targets.iter().zip(&ends[index]).filter(|(target, _)| !target.goes_on).map(target);
        match found.last_mut().filter(|_| flow.is_part) {
            Some(whole) => whole.targets.extend(targets),
            None => found.push(FlowBound { flow: flow.name.clone(), targets: targets.collect() }),
        }
    }
    for flow in model.flows.iter().filter(|flow| !flow.is_part) {
        let Some(copies) = &flow.copies else { continue };
        if let Some(whole) = found.iter_mut().find(|bound| bound.flow == flow.name) {
            let of_all = of_any_copy(&copies.target, &whole.targets);
            whole.targets.extend(of_all);
        }
    }
    found
}

/// Bound of the copy that is taken, whichever way it comes: that of the way with the greatest.
fn of_any_copy(target: &str, ways: &[TargetBound]) -> Option<TargetBound> {
    let late = |way: &&TargetBound| way.delay.unwrap_or(f64::INFINITY);
    let worst = ways.iter().max_by(|a, b| late(a).total_cmp(&late(b)))?;
    let least = ways.iter().map(|way| way.least).reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b))).flatten();
    Some(TargetBound { target: target.to_owned(), least, ..worst.clone() })
}

/// Remarks about how far copies of a message may come after one another, and whether those are recognised.
pub(crate) fn copies(model: &Model, flows: &[FlowBound]) -> Vec<String> {
    let copied = model.flows.iter().filter(|flow| !flow.is_part);
    let said = copied.filter_map(|flow| {
        let copies = flow.copies.as_ref()?;
        let own = flows.iter().find(|bound| bound.flow == flow.name)?;
        let all = own.targets.iter().find(|bound| bound.target == copies.target)?;
        let (Some(delay), Some(least)) = (all.delay, all.least) else { return None };
        // A message may follow its predecessor sooner than a period, by as much as its sender may be late.
        let early = flow.steps.first().map_or(0.0, |step| step.variation.to_f64_up());
        let apart = delay - least;
        let behind = ((apart + early) / copies.period.to_f64_down()).floor();
        let micros = apart * 1e6;
        let mut text = format!(
            "copies of flow {} come up to {micros:.3} µs after the first, which is {behind:.0} sequence numbers later",
            flow.name
        );
        match copies.history {
            Some(history) if f64::from(history) > behind => {}
            Some(history) => text += &format!(": its history of {history} does not hold so many, and a late copy is discarded as rogue"),
            None if behind < 1.0 => {}
            None => text += ": match recovery remembers one number, and a message may pass twice",
        }
        if copies.reset.to_f64_down() <= apart {
            text += "; that is more than its reset, and a message may pass twice";
        }
        Some(text)
    });
    said.collect()
}

/// Delays before the servers of a path, and behind the last. That before a regulated one is what is missing to its
/// release.
fn waits<N: Number>(
    model: &Model,
    path: &[(usize, usize)],
    hops: &[f64],
    starts: &[Option<N>],
    target: &Target,
) -> Vec<f64> {
    let mut waits: Vec<f64> = Vec::with_capacity(path.len() + 1);
    let mut sum = 0.0;
    for ((flow, step), stay) in path.iter().zip(hops) {
        let one = &model.flows[*flow];
        let released = starts[*flow].as_ref().filter(|_| one.regulator.is_some() && *step == 0);
        let wait = match released {
            Some(released) => (released.upper() - sum).max(0.0),
            None => one.steps[*step].wait.to_f64_up(),
        };
        sum += wait + stay;
        waits.push(wait);
    }
    waits.push(target.wait.to_f64_up());
    waits
}

/// A time that no frame undercuts: its shortest one on every line, without waiting for another. A frame that is cut
/// through has not come completely when it goes on. `None`: the length is not known.
fn least(model: &Model, path: &[(usize, usize)], target: &Target) -> Option<f64> {
    let flow = &model.flows[path.first()?.0];
    let bits = (&flow.shortest_frame - &Rational::integer(GAP)).to_f64_down();
    if bits <= 0.0 {
        return None;
    }
    let mut sum = flow.least_wait.to_f64_down() + target.least_wait.to_f64_down();
    for (place, (of, step)) in path.iter().enumerate() {
        let (part, is_first) = (&model.flows[*of], *step == 0);
        let step = &part.steps[*step];
        if place > 0 {
            sum += match is_first {
                true => part.least_wait.to_f64_down(),
                false if step.variation.is_zero() => step.wait.to_f64_down(),
                false => (&step.wait - &step.variation).to_f64_down(),
            };
        }
        let next = path.get(place + 1).map(|(of, step)| model.flows[*of].steps[*step].server);
        let is_cut_through = next.is_some_and(|next| model.servers[next].cuts_through);
        if let Some(rate) = model.servers[step.server].capacity.as_ref().filter(|_| !is_cut_through) {
            sum += bits / rate.to_f64_up();
        }
    }
    Some(sum * ROUNDED_DOWN)
}

/// Bounds of a flow by its schedule.
pub(crate) fn scheduled(flow: &Scheduled) -> FlowBound {
    let target = |(target, path, delay): &(String, Vec<String>, Option<Rational>)| TargetBound {
        target: target.clone(),
        path: path.clone(),
        delay: delay.as_ref().map(Rational::to_f64_up),
        delay_exact: delay.as_ref().map(ToString::to_string),
        least: None,
        hops: Vec::new(),
        waits: Vec::new(),
    };
    FlowBound { flow: flow.name.clone(), targets: flow.targets.iter().map(target).collect() }
}

/// Bounds of servers. `held`: bits in the regulator in front of each flow.
pub(crate) fn server_bounds<N: Number>(
    model: &Model,
    layout: &Layout,
    (total, held): (&Total<N>, &[Option<N>]),
    loads: &[Rational],
) -> Vec<ServerBound> {
    let mut found: Vec<(Option<N>, Option<N>, Vec<ClassBound>)> =
        model.servers.iter().map(|_| (Some(N::zero()), Some(N::zero()), Vec::new())).collect();
    let is_regulated = model.flows.iter().any(|flow| flow.regulator.is_some());
    for (node, bound) in layout.nodes.iter().zip(&total.bounds) {
        let waits = |(flow, held): (&Flow, &Option<N>)| {
            let first = flow.steps.first().filter(|_| flow.regulator.is_some())?;
            ((first.server, first.class) == (node.server, node.class)).then(|| held.clone())
        };
        let held = model.flows.iter().zip(held).filter(|_| is_regulated).filter_map(waits);
        let backlog = held.fold(bound.backlog.clone(), |sum, held| sum.zip(held).map(|(a, b)| a.plus(&b)));
        let server = &model.servers[node.server];
        let (longest, all, classes) = &mut found[node.server];
        *longest = longest.as_ref().zip(bound.delay.as_ref()).map(|(a, b)| a.greater(b));
        *all = all.as_ref().zip(backlog.as_ref()).map(|(a, b)| a.plus(b));
        classes.push(ClassBound {
            class: server.class_names.get(&node.class).cloned().unwrap_or_else(|| node.class.to_string()),
            delay: shown(bound.delay.as_ref()),
            backlog_bits: shown(backlog.as_ref()),
        });
    }
    let mut servers = Vec::with_capacity(found.len());
    for (((delay, backlog, classes), server), load) in found.into_iter().zip(&model.servers).zip(loads) {
        servers.push(ServerBound {
            server: server.name.clone(),
            delay: shown(delay.as_ref()),
            delay_exact: text(delay.as_ref()),
            backlog_bits: shown(backlog.as_ref()),
            backlog_exact: text(backlog.as_ref()),
            load: load.to_f64_up(),
            load_exact: load.to_string(),
            rate: server.rate().to_f64_down(),
            classes,
        });
    }
    servers
}
