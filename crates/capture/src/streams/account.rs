//! The account of one stream: bounded memory, however many frames.

use serde_json::{Map, Value as Json};
use wg_record::Sketch;

use super::distribution::{Distribution, histogram};
use super::kind::{As, Found, Identity, Kind, VALUES};
use super::kinds::RTP;
use super::numbering::{Numbering, Rule};
use super::regulators::Regulators;
use super::report::{self, EchoReport, NumberingReport, Recent, StreamReport, ValueReport};

/// Datagrams that must be numbered as RTP before a stream counts as RTP, and how many of a stream must be.
const LEAST_RTP: u64 = 4;
const SHARE_OF_RTP: u64 = 10;
/// Longest name of a publisher that is kept, bytes.
const LONGEST_NAME: usize = 129;

/// The account of one stream.
#[derive(Debug, Default)]
pub(super) struct Account {
    frames: u64,
    octets: u64,
    shortest: u32,
    longest: u32,
    first: i64,
    last: i64,
    intervals: Sketch,
    numbering: Numbering,
    values: [Tracked; VALUES],
    text: Option<Box<str>>,
    regulators: Option<Box<Regulators>>,
    echo: Option<Box<Echo>>,
    rtp: Option<Box<Rtp>>,
    recent: Recent,
}

/// A frame as far as accounts need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Time, ps after the first frame of the capture.
    pub(super) at: i64,
    /// Length with FCS.
    pub(super) length: u32,
}

impl Account {
    pub(super) fn take(&mut self, kind: &Kind, seen: Seen, found: &Found<'_>) {
        if self.frames == 0 {
            self.begin(kind, seen, found);
        }
        if let Some(echo) = &mut self.echo
            && let Some((index, passed)) = found.echo
            && echo.take(index, passed, seen.at)
        {
            // A return is no frame of the cycle, and none of its rate.
            self.track(found);
            return;
        }
        if self.frames > 0 {
            let interval = seen.at.saturating_sub(self.last);
            self.intervals.add(interval);
            self.recent.interval(interval);
        }
        self.recent.frame(seen.length);
        self.frames += 1;
        self.octets += u64::from(seen.length);
        self.shortest = self.shortest.min(seen.length);
        self.longest = self.longest.max(seen.length);
        self.last = seen.at;
        let typical = self.typical();
        if let (Some(rule), Some(number)) = (kind.rule, found.number) {
            self.numbering.take(rule, number, found.epoch, seen.at, typical);
        }
        if let Some(regulators) = &mut self.regulators {
            regulators.take(seen.at);
        }
        self.track(found);
        if let Some(rtp) = &mut self.rtp {
            rtp.take(found.rtp, seen.at, typical);
        }
    }

    fn begin(&mut self, kind: &Kind, seen: Seen, found: &Found<'_>) {
        self.first = seen.at;
        self.shortest = u32::MAX;
        self.text = found.text.map(|text| {
            String::from_utf8_lossy(&text[..text.len().min(LONGEST_NAME)]).into_owned().into_boxed_str()
        });
        self.regulators = (kind.rule == Some(Rule::Arinc)).then(Box::default);
        self.echo = found.echo.map(|_| Box::default());
        self.rtp = found.rtp.map(|_| Box::default());
    }

    fn track(&mut self, found: &Found<'_>) {
        for (tracked, value) in self.values.iter_mut().zip(found.values) {
            if let Some(value) = value {
                tracked.take(value);
            }
        }
    }

    /// Mean time between frames, once there are some.
    fn typical(&self) -> Option<i64> {
        let n = i64::try_from(self.intervals.n()).ok().filter(|n| *n > 0)?;
        Some(self.last.saturating_sub(self.first).max(0) / n)
    }

    /// The kind that the frames turned out to be.
    pub(super) fn settled(&self, kind: &'static Kind) -> &'static Kind {
        if self.rtp.as_ref().is_some_and(|rtp| rtp.is_rtp(self.frames)) { &RTP } else { kind }
    }

    /// What came since the last call.
    pub(super) fn take_recent(&mut self) -> Recent {
        let mut recent = std::mem::take(&mut self.recent);
        recent.bags = self.regulators.as_mut().map(|regulators| regulators.take_recent()).unwrap_or_default();
        recent
    }

    pub(super) fn report(&self, kind: &'static Kind, id: &Identity) -> StreamReport {
        let settled = self.settled(kind);
        let mut fields = report::identity(settled, &id.words);
        let mut numbering = &self.numbering;
        if let Some(rtp) = &self.rtp
            && std::ptr::eq(settled, &raw const RTP)
        {
            fields.insert("ssrc".into(), format!("{:#x}", rtp.source).into());
            numbering = &rtp.numbering;
        }
        let mut numbering = numbering.clone();
        if let Some(rule) = settled.rule {
            numbering.finish(rule, self.typical());
        }
        let network = ["", "A", "B"].get(usize::from(id.network)).copied().filter(|name| !name.is_empty());
        let vlans: Vec<u16> = id.vlans.ids().collect();
        let mut more: Vec<String> = vlans.iter().map(|id| format!("VLAN {id}")).collect();
        more.extend(network.map(|network| format!("network {network}")));
        StreamReport {
            kind: settled.name,
            name: report::name(settled, &fields, self.text.as_deref().unwrap_or_default(), &more),
            fields,
            vlans,
            network,
            tap: id.tap,
            frames: self.frames,
            octets: self.octets,
            shortest: self.shortest,
            longest: self.longest,
            first_ps: self.first,
            last_ps: self.last,
            period: Distribution::of(&self.intervals),
            histogram: histogram(&self.intervals),
            sequence: (settled.rule.is_some() && numbering.numbered > 0)
                .then(|| NumberingReport::of(settled, numbering)),
            values: values(kind, &self.values),
            echo: self.echo.as_ref().and_then(|echo| echo.report()),
            bags: self.regulators.as_ref().map(|regulators| regulators.report()).unwrap_or_default(),
            is_around: kind.is_around,
        }
    }
}

fn values(kind: &Kind, tracked: &[Tracked; VALUES]) -> Map<String, Json> {
    let made =
        kind.values.iter().zip(tracked).filter(|(_, tracked)| tracked.n > 0).map(|(value, tracked)| {
            let show = |number| report::value(value.shown, number);
            let made = ValueReport {
                n: tracked.n,
                first: show(tracked.first),
                min: if value.shown == As::Hex { Json::Null } else { show(tracked.min) },
                max: if value.shown == As::Hex { Json::Null } else { show(tracked.max) },
                last: show(tracked.last),
                changes: tracked.changes,
            };
            (value.name.to_owned(), serde_json::to_value(made).unwrap_or_default())
        });
    made.collect()
}

/// A value from frame to frame.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    n: u64,
    first: i64,
    min: i64,
    max: i64,
    last: i64,
    changes: u64,
}

impl Tracked {
    fn take(&mut self, value: i64) {
        if self.n == 0 {
            *self = Self { n: 0, first: value, min: value, max: value, last: value, changes: 0 };
        }
        self.n += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.changes += u64::from(value != self.last);
        self.last = value;
    }
}

/// Frames that pass the tap twice, out and back (EtherCAT).
#[derive(Debug, Default)]
struct Echo {
    out: Vec<(u8, i64)>,
    round_trip: Sketch,
    unreturned: u64,
    unsent: u64,
    /// Whether frames were seen before they passed a station, so that one which passed is a return.
    has_fresh: bool,
}

impl Echo {
    /// Takes a frame; whether it is a return.
    fn take(&mut self, index: u8, passed: bool, at: i64) -> bool {
        let place = self.out.iter().position(|(known, _)| *known == index);
        self.has_fresh |= !passed;
        if passed {
            if let Some(place) = place {
                let (_, sent) = self.out.swap_remove(place);
                self.round_trip.add(at.saturating_sub(sent));
                return true;
            }
            if self.has_fresh {
                self.unsent += 1;
                return true;
            }
        }
        if let Some(place) = place {
            self.unreturned += 1;
            self.out[place].1 = at;
        } else {
            self.out.push((index, at));
        }
        false
    }

    /// The result; `None` if nothing came back, as at a tap of one direction.
    fn report(&self) -> Option<EchoReport> {
        (self.round_trip.n() > 0 || self.unsent > 0).then(|| EchoReport {
            round_trip: Distribution::of(&self.round_trip),
            unreturned: self.unreturned + self.out.len() as u64,
            unsent: self.unsent,
        })
    }
}

/// What speaks for and against RTP in a UDP stream.
#[derive(Debug, Default)]
struct Rtp {
    source: u32,
    fitting: u64,
    numbering: Numbering,
}

impl Rtp {
    fn take(&mut self, hint: Option<(u32, u16)>, at: i64, typical: Option<i64>) {
        let Some((source, number)) = hint else { return };
        if self.fitting == 0 {
            self.source = source;
        }
        if source == self.source {
            self.fitting += 1;
            self.numbering.take(Rule::Bits(16), number.into(), None, at, typical);
        }
    }

    fn is_rtp(&self, frames: u64) -> bool {
        let (Some(limit), numbering) = (self.fitting.checked_div(SHARE_OF_RTP), &self.numbering) else {
            return false;
        };
        self.fitting >= LEAST_RTP
            && frames - self.fitting <= limit
            && numbering.resets <= limit
            && numbering.duplicates <= limit
            && numbering.missing <= self.fitting
    }
}
