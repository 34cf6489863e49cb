//! Arrival statistics of a stream: counts, order and times of its frame numbers.

use wg_frame::layout::raw_payload_without_padding;
use wg_frame::probe::{self, Probe, ProbeFlags};
use wg_frame::time::{Epoch, WallNanos};
use wg_net::receive::RxFrame;
use wg_record::Sketch;

use super::gaps::Gaps;

/// Number of frame numbers below the highest whose arrival is stored; a power of two.
const WINDOW: u32 = 1 << 17;

/// Expected properties of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Flow number.
    pub flow: u16,
    /// Payload length in bytes; `None`: any. Also removes the padding of a raw frame of minimum length.
    pub payload: Option<usize>,
    /// Offset of the transmit time in the payload.
    pub transmit_time: Option<usize>,
    /// Nominal gap between frames, ps; `None` if it is not constant.
    pub gap_ps: Option<i64>,
}

/// Arrival statistics of one phase of a stream, kept without storing its frames.
///
/// `received = distinct + duplicates + behind`; sent frames that are not among the distinct ones are lost. A damaged
/// frame counts only as corrupted, since its number may be damaged too.
#[derive(Clone, Debug)]
pub struct Account {
    expected: Expected,
    /// Intact frames.
    pub received: u64,
    /// Distinct frame numbers.
    pub distinct: u64,
    /// Frames whose number had arrived before.
    pub duplicates: u64,
    /// Distinct frames that arrived after a higher number.
    pub reordered: u64,
    /// Frames with a wrong CRC.
    pub corrupted: u64,
    /// Frames more than 131 072 numbers below the highest, which may be first arrivals or duplicates.
    pub behind: u64,
    /// Highest frame number.
    pub highest: Option<u32>,
    /// Bytes on the wire, preamble and gap included.
    pub wire_bytes: u64,
    /// Times of the first and last arrival.
    pub span: Option<(WallNanos, WallNanos)>,
    /// Arrival time minus transmit time in the frame, ps.
    pub latency: Sketch,
    /// Gaps between transmit times of consecutive numbers.
    pub sent_gaps: Gaps,
    /// Gaps between arrival times of consecutive numbers.
    pub arrival_gaps: Gaps,
    /// Bits of the arrived numbers, modulo the window.
    window: Box<[u64]>,
    last: Option<(u32, i64, Option<i64>)>,
}

impl Account {
    /// Empty account.
    pub fn new(expected: Expected) -> Self {
        Self {
            expected,
            received: 0,
            distinct: 0,
            duplicates: 0,
            reordered: 0,
            corrupted: 0,
            behind: 0,
            highest: None,
            wire_bytes: 0,
            span: None,
            latency: Sketch::default(),
            sent_gaps: Gaps::default(),
            arrival_gaps: Gaps::default(),
            window: vec![0; (WINDOW / 64) as usize].into_boxed_slice(),
            last: None,
        }
    }

    /// Flow number of the account.
    pub fn flow(&self) -> u16 {
        self.expected.flow
    }

    /// Number of frame numbers below the highest that have not arrived.
    pub fn missing(&self) -> u64 {
        self.highest.map_or(0, |highest| (u64::from(highest) + 1).saturating_sub(self.distinct))
    }

    /// Counts an intact frame. `sent` and `arrived` are ps after the epoch.
    fn take(&mut self, number: u32, sent: Option<i64>, arrived: i64) {
        self.received += 1;
        if !self.note(number) {
            return;
        }
        self.distinct += 1;
        if let Some(sent) = sent {
            self.latency.add(arrived - sent);
        }
        if let (Some((before, arrived_before, sent_before)), Some(gap)) = (self.last, self.expected.gap_ps)
            && number == before.wrapping_add(1)
        {
            self.arrival_gaps.add(arrived - arrived_before, gap);
            if let (Some(sent), Some(sent_before)) = (sent, sent_before) {
                self.sent_gaps.add(sent - sent_before, gap);
            }
        }
        self.last = Some((number, arrived, sent));
    }

    /// True on the first arrival of this number.
    #[inline]
    fn note(&mut self, number: u32) -> bool {
        let (word, bit) = ((number % WINDOW / 64) as usize, 1_u64 << (number % 64));
        match self.highest {
            Some(highest) if number <= highest => {
                if highest - number >= WINDOW {
                    self.behind += 1;
                    return false;
                }
                if self.window[word] & bit != 0 {
                    self.duplicates += 1;
                    return false;
                }
                self.reordered += 1;
            }
            highest => {
                // Skipped numbers have not arrived, although their bits may be set by older ones.
                let from = highest.map_or(0, |highest| highest + 1);
                self.clear(from, number);
                self.highest = Some(number);
            }
        }
        self.window[word] |= bit;
        true
    }

    /// Clears the bits of numbers `from` to `to`, both inclusive.
    fn clear(&mut self, from: u32, to: u32) {
        if to - from >= WINDOW {
            self.window.fill(0);
            return;
        }
        for number in from..=to {
            self.window[(number % WINDOW / 64) as usize] &= !(1 << (number % 64));
        }
    }
}

/// Accounts of all streams that arrive at one interface, with warm-up and measured part separate.
#[derive(Clone, Debug)]
pub struct Accounts {
    epoch: Epoch,
    /// Measured part and warm-up by flow.
    pub streams: Vec<[Account; 2]>,
    /// Selected frames of unexpected streams, or without a probe header.
    pub foreign: u64,
}

/// Counted frame of an expected stream.
#[derive(Clone, Copy, Debug)]
pub struct CountedFrame {
    /// Probe header.
    pub probe: Probe,
    /// True if the CRC is correct.
    pub intact: bool,
    /// Frame length in bytes, DA to FCS.
    pub frame_len: usize,
}

impl Accounts {
    /// Accounts of these streams; transmit times are relative to `epoch`.
    pub fn new(epoch: Epoch, expected: &[Expected]) -> Self {
        let streams = expected.iter().map(|one| [Account::new(*one), Account::new(*one)]).collect();
        Self { epoch, streams, foreign: 0 }
    }

    /// Counts one frame; `None` if it is foreign.
    #[inline]
    pub fn take(&mut self, arrival: RxFrame<'_>) -> Option<CountedFrame> {
        let Some((payload, _)) = payload_of(arrival.frame) else {
            self.foreign += 1;
            return None;
        };
        let found = probe::peek(payload);
        let Some((found, accounts)) =
            found.and_then(|p| Some((p, self.streams.iter_mut().find(|a| a[0].flow() == p.flow)?)))
        else {
            self.foreign += 1;
            return None;
        };
        let account = &mut accounts[usize::from(found.flags.has(ProbeFlags::WARM_UP))];
        let payload = account.expected.payload.and_then(|len| payload.get(..len)).unwrap_or(payload);
        let frame_len = arrival.frame.len().max(wg_frame::ethernet::MIN_FRAME_LEN_WITHOUT_FCS) + 4;
        account.wire_bytes += wg_frame::ethernet::wire_len(frame_len) as u64;
        let (first, last) = account.span.unwrap_or((arrival.timestamp, arrival.timestamp));
        account.span = Some((first, last.max(arrival.timestamp)));
        let intact = matches!(probe::read(payload), Ok((_, true)));
        if intact {
            let at = account.expected.transmit_time.filter(|_| found.flags.has(ProbeFlags::TX_TIME));
            let sent = at.and_then(|at| probe::read_tx_time(payload, at).ok()).map(|time| time.as_picos());
            let arrived =
                arrival.timestamp.get().saturating_sub(self.epoch.wall().get()).saturating_mul(1_000);
            account.take(found.sequence, sent, arrived);
        } else {
            account.corrupted += 1;
        }
        Some(CountedFrame { probe: found, intact, frame_len })
    }
}

/// Payload of a raw or UDP frame, and true if it may be padded.
fn payload_of(frame: &[u8]) -> Option<(&[u8], bool)> {
    let (ether_type, at) = match frame.get(12..14)? {
        [0x81, 0x00] => (frame.get(16..18)?, 18),
        kind => (kind, 14),
    };
    match ether_type {
        [0x88, 0xB5] => Some((&frame[at..], frame.len() <= at + raw_payload_without_padding(at == 18))),
        [0x08, 0x00] => {
            let length = frame.get(at + 24..at + 26)?;
            let end = at + 20 + usize::from(u16::from_be_bytes([length[0], length[1]]));
            Some((frame.get(at + 28..end)?, false))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn account() -> Account {
        Account::new(Expected { flow: 1, payload: None, transmit_time: None, gap_ps: Some(10) })
    }

    proptest! {
        /// Comparison with the definition on a set of all numbers.
        #[test]
        fn every_frame_is_accounted_for_once(numbers in proptest::collection::vec(0_u32..300, 0..400)) {
            let mut account = account();
            let (mut seen, mut duplicates, mut reordered) = (BTreeSet::new(), 0, 0);
            for (at, number) in numbers.iter().enumerate() {
                let highest = seen.last().copied();
                if !seen.insert(*number) {
                    duplicates += 1;
                } else if highest.is_some_and(|highest| highest > *number) {
                    reordered += 1;
                }
                account.take(*number, None, at as i64 * 10);
            }
            prop_assert_eq!(account.received, numbers.len() as u64);
            prop_assert_eq!(account.distinct, seen.len() as u64);
            prop_assert_eq!((account.duplicates, account.reordered), (duplicates, reordered));
            prop_assert_eq!(account.missing(), seen.last().map_or(0, |h| u64::from(*h) + 1) - seen.len() as u64);
        }
    }

    #[test]
    fn a_window_that_has_moved_on_remembers_nothing_wrong() {
        let mut account = account();
        for number in [0, 1, WINDOW + 1, WINDOW, 1, 3 * WINDOW, 3 * WINDOW + 1] {
            account.take(number, None, 0);
        }
        // Number 1 is a whole window below WINDOW + 1.
        assert_eq!((account.distinct, account.behind, account.duplicates), (6, 1, 0));
        assert_eq!(account.received, account.distinct + account.duplicates + account.behind);
    }
}
