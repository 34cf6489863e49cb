//! The cores, used from outside as simulator and agent use them.

mod as6802;
#[path = "../contracts/pacing.rs"]
mod contract;
mod host_ways;
mod input;
mod pacing;
mod protocols;
mod round_robin;
mod steering;

/// What holds after every step of any sequence of operations; shared with the fuzzer.
mod bodies {
    pub(crate) mod clock;
    pub(crate) mod copies;
    pub(crate) mod critical_switch;
    pub(crate) mod dispatch;
    pub(crate) mod generator;
    pub(crate) mod host;
    pub(crate) mod hub;
    pub(crate) mod interface;
    pub(crate) mod policing;
    pub(crate) mod port;
    pub(crate) mod reader;
    pub(crate) mod reception;
    pub(crate) mod regulator;
    pub(crate) mod relay;
    pub(crate) mod streams;
    pub(crate) mod switch;
    pub(crate) mod synchronisation;
}
