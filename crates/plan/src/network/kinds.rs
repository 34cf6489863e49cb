//! Choices of the test language that the network is made of.

use serde::{Deserialize, Serialize};
use wg_core::arinc664::policing;

/// Kinds of switches, by what they forward by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// By address (IEEE Std 802.1Q).
    Cots,
    /// By virtual link, with filtering and policing; all else by address (ARINC 664 part 7).
    Arinc664,
    /// Also time-triggered frames in windows (SAE AS6802).
    MixedCriticality,
}

/// How an input port of a switch polices virtual links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policing {
    /// No policing.
    Off,
    /// Each frame costs its length.
    #[default]
    Bytes,
    /// Each frame costs Lmax.
    Frames,
}

impl Policing {
    /// How an account charges; `None`: there is none.
    pub const fn mode(self) -> Option<policing::Mode> {
        match self {
            Self::Off => None,
            Self::Bytes => Some(policing::Mode::ByteBased),
            Self::Frames => Some(policing::Mode::FrameBased),
        }
    }
}

/// Threads that an event holds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldUp {
    /// Those that send and those that receive.
    #[default]
    Both,
    /// Those that send.
    Send,
    /// Those that receive.
    Receive,
}

/// A host model that every test has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptModel {
    /// A plausible tuned machine.
    Tuned,
    /// A host that takes no time.
    Ideal,
}
