//! The kinds of streams that are known; each file describes some.
//!
//! A further protocol is one [`Kind`] in [`KINDS`]: what is common to streams (intervals, sizes, sequence numbers,
//! redundant copies) follows from the entry.

mod avionics;
mod clocks;
mod energy;
mod fieldbus;
mod media;
mod other;
mod redundancy;

use super::kind::Kind;

/// All kinds; what is around other content comes first, and what fits any frame last.
pub(super) static KINDS: [Kind; 19] = [
    redundancy::PRP,
    redundancy::HSR,
    redundancy::R_TAG,
    avionics::VIRTUAL_LINK,
    avionics::CONTROL_FRAME,
    avionics::CRITICAL,
    clocks::PTP,
    fieldbus::ETHERCAT,
    fieldbus::PROFINET,
    energy::GOOSE,
    energy::SAMPLED_VALUES,
    media::AVTP,
    media::RTPS,
    media::SOME_IP,
    other::UDP,
    other::TCP,
    other::IP,
    other::LLC,
    other::ETHER_TYPE,
];

/// The kind RTP, which is a UDP stream whose frames turned out to be numbered.
pub(super) static RTP: Kind = media::RTP;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::kind::{VALUES, WORDS};

    #[test]
    fn fields_and_values_of_every_kind_have_room_and_one_name() {
        for kind in &KINDS {
            let mut names: Vec<&str> = kind.fields.iter().map(|field| field.name).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}", kind.name);
            assert!(kind.fields.iter().all(|field| field.word < WORDS) && kind.values.len() <= VALUES);
        }
    }
}
