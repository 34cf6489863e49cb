//! The Python module `wiregauge._native`; the only crate that knows Python.
//!
//! Plans and summaries cross the border as JSON text, tables as files and arrays as copies, so that Python holds no view
//! into Rust memory and both sides can be tested alone. `python/wiregauge/_native.pyi` is the declaration Python
//! code is checked against; a test compares it with this module.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod arrays;
mod error;
mod live;
mod plan_json;
mod spooling;
mod watching;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wg_capture::taps::{self, Order};
use wg_capture::{Files, passive, streams};
use wg_plan::host_tsn::commands;
use wg_plan::quantity::{self, Kind};
use wg_plan::{Network, Run};
use wg_record::{Crossing, Gap, RecordError, Row, TableWriter, Truth};
use wg_sim::live::Replayed;
use wg_sim::{SimError, SimReport, Spool, Watched};
use wg_track::Tables;
use wg_track::tracking::RunSummary;

use crate::error::NativeError;
use crate::plan_json::{parse, parse_plan};

/// The Rust side of wiregauge: compiling tests, simulating runs and judging records.
#[pymodule]
mod _native {
    use wg_frame::ethernet;

    #[pymodule_export]
    use super::{
        NativeError, bound_network, certify_network, compare_captures, compile_plan, convert_network,
        count_stages, label_table, language, observe_captures, process_run, read_quantity, replay_run,
        retrack, simulate_offsets, simulate_run, store_beside, stream_identities, take_captures, track_part,
        tsn_commands, version,
    };
    #[pymodule_export]
    use crate::arrays::{
        Counts, first_places, fold, harmonic_peaks, section_medians, superpose, taut_string,
    };
    #[pymodule_export]
    #[pymodule_export]
    use crate::live::LiveRun;
    #[pymodule_export]
    use crate::spooling::spool_observations;
    #[pymodule_export]
    use crate::watching::Watch;

    /// Version of the segments this program writes and reads.
    #[pymodule_export]
    const SEGMENT_SCHEMA: u32 = wg_record::segment::SEGMENT_SCHEMA;
    /// Version of the JSON form of the plan this program writes and reads.
    #[pymodule_export]
    const PLAN_SCHEMA: u32 = wg_plan::PLAN_SCHEMA;
    /// Benches count a message as late that was sent more than its sender's period divided by this after it was to be.
    #[pymodule_export]
    const LATE_DIVISOR: i64 = wg_plan::LATE_DIVISOR;
    /// Octets of preamble and start-of-frame delimiter.
    #[pymodule_export]
    const PREAMBLE_LEN: usize = ethernet::PREAMBLE_LEN;
    /// Octets of the least gap between two frames.
    #[pymodule_export]
    const GAP_LEN: usize = ethernet::GAP_LEN;
    /// Octets of the shortest frame, destination address to frame check sequence.
    #[pymodule_export]
    const MIN_FRAME_LEN: usize = ethernet::MIN_FRAME_LEN;
    /// Octets of the longest frame without tags.
    #[pymodule_export]
    const MAX_FRAME_LEN: usize = ethernet::MAX_FRAME_LEN;
    /// Octets of addresses, type and frame check sequence.
    #[pymodule_export]
    const FRAME_OVERHEAD: usize = ethernet::FRAME_OVERHEAD;
    /// Octets of a VLAN tag.
    #[pymodule_export]
    const TAG_LEN: usize = wg_frame::vlan::TAG_LEN;
    /// Octets of the IPv4 and UDP headers of a datagram.
    #[pymodule_export]
    const DATAGRAM_HEADER_LEN: usize = wg_frame::layout::DATAGRAM_HEADER_LEN;
}

/// The test language as JSON: elements with their attributes, and the forms of values.
#[pyfunction]
fn language() -> String {
    wg_plan::language()
}

/// Compiles the JSON form of a test's element tree.
///
/// Relative paths of replayed captures start at `below`. Returns JSON: `{"campaign": …}`, or `{"diagnostics": […]}`
/// when the test is not valid. `scheduling` states which windows of time-triggered flows may clash: none (`"done"`),
/// those of flows still to be scheduled (`"open"`), or all (`"unjudged"`). Raises NativeError for another word.
#[pyfunction]
#[pyo3(signature = (tree_json, below, scheduling = "done"))]
fn compile_plan(py: Python<'_>, tree_json: &str, below: PathBuf, scheduling: &str) -> PyResult<String> {
    let scheduling = match scheduling {
        "done" => wg_plan::Scheduling::Done,
        "open" => wg_plan::Scheduling::Open,
        "unjudged" => wg_plan::Scheduling::Unjudged,
        other => {
            return Err(NativeError::new_err(format!(
                "scheduling \"{other}\" is none of done, open and unjudged"
            )));
        }
    };
    Ok(py.detach(|| wg_plan::compile_json(tree_json, &Files { below }, scheduling)))
}

/// Bounds delays and backlogs of a network by network calculus.
///
/// `source` is a network as `wg_bound` reads it, `question` a `wg_bound::Question`. `solve` is called if the method
/// needs a solver of linear programmes: with the rows in compressed form (starts, columns, values), their limits and
/// the objective to maximise; it returns the multipliers of the rows, or None. Returns JSON: `{"answer": …}`, or
/// `{"refused": …}` with the reason. Raises what `solve` raises.
#[pyfunction]
#[pyo3(signature = (source, question, solve = None))]
fn bound_network(
    py: Python<'_>,
    source: String,
    question: String,
    solve: Option<Py<PyAny>>,
) -> PyResult<String> {
    interruptible(py, move |stopped| {
        let mut raised = None;
        let Some(solve) = solve else { return Ok(wg_bound::bounds_json(&source, &question)) };
        let mut call = |scaled: &wg_bound::Scaled| {
            let wg_bound::Scaled { starts, columns, values, limits, objective } = scaled;
            if raised.is_some() || stopped.load(Ordering::Acquire) {
                return None;
            }
            let told = Python::attach(|py| {
                let parts =
                    (starts.clone(), columns.clone(), values.clone(), limits.clone(), objective.clone());
                solve.call1(py, parts)?.extract::<Option<Vec<f64>>>(py)
            });
            told.unwrap_or_else(|error| {
                raised = Some(error);
                None
            })
        };
        let reply = wg_bound::bounds_json_with(&source, &question, Some(&mut call));
        raised.map_or(Ok(reply), Err)
    })
}

/// Writes the steps of the bounds of a network for a checker that shares no code with the analyses.
///
/// `source` and `question` are those of `bound_network`. Returns JSON: `{"certificate": …}`, or `{"refused": …}`.
#[pyfunction]
fn certify_network(py: Python<'_>, source: String, question: String) -> PyResult<String> {
    interruptible(py, move |_| Ok(wg_bound::certificate_json(&source, &question)))
}

/// Interval at which a long computation checks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// Computes on another thread, so that a signal ends the wait: exact computations may take hours without a check for
/// signals. An abandoned computation goes on until it is done, sees its flag set, or the process ends.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    compute: impl FnOnce(&AtomicBool) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let stopped = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let told = stopped.clone();
    let thread = move || drop(sender.send(compute(&told)));
    std::thread::Builder::new().name("compute".to_owned()).spawn(thread)?;
    loop {
        let received;
        (receiver, received) = py.detach(move || {
            let received = receiver.recv_timeout(LOOK);
            (receiver, received)
        });
        match received {
            Ok(computed) => return computed,
            Err(RecvTimeoutError::Timeout) => {}
            // The thread ends without sending only by a panic.
            Err(RecvTimeoutError::Disconnected) => {
                return Err(NativeError::new_err("the computation failed"));
            }
        }
        if let Err(signal) = py.check_signals() {
            stopped.store(true, Ordering::Release);
            return Err(signal);
        }
    }
}

/// Writes a network in the form `output-ports` (JSON) or `physical` (XML) of network-calculus tools.
///
/// `source` is as of [`bound_network`]. Returns JSON: `{"written": …}` or `{"refused": …}`. Raises nothing.
#[pyfunction]
fn convert_network(py: Python<'_>, source: &str, form: &str) -> String {
    py.detach(|| wg_bound::converted_json(source, form))
}

/// Stores and judges the records of one run.
///
/// `network_json` and `run_json` are `plan.network` and one of `plan.runs`; `segments` are segment files, those of one
/// directory of one agent, in the order they were written. Writes `records_out` and the tables (Parquet), each whole or
/// not at all, and returns the run's entry of tracking.json. Raises NativeError.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keyword")]
fn process_run(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    segments: Vec<PathBuf>,
    records_out: PathBuf,
    messages_out: PathBuf,
    passages_out: PathBuf,
    sketches_out: PathBuf,
) -> PyResult<String> {
    let tables = Tables { messages: messages_out, passages: passages_out, sketches: sketches_out };
    py.detach(|| {
        let (network, run) = parse_plan(network_json, run_json)?;
        told(wg_track::process_run(&network, &run, &segments, &records_out, &tables))
    })
}

/// Writes the records of the messages in captures as segments below `spool`.
///
/// `order_json` is `wg_capture::taps::Order`. Returns `wg_capture::taps::Taken` as JSON, or `{"no_message": …}` where
/// no message of ours is in any. Raises NativeError.
#[pyfunction]
fn take_captures(py: Python<'_>, order_json: &str, spool: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let order: Order = serde_json::from_str(order_json).map_err(|error| {
            NativeError::new_err(format!("the order to read captures is damaged: {error}"))
        })?;
        let taken = match taps::take(&order, &spool) {
            Err(error @ taps::TapError::NoMessage { .. }) => {
                return Ok(serde_json::json!({ "no_message": error.to_string() }).to_string());
            }
            taken => taken.map_err(|error| NativeError::new_err(error.to_string()))?,
        };
        serde_json::to_string(&taken).map_err(|error| NativeError::new_err(error.to_string()))
    })
}

/// Compares two captures of anyone's traffic, before and after a device, and writes records of what is certain as
/// segments below `spool`.
///
/// `order_json` is `wg_capture::passive::Order`. Returns `wg_capture::passive::Compared` as JSON. Raises NativeError.
#[pyfunction]
fn compare_captures(py: Python<'_>, order_json: &str, spool: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let order: passive::Order = serde_json::from_str(order_json).map_err(|error| {
            NativeError::new_err(format!("the order to compare captures is damaged: {error}"))
        })?;
        let compared =
            passive::compare(&order, &spool).map_err(|error| NativeError::new_err(error.to_string()))?;
        serde_json::to_string(&compared).map_err(|error| NativeError::new_err(error.to_string()))
    })
}

/// Reads captures of one place and reports their streams.
///
/// `order_json` is `wg_capture::streams::Order`. Returns `wg_capture::streams::Observed` as JSON. Raises NativeError.
#[pyfunction]
fn observe_captures(py: Python<'_>, order_json: &str) -> PyResult<String> {
    py.detach(|| {
        let order: streams::Order = serde_json::from_str(order_json).map_err(|error| {
            NativeError::new_err(format!("the order to observe captures is damaged: {error}"))
        })?;
        let observed = streams::observe(&order).map_err(|error| NativeError::new_err(error.to_string()))?;
        serde_json::to_string(&observed).map_err(|error| NativeError::new_err(error.to_string()))
    })
}

/// The kinds of streams, each with the parts of an identity that tell its streams apart; JSON.
#[pyfunction]
fn stream_identities() -> PyResult<String> {
    serde_json::to_string(&streams::identities()).map_err(|error| NativeError::new_err(error.to_string()))
}

/// Judges the stored records of one run again.
///
/// Reads `records` (Parquet, in one file or several), writes the tables and returns the run's entry of tracking.json.
/// `gaps_json` is a list of `wg_track::tracking::Gap`. Raises NativeError.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keyword")]
fn retrack(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    records: Vec<PathBuf>,
    gaps_json: &str,
    messages_out: PathBuf,
    passages_out: PathBuf,
    sketches_out: PathBuf,
) -> PyResult<String> {
    let tables = Tables { messages: messages_out, passages: passages_out, sketches: sketches_out };
    py.detach(|| {
        let (network, run) = parse_plan(network_json, run_json)?;
        let gaps: Vec<Gap> = parse("gaps of the records", gaps_json)?;
        told(wg_track::retrack(&network, &run, &records, &gaps, &tables))
    })
}

/// Judges part `part` of `parts` of the flows of a run from its stored records.
///
/// As [`retrack`]; the entries of all parts add up to that of the run, and so do the rows of their tables.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python calls it by keyword")]
fn track_part(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    records: Vec<PathBuf>,
    gaps_json: &str,
    part: usize,
    parts: usize,
    messages_out: PathBuf,
    passages_out: PathBuf,
    sketches_out: PathBuf,
) -> PyResult<String> {
    let tables = Tables { messages: messages_out, passages: passages_out, sketches: sketches_out };
    py.detach(|| {
        let (network, run) = parse_plan(network_json, run_json)?;
        let gaps: Vec<Gap> = parse("gaps of the records", gaps_json)?;
        told(wg_track::track_part(&network, &run, &records, &gaps, [part, parts], &tables))
    })
}

/// Stores a table beside the records of a run: what was true (`"truth"`), or what crossed between hosts and a network
/// that was played (`"crossings"`).
///
/// Reads `spooled` (an Arrow stream of the bench), writes `out` (Parquet) and returns JSON: null, or what was wrong
/// with the spooled file, whose rows up to there are stored. Raises NativeError.
#[pyfunction]
fn store_beside(
    py: Python<'_>,
    kind: &str,
    run_index: u32,
    spooled: PathBuf,
    out: PathBuf,
) -> PyResult<String> {
    let store = match kind {
        Truth::KIND => wg_track::store_table::<Truth>,
        Crossing::KIND => wg_track::store_table::<Crossing>,
        other => {
            return Err(NativeError::new_err(format!("{other} is no table beside the records of a run")));
        }
    };
    let damage =
        py.detach(|| store(&spooled, &out, run_index)).map_err(|e| NativeError::new_err(e.to_string()))?;
    serde_json::to_string(&damage).map_err(|e| NativeError::new_err(e.to_string()))
}

/// Copies an Arrow IPC file to `target`, with `metadata` in its schema. Raises NativeError.
#[pyfunction]
fn label_table(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    metadata: HashMap<String, String>,
) -> PyResult<()> {
    py.detach(|| wg_track::label_table(&source, &target, metadata))
        .map_err(|e| NativeError::new_err(e.to_string()))
}

/// Simulates one run on up to `threads` threads and writes its records as segments, `spool/simulator/*.arrows`, what was true beside them,
/// `spool/truth.arrows`, and its captures, `spool/captures/*.pcapng`.
///
/// Returns JSON: `agents` (end system → report in the shape of `AgentReport`), `switches`, `records`,
/// `frame_hops` and `simulated_ps`. `progress` is called now and then with the share of simulated time that is done, 0
/// to 1; what it raises, or Ctrl-C on the main thread, ends the simulation and is raised here. Raises NativeError.
#[pyfunction]
#[pyo3(signature = (network_json, run_json, spool, progress = None, threads = 1))]
fn simulate_run(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    spool: PathBuf,
    progress: Option<Py<PyAny>>,
    threads: usize,
) -> PyResult<String> {
    let report = watched(py, progress, |watch| {
        let (network, run) = parse_plan(network_json, run_json)?;
        Ok(simulate_into(&network, &run, &spool, threads, watch))
    })?;
    serde_json::to_string(&report).map_err(|e| NativeError::new_err(e.to_string()))
}

/// The number of stages in which a run is simulated on up to `threads` threads: 1 if its network cannot be divided. Raises
/// NativeError.
#[pyfunction]
fn count_stages(network_json: &str, run_json: &str, threads: usize) -> PyResult<usize> {
    let (network, run) = parse_plan(network_json, run_json)?;
    wg_sim::count_stages(&network, &run, threads).map_err(|e| NativeError::new_err(e.to_string()))
}

/// What the network between the hosts of a run did, done once more from what they sent.
///
/// Reads `crossings` (Parquet). Writes records and truth as [`simulate_run`], and in `spool/crossings.arrows` what was
/// handed out. Returns JSON: `until_ps`, and `is_whole`: the crossings have their end. `progress` as there. Raises
/// NativeError.
#[pyfunction]
#[pyo3(signature = (network_json, run_json, crossings, spool, progress = None))]
fn replay_run(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    crossings: PathBuf,
    spool: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let replayed = watched(py, progress, |watch| {
        let (network, run) = parse_plan(network_json, run_json)?;
        let rows = wg_track::read_stored(&crossings).map_err(|e| NativeError::new_err(e.to_string()))?;
        Ok(replay_into(&network, &run, &rows, &spool, watch))
    })?;
    let told = serde_json::json!({"until_ps": replayed.until.as_picos(), "is_whole": replayed.is_whole});
    Ok(told.to_string())
}

/// Simulates on this thread, watched by `progress`; what that raises ends the simulation and is raised here.
fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    simulate: impl FnOnce(&mut dyn FnMut(f64) -> bool) -> PyResult<Result<T, SimError>> + Send,
) -> PyResult<T> {
    let mut raised = None;
    let simulated = py.detach(|| {
        let mut watch = |share: f64| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
            });
            raised = told.err();
            raised.is_none()
        };
        simulate(&mut watch)
    })?;
    match (raised, simulated) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(NativeError::new_err(error.to_string())),
        (None, Ok(simulated)) => Ok(simulated),
    }
}

/// Simulates one run in memory for each list of offsets of its senders, in ps and in their order, on all cores.
///
/// Returns JSON: a list of `wg_sim::Journeys`, of each list of offsets in its place; with `passages` also when messages
/// came where. Raises NativeError.
#[pyfunction]
fn simulate_offsets(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    offsets: Vec<Vec<i64>>,
    passages: bool,
) -> PyResult<String> {
    py.detach(|| {
        let (network, run) = parse_plan(network_json, run_json)?;
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let all = wg_sim::journeys(&network, &run, &offsets, passages, threads)
            .map_err(|error| NativeError::new_err(error.to_string()))?;
        serde_json::to_string(&all).map_err(|error| NativeError::new_err(error.to_string()))
    })
}

fn simulate_into(
    network: &Network,
    run: &Run,
    spool: &Path,
    threads: usize,
    watch: impl FnMut(f64) -> bool,
) -> Result<SimReport, SimError> {
    let mut watched = Watched { sink: Spool::create(spool, network, run)?, watch };
    let again = |watched: &mut Watched<Spool, _>| watched.sink.begin_again(spool, network, run);
    let simulated = wg_sim::simulate_on(network, run, threads, &mut watched, again);
    // What was simulated before a stop is whole, and is kept.
    watched.sink.finish()?;
    simulated
}

fn replay_into(
    network: &Network,
    run: &Run,
    crossings: &[Crossing],
    spool: &Path,
    watch: impl FnMut(f64) -> bool,
) -> Result<Replayed, SimError> {
    let plain = Run { captures: Vec::new(), ..run.clone() };
    let mut watched = Watched { sink: Spool::create(spool, network, &plain)?, watch };
    let replayed = wg_sim::live::replay(network, &plain, crossings, &mut watched)?;
    watched.sink.finish()?;
    let mut left = TableWriter::create(spool, run.index)?;
    for row in &replayed.left {
        left.push(*row)?;
    }
    left.finish()?;
    Ok(replayed)
}

/// Reads a quantity as the test language does, exactly or not at all: the one parser of `50ns`, `1Gbit/s` and `0.1%`.
///
/// `kind` is `time` (ps), `size` (B), `rate` (bit/s) or `share` (ppb). Raises NativeError with what is wrong and what
/// to write, a sentence that begins with the text.
#[pyfunction]
fn read_quantity(kind: &str, text: &str) -> PyResult<u128> {
    let kind = match kind {
        "time" => Kind::Time,
        "size" => Kind::Size,
        "rate" => Kind::Rate,
        "share" => Kind::Share,
        "storage" => Kind::Storage,
        _ => return Err(PyValueError::new_err(format!("{kind} is no kind of quantity"))),
    };
    quantity::parse(kind, text).map_err(|error| NativeError::new_err(error.sentence(kind, text)))
}

/// The commands that make the TSN settings of a host, and those that take them off again.
///
/// `node` is a number of the network's nodes, `interface` that of the host in the network under test. Returns JSON:
/// `apply` and `undo`, lists of lines, and `restored`, what else gets its former value. Raises NativeError.
#[pyfunction]
fn tsn_commands(network_json: &str, run_json: &str, node: u16, interface: &str) -> PyResult<String> {
    let (network, run) = parse_plan(network_json, run_json)?;
    if !commands::is_interface_name(interface) {
        return Err(NativeError::new_err(format!("\"{interface}\" is no name of an interface")));
    }
    let lines = |all: Vec<commands::Command>| all.iter().map(commands::Command::line).collect::<Vec<_>>();
    let changes = commands::changes(&network, &run, node);
    let restored = [
        changes.channels.map(|_| "channels (ethtool -L)"),
        changes.hardware_filters.then_some("hw-tc-offload (ethtool -K)"),
        changes.mac_merge.then_some("the MAC merge layer (ethtool --set-mm)"),
    ];
    let answer = serde_json::json!({
        "apply": lines(commands::apply(&network, &run, node, interface)),
        "undo": lines(commands::undo(&changes, &commands::Before::default(), interface)),
        "restored": restored.iter().flatten().collect::<Vec<_>>(),
    });
    Ok(answer.to_string())
}

/// Version of the program.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn told(outcome: Result<RunSummary, RecordError>) -> PyResult<String> {
    let summary = outcome.map_err(|e| NativeError::new_err(e.to_string()))?;
    serde_json::to_string(&summary).map_err(|e| NativeError::new_err(e.to_string()))
}
