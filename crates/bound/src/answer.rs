//! The answer: bounds of flows and servers, limits judged, and what all of it assumes.

use serde::Serialize;

/// Version of the JSON form of [`Answer`].
pub const BOUNDS_SCHEMA: u32 = 1;

/// Bounds of a network.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Version, [`BOUNDS_SCHEMA`].
    pub schema: u32,
    /// Name of the network.
    pub name: String,
    /// Name of the method.
    pub method: &'static str,
    /// Order of service.
    pub multiplexing: &'static str,
    /// Input-link shaping: `on` or `off`.
    pub grouping: &'static str,
    /// Whether frames are received completely before they are forwarded.
    pub packetizer: bool,
    /// Arithmetic: `exact` or `rounded`.
    pub arithmetic: &'static str,
    /// Phases of senders: `known` or `any`.
    pub phases: &'static str,
    /// Unit of time: `s`, or `own`.
    pub time_unit: &'static str,
    /// Assumptions of the bounds.
    pub assumptions: Vec<String>,
    /// Remarks on this answer.
    pub notes: Vec<String>,
    /// Bounds of the flows.
    pub flows: Vec<FlowBound>,
    /// Bounds of the servers, by total flow analysis.
    pub servers: Vec<ServerBound>,
    /// Limits, and whether the bounds meet them.
    pub limits: Vec<Judged>,
}

/// Bounds of a flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowBound {
    /// Name of the flow.
    pub flow: String,
    /// Bounds for each of its targets.
    pub targets: Vec<TargetBound>,
}

/// Bound to one target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetBound {
    /// Name of the target.
    pub target: String,
    /// Names of the servers on the path.
    pub path: Vec<String>,
    /// Upper bound of the delay; null: unbounded.
    pub delay: Option<f64>,
    /// The delay as an exact fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_exact: Option<String>,
    /// Lower bound of the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Delay at each server; by total flow analysis only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<f64>,
    /// Delay before each server, and behind the last; by total flow analysis only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<f64>,
}

/// Bounds of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerBound {
    /// Name of the server.
    pub server: String,
    /// Upper bound of the delay over all classes; null: unbounded.
    pub delay: Option<f64>,
    /// The delay as an exact fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_exact: Option<String>,
    /// Upper bound of the backlog in bits; null: unbounded.
    pub backlog_bits: Option<f64>,
    /// The backlog as an exact fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_exact: Option<String>,
    /// Load: demanded share of its rate.
    pub load: f64,
    /// The load as an exact fraction.
    pub load_exact: String,
    /// Long-term service rate, in bits and the unit of time.
    pub rate: f64,
    /// Bounds of each of its classes.
    pub classes: Vec<ClassBound>,
}

/// Bounds of a class of a server.
#[derive(Clone, Debug, Serialize)]
pub struct ClassBound {
    /// Name of the class.
    pub class: String,
    /// Upper bound of the delay; null: unbounded.
    pub delay: Option<f64>,
    /// Upper bound of the backlog in bits; null: unbounded.
    pub backlog_bits: Option<f64>,
}

/// A limit, and whether the bound meets it.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Name of the flow.
    pub flow: String,
    /// Name of the target.
    pub target: String,
    /// Upper limit of the delay, in the unit of the answer.
    pub at_most: f64,
    /// The limit as written.
    pub written: String,
    /// The bound of the delay; null: unbounded.
    pub delay: Option<f64>,
    /// Whether the bound meets the limit.
    pub kept: bool,
    /// Line of the limit in the file.
    pub line: u32,
}
