//! The planted faults of a relay task, as the relay core takes them.

use wg_core::relay::{Faults, Treatment};
use wg_plan::{FaultKind, Relay};

/// What the plan wants done to the messages of a relay.
pub fn faults(relay: &Relay) -> Faults {
    Faults::new(relay.faults.iter().flat_map(|fault| {
        let treatment = match fault.kind {
            FaultKind::Loss => Treatment::Drop,
            FaultKind::Duplicate => Treatment::Twice,
            FaultKind::Reorder => Treatment::Swap,
            FaultKind::Corrupt => Treatment::Corrupt,
            FaultKind::Misdirect { to } => Treatment::Misdirect(to),
        };
        fault.sequences.iter().map(move |&(first, last)| (first, last, treatment))
    }))
}
