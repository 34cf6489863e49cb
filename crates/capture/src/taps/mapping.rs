//! Places of taps in the plan, and the observation points of frames seen there.

use std::collections::BTreeMap;

use wg_plan::{Flow, LineRate, Network, NodeIndex, Run};
use wg_record::Point;

use crate::Direction;
use crate::taps::frames::Message;
use crate::taps::order::{Order, TapError};
use crate::taps::scan::Contents;
use crate::timestamps::Octet;

/// Node, port and further facts about the place of each tap.
#[derive(Debug)]
pub(super) struct Map {
    places: Vec<Place>,
    /// Whether times are those of a test's points, or of the first octet everywhere.
    of_test: bool,
}

#[derive(Debug)]
struct Place {
    node: NodeIndex,
    port: u16,
    rate_bps: Option<u64>,
    is_end_system: bool,
}

impl Map {
    /// Places for taps that are the network themselves.
    pub(super) fn of_taps(network: &Network, contents: &Contents) -> Self {
        let places = (0..).zip(&contents.taps).map(|(node, _)| place(network, node, 1)).collect();
        Self { places, of_test: false }
    }

    /// Places at nodes of a test, by the taps' own names (`node:port` or `node`) or as given in the order.
    pub(super) fn of_test(
        order: &Order,
        contents: &Contents,
        network: &Network,
        run: &Run,
    ) -> Result<Self, TapError> {
        let network = &*run.switches.applied(network);
        let nodes: BTreeMap<&str, NodeIndex> =
            (0..).zip(&network.nodes).map(|(i, node)| (&*node.name, i)).collect();
        if let Some(tap) =
            order.places.keys().find(|tap| contents.taps.iter().all(|found| found.name != **tap))
        {
            let taps: Vec<&str> = contents.taps.iter().map(|tap| &*tap.name).collect();
            return Err(TapError::NoTap { tap: tap.clone(), taps: taps.join(", ") });
        }
        let mut places = Vec::new();
        for tap in &contents.taps {
            let said = order.places.get(&tap.name).unwrap_or(&tap.name);
            let (name, port) = match said.rsplit_once(':') {
                Some((name, port)) => (name, port.parse().ok()),
                None => (&**said, Some(1)),
            };
            let Some((node, port)) = nodes.get(name).copied().zip(port) else {
                return Err(TapError::Nowhere {
                    tap: tap.name.clone(),
                    file: order.files[tap.file].display().to_string(),
                    nodes: nodes.into_keys().collect::<Vec<_>>().join(", "),
                });
            };
            let mut found = place(network, node, port);
            found.rate_bps = run.link_rate.map(LineRate::bits_per_second).or(found.rate_bps);
            places.push(found);
        }
        Ok(Self { places, of_test: true })
    }

    /// Node and port of a tap.
    pub(super) fn place(&self, tap: usize) -> (NodeIndex, u16) {
        self.places.get(tap).map_or((0, 1), |place| (place.node, place.port))
    }

    /// Line rate at a tap, if the test states it.
    pub(super) fn rate(&self, tap: usize) -> Option<u64> {
        self.places.get(tap).filter(|_| self.of_test).and_then(|place| place.rate_bps)
    }

    /// Observation points of a frame seen at a tap, and the octet to which its time has to be converted.
    pub(super) fn points(
        &self,
        tap: usize,
        flow: &Flow,
        message: &Message,
        direction: Direction,
    ) -> impl Iterator<Item = (Point, Octet)> + use<> {
        let place = &self.places[tap];
        let [first, second] = match (self.of_test, place.is_end_system) {
            (false, _) => [None, Some((Point::Tap, Octet::First))],
            (true, true) => at_end_system(place, flow, message, direction),
            (true, false) => [at_switch(place, flow, message, direction), None],
        };
        first.into_iter().chain(second)
    }
}

/// At an end of the flow's leg a frame is on the wire, and also stands for the application, which no tap sees.
fn at_end_system(
    place: &Place,
    flow: &Flow,
    message: &Message,
    direction: Direction,
) -> [Option<(Point, Octet)>; 2] {
    let (is_from, is_to) = (place.node == flow.from, flow.receivers().any(|to| to == place.node));
    let (is_source, is_destination) =
        if message.is_returning() { (is_to, is_from) } else { (is_from, is_to) };
    if is_source && direction != Direction::Inbound {
        return [(Point::WireSend, Octet::Preamble), (Point::Tap, Octet::Preamble)].map(Some);
    }
    if is_destination && direction != Direction::Outbound {
        return [(Point::WireReceive, Octet::Last), (Point::Tap, Octet::Last)].map(Some);
    }
    [Some((Point::Tap, Octet::First)), None]
}

/// Into or out of the switch: as the capture states, or depending on whether the link leads towards the flow's source.
fn at_switch(place: &Place, flow: &Flow, message: &Message, direction: Direction) -> Option<(Point, Octet)> {
    let into = match direction {
        Direction::Inbound => true,
        Direction::Outbound => false,
        Direction::Unknown => flow.routes.iter().flat_map(|route| &route.hops).any(|hop| {
            let into = if message.is_returning() { hop.from } else { hop.to };
            (into.node, into.port) == (place.node, place.port)
        }),
    };
    Some(if into { (Point::SwitchIn, Octet::Last) } else { (Point::SwitchOut, Octet::Preamble) })
}

fn place(network: &Network, node: NodeIndex, port: u16) -> Place {
    let link =
        network.links.iter().find(|link| link.ends.iter().any(|end| (end.node, end.port) == (node, port)));
    Place {
        node,
        port,
        rate_bps: link.map(|link| link.rate.bits_per_second()),
        is_end_system: network.nodes.get(usize::from(node)).is_some_and(wg_plan::Node::is_end_system),
    }
}
