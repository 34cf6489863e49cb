//! The bodies of the protocol cores' targets, which share one reader of operations.
#![forbid(unsafe_code)]

#[path = "../../crates/core/tests/it/bodies/clock.rs"]
mod clock;
#[path = "../../crates/core/tests/it/bodies/copies.rs"]
mod copies;
#[path = "../../crates/core/tests/it/bodies/critical_switch.rs"]
mod critical_switch;
#[path = "../../crates/core/tests/it/bodies/dispatch.rs"]
mod dispatch;
#[path = "../../crates/core/tests/it/bodies/generator.rs"]
mod generator;
#[path = "../../crates/core/tests/it/bodies/host.rs"]
mod host;
#[path = "../../crates/core/tests/it/bodies/hub.rs"]
mod hub;
#[path = "../../crates/core/tests/it/bodies/interface.rs"]
mod interface;
#[path = "../../crates/core/tests/it/bodies/policing.rs"]
mod policing;
#[path = "../../crates/core/tests/it/bodies/port.rs"]
mod port;
#[path = "../../crates/core/tests/it/bodies/reader.rs"]
mod reader;
#[path = "../../crates/core/tests/it/bodies/reception.rs"]
mod reception;
#[path = "../../crates/core/tests/it/bodies/regulator.rs"]
mod regulator;
#[path = "../../crates/core/tests/it/bodies/relay.rs"]
mod relay;
#[path = "../../crates/core/tests/it/bodies/streams.rs"]
mod streams;
#[path = "../../crates/core/tests/it/bodies/switch.rs"]
mod switch;
#[path = "../../crates/core/tests/it/bodies/synchronisation.rs"]
mod synchronisation;
#[path = "../../crates/core/tests/it/input.rs"]
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
