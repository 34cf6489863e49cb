//! Places that drop time-triggered frames. Whether windows clash the plan checks; here is what it takes as given: that
//! messages come in time for their dispatch, frames for their windows, and hosts to what waits in their rings.

use num_integer::Integer;
use wg_frame::time::Span;
use wg_plan::{Flow as PlannedFlow, Hop, NodeIndex, NodeKind, Protocol, Send, TimeTriggered};

use super::{PREAMBLE, Reading, least, seconds};
use crate::rational::Rational;

type Drops = Vec<(String, String)>;

impl Reading<'_> {
    /// Places, and why each may drop frames of a flow.
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

    /// A message that misses its dispatch is replaced by the next one, where the two then meet.
    fn superseded(
        &self,
        flow: &PlannedFlow,
        send: &Send,
        schedule: &TimeTriggered,
    ) -> Option<(String, String)> {
        let own = self.transmit_cost(flow.from, flow.protocol, send.payload);
        let work = self.busy.get(&flow.from).cloned().unwrap_or_default();
        let others = (&work - &own).max(Rational::ZERO);
        let varies = &(&self.sending_varies(flow.from) + &others) + &self.coarse(flow.from);
        let host = self.host(flow.from);
        let woken = &least(&host.send_wake_up) + &self.read_cost(flow.from).0;
        let soonest = &(&woken + &own) + &seconds(host.interface_delay);
        let (period, made) = (schedule.period.as_picos(), send.period.as_picos());
        if seconds(send.period) >= &seconds(schedule.period) + &varies {
            return None;
        }
        // Messages come at these phases against dispatches; one must not come on both sides of one.
        let step = period.gcd(&made).max(1);
        let ready = seconds(self.run.warm_up + send.offset);
        let until = &(&seconds(schedule.offset) - &ready) - &soonest;
        let left = modulo(&until, &seconds(Span::from_picos(step)));
        // Ready at the very instant of dispatch is in time.
        (left < varies).then(|| {
            let why = "a message may miss its dispatch, and the next one takes its place".to_owned();
            (format!("the dispatch of \"{}\"", self.name(flow.from)), why)
        })
    }

    /// A switch on its way that keeps a frame so long that the next one of its flow may come. Lengths and delays that it
    /// would not do with the plan refuses.
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

    /// The receive ring, where it is not proved that it is read before it is full.
    fn of_receiver(&self, receiver: NodeIndex) -> Option<(String, String)> {
        let name = format!("the receive ring of \"{}\"", self.name(receiver));
        let slots = self.slots(receiver);
        let comes = |planned: &&PlannedFlow| planned.receivers().any(|node| node == receiver);
        let own: Vec<&PlannedFlow> = self.run.flows.iter().filter(comes).collect();
        let sent = |planned: &PlannedFlow| self.run.sends.iter().find(|send| send.flow == planned.id);
        let cost = |planned: &PlannedFlow| {
            sent(planned)
                .map_or(Rational::ZERO, |send| self.receive_cost(receiver, planned.protocol, send.payload))
        };
        let work = own.iter().fold(Rational::ZERO, |sum, planned| &sum + &cost(planned));
        if work.is_zero() {
            return self.ring_full(receiver, slots).map(|why| (name, why));
        }
        let others = own.iter().any(|planned| planned.protocol != Protocol::Tt && sent(planned).is_some())
            || self.run.injects.iter().any(|load| load.to == receiver && self.host(receiver).receives_load);
        if others {
            return Some((name, "others are read there as well, and not counted here with them".to_owned()));
        }
        // One frame of each flow at most, as each is read before the next one of it comes.
        let soonest = own.iter().filter_map(|planned| planned.schedule.as_ref()).map(|one| one.period).min();
        let is_read = soonest.is_some_and(|period| &self.told(receiver) + &work <= seconds(period));
        let fit = i128::try_from(own.len()).is_ok_and(|flows| flows < i128::from(slots.max(1)) + 1);
        (!is_read || !fit).then(|| (name, format!("more may wait there than its {slots} places hold")))
    }
}

/// What is left of a time beyond whole periods, from 0 to less than one.
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
