//! Parameters of an import, and its errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use wg_plan::{Network, Run};
use wg_record::RecordError;

use crate::ReadError;
use crate::timestamps::Octet;

/// Parameters of an import.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    /// The captures.
    pub files: Vec<PathBuf>,
    /// Octet of the timestamps, for taps that do not state it; default: the first of the frame.
    #[serde(default)]
    pub octet: Option<Octet>,
    /// Line rate in bit/s, for taps that do not state it.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Place in the test, a node or `node:port`, by name of the tap.
    #[serde(default)]
    pub places: BTreeMap<String, String>,
    /// The test and the run of it that was captured.
    #[serde(default)]
    pub test: Option<Test>,
}

/// Greatest number of interfaces imported at once: each may become a node, and one more lies beyond them.
pub(super) const MOST_TAPS: usize = 65_534;

/// Reason why files cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// A file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The error.
        source: ReadError,
    },
    /// No message of Wiregauge in any file.
    #[error(
        "{files}: no message of wiregauge in {frames} Ethernet frames; messages are UDP datagrams, to whatever port, or \
         frames of EtherType 0x88b5 that begin with the probe header"
    )]
    NoMessage {
        /// The files.
        files: String,
        /// Number of frames in them.
        frames: u64,
    },
    /// More taps than node numbers.
    #[error(
        "the files have {taps} interfaces in all, and at most {MOST_TAPS} can be imported at once; name fewer files"
    )]
    TooMany {
        /// Number of interfaces of all files.
        taps: usize,
    },
    /// A tap without a place in the test.
    #[error(
        "tap \"{tap}\" of {file} is at no node of the test; say where with --tap \"{tap}=NODE\" or \"{tap}=NODE:PORT\" (nodes: {nodes})"
    )]
    Nowhere {
        /// The tap.
        tap: String,
        /// Its file.
        file: String,
        /// Nodes of the test.
        nodes: String,
    },
    /// A place for a tap that does not exist.
    #[error("there is no tap \"{tap}\" in the captures; there are {taps}")]
    NoTap {
        /// Name as given.
        tap: String,
        /// Names of the existing taps.
        taps: String,
    },
    /// A timestamp that cannot be converted to another octet.
    #[error(
        "tap \"{tap}\": its timestamps belong to another octet of the frame than those they are compared with, and without its \
         line rate they cannot be moved; give --rate, for example --rate 1Gbit/s"
    )]
    NoRate {
        /// The tap.
        tap: String,
    },
    /// The spool cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A test that was captured.
#[derive(Clone, Debug, Deserialize)]
pub struct Test {
    /// Its network.
    pub network: Network,
    /// Its run.
    pub run: Run,
}
