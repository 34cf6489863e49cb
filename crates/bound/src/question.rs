//! The question: what is asked of a network, and why it may have no answer.

use serde::Serialize;
use wg_plan::Diagnostic;

use crate::method::{Choice, Method};
use crate::model::{Model, Multiplexing, Server, problem};
use crate::values::{Settings, Shift};

impl Multiplexing {
    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Arbitrary => "arbitrary",
        }
    }
}

/// A question as text; what it leaves open follows the input's wishes, or the default.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Method: `tfa`, `sfa`, `pmoo` or `plp`.
    pub method: String,
    /// Order of service: `fifo` or `arbitrary`.
    #[serde(default)]
    pub multiplexing: Option<String>,
    /// Whether input-link shaping is used.
    #[serde(default)]
    pub grouping: Option<bool>,
    /// Arithmetic: `exact` or `rounded`.
    #[serde(default)]
    pub arithmetic: Option<String>,
    /// Phases of senders: `known` (their offsets) or `any`.
    #[serde(default)]
    pub phases: Option<String>,
}

/// Reason why there is no answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The input or the question is invalid.
    Input(Vec<Diagnostic>),
    /// Servers depend on one another and no fixed point can be proved.
    NoFixedPoint(Diagnostic),
}

impl Question {
    /// Parses the question; what it leaves open follows the wishes of the model.
    ///
    /// # Errors
    /// [`Refusal::Input`] for unknown words and impossible combinations.
    pub fn understood(&self, model: &Model) -> Result<Choice, Refusal> {
        let refuse = |element: &str, message: &str, limit: &str, cure: &str| {
            Refusal::Input(vec![problem(0, element, message, limit, cure)])
        };
        let Some(method) = Method::read(&self.method) else {
            let message = format!("there is no method \"{}\"", self.method);
            return Err(refuse("--method", &message, "tfa, sfa, pmoo or plp", "choose one of them"));
        };
        let multiplexing = match self.multiplexing.as_deref() {
            Some("fifo") => Multiplexing::Fifo,
            Some("arbitrary") => Multiplexing::Arbitrary,
            Some(other) => {
                let message = format!("there is no multiplexing \"{other}\"");
                return Err(refuse("--multiplexing", &message, "fifo or arbitrary", "choose one of them"));
            }
            None if method == Method::Pmoo => Multiplexing::Arbitrary,
            None if method == Method::Plp => Multiplexing::Fifo,
            None => model.wishes.multiplexing.unwrap_or(Multiplexing::Fifo),
        };
        let rounded = match self.arithmetic.as_deref() {
            None | Some("exact") => false,
            Some("rounded") => true,
            Some(other) => {
                let message = format!("there is no arithmetic \"{other}\"");
                return Err(refuse("--arithmetic", &message, "exact or rounded", "choose one of them"));
            }
        };
        let has_known_phases = match self.phases.as_deref() {
            None | Some("known") => true,
            Some("any") => false,
            Some(other) => {
                let message = format!("phases cannot be \"{other}\"");
                return Err(refuse("--phases", &message, "known or any", "choose one of them"));
            }
        };
        if rounded && method == Method::Plp {
            return Err(refuse(
                "--arithmetic",
                "plp is exact: what its multipliers prove is a fraction",
                "exact",
                "leave --arithmetic out",
            ));
        }
        if let Some((element, message, limit, cure)) = unfit(method, multiplexing, model) {
            return Err(refuse(element, message, limit, cure));
        }
        let grouping = self.grouping.or(model.wishes.grouping).unwrap_or(false);
        // In arbitrary order, what leaves is bounded by the latency of the left-over service, which is less than the
        // busy period.
        let shift = match (method, multiplexing) {
            (Method::Tfa | Method::Plp, Multiplexing::Fifo) => Shift::Delay,
            _ => Shift::LeftOver,
        };
        let settings = Settings { multiplexing, grouping, packetizer: model.wishes.packetizer, shift };
        Ok(Choice { method, settings, rounded, has_known_phases })
    }
}

/// Reason why method, order of service and network cannot be combined: element, message, limit and cure.
fn unfit(
    method: Method,
    multiplexing: Multiplexing,
    model: &Model,
) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    let shaped = |server: &Server| server.rules.values().any(|rule| rule.holds_back());
    match (method, multiplexing) {
        (_, Multiplexing::Arbitrary) if model.servers.iter().any(shaped) => Some((
            if method == Method::Pmoo { "--method" } else { "--multiplexing" },
            "a credit-based shaper or a cyclic queue holds frames back while the line is free, and arbitrary multiplexing rests on servers \
             that serve whenever something waits",
            "--multiplexing fifo",
            "take tfa or sfa with --multiplexing fifo",
        )),
        (Method::Pmoo, Multiplexing::Fifo) => Some((
            "--method",
            "pmoo does not go with fifo multiplexing: it lets the cross traffic of a whole path be served first",
            "--multiplexing arbitrary",
            "its bounds hold for servers of any order, so ask for --multiplexing arbitrary; or take plp, tfa or sfa",
        )),
        (Method::Plp, Multiplexing::Arbitrary) => Some((
            "--method",
            "plp does not go with arbitrary multiplexing: its programme rests on the order of arrival",
            "--multiplexing fifo",
            "take pmoo, sfa or tfa",
        )),
        _ => None,
    }
}
