//! Loads: traffic that does not belong to the test's flows.

use wg_plan::wire::wire_bits;
use wg_plan::{Flow as PlannedFlow, Inject, NodeKind, Protocol};

use super::classes::{FIRST_COME, of_priority};
use super::{AROUND_FRAME, Reading, seconds};
use crate::curve::Bucket;
use crate::model::{Flow, Passage};
use crate::rational::Rational;

impl Reading<'_> {
    pub(super) fn inject(&mut self, index: usize, inject: &Inject) {
        let name = format!("inject {index} {} to {}", self.name(inject.on), self.name(inject.to));
        let element = format!("<inject on=\"{}\">", self.name(inject.on));
        if inject.exponential {
            self.say(
                &element,
                "its bursts come at exponential intervals, and no curve bounds them",
                "make it periodic",
            );
            return;
        }
        let threads = inject.threads.as_ref().map_or(1, |threads| i128::from(threads.number).max(1));
        let bits = i128::from(wire_bits(Protocol::Udp, None, inject.payload));
        let burst = Rational::integer(bits * i128::from(inject.burst) * threads);
        let interval = seconds(inject.interval);
        if interval.signum() <= 0 {
            self.say(&element, "its interval is not above zero", "give it a load");
            return;
        }
        let rate = &(&Rational::integer(bits * i128::from(inject.burst)) / &interval) * &self.fast(inject.on);
        let mut flow = Flow::new(name, vec![Bucket { burst, rate }]);
        flow.longest_frame = Rational::integer(bits);
        flow.shortest_frame = flow.longest_frame.clone();
        let stands_for = PlannedFlow::plain(0, Protocol::Udp, inject.route.clone());
        let ticks = &self.coarse(inject.on) + &self.ahead(inject.on, 0);
        let passages = self.passages(&stands_for, &inject.route.hops, (ticks.clone(), ticks));
        let target = self.name(inject.to).to_owned();
        let (end, reader) = self.arriving(&inject.route);
        // An interface discards load unless its host's model states otherwise.
        let reader = reader.filter(|_| self.host(inject.to).receives_load);
        flow.add_target(target, passages.into_iter().chain(reader), end);
        self.note_lengths([bits].into_iter());
        self.model.flows.push(flow);
    }

    pub(super) fn own_frames(&mut self) {
        let mut flows = Vec::new();
        for (index, node) in self.network.nodes.iter().enumerate() {
            let NodeKind::Switch(switch) = &node.kind else { continue };
            for (number, frames) in switch.own_frames.iter().enumerate() {
                let wire = 8 * (i128::from(frames.length) + AROUND_FRAME);
                let bits = Rational::integer(wire);
                let period = seconds(frames.period);
                if period.signum() <= 0 {
                    continue;
                }
                for (port, server) in self.servers.iter().filter(|(port, _)| usize::from(port.node) == index)
                {
                    if !frames.ports.is_empty() && !frames.ports.contains(&port.port) {
                        continue;
                    }
                    let name = format!("frames {number} of {}:{}", node.name, port.port);
                    let rate = &bits / &period;
                    let mut flow = Flow::new(name, vec![Bucket { burst: bits.clone(), rate }]);
                    flow.longest_frame = bits.clone();
                    flow.shortest_frame = bits.clone();
                    let class = if let Some(tsn) = switch.tsn_of(port.port) {
                        Self::rank(tsn, frames.priority)
                    } else if switch.strict_priority {
                        of_priority(frames.priority)
                    } else {
                        FIRST_COME
                    };
                    let passage = Passage { class, ..Passage::from(*server) };
                    flow.add_target("link", [passage], Rational::ZERO);
                    flows.push((flow, wire));
                }
            }
        }
        for (flow, bits) in flows {
            self.note_lengths([bits].into_iter());
            self.model.flows.push(flow);
        }
    }
}
