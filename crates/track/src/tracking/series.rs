//! The series of a flow's measures, as sketches; the formulas are those of `docs/reference/measures.md`.

use wg_plan::{FlowId, NodeIndex};

use super::window::{Instant, Stretch, UNSEEN};
use wg_record::Sketch;

macro_rules! measures {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)?) => {
        /// A measure with a value per message or pair of messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Measure { $($(#[$doc])* $variant),* }
        impl Measure {
            /// All measures.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The name in files and reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

measures! {
    /// `rx_app - tx_app`
    Latency = "latency",
    /// `rx_drv - tx_drv`
    DriverLatency = "driver_latency",
    /// `rx_app - intended`
    ServiceLatency = "service_latency",
    /// `tx_app - intended`
    SendError = "send_error",
    /// `back_rx_app - back_tx_app`
    ReturnLatency = "return_latency",
    /// `back_rx_app - tx_app`
    Rtt = "rtt",
    /// `back_tx_app - rx_app`, of complete splits
    Turnaround = "turnaround",
    /// Application to driver on every sending leg, of complete splits
    StackDown = "stack_down",
    /// Driver to driver on every leg, of complete splits
    Network = "network",
    /// Driver to application on every receiving leg, of complete splits
    StackUp = "stack_up",
    /// `tx_app` against the message before, numbers following on each other
    Period = "period",
    /// Latency against the message before, numbers following on each other
    Ipdv = "ipdv",
    /// `rx_app` against the arrival before
    ReceivePeriod = "receive_period",
    /// `tx_wire` against the frame before on network A
    BagSpacing = "bag_spacing",
    /// Shortfall of a spacing against the BAG
    BagJitter = "bag_jitter",
    /// `|rx_wire_b - rx_wire|`
    Skew = "skew",
    /// `rx_wire` against the middle of its reception window, in the period
    WindowError = "window_error",
}

/// Number of values added to a sketch at once.
const AT_ONCE: usize = 256;

/// The previous message, as far as the next one needs it.
#[derive(Clone, Copy, Debug)]
struct Before {
    life: u64,
    sequence: u32,
    /// Value to compare the next one with, ps.
    value: i64,
}

/// The sketches of one flow and receiver, of its measured part.
#[derive(Debug, Default)]
pub struct FlowSeries {
    sketches: Vec<Sketch>,
    /// Values that are added together, while their sketch is in cache.
    waiting: Vec<i64>,
    /// Waiting values of measures whose values come one by one.
    spaced: [Vec<i64>; 3],
    is_relayed: bool,
    is_on_both: bool,
    bag_ps: Option<i64>,
    /// Period and planned reception, ps.
    schedule: Option<(i64, i64)>,
    /// Previous messages for the period and for the variation of latency.
    before: [Option<Before>; 2],
    arrived: Option<i64>,
    left: Option<i64>,
    /// Whether the values of each measure are collected.
    wanted: Vec<bool>,
}

impl FlowSeries {
    pub(super) fn new(flow: &wg_plan::Flow, to: NodeIndex, is_relayed: bool) -> Self {
        Self {
            sketches: Measure::ALL.iter().map(|_| Sketch::default()).collect(),
            waiting: Vec::new(),
            spaced: Default::default(),
            is_relayed,
            is_on_both: flow.network.is_none(),
            bag_ps: flow.virtual_link.as_ref().map(|link| link.contract.bag().span().as_picos()),
            schedule: schedule_of(flow, to),
            before: [None; 2],
            arrived: None,
            left: None,
            wanted: vec![true; Measure::ALL.len()],
        }
    }

    /// Restricts collection to these measures.
    pub(super) fn keep_only(&mut self, measures: &[Measure]) {
        self.wanted = Measure::ALL.iter().map(|measure| measures.contains(measure)).collect();
    }

    #[inline]
    fn wants(&self, measure: Measure) -> bool {
        self.wanted.get(measure as usize).is_some_and(|wanted| *wanted)
    }

    /// Non-empty sketches, by name.
    pub fn sketches(&self) -> impl Iterator<Item = (&'static str, &Sketch)> {
        let named = Measure::ALL.iter().map(|measure| measure.name()).zip(&self.sketches);
        named.filter(|(_, sketch)| sketch.n() > 0)
    }

    /// The sketch of `measure`.
    pub fn sketch(&self, measure: Measure) -> Option<&Sketch> {
        self.sketches.get(measure as usize)
    }

    /// Adds the time since the previous event, together with others of its measure.
    #[inline]
    fn add(&mut self, measure: Measure, ps: i64) {
        let spaced = &mut self.spaced[measure as usize - Measure::ReceivePeriod as usize];
        spaced.push(ps);
        if spaced.len() == AT_ONCE {
            self.sketches[measure as usize].add_all(spaced);
            spaced.clear();
        }
    }

    /// Adds the waiting values and frees their memory.
    pub(super) fn finish(&mut self) {
        for (measure, spaced) in [Measure::ReceivePeriod, Measure::BagSpacing, Measure::BagJitter]
            .into_iter()
            .zip(&mut self.spaced)
        {
            self.sketches[measure as usize].add_all(&std::mem::take(spaced));
        }
        // The rest is kept until all flows are finished.
        self.waiting = Vec::new();
    }

    /// Takes the arrival time of a message at the application of the outward leg.
    #[inline]
    pub(super) fn arrived(&mut self, ps: i64) {
        if self.wants(Measure::ReceivePeriod)
            && let Some(before) = self.arrived.replace(ps)
        {
            self.add(Measure::ReceivePeriod, ps.saturating_sub(before));
        }
    }

    /// Takes the departure time of a frame on network A.
    #[inline]
    pub(super) fn left(&mut self, ps: i64) {
        let Some(bag) = self.bag_ps else { return };
        if let Some(before) = self.left.replace(ps) {
            let spacing = ps.saturating_sub(before);
            self.add(Measure::BagSpacing, spacing);
            self.add(Measure::BagJitter, bag.saturating_sub(spacing).max(0));
        }
    }

    /// Takes messages that are being closed, in the order of numbers; `unsent` are positions without a message.
    pub(super) fn close(&mut self, life: u64, stretch: Stretch<'_>, unsent: &[usize]) {
        use Instant::{BackRxApp, BackRxDrv, BackTxApp, BackTxDrv, Intended, RxApp, RxDrv, TxApp, TxDrv};
        let messages = Sent { stretch, unsent };
        self.take(Measure::Latency, messages, &[(RxApp, TxApp)]);
        self.take(Measure::DriverLatency, messages, &[(RxDrv, TxDrv)]);
        self.take(Measure::ServiceLatency, messages, &[(RxApp, Intended)]);
        self.take(Measure::SendError, messages, &[(TxApp, Intended)]);
        let out = [(TxDrv, TxApp), (RxDrv, TxDrv), (RxApp, RxDrv)];
        if self.is_relayed {
            self.take(Measure::ReturnLatency, messages, &[(BackRxApp, BackTxApp)]);
            self.take(Measure::Rtt, messages, &[(BackRxApp, TxApp)]);
            let back = [(BackTxDrv, BackTxApp), (BackRxDrv, BackTxDrv), (BackRxApp, BackRxDrv)];
            // The parts of a split are taken over the same messages, or they would not add up.
            let whole = [TxApp, TxDrv, RxDrv, RxApp, BackTxApp, BackTxDrv, BackRxDrv, BackRxApp];
            self.take_whole(Measure::Turnaround, messages, &[(BackTxApp, RxApp)], &whole);
            for (measure, part) in SPLIT.into_iter().zip(0..) {
                self.take_whole(measure, messages, &[out[part], back[part]], &whole);
            }
        } else {
            for (measure, part) in SPLIT.into_iter().zip(out) {
                self.take_whole(measure, messages, &[part], &[TxApp, TxDrv, RxDrv, RxApp]);
            }
        }
        if self.is_on_both {
            self.take(Measure::Skew, messages, &[(Instant::RxWireB, Instant::RxWire)]);
        }
        if let (Some((period, planned)), Some(came)) = (self.schedule, stretch.column(Instant::RxWire)) {
            let half = period / 2;
            let errors = messages.places().map(|place| came[place]).filter(|came| *came != UNSEEN);
            let errors = errors.map(|came| (came - planned + half).rem_euclid(period) - half);
            self.waiting.extend(errors);
            self.settle(Measure::WindowError);
        }
        self.take_steps(life, messages);
    }

    /// Adds the sums of differences of the pairs (end, start), for messages that have all their times.
    fn take(&mut self, measure: Measure, messages: Sent<'_>, pairs: &[(Instant, Instant)]) {
        self.take_whole(measure, messages, pairs, &[]);
    }

    /// As [`take`](Self::take), for messages that have all of `needed` too.
    fn take_whole(
        &mut self,
        measure: Measure,
        messages: Sent<'_>,
        pairs: &[(Instant, Instant)],
        needed: &[Instant],
    ) {
        if !self.wants(measure) {
            return;
        }
        let column = |instant: &Instant| messages.stretch.column(*instant);
        let pair = |(end, start): &(Instant, Instant)| column(end).zip(column(start));
        let Some(needed) = needed.iter().map(column).collect::<Option<Vec<&[i64]>>>() else { return };
        let is_whole = |place: usize| needed.iter().all(|column| column[place] != UNSEEN);
        let mut pairs = pairs.iter().map(pair);
        let Some(Some((ends, starts))) = pairs.next() else { return };
        let second = match pairs.next() {
            None => None,
            Some(None) => return,
            Some(second) => second,
        };
        // Zero has no sign here, and two copies come in either order.
        let is_magnitude = measure == Measure::Skew;
        if needed.is_empty() && second.is_none() && messages.unsent.is_empty() && !is_magnitude {
            let both = ends.iter().zip(starts).filter(|&(end, start)| *end != UNSEEN && *start != UNSEEN);
            self.waiting.extend(both.map(|(end, start)| end.saturating_sub(*start)));
            self.settle(measure);
            return;
        }
        for place in messages.places() {
            let (end, start) = (ends[place], starts[place]);
            if end == UNSEEN || start == UNSEEN || !is_whole(place) {
                continue;
            }
            let difference = end.saturating_sub(start);
            let more = second.map_or(0, |(ends, starts)| ends[place].saturating_sub(starts[place]));
            let sum = difference.saturating_add(more);
            self.waiting.push(if is_magnitude { sum.saturating_abs() } else { sum });
        }
        self.settle(measure);
    }

    /// Adds period and latency variation against the previous message.
    fn take_steps(&mut self, life: u64, messages: Sent<'_>) {
        let Some(sent) = messages.stretch.column(Instant::TxApp) else {
            self.before = [None; 2];
            return;
        };
        self.take_step(Measure::Period, life, messages, |place| sent[place]);
        let Some(came) = messages.stretch.column(Instant::RxApp) else {
            self.before[1] = None;
            return;
        };
        self.take_step(Measure::Ipdv, life, messages, |place| match (sent[place], came[place]) {
            (UNSEEN, _) | (_, UNSEEN) => UNSEEN,
            (sent, came) => came.saturating_sub(sent),
        });
    }

    /// Adds the differences of `value` between messages with consecutive numbers.
    fn take_step(&mut self, measure: Measure, life: u64, messages: Sent<'_>, value: impl Fn(usize) -> i64) {
        if !self.wants(measure) {
            return;
        }
        let of = usize::from(measure == Measure::Ipdv);
        let mut before = self.before[of].filter(|before| before.life == life);
        for place in messages.places() {
            #[expect(clippy::cast_possible_truncation, reason = "a stretch is no longer than the window")]
            let (sequence, value) = (messages.stretch.first + place as u32, value(place));
            if let Some(before) = before
                && before.sequence.checked_add(1) == Some(sequence)
                && before.value != UNSEEN
                && value != UNSEEN
            {
                self.waiting.push(value.saturating_sub(before.value));
            }
            before = Some(Before { life, sequence, value });
        }
        self.before[of] = before;
        self.settle(measure);
    }

    /// Adds the waiting values to a sketch.
    fn settle(&mut self, measure: Measure) {
        self.sketches[measure as usize].add_all(&self.waiting);
        self.waiting.clear();
    }
}

/// The parts of a latency or round trip.
const SPLIT: [Measure; 3] = [Measure::StackDown, Measure::Network, Measure::StackUp];

/// A stretch without the positions that hold no message.
#[derive(Clone, Copy)]
struct Sent<'a> {
    stretch: Stretch<'a>,
    unsent: &'a [usize],
}

impl<'a> Sent<'a> {
    fn places(&self) -> impl Iterator<Item = usize> + use<'a> {
        let mut unsent = self.unsent.iter().copied().peekable();
        (0..self.stretch.seen.len()).filter(move |place| unsent.next_if_eq(place).is_none())
    }
}

/// Period and planned instant of reception of a time-triggered flow at port 1 of `to`, ps.
fn schedule_of(flow: &wg_plan::Flow, to: NodeIndex) -> Option<(i64, i64)> {
    let schedule = flow.schedule.as_ref()?;
    let mut receptions = schedule.receptions.iter();
    let reception = receptions.find(|reception| reception.at.node == to && reception.at.port == 1)?;
    let period = schedule.period.as_picos();
    (period > 0).then_some((period, reception.offset.as_picos()))
}

/// Distributions of a run, flow by flow; they merge with those of other runs or parts.
#[derive(Debug, Default)]
pub struct Distributions {
    /// Distributions of the measures, by flow and receiver.
    pub flows: Vec<(FlowId, NodeIndex, FlowSeries)>,
    /// Residence times, by flow, switch and egress port.
    pub hops: Vec<(FlowId, u16, u16, Sketch)>,
}
