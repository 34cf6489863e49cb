//! The conditions of an answer: its assumptions, what may be dropped in spite of it, and its notes.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::FlowBound;
use crate::curve::Bucket;
use crate::method::Choice;
use crate::model::{Model, Multiplexing, Place, Takes};
use crate::nodes::Layout;
use crate::number::Number;
use crate::phases::Known;
use crate::rational::Rational;
use crate::rules::Rule;
use crate::tfa::Total;

pub(crate) fn assumptions(
    model: &Model,
    choice: Choice,
    layout: &Layout,
    phased: Option<&Known>,
) -> Vec<String> {
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
        let known = phased.map_or(&[][..], |known| &known.flows);
        all.push(if known.is_empty() {
            "gates keep their schedule by the port's clock; when they open beside other ports and senders is not used"
                .to_owned()
        } else {
            format!(
                "gates keep their schedule by the port's clock, and flows {} are sent at their offsets",
                first_names(known)
            )
        });
    }
    if rules().any(|rule| matches!(rule, Rule::Cyclic(_))) {
        all.push("cyclic queues keep their cycles by the port's clock".to_owned());
    }
    if model.flows.iter().any(|flow| flow.regulator.is_some()) {
        all.push(
            "an asynchronous shaper releases a frame as soon as its bucket and the frames before it in its group allow"
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
pub(crate) fn full_buffers<N: Number>(layout: &Layout, total: &Total<N>) -> BTreeSet<(usize, u8)> {
    let full = layout.nodes.iter().zip(&total.bounds).filter(|(_, bound)| bound.full);
    full.map(|(node, _)| (node.server, node.class)).collect()
}

/// Places not proved to accept all frames that come. `held`: bits in the regulator in front of each flow.
pub(crate) fn dropping<'a, N: Number>(
    model: &'a Model,
    layout: &Layout,
    total: &Total<N>,
    held: &[Option<N>],
) -> Vec<&'a Place> {
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
                let begins = at.iter().filter(|(_, step)| *step == 0);
                let all =
                    begins.fold(all, |sum, (flow, _)| Some(&sum? + &held[*flow].as_ref().and_then(exactly)?));
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
pub(crate) fn is_told(model: &Model, place: &Place, full: &BTreeSet<(usize, u8)>) -> bool {
    let Takes::Room { parts, .. } = &place.takes else { return false };
    let at = parts.iter().flat_map(|(at, _)| at);
    let servers: BTreeSet<usize> = at.map(|(flow, step)| model.flows[*flow].steps[*step].server).collect();
    servers.len() == 1 && full.iter().any(|(server, _)| servers.contains(server))
}

/// The remark about a place.
pub(crate) fn dropped(model: &Model, place: &Place) -> String {
    let why = match &place.takes {
        Takes::NotAll(why) => why.as_str(),
        Takes::Room { .. } => "more may wait there at once than it holds",
        Takes::Contract { .. } => "more may come than it lets pass",
        Takes::Opening { .. } => "they may come while it is closed",
    };
    let mut names: Vec<&str> = place.flows.iter().map(|flow| model.flows[*flow].name.as_str()).collect();
    names.dedup();
    may_drop(&place.name, &names, why)
}

/// The remark about the regulator in front of a flow.
pub(crate) fn dropped_by_regulator(model: &Model, flow: usize) -> String {
    let flow = &model.flows[flow];
    let place =
        format!("the scheduler of flow {} at \"{}\"", flow.name, model.servers[flow.steps[0].server].name);
    let why = "they are not proved to wait for less than its longest-residence: more comes than its bucket passes, or than those of \
               other flows over the same link pass";
    may_drop(&place, &[&flow.name], why)
}

fn may_drop(place: &str, names: &[&str], why: &str) -> String {
    format!(
        "{place} may drop frames of flows {}: {why}; delays are of what passes, and no limit of these flows is kept",
        first_names(names)
    )
}

/// Names of flows, if there are many the first of them and the number of the others.
fn first_names<S: AsRef<str>>(names: &[S]) -> String {
    let more = if names.len() > 20 { format!(" and {} more", names.len() - 20) } else { String::new() };
    format!("{}{more}", names.iter().take(20).map(AsRef::as_ref).collect::<Vec<_>>().join(", "))
}

/// Remarks about places that may drop frames of scheduled flows.
pub(crate) fn dropped_of_schedules(model: &Model) -> Vec<String> {
    let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for flow in &model.scheduled {
        for (place, why) in &flow.drops {
            places.entry((place, why)).or_default().push(&flow.name);
        }
    }
    places.into_iter().map(|((place, why), names)| may_drop(place, &names, why)).collect()
}

/// Remarks about servers and classes with a full buffer.
pub(crate) fn losses(model: &Model, full: &BTreeSet<(usize, u8)>) -> Vec<String> {
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

/// The remark about a server that gets more than it serves.
fn overloaded(model: &Model, index: usize, load: &Rational) -> String {
    let server = &model.servers[index];
    let mut names: Vec<&str> = model.flows_at(index).map(|flow| flow.name.as_str()).collect();
    names.dedup();
    let then = if server.rules.is_empty() {
        "These flows, and others that must wait for them somewhere, have no bound, or that of what finds room in a buffer of known size"
    } else {
        "Classes that shapers or gates keep apart from that are bounded, others are not, and what finds a buffer full is lost"
    };
    let line = if server.line > 0 { format!("line {}, ", server.line) } else { String::new() };
    format!(
        "{line}server \"{}\": its load is {:.6} (limit: at most 1), by the {} flows {}; lower their rates, send some another way, or \
         give the port a faster link. {then}",
        server.name,
        load.to_f64_up(),
        names.len(),
        first_names(&names)
    )
}

pub(crate) fn notes(
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
    let loaded = loads.iter().enumerate().filter(|(_, load)| **load > Rational::ONE);
    all.extend(loaded.map(|(server, load)| overloaded(model, server, load)));
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
