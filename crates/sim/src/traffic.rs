//! Sources of traffic: senders of flows, relays, injectors of load, logs of hosts, babbling end systems.

use std::collections::{BTreeMap, VecDeque};

use wg_core::arinc664::VirtualLinkId;
use wg_core::frame::{Frame, NetworkId};
use wg_core::pacing::Pacer;
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};
use wg_plan::random::Stream;
use wg_plan::schedule::{Due, Schedule};
use wg_plan::{FlowId, NodeIndex, Turn};

use crate::imperfections::Threads;

/// Messages received at an end of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reception {
    pub(crate) received: u64,
    pub(crate) damaged: u64,
    pub(crate) elsewhere: u64,
    pub(crate) gaps: u64,
    pub(crate) repeats: u64,
    /// Number of measured messages expected.
    pub(crate) planned: u32,
    next: [u32; 2],
}

impl Reception {
    /// Counts an intact message; warm-up messages are numbered separately. Returns whether all measured messages have
    /// now come in order: where one was lost or overtaken, this cannot be told.
    pub(crate) fn follow(&mut self, sequence: u32, warm_up: bool) -> bool {
        self.received += 1;
        let next = &mut self.next[usize::from(warm_up)];
        match sequence.cmp(next) {
            std::cmp::Ordering::Greater => self.gaps += 1,
            std::cmp::Ordering::Less => self.repeats += 1,
            std::cmp::Ordering::Equal => {}
        }
        if sequence >= *next {
            *next = sequence.saturating_add(1);
            return *next == self.planned && !warm_up && self.gaps == 0;
        }
        false
    }
}

/// The sender of a flow's messages: three cache lines, since between two of its messages all others have sent.
#[repr(align(64))]
pub(crate) struct Sender {
    pub(crate) flow: u32,
    pub(crate) host: u32,
    /// The frame of the next message, made when that is planned: a frame just made in parts cannot be copied before all
    /// of them have reached the cache.
    pub(crate) frame: Frame,
    /// The addresses that its messages use in turn, if there are several.
    pub(crate) addresses: Option<Box<AddressesInTurn>>,
    /// Lateness beyond which a message counts as late.
    pub(crate) late_after: Span,
    pub(crate) schedule: Schedule,
    /// The next message.
    pub(crate) due: Option<Due>,
    /// State of gap pacing.
    pub(crate) paced: Option<Box<Paced>>,
    pub(crate) wake_ups: Stream,
    pub(crate) done: u64,
    pub(crate) late: u64,
}

const _: () = assert!(core::mem::size_of::<Sender>() == 192, "three lines of cache");

impl Sender {
    /// Intended sending time of a message, by the clock of its host.
    #[inline]
    pub(crate) fn intended(&self, due: Due) -> RunTime {
        self.paced.as_ref().map_or(due.at, |paced| paced.pacer.intended(due.at))
    }
}

/// State of a sender that paces by its sending times.
pub(crate) struct Paced {
    pub(crate) pacer: Pacer,
    /// Planned and actual sending time of the last message, by its clock.
    pub(crate) last: Option<(RunTime, RunTime)>,
}

/// Addresses that the messages of a sender use in turn, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressesInTurn {
    /// The first source address, and their number.
    pub(crate) sources: (MacAddress, u32),
    /// The first destination address, and their number.
    pub(crate) destinations: (MacAddress, u32),
}

impl AddressesInTurn {
    /// Source and destination address of message `sequence`.
    pub(crate) fn of(&self, sequence: u32) -> (MacAddress, MacAddress) {
        let at = |(first, count): (MacAddress, u32)| first.offset_by(u64::from(sequence % count.max(1)));
        (at(self.sources), at(self.destinations))
    }
}

#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) flow: usize,
    /// Flow number of its answers.
    pub(crate) answers_as: FlowId,
    /// Answers received by the sender.
    pub(crate) came_back: Reception,
    pub(crate) host: usize,
    pub(crate) node: NodeIndex,
    pub(crate) through: Turn,
    /// Virtual link of the answers, if they are not sent by address.
    pub(crate) vl: Option<VirtualLinkId>,
    /// Network of the answers, the first of two.
    pub(crate) network: NetworkId,
    pub(crate) core: wg_core::relay::Relay<Frame>,
    /// Messages on their way to the relay task, with their instants; ascending.
    pub(crate) coming: VecDeque<(RunTime, Frame)>,
    pub(crate) wake_ups: Stream,
    pub(crate) handled: u64,
}

#[derive(Debug)]
pub(crate) struct Injector {
    pub(crate) host: usize,
    pub(crate) frame: Frame,
    pub(crate) burst: u32,
    /// Its bursts from the start.
    pub(crate) planned: Schedule,
    /// Its bursts after the next one.
    pub(crate) schedule: Schedule,
    /// Planned instant of the next burst, by the clock of its node; `None`: never.
    pub(crate) due: Option<RunTime>,
    pub(crate) pacer: Pacer,
    /// Threads that send, in place of a schedule.
    pub(crate) threads: Option<Box<Threads>>,
    pub(crate) done: u64,
    /// Number of intact frames that reached their host.
    pub(crate) arrived: u64,
    /// Number of frames that did not, misdirected copies included, by cause: lost by a link, or the reason of the drop.
    pub(crate) lost: BTreeMap<&'static str, u64>,
}

/// A host's log of the messages of its applications, sent to another host.
#[derive(Debug)]
pub(crate) struct RemoteLog {
    pub(crate) host: usize,
    pub(crate) frame: Frame,
    /// Records in a frame.
    pub(crate) records: u32,
    /// Instants of messages still to be logged; ascending.
    pub(crate) due: VecDeque<RunTime>,
    pub(crate) logged: u64,
    /// Number of frames that the host took.
    pub(crate) sent: u64,
}

/// A babbling end system.
#[derive(Debug)]
pub(crate) struct Babbler {
    pub(crate) host: usize,
    pub(crate) node: NodeIndex,
    pub(crate) frame: Frame,
    pub(crate) period: Span,
    pub(crate) until: RunTime,
}
