//! From the element tree to the campaign: read, resolve, expand, check every point.

use std::collections::BTreeMap;

use serde::Serialize;
use wg_frame::time::Span;

use crate::campaign::{Axis, Campaign, FlowId, PLAN_SCHEMA, Run, Synchronise};
use crate::diagnostic::{Diagnostic, Findings, Refusal};
use crate::disturbances::Disturbances;
use crate::host_tsn;
use crate::limits;
use crate::model::Model;
use crate::point::{PointCheck, Said, check_belongings};
use crate::port_tsn_checks;
use crate::reservations;
use crate::scheduling::Scheduling;
use crate::statements::{self, Statements};
use crate::sweep::Sweep;
use crate::topology::Topology;
use crate::trace::{Captures, MOST_TRACED, NoCaptures};
use crate::tree::Element;

/// Frames of all replays of all runs: the plan of every run says each of them.
const MOST_TRACED_IN_ALL: usize = 4 * MOST_TRACED;
/// Flows times runs of one campaign: each is an entry of the plan and a row of the report.
const MOST_ENTRIES: u64 = 500_000;
/// Total time above which a campaign is worth a warning.
const LONG_CAMPAIGN: Span = Span::from_millis(3_600_000);

/// Compiles a test.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file (200 at most).
pub fn compile(tree: &Element) -> Result<Campaign, Vec<Diagnostic>> {
    compile_with(tree, &NoCaptures)
}

/// Compiles a test whose replays come from `captures`.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(tree: &Element, captures: &dyn Captures) -> Result<Campaign, Vec<Diagnostic>> {
    compile_scheduling(tree, captures, Scheduling::Done)
}

/// Compiles a test for a scheduler: as [`compile_with`], but windows that `scheduling` leaves open may clash.
///
/// # Errors
/// As [`compile`].
pub fn compile_scheduling(
    tree: &Element,
    captures: &dyn Captures,
    scheduling: Scheduling,
) -> Result<Campaign, Vec<Diagnostic>> {
    compiled(tree, captures, scheduling).map_err(|refusal| refusal.diagnostics)
}

fn compiled(tree: &Element, captures: &dyn Captures, scheduling: Scheduling) -> Result<Campaign, Refusal> {
    let mut found = Findings::default();
    let test = statements::read(tree, captures, &mut found);
    required(&test, &mut found);
    let mut topology = Topology::build(&test, &mut found);
    let model = Model::resolve(&test, &topology, &mut found);
    let synchronise = synchronise(&test, &topology, &mut found);
    let disturbances = Disturbances::resolve(&test, &topology, &model, &mut found);
    let sweep = Sweep::resolve(&test, &model, &mut found);
    check_belongings(&model, |flow| sweep.protocols_of(&model, flow), &mut found);
    let limits = limits::resolve(&test, &model, &mut found);
    let world = (&topology, &disturbances, scheduling);
    let runs = expand(&test, world, &model, &sweep, &mut found);
    let mut fewest: BTreeMap<FlowId, u32> = BTreeMap::new();
    for send in runs.iter().flat_map(|run| &run.sends).filter(|send| model.flow_index(send.flow).is_some()) {
        fewest.entry(send.flow).and_modify(|least| *least = send.count.min(*least)).or_insert(send.count);
    }
    let fewest_of_all = fewest.values().copied().min();
    let fewest = |flow: Option<FlowId>| flow.map_or(fewest_of_all, |id| fewest.get(&id).copied());
    limits::warn_of_few(&limits, fewest, &mut found);
    limits::warn_of_unlimited_loss(&limits, &model.flows, &mut found);
    warn_of_length(&runs, &mut found);
    check_traces(&test, &runs, &mut found);
    host_tsn::check(&test.nodes, &topology, &runs, &mut found);
    port_tsn_checks::check(&test.nodes, &topology, &runs, &mut found);
    reservations::apply(&test, &mut topology.network, &runs, &mut found);
    let warnings = found.finish()?;
    let axes = sweep.axes.into_iter().map(|axis| Axis { of: axis.of, values: axis.written }).collect();
    Ok(Campaign {
        schema: PLAN_SCHEMA,
        name: test.name.map(|name| name.value).unwrap_or_default(),
        seed: test.seed.map(|seed| seed.value).unwrap_or_default(),
        bench: test.bench,
        network: topology.network,
        synchronise,
        axes,
        repeats: sweep.repeats,
        runs,
        limits,
        warnings,
    })
}

/// Compiles the JSON form of an element tree: `{"campaign": …}`, or `{"diagnostics": […], "beyond": N}` where N more are not
/// listed.
///
/// Never panics, whatever the text.
pub fn compile_json(tree_json: &str, captures: &dyn Captures, scheduling: Scheduling) -> String {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Answer {
        Campaign { campaign: Box<Campaign> },
        Refused(Refusal),
    }
    let answer = match serde_json::from_str::<Element>(tree_json) {
        Ok(tree) => match compiled(&tree, captures, scheduling) {
            Ok(campaign) => Answer::Campaign { campaign: Box::new(campaign) },
            Err(refusal) => Answer::Refused(refusal),
        },
        Err(error) => Answer::Refused(Refusal {
            diagnostics: vec![Diagnostic {
                line: 0,
                element: "<test>".into(),
                message: format!("the element tree is not readable: {error}"),
                limit: String::new(),
                cure: "pass tag, line, attributes and children of every element".into(),
            }],
            beyond: 0,
        }),
    };
    // Writing plain data to a string fails only out of memory.
    serde_json::to_string(&answer).unwrap_or_else(|_| "{\"diagnostics\":[],\"beyond\":0}".to_owned())
}

/// The seed of run `index`: output `index + 1` of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) started with
/// the campaign's seed. Runs then differ in every bit although their indices differ in few.
pub fn run_seed(campaign_seed: u64, index: u32) -> u64 {
    let golden = 0x9E37_79B9_7F4A_7C15_u64;
    let mut z = campaign_seed.wrapping_add(golden.wrapping_mul(u64::from(index) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// How clocks are kept together, once the reference is known.
fn synchronise(test: &Statements, topology: &Topology, found: &mut Findings) -> Option<Synchronise> {
    let statement = test.synchronise.as_ref()?;
    let reference = statement.reference.as_ref().and_then(|name| topology.end_system(name, found))?;
    Some(Synchronise { reference, ..statement.plan? })
}

/// A test without flows or senders measures nothing.
fn required(test: &Statements, found: &mut Findings) {
    if test.nodes.is_empty() {
        found.error(&test.place, "the test has no network", "", "add <network> with end systems and links");
    }
    if test.flows.is_empty() {
        found.error(&test.place, "the test has no flow", "at least 1", "add a <flow> to <flows>");
    }
    if test.sends.is_empty() {
        found.error(&test.place, "the test has no sender", "at least 1", "add a <send> to <tasks>");
    }
}

fn expand(
    test: &Statements,
    (topology, disturbances, scheduling): (&Topology, &Disturbances, Scheduling),
    model: &Model,
    sweep: &Sweep,
    found: &mut Findings,
) -> Vec<Run> {
    let ends = model.flows.iter().map(|flow| flow.ends.as_ref().map_or(1, |(_, to)| to.len() as u64));
    let planned = sweep.points.saturating_mul(u64::from(sweep.repeats));
    let entries = planned.saturating_mul(ends.sum());
    if entries > MOST_ENTRIES {
        let place = test.sweep.as_ref().unwrap_or(&test.place);
        let message = format!("the sweep expands to {entries} measurements of a flow");
        found.error(
            place,
            message,
            MOST_ENTRIES.to_string(),
            "use fewer values, repeats, flows or receivers",
        );
    }
    // What is refused anyway is still checked, but at its first point only.
    let points = if found.clean() { sweep.points } else { sweep.points.min(100) };
    let mut said = Said::default();
    let mut runs = Vec::new();
    for number in 0..points {
        let (at_point, point) = sweep.at(model, number);
        let topology = topology.changed(at_point.switches);
        let check = PointCheck { test, topology: &topology, model: &at_point, disturbances, scheduling };
        let run = check.run(&mut said, found);
        for repeat in 0..sweep.repeats {
            if !found.clean() {
                break;
            }
            #[expect(clippy::cast_possible_truncation, reason = "a test has at most `MOST_RUNS` runs")]
            let index = runs.len() as u32;
            let seed = test.seed.as_ref().map_or(0, |seed| run_seed(seed.value, index));
            runs.push(Run { index, point: point.clone(), repeat, seed, ..run.clone() });
        }
    }
    runs
}

/// Every run of the plan holds the traces it replays.
fn check_traces(test: &Statements, runs: &[Run], found: &mut Findings) {
    let replays = runs.iter().flat_map(|run| &run.sends).filter_map(|send| send.replay.as_ref());
    let frames: usize = replays.map(|replay| replay.trace.frames().len()).sum();
    if frames > MOST_TRACED_IN_ALL {
        let place = test.sweep.as_ref().unwrap_or(&test.place);
        let message = format!("the captures replayed in all runs together have {frames} frames");
        let cure = "sweep fewer values, repeat less often, or replay a part of the capture: editcap -r IN OUT 1-1000";
        found.error(place, message, MOST_TRACED_IN_ALL.to_string(), cure);
    }
}

fn warn_of_length(runs: &[Run], found: &mut Findings) {
    let total: i128 = runs
        .iter()
        .flat_map(|run| [run.warm_up, run.duration, run.drain])
        .map(|span| i128::from(span.as_picos()))
        .sum();
    if total > i128::from(LONG_CAMPAIGN.as_picos()) {
        let minutes = total / 60_000_000_000_000;
        found.warn(format!(
            "the campaign lasts {} h {} min without the time to set up its {} runs",
            minutes / 60,
            minutes % 60,
            runs.len()
        ));
    }
}
