//! A flow as one of its receivers sees it: which records concern it, and what each of them says.
//!
//! A multicast flow has one of these per receiver, so that every count and every outcome is one receiver's and
//! `sent = delivered + lost` holds for each. What happens before the ways part concerns all of them.

use wg_plan::{FlowId, Network, NetworkId, NodeIndex, Run};

use super::store::{Instant, Messages, Way};
use crate::schema::{Crc, DropReason, Point, Record, RecordFlags};

/// Port of a node that has none on network B; ports count from 1.
const NO_PORT: u16 = 0;

#[derive(Debug)]
pub(super) struct FlowState {
    pub(super) id: FlowId,
    pub(super) from: NodeIndex,
    pub(super) to: NodeIndex,
    pub(super) relayed: bool,
    pub(super) deadline_ps: Option<i64>,
    /// Number of nodes on the longest way.
    hops: u16,
    /// By node: its place on the outward ways, or `hops` when it is on none.
    places: Vec<u16>,
    /// Ports of switches that the ways pass, in both directions; only of a multicast flow.
    ports: Vec<(NodeIndex, u16)>,
    /// Ports of sender and receiver on network B, where the flow travels on both.
    second_ports: [u16; 2],
    pub(super) measured: Messages,
    pub(super) warm_up: Messages,
}

impl FlowState {
    /// The flow as `to`, one of its receivers, sees it.
    pub(super) fn new(network: &Network, run: &Run, flow: &wg_plan::Flow, to: NodeIndex) -> Self {
        let is_multicast = !flow.also_to.is_empty();
        let ways: Vec<(NetworkId, &[NodeIndex])> =
            flow.ways().filter(|(_, way)| !is_multicast || way.last() == Some(&to)).collect();
        let hops = ways.iter().map(|(_, way)| way.len()).max().unwrap_or(0);
        let hops = u16::try_from(hops).unwrap_or(u16::MAX);
        let mut places = vec![hops; network.nodes.len()];
        for (_, way) in &ways {
            for (place, &node) in (0..hops).zip(*way) {
                if let Some(entry) = places.get_mut(usize::from(node)) {
                    // The receiver comes last on every way, however short.
                    *entry = if node == to && node != flow.from { hops - 1 } else { place };
                }
            }
        }
        let mut ports = Vec::new();
        for (on, way) in ways.iter().filter(|_| is_multicast) {
            for pair in way.windows(2) {
                let joins = |link: &&wg_plan::Link| {
                    let [a, b] = link.ends.map(|end| end.node);
                    link.network == *on && (pair == [a, b] || pair == [b, a])
                };
                let ends = network.links.iter().filter(joins).flat_map(|link| link.ends);
                ports.extend(ends.map(|end| (end.node, end.port)));
            }
        }
        let second_ports = if flow.network.is_none() {
            [flow.from, to].map(|node| port_on_b(network, node))
        } else {
            [NO_PORT; 2]
        };
        let sends = || run.sends.iter().filter(|send| send.flow == flow.id);
        Self {
            id: flow.id,
            from: flow.from,
            to,
            relayed: run.relays.iter().any(|relay| relay.flow == flow.id),
            deadline_ps: flow.deadline.map(wg_frame::time::Span::as_picos),
            hops,
            places,
            ports,
            second_ports,
            measured: Messages::new(sends().map(|send| send.count).max().unwrap_or(0)),
            warm_up: Messages::new(sends().map(|send| send.warm_up_count).max().unwrap_or(0)),
        }
    }

    fn place(&self, node: NodeIndex) -> u16 {
        self.places.get(usize::from(node)).copied().unwrap_or(self.hops)
    }

    /// Whether this record of the multicast flow, not taken at a receiver, tells of the copy on the way here.
    pub(super) fn is_passed_by(&self, record: &Record) -> bool {
        if record.node == self.from {
            return true;
        }
        let mut ports = self.ports.iter().filter(|(node, _)| *node == record.node).peekable();
        // Where the plan does not tell the ports, the node must do.
        let knows = ports.peek().is_some();
        self.place(record.node) < self.hops && (!knows || ports.any(|(_, port)| *port == record.port))
    }

    /// What is known of the message of `record`.
    fn seen(&mut self, record: &Record) -> &mut super::store::Seen {
        let is_warm_up = record.flags.has(RecordFlags::WARM_UP);
        let messages = if is_warm_up { &mut self.warm_up } else { &mut self.measured };
        messages.entry(record.sequence)
    }

    /// Another receiver of the flow, or a switch on its way there, verified the message: so it was sent.
    pub(super) fn vouch(&mut self, record: &Record) {
        self.seen(record).verified = true;
    }

    /// Notes the record with its message. False when it is damaged and was seen off the flow's ways: then its
    /// header cannot be believed.
    pub(super) fn observe(&mut self, record: &Record, order: u64) -> bool {
        let returning = record.flags.has(RecordFlags::RETURN);
        let outward_place = self.place(record.node);
        let on_the_way = outward_place < self.hops;
        let damaged = record.crc == Crc::Bad;
        if damaged && !on_the_way {
            return false;
        }
        let place = if returning && on_the_way { self.hops - 1 - outward_place } else { outward_place };
        let way = Way::new(returning, place, record.point, record.node);
        let (at_from, at_to) = (record.node == self.from, record.node == self.to);
        let (is_relayed, second_ports) = (self.relayed, self.second_ports);
        let seen = self.seen(record);

        // The removal of a second copy ends no message.
        let is_second_copy = record.point == Point::Drop && record.reason == DropReason::SecondCopy;
        if is_second_copy {
            seen.second_copies = seen.second_copies.saturating_add(1);
        } else {
            seen.last = seen.last.max(way);
            if record.point == Point::Drop && record.reason != DropReason::None {
                seen.drop = seen.drop.max((way, record.reason.code()));
            }
        }
        if damaged {
            seen.corrupted += u32::from(record.point == Point::ApplicationReceive);
            return true;
        }
        seen.first = seen.first.min((way, record.length));
        if at_from && !returning && is_send_side(record.point) {
            seen.send_recorded = true;
            seen.handed_over |= record.point == Point::ApplicationSend;
        } else if record.crc == Crc::Ok {
            seen.verified = true;
        }

        // A one-way flow has no return leg: what comes back of it is meant for nobody.
        let leg_is_planned = is_relayed || !returning;
        let (at_source, at_destination) = if returning { (at_to, at_from) } else { (at_from, at_to) };
        let on_b = record.port != NO_PORT
            && ((at_from && record.port == second_ports[0]) || (at_to && record.port == second_ports[1]));
        let arrived = record.point == Point::ApplicationReceive;
        let intact = arrived && record.crc == Crc::Ok;
        let is_final = returning == is_relayed;
        if leg_is_planned
            && (intact || !arrived)
            && let Some(instant) = Instant::of(record.point, returning, at_source, at_destination, on_b)
        {
            let is_earliest = seen.note(instant, record.time);
            if intact && is_final && is_earliest {
                seen.first_copy_order = order;
            }
        }
        seen.arrivals += u32::from(arrived);
        if intact && !(leg_is_planned && at_destination) {
            seen.misdirected += 1;
        } else if intact && is_final {
            seen.copies += 1;
        }
        true
    }
}

/// Whether a record of this point at the sender proves that the message was sent, or that sending was tried
/// and refused.
fn is_send_side(point: Point) -> bool {
    matches!(point, Point::ApplicationSend | Point::DriverSend | Point::WireSend | Point::Drop)
}

fn port_on_b(network: &Network, node: NodeIndex) -> u16 {
    let on_b = network.links.iter().filter(|link| link.network == NetworkId::B);
    let mut ends = on_b.flat_map(|link| link.ends).filter(|end| end.node == node);
    ends.next().map_or(NO_PORT, |end| end.port)
}
