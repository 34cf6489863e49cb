//! The bodies of the protocol cores' targets, which share one reader of operations.
#![forbid(unsafe_code)]

#[path = "../../crates/core/tests/protocols/bodies/clock.rs"]
mod clock;
#[path = "../../crates/core/tests/protocols/bodies/copies.rs"]
mod copies;
#[path = "../../crates/core/tests/protocols/bodies/critical_switch.rs"]
mod critical_switch;
#[path = "../../crates/core/tests/protocols/bodies/dispatch.rs"]
mod dispatch;
#[path = "../../crates/core/tests/protocols/bodies/generator.rs"]
mod generator;
#[path = "../../crates/core/tests/protocols/bodies/host.rs"]
mod host;
#[path = "../../crates/core/tests/protocols/bodies/hub.rs"]
mod hub;
#[path = "../../crates/core/tests/protocols/bodies/interface.rs"]
mod interface;
#[path = "../../crates/core/tests/protocols/bodies/policing.rs"]
mod policing;
#[path = "../../crates/core/tests/protocols/bodies/port.rs"]
mod port;
#[path = "../../crates/core/tests/protocols/bodies/reader.rs"]
mod reader;
#[path = "../../crates/core/tests/protocols/bodies/reception.rs"]
mod reception;
#[path = "../../crates/core/tests/protocols/bodies/regulator.rs"]
mod regulator;
#[path = "../../crates/core/tests/protocols/bodies/relay.rs"]
mod relay;
#[path = "../../crates/core/tests/protocols/bodies/streams.rs"]
mod streams;
#[path = "../../crates/core/tests/protocols/bodies/switch.rs"]
mod switch;
#[path = "../../crates/core/tests/protocols/bodies/synchronisation.rs"]
mod synchronisation;
#[path = "../../crates/core/tests/protocols/input.rs"]
mod input;

/// A target's body: panics where the core breaks a promise.
pub type Body = fn(&[u8]);

/// See `clock` in the README.
pub const CLOCK: Body = clock::body;
/// See `copies` in the README.
pub const COPIES: Body = copies::body;
/// See `critical_switch` in the README.
pub const CRITICAL_SWITCH: Body = critical_switch::body;
/// See `dispatch` in the README.
pub const DISPATCH: Body = dispatch::body;
/// See `generator` in the README.
pub const GENERATOR: Body = generator::body;
/// See `host` in the README.
pub const HOST: Body = host::body;
/// See `hub` in the README.
pub const HUB: Body = hub::body;
/// See `interface` in the README.
pub const INTERFACE: Body = interface::body;
/// See `policing` in the README.
pub const POLICING: Body = policing::body;
/// See `port` in the README.
pub const PORT: Body = port::body;
/// See `reader` in the README.
pub const READER: Body = reader::body;
/// See `reception` in the README.
pub const RECEPTION: Body = reception::body;
/// See `regulator` in the README.
pub const REGULATOR: Body = regulator::body;
/// See `relay` in the README.
pub const RELAY: Body = relay::body;
/// See `streams` in the README.
pub const STREAMS: Body = streams::body;
/// See `switch` in the README.
pub const SWITCH: Body = switch::body;
/// See `synchronisation` in the README.
pub const SYNCHRONISATION: Body = synchronisation::body;
