//! The integration cycles of a device: what is in schedule, what is not, and the correction of the clock.

use wg_frame::time::Span;

use super::{CHANNELS, Clique, Parameters};
use crate::clock::LocalTime;

/// Next event in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The cycle begins: masters send, and asynchronous and relative cliques are detected.
    Begin,
    /// The membership is evaluated.
    Evaluate,
    /// The clock is corrected.
    Correct,
}

/// The best frame in schedule of a channel.
#[derive(Clone, Copy, Debug)]
struct Best {
    members: u32,
    pit: LocalTime,
}

#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// Instant at which the current cycle began.
    base: LocalTime,
    pub(super) number: u32,
    phase: Phase,
    /// Offset in the cycle at which the compressed frame is expected.
    scheduled: Span,
    /// Time by which a faulty master begins its cycle earlier.
    lead: Span,
    best: [Option<Best>; CHANNELS],
    /// Masters out of schedule: two, reset in turn, so that one always covers a whole cycle and more.
    asynchronous: [u32; 2],
    /// Masters in schedule in the last evaluation; `None`: there was none.
    pub(super) members: Option<u32>,
}

const TICK: Span = Span::from_picos(1);

impl Cycle {
    pub(super) const fn new(scheduled: Span, lead: Span) -> Self {
        Self {
            base: LocalTime::ZERO,
            number: 0,
            phase: Phase::Begin,
            scheduled,
            lead,
            best: [None; CHANNELS],
            asynchronous: [0; 2],
            members: None,
        }
    }

    /// Begins with cycle `number` at `base`.
    pub(super) fn begin_at(&mut self, base: LocalTime, number: u32) {
        self.best = [None; CHANNELS];
        (self.base, self.number, self.phase) = (base, number, Phase::Begin);
        (self.asynchronous, self.members) = ([0; 2], None);
    }

    /// Joins the cycle whose frame was permanent at `pit`: this is as scheduled.
    pub(super) fn join(&mut self, pit: LocalTime, number: u32, channel: usize, members: u32) {
        self.begin_at(pit - self.scheduled, number);
        self.phase = Phase::Evaluate;
        self.best[channel] = Some(Best { members, pit });
    }

    /// Instant at which the next cycle begins.
    pub(super) fn next_begin(&self, parameters: &Parameters) -> LocalTime {
        self.base + parameters.integration_cycle
    }

    /// The next phase and its instant.
    pub(super) fn next(&self, parameters: &Parameters) -> (LocalTime, Phase) {
        let at = match self.phase {
            Phase::Begin => self.base - self.lead,
            Phase::Evaluate => self.base + self.scheduled + parameters.acceptance(),
            Phase::Correct => {
                self.base + self.scheduled + parameters.acceptance() + parameters.acceptance() + TICK
            }
        };
        (at, self.phase)
    }

    /// Takes a frame of cycle `number` that is permanent at `pit`, and returns whether it is in schedule.
    pub(super) fn take(
        &mut self,
        parameters: &Parameters,
        pit: LocalTime,
        number: u32,
        channel: usize,
        members: u32,
    ) -> bool {
        let off = (pit - (self.base + self.scheduled)).as_picos().abs();
        let in_schedule = number == self.number && off <= parameters.acceptance().as_picos();
        if !in_schedule {
            self.asynchronous.iter_mut().for_each(|accumulated| *accumulated |= members);
            return false;
        }
        if let Some(best) = self.best.get_mut(channel)
            && best.is_none_or(|best| best.members.count_ones() <= members.count_ones())
        {
            *best = Some(Best { members, pit });
        }
        true
    }

    /// Whether the best frame of `channel` so far was permanent at `pit`.
    pub(super) fn is_best(&self, channel: usize, pit: LocalTime) -> bool {
        self.best[channel].is_some_and(|best| best.pit == pit)
    }

    /// Begins the cycle; returns the clique that is detected, if any.
    pub(super) fn begin(&mut self, parameters: &Parameters) -> Option<Clique> {
        let turn = (self.number % 2) as usize;
        let others = self.asynchronous[turn].count_ones();
        self.asynchronous[turn] = 0;
        self.phase = Phase::Evaluate;
        self.best = [None; CHANNELS];
        let own = self.members.map(u32::count_ones);
        if others >= u32::from(parameters.thresholds.asynchronous) {
            Some(Clique::Asynchronous)
        } else if others > 0 && own.is_some_and(|own| others >= own) {
            Some(Clique::Relative)
        } else {
            None
        }
    }

    /// Evaluates the membership: the masters in schedule in this cycle.
    pub(super) fn evaluate(&mut self) -> u32 {
        let members = self.best.iter().flatten().map(|best| best.members);
        let members = members.max_by_key(|members| members.count_ones()).unwrap_or(0);
        self.members = Some(members);
        self.phase = Phase::Correct;
        members
    }

    /// Corrects the clock to the mean of the channels and goes on to the next cycle. Returns the corrected position in
    /// the cluster cycle at `now`; `None` if no frame came.
    pub(super) fn correct(&mut self, parameters: &Parameters, now: LocalTime) -> Option<Span> {
        let expected = self.base + self.scheduled;
        let (mut sum, mut count) = (0_i128, 0_i128);
        for best in self.best.iter().flatten() {
            sum += i128::from((best.pit - expected).as_picos());
            count += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a mean is among its terms")]
        let late = (count > 0).then(|| Span::from_picos(sum.div_euclid(count) as i64));
        self.base = self.base + late.unwrap_or(Span::ZERO);
        let position = self.position(parameters, now);
        self.base = self.next_begin(parameters);
        self.number = (self.number + 1) % parameters.cycles;
        self.phase = Phase::Begin;
        late.map(|_| position)
    }

    /// Position in the cluster cycle at `now`.
    pub(super) fn position(&self, parameters: &Parameters, now: LocalTime) -> Span {
        let before = i128::from(parameters.integration_cycle.as_picos()) * i128::from(self.number);
        let position = before + i128::from((now - self.base).as_picos());
        #[expect(
            clippy::cast_possible_truncation,
            reason = "less than a cluster cycle, which is a day at most"
        )]
        let position = position.rem_euclid(i128::from(parameters.cluster_cycle().as_picos())) as i64;
        Span::from_picos(position)
    }
}
