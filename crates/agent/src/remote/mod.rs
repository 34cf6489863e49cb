//! Control over a network: who may give an agent orders, and which.
//!
//! A host makes a key of its own when its agent first serves a network, and prints a [join code](join_code). Whoever
//! has it makes the host a member of a lab: the code pins the agent's certificate for the caller, and its secret pins
//! the lab's authority for the agent. From then on both sides show certificates of that authority, a caller has the
//! role its certificate names ([`callers`]), plans are signed ([`signed_plan`]), the host's own configuration bounds
//! what they may do ([`allowance`]), and every call is written down ([`audit`]).

pub mod allowance;
pub mod audit;
pub mod callers;
pub mod connections;
pub mod drain;
pub mod enrolment;
pub mod identity;
pub mod interfaces;
pub mod join_code;
pub mod neighbours;
pub mod posted_code;
pub mod private_file;
pub mod reach;
pub mod revoked;
pub mod signed_plan;
