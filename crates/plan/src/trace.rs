//! What a replay repeats: the lengths of captured frames and the time from each to the next.
//!
//! A trace is part of the plan, so that a run directory, an agent and the simulator need no capture file. As text, which
//! is its form in the plan's JSON, it is a list of `gap:length` with spaces between, the gap in ps since the frame before and
//! the length in bytes from destination address to FCS; `gap:length*n` stands for n of them. A steady stream of any
//! length is a handful of bytes that way. The plan reads no file: whoever compiles a test hands it a [`Captures`].

use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use wg_frame::time::Span;

use crate::wire::AROUND_FRAME;

/// Loops of a replay that are looked at frame by frame for where it is busiest; of more, all of their bytes are taken.
const LOOPS_LOOKED_AT: u64 = 10_000;

/// Frames of one trace. A million of them are some 16 MB of plan.
pub const MOST_TRACED: usize = 1_000_000;

/// A captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// When, after the first frame.
    pub after: Span,
    /// Its length in bytes, destination address to FCS.
    pub length: u16,
}

/// Frames in the order of their times, at least one; the first at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace(Arc<[Traced]>);

/// Frames that make no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// None.
    #[error("a trace has at least one frame")]
    Empty,
    /// More than [`MOST_TRACED`].
    #[error("a trace has at most {MOST_TRACED} frames")]
    TooMany,
    /// The first is not at 0, or one is before its predecessor.
    #[error("frame {number} of the trace is not after the one before it")]
    Order {
        /// Its number, from 1.
        number: usize,
    },
    /// No such text.
    #[error("\"{0:.40}\" is no gap:length of a trace")]
    Text(String),
}

impl Trace {
    /// Frames as a trace.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn new(frames: Vec<Traced>) -> Result<Self, TraceError> {
        if frames.is_empty() {
            return Err(TraceError::Empty);
        }
        if frames.len() > MOST_TRACED {
            return Err(TraceError::TooMany);
        }
        if frames[0].after != Span::ZERO {
            return Err(TraceError::Order { number: 1 });
        }
        match frames.windows(2).position(|pair| pair[1].after < pair[0].after) {
            Some(at) => Err(TraceError::Order { number: at + 2 }),
            None => Ok(Self(frames.into())),
        }
    }

    /// Its frames.
    pub fn frames(&self) -> &[Traced] {
        &self.0
    }

    /// Time from the first frame to the last.
    pub fn span(&self) -> Span {
        self.0.last().map_or(Span::ZERO, |last| last.after)
    }

    /// The longest frame.
    pub fn longest(&self) -> u16 {
        self.0.iter().map(|frame| frame.length).max().unwrap_or(0)
    }

    /// The trace as text: `gap:length` of each frame, repeated ones with `*times`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut before = Span::ZERO;
        let steps = self.0.iter().map(|frame| {
            let gap = frame.after - before;
            before = frame.after;
            (gap.as_picos(), frame.length)
        });
        let mut steps = steps.peekable();
        while let Some(step) = steps.next() {
            let mut times = 1_usize;
            while steps.next_if_eq(&step).is_some() {
                times += 1;
            }
            let space = if text.is_empty() { "" } else { " " };
            // Writing to a string does not fail.
            let _ = write!(text, "{space}{}:{}", step.0, step.1);
            if times > 1 {
                let _ = write!(text, "*{times}");
            }
        }
        text
    }

    /// The trace of a text as [`to_text`](Self::to_text) writes it.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn from_text(text: &str) -> Result<Self, TraceError> {
        let mut frames: Vec<Traced> = Vec::new();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            let bad = || TraceError::Text(word.to_owned());
            let (step, times) = word.split_once('*').unwrap_or((word, "1"));
            let (gap, length) = step.split_once(':').ok_or_else(bad)?;
            let gap = gap.parse::<i64>().ok().filter(|gap| *gap >= 0).ok_or_else(bad)?;
            let length = length.parse::<u16>().map_err(|_| bad())?;
            let times = times.parse::<usize>().map_err(|_| bad())?;
            if times > MOST_TRACED - frames.len() {
                return Err(TraceError::TooMany);
            }
            for _ in 0..times {
                let before = frames.last().map_or(Span::ZERO, |frame| frame.after);
                let after = before.checked_add(Span::from_picos(gap)).ok_or_else(bad)?;
                frames.push(Traced { after, length });
            }
        }
        Self::new(frames)
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_text(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The replay of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    /// Path of the capture, as the test names it.
    pub file: String,
    /// The recorded frames, as text: `gap:length`, each repeated `*times`.
    pub trace: Trace,
    /// Speed relative to the capture, in parts per million.
    pub speed_ppm: u64,
    /// Number of repetitions.
    pub loops: u32,
    /// Time from the last frame of a loop to the first of the next.
    pub loop_gap: Span,
    /// Shortest frame sent, in bytes: shorter ones of the capture are extended to hold the probe header and the
    /// transmit time.
    pub least: u16,
}

impl Replay {
    /// A time of the trace at the speed of the replay, rounded to the picosecond.
    pub fn scaled(&self, after: Span) -> Span {
        scale(after, self.speed_ppm)
    }

    /// From the first frame of a loop to the first of the next.
    pub fn cycle(&self) -> Span {
        let span = self.scaled(self.trace.span());
        span.checked_add(self.loop_gap).unwrap_or(Span::from_picos(i64::MAX))
    }

    /// Frames of all loops.
    pub fn frames(&self) -> u64 {
        u64::from(self.loops) * self.trace.frames().len() as u64
    }

    /// When frame `index` of all loops leaves, after the first of all, and its length. `None` beyond the last one, or beyond
    /// all time.
    #[inline]
    pub fn at(&self, index: u64) -> Option<Traced> {
        let frames = self.trace.frames();
        #[expect(clippy::cast_possible_truncation, reason = "less than a length")]
        let (loops, within) = (index / frames.len() as u64, (index % frames.len() as u64) as usize);
        if loops >= u64::from(self.loops) {
            return None;
        }
        let begin = self.cycle().checked_mul(i64::try_from(loops).ok()?)?;
        let Traced { after, length } = frames[within];
        Some(Traced { after: begin.checked_add(self.scaled(after))?, length: length.max(self.least) })
    }

    /// Frames that leave before `room` is over.
    pub fn before(&self, room: Span) -> u64 {
        if room <= Span::ZERO {
            return 0;
        }
        let frames = self.trace.frames();
        let cycle = self.cycle().as_picos().max(1);
        // The loop that is under way at the end; all before it are over.
        let whole = ((room.as_picos() - 1) / cycle).min(i64::from(self.loops)).unsigned_abs();
        if whole == u64::from(self.loops) {
            return self.frames();
        }
        let rest = room.as_picos() - whole.cast_signed() * cycle;
        let of_last = frames.partition_point(|frame| self.scaled(frame.after).as_picos() < rest);
        whole * frames.len() as u64 + of_last as u64
    }

    /// The most frames that leave within any `window` of one loop.
    pub fn densest(&self, window: Span) -> u64 {
        let frames = self.trace.frames();
        let mut first = 0;
        let mut most = 0;
        for (last, frame) in frames.iter().enumerate() {
            while self.scaled(frame.after) - self.scaled(frames[first].after) > window {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        most as u64
    }

    /// The most bytes on the wire, preambles and gaps included, of frames that leave within any `window`, loops that follow each
    /// other taken together.
    pub fn busiest(&self, window: Span) -> u64 {
        let cycle = self.cycle().as_picos().max(1);
        let loops =
            (window.as_picos() / cycle).max(0).unsigned_abs().saturating_add(2).min(u64::from(self.loops));
        if loops > LOOPS_LOOKED_AT {
            return self.wire_bytes().saturating_mul(loops);
        }
        let bytes = |frame: &Traced| u64::from(frame.length) + u64::from(AROUND_FRAME);
        let frames: Vec<Traced> =
            (0..loops * self.trace.frames().len() as u64).map_while(|index| self.at(index)).collect();
        let (mut first, mut within, mut most) = (0, 0, 0);
        for last in &frames {
            within += bytes(last);
            while last.after - frames[first].after > window {
                within -= bytes(&frames[first]);
                first += 1;
            }
            most = most.max(within);
        }
        most
    }

    /// Bytes on the wire of one loop, preambles and gaps included.
    pub fn wire_bytes(&self) -> u64 {
        let of = |frame: &Traced| u64::from(frame.length.max(self.least)) + u64::from(AROUND_FRAME);
        self.trace.frames().iter().map(of).sum()
    }

    /// The gap between loops where nobody says one: as frames of a loop are apart on average, and at least what the last frame
    /// takes on a line of `rate` bit/s.
    pub fn mean_gap(&self, rate: u64) -> Span {
        let frames = self.trace.frames();
        let last = frames.last().map_or(self.least, |frame| frame.length.max(self.least));
        let on_wire =
            Span::of_bits(8 * (u64::from(last) + u64::from(AROUND_FRAME)), rate).unwrap_or(Span::ZERO);
        let gaps = i64::try_from(frames.len() - 1).unwrap_or(i64::MAX);
        let mean = if gaps == 0 { 0 } else { self.scaled(self.trace.span()).as_picos() / gaps };
        Span::from_picos(mean).max(on_wire)
    }

    /// Frames that are longer than they were.
    pub fn raised(&self) -> usize {
        self.trace.frames().iter().filter(|frame| frame.length < self.least).count()
    }

    /// How a link of `rate` bit/s stands it, within one loop: frames that are due while the one before is still on the wire, and
    /// the longest that one of them waits.
    pub fn crowding(&self, rate: u64) -> (usize, Span) {
        let mut free = Span::ZERO;
        let (mut crowded, mut longest) = (0, Span::ZERO);
        for frame in self.trace.frames() {
            let at = self.scaled(frame.after);
            if free > at {
                crowded += 1;
                longest = longest.max(free - at);
            }
            let bits = 8 * (u64::from(frame.length.max(self.least)) + u64::from(AROUND_FRAME));
            let on_wire = Span::of_bits(bits, rate).unwrap_or(Span::from_picos(i64::MAX));
            free = free.max(at).checked_add(on_wire).unwrap_or(Span::from_picos(i64::MAX));
        }
        (crowded, longest)
    }
}

fn scale(after: Span, speed_ppm: u64) -> Span {
    if speed_ppm == 1_000_000 {
        return after;
    }
    let speed = i128::from(speed_ppm.max(1));
    let picos = (i128::from(after.as_picos()) * 1_000_000 + speed / 2) / speed;
    Span::from_picos(i64::try_from(picos).unwrap_or(i64::MAX))
}

/// What a test asks of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The file, as written.
    pub file: &'a str,
    /// Name of the interface, or its number from 0; `None`: the only one.
    pub interface: Option<&'a str>,
    /// Only frames the interface received (`false`) or sent (`true`).
    pub sent: Option<bool>,
}

/// Why there is no trace: what is wrong, the limit it passed, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTrace {
    /// A clause that follows the name of the file.
    pub problem: String,
    /// Empty where there is none.
    pub limit: String,
    /// What to change.
    pub cure: String,
}

impl NoTrace {
    /// All of it as one sentence about `file`.
    pub fn of(&self, file: &str) -> String {
        let limit = if self.limit.is_empty() { String::new() } else { format!(" (limit: {})", self.limit) };
        format!("capture \"{file}\" {}{limit}; {}", self.problem, self.cure)
    }
}

/// A trace, and what of the file did not become part of it: clauses that follow the name of the file.
pub type Read = (Trace, Vec<String>);

/// Where traces come from.
pub trait Captures {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with the file or the choice.
    fn read(&self, wanted: Wanted<'_>) -> Result<Read, NoTrace>;
}

/// No files at all: for tests without replays.
#[derive(Clone, Copy, Debug)]
pub struct NoCaptures;
impl Captures for NoCaptures {
    fn read(&self, _: Wanted<'_>) -> Result<Read, NoTrace> {
        Err(NoTrace {
            problem: "cannot be read here".into(),
            limit: String::new(),
            cure: "load the test with the wiregauge command".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trace(gaps: &[(i64, u16)]) -> Trace {
        let mut after = Span::ZERO;
        let frames = gaps.iter().enumerate().map(|(i, (gap, length))| {
            after += if i == 0 { Span::ZERO } else { Span::from_picos(*gap) };
            Traced { after, length: *length }
        });
        Trace::new(frames.collect()).expect("ascending")
    }

    fn gaps() -> impl Strategy<Value = Vec<(i64, u16)>> {
        // Few values, so that steps repeat.
        let gap = prop_oneof![Just(0_i64), Just(24_000_000), 0_i64..1 << 45];
        proptest::collection::vec((gap, prop_oneof![Just(64_u16), 0_u16..1_600]), 1..40)
    }

    proptest! {
        #[test]
        fn a_trace_is_its_text(gaps in gaps()) {
            let whole = trace(&gaps);
            prop_assert_eq!(Trace::from_text(&whole.to_text()), Ok(whole));
        }

        #[test]
        fn any_text_is_a_trace_or_refused(text in "[0-9:* a-z-]{0,40}") {
            if let Ok(read) = Trace::from_text(&text) {
                prop_assert_eq!(Trace::from_text(&read.to_text()), Ok(read));
            }
        }

        #[test]
        fn frames_before_an_instant_are_those_that_are_due(
            gaps in gaps(), speed in 100_u64..10_000_000, loops in 1_u32..4, pause in 0_i64..1 << 30, share in 0.0..1.2,
        ) {
            let replay = Replay {
                file: String::new(), trace: trace(&gaps), speed_ppm: speed, loops, loop_gap: Span::from_picos(pause), least: 70,
            };
            let all: Vec<Traced> = (0..replay.frames()).filter_map(|index| replay.at(index)).collect();
            prop_assume!(all.len() as u64 == replay.frames());
            prop_assert!(all.windows(2).all(|pair| pair[0].after <= pair[1].after));
            prop_assert_eq!(replay.at(replay.frames()), None);
            prop_assert!(all.iter().all(|frame| frame.length >= 70));
            let last = all[all.len() - 1].after.as_picos();
            let room = Span::from_picos((last as f64 * share) as i64);
            let due = all.iter().filter(|frame| frame.after < room).count() as u64;
            prop_assert_eq!(replay.before(room), due);
            // Brute force over every frame that may begin the window.
            let one = &all[..gaps.len()];
            let within = |begin: &Traced| one.iter().filter(|f| f.after >= begin.after && f.after - begin.after <= room).count();
            let bytes = |begin: &Traced| -> u64 {
                let within = all.iter().filter(|f| f.after >= begin.after && f.after - begin.after <= room);
                within.map(|f| u64::from(f.length) + 20).sum()
            };
            prop_assert_eq!(replay.busiest(room), all.iter().map(bytes).max().unwrap_or(0));
            prop_assert_eq!(replay.densest(room), one.iter().map(within).max().unwrap_or(0) as u64);
        }
    }

    #[test]
    fn a_steady_stream_is_short_as_text() {
        let steady = trace(&[(24_000_000, 600); 100_000]);
        assert_eq!(steady.to_text(), "0:600 24000000:600*99999");
        assert_eq!(Trace::from_text("0:64 5:64*2000000"), Err(TraceError::TooMany));
        assert_eq!(Trace::from_text(""), Err(TraceError::Empty));
        assert_eq!(Trace::from_text("5:64"), Err(TraceError::Order { number: 1 }));
        assert_eq!(Trace::from_text("0:64 -5:64"), Err(TraceError::Text("-5:64".into())));
    }

    #[test]
    fn crowding_is_what_a_link_makes_of_it() {
        // 64 B take 672 ns at 1 Gbit/s: three at once wait 0, 672 and 1344 ns, the fourth finds the line free.
        let replay = Replay {
            file: String::new(),
            trace: trace(&[(0, 64), (0, 64), (0, 64), (3_000_000, 64)]),
            speed_ppm: 1_000_000,
            loops: 1,
            loop_gap: Span::ZERO,
            least: 64,
        };
        assert_eq!(replay.crowding(1_000_000_000), (2, Span::from_picos(1_344_000)));
        assert_eq!(replay.crowding(100_000_000_000), (2, Span::from_picos(13_440)));
        assert_eq!(replay.wire_bytes(), 4 * 84);
        assert_eq!(replay.mean_gap(1_000_000_000), Span::from_picos(1_000_000));
    }
}
