//! Parts of a plan, as Python hands them over.

use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use wg_plan::{Network, Run};

use crate::error::NativeError;

/// A network and a run.
pub(crate) fn parse_plan(network_json: &str, run_json: &str) -> PyResult<(Network, Run)> {
    Ok((parse("network", network_json)?, parse("run", run_json)?))
}

/// A part of a plan; `what` names it.
pub(crate) fn parse<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| {
        NativeError::new_err(format!(
            "the {what} in the plan cannot be read: {e}; the manifest is damaged or was written by another \
             version of wiregauge"
        ))
    })
}
