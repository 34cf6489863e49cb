//! Frames as they leave an end system, against whole frames that somebody else wrote: those of the simulator's
//! captures.

use std::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;
use wg_core::arinc664::{Bag, Contract};
use wg_frame::ethernet::MacAddress;
use wg_frame::fill::Pattern;
use wg_frame::image::{self, Image};
use wg_frame::layout::{Carrier, Tag};
use wg_frame::time::Span;
use wg_frame::vlan::{Priority, VlanId};
use wg_plan::{
    Addresses, Attachment, Ends, Flow, Hop, HostModel, Network, Node, NodeKind, Protocol, Relay, Route, Run,
    Send, TimeTriggered, Turn, VirtualLink, VlanTag,
};

use super::*;
use crate::end_system::buffer::BUFFER_LEN;
use crate::end_system::relay::RelayState;
use crate::stream::{Extent, FrameSpec};

const FLOW: u16 = 0x0107;

fn network() -> Network {
    let node = |i: u16| Node::new(i, format!("n{i}"), NodeKind::EndSystem { host: HostModel::default() });
    Network { nodes: (0..4).map(node).collect(), links: Vec::new() }
}

fn flow(protocol: Protocol) -> Flow {
    let end = |node| Attachment { node, port: 1 };
    let hops = vec![Hop { link: 0, from: end(0), to: end(1) }];
    let plain = Flow::plain(FLOW, protocol, Route { hops, ..Route::default() });
    match protocol {
        Protocol::Rc => Flow { virtual_link: Some(link(false)), ..plain },
        Protocol::Tt => Flow { schedule: Some(schedule()), ..plain },
        _ => plain,
    }
}

fn link(number_within: bool) -> VirtualLink {
    VirtualLink {
        id: 0x0203,
        contract: Contract::new(Bag::new(Span::from_millis(1)).expect("a gap"), 1_518).expect("a contract"),
        sub_links: 4,
        queue: 8,
        skew_max: Span::from_millis(1),
        redundancy_management: true,
        jitter: Span::ZERO,
        priority: 4,
        number_within,
    }
}

fn schedule() -> TimeTriggered {
    TimeTriggered {
        id: 0x0405,
        period: Span::from_millis(1),
        offset: Span::ZERO,
        longest_frame: 1_518,
        queue: None,
        windows: Vec::new(),
        early: Span::ZERO,
        late: Span::ZERO,
        receptions: Vec::new(),
    }
}

/// What end system `node` makes of the test in which `flow` is sent with this payload, and relayed at node 1.
fn assigned(flow: &Flow, payload: u32, node: NodeIndex, back: Option<u16>) -> Assignment {
    let relays = (flow.protocol != Protocol::Tt).then(|| Relay {
        flow: FLOW,
        on: 1,
        vl: flow.virtual_link.map(|_| 0x0304),
        back,
        through: Turn::Servicing,
        faults: Vec::new(),
        detours: Vec::new(),
    });
    let run = Run {
        flows: vec![flow.clone()],
        sends: vec![Send::periodic(FLOW, Span::from_millis(1), payload, 10)],
        relays: relays.into_iter().collect(),
        ..Run::default()
    };
    Assignment::new(&network(), &run, node, true).expect("a sound plan")
}

/// A message of the flow laid into a buffer that is not clean, as the end system `node` sends it: outward, or back from
/// its relay.
fn laid(assignment: &Assignment, sequence: u32, number: u8) -> Vec<u8> {
    let facts = &assignment.flows[0];
    let mut buffer = Buffer::new();
    buffer.bytes.fill(0xEE);
    let payload = buffer.payload_mut(usize::from(facts.payload));
    Pattern::Sequential.write(payload);
    probe::seal(payload, Probe { flow: FLOW, sequence, flags: ProbeFlags::NONE }).expect("a message");
    let envelope = assignment.outward(facts, sequence);
    let frame = write_headers(&mut buffer, facts, &envelope, number);
    buffer.bytes[usize::from(frame.start)..usize::from(frame.end)].to_vec()
}

/// The frame as a capture shows it, less its FCS.
fn image(envelope: Envelope, payload: usize, sequence: u32, number: Option<u8>, probe: Probe) -> Vec<u8> {
    let image = Image {
        envelope,
        payload,
        message: Some(image::Message {
            probe: Probe { sequence, ..probe },
            fill: Pattern::Sequential,
            transmit_time: None,
            damaged: false,
        }),
        sequence: number,
        redundancy: None,
        fcs_error: false,
    };
    let mut bytes = [0; BUFFER_LEN];
    let whole = image.write(&mut bytes).expect("it fits");
    whole[..whole.len() - 4].to_vec()
}

const MESSAGE: Probe = Probe { flow: FLOW, sequence: 0, flags: ProbeFlags::NONE };

fn mac(node: u16) -> MacAddress {
    network().nodes[usize::from(node)].mac
}

fn at(node: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from(network().nodes[usize::from(node)].ipv4), 61_188)
}

fn between(from: u16, to: u16) -> Envelope {
    Envelope { destination: mac(to), source: mac(from), tag: None, carrier: Carrier::udp(at(from), at(to)) }
}

fn on_link(link: u16, station: u8) -> Envelope {
    let [high, low] = link.to_be_bytes();
    let mut carrier = Carrier::udp(
        SocketAddrV4::new(Ipv4Addr::new(10, 0, station, 1), 61_188),
        SocketAddrV4::new(Ipv4Addr::new(224, 224, high, low), 61_188),
    );
    if let Carrier::Udp { checksummed, .. } = &mut carrier {
        *checksummed = false;
    }
    Envelope {
        destination: MacAddress([3, 0, 0, 0, high, low]),
        source: MacAddress([2, 0, 0, 0, station, 0x20]),
        tag: None,
        carrier,
    }
}

proptest! {
    #[test]
    fn a_virtual_link_s_frames_are_those_of_captures(
        payload in 12_u32..=1_471, sequence: u32, sub_link in 0_u8..4, within: bool
    ) {
        let flow = Flow { virtual_link: Some(link(within)), ..flow(Protocol::Rc) };
        let assignment = assigned(&flow, payload, 0, None);
        let length = wg_plan::wire::frame_length(
            if within { Protocol::Udp } else { Protocol::Rc }, None, payload) as usize;
        // A number within the payload takes its last byte, where no padding does.
        let message = (payload as usize).min(length - 4 - 1 - 42);
        let got = laid(&assignment, sequence, sub_link);
        prop_assert_eq!(got.len() + 4, length);
        prop_assert_eq!(&got, &image(on_link(0x0203, 1), message, sequence, Some(sub_link), MESSAGE));
        let facts = &assignment.flows[0];
        prop_assert_eq!((usize::from(facts.length), usize::from(facts.payload)), (length, message));
        let spec = FrameSpec {
            flow: FLOW,
            envelope: assignment.outward(facts, 0),
            payload: message,
            transmit_time: None,
            number: Some(sub_link),
        };
        let (mut bytes, template) = spec.template(Extent::Frame).expect("a frame");
        template.patch(&mut bytes, sequence, ProbeFlags::NONE, wg_frame::time::RunTime::ZERO);
        prop_assert_eq!(bytes, got, "a stream sends the same");
        prop_assert_eq!(spec.frame_len(), length);
    }

    #[test]
    fn datagrams_with_tag_and_code_point_are_those_of_captures(
        payload in 12_u32..=1_472, sequence: u32, dscp in 0_u8..64, tag in proptest::option::of((0_u16..4_095, 0_u8..8)), be: bool
    ) {
        let protocol = if be { Protocol::Be } else { Protocol::Udp };
        let vlan = tag.map(|(id, priority)| VlanTag { id, priority });
        let flow = Flow { vlan, dscp, ..flow(protocol) };
        let mut expected = between(0, 1);
        expected.tag = tag.map(|(id, priority)| Tag {
            priority: Priority::new(priority).expect("a priority"),
            drop_eligible: false,
            id: VlanId::new(id).expect("a VLAN"),
        });
        let Carrier::Udp { traffic_class, .. } = &mut expected.carrier else { unreachable!() };
        *traffic_class = dscp << 2;
        let assignment = assigned(&flow, payload, 0, None);
        if vlan.is_none() && dscp == 0 && !be {
            prop_assert_eq!(assignment.flows[0].access, AccessKind::Udp, "the kernel writes the headers");
            return Ok(());
        }
        prop_assert_eq!(
            laid(&assignment, sequence, 0), image(expected, payload as usize, sequence, None, MESSAGE));
    }

    #[test]
    fn raw_and_time_triggered_frames_are_those_of_captures(payload in 12_u32..=1_500, sequence: u32, tt: bool) {
        let flow = flow(if tt { Protocol::Tt } else { Protocol::Raw });
        let destination = if tt { MacAddress([0xAB, 0xAD, 0xBA, 0xBE, 4, 5]) } else { mac(1) };
        let expected = Envelope { destination, carrier: Carrier::Raw, ..between(0, 1) };
        let got = laid(&assigned(&flow, payload, 0, None), sequence, 0);
        prop_assert_eq!(got, image(expected, payload as usize, sequence, None, MESSAGE));
    }

    #[test]
    fn what_a_relay_answers_has_its_own_addresses_and_number(payload in 12_u32..=1_471, sequence: u32, rc: bool) {
        let flow = flow(if rc { Protocol::Rc } else { Protocol::Be });
        let assignment = assigned(&flow, payload, 1, Some(0xFFF0));
        let (facts, mut sent) = (&assignment.flows[0], Answers(&assignment, Vec::new()));
        let mut relay = RelayState::new(&assignment.relays[0], facts, &assignment);
        let mut buffer = Buffer::new();
        let message = Probe { sequence, ..MESSAGE };
        Pattern::Sequential.write(buffer.payload_mut(payload as usize));
        probe::seal(buffer.payload_mut(payload as usize), message).expect("a message");
        relay.turn(wg_frame::time::RunTime::ZERO, buffer, message, &mut sent);
        let expected = if rc { on_link(0x0304, 2) } else { between(1, 0) };
        let answer = Probe { flow: 0xFFF0, sequence, flags: ProbeFlags::RETURN };
        prop_assert_eq!(&sent.1, &[image(expected, payload as usize, sequence, rc.then_some(0), answer)]);
        let sender = assigned(&flow, payload, 0, Some(0xFFF0));
        let (_, back) = sender.flow(0xFFF0).expect("its sender knows the number");
        prop_assert!(belongs_here(back, ProbeFlags::RETURN, 0));
        prop_assert_eq!(back.answers, Some(0));
    }

    /// Whatever a datagram is padded with, and wherever it lies, its payload comes to where payloads are.
    #[test]
    fn a_received_datagram_s_payload_is_found(payload in 12_u32..=1_471, options in 0_usize..3) {
        let frame = laid(&assigned(&flow(Protocol::Rc), payload, 0, None), 7, 0);
        let mut longer = frame[..34].to_vec();
        longer.extend(std::iter::repeat_n(1, 4 * options));
        longer.extend(&frame[34..]);
        longer[14] += options as u8;
        let begin = receive_at(AccessKind::Rc);
        let mut buffer = Buffer::new();
        buffer.bytes[begin..begin + longer.len()].copy_from_slice(&longer);
        prop_assert_eq!(bare(&mut buffer, begin, longer.len()), payload as usize);
        prop_assert_eq!(probe::read(buffer.payload(payload as usize)).map(|(read, whole)| (read.sequence, whole)), Ok((7, true)));
        prop_assert_eq!(bare(&mut buffer, begin, 40), 0);
    }
}

/// Notes frames that a relay sends.
struct Answers<'a>(&'a Assignment, Vec<Vec<u8>>);

impl crate::end_system::relay::Way for Answers<'_> {
    fn send(&mut self, mut message: crate::end_system::relay::ReturningMessage, to: NodeIndex, _: bool) {
        let facts = &self.0.flows[usize::from(message.flow)];
        let envelope = self.0.returned(facts, to, message.link);
        let frame = write_headers(&mut message.buffer, facts, &envelope, 0);
        self.1.push(message.buffer.bytes[usize::from(frame.start)..usize::from(frame.end)].to_vec());
    }

    fn discard(&mut self, _: crate::end_system::relay::ReturningMessage) {}
}

#[test]
fn several_receivers_have_a_group_and_several_addresses_their_turn() {
    let several = |protocol| Flow { also_to: vec![2, 3], ..flow(protocol) };
    let group = MacAddress([1, 0, 0x5E, 0x57, 1, 7]);
    let raw = laid(&assigned(&several(Protocol::Raw), 100, 0, None), 3, 0);
    let expected = Envelope { destination: group, carrier: Carrier::Raw, ..between(0, 1) };
    assert_eq!(raw, image(expected, 100, 3, None, MESSAGE));
    let udp = laid(&assigned(&several(Protocol::Udp), 100, 0, None), 3, 0);
    let to = SocketAddrV4::new(Ipv4Addr::new(239, 0x57, 1, 7), 61_188);
    let expected = Envelope { destination: group, carrier: Carrier::udp(at(0), to), ..between(0, 1) };
    assert_eq!(udp, image(expected, 100, 3, None, MESSAGE));
    for node in 1..4 {
        let assignment = assigned(&several(Protocol::Udp), 100, node, None);
        let targets = assignment.targets_here(&assignment.flows[0]);
        assert_eq!((targets[0].macs.first, targets[0].at), (group.0, to));
    }
    let addresses = Addresses {
        mac: Ends { source: None, destination: Some(MacAddress([2, 0, 0, 0, 1, 0xFF])) },
        macs: Ends { source: Some(2), destination: Some(3) },
        ..Addresses::default()
    };
    let flow = Flow { addresses, ..flow(Protocol::Raw) };
    let assignment = assigned(&flow, 100, 0, None);
    let seen = |sequence| {
        let envelope = assignment.outward(&assignment.flows[0], sequence);
        (envelope.source.bits() - mac(0).bits(), envelope.destination.0[3..].to_vec())
    };
    assert_eq!(seen(0), (0, vec![0, 1, 0xFF]));
    assert_eq!(seen(1), (1, vec![0, 2, 0]));
    assert_eq!(seen(2), (0, vec![0, 2, 1]));
    assert_eq!(seen(3), (1, vec![0, 1, 0xFF]));
}

#[test]
fn what_needs_a_card_is_refused_without_one() {
    let refused = |flow: Flow| {
        let run = Run { flows: vec![flow], ..Run::default() };
        assert!(Assignment::new(&network(), &run, 0, true).is_ok());
        Assignment::new(&network(), &run, 0, false).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (flow, what) in [
        (flow(Protocol::Rc), "is rate-constrained"),
        (flow(Protocol::Tt), "is time-triggered"),
        (Flow { network: None, ..flow(Protocol::Udp) }, "uses network B"),
    ] {
        let why = refused(flow);
        assert!(why.contains(what) && why.contains("--bench netns"), "{why}");
    }
    assert_eq!(refused(flow(Protocol::Be)), "");
}
