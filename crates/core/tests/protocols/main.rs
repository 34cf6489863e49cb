//! Arbitrary sequences of operations on every core: none panics, and what each core promises of any
//! sequence holds after every step. The bodies are shared with the fuzzer.

#[path = "../contracts/pacing.rs"]
mod contract;
mod input;
mod pacing;

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

use proptest::prelude::*;

macro_rules! any_operations {
    ($($name:ident),*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(512))]
            $(
                #[test]
                fn $name(data in prop::collection::vec(any::<u8>(), 0..1_500)) {
                    bodies::$name::body(&data);
                }
            )*
        }
    };
}

any_operations!(
    clock,
    copies,
    critical_switch,
    dispatch,
    generator,
    host,
    hub,
    interface,
    policing,
    port,
    reader,
    reception,
    regulator,
    relay,
    streams,
    switch,
    synchronisation
);
