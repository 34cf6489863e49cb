//! Two captures of any traffic, before and after a device: which frames came through, when, and how often.
//!
//! The frames need not be Wiregauge's. They are identified by a hash of their content, without the fields that the
//! device is said to change, and grouped into flows as in a network analyser. Frames of the same content are compared
//! by time, and where several could match, they are ambiguous: they enter the records as seen before the device only,
//! with an unknown fate, and every figure has its least and greatest possible value.
//!
//! The captures are read twice: for the least snap length, and for the frames. Memory: some 60 B a frame.

mod assumption;
mod clocks;
mod content;
mod drift;
mod evidence;
mod flows;
mod found;
mod groups;
mod ignored;
mod leaps;
mod matching;
mod offset;
mod order;
mod pairs;
mod reading;
mod relate;
mod through;

use std::path::Path;

use serde::Serialize;
use wg_frame::time::RunTime;
use wg_plan::Campaign;
use wg_record::Gap;
use wg_record::segment::{ALL_NODES, SegmentInfo, SegmentWriter};
use wg_record::{Crc, DropReason, Point, Record, RecordFlags};

use crate::taps::{TapReport, TroubleReport};
pub use assumption::Ground;
pub use evidence::{Against, Outside};
pub use flows::{FlowReport, Interval, Uncrossed};
pub use found::{ClockRelation, SegmentReport, StepReport};
pub use ignored::Field;
pub use order::{Order, PassiveError};
use reading::Side;
use through::{Fates, Followed};

/// Result of a comparison.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The captures as end systems, the flows between them.
    pub campaign: Campaign,
    /// Time of the first frame, ns since 1970; times in the records count from it.
    pub epoch_realtime_ns: i64,
    /// Records written.
    pub records: u64,
    /// The two captures.
    pub taps: Vec<TapReport>,
    /// Unusable parts of the files.
    pub troubles: Vec<TroubleReport>,
    /// The matching of frames and its open questions.
    pub passive: Passive,
}

/// The matching of frames and its open questions.
#[derive(Debug, Serialize)]
pub struct Passive {
    /// Fields that were not compared.
    pub ignored: Vec<Field>,
    /// Longest residence searched, ps.
    pub greatest_ps: i64,
    /// Whether that was given, rather than derived from frames of unique content.
    pub greatest_is_said: bool,
    /// Whether it is the default maximum, 1 s.
    pub greatest_is_most: bool,
    /// Frames on both sides outside the search window, or in the wrong order.
    pub outside: Outside,
    /// Further evidence against the captures being before and behind a device.
    pub against: Against,
    /// Whether both captures are in one file.
    pub one_file: bool,
    /// Number of frames of a content that each capture has exactly once.
    pub unique: u64,
    /// Number of bytes by which longer frames were compared; `null` if all were captured completely.
    pub compared_bytes: Option<usize>,
    /// How the clocks are related, as far as frames show it.
    pub relation: ClockRelation,
    /// Assumed reading of the second clock minus the first at the beginning, ps.
    pub offset_ps: i128,
    /// Uncertainty of the offset, ps; `null` if it was estimated from traffic of one direction, so that only
    /// differences between residence times are known.
    pub offset_uncertainty_ps: Option<i64>,
    /// Whether the uncertainty was given, or follows from both captures being in one file, rather than from traffic of
    /// both directions.
    pub offset_is_said: bool,
    /// Whether frames of a flow were assumed to stay in order.
    pub in_order: bool,
    /// Reports of the flows.
    pub flows: Vec<FlowReport>,
    /// Flows without any frame behind the device, those with most frames.
    pub uncrossed: Vec<Uncrossed>,
    /// Number of all such flows, and of their frames.
    pub uncrossed_all: [u64; 2],
    /// Intervals in which the fate of frames is unknown.
    pub gaps: Vec<Gap>,
}

/// Compares the captures of `order` and writes records of the certain matches as segments below `spool`.
///
/// # Errors
/// See [`PassiveError`]; problems within a file are in the result instead.
pub fn compare(order: &Order, spool: &Path) -> Result<Compared, PassiveError> {
    let mut read = reading::read(order)?;
    let relation = relate::relate(order, &mut read)?;
    let mut fates = through::follow(order, &read, &relation)?;
    let outside = evidence::outside(&read, &relation, &mut fates);
    let against = evidence::against(&read, &relation, &fates);
    let summary = flows::summarise(order, &read, &fates, &relation, against.doubled > 0);
    let epoch_realtime_ns = i64::try_from(read.sides[0].base_picos / 1_000).unwrap_or(i64::MAX);
    let info = SegmentInfo { end_system: "taps".into(), node: ALL_NODES, run_index: 0, epoch_realtime_ns };
    let mut writer = SegmentWriter::create(&spool.join("taps"), info)?;
    // The epoch has no digits below a nanosecond.
    let below = i64::try_from(read.sides[0].base_picos % 1_000).unwrap_or_default();
    for record in records(&read.sides, &fates, &summary.numbers, below) {
        writer.push(&record)?;
    }
    let records = writer.finish()?;
    Ok(Compared {
        campaign: summary.campaign,
        epoch_realtime_ns,
        records,
        taps: read.sides.iter().map(|side| side.report(order)).collect(),
        troubles: read.troubles.iter().map(TroubleReport::of).collect(),
        passive: Passive {
            ignored: order.ignored.clone(),
            greatest_ps: relation.greatest,
            greatest_is_said: order.greatest_ps.is_some(),
            greatest_is_most: relation.is_most,
            outside,
            against,
            one_file: read.one_file,
            unique: relation.unique,
            compared_bytes: read.limit,
            offset_is_said: (order.agree_ps.is_some() || read.one_file) && relation.found.ground.is_stated(),
            offset_ps: relation.offset,
            offset_uncertainty_ps: relation.uncertainty,
            in_order: order.in_order,
            flows: summary.flows,
            uncrossed: summary.uncrossed,
            uncrossed_all: summary.uncrossed_all,
            relation: relation.found,
            gaps: summary.gaps,
        },
    })
}

/// Records of the frames before the device, and of those behind it with a certain origin; in the order of time.
fn records(
    sides: &[Side; 2],
    fates: &Fates,
    numbers: &[Vec<Option<flows::Number>>; 2],
    below: i64,
) -> Vec<Record> {
    let record = |side: usize, frame: u32, number: flows::Number| {
        let seen = &sides[side].frames[frame as usize];
        Record {
            time: RunTime::from_picos(seen.time.saturating_add(below)),
            sequence: number.sequence,
            flow: number.flow,
            node: u16::from(side == 1),
            port: 1,
            length: seen.length,
            point: Point::Tap,
            clock: sides[side].clock(),
            crc: Crc::Unchecked,
            reason: DropReason::None,
            flags: RecordFlags::empty(),
        }
    };
    let mut all = Vec::new();
    for (side, numbers) in numbers.iter().enumerate() {
        let numbered = (0..).zip(numbers).filter_map(|(frame, number)| Some((frame, (*number)?)));
        all.extend(numbered.map(|(frame, number)| record(side, frame, number)));
    }
    for &Followed { side, from, to } in &fates.followed {
        if let Some(number) = numbers[side][from as usize] {
            all.push(record(1 - side, to, number));
        }
    }
    all.sort_by_key(|record| (record.time, record.sequence));
    all
}
