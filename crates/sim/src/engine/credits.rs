//! Credits of shaped queues over the run: extremes for the report, corners for the truth.

use wg_core::queue::PRIORITIES;
use wg_core::selection::{CreditCourse, CreditPoint};
use wg_plan::{Network, NodeIndex};
use wg_record::{FLOW_FOREIGN, RecordFlags, Truth, TruthKind};

use super::Engine;
use crate::report::CreditReport;
use crate::sink::Sink;

/// Units of 10^-12 bits, as cores count credits, in one unit of the truth (10^-9 bits).
const NANO: i128 = 1_000;

/// A queue of a node.
#[derive(Clone, Copy)]
struct Place {
    node: NodeIndex,
    port: u16,
    class: u8,
}

impl<S: Sink> Engine<'_, S> {
    /// Writes the truth of every credit up to the end, and returns the extremes, by node, port and class.
    pub(super) fn credits(&mut self, network: &Network) -> Vec<CreditReport> {
        let now = self.now;
        let mut found: Vec<(Place, CreditReport, Vec<CreditPoint>)> = Vec::new();
        let exchange = &self.exchange;
        let is_own = |channel| exchange.as_ref().is_none_or(|exchange| exchange.drives(channel));
        let mut take = |place: Place, course: &CreditCourse| {
            let name = &network.nodes[usize::from(place.node)].name;
            found.push((place, report(place, name, course), drawn(course)));
        };
        for host in &mut self.world.hosts {
            for (at, port) in host.ports.iter().enumerate().filter(|(_, port)| is_own(port.channel())) {
                for (class, queue) in (0..).zip(0..PRIORITIES) {
                    let place = Place { node: host.node, port: port.number, class };
                    host.core.credit(now, at, queue).into_iter().for_each(|course| take(place, course));
                }
            }
        }
        for switch in &mut self.world.switches {
            for (at, port) in switch.ports.iter().enumerate().filter(|(_, port)| is_own(port.channel())) {
                for (class, queue) in (0..).zip(0..PRIORITIES) {
                    let place = Place { node: switch.node, port: port.number, class };
                    switch.core.credit(now, at, queue).into_iter().for_each(|course| take(place, course));
                }
            }
        }
        found.sort_by_key(|(place, ..)| (place.node, place.port, place.class));
        for (Place { node, port, class }, _, corners) in &found {
            for CreditPoint { at, credit } in corners {
                self.write_truth(&Truth {
                    time: *at,
                    value: i64::try_from(credit.div_euclid(NANO)).unwrap_or(i64::MAX),
                    sequence: u32::from(*class),
                    flow: FLOW_FOREIGN,
                    node: *node,
                    port: *port,
                    kind: TruthKind::Credit,
                    flags: RecordFlags::empty(),
                });
            }
        }
        self.settle_instant();
        found.into_iter().map(|(_, report, _)| report).collect()
    }
}

fn report(place: Place, name: &str, course: &CreditCourse) -> CreditReport {
    let ends = [course.near().first(), course.near().last()];
    let [from, to] = ends.map(|end| end.map_or(0, |point| point.at.as_picos()));
    CreditReport {
        node: name.to_owned(),
        port: place.port,
        class: place.class,
        greatest_pbit: course.greatest().credit,
        greatest_at_ps: course.greatest().at.as_picos(),
        least_pbit: course.least().credit,
        least_at_ps: course.least().at.as_picos(),
        whole_from_ps: from,
        whole_to_ps: to,
    }
}

/// Selected corners of the whole run, and all corners around the greatest credit.
fn drawn(course: &CreditCourse) -> Vec<CreditPoint> {
    let (near, corners) = (course.near(), course.corners());
    let (Some(first), Some(last)) = (near.first(), near.last()) else { return corners };
    let before = corners.iter().filter(|point| point.at < first.at);
    let after = corners.iter().filter(|point| point.at > last.at);
    before.chain(near).chain(after).copied().collect()
}
