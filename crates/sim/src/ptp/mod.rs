//! PTP clocks (IEEE Std 1588-2019) and their messages under way.
//!
//! The protocol is the crate `statime`: its state machines, best master clock algorithm, filters and encoding. This
//! module drives it in virtual time: frames for its messages, timestamps at the interface, timers by the oscillator of
//! the node, the clock of the node for its filters, and transparent clocks. [`instance`] holds what `statime` sees.
//!
//! A message is a frame like any other, as [protocol control frames](crate::clusters) are: it waits in queues, and
//! faults of links affect it. Its bytes lie in a table, by the place in its handle.

pub(crate) mod instance;
pub(crate) mod pi;

use std::collections::{BTreeMap, VecDeque};

use statime::port::TimestampContext;
use wg_core::clock::LocalTime;
use wg_core::frame::{Frame, Marks, NetworkId, TrafficClass};
use wg_frame::ethernet::{
    EtherType, FCS_LEN as FCS, Frame as EthernetView, HEADER_LEN as HEADER, MIN_FRAME_LEN, MacAddress, Repr,
};
use wg_frame::ptp::MessageType;
use wg_frame::time::{RunTime, Span};
use wg_plan::{NodeIndex, PtpDelay};

use self::instance::{Instance, Shared};
use crate::message::{Carries, Flags, Message, PTP_MESSAGES};

/// Destination addresses of messages that bridges forward, and of those that they do not (IEEE Std 1588-2019, E.1).
const ADDRESSES: [MacAddress; 2] =
    [MacAddress([0x01, 0x1B, 0x19, 0, 0, 0]), MacAddress([0x01, 0x80, 0xC2, 0, 0, 0x0E])];
/// Offset of correctionField in a message (13.3), octets.
const CORRECTION: usize = 8;

/// Whether a message is an event message, which is timestamped (6.4).
pub(crate) fn is_event(message: &[u8]) -> bool {
    kind(message).is_some_and(MessageType::is_event)
}

fn kind(message: &[u8]) -> Option<MessageType> {
    MessageType::from_number(message.first()? & 0xF)
}

/// State of a message in a transparent clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Residence {
    /// Instant of arrival, by the oscillator.
    pub(crate) since: LocalTime,
    /// correctionField on arrival, plus the ingress link delay where peers measure it, 2⁻¹⁶ ns.
    pub(crate) correction: i64,
}

/// A message under way.
#[derive(Debug, Default)]
struct UnderWay {
    bytes: Vec<u8>,
    /// Distinguishes it from earlier messages at its place.
    turn: u16,
    /// Index of the sending port.
    port: usize,
    /// Context for the transmit timestamp; `None` if its maker does not need one.
    context: Option<TimestampContext>,
    residence: Option<Residence>,
}

/// The messages under way.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    messages: Vec<UnderWay>,
    next: u32,
    turn: u16,
}

/// A message to be sent.
pub(crate) struct ToSend<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) link_local: bool,
    pub(crate) port: usize,
    pub(crate) context: Option<TimestampContext>,
    pub(crate) residence: Option<Residence>,
}

impl Messages {
    pub(crate) fn make(
        &mut self,
        message: ToSend<'_>,
        source: MacAddress,
        network: NetworkId,
        priority: u8,
    ) -> Frame {
        let ToSend { bytes, link_local, port, context, residence } = message;
        let place = self.next as usize;
        if place == self.messages.len() {
            self.messages.push(UnderWay::default());
        }
        let under_way = &mut self.messages[place];
        under_way.bytes.clear();
        under_way.bytes.extend_from_slice(bytes);
        self.turn = self.turn.wrapping_add(1);
        (under_way.turn, under_way.port) = (self.turn, port);
        (under_way.context, under_way.residence) = (context, residence);
        let handle = Message::ptp(self.next).handle();
        self.next = (self.next + 1) % PTP_MESSAGES;
        #[expect(clippy::cast_possible_truncation, reason = "messages are shorter than 1500 octets")]
        let length = (HEADER + bytes.len() + FCS).max(MIN_FRAME_LEN) as u16;
        Frame {
            destination: ADDRESSES[usize::from(link_local)],
            source,
            length,
            vlan: 0,
            virtual_link: 0,
            sequence: self.turn,
            handle,
            priority,
            class: TrafficClass::BestEffort,
            network,
            marks: Marks::none(),
        }
    }

    fn place(&self, frame: &Frame) -> Option<usize> {
        let place = frame.message().ptp_place()? as usize;
        (self.messages.get(place)?.turn == frame.sequence).then_some(place)
    }

    /// The bytes of `frame`; `None` if it is no PTP message, was damaged, or was replaced by a younger one.
    pub(crate) fn read(&self, frame: &Frame) -> Option<Vec<u8>> {
        if frame.marks.has(Marks::FCS_ERROR) {
            return None;
        }
        let mut bytes = self.messages[self.place(frame)?].bytes.clone();
        // A link altered it without a wrong frame check sequence.
        if let (true, Some(last)) = (frame.message().flags.has(Flags::DAMAGED), bytes.last_mut()) {
            *last ^= 1;
        }
        Some(bytes)
    }

    /// Index of its sending port.
    pub(crate) fn port(&self, frame: &Frame) -> Option<usize> {
        Some(self.messages[self.place(frame)?].port)
    }

    /// The message is sent: takes the context for its transmit timestamp.
    pub(crate) fn take_context(&mut self, frame: &Frame) -> Option<TimestampContext> {
        let place = self.place(frame)?;
        self.messages[place].context.take()
    }

    /// The message is not sent now after all: restores its context.
    pub(crate) fn put_back(&mut self, frame: &Frame, context: TimestampContext) {
        if let Some(place) = self.place(frame) {
            self.messages[place].context = Some(context);
        }
    }

    /// A transparent clock sends it at `now`, by its oscillator: correctionField grows by the residence time (10.2.2).
    pub(crate) fn correct(&mut self, frame: &Frame, now: LocalTime) {
        let Some(place) = self.place(frame) else { return };
        let under_way = &mut self.messages[place];
        let Some(Residence { since, correction }) = under_way.residence else { return };
        let correction = correction.saturating_add(fraction_of_ns(now - since));
        under_way.bytes[CORRECTION..CORRECTION + 8].copy_from_slice(&correction.to_be_bytes());
    }

    /// The bytes of its frame, FCS included.
    pub(crate) fn image(&self, frame: &Frame) -> Option<Vec<u8>> {
        let message = &self.messages[self.place(frame)?].bytes;
        let mut bytes = vec![0; usize::from(frame.length)];
        let header = Repr { destination: frame.destination, source: frame.source, ethertype: EtherType::PTP };
        let (content, fcs) = bytes.split_at_mut(usize::from(frame.length) - FCS);
        header.emit(&mut EthernetView::new_checked(&mut *content).ok()?);
        content[HEADER..HEADER + message.len()].copy_from_slice(message);
        content[HEADER + message.len() - 1] ^= u8::from(frame.message().flags.has(Flags::DAMAGED));
        let mut sum = crc32fast::hash(content).to_le_bytes();
        sum[0] ^= u8::from(frame.marks.has(Marks::FCS_ERROR));
        fcs.copy_from_slice(&sum);
        Some(bytes)
    }
}

/// correctionField of a message.
pub(crate) fn correction(message: &[u8]) -> i64 {
    let field = message.get(CORRECTION..CORRECTION + 8).and_then(|bytes| bytes.try_into().ok());
    field.map_or(0, i64::from_be_bytes)
}

/// A time in units of 2⁻¹⁶ ns, rounded to the nearest.
fn fraction_of_ns(span: Span) -> i64 {
    let scaled = (i128::from(span.as_picos()) << 16) + 500;
    i64::try_from(scaled.div_euclid(1_000)).unwrap_or(i64::MAX)
}

/// Action of a switch on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passing {
    /// Not forwarded.
    Ends,
    /// Forwarded unchanged.
    AsItIs,
    /// Forwarded with its residence time added.
    Corrected,
}

/// What a switch does with a message of a domain with this delay mechanism; a switch that is not transparent takes no
/// part.
pub(crate) fn passing(message: &[u8], delay: PtpDelay, is_transparent: bool) -> Passing {
    let Some(kind) = kind(message) else { return Passing::Ends };
    let of_peers =
        matches!(kind, MessageType::PdelayReq | MessageType::PdelayResp | MessageType::PdelayRespFollowUp);
    match (delay, kind) {
        // Answered at the port; and no delay is requested from the master (10.3.2).
        (PtpDelay::P2p, _) if of_peers || kind == MessageType::DelayReq => Passing::Ends,
        // 802.1Q does not forward their address.
        (PtpDelay::E2e, _) if of_peers => Passing::Ends,
        _ if is_transparent && kind.is_event() => Passing::Corrected,
        _ => Passing::AsItIs,
    }
}

/// Role of a node in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Ordinary,
    Boundary,
    /// Transparent clock: measures the delays of its links if it is peer-to-peer, and follows no master.
    Transparent,
}

impl Part {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary-clock",
            Self::Boundary => "boundary-clock",
            Self::Transparent => "transparent-clock",
        }
    }
}

/// State of a PTP clock besides that of `statime`.
pub(crate) struct PtpNode<'a> {
    pub(crate) node: NodeIndex,
    pub(crate) domain: usize,
    pub(crate) part: Part,
    /// The `statime` instance; `None` while it has no power, until `powered`.
    pub(crate) instance: Option<Instance<'a>>,
    pub(crate) powered: RunTime,
    /// Shared state of the instances to come, one for each time it is powered up.
    pub(crate) shared: VecDeque<&'a Shared>,
    /// States of its ports, by place, as recorded last.
    pub(crate) states: Vec<u8>,
    /// Node of its grandmaster, or its own.
    pub(crate) grandmaster: Option<NodeIndex>,
    pub(crate) is_synchronised: bool,
    /// Instant since which its offset has been small enough.
    pub(crate) within_since: Option<RunTime>,
    pub(crate) synchronised_at: Option<RunTime>,
    pub(crate) losses: u64,
    /// Greatest offset from its grandmaster while it was synchronised.
    pub(crate) most: Option<Span>,
    /// Greatest error against true time in the measured part.
    pub(crate) error: Span,
    /// Greatest difference from the grandmaster of its domain, or from true time while there was none.
    pub(crate) apart: Span,
    /// Number of corrections by the filter that its clock refused.
    pub(crate) refused: u64,
}

/// A domain.
#[derive(Debug)]
pub(crate) struct DomainState {
    pub(crate) plan: wg_plan::PtpDomain,
    /// Ports, by index, that send its messages, by node.
    pub(crate) ports: BTreeMap<NodeIndex, Vec<usize>>,
    /// Indices of its ordinary and boundary clocks.
    pub(crate) clocks: Vec<usize>,
    /// Time for which an offset has to be small enough.
    pub(crate) hold: Span,
    pub(crate) grandmaster: Option<NodeIndex>,
    pub(crate) changes: u64,
    pub(crate) synchronised_at: Option<RunTime>,
    /// Greatest difference of synchronised clocks since all were synchronised first.
    pub(crate) spread: Option<Span>,
}

/// All domains of a run.
#[derive(Default)]
pub(crate) struct Ptp<'a> {
    pub(crate) domains: Vec<DomainState>,
    pub(crate) nodes: Vec<PtpNode<'a>>,
    pub(crate) messages: Messages,
    /// Node whose stack panicked.
    pub(crate) failed: Option<NodeIndex>,
    /// Index in `nodes` of each node's clock.
    pub(crate) clock_of: BTreeMap<NodeIndex, usize>,
    /// Index in `nodes` of each domain's and node's transparent clock.
    pub(crate) transparent_of: BTreeMap<(usize, NodeIndex), usize>,
}

impl Ptp<'_> {
    /// Indices in `nodes` of a node's PTP roles.
    pub(crate) fn of(&self, node: NodeIndex) -> impl Iterator<Item = usize> + use<> {
        let own = self.clock_of.get(&node).copied();
        let as_peer = (0..self.domains.len()).filter_map(|domain| self.transparent_of.get(&(domain, node)));
        own.into_iter().chain(as_peer.copied()).collect::<Vec<_>>().into_iter()
    }
}
