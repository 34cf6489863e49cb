//! Frames that crossed between hosts and a network played between them: those that came in, and those handed out. With
//! the plan they are all inputs of the network, so that its run can be repeated.

use arrow_array::ArrayRef;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::coded;
use crate::columns::{Cells, flag_cells, kind_cells, number_cells, vocabulary};
use crate::schema::{FLOW_FOREIGN, RecordFlags};
use crate::table::Row;

coded! {
    /// Direction or outcome of a crossing.
    CrossingKind {
        /// A host's frame came to its card.
        Entered = 0 "entered",
        /// A card's frame was handed to its host.
        Left = 1 "left",
        /// The host's kernel did not take it.
        Refused = 2 "refused",
        /// No frame: end of the network's run, written after all crossings.
        Ended = 3 "ended",
        /// A host's frame came, and there was no room to keep it: the model never had it.
        NoRoom = 4 "no-room",
    }
}

/// A frame that crossed between a host and the network, in the order in which the network handled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Instant of the crossing in the network's time.
    pub time: RunTime,
    /// Lateness of the network against the host's time: how long after its arrival the frame was taken, or how long
    /// after `time` it was handed out.
    pub late: Span,
    /// Destination address; zeros for a frame that leaves.
    pub destination: MacAddress,
    /// Source address; zeros for a frame that leaves.
    pub source: MacAddress,
    /// Number of its message. For a frame without one: number of its background load, from 1; 0: none.
    pub sequence: u32,
    /// Flow of its message; [`FLOW_FOREIGN`] without one.
    pub flow: u16,
    /// Node of the host.
    pub node: u16,
    /// Length in bytes, FCS included; may be less than on the line, where short frames are padded.
    pub length: u16,
    /// The tag control information of its VLAN tag (IEEE 802.1Q-2022, 9.6).
    pub tag: Option<u16>,
    /// Last byte, the sequence number in a frame of a virtual link.
    pub last: u8,
    /// Leg and phase of its message.
    pub flags: RecordFlags,
    /// Direction or outcome.
    pub kind: CrossingKind,
}

impl Crossing {
    /// The row that marks the end.
    pub const fn ended(time: RunTime) -> Self {
        let none = MacAddress([0; 6]);
        Self {
            time,
            late: Span::ZERO,
            destination: none,
            source: none,
            sequence: 0,
            flow: FLOW_FOREIGN,
            node: 0,
            length: 0,
            tag: None,
            last: 0,
            flags: RecordFlags::empty(),
            kind: CrossingKind::Ended,
        }
    }
}

/// Cell value of a frame without tag.
const UNTAGGED: i32 = -1;

fn number(address: MacAddress) -> u64 {
    address.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn address(number: u64) -> MacAddress {
    let [_, _, rest @ ..] = number.to_be_bytes();
    MacAddress(rest)
}

impl Row for Crossing {
    const FILE: &'static str = "crossings.arrows";
    const KIND: &'static str = "crossings";
    const SCHEMA: u32 = 1;
    const GROWING: &'static [&'static str] = &["time", "late"];
    const COLUMNS: &'static [Cells<Self>] = &[
        number_cells!("time", Int64Type, |row| row.time.as_picos(), |row, cell| {
            row.time = RunTime::from_picos(cell);
        }),
        kind_cells!(CrossingKind),
        number_cells!("late", Int64Type, |row| row.late.as_picos(), |row, cell| {
            row.late = Span::from_picos(cell);
        }),
        number_cells!("flow", UInt16Type, |row| row.flow, |row, cell| row.flow = cell),
        number_cells!("sequence", UInt32Type, |row| row.sequence, |row, cell| row.sequence = cell),
        number_cells!("node", UInt16Type, |row| row.node, |row, cell| row.node = cell),
        number_cells!("length", UInt16Type, |row| row.length, |row, cell| row.length = cell),
        number_cells!("destination", UInt64Type, |row| number(row.destination), |row, cell| {
            row.destination = address(cell);
        }),
        number_cells!("source", UInt64Type, |row| number(row.source), |row, cell| row.source = address(cell)),
        number_cells!("tag", Int32Type, |row| row.tag.map_or(UNTAGGED, i32::from), |row, cell| {
            row.tag = u16::try_from(cell).ok();
        }),
        number_cells!("last", UInt8Type, |row| row.last, |row, cell| row.last = cell),
        flag_cells!("returning", RecordFlags::RETURN),
        flag_cells!("warm_up", RecordFlags::WARM_UP),
    ];

    fn blank() -> Self {
        Self::ended(RunTime::ZERO)
    }

    fn time(&self) -> RunTime {
        self.time
    }

    fn kinds() -> ArrayRef {
        vocabulary::<CrossingKind>()
    }
}
