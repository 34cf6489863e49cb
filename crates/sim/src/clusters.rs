//! Devices that synchronise by AS6802, and the protocol control frames between them.
//!
//! A control frame is a frame like any other: it waits in queues, and faults of links affect it. Its content lies in a
//! table, by the place in its handle, because frames carry no content here. Every device on its way adds to its
//! transparent clock: a constant for the link and the reception, and the frame's waiting time by its own oscillator.

use std::collections::BTreeMap;

use wg_core::as6802::{
    CompressionMaster, ControlRepr, EndSystem, Output, Parameters, State, TransparentClock,
};
use wg_core::clock::LocalTime;
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::line::SMALLEST_FRAME;
use wg_frame::ethernet::{EtherType, Frame as EthernetView, MIN_FRAME_LEN, MacAddress, Repr};
use wg_frame::time::{RunTime, Span};
use wg_frame::tte::{CONTROL_LEN, ControlFrame, CriticalTrafficId};
use wg_plan::NodeIndex;

use crate::message::{CONTROL_FRAMES, Carries, Message};

/// Least critical-traffic identifier of control frames, above all others.
const IDENTIFIERS: u16 = 0xF000;

/// Cluster, channel and direction of a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) cluster: usize,
    pub(crate) channel: usize,
    /// Whether it comes from the compression master, or goes to it.
    pub(crate) down: bool,
}

impl Way {
    pub(crate) fn id(self) -> u16 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a test has few clusters, each 3 channels at most"
        )]
        let number = (self.cluster << 4 | self.channel << 1 | usize::from(self.down)) as u16;
        IDENTIFIERS | number
    }
    fn of(id: u16) -> Self {
        let number = usize::from(id & !IDENTIFIERS);
        Self { cluster: number >> 4, channel: number >> 1 & 7, down: number & 1 == 1 }
    }
}

/// Content of a control frame under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    content: ControlRepr,
    /// Instant up to which its transparent clock has counted.
    counted: RunTime,
}

/// Contents of the control frames under way.
#[derive(Debug, Default)]
pub(crate) struct ControlFrames {
    frames: Vec<UnderWay>,
    next: u32,
}

impl ControlFrames {
    /// Makes a frame that begins to wait at `now`.
    pub(crate) fn make(
        &mut self,
        now: RunTime,
        content: ControlRepr,
        way: Way,
        source: MacAddress,
        network: NetworkId,
    ) -> Frame {
        let place = self.next;
        let made = UnderWay { content, counted: now };
        match self.frames.get_mut(place as usize) {
            Some(old) => *old = made,
            None => self.frames.push(made),
        }
        self.next = (place + 1) % CONTROL_FRAMES;
        Frame {
            destination: CriticalTrafficId(way.id()).destination(),
            source,
            length: SMALLEST_FRAME,
            vlan: 0,
            virtual_link: way.id(),
            sequence: 0,
            handle: Message::control(place).handle(),
            priority: 7,
            class: TrafficClass::BestEffort,
            network,
            marks: Marks::none(),
        }
    }

    /// Content and way of `frame`; `None` if it is no control frame, or was damaged.
    pub(crate) fn read(&self, frame: &Frame) -> Option<(ControlRepr, Way)> {
        let place = frame.message().control_place()?;
        let sound = !frame.marks.has(Marks::FCS_ERROR);
        sound.then(|| (self.frames[place as usize].content, Way::of(frame.virtual_link)))
    }

    /// Advances its transparent clock to `now`; `counted` returns the delay since the given instant.
    pub(crate) fn count(&mut self, frame: &Frame, now: RunTime, counted: impl Fn(RunTime) -> Span) {
        let Some(place) = frame.message().control_place() else { return };
        let under_way = &mut self.frames[place as usize];
        let clock = &mut under_way.content.transparent_clock;
        // A clock beyond 64 bits means that the frame is too old, as a full one does.
        *clock = clock.plus(counted(under_way.counted)).unwrap_or(TransparentClock(u64::MAX));
        under_way.counted = now;
    }

    /// The bytes of a control frame.
    pub(crate) fn image(&self, frame: &Frame) -> Option<[u8; MIN_FRAME_LEN]> {
        let place = frame.message().control_place()?;
        let mut bytes = [0; MIN_FRAME_LEN];
        let (content, fcs) = bytes.split_at_mut(MIN_FRAME_LEN - 4);
        let header = Repr {
            destination: frame.destination,
            source: frame.source,
            ethertype: EtherType::PROTOCOL_CONTROL,
        };
        header.emit(&mut EthernetView::new_checked(&mut *content).ok()?);
        let mut control = ControlFrame::new_checked(&mut content[14..]).ok()?;
        self.frames[place as usize].content.emit(&mut control);
        let mut sum = crc32fast::hash(content).to_le_bytes();
        sum[0] ^= u8::from(frame.marks.has(Marks::FCS_ERROR));
        fcs.copy_from_slice(&sum);
        Some(bytes)
    }
}

const _: () = assert!(CONTROL_LEN <= MIN_FRAME_LEN - 18, "a smallest frame holds the fields");
const _: () = assert!(size_of::<Handle>() == 8);

/// State machine of a device.
#[derive(Debug)]
pub(crate) enum SyncCore {
    End(EndSystem),
    Compression(CompressionMaster),
}

impl SyncCore {
    pub(crate) fn handle_deadline(&mut self, now: LocalTime) {
        match self {
            Self::End(core) => core.handle_deadline(now),
            Self::Compression(core) => core.handle_deadline(now),
        }
    }
    pub(crate) fn next_deadline(&self) -> LocalTime {
        match self {
            Self::End(core) => core.next_deadline(),
            Self::Compression(core) => core.next_deadline(),
        }
    }
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        match self {
            Self::End(core) => core.poll_output(),
            Self::Compression(core) => core.poll_output(),
        }
    }
}

/// Role of a device in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Master(u8),
    Client,
    /// Compression master of this channel.
    CompressionMaster(usize),
}

impl Part {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Master(_) => "synchronisation-master",
            Self::Client => "synchronisation-client",
            Self::CompressionMaster(_) => "compression-master",
        }
    }
}

/// A device of a cluster.
#[derive(Debug)]
pub(crate) struct Synchroniser {
    pub(crate) node: NodeIndex,
    pub(crate) cluster: usize,
    pub(crate) part: Part,
    pub(crate) behaviour: wg_core::as6802::Behaviour,
    /// The state machine; `None` while it has no power, until `powered`.
    pub(crate) core: Option<SyncCore>,
    pub(crate) powered: RunTime,
    pub(crate) state: State,
    /// Whether its clock is set to that of the cluster.
    pub(crate) is_set: bool,
    pub(crate) synchronised_at: Option<RunTime>,
    pub(crate) losses: u64,
    pub(crate) cliques: [u64; 3],
    pub(crate) members: u32,
}

impl Synchroniser {
    pub(crate) fn is_faulty(&self) -> bool {
        self.behaviour != wg_core::as6802::Behaviour::Correct
    }
    /// Whether its clock counts for the precision of the cluster.
    pub(crate) fn agrees(&self) -> bool {
        self.is_set && self.state.is_synchronised() && !self.is_faulty()
    }
}

/// A cluster.
#[derive(Debug)]
pub(crate) struct ClusterState {
    pub(crate) parameters: Parameters,
    pub(crate) precision_bound: Span,
    pub(crate) startup_bound: Span,
    /// Port, by index, towards the compression master, by channel and node.
    pub(crate) up: BTreeMap<(usize, NodeIndex), usize>,
    /// Ports towards all other devices, by channel and node.
    pub(crate) down: BTreeMap<(usize, NodeIndex), Vec<usize>>,
    /// Indices of its devices.
    pub(crate) devices: Vec<usize>,
    /// Greatest difference of clocks since the last report.
    pub(crate) spread: Span,
    /// Greatest difference of clocks since all were synchronised first.
    pub(crate) most: Option<Span>,
    pub(crate) told: RunTime,
    /// Instant at which the last of its devices was first powered up.
    pub(crate) powered: RunTime,
    pub(crate) synchronised_at: Option<RunTime>,
}
