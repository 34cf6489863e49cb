//! Seeded randomness by stream.
//!
//! Every use of chance has a stream of its own, named by purpose and entity and derived from the seed of the run. A
//! further entity, or one more draw by one of them, changes no other stream. Entities are named by what
//! identifies them in the plan (flow number, node index), not by the order in which they are built.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, ACM TOMS 47, 2021), seeded by SplitMix64 as its authors
//! advise. It is written here because its sequence is part of the determinism contract.

/// What chance is used for. The numbers are part of the contract: add, never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// How long a sender's thread takes to wake; entity: flow.
    SendingThread = 1,
    /// How long the receive lane of a host takes to wake; entity: node.
    ReceivingThread = 2,
    /// How long a relay task takes to wake; entity: flow.
    RelayTask = 3,
    /// Intervals of an exponential sender; entity: flow.
    Generator = 4,
    /// Which frames a fault of a link strikes; entity: twice its place in the plan, plus 1 from the link's second end.
    LinkFault = 5,
    /// How a clock's frequency wanders; entity: node.
    ClockWander = 6,
    /// How long a station of a hub backs off; entity: node.
    Backoff = 7,
    /// Intervals of exponential background load; entity: its place in the plan.
    Load = 8,
    /// Errors of timestamps; entity: node.
    Timestamp = 20,
    /// How long it takes to read a clock; entity: node.
    ReadCost = 21,
    /// By how much an event of a host holds threads up; entity: 64 times the node, plus its place there.
    HostEvent = 22,
    /// How long a switch takes for a frame; entity: twice the link it comes by, plus 1 from the link's second end.
    SwitchDelay = 23,
    /// How long threads of an injector send and sleep; entity: 64 times its place in the plan, plus its own.
    InjectingThread = 24,
    /// When a device of a cluster has power; entity: node.
    ClusterPower = 25,
    /// What PTP draws at a port; entity: 64 times the node, plus its place there.
    Ptp = 26,
}

/// One stream.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

impl Stream {
    /// The stream of `entity` for `purpose` in a run of this seed.
    pub fn new(seed: u64, purpose: Purpose, entity: u32) -> Self {
        let name = u64::from(purpose as u32) << 32 | u64::from(entity);
        // Hashing the name before it meets the seed keeps neighbours in name and seed apart.
        let mut seeder = seed ^ split_mix(&mut name.clone());
        Self { state: core::array::from_fn(|_| split_mix(&mut seeder)) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }
}

impl Iterator for Stream {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        Some(self.next_u64())
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs from the state 1, 2, 3, 4, as the authors' C program prints them.
    #[test]
    fn the_generator_is_the_published_one() {
        let mut stream = Stream { state: [1, 2, 3, 4] };
        let outputs: [u64; 4] = core::array::from_fn(|_| stream.next_u64());
        assert_eq!(outputs, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_entity() {
        let first = |seed, purpose, entity| Stream::new(seed, purpose, entity).next_u64();
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..4 {
            for entity in 0..50 {
                assert!(seen.insert(first(seed, Purpose::SendingThread, entity)));
                assert!(seen.insert(first(seed, Purpose::ReceivingThread, entity)));
            }
        }
    }
}
