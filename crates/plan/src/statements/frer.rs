//! Replication and elimination of a flow's frames (IEEE Std 802.1CB), as a test states it.

use wg_core::frer::{LatentErrorConfig, RecoveryConfig};
use wg_frame::time::Span;

use crate::campaign::IndividualRecovery;
use crate::diagnostic::{Findings, Place};
use crate::language::flows::frer as own;
use crate::reader::{Maybe, Reader};
use crate::tree::Element;

/// `<frer>` of a flow.
#[derive(Clone, Debug)]
pub(crate) struct FrerStatement {
    pub(crate) place: Place,
    /// Outer `None`: not written, at the sender.
    pub(crate) replicate_at: Option<Maybe<String>>,
    /// Outer `None`: not written, at the receiver.
    pub(crate) eliminate_at: Option<Maybe<String>>,
    /// `None`: could not be read.
    pub(crate) intermediate: Option<bool>,
    /// `None`: match recovery.
    pub(crate) history_length: Option<u32>,
    pub(crate) reset: Span,
    /// `None`: off.
    pub(crate) individual: Option<IndividualRecovery>,
    /// Its paths are not known yet.
    pub(crate) latent: Option<LatentErrorConfig>,
}

/// What could not be read is as long as can be: it is too short for nothing.
const LONGEST: Span = Span::from_millis(86_400_000);

pub(super) fn frer(element: &Element, found: &mut Findings) -> FrerStatement {
    let mut reader = Reader::new(element, found);
    let replicate_at = reader.optional(&own::REPLICATE_AT);
    let eliminate_at = reader.optional(&own::ELIMINATE_AT);
    let intermediate = reader.value(&own::INTERMEDIATE_RECOVERY);
    let by_match = reader.value(&own::RECOVERY).unwrap_or_default();
    let history = reader.optional(&own::HISTORY_LENGTH);
    if by_match && let Some(Some(history)) = &history {
        let message = format!("{} has no effect on match recovery, which knows one number", history.named());
        let cure = "remove it, or write recovery=\"vector\"";
        reader.found.error(&history.place, message, "vector recovery", cure);
    }
    let (usual, longest) = (own::HISTORY_LENGTH.usual(), RecoveryConfig::LONGEST_HISTORY);
    let history_length = history.map_or(usual, |history| history.map_or(longest, |history| history.value));
    let reset = reader.value(&own::RESET).unwrap_or(LONGEST);
    let individual = reader.read(&own::INDIVIDUAL);
    if let Some(individual) = &individual
        && by_match
        && individual.value == Some(IndividualRecovery::Vector)
    {
        let message = format!("{} has no history: sequence recovery is by match", individual.named());
        let cure = "write recovery=\"vector\", or individual=\"match\"";
        reader.found.error(&individual.place, message, "", cure);
    }
    let latent = latent(&mut reader);
    FrerStatement {
        replicate_at,
        eliminate_at,
        intermediate,
        history_length: (!by_match).then_some(history_length),
        reset,
        individual: individual.and_then(|individual| individual.value),
        latent,
        place: reader.place,
    }
}

/// Latent error detection, where a difference is written.
fn latent(reader: &mut Reader<'_>) -> Option<LatentErrorConfig> {
    let period = reader.read(&own::LATENT_PERIOD);
    let reset_period = reader.read(&own::LATENT_RESET);
    let Some(difference) = reader.optional(&own::LATENT_DIFFERENCE) else {
        for attribute in [&own::LATENT_PERIOD, &own::LATENT_RESET] {
            if !reader.has(attribute) {
                continue;
            }
            let message = format!("{} has no effect without latent-difference", attribute.name);
            let cure = format!("remove {}, or add latent-difference=\"…\"", attribute.name);
            reader.found.error(&reader.place, message, "", cure);
        }
        return None;
    };
    let (period, reset_period) = (period?.value, reset_period?.value);
    if reset_period < period {
        let message =
            format!("latent errors are forgotten every {reset_period}, before the test every {period}");
        let cure = "write a longer latent-reset or a shorter latent-period";
        reader.found.error(&reader.place, message, format!("latent-reset at least {period}"), cure);
    }
    let difference = difference.map_or(0, |difference| difference.value);
    Some(LatentErrorConfig { paths: 2, difference, period, reset_period })
}
