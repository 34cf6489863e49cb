//! Captures as traces for a replay: frame lengths and times.
//!
//! A replay uses one interface and ascending times. Ambiguities are errors, not guesses: of several interfaces one must
//! be named, and times that go back are refused, because the intended order is unknown.

use std::path::{Path, PathBuf};

use wg_frame::ethernet::FCS_LEN;
use wg_frame::time::Span;
use wg_plan::{Captures, MOST_TRACED, NoTrace, Trace, TraceRead, Traced, Wanted};

use crate::{Direction, Interface, ReadError, Reader};

/// Captures by path; relative paths start at a directory.
#[derive(Clone, Debug)]
pub struct Files {
    /// The directory.
    pub below: PathBuf,
}

impl Captures for Files {
    fn read(&self, wanted: Wanted<'_>) -> Result<TraceRead, NoTrace> {
        let path = self.below.join(wanted.file);
        let reader = Reader::open(&path).map_err(|error| unreadable(&error, &path))?;
        trace(reader, wanted)
    }
}

fn unreadable(error: &ReadError, path: &Path) -> NoTrace {
    let cure = match error {
        ReadError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return no(
                "is not there",
                "",
                &format!(
                    "write the path of a capture; this one led to {}",
                    std::path::absolute(path).as_deref().unwrap_or(path).display()
                ),
            );
        }
        ReadError::Io(_) => "make it readable for this user",
        ReadError::Directory => {
            return no("is a directory", "", "write the path of a pcapng or pcap file in it");
        }
        ReadError::NoEthernet { link_type, .. } => link_type.cure(),
        ReadError::Unknown | ReadError::Empty | ReadError::Packed | ReadError::NothingUsable { .. } => {
            "write the path of a pcapng or pcap file"
        }
    };
    no(&error.to_string(), "", cure)
}

fn no(problem: &str, limit: &str, cure: &str) -> NoTrace {
    NoTrace { problem: problem.into(), limit: limit.into(), cure: cure.into() }
}

/// Times and lengths of the frames of a capture, with clauses about unusable parts.
///
/// # Errors
/// The capture is damaged, its times go back, it has too many frames or none that match, or the interface is ambiguous.
pub fn trace(mut reader: Reader, wanted: Wanted<'_>) -> Result<TraceRead, NoTrace> {
    let mut taken = Taken::default();
    while let Some(packet) = reader.next_packet() {
        taken.number += 1;
        let (at, picos, direction, length) =
            (packet.interface, packet.picos, packet.direction, packet.length);
        if !taken.is_wanted(at, &reader.interfaces()[at], direction, wanted)? {
            continue;
        }
        taken.frame(picos, length.saturating_sub(usize::from(reader.interfaces()[at].fcs)) + FCS_LEN)?;
    }
    if let Some(trouble) = reader.troubles().keys().find(|trouble| trouble.ends_the_file()) {
        let cure = "capture again, or keep what can be read: tshark -r IN -w OUT";
        return Err(no(&format!("is not whole: {trouble}"), "", cure));
    }
    if taken.back.0 > 0 {
        let (times, number, by) = taken.back;
        let often = if times == 1 { "once" } else { &format!("{times} times, first") };
        let problem = format!("has times that go back {often} at frame {number} by {by}");
        return Err(no(&problem, "times in ascending order", "sort it: reordercap IN OUT"));
    }
    let notes = reader.troubles().iter().filter(|(trouble, _)| !matches!(trouble, crate::Trouble::Snapped));
    let mut notes: Vec<String> =
        notes.map(|(trouble, count)| format!("has {count} {trouble}; they are left out")).collect();
    if taken.frames.is_empty() {
        return Err(taken.nothing(&reader, wanted, &notes));
    }
    let dropped: u64 = reader.interfaces().iter().map(|interface| interface.dropped).sum();
    if dropped > 0 {
        notes.push(format!("lacks {dropped} frames that were dropped while it was made"));
    }
    let trace = Trace::new(taken.frames).map_err(|error| no(&format!("makes no trace: {error}"), "", ""))?;
    Ok((trace, notes))
}

#[derive(Default)]
struct Taken {
    frames: Vec<Traced>,
    /// Number of the frame in the file, from 1.
    number: u64,
    /// Interface of the frames taken.
    interface: Option<usize>,
    first: i128,
    last: i128,
    /// Number of times that go back; the first such frame, and by how much.
    back: (u64, u64, Span),
    /// Number of frames on the right interface in another direction; of these, in an unknown direction.
    otherwise: (u64, u64),
}

impl Taken {
    fn is_wanted(
        &mut self,
        at: usize,
        interface: &Interface,
        direction: Direction,
        wanted: Wanted<'_>,
    ) -> Result<bool, NoTrace> {
        if let Some(name) = wanted.interface
            && interface.name != name
            && name.parse() != Ok(at)
        {
            return Ok(false);
        }
        let right = match wanted.sent {
            None => true,
            Some(sent) => direction == if sent { Direction::Outbound } else { Direction::Inbound },
        };
        if !right {
            self.otherwise.0 += 1;
            self.otherwise.1 += u64::from(direction == Direction::Unknown);
            return Ok(false);
        }
        match self.interface {
            Some(other) if other != at && wanted.interface.is_none() => {
                let problem = format!("has frames of several interfaces, {other} and {at} among them");
                Err(no(&problem, "1 interface", &format!("write interface=\"{other}\", or its name")))
            }
            _ => {
                self.interface = Some(at);
                Ok(true)
            }
        }
    }

    fn frame(&mut self, picos: i128, length: usize) -> Result<(), NoTrace> {
        if self.frames.len() == MOST_TRACED {
            let cure = "replay a part of it: editcap -r IN OUT 1-1000000";
            return Err(no("has more frames than a replay takes", &format!("{MOST_TRACED} frames"), cure));
        }
        if self.frames.is_empty() {
            (self.first, self.last) = (picos, picos);
        }
        if picos < self.last {
            if self.back.0 == 0 {
                let by = i64::try_from(self.last - picos).unwrap_or(i64::MAX);
                self.back = (0, self.number, Span::from_picos(by));
            }
            self.back.0 += 1;
        }
        self.last = picos;
        // A time that goes back is refused in the end; until then it only has to be countable.
        let after = picos.saturating_sub(self.first).max(0);
        let Ok(after) = i64::try_from(after) else {
            let cure = "replay a part of it: editcap -A FROM -B TO IN OUT";
            return Err(no("is longer than a run can be", "106 days", cure));
        };
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        self.frames.push(Traced { after: Span::from_picos(after), length });
        Ok(())
    }

    fn nothing(&self, reader: &Reader, wanted: Wanted<'_>, notes: &[String]) -> NoTrace {
        let names = reader.interfaces().iter().enumerate();
        let names: Vec<String> = names
            .take(8)
            .map(|(at, interface)| match interface.name.is_empty() {
                true => at.to_string(),
                false => format!("{at} ({})", interface.name),
            })
            .collect();
        match self.otherwise {
            (0, _) => {}
            (all, unknown) if all == unknown => {
                return no("says of no frame which way it went", "", "remove direction");
            }
            _ => return no("has no frame of that direction", "at least 1 frame", "write another direction"),
        }
        if self.number == 0 {
            let what =
                notes.first().map_or("has no frame".to_owned(), |note| format!("{note}; nothing remains"));
            let cure = match reader.nothing_usable() {
                Some(ReadError::NoEthernet { link_type, .. }) => link_type.cure(),
                _ => "replay a capture with frames in it",
            };
            return no(&what, "at least 1 Ethernet frame", cure);
        }
        let asked = wanted.interface.unwrap_or_default();
        let problem = format!("has no frame of interface \"{asked}\"");
        no(&problem, "at least 1 frame", &format!("write one of its interfaces: {}", names.join(", ")))
    }
}
