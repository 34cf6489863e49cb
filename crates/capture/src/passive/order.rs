//! Parameters of a comparison, and its errors.

use std::path::PathBuf;

use serde::Deserialize;
use wg_record::RecordError;

use super::ignored::Field;
use crate::ReadError;
use crate::timestamps::Octet;

/// Longest residence of a frame in a device, ps, if neither the user nor the frames show it.
pub(super) const LONGEST: i64 = 1_000_000_000_000;

/// Parameters of a comparison.
#[derive(Clone, Debug, Deserialize)]
pub struct Order {
    /// The capture before the device and the one after it, or one with two interfaces in this order.
    pub files: Vec<PathBuf>,
    /// Octet of the timestamps, for interfaces that do not state it; default: the first of the frame.
    #[serde(default)]
    pub octet: Option<Octet>,
    /// Line rate in bit/s, for interfaces that do not state it.
    #[serde(default)]
    pub rate_bps: Option<u64>,
    /// Fields that the device changes.
    #[serde(default)]
    pub ignored: Vec<Field>,
    /// Greatest residence time in ps; `None`: twice the greatest among frames of unique content.
    #[serde(default)]
    pub greatest_ps: Option<i64>,
    /// Reading of the second capture's clock minus the first's, ps.
    #[serde(default)]
    pub offset_ps: i64,
    /// Uncertainty of that offset, ps; `None`: unknown, unless both are in one file.
    #[serde(default)]
    pub agree_ps: Option<i64>,
    /// Whether no frame overtakes another of its flow.
    #[serde(default)]
    pub in_order: bool,
}

/// Reason why two captures cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum PassiveError {
    /// A file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The error.
        source: ReadError,
    },
    /// Not exactly two interfaces.
    #[error(
        "{files}: {interfaces} with Ethernet frames; traffic is compared before and after a device: name two captures, the one \
         before it first, or one capture of exactly two interfaces"
    )]
    Sides {
        /// The files.
        files: String,
        /// Number of interfaces with frames.
        interfaces: String,
    },
    /// A capture without any frame.
    #[error("{file}: has no Ethernet frame with a time; both captures need some")]
    Empty {
        /// The file.
        file: String,
    },
    /// No content is in both captures.
    #[error(
        "{files}: no frame of the first has the same content in the second ({frames} frames in all); say what the device changes, \
         for example --ignore vlan,ttl,mac, or name captures of the same traffic"
    )]
    NothingInCommon {
        /// The files.
        files: String,
        /// Number of frames in them.
        frames: usize,
    },
    /// Clocks that were said to agree but do not.
    #[error(
        "{files}: frames of the same content are {apart_s:.6} s apart or more, which is longer than {limit_s} s, the longest that was looked for, and \
         the clocks' uncertainty; leave --max-clock-offset out to have the offset estimated, give it with --clock-offset, or a longer --max-residence"
    )]
    Apart {
        /// The files.
        files: String,
        /// The least distance, s.
        apart_s: f64,
        /// The longest residence searched, s.
        limit_s: f64,
    },
    /// Unknown clock offset, without frames to estimate it.
    #[error(
        "{files}: no content is in each capture exactly once, so that the offset of their clocks cannot be estimated; \
         give --max-clock-offset, for example 1us for clocks that are synchronised"
    )]
    Unaligned {
        /// The files.
        files: String,
    },
    /// Frames overtake although order was said to be kept.
    #[error(
        "{pairs} frames of a content of their own overtook others of their flow, first in {flow}: the device does not keep the \
         order; leave --in-order out"
    )]
    Overtaken {
        /// Number of overtaking frames.
        pairs: u64,
        /// Flow of the first one.
        flow: String,
    },
    /// A timestamp that cannot be converted to another octet.
    #[error(
        "{file}: its timestamps belong to another octet than the first of the frame, and without its line rate they cannot be moved; \
         give --rate, for example --rate 1Gbit/s"
    )]
    NoRate {
        /// The file.
        file: String,
    },
    /// More frames than can be numbered.
    #[error("{file}: has more than {limit} frames; compare a part of it: editcap -r IN OUT 1-100000000")]
    TooMany {
        /// The file.
        file: String,
        /// Greatest number.
        limit: u32,
    },
    /// The spool cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}
