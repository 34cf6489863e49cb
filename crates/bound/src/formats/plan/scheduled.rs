//! Time-triggered flows: delays by their schedules, and places that can drop their frames.
//!
//! Schedules are exact, so no curve is needed. The time from handing a message over to its dispatch follows from the
//! plan, if its sender has one place in the cycle (as TimeAwareOffset of IEEE Std 802.1Q-2022, clause 46); else it may
//! have just missed a dispatch. Then a frame leaves every port as its window opens (SAE AS6802: timely block), or later
//! by what may be on the line then (shuffling, preemption). The plan checks clashes of windows; here its assumptions
//! are checked: that messages are in time for their dispatch, frames for their windows, and hosts for the frames in
//! their rings.

use num_integer::Integer;
use wg_frame::time::Span;
use wg_plan::{
    Attachment, Flow as PlannedFlow, ForwardingMode, Hop, Integration, NodeIndex, NodeKind, Route, Send,
    SwitchModel, TimeTriggered,
};

use super::{AROUND_FRAME, PREAMBLE, Reading, least, seconds};
use crate::rational::Rational;

type Drops = Vec<(String, String)>;
/// Length of the header by which a cut-through switch forwards, in bytes.
const HEADER: i128 = 14;
/// Length of the gap after a frame, or after one that was cut off, in bytes.
const GAP: i128 = AROUND_FRAME - PREAMBLE;

/// Delay of a frame from its dispatch to the last bit at its receiver.
pub(super) struct Course {
    /// Greatest delay; `None` if it may miss a window, and the next one as well.
    pub(super) longest: Option<Rational>,
    /// Variation of the delay from frame to frame.
    pub(super) late: Rational,
    pub(super) drops: Drops,
}

/// Time of handing a message over, after its due instant.
pub(super) struct HandedOver {
    /// Least time.
    pub(super) soonest: Rational,
    /// Variation: how much later another message may be, but for the ticks of the clock.
    pub(super) varies: Rational,
}

impl Reading<'_> {
    /// Places that may drop frames of a flow, with reasons.
    pub(super) fn scheduled_drops(&self, flow: &PlannedFlow, send: &Send, schedule: &TimeTriggered) -> Drops {
        let mut drops: Drops = self.backlog_full(flow.from).into_iter().collect();
        drops.extend(self.superseded(flow, send, schedule));
        for route in &flow.routes {
            for pair in route.hops.windows(2) {
                drops.extend(self.kept_too_long(flow, send, schedule, pair));
            }
            drops.extend(route.receiver().and_then(|receiver| self.of_receiver(receiver)));
        }
        drops.sort();
        drops.dedup();
        drops
    }

    /// A working thread need not be woken: messages of other flows may make a call earlier, and later.
    pub(super) fn handed_over(&self, flow: &PlannedFlow, send: &Send) -> HandedOver {
        let own = self.transmit_cost(flow.from, flow.protocol, send.payload);
        let work = self.busy.get(&flow.from).cloned().unwrap_or_default();
        let others = (&work - &own).max(Rational::ZERO);
        let woken = &least(&self.host(flow.from).send_wake_up) + &self.read_cost(flow.from).0;
        let varies = &self.sending_varies(flow.from) + &others;
        if others.is_zero() {
            return HandedOver { soonest: woken, varies };
        }
        HandedOver { soonest: Rational::ZERO, varies: &varies + &woken }
    }

    /// Least time from the earliest readiness of a message to the next dispatch: messages are ready at instants of the
    /// period that are this step apart, or multiples of it. Both follow the clock of their host, whatever it shows.
    fn left(&self, flow: &PlannedFlow, send: &Send, schedule: &TimeTriggered) -> (Rational, Rational) {
        let step = schedule.period.as_picos().gcd(&send.period.as_picos()).max(1);
        let step = seconds(Span::from_picos(step));
        let own = self.transmit_cost(flow.from, flow.protocol, send.payload);
        let ready =
            &(&seconds(self.run.warm_up + send.offset) + &self.handed_over(flow, send).soonest) + &own;
        (modulo(&(&seconds(schedule.offset) - &ready), &step), step)
    }

    /// Greatest time from the application's call to the dispatch of its message. One that is always in time waits from
    /// the earliest call for its instant; one that may miss it, for a complete period.
    pub(super) fn until_dispatch(
        &self,
        flow: &PlannedFlow,
        send: &Send,
        schedule: &TimeTriggered,
    ) -> Rational {
        let period = seconds(schedule.period);
        let own = self.transmit_cost(flow.from, flow.protocol, send.payload);
        let (left, step) = self.left(flow, send, schedule);
        let waits = if left < &self.handed_over(flow, send).varies + &self.coarse(flow.from) {
            period
        } else {
            &(&left + &period) - &step
        };
        let slow = &Rational::integer(2) - &self.fast(flow.from);
        &(&(&waits / &slow) + &own) + &self.coarse(flow.from)
    }

    /// A message that misses its dispatch is replaced by the next one, if the two then meet.
    fn superseded(
        &self,
        flow: &PlannedFlow,
        send: &Send,
        schedule: &TimeTriggered,
    ) -> Option<(String, String)> {
        let varies = &self.handed_over(flow, send).varies + &self.coarse(flow.from);
        if seconds(send.period) >= &seconds(schedule.period) + &varies {
            return None;
        }
        // A message that is ready at the very instant of dispatch is in time.
        (self.left(flow, send, schedule).0 < varies).then(|| {
            let why = "a message may miss its dispatch, and the next one takes its place".to_owned();
            (format!("the dispatch of \"{}\"", self.name(flow.from)), why)
        })
    }

    /// Delay of a frame along a route: from window to window, and to the last bit at the receiver.
    pub(super) fn course(&self, send: &Send, schedule: &TimeTriggered, route: &Route) -> Option<Course> {
        let last = route.hops.last()?;
        schedule.receptions.iter().find(|reception| reception.at == last.to)?;
        let whole = i128::from(self.bits_of(send));
        let (period, mut opens) = (seconds(schedule.period), seconds(schedule.offset));
        // Relative to the opening of a window: how late the frame may be, and when it is at the next port.
        let (mut span, mut late, mut comes) = (Rational::ZERO, Rational::ZERO, Rational::ZERO);
        let mut drops = Drops::new();
        for (place, hop) in route.hops.iter().enumerate() {
            let window = schedule.windows.iter().find(|window| window.at == hop.from)?;
            let mut step = modulo(&(&seconds(window.offset) - &opens), &period);
            if place > 0 {
                // A frame that comes after an opening takes the next one.
                step = if step.is_zero() { period.clone() } else { step };
                let behind = (&comes - &step).max(Rational::ZERO);
                late = &behind + &self.held_up_at(hop.from, !behind.is_zero());
            }
            (opens, span) = (seconds(window.offset), &span + &step);
            let link = &self.network.links[hop.link as usize];
            let line = |bits: i128| Rational::new(bits, i128::from(link.rate.bits_per_second()));
            if &late + &line(whole) > seconds(window.length) {
                let name = &self.model.servers[self.servers[&hop.from]].name;
                let why = "a frame may come too late for it, and the next one then meets it".to_owned();
                drops.push((format!("the window at port \"{name}\""), why));
            }
            let lead =
                if place == 0 { seconds(self.host(hop.from.node).interface_delay) } else { Rational::ZERO };
            let (needed, after) = self.onwards(whole, hop, route.hops.get(place + 1));
            comes = &(&late + &line(needed)) + &(&lead + &after);
        }
        let longest = drops.is_empty().then(|| {
            let slow = &Rational::integer(2) - &self.fast(last.from.node);
            &(&(&span / &slow) + &comes) + &self.coarse(last.from.node)
        });
        drops.extend(self.refused(whole, schedule, last, &comes));
        let late = &late + &self.coarse(last.from.node);
        Some(Course { longest, late, drops })
    }

    /// Bits that must be received before the next node forwards a frame, and the delays of the wire and that node.
    fn onwards(&self, whole: i128, hop: &Hop, next: Option<&Hop>) -> (i128, Rational) {
        let all = whole - 8 * GAP;
        let Some(next) = next else {
            return (all, seconds(self.network.links[hop.link as usize].delay));
        };
        let [came, goes] = [hop, next].map(|hop| self.network.links[hop.link as usize].rate);
        let cuts_through =
            |switch: &SwitchModel| switch.forwarding_mode == ForwardingMode::CutThrough && came == goes;
        let needed = match &self.network.nodes[usize::from(hop.to.node)].kind {
            NodeKind::Switch(switch) if cuts_through(switch) => 8 * (PREAMBLE + HEADER),
            _ => all,
        };
        (needed, self.forwarding(hop, next).0)
    }

    /// How long other frames may occupy the line of a port when a frame comes to its window. One that comes after the
    /// opening may find the line occupied under timely block as well: while nothing waited for the window it was free
    /// for all.
    fn held_up_at(&self, port: Attachment, behind: bool) -> Rational {
        let rate = &self.model.servers[self.servers[&port]].service[0].rate;
        match self.integration(port) {
            Integration::TimelyBlock if !behind => Rational::ZERO,
            Integration::Preemption => &Rational::integer(8 * (PREAMBLE + GAP)) / rate,
            Integration::TimelyBlock | Integration::Shuffling => &self.longest_other(port) / rate,
        }
    }

    /// The receiver, if it does not accept a frame as late, or as early, as this one may be.
    fn refused(
        &self,
        whole: i128,
        schedule: &TimeTriggered,
        last: &Hop,
        comes: &Rational,
    ) -> Option<(String, String)> {
        let link = &self.network.links[last.link as usize];
        let line = |bits: i128| Rational::new(bits, i128::from(link.rate.bits_per_second()));
        // Its instant is that of a frame of the longest length.
        let longest = 8 * (i128::from(schedule.longest_frame) + AROUND_FRAME);
        let planned = &line(longest - 8 * GAP) + &seconds(link.delay);
        let outside =
            comes - &planned > seconds(schedule.late) || line(longest - whole) > seconds(schedule.early);
        outside.then(|| {
            let why = "they may come outside the time in which it accepts them".to_owned();
            (format!("the acceptance of \"{}\"", self.name(last.to.node)), why)
        })
    }

    /// A switch on the path that holds a frame so long that the next one of its flow may come. The plan refuses lengths
    /// and delays for which that would be wrong.
    fn kept_too_long(
        &self,
        flow: &PlannedFlow,
        send: &Send,
        schedule: &TimeTriggered,
        pair: &[Hop],
    ) -> Option<(String, String)> {
        let NodeKind::Switch(switch) = &self.network.nodes[usize::from(pair[0].to.node)].kind else {
            return None;
        };
        let at = |hop: &Hop| schedule.windows.iter().find(|window| window.at == hop.from);
        let (before, here) = (at(&pair[0])?, at(&pair[1])?);
        let waits = modulo(&seconds(here.offset - before.offset), &seconds(schedule.period));
        let length = self.sizes(flow).first().copied().unwrap_or_default();
        let bits = Rational::integer(8 * (length + PREAMBLE));
        let link = &self.network.links[pair[0].link as usize];
        let line = &bits / &Rational::integer(i128::from(link.rate.bits_per_second()));
        let comes = &(&line + &seconds(link.delay)) + &seconds(switch.processing_delay);
        let next = &seconds(send.period.max(schedule.period)) + &comes;
        (&waits + &seconds(here.length) > next).then(|| {
            let why = "the next frame may come before one has left, and takes its place".to_owned();
            (format!("switch \"{}\"", self.name(pair[0].to.node)), why)
        })
    }

    /// The receive ring of a host without reading time, unless it is proved that the host is interrupted before the
    /// ring is full.
    fn of_receiver(&self, receiver: NodeIndex) -> Option<(String, String)> {
        if self.readers.contains_key(&receiver) {
            return None;
        }
        let name = format!("the receive ring of \"{}\"", self.name(receiver));
        self.ring_full(receiver, self.slots(receiver)).map(|why| (name, why))
    }
}

/// Remainder of a time modulo the period, from 0 to less than one period.
fn modulo(time: &Rational, period: &Rational) -> Rational {
    let turns = (time / period).to_f64_down().floor();
    let mut left = time - &(period * &Rational::from_f64(turns).unwrap_or_default());
    while left.signum() < 0 {
        left = &left + period;
    }
    while left >= *period {
        left = &left - period;
    }
    left
}
