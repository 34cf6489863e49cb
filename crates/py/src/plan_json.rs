//! Parts of a plan, as Python hands them over.

use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use wg_plan::{Network, Run};

use crate::error::NativeError;

/// A network and a run.
pub(crate) fn parse_plan(network_json: &str, run_json: &str) -> PyResult<(Network, Run)> {
    let network = Network::from_json(network_json.as_bytes()).map_err(|error| damaged("network", &error))?;
    let run = Run::from_json(run_json.as_bytes()).map_err(|error| damaged("run", &error))?;
    Ok((network, run))
}

/// A part of a plan; `what` names it.
pub(crate) fn parse<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| damaged(what, &error))
}

fn damaged(what: &str, error: &serde_json::Error) -> PyErr {
    NativeError::new_err(format!(
        "the {what} in the plan cannot be read: {error}; the manifest is damaged or was written by another \
         version of wiregauge"
    ))
}
