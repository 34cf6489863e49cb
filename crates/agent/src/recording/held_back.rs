//! Buffer of captured frames that are written only on request: the most recent frames, and the time spans requested.
//!
//! A capture of every frame fills a disk long before the records of its run do. A capture of the time around alarms
//! holds frames in memory until an alarm requests them or they expire, and writes only requested frames. Time is an
//! argument, and memory is bounded.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Maximum number of stored spans; beyond it the last span is extended.
const MOST_STRETCHES: usize = 1_024;

/// Requested time spans by the host's clock, ns: ascending and disjoint.
#[derive(Debug, Default)]
pub struct Asked(Mutex<Vec<[i64; 2]>>);

impl Asked {
    /// Requests the frames from `from` to `to`, including future ones.
    pub fn ask(&self, from: i64, to: i64) {
        let mut stretches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut from, mut to) = (from.min(to), to);
        stretches.retain(|&[begin, end]| {
            let apart = end < from || begin > to;
            if !apart {
                (from, to) = (from.min(begin), to.max(end));
            }
            apart
        });
        let place = stretches.partition_point(|&[begin, _]| begin < from);
        stretches.insert(place, [from, to]);
        if stretches.len() > MOST_STRETCHES
            && let Some([_, end]) = stretches.pop()
            && let Some(last) = stretches.last_mut()
        {
            last[1] = last[1].max(end);
        }
    }

    /// True if a request overlaps `from` to `to`.
    pub fn covers(&self, from: i64, to: i64) -> bool {
        let stretches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = stretches.partition_point(|&[_, end]| end < from);
        stretches.get(place).is_some_and(|&[begin, _]| begin <= to)
    }

    /// Removes requests that ended before `before`, of which no frame is held any more.
    fn forget(&self, before: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|&[_, end]| end >= before);
    }
}

/// Frames captured together, as blocks of a file.
#[derive(Debug)]
struct Portion {
    /// Times of the first and last frame, ns.
    span: [i64; 2],
    blocks: Vec<u8>,
    frames: u64,
}

/// Held frames.
#[derive(Debug)]
pub struct HeldBack {
    /// Time for which a frame can be requested, ns.
    patience: i64,
    /// Maximum number of bytes held.
    most: usize,
    portions: VecDeque<Portion>,
    bytes: usize,
    passed_over: u64,
    crowded_out: u64,
}

impl HeldBack {
    /// Empty buffer that holds at most `most` bytes, each frame for at most `patience` ns.
    pub fn new(patience: i64, most: usize) -> Self {
        Self { patience, most, portions: VecDeque::new(), bytes: 0, passed_over: 0, crowded_out: 0 }
    }

    /// Adds frames captured in this time span.
    pub fn hold(&mut self, span: [i64; 2], mut blocks: Vec<u8>, frames: u64) {
        if frames > 0 {
            // The vector grew by doubling, and the limit counts allocated memory.
            blocks.shrink_to_fit();
            self.bytes += blocks.len();
            self.portions.push_back(Portion { span, blocks, frames });
        }
    }

    /// Passes requested blocks to `put` with their number of frames, and drops those whose request time has expired;
    /// with `last`, drops all other blocks.
    pub fn let_out(&mut self, now: i64, asked: &Asked, last: bool, mut put: impl FnMut(&[u8], u64)) {
        let oldest = now.saturating_sub(self.patience);
        while let Some(front) = self.portions.front() {
            let [begin, end] = front.span;
            let wanted = asked.covers(begin, end);
            let too_many = self.bytes > self.most;
            if !(wanted || last || end < oldest || too_many) {
                break;
            }
            let Some(portion) = self.portions.pop_front() else { break };
            self.bytes -= portion.blocks.len();
            if wanted {
                put(&portion.blocks, portion.frames);
            } else {
                self.passed_over += portion.frames;
                if too_many && !last && end >= oldest {
                    self.crowded_out += portion.frames;
                }
            }
        }
        asked.forget(oldest);
    }

    /// Number of frames dropped without a request.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Number of these that were dropped early for lack of memory and could still have been requested.
    pub fn crowded_out(&self) -> u64 {
        self.crowded_out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What comes out of portions of one frame each, of which each is a byte that says when it came.
    fn let_out(held: &mut HeldBack, now: i64, asked: &Asked, last: bool) -> Vec<u8> {
        let mut out = Vec::new();
        held.let_out(now, asked, last, |blocks, frames| {
            assert_eq!(blocks.len() as u64, frames);
            out.extend_from_slice(blocks);
        });
        out
    }

    #[test]
    fn what_was_asked_for_in_time_comes_out_and_nothing_else() {
        let (asked, mut held) = (Asked::default(), HeldBack::new(10, 100));
        for at in 0..20_u8 {
            held.hold([i64::from(at); 2], vec![at], 1);
            assert_eq!(let_out(&mut held, i64::from(at), &asked, false), [0_u8; 0]);
        }
        // Those before 9 are too old; 15 to 17 were asked for, and those before them wait for others to ask.
        asked.ask(15, 17);
        assert_eq!(let_out(&mut held, 19, &asked, false), [0_u8; 0]);
        assert_eq!(held.passed_over(), 9);
        asked.ask(0, 10);
        assert_eq!(let_out(&mut held, 19, &asked, false), [9, 10]);
        asked.ask(19, 30);
        assert_eq!(let_out(&mut held, 25, &asked, false), [15, 16, 17]);
        held.hold([31; 2], vec![31], 1);
        assert_eq!(let_out(&mut held, 31, &asked, true), [19]);
        assert_eq!((held.passed_over(), held.crowded_out()), (9 + 4 + 2, 0));
    }

    #[test]
    fn memory_has_a_bound_and_what_it_costs_is_counted() {
        let (asked, mut held) = (Asked::default(), HeldBack::new(1_000, 5));
        for at in 0..9_u8 {
            held.hold([i64::from(at); 2], vec![at], 1);
            let_out(&mut held, i64::from(at), &asked, false);
            assert!(held.bytes <= 5);
        }
        assert_eq!((held.passed_over(), held.crowded_out()), (4, 4));
        asked.ask(0, 100);
        assert_eq!(let_out(&mut held, 9, &asked, false), [4, 5, 6, 7, 8]);
    }

    proptest! {
        #[test]
        fn stretches_cover_what_was_asked_for(
            stretches in prop::collection::vec((0_i64..200, 0_i64..20), 0..40), from in 0_i64..200, length in 0_i64..10
        ) {
            let asked = Asked::default();
            for &(begin, length) in &stretches {
                asked.ask(begin, begin + length);
            }
            let to = from + length;
            let covered = stretches.iter().any(|&(begin, length)| begin <= to && begin + length >= from);
            prop_assert_eq!(asked.covers(from, to), covered);
            let kept = asked.0.lock().unwrap().clone();
            prop_assert!(kept.windows(2).all(|pair| pair[0][1] < pair[1][0]));
        }
    }

    #[test]
    fn more_stretches_than_are_remembered_keep_too_much_rather_than_too_little() {
        let asked = Asked::default();
        let many = i64::try_from(MOST_STRETCHES).unwrap() + 5;
        for at in 0..many {
            asked.ask(10 * at, 10 * at + 1);
        }
        assert!((0..many).all(|at| asked.covers(10 * at, 10 * at)));
        assert_eq!(asked.0.lock().unwrap().len(), MOST_STRETCHES);
    }
}
