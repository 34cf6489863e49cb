//! Arbitrary sequences of operations on every core: none panics, and what each core promises of any
//! sequence holds after every step. The bodies are shared with the fuzzer.

use proptest::prelude::*;

use crate::bodies;

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
