//! Sweeps: which values the axes take and what each of them replaces.

use std::collections::{BTreeMap, BTreeSet};

use wg_frame::time::Span;

use crate::campaign::{Fill, Protocol, Turn};
use crate::diagnostic::{Findings, Place, on_line, shown};
use crate::language::attribute::Attribute;
use crate::language::flows::flow;
use crate::language::switches::{link, switch};
use crate::language::tasks::{inject, relay, send};
use crate::language::types::AXIS_NAME;
use crate::model::Model;
use crate::network::{ForwardingMode, Integration, Policing, SwitchKind};
use crate::reader::{Maybe, Sourced};
use crate::statements::{AxisStatement, Pace, Statements};

/// Runs of one campaign, points times repeats.
pub(crate) const MOST_RUNS: u64 = 10_000;

#[derive(Clone, Debug)]
enum Value {
    Payload(Sourced<u32>),
    Load(Sourced<u32>),
    Protocol(Sourced<Protocol>),
    Period(Sourced<Span>),
    Bag(Sourced<Span>),
    Burst(Sourced<u32>),
    Fill(Sourced<Fill>),
    Rate(Sourced<u64>),
    Through(Sourced<Turn>),
    Mode(ForwardingMode),
    Policing(Policing),
    Integration(Integration),
}

/// An axis whose name and values could be read.
#[derive(Debug)]
pub(crate) struct SweptAxis {
    pub(crate) of: String,
    pub(crate) written: Vec<String>,
    values: Vec<Value>,
    /// Indices of the flows it acts on; `None`: all.
    flows: Option<BTreeSet<usize>>,
}

/// The axes of a test and how often each point is run.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) axes: Vec<SweptAxis>,
    pub(crate) repeats: u32,
    pub(crate) points: u64,
}

impl Sweep {
    pub(crate) fn resolve(test: &Statements, model: &Model, found: &mut Findings) -> Self {
        let mut axes: Vec<SweptAxis> = Vec::new();
        let mut seen: BTreeMap<String, u32> = BTreeMap::new();
        for statement in &test.axes {
            let Some(of) = &statement.of else { continue };
            if let Some(line) = seen.get(&of.value) {
                let message = format!("{} is already swept{}", of.value, on_line(*line));
                found.error(&statement.place, message, "1 axis of each kind", "put all values into one axis");
                continue;
            }
            seen.insert(of.value.clone(), statement.place.line);
            axes.extend(axis(statement, of, (test, model), found));
        }
        check_bags(&axes, model, found);
        let repeats = test.repeats.as_ref().map_or(1, |times| times.value);
        let points = axes.iter().fold(1_u64, |n, axis| n.saturating_mul(axis.values.len().max(1) as u64));
        let runs = points.saturating_mul(u64::from(repeats));
        if runs > MOST_RUNS {
            let place = test.sweep.as_ref().unwrap_or(&test.place);
            let message = format!("the sweep expands to {runs} runs");
            found.error(
                place,
                message,
                MOST_RUNS.to_string(),
                "use fewer values or repeats, or several tests",
            );
        }
        Self { axes, repeats, points: points.min(MOST_RUNS) }
    }

    /// The model at point `number` and the axis values there, as written. The last axis varies fastest.
    pub(crate) fn at(&self, model: &Model, number: u64) -> (Model, BTreeMap<String, String>) {
        let mut model = model.clone();
        let mut point = BTreeMap::new();
        let mut rest = number;
        for axis in self.axes.iter().rev().filter(|axis| !axis.values.is_empty()) {
            let length = axis.values.len() as u64;
            #[expect(clippy::cast_possible_truncation, reason = "less than a length")]
            let chosen = (rest % length) as usize;
            rest /= length;
            axis.apply(&mut model, &axis.values[chosen]);
            point.insert(axis.of.clone(), axis.written[chosen].clone());
        }
        (model, point)
    }
}

impl Sweep {
    /// The protocols a flow takes at the points of the sweep.
    pub(crate) fn protocols_of(&self, model: &Model, flow: usize) -> Vec<Protocol> {
        let own = model.flows[flow].protocol.iter().map(|protocol| protocol.value);
        let covering = self.axes.iter().filter(|axis| axis.covers(flow));
        let swept = covering.flat_map(|axis| &axis.values).filter_map(|value| match value {
            Value::Protocol(protocol) => Some(protocol.value),
            _ => None,
        });
        own.chain(swept).collect()
    }
}

impl SweptAxis {
    fn covers(&self, flow: usize) -> bool {
        self.flows.as_ref().is_none_or(|flows| flows.contains(&flow))
    }

    fn apply(&self, model: &mut Model, value: &Value) {
        match value {
            Value::Protocol(value) => {
                for (_, flow) in model.flows.iter_mut().enumerate().filter(|(i, _)| self.covers(*i)) {
                    flow.protocol = Some(value.clone());
                }
            }
            Value::Bag(value) => {
                for (_, flow) in model.flows.iter_mut().enumerate().filter(|(i, _)| self.covers(*i)) {
                    flow.bag = Some(value.clone());
                }
            }
            Value::Payload(_) | Value::Period(_) | Value::Fill(_) => {
                for send in model.sends.iter_mut().filter(|send| self.covers(send.flow)) {
                    match value {
                        Value::Payload(value) => {
                            (send.written.payload, send.written.of_frame) = (Some(value.clone()), false);
                        }
                        Value::Period(value) => send.written.pace = Some(Pace::Period(value.clone())),
                        Value::Fill(value) => send.written.fill = Some(value.clone()),
                        _ => {}
                    }
                }
            }
            Value::Through(value) => {
                for relay in model.relays.iter_mut().filter(|relay| self.covers(relay.flow)) {
                    relay.through = Some(value.clone());
                }
            }
            Value::Load(value) => {
                model.injects.iter_mut().for_each(|inject| inject.written.load = Some(value.clone()));
            }
            Value::Burst(value) => {
                model.injects.iter_mut().for_each(|inject| inject.written.burst = Some(value.clone()));
            }
            Value::Rate(value) => model.rate = Some(value.clone()),
            Value::Mode(value) => model.switches.forwarding_mode = Some(*value),
            Value::Policing(value) => model.switches.policing = Some(*value),
            Value::Integration(value) => model.switches.integration = Some(*value),
        }
    }
}

fn axis(
    statement: &AxisStatement,
    of: &Sourced<String>,
    (test, model): (&Statements, &Model),
    found: &mut Findings,
) -> Option<SweptAxis> {
    let place = &statement.place;
    let Ok(name) = AXIS_NAME.chosen(&of.value) else {
        let names: Vec<&str> = AXIS_NAME.choices().iter().map(|axis| axis.name).collect();
        let message = format!("{} cannot be swept", of.named());
        found.error(place, message, "", format!("write one of {}", names.join(", ")));
        return None;
    };
    let flows = flows(statement, name, model, found)?;
    let mut values = Vec::new();
    let mut written: Vec<String> = Vec::new();
    for text in &statement.values {
        if written.contains(text) {
            let message = format!("value \"{}\" is listed twice", shown(text));
            found.error(place, message, "", "list every value once; use <repeat> to measure again");
            continue;
        }
        if let Some(value) = value(name, text, place, found) {
            values.push(value);
            written.push(text.clone());
        }
    }
    check_effect(name, &flows, statement, (test, model), found);
    Some(SweptAxis { of: of.value.clone(), written, values, flows })
}

/// Only virtual links have a BAG.
fn check_bags(axes: &[SweptAxis], model: &Model, found: &mut Findings) {
    let rate_constrained = |flow: usize| {
        let own = model.flows[flow].is(Protocol::Rc);
        let swept = axes.iter().filter(|axis| axis.covers(flow)).flat_map(|axis| &axis.values);
        own || swept.into_iter().any(|value| matches!(value, Value::Protocol(p) if p.value == Protocol::Rc))
    };
    for axis in axes.iter().filter(|axis| axis.of == "bag") {
        let none = !(0..model.flows.len()).any(|flow| axis.covers(flow) && rate_constrained(flow));
        if let (true, true, Some(Value::Bag(first))) = (none, model.flows_whole, axis.values.first()) {
            let cure = "add flows with protocol=\"rc\" or remove the axis";
            found.error(&first.place, "sweeping bag changes nothing in this test", "", cure);
        }
    }
}

/// An axis that changes nothing would produce equal points under different names.
fn check_effect(
    name: &str,
    flows: &Option<BTreeSet<usize>>,
    statement: &AxisStatement,
    (test, model): (&Statements, &Model),
    found: &mut Findings,
) {
    let covered = |flow: usize| flows.as_ref().is_none_or(|flows| flows.contains(&flow));
    let switches = |least: SwitchKind| test.nodes.iter().any(|node| node.is_switch(least));
    let (idle, cure) = match name {
        "load" | "burst" => (test.injects.is_empty(), "add an <inject> task or remove the axis"),
        "forwarding-mode" => (!switches(SwitchKind::Cots), "add a <switch> or remove the axis"),
        "policing" => (
            !switches(SwitchKind::Arinc664),
            "add a <switch> of kind arinc664 or mixed-criticality, or remove the axis",
        ),
        "integration" => (
            !switches(SwitchKind::MixedCriticality),
            "add a <switch> of kind mixed-criticality or remove the axis",
        ),
        "through" => {
            let whole = model.relays.len() >= test.relays.len();
            (
                whole && !model.relays.iter().any(|relay| covered(relay.flow)),
                "add a <relay> task or remove the axis",
            )
        }
        "payload" | "period" | "fill" => {
            let mut senders = model.sends.iter().filter(|send| covered(send.flow)).peekable();
            (
                senders.peek().is_some() && senders.all(|send| send.replay.is_some()),
                "sweep what a capture does not give, or send a flow with <send>",
            )
        }
        _ => return,
    };
    if idle {
        let message = format!("sweeping {name} changes nothing in this test");
        found.error(&statement.place, message, "", cure);
    }
}

fn flows(
    statement: &AxisStatement,
    name: &str,
    model: &Model,
    found: &mut Findings,
) -> Option<Option<BTreeSet<usize>>> {
    let Some(listed) = &statement.flows else {
        // What compares clocks stays as it is at every point.
        let under_test = || (0..model.flows.len()).filter(|flow| !model.flows[*flow].exchange).collect();
        return Some(model.flows.iter().any(|flow| flow.exchange).then(under_test));
    };
    let listed = listed.as_ref()?;
    if matches!(name, "load" | "burst" | "rate" | "forwarding-mode" | "policing" | "integration") {
        let message = format!("an axis of {name} does not act on flows");
        found.error(&statement.place, message, "", "remove flow=\"…\"");
        return None;
    }
    let mut flows = BTreeSet::new();
    for id in &listed.value {
        match model.flow_index(*id) {
            Some(index) => drop(flows.insert(index)),
            None if model.flows_whole => {
                let message = format!("there is no flow {id}");
                found.error(&statement.place, message, "", "name flows that <flows> declares");
            }
            None => {}
        }
    }
    Some(Some(flows))
}

fn value(of: &'static str, text: &str, place: &Place, found: &mut Findings) -> Option<Value> {
    match of {
        "payload" => read(&send::PAYLOAD, text, place, found).map(Value::Payload),
        "load" => read(&inject::LOAD, text, place, found).map(Value::Load),
        "period" => read(&send::PERIOD, text, place, found).map(Value::Period),
        "bag" => read(&flow::BAG, text, place, found).map(Value::Bag),
        "rate" => read(&link::RATE, text, place, found).map(Value::Rate),
        "protocol" => read(&flow::PROTOCOL, text, place, found).map(Value::Protocol),
        "fill" => read(&send::FILL, text, place, found).map(Value::Fill),
        "through" => read(&relay::THROUGH, text, place, found).map(Value::Through),
        "forwarding-mode" => {
            read(&switch::FORWARDING_MODE, text, place, found).map(|mode| Value::Mode(mode.value))
        }
        "policing" => read(&switch::POLICING, text, place, found).map(|kind| Value::Policing(kind.value)),
        "integration" => {
            read(&switch::INTEGRATION, text, place, found).map(|kind| Value::Integration(kind.value))
        }
        _ => {
            let number = inject::BURST.parse(text).ok();
            if number.is_none() {
                let message = format!("{of} \"{}\" is no number of frames", shown(text));
                found.error(place, message, inject::BURST.limit(), "write a number within the limit");
            }
            number.map(|n| Value::Burst(sourced(of, text, n, place)))
        }
    }
}

fn sourced<T>(attribute: &'static str, text: &str, value: T, place: &Place) -> Sourced<T> {
    Sourced { value, attribute, written: shown(text).into(), place: place.clone() }
}

/// A value in place of that of an attribute.
fn read<T>(attribute: &Attribute<T>, text: &str, place: &Place, found: &mut Findings) -> Maybe<T> {
    match attribute.parse(text) {
        Ok(value) => Some(sourced(attribute.name, text, value, place)),
        Err(refused) => {
            let message = format!("{} \"{}\" {}", attribute.name, shown(&refused.word), refused.problem);
            found.error(place, message, refused.limit, refused.cure);
            None
        }
    }
}
