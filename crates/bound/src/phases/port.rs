//! One class of one port at known instants: its longest busy periods, and when each frame has left at the latest.

use crate::instants::{Curve, GateTimes, Lost, Pattern};

/// Greatest number of instants at which a busy period of a port is tried to begin.
const MOST_STARTS: usize = 1_024;
/// Instants between which a busy period may begin with frames whose instants are not known, in a common period.
const GRID: i128 = 128;

/// Frames of a flow at the port, and the line time of each, with its gap, ps.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub pattern: Pattern,
    pub length: i128,
}

/// Traffic of a class, or of a class above it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// Flows whose instants are known. For classes above: from the earliest arrival to the latest departure.
    pub timed: Vec<Timed>,
    /// Flows of which only curves are known. For classes above: as late as they may be delayed.
    pub others: Vec<Curve>,
}

impl Traffic {
    /// Greatest line time of frames that come after `since` and not after `until`.
    fn within(&self, since: i128, until: i128) -> i128 {
        let timed: i128 = self.timed.iter().map(|one| one.pattern.meeting(since, until) * one.length).sum();
        timed + self.others.iter().map(|curve| curve.within(until - since)).sum::<i128>()
    }
}

/// A class of a port.
#[derive(Clone, Debug)]
pub(crate) struct Port<'a> {
    pub gate: &'a GateTimes,
    pub lost: Lost,
    pub own: Traffic,
    pub above: Traffic,
    /// A time after which gate and known instants are the same again, ps.
    pub every: i128,
}

impl Port<'_> {
    /// Latest end of what waits since `start`, if the busy period began after `since`: `work` and all frames above.
    fn ends(&self, (since, start): (i128, i128), work: i128) -> Option<i128> {
        let limit = start + 4 * self.every + work;
        let mut end = start;
        loop {
            let all = work + self.above.within(since, end);
            let next = self.gate.served(start, all, self.lost, limit)?;
            if next <= end {
                return Some(end);
            }
            end = next;
        }
    }

    /// Instants at which the number of frames that may belong to a busy period changes.
    fn starts(&self) -> Vec<i128> {
        let timed = self.own.timed.iter().chain(&self.above.timed);
        let mut found: Vec<i128> = timed
            .flat_map(|one| {
                let frames = one.pattern.over(self.every).frames;
                frames.into_iter().map(|(_, late)| late.rem_euclid(self.every)).collect::<Vec<_>>()
            })
            .collect();
        if !self.own.others.is_empty() || !self.above.others.is_empty() {
            found.extend((0..GRID).map(|part| part * self.every / GRID));
            let edges = self.gate.open.iter().flat_map(|one| [one.from, one.until]);
            found.extend(edges.map(|edge| edge.rem_euclid(self.every)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Latest departure, without the gap, of every frame of the known flows; `None`: a busy period may have no end.
    ///
    /// Whatever the instant at which a busy period begins, its frames are among those that may come from then on, and
    /// each has left when all that may come no later than itself is served.
    pub(crate) fn departures(&self) -> Option<Vec<Pattern>> {
        let mut found: Vec<Pattern> = self.own.timed.iter().map(|one| one.pattern.clone()).collect();
        for pattern in &mut found {
            *pattern = pattern.over(self.every);
        }
        let arrivals = found.clone();
        let starts = self.starts();
        if starts.len() > MOST_STARTS {
            return None;
        }
        for (index, start) in starts.iter().enumerate() {
            let since = match index {
                0 => starts.last()? - self.every,
                _ => starts[index - 1],
            };
            let mut busy = *start;
            loop {
                let end = self.ends((since, *start), self.own.within(since, busy))?;
                if end <= busy {
                    break;
                }
                busy = end;
                if busy - start > 8 * self.every {
                    return None;
                }
            }
            for (came, leaves) in arrivals.iter().zip(&mut found) {
                for ((_, late), (_, left)) in came.frames.iter().zip(&mut leaves.frames) {
                    // The frame itself, and those like it in later periods.
                    let mut turn = (since - late).div_euclid(self.every) + 1;
                    while late + turn * self.every <= busy {
                        let at = late + turn * self.every;
                        let end = self.ends((since, *start), self.own.within(since, at))?;
                        *left = (*left).max(end - self.lost.gap - turn * self.every);
                        turn += 1;
                    }
                }
            }
        }
        Some(found)
    }
}
