//! Methods and settings of an analysis.

use crate::model::Multiplexing;
use crate::values::Settings;

/// A method of analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Total flow analysis.
    Tfa,
    /// Separated flow analysis: left-over service of each server, then their convolution.
    Sfa,
    /// Pay multiplexing only once.
    Pmoo,
    /// Linear programme of polynomial size (solved by the caller).
    Plp,
}

impl Method {
    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tfa => "tfa",
            Self::Sfa => "sfa",
            Self::Pmoo => "pmoo",
            Self::Plp => "plp",
        }
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        [Self::Tfa, Self::Sfa, Self::Pmoo, Self::Plp].into_iter().find(|method| method.name() == text)
    }
}

/// A parsed question.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The method.
    pub method: Method,
    /// Settings of the service.
    pub settings: Settings,
    /// Whether doubles rounded outward are used.
    pub rounded: bool,
    /// Whether senders are known to send at their offsets; else their phases are any.
    pub has_known_phases: bool,
}

impl Choice {
    /// Whether known instants of senders and gates are used. They rest on the order of arrival.
    pub(crate) fn uses_phases(self) -> bool {
        self.has_known_phases && self.settings.multiplexing == Multiplexing::Fifo
    }
}
