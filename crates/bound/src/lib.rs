//! Network calculus: worst-case delay and backlog of a network, exact where the input is rational.
//!
//! An independent judge that does not use the simulator: they share the validated plan and the frame lengths on a wire,
//! but nothing about how a switch works. A [`Model`] of servers and flows comes from a compiled test or from a file of
//! another tool; [`analyse`] bounds it by one method; both are values, without a file or a clock.
#![forbid(unsafe_code)]

mod analysis;
mod answer;
mod api;
mod certificate;
mod certificate_places;
mod certificate_premises;
mod classes;
mod conditions;
pub mod curve;
mod cycles;
mod fixed_point;
pub mod formats;
pub mod instants;
mod knowledge;
mod method;
pub mod model;
mod nodes;
pub mod number;
mod openings;
mod phases;
mod plp;
mod programme;
mod question;
mod rational;
mod regulators;
mod results;
pub mod rules;
mod separate;
mod sparse;
mod tfa;
mod values;

pub use analysis::{analyse, analyse_with};
pub use answer::*;
pub use api::{bounds_json, bounds_json_with, certificate_json, converted_json};
pub use certificate::{Certificate, NodeStep, Proof, SetStep, Together, Way, certify};
pub use certificate_places::{PlacePremise, WaitingPremise};
pub use certificate_premises::{
    FlowPremise, Line, Piece, Premises, RegulatorPremise, ServerPremise, StepPremise, TargetPremise,
};
pub use method::{Choice, Method};
pub use plp::Solver;
pub use programme::Scaled;
pub use question::{Question, Refusal};
pub use rational::Rational;
pub use values::{Settings, Shift};
