//! What is asked for, and why it cannot be had.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use wg_plan::{Network, Run};
use wg_record::RecordError;

use crate::read::ReadError;
use crate::timestamps::Octet;

/// What to make of which files.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    /// The captures.
    pub files: Vec<PathBuf>,
    /// The octet timestamps belong to, for taps that do not say; the first of the frame where nobody does.
    #[serde(default)]
    pub octet: Option<Octet>,
    /// Line rate in bit/s, for taps that do not say.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// By name of a tap: the node, or `node:port`, of the test it is at.
    #[serde(default)]
    pub places: BTreeMap<String, String>,
    /// The test and the run of it that was captured.
    #[serde(default)]
    pub test: Option<Test>,
}

/// Interfaces that can be imported at once: each may become a node, and one more lies beyond them.
pub(super) const MOST_TAPS: usize = 65_534;

/// Why nothing can be made of the files.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// A file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        source: ReadError,
    },
    /// No message of ours anywhere.
    #[error(
        "{files}: no message of wiregauge in {frames} Ethernet frames; messages are UDP datagrams, to whatever port, or \
         frames of EtherType 0x88b5 that begin with the probe header"
    )]
    NoMessage {
        /// The files.
        files: String,
        /// Frames in them.
        frames: u64,
    },
    /// More taps than nodes can be numbered.
    #[error(
        "the files have {taps} interfaces in all, and at most {MOST_TAPS} can be imported at once; name fewer files"
    )]
    TooMany {
        /// Interfaces of all files.
        taps: usize,
    },
    /// A tap that is nowhere in the test.
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
    /// A tap that is named but not there.
    #[error("there is no tap \"{tap}\" in the captures; there are {taps}")]
    NoTap {
        /// As given.
        tap: String,
        /// Those there are.
        taps: String,
    },
    /// A timestamp that cannot be moved.
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
