//! Foreign frames: frames from hosts that are neither messages nor background load of the test. The network carries them, as any
//! network would, and counts them, since they take time on links from the test.

use std::collections::{BTreeMap, BTreeSet};

use wg_core::line::SMALLEST_FRAME;
use wg_frame::{ethernet, ipv4, udp};
use wg_plan::wire::DISCARD_PORT;
use wg_plan::{FlowId, Node, Run};
use wg_sim::live::{Fate, Headers, MOST_FOREIGN};

use crate::proto;

/// Types of VLAN tags (IEEE 802.1Q-2022, 9.5).
const TAGS: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xA8]];
/// Less than that is a length (IEEE 802.3, 3.2.6).
const LEAST_TYPE: u16 = 0x0600;
/// The least bytes of a frame on a line.
const LEAST_LENGTH: u16 = SMALLEST_FRAME;
/// The last line of the table, for kinds that found no line of their own.
const OTHERS: usize = MOST_FOREIGN - 1;

/// Port and ether type.
type Kind = (usize, u16);

/// The frames that arrived, by port and ether type.
pub(super) struct Foreign {
    flows: BTreeSet<FlowId>,
    loads: u32,
    /// Hosts that send their logs over the measured network.
    logs: BTreeSet<[u8; 4]>,
    places: BTreeMap<Kind, usize>,
    /// Number of frames and bytes of each kind.
    came: Vec<(Option<Kind>, u64, u64)>,
}

impl Foreign {
    /// A table without frames.
    pub(super) fn none(nodes: &[Node], run: &Run) -> Self {
        let of = |node: u16| nodes.get(usize::from(node)).map(|node| node.ipv4);
        let answers = run.relays.iter().map(wg_plan::Relay::answers_as);
        Self {
            flows: run.flows.iter().map(|flow| flow.id).chain(answers).collect(),
            loads: u32::try_from(run.injects.len()).unwrap_or(u32::MAX),
            logs: run.remote_logs.iter().filter_map(|log| of(log.on)).collect(),
            places: BTreeMap::new(),
            came: Vec::new(),
        }
    }

    /// Counts a frame that arrived at `port` if it is foreign, and has the model count its outcome.
    pub(super) fn look(&mut self, port: usize, bytes: &[u8], headers: &mut Headers) {
        let is_own = match headers.probe {
            Some(probe) => self.flows.contains(&probe.flow),
            None => (1..=self.loads).contains(&headers.label) || self.is_log(bytes),
        };
        if is_own {
            return;
        }
        let row = self.row((port, ether_type(bytes)));
        let (_, frames, octets) = &mut self.came[row];
        *frames += 1;
        *octets += u64::from(headers.length.max(LEAST_LENGTH));
        headers.probe = None;
        headers.label = self.loads + 1 + u32::try_from(row).unwrap_or(0);
    }

    fn row(&mut self, kind: Kind) -> usize {
        if let Some(row) = self.places.get(&kind) {
            return *row;
        }
        if self.came.len() >= OTHERS {
            self.came.resize(OTHERS + 1, (None, 0, 0));
            return OTHERS;
        }
        self.places.insert(kind, self.came.len());
        self.came.push((Some(kind), 0, 0));
        self.came.len() - 1
    }

    /// Whether a frame is a part of the log of a host.
    fn is_log(&self, bytes: &[u8]) -> bool {
        let Some(packet) = bytes.get(ethernet::HEADER_LEN..).filter(|_| !self.logs.is_empty()) else {
            return false;
        };
        let Ok(packet) = ipv4::Packet::new_checked(packet) else { return false };
        let is_discarded = || {
            let datagram = udp::Datagram::new_checked(packet.payload());
            datagram.is_ok_and(|datagram| datagram.destination_port() == DISCARD_PORT)
        };
        packet.protocol() == ipv4::PROTOCOL_UDP
            && self.logs.contains(&packet.source().octets())
            && is_discarded()
    }

    /// The table for the report; `fates` are the outcomes in the model, and `end_system` names the end system behind a port.
    pub(super) fn report(
        &self,
        fates: &[Fate],
        end_system: impl Fn(usize) -> String,
    ) -> Vec<proto::ForeignFrames> {
        let nothing = Fate::default();
        let rows = self.came.iter().enumerate().map(|(row, (kind, frames, bytes))| {
            let fate = fates.get(row).unwrap_or(&nothing);
            proto::ForeignFrames {
                end_system: kind.map(|(port, _)| end_system(port)).unwrap_or_default(),
                ether_type: kind.map_or(0, |(_, ether_type)| u32::from(ether_type)),
                frames: *frames,
                bytes: *bytes,
                delivered: fate.left,
                line_ns: fate.line_ps / 1_000,
                dropped: fate.lost.iter().map(|(why, count)| ((*why).to_owned(), *count)).collect(),
            }
        });
        rows.collect()
    }
}

/// The ether type of a frame behind its tags; 0 if it has none.
fn ether_type(bytes: &[u8]) -> u16 {
    let at = |from: usize| bytes.get(from..from + 2)?.first_chunk().copied();
    let mut from = ethernet::HEADER_LEN - 2;
    let mut found = at(from);
    while let Some(own) = found.filter(|own| TAGS.contains(own)) {
        from += 4;
        found = at(from);
        if found == Some(own) && from > ethernet::HEADER_LEN + 8 {
            break;
        }
    }
    found.map(u16::from_be_bytes).filter(|kind| *kind >= LEAST_TYPE).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::probe::{self, Probe};
    use wg_plan::{Flow, Protocol, Route};

    fn frame(ether_type: u16, tags: usize) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        (0..tags).for_each(|_| bytes.extend([0x81, 0x00, 0x20, 0x05]));
        bytes.extend(ether_type.to_be_bytes());
        bytes.extend([0; 46]);
        bytes
    }

    #[test]
    fn what_is_not_of_the_test_is_counted_by_port_and_type_and_labelled() {
        let run = Run { flows: vec![Flow::plain(7, Protocol::Raw, Route::default())], ..Run::default() };
        let mut foreign = Foreign::none(&[], &run);
        let mut come = |port, bytes: &[u8]| {
            let mut headers = Headers::read(bytes).expect("a frame");
            foreign.look(port, bytes, &mut headers);
            headers
        };
        assert_eq!(come(0, &frame(0x86DD, 0)).label, 1);
        assert_eq!(come(1, &frame(0x86DD, 0)).label, 2);
        assert_eq!(come(0, &frame(0x86DD, 2)).label, 1, "behind its tags");
        assert_eq!(come(0, &frame(40, 0)).label, 3, "a length");
        let mut own = frame(0x88B5, 0);
        let seal = |flow| Probe { flow, sequence: 3, ..Probe::default() };
        probe::seal(&mut own[14..], seal(7)).expect("a message");
        assert_eq!((come(0, &own).label, come(0, &own).sequence()), (0, 3));
        probe::seal(&mut own[14..], seal(8)).expect("a message");
        let other = come(1, &own);
        assert_eq!((other.label, other.probe), (4, None), "a message of another test");
        let fate = Fate { left: 5, line_ps: 7_000, ..Fate::default() };
        let told = foreign.report(&[fate], |port| format!("es{port}"));
        let seen: Vec<_> =
            told.iter().map(|one| (one.end_system.as_str(), one.ether_type, one.frames, one.bytes)).collect();
        assert_eq!(
            seen,
            [("es0", 0x86DD, 2, 136), ("es1", 0x86DD, 1, 64), ("es0", 0, 1, 64), ("es1", 0x88B5, 1, 64)]
        );
        assert_eq!((told[0].delivered, told[0].line_ns, told[1].delivered), (5, 7, 0));
    }

    #[test]
    fn the_table_has_an_end_and_what_finds_no_line_is_counted_together() {
        let mut foreign = Foreign::none(&[], &Run::default());
        for kind in 0..1_000 {
            let bytes = frame(0x0800 + kind, 0);
            let mut headers = Headers::read(&bytes).expect("a frame");
            foreign.look(0, &bytes, &mut headers);
            assert!((1..=256).contains(&headers.label));
        }
        let told = foreign.report(&[], |_| "es".into());
        assert_eq!((told.len(), told[255].end_system.as_str(), told[255].frames), (256, "", 745));
        assert_eq!(told.iter().map(|one| one.frames).sum::<u64>(), 1_000);
    }
}
