//! The methods, and what is chosen of an analysis.

use crate::values::Settings;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Total flow analysis.
    Tfa,
    /// Separated flow analysis: each server's left-over, then all of them as one.
    Sfa,
    /// Pay multiplexing only once.
    Pmoo,
    /// Linear programme of polynomial size (solved by the caller).
    Plp,
}

impl Method {
    /// As the command line writes it.
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

/// What is asked, understood.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The method.
    pub method: Method,
    /// How servers serve.
    pub settings: Settings,
    /// Whether doubles rounded outward do.
    pub rounded: bool,
}
