//! Blocks of a pcapng file (IETF draft-ietf-opsawg-pcapng): section, interfaces, packets, statistics.
//!
//! Only the blocks that a capture here needs, little endian throughout. Each function appends one complete block, so a
//! file cut between two calls is valid.

use crate::{Direction, Timestamps};

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;

/// Type of a section header block; a palindrome, so it reads alike in both byte orders.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
const EPB_FLAGS: u16 = 2;
const ISB_STARTTIME: u16 = 2;
const ISB_ENDTIME: u16 = 3;
const ISB_IFRECV: u16 = 4;
const ISB_OSDROP: u16 = 7;
const ISB_USRDELIV: u16 = 8;

/// Time unit of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Nanoseconds, for kernel and hardware timestamps.
    Nanoseconds,
    /// Picoseconds, for simulated time, without loss.
    Picoseconds,
}

/// An interface, for its description block.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Name of the interface, or node and port.
    pub name: &'a str,
    /// Snap length: bytes stored of each frame.
    pub snap: u32,
    /// Time unit.
    pub resolution: Resolution,
    /// Offset of the times, seconds since 1970: picoseconds since 1970 exceed the time field.
    pub offset_seconds: i64,
    /// Length of the FCS at the end of each frame, bytes; 0 for a socket, which sees none.
    pub fcs: u8,
    /// Line rate in bit/s, if known.
    pub rate_bps: Option<u64>,
    /// Kind and octet of the timestamps.
    pub timestamps: Timestamps,
}

/// Counters of an interface at the end of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of frames that reached the capture, dropped ones included.
    pub received: u64,
    /// Number of frames dropped because the capture was too slow.
    pub dropped: u64,
    /// Number of frames in the file; `None`: unknown.
    pub written: Option<u64>,
}

/// Appends a section header block, which begins a file.
pub fn section(out: &mut Vec<u8>) {
    block(out, SECTION, |body| {
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        // Version 1.0, section length not specified.
        body.extend([1, 0, 0, 0]);
        body.extend(u64::MAX.to_le_bytes());
        option(body, SHB_USERAPPL, concat!("wiregauge ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(body, 0, &[]);
    });
}

/// Appends an interface description block; interfaces are numbered from 0 in the order of calls.
pub fn interface(out: &mut Vec<u8>, facts: &Interface<'_>) {
    block(out, INTERFACE, |body| {
        body.extend(ETHERNET.to_le_bytes());
        body.extend([0, 0]);
        body.extend(facts.snap.to_le_bytes());
        option(body, OPT_COMMENT, facts.timestamps.to_string().as_bytes());
        option(body, IF_NAME, facts.name.as_bytes());
        if let Some(rate) = facts.rate_bps {
            option(body, IF_SPEED, &rate.to_le_bytes());
        }
        let power = match facts.resolution {
            Resolution::Nanoseconds => 9,
            Resolution::Picoseconds => 12,
        };
        option(body, IF_TSRESOL, &[power]);
        if facts.offset_seconds != 0 {
            option(body, IF_TSOFFSET, &facts.offset_seconds.to_le_bytes());
        }
        if facts.fcs > 0 {
            option(body, IF_FCSLEN, &[facts.fcs]);
        }
        option(body, 0, &[]);
    });
}

/// Appends a frame seen by `interface` at `ticks` of its resolution. `parts` together are the bytes seen, of which at
/// most `snap` are stored; `seen` is the original length, if greater.
#[expect(clippy::cast_possible_truncation, reason = "a frame has less than 4 GiB")]
pub fn packet(
    out: &mut Vec<u8>,
    interface: u32,
    ticks: u64,
    direction: Direction,
    parts: &[&[u8]],
    seen: usize,
    snap: u32,
) {
    let there: usize = parts.iter().map(|part| part.len()).sum();
    let kept = there.min(snap as usize);
    block(out, PACKET, |body| {
        body.extend(interface.to_le_bytes());
        time(body, ticks);
        body.extend((kept as u32).to_le_bytes());
        body.extend((seen.max(there) as u32).to_le_bytes());
        let mut left = kept;
        for part in parts {
            let some = &part[..part.len().min(left)];
            body.extend(some);
            left -= some.len();
        }
        pad(body);
        let flags: u32 = match direction {
            Direction::Unknown => return,
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        option(body, EPB_FLAGS, &flags.to_le_bytes());
        option(body, 0, &[]);
    });
}

/// Appends the counters of `interface` between two times, in ticks of its resolution.
pub fn statistics(out: &mut Vec<u8>, interface: u32, between: [u64; 2], counted: Statistics) {
    let [start, end] = between;
    block(out, STATISTICS, |body| {
        body.extend(interface.to_le_bytes());
        time(body, end);
        for (code, at) in [(ISB_STARTTIME, start), (ISB_ENDTIME, end)] {
            let mut value = Vec::with_capacity(8);
            time(&mut value, at);
            option(body, code, &value);
        }
        option(body, ISB_IFRECV, &counted.received.to_le_bytes());
        option(body, ISB_OSDROP, &counted.dropped.to_le_bytes());
        if let Some(written) = counted.written {
            option(body, ISB_USRDELIV, &written.to_le_bytes());
        }
        option(body, 0, &[]);
    });
}

/// High word first, in either byte order.
#[expect(clippy::cast_possible_truncation, reason = "its two halves")]
fn time(body: &mut Vec<u8>, ticks: u64) {
    body.extend(((ticks >> 32) as u32).to_le_bytes());
    body.extend((ticks as u32).to_le_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "a block has less than 4 GiB")]
fn block(out: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    fill(out);
    let length = ((out.len() - begin + 4) as u32).to_le_bytes();
    out.extend(length);
    out[begin + 4..begin + 8].copy_from_slice(&length);
}

#[expect(clippy::cast_possible_truncation, reason = "values are numbers and names of ours")]
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Pads to 32 bits; everything before is a multiple, so the total length suffices.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
