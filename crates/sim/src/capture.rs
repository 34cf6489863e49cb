//! Capture tasks: the only place where a simulated frame has bytes.
//!
//! A frame is [written](wg_frame::image) as it would be read from the wire: addresses, tag, IPv4, UDP, probe header
//! with the right sum, content by the fill of its sender, the sequence number of a virtual link, and the FCS. Frames
//! appear when their first bit leaves (sent) and when their last bit is in (received), by the clock of the node. A
//! medium shared through a hub shows frames that were sent completely, not the remains of collisions.
//! node. A medium shared through a hub shows frames that were sent whole, not the remains of collisions.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use wg_capture::pcapng::{self, Interface, Resolution, Statistics};
use wg_capture::{Direction, Timestamps};
use wg_core::frame::{Frame, FrameLengths, Marks, NetworkId, TrafficClass};
use wg_frame::arinc664::{Sender, VirtualLinkId};
use wg_frame::ethernet::{FCS_LEN, MIN_FRAME_LEN, MacAddress};
use wg_frame::fill::Pattern;
use wg_frame::image::{self, Image};
use wg_frame::layout::{Carrier, Envelope, Tag};
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::rtag;
use wg_frame::time::RunTime;
use wg_frame::vlan::{MAX_TAGGED_FRAME_LEN as LONGEST, Priority, VlanId};
use wg_plan::wire::{DISCARD_PORT, PROBE_PORT};
use wg_plan::{Fill, Flow, Network, NodeIndex, Protocol, Run};
use wg_record::FLOW_FOREIGN;

use crate::message::{Carries, Flags, Message};
use crate::sink::Sink;

/// Number of messages of a flow whose transmit times are remembered while they travel. An older one still under way is
/// shown without a transmit time, as its header says.
const REMEMBERED: usize = 1 << 17;
#[expect(clippy::cast_possible_truncation, reason = "4")]
const FCS_LENGTH: u8 = FCS_LEN as u8;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const PICOS_PER_NANO: i64 = 1_000;

/// Contents of the frames of a flow.
#[derive(Clone, Debug)]
struct Looks {
    flow: Flow,
    /// Bytes of payload and their fill, by sending task.
    sends: Vec<(usize, Fill)>,
    /// Offset of the transmit time in the payload.
    transmit_time: Option<usize>,
    /// Sending times of the last messages, in true time, at their numbers modulo the length; warm-up first.
    sent: [Vec<(u32, RunTime)>; 2],
}

impl Looks {
    /// Offset and value of the transmit time that a message carries, in true time.
    fn transmit_time(&self, frame: &Frame) -> Option<(usize, RunTime)> {
        let message = frame.message();
        let sent = &self.sent[usize::from(!message.flags.has(Flags::WARM_UP))];
        let (sequence, time) = *sent.get((message.sequence as usize).checked_rem(sent.len())?)?;
        (sequence == message.sequence).then_some((self.transmit_time?, time))
    }
}

/// A node with a capture.
#[derive(Debug)]
struct Tapped {
    /// Bytes stored of each frame (snap length).
    snap: u32,
    /// Captured ports, by number.
    ports: Vec<Port>,
}

#[derive(Debug)]
struct Port {
    number: u16,
    name: String,
    rate_bps: u64,
    frames: u64,
}

/// All captures of a run.
#[derive(Debug)]
pub(crate) struct Captures {
    nodes: BTreeMap<NodeIndex, Tapped>,
    looks: BTreeMap<u16, Looks>,
    addresses: Vec<(MacAddress, [u8; 4])>,
    seed: u64,
    /// Whether any captured frame carries a transmit time.
    transmit_times: bool,
    /// Reading of the host's clock at the start of the run, relative to its last whole second, ps.
    origin_ps: i64,
    blocks: Vec<u8>,
}

impl Captures {
    /// The captures of a run. With `makes_frames`, frames are also made for flows that are captured nowhere.
    pub(crate) fn new(network: &Network, run: &Run, makes_frames: bool) -> Self {
        let mut nodes: BTreeMap<NodeIndex, Tapped> = BTreeMap::new();
        for capture in &run.captures {
            let name = network.nodes.get(usize::from(capture.on)).map_or("", |node| node.name.as_str());
            let mut ports = Vec::new();
            for link in &network.links {
                for end in link.ends.iter().filter(|end| end.node == capture.on) {
                    let rate_bps = run.link_rate.unwrap_or(link.rate).bits_per_second();
                    let name = format!("{name}:{}", end.port);
                    ports.push(Port { number: end.port, name, rate_bps, frames: 0 });
                }
            }
            ports.sort_unstable_by_key(|port| port.number);
            let tapped = nodes.entry(capture.on).or_insert(Tapped { snap: 0, ports });
            tapped.snap = tapped.snap.max(capture.snap);
        }
        let mut looks = BTreeMap::new();
        if makes_frames || !nodes.is_empty() {
            let sends_of = run.sends_by_flow();
            for flow in &run.flows {
                let of_flow = sends_of.get(&flow.id).map_or(&[][..], Vec::as_slice);
                // A frame of a replay has payload up to its full length.
                let own = of_flow.iter().filter(|send| send.replay.is_none());
                let sends = own.map(|send| (send.payload as usize, send.fill)).collect();
                let send = of_flow.first();
                let transmit_time = send.and_then(|send| send.transmit_time).map(usize::from);
                let remembered = |count: u32| {
                    let count = if transmit_time.is_some() { (count as usize).min(REMEMBERED) } else { 0 };
                    vec![(u32::MAX, RunTime::ZERO); count]
                };
                let sent = [send.map_or(0, |send| send.warm_up_count), send.map_or(0, |send| send.count)];
                let sent = sent.map(remembered);
                looks.insert(flow.id, Looks { flow: flow.clone(), sends, transmit_time, sent });
            }
            for relay in run.relays.iter().filter(|relay| relay.back.is_some()) {
                if let Some(own) = looks.get(&relay.flow).cloned() {
                    looks.insert(relay.answers_as(), own);
                }
            }
        }
        let addresses = network.nodes.iter().map(|node| (node.mac, node.ipv4)).collect();
        let transmit_times = looks.values().any(|looks: &Looks| looks.transmit_time.is_some());
        Self { nodes, looks, addresses, seed: run.seed, transmit_times, origin_ps: 0, blocks: Vec::new() }
    }

    /// Whether any captured frame carries a transmit time.
    #[inline]
    pub(crate) const fn want_transmit_times(&self) -> bool {
        self.transmit_times
    }

    /// A message was handed down at `time` (true time).
    pub(crate) fn sent(&mut self, frame: &Frame, time: RunTime) {
        let Message { flow, sequence, flags } = frame.message();
        let Some(looks) = self.looks.get_mut(&flow) else { return };
        let sent = &mut looks.sent[usize::from(!flags.has(Flags::WARM_UP))];
        let Some(at) = (sequence as usize).checked_rem(sent.len()) else { return };
        sent[at] = (sequence, time);
    }

    /// Begins all capture files.
    pub(crate) fn begin(&mut self, sink: &mut impl Sink) {
        let origin_ns = sink.origin_ns();
        self.origin_ps = origin_ns.rem_euclid(NANOS_PER_SECOND) * PICOS_PER_NANO;
        for (&node, tapped) in &self.nodes {
            self.blocks.clear();
            pcapng::section(&mut self.blocks);
            for port in &tapped.ports {
                let facts = Interface {
                    name: &port.name,
                    snap: tapped.snap,
                    resolution: Resolution::Picoseconds,
                    offset_seconds: origin_ns.div_euclid(NANOS_PER_SECOND),
                    fcs: FCS_LENGTH,
                    rate_bps: Some(port.rate_bps),
                    timestamps: Timestamps::SIMULATED,
                };
                pcapng::interface(&mut self.blocks, &facts);
            }
            sink.captured(node, &self.blocks, None);
        }
    }

    /// Writes a frame that `port` of `node` sent or received at `time`; `shown` returns the reading of a node's clock.
    pub(crate) fn write(
        &mut self,
        (node, port): (NodeIndex, u16),
        direction: Direction,
        time: RunTime,
        frame: &Frame,
        shown: impl Fn(NodeIndex, RunTime) -> RunTime,
        sink: &mut impl Sink,
    ) {
        let mut bytes = [0; LONGEST];
        // A frame without bytes, which no plan makes, is left blank.
        let image = self.image(frame, &shown);
        let whole = image.write(&mut bytes).unwrap_or_default();
        let time = (time, shown(node, time));
        if FrameLengths::STANDARD.have(frame) {
            self.write_bytes((node, port), direction, time, whole, sink);
            return;
        }
        // A runt or a giant.
        let mut wrong = whole.to_vec();
        wrong.resize(usize::from(frame.length), 0);
        image::change_length(&mut wrong, whole.len(), image.fcs_error);
        self.write_bytes((node, port), direction, time, &wrong, sink);
    }

    /// The bytes of a frame without FCS.
    pub(crate) fn bytes(&self, frame: &Frame) -> Vec<u8> {
        let mut bytes = [0; LONGEST];
        let whole = self.image(frame, &|_, time| time).write(&mut bytes).unwrap_or_default();
        whole[..whole.len().saturating_sub(FCS_LEN)].to_vec()
    }

    /// Writes these bytes as a frame seen at `at`, with the timestamp from `shown`.
    pub(crate) fn write_bytes(
        &mut self,
        (node, port): (NodeIndex, u16),
        direction: Direction,
        (at, shown): (RunTime, RunTime),
        frame: &[u8],
        sink: &mut impl Sink,
    ) {
        let ticks = self.ticks(shown);
        let Some(tapped) = self.nodes.get_mut(&node) else { return };
        let Ok(interface) = tapped.ports.binary_search_by_key(&port, |port| port.number) else { return };
        tapped.ports[interface].frames += 1;
        self.blocks.clear();
        let length = frame.len();
        #[expect(clippy::cast_possible_truncation, reason = "ports are numbered in 16 bits")]
        let interface = interface as u32;
        pcapng::packet(&mut self.blocks, interface, ticks, direction, &[frame], length, tapped.snap);
        sink.captured(node, &self.blocks, Some(at));
    }

    /// Ends all capture files: the model never loses frames for lack of speed.
    pub(crate) fn end(&mut self, now: RunTime, sink: &mut impl Sink) {
        let between = [self.ticks(RunTime::ZERO), self.ticks(now)];
        for (&node, tapped) in &self.nodes {
            self.blocks.clear();
            for (number, port) in (0..).zip(&tapped.ports) {
                let written = sink.keeps_captures_whole().then_some(port.frames);
                let counted = Statistics { received: port.frames, dropped: 0, written };
                pcapng::statistics(&mut self.blocks, number, between, counted);
            }
            sink.captured(node, &self.blocks, None);
        }
    }

    /// Timestamp of a capture for the reading of a clock; before the run began, that of its beginning.
    fn ticks(&self, shown: RunTime) -> u64 {
        shown.as_picos().max(0).unsigned_abs() + self.origin_ps.unsigned_abs()
    }

    /// The bytes of a frame on the wire.
    #[expect(clippy::cast_possible_truncation, reason = "an ARINC 664 sequence number is a byte")]
    fn image(&self, frame: &Frame, shown: &impl Fn(NodeIndex, RunTime) -> RunTime) -> Image {
        let redundancy = frame.marks.has(Marks::R_TAG).then_some(frame.sequence);
        let tag = if redundancy.is_some() { rtag::TAG_LEN } else { 0 };
        let length = usize::from(frame.length).saturating_sub(tag).clamp(MIN_FRAME_LEN, LONGEST - tag);
        let Message { flow, sequence, flags } = frame.message();
        let looks = self.looks.get(&flow);
        let envelope = self.envelope(frame, looks);
        let numbered = frame.class == TrafficClass::RateConstrained;
        // A frame that belongs to no task, as a babbler's, has payload up to its full length.
        let full = (length - FCS_LEN - usize::from(numbered)).saturating_sub(envelope.header_len());
        let tasks = looks.map_or(&[][..], |looks| &looks.sends);
        let fits = |payload: usize| Image::length(&envelope, payload, numbered) == length;
        let (payload, fill) =
            tasks.iter().copied().find(|(payload, _)| fits(*payload)).unwrap_or((full, Fill::Sequential));
        let message = (flow != FLOW_FOREIGN).then(|| {
            let mut said = ProbeFlags::NONE;
            for (mark, flag) in [(Flags::RETURN, ProbeFlags::RETURN), (Flags::WARM_UP, ProbeFlags::WARM_UP)] {
                if flags.has(mark) {
                    said = said.with(flag);
                }
            }
            image::Message {
                probe: Probe { flow, sequence, flags: said },
                fill: match fill {
                    Fill::Sequential => Pattern::Sequential,
                    Fill::Random => Pattern::Random { seed: self.seed, flow, sequence },
                },
                transmit_time: looks.and_then(|looks| {
                    let (at, time) = looks.transmit_time(frame)?;
                    Some((at, shown(looks.flow.from, time)))
                }),
                damaged: flags.has(Flags::DAMAGED),
            }
        });
        Image {
            envelope,
            payload,
            message,
            sequence: numbered.then_some(frame.sequence as u8),
            redundancy,
            fcs_error: frame.marks.has(Marks::FCS_ERROR),
        }
    }

    fn envelope(&self, frame: &Frame, looks: Option<&Looks>) -> Envelope {
        let own = looks.map(|looks| looks.flow.addresses).unwrap_or_default();
        let source =
            own.ipv4.source.map_or_else(|| self.station(frame.source, looks, |f| f.from), Ipv4Addr::from);
        let ours = SocketAddrV4::new(source, own.port.source.unwrap_or(PROBE_PORT));
        let protocol = looks.map_or(Protocol::Udp, |looks| looks.flow.protocol);
        let carrier = match protocol {
            Protocol::Raw | Protocol::Tt => Carrier::Raw,
            Protocol::Rc => return self.virtual_link(frame),
            Protocol::Udp | Protocol::Be => {
                let port = if frame.message().flow == FLOW_FOREIGN { DISCARD_PORT } else { PROBE_PORT };
                let port = own.port.destination.unwrap_or(port);
                let to = match (own.ipv4.destination, frame.destination.0) {
                    (Some(own), _) => Ipv4Addr::from(own),
                    (None, [0x01, 0x00, 0x5e, b, c, d]) => Ipv4Addr::new(239, b & 0x7f, c, d),
                    (None, _) => self.station(frame.destination, looks, |flow| flow.to),
                };
                let mut carrier = Carrier::udp(ours, SocketAddrV4::new(to, port));
                if let Carrier::Udp { traffic_class, .. } = &mut carrier {
                    *traffic_class = looks.map_or(0, |looks| looks.flow.dscp << 2);
                }
                carrier
            }
        };
        let tag = looks.and_then(|looks| looks.flow.vlan).and_then(|tag| {
            Some(Tag {
                priority: Priority::new(tag.priority).ok()?,
                drop_eligible: false,
                id: VlanId::new(tag.id).ok()?,
            })
        });
        Envelope { destination: frame.destination, source: frame.source, tag, carrier }
    }

    /// ARINC 664 part 7: the source address names the end system and the network, the destination the virtual link;
    /// the UDP checksum is not used.
    fn virtual_link(&self, frame: &Frame) -> Envelope {
        let station = self.addresses.iter().position(|(mac, _)| *mac == frame.source).unwrap_or(0);
        let interface = match frame.network {
            NetworkId::A => 1,
            NetworkId::B => 2,
        };
        #[expect(clippy::cast_possible_truncation, reason = "nodes are numbered in 16 bits")]
        let sender = Sender::of_station(station as u16, interface);
        let envelope = Envelope::of_virtual_link(VirtualLinkId(frame.virtual_link), sender, PROBE_PORT);
        Envelope { destination: frame.destination, ..envelope }
    }

    /// IP address of the station with this MAC address; where a flow chose a MAC address, of its end system.
    fn station(
        &self,
        address: MacAddress,
        looks: Option<&Looks>,
        end: impl Fn(&Flow) -> NodeIndex,
    ) -> Ipv4Addr {
        let found = self.addresses.iter().find(|(mac, _)| *mac == address);
        let of_end = || self.addresses.get(usize::from(end(&looks?.flow)));
        found.or_else(of_end).map_or(Ipv4Addr::UNSPECIFIED, |(_, ip)| Ipv4Addr::from(*ip))
    }
}
