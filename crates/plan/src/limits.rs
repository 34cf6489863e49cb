//! Limits: in which unit each measure is judged, whether a flow has it, and which limits make sense together.

use std::collections::BTreeMap;

use crate::campaign::{Bound, FlowId, Limit};
use crate::diagnostic::{Findings, on_line, shown};
use crate::measures::{self, Dimension, Losses, Measure, Needs};
use crate::model::{FlowModel, Model};
use crate::quantity::{self, Kind};
use crate::reader::Sourced;
use crate::statements::{LimitStatement, Statements};

/// The limits that could be read, checked against the flows and against one another.
pub(crate) fn resolve(test: &Statements, model: &Model, found: &mut Findings) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    let mut known: Known = BTreeMap::new();
    for statement in &test.limits {
        for limit in of_statement(statement, model, found).unwrap_or_default() {
            let same = known.entry(limit.measure.clone()).or_default();
            if compare(&limit, same, statement, found) {
                same.entry(limit.flow).or_default().push(limit.clone());
            }
            limits.push(limit);
        }
    }
    limits
}

/// One limit for each flow that is named, or one for all; `None` where it cannot be read.
fn of_statement(statement: &LimitStatement, model: &Model, found: &mut Findings) -> Option<Vec<Limit>> {
    let flows: Vec<Option<FlowId>> = match &statement.flows {
        None => vec![None],
        Some(listed) => {
            let listed = listed.as_ref()?;
            let unknown = |id: &&FlowId| model.flows_whole && model.flow_index(**id).is_none();
            if let Some(id) = listed.value.iter().find(unknown) {
                let message = format!("there is no flow {id}");
                let cure = "name flows that <flows> declares, or leave flow out for all";
                found.error(&listed.place, message, "", cure);
                return None;
            }
            listed.value.iter().copied().map(Some).collect()
        }
    };
    let measure = statement.measure.as_ref()?;
    let Some(known) = measures::find(&measure.value) else {
        let message = format!("{} is unknown", measure.named());
        found.error(&measure.place, message, "", measures::cure(&measure.value));
        return None;
    };
    for flow in &flows {
        applies(statement, *flow, known, model, found);
    }
    let (bound, written) = statement.bound.as_ref()?;
    let value = value(known, written, found)?;
    let limit = |flow| Limit {
        flow,
        measure: measure.value.clone(),
        bound: *bound,
        value,
        written: written.written.to_string(),
        line: statement.place.line,
    };
    Some(flows.into_iter().map(limit).collect())
}

/// A limit on something a flow does not have would always pass, or never.
fn applies(
    statement: &LimitStatement,
    flow: Option<FlowId>,
    measure: Measure<'_>,
    model: &Model,
    found: &mut Findings,
) {
    type Has = fn(&FlowModel) -> bool;
    let ([one, none], cure, has): ([&str; 2], &str, Has) = match measure.needs {
        Needs::Relay => (
            ["is not relayed", "is relayed"],
            "add a <relay> task for it, or limit latency instead",
            |flow| flow.relayed,
        ),
        Needs::Deadline => {
            (["has no deadline", "has a deadline"], "add deadline=\"…\" to the flow", |flow| {
                flow.deadline.is_some()
            })
        }
        Needs::Run if flow.is_some() => {
            let message = format!("{} frames belong to no flow", measure.name);
            found.error(&statement.place, message, "", "remove flow=\"…\"; they are counted per run");
            return;
        }
        Needs::Nothing | Needs::Run => return,
    };
    // A relay or deadline that could not be read was reported where it stands.
    if !model.flows_whole || !found.clean() {
        return;
    }
    let judged = match flow {
        Some(id) => model.flow_index(id).is_some_and(|at| has(&model.flows[at])),
        None => model.flows.iter().any(has),
    };
    if judged {
        return;
    }
    let message = match flow {
        Some(id) => format!("flow {id} {one}, so it has no {}", measure.name),
        None => format!("no flow {none}, so there is no {}", measure.name),
    };
    found.error(&statement.place, message, "", cure);
}

/// The bound in the unit of the measure: ns, messages, bit/s, bits, a share of 1, or one per second. Every conversion is
/// exact below 2^53 of the base unit; a limit beyond 104 days of nanoseconds or 9 Pbit/s is none.
fn value(measure: Measure<'_>, bound: &Sourced<()>, found: &mut Findings) -> Option<f64> {
    let text = bound.written.as_ref();
    let read = |kind: Kind, text: &str, found: &mut Findings| match quantity::parse(kind, text) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = format!("{} {error}", bound.named());
            found.error(&bound.place, message, "", error.cure(kind, text));
            None
        }
    };
    match measure.dimension {
        Dimension::Time => time(bound, read(Kind::Time, text, found)?, found),
        Dimension::SignedTime => {
            let size = text.strip_prefix('-');
            let time = time(bound, read(Kind::Time, size.unwrap_or(text), found)?, found)?;
            Some(if size.is_some() { -time } else { time })
        }
        Dimension::Bits => {
            let size = text.strip_prefix('-');
            let bits = read(Kind::Bits, size.unwrap_or(text), found)? as f64 / 1e12;
            Some(if size.is_some() { -bits } else { bits })
        }
        Dimension::Rate => Some(read(Kind::Rate, text, found)? as f64),
        Dimension::Frequency => Some(read(Kind::Frequency, text, found)? as f64 / 1e3),
        Dimension::Share => {
            let ppb = read(Kind::Share, text, found)?;
            if ppb > 1_000_000_000 {
                let message = format!("{} is more than everything", bound.named());
                found.error(&bound.place, message, "0% to 100%", "write a share within the limit");
                return None;
            }
            Some(ppb as f64 / 1e9)
        }
        Dimension::Count => {
            let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            let number = text.parse::<u32>().ok().filter(|_| digits);
            if number.is_none() {
                let message = format!("{} is no number of messages", bound.named());
                let cure = format!("{} is a count: write a whole number without a unit", measure.name);
                found.error(&bound.place, message, format!("0 to {}", u32::MAX), cure);
            }
            number.map(f64::from)
        }
        Dimension::Number => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
            let plain = [whole, fraction]
                .iter()
                .all(|part| (1..=10).contains(&part.len()) && part.chars().all(|c| c.is_ascii_digit()));
            let number = text.parse::<f64>().ok().filter(|_| plain);
            if number.is_none() {
                let message = format!("{} is no number of messages", bound.named());
                let cure = format!("{} is a mean of counts: write a number without a unit", measure.name);
                found.error(&bound.place, message, "at most 10 digits before and after the point", cure);
            }
            number
        }
    }
}

fn time(bound: &Sourced<()>, picos: u128, found: &mut Findings) -> Option<f64> {
    if i64::try_from(picos).is_err() {
        found.error(&bound.place, format!("{} is too large", bound.named()), "106 days", "write less");
        return None;
    }
    Some(picos as f64 / 1e3)
}

/// The limits on a measure, by flow: one for each bound at most.
type OfMeasure = BTreeMap<Option<FlowId>, Vec<Limit>>;
/// Limits by measure.
type Known = BTreeMap<String, OfMeasure>;

/// Whether the limit says something new.
fn compare(new: &Limit, others: &OfMeasure, statement: &LimitStatement, found: &mut Findings) -> bool {
    let own = others.get(&new.flow).into_iter().flatten();
    if let Some(same) = own.clone().find(|other| other.bound == new.bound) {
        let message = format!("{} already has this bound{}", shown(&new.measure), on_line(same.line));
        found.error(&statement.place, message, "", "keep one of the two limits");
        return false;
    }
    let of_all = others.get(&None).into_iter().flatten().filter(|_| new.flow.is_some());
    let of_each = others.values().flatten().filter(|other| new.flow.is_none() && other.flow.is_some());
    for other in own.chain(of_all).chain(of_each) {
        let line = on_line(other.line);
        let contradicts = match (new.bound, other.bound) {
            (Bound::AtLeast, Bound::AtMost) => new.value > other.value,
            (Bound::AtMost, Bound::AtLeast) => new.value < other.value,
            _ => false,
        };
        if contradicts {
            let message = format!("no value of {} can meet both this limit and the one{line}", new.measure);
            found.error(&statement.place, message, "", "correct one of the two");
        }
    }
    true
}

/// Says which percentile limits cannot be judged with the messages planned.
pub(crate) fn warn_of_few(
    limits: &[Limit],
    fewest: impl Fn(Option<FlowId>) -> Option<u32>,
    found: &mut Findings,
) {
    for limit in limits {
        let Some(needed) = measures::needed(&limit.measure) else { continue };
        let Some(planned) = fewest(limit.flow).filter(|planned| u64::from(*planned) < needed) else {
            continue;
        };
        found.warn(format!(
            "limit on {}{}: {planned} messages are planned, but this percentile needs {needed}",
            limit.measure,
            on_line(limit.line)
        ));
    }
}

/// Says of which flows something is limited that only messages which arrive have, and no loss: half of them may be lost.
pub(crate) fn warn_of_unlimited_loss(limits: &[Limit], flows: &[FlowModel], found: &mut Findings) {
    let what = |limit: &Limit| measures::find(&limit.measure).map(|measure| (measure.losses, measure.needs));
    let of = |limit: &&Limit, flow: &FlowModel| limit.flow.is_none_or(|id| id == flow.id);
    let counts = |limit: &&Limit| {
        // Of what was delivered a least number bounds the loss, of what was lost a greatest.
        let bound = if limit.measure == "delivered" { Bound::AtLeast } else { Bound::AtMost };
        what(limit).is_some_and(|(losses, _)| losses == Losses::Counted) && limit.bound == bound
    };
    let has = |limit: &&Limit, flow: &FlowModel| match what(limit) {
        Some((Losses::Missing, Needs::Relay)) => flow.relayed,
        Some((Losses::Missing, Needs::Deadline)) => flow.deadline.is_some(),
        Some((Losses::Missing, _)) => true,
        _ => false,
    };
    let mut open: Vec<String> = Vec::new();
    let mut first: Option<&Limit> = None;
    for flow in flows {
        let mut own = limits.iter().filter(|limit| of(limit, flow));
        let Some(blind) = own.clone().find(|limit| has(limit, flow)) else { continue };
        if own.any(|limit| counts(&limit)) {
            continue;
        }
        first = first.or(Some(blind));
        open.push(flow.id.to_string());
    }
    let Some(first) = first else { return };
    let more = open.len().saturating_sub(SHOWN_FLOWS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let several = if open.len() > 1 { "s" } else { "" };
    open.truncate(SHOWN_FLOWS);
    found.warn(format!(
        "limit on {}{}: a lost message has no such value, and no limit is on lost of flow{several} {}{rest}; \
         add <limit measure=\"lost\" at-most=\"0\"/>",
        first.measure,
        on_line(first.line),
        open.join(", ")
    ));
}

/// Flows that a warning names.
const SHOWN_FLOWS: usize = 5;
