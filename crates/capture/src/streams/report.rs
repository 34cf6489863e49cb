//! What is reported of streams, as JSON.

use std::net::Ipv6Addr;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::copies::CopiesReport;
use super::distribution::Distribution;
use super::kind::{As, Kind, WORDS};
use super::numbering::{Jump, Numbering};
use crate::taps::TroubleReport;
use crate::{Timestamps, printable};

/// An interface of the capture.
#[derive(Debug, Serialize)]
pub struct TapReport {
    /// Name in the file, or its number.
    pub name: String,
    /// The file it is first in.
    pub file: String,
    /// Frames.
    pub frames: u64,
    /// Frames that it reports as dropped; `null` where one of its files states nothing.
    pub dropped: Option<u64>,
    /// Smallest step of its timestamps, ps.
    pub step_ps: u64,
    /// Origin and octet of its timestamps, if it states them.
    pub timestamps: Option<Timestamps>,
    /// Line rate in bit/s, if it states one.
    pub rate_bps: Option<u64>,
    /// Whether its frames end with their FCS, stated or found.
    pub has_fcs: bool,
    /// Greatest amount by which a time precedes an earlier frame's in the file, ps.
    pub back_ps: u64,
    /// Number of times that precede the previous frame's.
    pub turns: u64,
}

/// The sequence numbers of a stream.
#[derive(Debug, Serialize)]
pub struct NumberingReport {
    /// Frames with a number.
    pub numbered: u64,
    /// Numbers that were skipped and never came.
    pub missing: u64,
    /// Numbers that came again.
    pub duplicates: u64,
    /// Frames that came after one with a later number.
    pub reordered: u64,
    /// Times that the series began anew.
    pub resets: u64,
    /// ARINC 664: frames that the integrity check of an end system rejects.
    pub rejected: Option<u64>,
    /// Amount by which numbers grow, where the stream has a step of its own.
    pub stride: Option<u64>,
    /// Whether other streams may take numbers of the series, so that what is missing need not be lost.
    pub is_shared: bool,
    /// The first jumps.
    pub jumps: Vec<Jump>,
}

impl NumberingReport {
    pub(super) fn of(kind: &Kind, found: Numbering) -> Self {
        Self {
            numbered: found.numbered,
            missing: found.missing,
            duplicates: found.duplicates,
            reordered: found.reordered,
            resets: found.resets,
            rejected: (kind.rule == Some(super::numbering::Rule::Arinc)).then_some(found.rejected),
            stride: found.stride,
            is_shared: kind.is_shared,
            jumps: found.jumps,
        }
    }
}

/// A value in the frames of a stream.
#[derive(Debug, Serialize)]
pub(super) struct ValueReport {
    /// Frames that have it.
    pub(super) n: u64,
    /// Value of the first.
    pub(super) first: Json,
    /// Least value.
    pub(super) min: Json,
    /// Greatest value.
    pub(super) max: Json,
    /// Value of the last.
    pub(super) last: Json,
    /// Number of times that it changed from one frame to the next.
    pub(super) changes: u64,
}

/// Frames that came back.
#[derive(Debug, Serialize)]
pub struct EchoReport {
    /// Time from the frame to its return.
    pub round_trip: Distribution,
    /// Frames whose index was used again before they came back, or that were out at the end.
    pub unreturned: u64,
    /// Frames that came back without having been seen before.
    pub unsent: u64,
}

/// The virtual link as a traffic regulator sees it.
#[derive(Debug, Serialize)]
pub struct BagReport {
    /// The BAG, ps.
    pub bag_ps: i64,
    /// Least jitter at which the frames conform to that BAG, ps: the longest that a regulator with the BAG would have
    /// held one of them.
    pub jitter_ps: i64,
    /// The same, of a sender whose clock may be faster than that of the capture by 100 ppm.
    pub tolerant_jitter_ps: i64,
}

/// What came of a stream since it was last asked for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Recent {
    /// Messages.
    pub frames: u64,
    /// Length of the longest frame, FCS included; 0 without one.
    pub longest: u32,
    /// Number of times between frames that ended.
    pub intervals: u64,
    /// Shortest of them, ps.
    pub min_ps: i64,
    /// Longest of them, ps.
    pub max_ps: i64,
    /// By BAG, from 1 ms on, the longest that a frame was held, as in [`BagReport::tolerant_jitter_ps`].
    pub bags: Vec<i64>,
}

impl Recent {
    pub(super) fn interval(&mut self, interval: i64) {
        self.min_ps = if self.intervals == 0 { interval } else { self.min_ps.min(interval) };
        self.max_ps = if self.intervals == 0 { interval } else { self.max_ps.max(interval) };
        self.intervals += 1;
    }

    pub(super) fn frame(&mut self, length: u32) {
        self.frames += 1;
        self.longest = self.longest.max(length);
    }
}

/// A stream.
#[derive(Debug, Serialize)]
pub struct StreamReport {
    /// Kind, as in the list of kinds.
    pub kind: &'static str,
    /// Name for people.
    pub name: String,
    /// Parts of its identity.
    pub fields: Map<String, Json>,
    /// VLANs, outermost first.
    pub vlans: Vec<u16>,
    /// Redundant network that its frames state.
    pub network: Option<&'static str>,
    /// Index of the interface among the taps.
    pub tap: u16,
    /// Messages; of most kinds, each frame has one.
    pub frames: u64,
    /// Bytes of their frames, FCS included.
    pub octets: u64,
    /// Length of the shortest frame, FCS included.
    pub shortest: u32,
    /// Length of the longest frame, FCS included: Lmax.
    pub longest: u32,
    /// Time of the first frame, ps after the first frame of the capture.
    pub first_ps: i64,
    /// Time of the last frame.
    pub last_ps: i64,
    /// Time between frames.
    pub period: Distribution,
    /// Times between frames in up to 40 classes of equal width: least and greatest value, ps, and count.
    pub histogram: Vec<(i64, i64, u64)>,
    /// Sequence numbers; `null` where the kind has none, or none was captured.
    pub sequence: Option<NumberingReport>,
    /// Values in the frames.
    pub values: Map<String, Json>,
    /// Frames that came back.
    pub echo: Option<EchoReport>,
    /// Each BAG with the jitter it needs.
    pub bags: Vec<BagReport>,
    /// Whether it is around content that is a stream of its own.
    pub is_around: bool,
}

/// Result of reading a capture of one place.
#[derive(Debug, Serialize)]
pub struct Observed {
    /// Time of the first frame, ns since 1970.
    pub epoch_realtime_ns: i64,
    /// Time of the last frame, ps after the first.
    pub duration_ps: i64,
    /// Frames read.
    pub frames: u64,
    /// Frames without a stream: shorter than a header.
    pub runts: u64,
    /// Frames of streams beyond the greatest number that is followed.
    pub beyond: u64,
    /// Messages of redundant series beyond the greatest number whose copies are compared.
    pub uncompared: u64,
    /// The interfaces with frames.
    pub taps: Vec<TapReport>,
    /// Unusable parts of the files.
    pub troubles: Vec<TroubleReport>,
    /// The streams, in the order of kinds and names.
    pub streams: Vec<StreamReport>,
    /// Redundant series of numbers.
    pub copies: Vec<CopiesReport>,
}

/// The streams so far, and what came of each since the last such report, in the same order.
#[derive(Debug, Serialize)]
pub struct Second {
    /// All so far.
    pub observed: Observed,
    /// Of each stream.
    pub recent: Vec<Recent>,
    /// Of each redundant series: pairs, and the greatest difference between two copies, ps.
    pub skew: Vec<(u64, u64)>,
}

/// Parts of an identity as JSON, in the order of the kind's fields.
pub(super) fn identity(kind: &Kind, id: &[u64; WORDS]) -> Map<String, Json> {
    let shown = kind.fields.iter().filter_map(|field| {
        let next = id.get(field.word + 1).copied().unwrap_or_default();
        shown(field.shown, id[field.word], next).map(|value| (field.name.to_owned(), value))
    });
    shown.collect()
}

fn shown(shown: As, word: u64, next: u64) -> Option<Json> {
    Some(match shown {
        As::Number => json!(word),
        As::Hex => json!(format!("{word:#x}")),
        As::Mac => {
            let [_, _, octets @ ..] = word.to_be_bytes();
            json!(wg_frame::ethernet::MacAddress(octets).to_string())
        }
        As::Address => {
            let address = Ipv6Addr::from(u128::from(word) << 64 | u128::from(next));
            json!(address.to_ipv4_mapped().map_or_else(|| address.to_string(), |v4| v4.to_string()))
        }
        As::Port if word > u64::from(u16::MAX) => return None,
        As::Port => json!(word),
        As::Ptp => json!(ptp_type(word)),
        As::Control => json!(match word {
            2 => "IN",
            4 => "CS",
            8 => "CA",
            _ => "reserved",
        }),
        As::ScaledNs => json!(word.cast_signed() as f64 / 65_536.0),
    })
}

/// A value of a frame as JSON.
pub(super) fn value(how: As, value: i64) -> Json {
    match how {
        As::Number => json!(value),
        other => shown(other, value.cast_unsigned(), 0).unwrap_or(Json::Null),
    }
}

fn ptp_type(number: u64) -> &'static str {
    // IEEE Std 1588-2019, table 36.
    match number {
        0 => "Sync",
        1 => "Delay_Req",
        2 => "Pdelay_Req",
        3 => "Pdelay_Resp",
        8 => "Follow_Up",
        9 => "Delay_Resp",
        10 => "Pdelay_Resp_Follow_Up",
        11 => "Announce",
        12 => "Signaling",
        13 => "Management",
        _ => "reserved",
    }
}

/// Name of a stream for people: its kind, the parts of its identity, what its publisher calls it.
pub(super) fn name(kind: &Kind, fields: &Map<String, Json>, text: &str, more: &[String]) -> String {
    let text_of = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let get = |key: &str| fields.get(key).map(text_of);
    let end = |address: &str, port: &str| {
        get(address).map(|address| match get(port) {
            Some(port) if address.contains(':') => format!("[{address}]:{port}"),
            Some(port) => format!("{address}:{port}"),
            None => address,
        })
    };
    let mut parts = vec![kind.title.to_owned()];
    if !text.is_empty() {
        parts.push(printable(text).into_owned());
    }
    let is_tuple = fields.contains_key("from") && fields.contains_key("to");
    for field in kind.fields {
        let Some(shown) = get(field.name) else { continue };
        match field.name {
            "from" if is_tuple => {
                parts.extend(end("from", "from_port"));
                parts.push(">".into());
                parts.extend(end("to", "to_port"));
            }
            "to" | "from_port" | "to_port" if is_tuple => {}
            "source" => parts.push(format!("from {shown}")),
            "destination" => parts.push(format!("to {shown}")),
            "vl" | "ct" | "message" | "frame" | "ether_type" => parts.push(shown),
            other => parts.push(format!("{} {shown}", other.replace('_', " "))),
        }
    }
    parts.extend(more.iter().cloned());
    parts.join(" ")
}
