//! Intervals with unknown fate of messages: near the ends of a capture, and where one dropped frames.

use std::collections::BTreeSet;

use wg_record::Gap;

use super::mapping::Map;
use super::scan::{Contents, Passing};
use crate::edges;

/// Longest time between two taps, ps, if no message shows it.
const LONGEST: i64 = 1_000_000_000_000;

/// The gaps of all flows and taps. They only concern messages that did not arrive.
pub(super) fn of(contents: &Contents, map: &Map, epoch_picos: i128) -> Vec<Gap> {
    let dropping = contents.taps.iter().enumerate().filter(|(_, tap)| tap.dropped > 0);
    let mut gaps: Vec<Gap> = dropping
        .map(|(number, tap)| Gap {
            node: Some(map.place(number).0),
            cause: format!("the capture dropped {} frames", tap.dropped),
            ..Gap::default()
        })
        .collect();
    let flows: BTreeSet<u16> = contents.passing.keys().map(|(flow, _, _)| *flow).collect();
    for flow in flows {
        let (out, back) = (contents.ways(flow, false), contents.ways(flow, true));
        let Some((&first, behind)) = out.split_first() else { continue };
        let Some(sent) = contents.passing.get(&(flow, false, first)) else { continue };
        for (tap, back) in behind.iter().map(|tap| (*tap, false)).chain(back.iter().map(|tap| (*tap, true))) {
            let Some(came) = contents.passing.get(&(flow, back, tap)) else { continue };
            if came.frames == sent.frames {
                continue;
            }
            let span = contents.spans[contents.taps[tap].file];
            let step = contents.taps[tap].step_picos.saturating_add(contents.taps[first].step_picos);
            let [since, until] =
                edges::inside(window(sent, came, step), span.map(|time| run_time(time, epoch_picos)));
            let gap = Gap {
                node: Some(map.place(tap).0),
                flows: vec![flow],
                cause: format!("the edge of the capture at {}", contents.taps[tap].name),
                ..Gap::default()
            };
            if run_time(sent.first, epoch_picos) < since {
                gaps.push(Gap { to_ps: Some(since.saturating_sub(1)), ..gap.clone() });
            }
            if run_time(sent.last, epoch_picos) > until {
                gaps.push(Gap { from_ps: Some(until.saturating_add(1)), ..gap });
            }
        }
    }
    gaps
}

fn run_time(picos: i128, epoch_picos: i128) -> i64 {
    i64::try_from(picos - epoch_picos).unwrap_or(i64::MAX)
}

/// Interval after its time at the first tap in which a message may come to another, ps: as seen in both, and as much
/// again.
fn window(sent: &Passing, came: &Passing, step: u64) -> [i64; 2] {
    let apart = sent
        .times
        .iter()
        .filter_map(|(number, time)| Some(i64::try_from(came.times.get(number)? - time).unwrap_or(i64::MAX)));
    let ends = apart.fold(None, |ends: Option<[i64; 2]>, one| {
        Some(ends.map_or([one, one], |[least, most]| [least.min(one), most.max(one)]))
    });
    let Some([least, most]) = ends else { return [0, LONGEST] };
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    // With unsynchronised clocks, least and greatest only show the variation.
    let more = if least < 0 { most.saturating_sub(least) } else { most };
    let earliest = if least < 0 { least.saturating_sub(more) } else { 0 };
    [earliest.saturating_sub(step), most.saturating_add(more).saturating_add(step)]
}
