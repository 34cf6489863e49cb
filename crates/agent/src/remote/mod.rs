//! Remote control: authentication and authorisation of callers over a network.
//!
//! A host creates its own key when its agent first serves a network, and prints a [join code](join_code). A person with
//! this code makes the host a member of a lab: the code authenticates the agent's certificate to the caller, and its
//! secret authenticates the lab's authority to the agent. From then on both sides present certificates of this
//! authority, a caller has the role in its certificate ([`callers`]), plans are signed ([`signed_plan`]), the host's
//! own configuration limits them ([`allowance`]), and every call is logged ([`audit`]).

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
