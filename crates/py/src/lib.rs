//! The Python module `wiregauge._native`; the only crate that knows Python.
//!
//! Plans and summaries cross the border as JSON text and tables as files, so that Python holds no view into
//! Rust memory and both sides can be tested alone. `python/wiregauge/_native.pyi` is the declaration Python
//! code is checked against; a test compares it with this module.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use wg_plan::{Network, Run};
use wg_record::RecordError;
use wg_record::tracking::RunSummary;

create_exception!(
    wiregauge._native,
    NativeError,
    PyException,
    "What could not be done, as a sentence for the user: which file, what happened, the cure."
);

/// The Rust side of wiregauge: compiling tests and judging records.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{NativeError, compile_plan, process_run, retrack, version};

    /// Version of the record columns this program writes and reads.
    #[pymodule_export]
    const RECORD_SCHEMA: u32 = wg_record::RECORD_SCHEMA;
    /// Version of the JSON form of the plan this program writes and reads.
    #[pymodule_export]
    const PLAN_SCHEMA: u32 = wg_plan::PLAN_SCHEMA;
}

/// Compiles the JSON form of a test's element tree.
///
/// Returns JSON: `{"campaign": …}`, or `{"diagnostics": […]}` when the test is not valid. Raises nothing.
#[pyfunction]
fn compile_plan(py: Python<'_>, tree_json: &str) -> String {
    py.detach(|| wg_plan::compile_json(tree_json))
}

/// Stores and judges the records of one run.
///
/// `network_json` and `run_json` are `plan.network` and one of `plan.runs`; `segments` are segment files in the
/// order they were written. Writes `records_out` and `messages_out` (Parquet), each whole or not at all, and
/// returns the run's entry of tracking.json. Raises NativeError.
#[pyfunction]
fn process_run(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    segments: Vec<PathBuf>,
    records_out: PathBuf,
    messages_out: PathBuf,
) -> PyResult<String> {
    py.detach(|| {
        let (network, run) = parse_plan(network_json, run_json)?;
        told(wg_record::process_run(&network, &run, &segments, &records_out, &messages_out))
    })
}

/// Judges the stored records of one run again.
///
/// Reads `records` (Parquet), writes `messages_out` and returns the run's entry of tracking.json. Raises
/// NativeError.
#[pyfunction]
fn retrack(
    py: Python<'_>,
    network_json: &str,
    run_json: &str,
    records: PathBuf,
    messages_out: PathBuf,
) -> PyResult<String> {
    py.detach(|| {
        let (network, run) = parse_plan(network_json, run_json)?;
        told(wg_record::retrack(&network, &run, &records, &messages_out))
    })
}

/// Version of the program.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn parse_plan(network_json: &str, run_json: &str) -> PyResult<(Network, Run)> {
    Ok((parse("network", network_json)?, parse("run", run_json)?))
}

fn parse<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| {
        NativeError::new_err(format!(
            "the {what} in the plan cannot be read: {e}; the manifest is damaged or was written by another \
             version of wiregauge"
        ))
    })
}

fn told(outcome: Result<RunSummary, RecordError>) -> PyResult<String> {
    let summary = outcome.map_err(|e| NativeError::new_err(e.to_string()))?;
    serde_json::to_string(&summary).map_err(|e| NativeError::new_err(e.to_string()))
}
