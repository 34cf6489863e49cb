//! Replication and elimination of a flow's frames (IEEE Std 802.1CB), as a test states it.

use wg_core::frer::{LatentErrorConfig, RecoveryConfig};
use wg_frame::time::Span;

use crate::campaign::IndividualRecovery;
use crate::diagnostic::{Findings, Place};
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

/// Times of recovery functions; the managed objects count milliseconds in 32 bits.
const TIMES: (Span, Span, &str) =
    (Span::from_picos(1), Span::from_millis(86_400_000), "more than 0s, at most 24h");

pub(super) fn frer(element: &Element, found: &mut Findings) -> FrerStatement {
    let mut reader = Reader::new(element, found);
    let replicate_at = element.get("replicate-at").map(|written| reader.name_of("replicate-at", written));
    let eliminate_at = element.get("eliminate-at").map(|written| reader.name_of("eliminate-at", written));
    let intermediate = super::host_tsn::on_if_read(&mut reader, "intermediate-recovery");
    let by_match = reader.optional_choice("recovery", &[("vector", false), ("match", true)]).flatten();
    let by_match = by_match.is_some_and(|by_match| by_match.value);
    let (shortest, longest) = (RecoveryConfig::SHORTEST_HISTORY, RecoveryConfig::LONGEST_HISTORY);
    let history = reader.optional_whole::<u32>("history-length", shortest.into(), longest.into());
    if by_match && let Some(Some(history)) = &history {
        let message = format!("{} has no effect on match recovery, which knows one number", history.named());
        let cure = "remove it, or write recovery=\"vector\"";
        reader.found.error(&history.place, message, "vector recovery", cure);
    }
    // One that could not be read is too short for nothing.
    let history_length = history.map_or(shortest, |history| history.map_or(longest, |history| history.value));
    let reset = within(&mut reader, "reset", Span::from_millis(2_000)).unwrap_or(TIMES.1);
    let individual = [
        ("off", None),
        ("match", Some(IndividualRecovery::Match)),
        ("vector", Some(IndividualRecovery::Vector)),
    ];
    let individual = reader.optional_choice("individual", &individual).flatten();
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

/// A time of a recovery function; `None` where it could not be read.
fn within(reader: &mut Reader<'_>, attribute: &'static str, default: Span) -> Option<Span> {
    let Some(written) = reader.element.get(attribute) else { return Some(default) };
    Some(reader.time_within(attribute, written, TIMES)?.value)
}

/// Latent error detection, where a difference is written.
fn latent(reader: &mut Reader<'_>) -> Option<LatentErrorConfig> {
    let (period, reset_period) = LatentErrorConfig::PERIODS;
    let period = within(reader, "latent-period", period);
    let reset_period = within(reader, "latent-reset", reset_period);
    let Some(difference) = reader.optional_whole::<u64>("latent-difference", 0, u32::MAX.into()) else {
        for attribute in ["latent-period", "latent-reset"] {
            if reader.element.get(attribute).is_some() {
                let message = format!("{attribute} has no effect without latent-difference");
                let cure = format!("remove {attribute}, or add latent-difference=\"…\"");
                reader.found.error(&reader.place, message, "", cure);
            }
        }
        return None;
    };
    let (period, reset_period) = (period?, reset_period?);
    if reset_period < period {
        let message =
            format!("latent errors are forgotten every {reset_period}, before the test every {period}");
        let cure = "write a longer latent-reset or a shorter latent-period";
        reader.found.error(&reader.place, message, format!("latent-reset at least {period}"), cure);
    }
    let difference = difference.map_or(0, |difference| difference.value);
    Some(LatentErrorConfig { paths: 2, difference, period, reset_period })
}
