//! The test, the network, and the end systems in it.

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, all, any, maybe, once, some};
use super::types;
use crate::campaign::Bench;

elements! {
    /// A test: one network, the flows in it, the tasks that send and receive them, and optionally faults, a
    /// sweep and limits.
    test "test" named NAME holds all(&[
        once("network"), once("flows"), once("tasks"), maybe("synchronise"), maybe("faults"),
        maybe("sweep"), maybe("limits")
    ]) {
        /// Its name, shown in reports.
        NAME: String = required("name", &types::TEST_NAME);
        /// All random choices derive from it: the same file and seed give the same test. Run i uses output i
        /// + 1 of SplitMix64 seeded with it.
        SEED: u64 = usual("seed", &types::SEED, "1");
        /// The bench it runs on, unless the command line names one.
        BENCH: Bench = usual("bench", &types::BENCH, "sim");
    }
    /// The network under test: one, or two redundant ones, A and B. Where links of one close a loop, every
    /// flow over them names its path, or routing says which it takes; 4096 end systems, switches and hubs at
    /// most.
    network "network" holds some(&["end-system", "switch", "hub", "host-model", "link"]) {
        /// Host model of end systems that name none. A bench of real machines ignores it.
        HOST: Text = usual("host", &types::HOST_MODEL, "tuned");
        /// Which way a flow takes that names none.
        ROUTING: bool = usual("routing", &types::ROUTING, "unique");
    }
    /// A host that sends, receives or relays messages. It has one link on network A, on B, or on each. Clock
    /// and host model apply to simulation; a real machine has its own.
    end_system "end-system" named NAME holds any(&["clock", "timestamps", "event", "host", "host-tsn"]) {
        /// Its name, unique in the network.
        NAME: String = required("name", &types::NAME_OR_GROUP);
        /// Its host model. Default: that of the network.
        HOST: Text = optional("host", &types::HOST_MODEL);
        /// How much too fast the oscillator of its interfaces runs, at most {limit}: they send so much faster
        /// than the rate of their links, to the next bit/s. Not at a hub, nor where windows of tt flows are.
        /// Simulator only.
        LINE_DRIFT: i64 = usual("line-drift", &types::DRIFT, "0ppb")
            .within("1000ppm either way")
            .cure("write by how much its lines are too fast, for example -40ppm");
        /// The least gap that its interfaces leave behind a frame, {limit}; less than the 12B of IEEE 802.3
        /// is forward pressure. Not at a hub, nor with windows, traffic classes or shapers. Simulator only.
        INTERFRAME_GAP: u64 = usual("interframe-gap", &types::SIZE, "12B").within("5B to 12B");
    }
}
