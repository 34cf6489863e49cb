//! Values that are more than a number with a unit: how their text is read.

use std::net::{Ipv4Addr, Ipv6Addr};

use wg_core::arinc664::Bag;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use super::attribute::{Attribute, Refused, Sized128, whole};
use crate::network::Distribution;
use crate::places::{LAST_FLOW, MOST_PORTS};
use crate::quantity::{self, Kind, QuantityError};
use crate::stream_filter::HeaderField;
use crate::switch_tsn::LinkPriority;

/// Where in the cycle of the network a message is released, by the clock of its end system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CycleOffset {
    /// So early that its flow's dispatch finds it ready.
    Dispatch,
    /// So long after a cycle begins.
    At(Span),
}

/// What a sender has reached at the end of its ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Period(Span),
    /// A share of the sender's link, in ppm.
    Load(u32),
}

/// What a faulty master of an AS6802 cluster does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    Early,
    Late,
    Silent,
    Inconsistent,
}

/// A time between two messages that is a power of two of a second, with the exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PowerOfTwo {
    pub(crate) interval: Span,
    pub(crate) log: i8,
}

type Read<T> = Result<T, Refused>;

/// True for a name of a node: it becomes an interface and a host name, hence at most 15 characters.
pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && text.len() <= 15
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

pub(crate) fn name_of(text: &str) -> Read<String> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    let limit = "1 to 15 of A-Z a-z 0-9 _ -, the first a letter";
    Err(Refused::new(text, "is not a name", limit, "choose a name within the limit"))
}

pub(super) fn name(_: &Attribute<String>, text: &str) -> Read<String> {
    name_of(text)
}

pub(super) fn test_name(_: &Attribute<String>, text: &str) -> Read<String> {
    let fits = (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " ._-".contains(c));
    if fits {
        return Ok(text.to_owned());
    }
    let limit = "1 to 64 of A-Z a-z 0-9 space . _ -, the first a letter or digit";
    Err(Refused::new(text, "is not a name of a test", limit, "choose a name within the limit"))
}

/// A payload in bytes, or another length that is checked where it is known what it is of.
pub(super) fn payload(text: &str) -> Result<u32, QuantityError> {
    u32::try_from(quantity::size(text)?).ok().filter(|bytes| *bytes <= 1 << 24).ok_or(QuantityError::TooLarge)
}

/// Length of a frame in bytes.
pub(super) fn frame_length(text: &str) -> Result<u16, QuantityError> {
    u16::try_from(quantity::size(text)?).map_err(|_| QuantityError::TooLarge)
}

/// From a header and an FCS to what no receiver of jumbo frames takes; not those of good frames.
pub(super) fn wrong_length(_: &Attribute<u16>, text: &str) -> Read<u16> {
    let length = frame_length(text).map_err(|error| Refused::quantity(text, Kind::Size, &error))?;
    if (18..64).contains(&length) || (1_519..=16_000).contains(&length) {
        return Ok(length);
    }
    let cure = "write the length of a runt or a giant, destination address to FCS";
    let limit = "18B to 63B, or 1519B to 16000B";
    Err(Refused::new(text, "is no wrong length of a frame", limit, cure))
}

/// A bandwidth allocation gap (ARINC 664 part 7: 2^k ms, k = 0 … 7).
pub(super) fn bag(_: &Attribute<Span>, text: &str) -> Read<Span> {
    let bag = quantity::time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
    if Bag::new(bag).is_ok() {
        return Ok(bag);
    }
    let number = bag.as_picos() / Span::from_millis(1).as_picos();
    let near = number.clamp(1, 128).unsigned_abs().next_power_of_two();
    let limit = "1, 2, 4, 8, 16, 32, 64 or 128 ms";
    let cure = format!("write one of them, for example {near}ms");
    Err(Refused::new(text, "is no bandwidth allocation gap", limit, &cure))
}

/// By how much a clock is set.
pub(super) fn clock_step(attribute: &Attribute<Span>, text: &str) -> Read<Span> {
    let by = quantity::signed_time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
    // Nothing is no step, wherever the range begins.
    let size = if by == Span::ZERO { i128::MAX } else { by.size() };
    attribute.in_range(text, Kind::Time, size).map(|()| by)
}

pub(super) fn mean_bits(_: &Attribute<u64>, text: &str) -> Read<u64> {
    let cure = "write errors per bit as a bare number, for example 1e-9";
    quantity::mean_bits(text).ok_or_else(|| Refused::new(text, "is no bit error rate", "1e-18 to 1", cure))
}

pub(super) fn cycle_offset(_: &Attribute<CycleOffset>, text: &str) -> Read<CycleOffset> {
    if text == "dispatch" {
        return Ok(CycleOffset::Dispatch);
    }
    let at = quantity::time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
    Ok(CycleOffset::At(at))
}

pub(super) fn ramp_end(attribute: &Attribute<Reached>, text: &str) -> Read<Reached> {
    if !text.ends_with('%') && !text.ends_with("ppm") {
        let period = quantity::time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
        return Ok(Reached::Period(period));
    }
    let load = quantity::ppm(text).map_err(|error| Refused::quantity(text, Kind::Ratio, &error))?;
    if (1..=1_000_000).contains(&load) {
        return Ok(Reached::Load(load));
    }
    let limit = "more than 0%, at most 100%";
    Err(Refused::new(text, "is out of range", limit, attribute.cure))
}

/// Quantiles of a distribution, at most.
const MOST_QUANTILES: usize = 64;

/// One time, or quantiles: `0%:0.8us 50%:1.5us 100%:40us`.
pub(super) fn distribution(attribute: &Attribute<Distribution>, text: &str) -> Read<Distribution> {
    let time = |text: &str| {
        let time = quantity::time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
        attribute.in_range(text, Kind::Time, time.size()).map(|()| time)
    };
    if !text.contains(':') {
        return Ok(Distribution { quantiles: vec![(0, time(text)?)] });
    }
    quantiles(text, time).ok_or_else(|| {
        let cure = "write for example \"0%:1us 99%:5us 100%:40us\", or one time";
        Refused::new(text, "is no distribution", &quantile_limit(), cure)
    })?
}

/// Beyond it nothing is an error of a reading.
const MOST_ERROR: Span = Span::from_millis(100);

/// A bound either way, or quantiles that may be negative: `0%:-5ns 50%:0ns 100%:40ns`.
pub(super) fn timestamp_error(attribute: &Attribute<Distribution>, text: &str) -> Read<Distribution> {
    if !text.contains(':') {
        let bound = quantity::time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
        attribute.in_range(text, Kind::Time, bound.size())?;
        return Ok(Distribution { quantiles: vec![(0, -bound), (1_000_000, bound)] });
    }
    let time = |text: &str| {
        let time =
            quantity::signed_time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
        if (-MOST_ERROR..=MOST_ERROR).contains(&time) {
            return Ok(time);
        }
        Err(Refused::new(text, "is out of range", "100ms either way", "write errors within the limit"))
    };
    quantiles(text, time).ok_or_else(|| {
        let cure = "write for example \"0%:-20ns 50%:0ns 100%:60ns\", or one bound";
        Refused::new(text, "is no distribution of an error", &quantile_limit(), cure)
    })?
}

fn quantile_limit() -> String {
    format!("2 to {MOST_QUANTILES} quantiles, shares and times ascending, from 0% to 100%")
}

/// Shares with their times; `None` where they make no distribution, `Some(Err(…))` where one is none.
fn quantiles(text: &str, time: impl Fn(&str) -> Read<Span>) -> Option<Read<Distribution>> {
    let mut quantiles: Vec<(u32, Span)> = Vec::new();
    for word in text.split_whitespace().take(MOST_QUANTILES + 1) {
        let (share, at) = word.split_once(':').unwrap_or((word, ""));
        let share = quantity::ppm(share).map_err(|error| Refused::quantity(share, Kind::Ratio, &error));
        match share.and_then(|share| Ok((share, time(at)?))) {
            Ok(quantile) => quantiles.push(quantile),
            Err(refused) => return Some(Err(refused)),
        }
    }
    let ascending = quantiles.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
    let whole = quantiles.first().is_some_and(|first| first.0 == 0)
        && quantiles.last().is_some_and(|last| last.0 == 1_000_000);
    (ascending && whole && quantiles.len() <= MOST_QUANTILES).then_some(Ok(Distribution { quantiles }))
}

/// Numbers of flows with spaces between.
pub(super) fn flow_ids(_: &Attribute<Vec<u16>>, text: &str) -> Read<Vec<u16>> {
    let flows = text.split_whitespace().map(|word| number(word, 1, LAST_FLOW)).collect::<Read<Vec<u16>>>()?;
    if flows.is_empty() {
        return Err(Refused::new(text, "names no flow", "", "name flows or leave the attribute out"));
    }
    Ok(flows)
}

/// Ports of a switch, ascending.
pub(super) fn ports(_: &Attribute<Vec<u16>>, text: &str) -> Read<Vec<u16>> {
    let words = text.split_whitespace().take(usize::from(MOST_PORTS) + 1);
    let mut ports = words.map(|word| number(word, 1, MOST_PORTS)).collect::<Read<Vec<u16>>>()?;
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

fn number(word: &str, low: u16, high: u16) -> Read<u16> {
    let limit = format!("{low} to {high}");
    let number = whole(word, low.into(), high.into(), &limit)?;
    u16::try_from(number).map_err(|_| Refused::new(word, "is out of range", &limit, ""))
}

/// Ranges of sequence numbers, ascending.
pub(super) fn sequences(_: &Attribute<Vec<(u32, u32)>>, text: &str) -> Read<Vec<(u32, u32)>> {
    let number = |word: &str| {
        let limit = format!("0 to {}", u32::MAX);
        let number = whole(word, 0, u32::MAX.into(), &limit)?;
        u32::try_from(number).map_err(|_| Refused::new(word, "is out of range", &limit, ""))
    };
    let mut ranges = Vec::new();
    for word in text.split_whitespace() {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(Refused::new(word, "runs backwards", "", "write the smaller number first"));
        }
        ranges.push((first, last));
    }
    if ranges.is_empty() {
        let cure = "name sequence numbers, for example \"5 17 100-110\"";
        return Err(Refused::new(text, "names no message", "", cure));
    }
    ranges.sort_unstable();
    Ok(ranges)
}

/// Several of some words, ascending.
fn several<T: Copy + Ord>(text: &str, all: &[(&str, T)]) -> Read<Vec<T>> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let Some((_, value)) = all.iter().find(|(name, _)| *name == word) else {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            let cure = format!("write {}", names.join(" or "));
            return Err(Refused::new(word, "is not one of the choices", "", &cure));
        };
        found.push(*value);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Priorities of virtual links whose frames wait in a class.
const LINK_PRIORITIES: [(&str, LinkPriority); 2] = [("low", LinkPriority::Low), ("high", LinkPriority::High)];

pub(super) fn link_priorities(_: &Attribute<Vec<LinkPriority>>, text: &str) -> Read<Vec<LinkPriority>> {
    several(text, &LINK_PRIORITIES)
}

/// Fields that IP stream identification compares, ascending.
pub(super) fn header_fields(_: &Attribute<Vec<HeaderField>>, text: &str) -> Read<Vec<HeaderField>> {
    let fields = several(text, &HeaderField::ALL)?;
    if fields.is_empty() {
        let cure = "name fields, or remove it";
        return Err(Refused::new(text, "compares nothing", "at least 1 field", cure));
    }
    Ok(fields)
}

pub(super) fn mac(attribute: &Attribute<MacAddress>, text: &str) -> Read<MacAddress> {
    let limit = "an address of one station";
    let Ok(mac) = text.parse::<MacAddress>() else {
        let cure = "write six bytes in hex, for example 02:00:00:00:00:07";
        return Err(Refused::new(text, "is no MAC address", limit, cure));
    };
    let is_source = attribute.name == "source-mac";
    if mac.is_group() && (is_source || mac != MacAddress::BROADCAST) {
        let cure = if is_source {
            "clear the lowest bit of its first byte; nobody can send as a group"
        } else {
            "clear the lowest bit of its first byte, or name several receivers in to=\"…\""
        };
        return Err(Refused::new(text, "is the address of a group", limit, cure));
    }
    if mac == MacAddress::default() {
        return Err(Refused::new(text, "is nobody's address", limit, "write another one"));
    }
    Ok(mac)
}

pub(super) fn ipv4(_: &Attribute<[u8; 4]>, text: &str) -> Read<[u8; 4]> {
    let limit = "an IPv4 address of one host";
    let Ok(address) = text.parse::<Ipv4Addr>() else {
        let (what, cure) = match text.parse::<Ipv6Addr>() {
            Ok(_) => ("is an IPv6 address", "write an IPv4 address; messages travel over IPv4"),
            Err(_) => ("is no IPv4 address", "write four numbers, for example 10.1.2.3"),
        };
        return Err(Refused::new(text, what, limit, cure));
    };
    let what = match address {
        _ if address.is_multicast() => "is the address of a group",
        _ if address.is_broadcast() => "is the address of everybody",
        _ if address.is_loopback() => "never leaves a host",
        _ if address.octets()[0] == 0 => "is nobody's address",
        _ => return Ok(address.octets()),
    };
    Err(Refused::new(text, what, limit, "write another one"))
}

const SECOND: i64 = 1_000_000_000_000;

/// Time between two messages, a power of two of a second (IEEE 1588-2019, 7.7.2.1: the exponent is transmitted).
pub(super) fn power_of_two(attribute: &Attribute<PowerOfTwo>, text: &str) -> Read<PowerOfTwo> {
    let interval = quantity::time(text).map_err(|error| Refused::quantity(text, Kind::Time, &error))?;
    attribute.in_range(text, Kind::Time, interval.size())?;
    let picos = interval.as_picos();
    let log = (0..=7_i8).find(|k| picos << k == SECOND).map(|k| -k);
    if let Some(log) = log.or_else(|| (1..=4_i8).find(|k| picos == SECOND << k)) {
        return Ok(PowerOfTwo { interval, log });
    }
    let cure = "write 125ms, 250ms, 500ms, 1s, 2s …";
    Err(Refused::new(text, "is no power of two of a second", &attribute.limit(), cure))
}

/// A constant of a servo, in thousandths.
pub(super) fn gain(_: &Attribute<u32>, text: &str) -> Read<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| (1..=3).contains(&text.len()) && text.chars().all(|c| c.is_ascii_digit());
    let thousandths = (digits(whole) && digits(part)).then(|| {
        #[expect(clippy::cast_possible_truncation, reason = "at most three digits")]
        let scale = 10_u32.pow(3 - part.len() as u32);
        Some(whole.parse::<u32>().ok()? * 1_000 + part.parse::<u32>().ok()? * scale)
    });
    thousandths.flatten().filter(|gain| *gain <= 10_000).ok_or_else(|| {
        let cure = "write a number such as 0.35, at most three digits after the point";
        Refused::new(text, "is no constant of a servo", "0 to 10", cure)
    })
}

#[cfg(test)]
mod tests {
    use super::super::synchronise::ptp;

    #[test]
    fn gains_are_read_exactly_or_refused() {
        let gain_of = |text| ptp::KP.parse(text).ok();
        assert_eq!([gain_of("0.35"), gain_of("1"), gain_of("10.0")], [Some(350), Some(1_000), Some(10_000)]);
        for wrong in ["", ".5", "1.", "-1", "0.1234", "10.001", "1e3", "0,5"] {
            assert_eq!(gain_of(wrong), None, "{wrong}");
        }
    }
}
