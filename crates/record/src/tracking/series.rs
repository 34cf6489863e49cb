//! The series of a flow's measures, as sketches; the formulas are those of `docs/reference/measures.md`.

use wg_plan::NodeIndex;

use super::sketch::Sketch;
use super::window::{Closing, Instant};

macro_rules! measures {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),* $(,)?) => {
        /// A measure with a value per message or pair of messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Measure { $($(#[$doc])* $variant),* }
        impl Measure {
            /// All of them.
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
    /// Latency against the message before, likewise
    Ipdv = "ipdv",
    /// `rx_app` against the arrival before
    ReceivePeriod = "receive_period",
    /// `|rx_wire_b - rx_wire|`
    Skew = "skew",
    /// `tx_wire` against the frame before on network A
    BagSpacing = "bag_spacing",
    /// What a spacing falls short of the BAG
    BagJitter = "bag_jitter",
    /// `rx_wire` against the middle of its reception window, in the period
    WindowError = "window_error",
}

/// Values added to a sketch at once.
const AT_ONCE: usize = 256;

/// The message before, as far as the next one needs it.
#[derive(Clone, Copy, Debug)]
struct Before {
    life: u64,
    sequence: u32,
    tx_app: Option<i64>,
    latency: Option<i64>,
}

/// The sketches of one flow and receiver, of its measured part.
#[derive(Debug, Default)]
pub struct FlowSeries {
    sketches: Vec<Sketch>,
    /// By measure: values that are added together, while their sketch is at hand.
    waiting: Vec<Vec<i64>>,
    is_relayed: bool,
    is_on_both: bool,
    bag_ps: Option<i64>,
    /// Period and planned reception, ps.
    schedule: Option<(i64, i64)>,
    before: Option<Before>,
    arrived: Option<i64>,
    left: Option<i64>,
}

impl FlowSeries {
    pub(super) fn new(flow: &wg_plan::Flow, to: NodeIndex, is_relayed: bool) -> Self {
        Self {
            sketches: Measure::ALL.iter().map(|_| Sketch::default()).collect(),
            waiting: Measure::ALL.iter().map(|_| Vec::new()).collect(),
            is_relayed,
            is_on_both: flow.network.is_none(),
            bag_ps: flow.virtual_link.as_ref().map(|link| link.bag.as_picos()),
            schedule: schedule_of(flow, to),
            before: None,
            arrived: None,
            left: None,
        }
    }

    /// Its sketches that have values, by name.
    pub fn sketches(&self) -> impl Iterator<Item = (&'static str, &Sketch)> {
        let named = Measure::ALL.iter().map(|measure| measure.name()).zip(&self.sketches);
        named.filter(|(_, sketch)| sketch.n() > 0)
    }

    /// The sketch of `measure`.
    pub fn sketch(&self, measure: Measure) -> Option<&Sketch> {
        self.sketches.get(measure as usize)
    }

    #[inline]
    fn add(&mut self, measure: Measure, ps: i64) {
        let waiting = &mut self.waiting[measure as usize];
        waiting.push(ps);
        if waiting.len() == AT_ONCE {
            self.sketches[measure as usize].add_all(waiting);
            waiting.clear();
        }
    }

    /// Takes what still waits.
    pub(super) fn settle(&mut self) {
        for (sketch, waiting) in self.sketches.iter_mut().zip(&mut self.waiting) {
            sketch.add_all(waiting);
            waiting.clear();
        }
    }

    /// Takes an arrival at the application of the outward leg.
    #[inline]
    pub(super) fn arrived(&mut self, ps: i64) {
        if let Some(before) = self.arrived.replace(ps) {
            self.add(Measure::ReceivePeriod, ps.saturating_sub(before));
        }
    }

    /// Takes a frame that left on network A.
    #[inline]
    pub(super) fn left(&mut self, ps: i64) {
        let Some(bag) = self.bag_ps else { return };
        if let Some(before) = self.left.replace(ps) {
            let spacing = ps.saturating_sub(before);
            self.add(Measure::BagSpacing, spacing);
            self.add(Measure::BagJitter, bag.saturating_sub(spacing).max(0));
        }
    }

    /// Takes a message that is being closed, in the order of numbers.
    #[inline]
    pub(super) fn message(&mut self, life: u64, message: &Closing<'_>) {
        use Instant::{BackRxApp, BackRxDrv, BackTxApp, BackTxDrv, Intended, RxApp, RxDrv, TxApp, TxDrv};
        let [intended, tx_app, tx_drv, rx_drv, rx_app] =
            [Intended, TxApp, TxDrv, RxDrv, RxApp].map(|instant| message.ps(instant));
        let latency = difference(rx_app, tx_app);
        let split = difference(tx_drv, tx_app)
            .zip(difference(rx_drv, tx_drv))
            .zip(difference(rx_app, rx_drv))
            .map(|((down, network), up)| [down, network, up]);
        let mut parts = split.filter(|_| !self.is_relayed);
        self.take(Measure::Latency, latency);
        self.take(Measure::DriverLatency, difference(rx_drv, tx_drv));
        self.take(Measure::ServiceLatency, difference(rx_app, intended));
        self.take(Measure::SendError, difference(tx_app, intended));
        if self.is_relayed {
            let [back_tx_app, back_tx_drv, back_rx_drv, back_rx_app] =
                [BackTxApp, BackTxDrv, BackRxDrv, BackRxApp].map(|instant| message.ps(instant));
            let back = difference(back_tx_drv, back_tx_app)
                .zip(difference(back_rx_drv, back_tx_drv))
                .zip(difference(back_rx_app, back_rx_drv))
                .map(|((down, network), up)| [down, network, up]);
            self.take(Measure::ReturnLatency, difference(back_rx_app, back_tx_app));
            self.take(Measure::Rtt, difference(back_rx_app, tx_app));
            if let (Some(out), Some(back)) = (split, back) {
                self.take(Measure::Turnaround, difference(back_tx_app, rx_app));
                parts = Some([0, 1, 2].map(|part| out[part].saturating_add(back[part])));
            }
        }
        if let Some([down, network, up]) = parts {
            self.add(Measure::StackDown, down);
            self.add(Measure::Network, network);
            self.add(Measure::StackUp, up);
        }
        if let Some(before) = self.before
            && before.life == life
            && before.sequence.checked_add(1) == Some(message.sequence)
        {
            self.take(Measure::Period, difference(tx_app, before.tx_app));
            self.take(Measure::Ipdv, difference(latency, before.latency));
        }
        self.before = Some(Before { life, sequence: message.sequence, tx_app, latency });
        if self.is_on_both {
            let skew = difference(message.ps(Instant::RxWireB), message.ps(Instant::RxWire));
            self.take(Measure::Skew, skew.map(i64::saturating_abs));
        }
        if let (Some((period, planned)), Some(came)) = (self.schedule, message.ps(Instant::RxWire)) {
            let half = period / 2;
            self.add(Measure::WindowError, (came - planned + half).rem_euclid(period) - half);
        }
    }

    #[inline]
    fn take(&mut self, measure: Measure, ps: Option<i64>) {
        if let Some(ps) = ps {
            self.add(measure, ps);
        }
    }
}

#[inline]
fn difference(end: Option<i64>, start: Option<i64>) -> Option<i64> {
    Some(end?.saturating_sub(start?))
}

/// Period and planned instant of reception of a time-triggered flow at port 1 of `to`, ps.
fn schedule_of(flow: &wg_plan::Flow, to: NodeIndex) -> Option<(i64, i64)> {
    let schedule = flow.schedule.as_ref()?;
    let mut receptions = schedule.receptions.iter();
    let reception = receptions.find(|reception| reception.at.node == to && reception.at.port == 1)?;
    let period = schedule.period.as_picos();
    (period > 0).then_some((period, reception.offset.as_picos()))
}
