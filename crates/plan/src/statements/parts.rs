//! What several elements of a test share: ends, distributions, ranges of numbers, limits.

use wg_frame::time::Span;

use crate::diagnostic::Findings;
use crate::network::Distribution;
use crate::places::{LAST_FLOW, MOST_PORTS};
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) node: String,
    pub(crate) port: Option<u16>,
}

/// Frames of any buffer, at most.
pub(super) const MOST_FRAMES: u64 = 1 << 20;

/// Of a host.
pub(super) const COST: (Span, Span, &str) = (Span::ZERO, Span::from_millis(10_000), "0s to 10s");

/// Frames with a tag, destination address to FCS.
pub(super) const SMALLEST_TO_LARGEST: (u64, u64, &str) = (64, 1_522, "64B to 1522B");

/// The child with this tag; a second one is refused.
pub(super) fn only<'e>(element: &'e Element, tag: &'e str, found: &mut Findings) -> Option<&'e Element> {
    let mut all = element.all(tag);
    let first = all.next();
    if let Some(second) = all.next() {
        found.error(&second.place(), format!("<{tag}> stands here a second time"), "1", "keep one of them");
    }
    first
}

/// One time, or quantiles: `0%:0.8us 50%:1.5us 100%:40us`.
pub(super) fn distribution(
    reader: &mut Reader<'_>,
    attribute: &'static str,
    written: &str,
    bounds: (Span, Span, &str),
) -> Option<Distribution> {
    if !written.contains(':') {
        let time = reader.time_within(attribute, written, bounds)?;
        return Some(Distribution { quantiles: vec![(0, time.value)] });
    }
    let mut quantiles: Vec<(u32, Span)> = Vec::new();
    for word in written.split_whitespace().take(MOST_QUANTILES + 1) {
        let (share, time) = word.split_once(':').unwrap_or((word, ""));
        let share = reader.quantity(attribute, share, Kind::Ratio, quantity::ppm)?.value;
        let time = reader.time_within(attribute, time, bounds)?.value;
        quantiles.push((share, time));
    }
    let ascending = quantiles.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    let whole = quantiles.first().is_some_and(|first| first.0 == 0)
        && quantiles.last().is_some_and(|last| last.0 == 1_000_000);
    if !ascending || !whole || quantiles.len() > MOST_QUANTILES {
        let limit = format!("2 to {MOST_QUANTILES} quantiles, shares and times ascending, from 0% to 100%");
        let cure = "write for example \"0%:1us 99%:5us 100%:40us\", or one time";
        reader.refuse(attribute, written, "is no distribution", &limit, cure);
        return None;
    }
    Some(Distribution { quantiles })
}

pub(super) const MOST_QUANTILES: usize = 64;

/// Two ends of a link.
pub(super) fn link_ends(reader: &mut Reader<'_>, attribute: &'static str, written: &str) -> Option<[End; 2]> {
    let words: Vec<&str> = written.split_whitespace().collect();
    let [a, b] = words[..] else {
        let problem = format!("names {} ends", words.len());
        let cure = "write two names, for example \"mac sw1\" or \"mac sw1:3\"";
        reader.refuse(attribute, written, &problem, "2", cure);
        return None;
    };
    let (a, b) = (end(reader, attribute, a), end(reader, attribute, b));
    Some([a?, b?])
}

/// A node, with its port where one is written.
pub(super) fn end(reader: &mut Reader<'_>, attribute: &'static str, word: &str) -> Option<End> {
    let (name, port) = match word.split_once(':') {
        Some((name, port)) => {
            (name, Some(reader.whole::<u16>("port", port, 1, u64::from(MOST_PORTS))?.value))
        }
        None => (word, None),
    };
    reader.name_of(attribute, name).map(|name| End { node: name.value, port })
}

/// Links, flows, tasks of one kind, faults, or limits of a test: as many as there are numbers of flows.
pub(super) const MOST_OF_A_KIND: usize = LAST_FLOW as usize;

pub(super) const BASE: (Span, Span, &str) = (Span::ZERO, Span::from_millis(604_800_000), "0s to 168h");

pub(super) fn sequences(reader: &mut Reader<'_>, written: &str) -> Maybe<Vec<(u32, u32)>> {
    let highest = u64::from(u32::MAX);
    let mut ranges = Vec::new();
    for word in written.split_whitespace() {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let first: u32 = reader.whole("sequence", first, 0, highest)?.value;
        let last: u32 = reader.whole("sequence", last, 0, highest)?.value;
        if last < first {
            reader.refuse("sequence", word, "runs backwards", "", "write the smaller number first");
            return None;
        }
        ranges.push((first, last));
    }
    if ranges.is_empty() {
        let cure = "name sequence numbers, for example \"5 17 100-110\"";
        reader.refuse("sequence", written, "names no message", "", cure);
        return None;
    }
    ranges.sort_unstable();
    Some(reader.sourced("sequence", written, ranges))
}
