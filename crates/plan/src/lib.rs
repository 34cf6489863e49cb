//! The test, validated and executable: what every bench runs and what the log processor judges against.
//!
//! Three types on the way, never mixed: the *element tree* as it was written (with lines, no meaning), the
//! typed statements of the test language, and the [`Campaign`] here, in which every reference is resolved,
//! every quantity has its unit in its type and every sweep is expanded. Only a valid test becomes a
//! [`Campaign`]; a bench needs no further checks of its own.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod campaign;
mod compile;
mod diagnostic;
mod distribution;
mod disturbances;
mod frer;
mod hold;
pub mod host_tsn;
mod ip_stream;
mod language;
mod limits;
mod measures;
mod model;
mod network;
mod places;
mod point;
mod port_tsn_checks;
pub mod quantity;
pub mod random;
mod reach;
mod reader;
mod reservations;
pub mod schedule;
mod scheduling;
mod site;
mod statements;
mod stream_class;
mod stream_filter;
mod stream_filter_checks;
mod sweep;
mod switch_tsn;
mod topology;
mod trace;
mod tree;
pub mod wire;

pub use campaign::*;
pub use compile::{compile, compile_json, compile_scheduling, compile_with, run_seed};
pub use diagnostic::Diagnostic;
pub use ip_stream::IpHeaders;
pub use language::language;
pub use measures::measures;
pub use network::*;
pub use scheduling::Scheduling;
pub use stream_filter::{FilterGate, FilterGateEntry, FlowMeter, HeaderField, Identify, StreamFilter};
pub use switch_tsn::{
    AsynchronousShaper, CyclicQueuing, FlowScheduler, LinkPriority, MOST_PORT_ENTRIES, PortClass,
    PortSchedule, PortTsn,
};
pub use trace::{
    Captures, MOST_TRACED, NoCaptures, NoTrace, Read as TraceRead, Replay, Trace, TraceError, Traced, Wanted,
};
pub use tree::Element;
