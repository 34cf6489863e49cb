//! Limits: which measures there are, in which unit each is judged, and which limits make sense together.

use crate::campaign::{Bound, FlowId, Limit};
use crate::diagnostic::Findings;
use crate::model::{FlowModel, Model};
use crate::quantity::{self, Kind};
use crate::reader::Sourced;
use crate::statements::{LimitStatement, Statements};
use crate::topology::on_line;
use crate::tree::shown;

/// Measures of time; each has every statistic of [`STATISTICS`].
pub const TIMES: [&str; 11] = [
    "latency",
    "rtt",
    "return_latency",
    "period",
    "receive_period",
    "send_error",
    "residence",
    "skew",
    "bag_spacing",
    "bag_jitter",
    "window_error",
];
/// Statistics of a measure of time.
pub const STATISTICS: [&str; 9] = ["min", "mean", "sd", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
/// Counts of messages.
pub const COUNTS: [&str; 9] =
    ["sent", "delivered", "lost", "duplicated", "reordered", "misdirected", "corrupted", "late", "unplanned"];

/// Messages a percentile needs before it is reported: `ln 0.05 / ln q`, rounded up, so that the largest of
/// them lies above the quantile with 95 % confidence.
const NEEDED: [(&str, u32); 5] =
    [("p50", 5), ("p90", 29), ("p99", 299), ("p99.9", 2_995), ("p99.99", 29_956)];

/// What a measure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Time,
    Count,
    Share,
    Rate,
}

/// Every measure a limit can name.
pub fn measures() -> impl Iterator<Item = String> {
    let times = TIMES.iter().flat_map(|time| STATISTICS.iter().map(move |s| format!("{time}.{s}")));
    times.chain(COUNTS.iter().chain(&["loss", "throughput"]).map(ToString::to_string))
}

fn dimension(measure: &str) -> Option<Dimension> {
    if COUNTS.contains(&measure) {
        return Some(Dimension::Count);
    }
    match measure {
        "loss" => return Some(Dimension::Share),
        "throughput" => return Some(Dimension::Rate),
        _ => {}
    }
    let (time, statistic) = measure.split_once('.')?;
    (TIMES.contains(&time) && STATISTICS.contains(&statistic)).then_some(Dimension::Time)
}

/// The limits that could be read, checked against the flows and against one another.
pub(crate) fn resolve(test: &Statements, model: &Model, found: &mut Findings) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for statement in &test.limits {
        if let Some(limit) = limit(statement, model, found) {
            compare(&limit, &limits, statement, found);
            limits.push(limit);
        }
    }
    limits
}

fn limit(statement: &LimitStatement, model: &Model, found: &mut Findings) -> Option<Limit> {
    let flow = match &statement.flow {
        None => None,
        Some(flow) => Some(flow.as_ref()?),
    };
    if let Some(flow) = flow
        && model.flows_whole
        && model.flow_index(flow.value).is_none()
    {
        let message = format!("there is no flow {}", flow.value);
        found.error(&flow.place, message, "", "name a flow that <flows> declares, or leave flow out for all");
        return None;
    }
    let measure = statement.measure.as_ref()?;
    let Some(dimension) = dimension(&measure.value) else {
        unknown(measure, found);
        return None;
    };
    let flow = flow.map(|flow| flow.value);
    applies(statement, flow, &measure.value, model, found);
    let (bound, written) = statement.bound.as_ref()?;
    let value = value(dimension, &measure.value, written, found)?;
    Some(Limit {
        flow,
        measure: measure.value.clone(),
        bound: *bound,
        value,
        written: written.written.to_string(),
        line: statement.place.line,
    })
}

fn unknown(measure: &Sourced<String>, found: &mut Findings) {
    let name = measure.value.split('.').next().unwrap_or("");
    let cure = if TIMES.contains(&name) {
        format!("write {name}. and one of {}", STATISTICS.join(", "))
    } else {
        format!(
            "write one of {} with a statistic, for example latency.p99, or one of {}, loss, throughput",
            TIMES.join(", "),
            COUNTS.join(", ")
        )
    };
    found.error(&measure.place, format!("{} is unknown", measure.named()), "", cure);
}

/// A limit on something a flow does not have would always pass, or never.
fn applies(
    statement: &LimitStatement,
    flow: Option<FlowId>,
    measure: &str,
    model: &Model,
    found: &mut Findings,
) {
    type Has = fn(&FlowModel) -> bool;
    let ([one, none], cure, has): ([&str; 2], &str, Has) = match measure.split('.').next() {
        Some("rtt" | "return_latency") => (
            ["is not relayed", "is relayed"],
            "add a <relay> task for it, or limit latency instead",
            |flow| flow.relayed,
        ),
        Some("late") => (["has no deadline", "has a deadline"], "add deadline=\"…\" to the flow", |flow| {
            flow.deadline.is_some()
        }),
        Some("unplanned") if flow.is_some() => {
            let message = "unplanned frames belong to no flow";
            found.error(&statement.place, message, "", "remove flow=\"…\"; they are counted per run");
            return;
        }
        _ => return,
    };
    let judged: Vec<&FlowModel> =
        model.flows.iter().filter(|candidate| flow.is_none_or(|id| candidate.id == id)).collect();
    // A relay or deadline that could not be read was reported where it stands.
    if judged.iter().any(|flow| has(flow)) || !model.flows_whole || !found.clean() {
        return;
    }
    let message = match flow {
        Some(id) => format!("flow {id} {one}, so it has no {measure}"),
        None => format!("no flow {none}, so there is no {measure}"),
    };
    found.error(&statement.place, message, "", cure);
}

fn value(dimension: Dimension, measure: &str, bound: &Sourced<()>, found: &mut Findings) -> Option<f64> {
    let text = bound.written.as_ref();
    let read = |kind: Kind, found: &mut Findings| match quantity::parse(kind, text) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = format!("{} {error}", bound.named());
            found.error(&bound.place, message, "", error.cure(kind, text));
            None
        }
    };
    match dimension {
        // Both conversions are exact below 2^53 of the base unit; a limit beyond 104 days of nanoseconds or
        // 9 Pbit/s is none.
        Dimension::Time => {
            let time = quantity::time(text).ok();
            let picos = read(Kind::Time, found)?;
            if time.is_none() {
                found.error(
                    &bound.place,
                    format!("{} is too large", bound.named()),
                    "106 days",
                    "write less",
                );
            }
            Some(picos as f64 / 1_000.0)
        }
        Dimension::Rate => Some(read(Kind::Rate, found)? as f64),
        Dimension::Share => {
            let ppm = read(Kind::Ratio, found)?;
            if ppm > 1_000_000 {
                let message = format!("{} is more than everything", bound.named());
                found.error(&bound.place, message, "0% to 100%", "write a share within the limit");
                return None;
            }
            Some(ppm as f64 / 1_000_000.0)
        }
        Dimension::Count => {
            let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            let number = text.parse::<u32>().ok().filter(|_| digits);
            if number.is_none() {
                let message = format!("{} is no number of messages", bound.named());
                let cure = format!("{measure} is a count: write a whole number without a unit");
                found.error(&bound.place, message, format!("0 to {}", u32::MAX), cure);
            }
            number.map(f64::from)
        }
    }
}

fn compare(new: &Limit, others: &[Limit], statement: &LimitStatement, found: &mut Findings) {
    for other in others.iter().filter(|other| other.measure == new.measure) {
        let line = on_line(other.line);
        if other.flow == new.flow && other.bound == new.bound {
            let message = format!("{} already has this bound{line}", shown(&new.measure));
            found.error(&statement.place, message, "", "keep one of the two limits");
            continue;
        }
        let same_flow = other.flow.is_none() || new.flow.is_none() || other.flow == new.flow;
        let contradicts = match (new.bound, other.bound) {
            (Bound::AtLeast, Bound::AtMost) => new.value > other.value,
            (Bound::AtMost, Bound::AtLeast) => new.value < other.value,
            _ => false,
        };
        if same_flow && contradicts {
            let message = format!("no value of {} can meet both this limit and the one{line}", new.measure);
            found.error(&statement.place, message, "", "correct one of the two");
        }
    }
}

/// Says which percentile limits cannot be judged with the messages planned.
pub(crate) fn warn_of_few(
    limits: &[Limit],
    fewest: impl Fn(Option<FlowId>) -> Option<u32>,
    found: &mut Findings,
) {
    for limit in limits {
        let statistic = limit.measure.split_once('.').map(|(_, statistic)| statistic);
        let Some((_, needed)) = NEEDED.iter().find(|(name, _)| Some(*name) == statistic) else { continue };
        let Some(planned) = fewest(limit.flow).filter(|planned| planned < needed) else { continue };
        found.warn(format!(
            "limit on {}{}: {planned} messages are planned, but this percentile needs {needed}",
            limit.measure,
            on_line(limit.line)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_has_a_dimension() {
        assert_eq!(measures().count(), 11 * 9 + 9 + 2);
        for measure in measures() {
            assert!(dimension(&measure).is_some(), "{measure}");
        }
        for none in ["latency", "latency.p95", "p99", "latency.", ".p99", "loss.max", ""] {
            assert_eq!(dimension(none), None, "{none}");
        }
    }

    #[test]
    fn messages_needed_follow_the_formula() {
        for (name, needed) in NEEDED {
            let q: f64 = name[1..].parse::<f64>().unwrap() / 100.0;
            assert_eq!((0.05_f64.ln() / q.ln()).ceil() as u32, needed, "{name}");
        }
    }
}
