//! Frames that crossed between hosts and a network that was played between them: what came in, and what was handed out. With
//! the plan it is all that the network was told, so that what it did can be done again.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::coded;
use crate::columns::{
    CodeColumn, bit_column, bits, codes, number_column, numbers, vocabulary, vocabulary_type,
};
use crate::schema::{FLOW_FOREIGN, RecordFlags};
use crate::table::Row;

coded! {
    /// What crossed, and which way.
    CrossingKind {
        /// A host's frame came to its card.
        Entered = 0 "entered",
        /// A card's frame was handed to its host.
        Left = 1 "left",
        /// The host's kernel did not take it.
        Refused = 2 "refused",
        /// Nothing crossed: here the network ended, all before it is there.
        Ended = 3 "ended",
    }
}

/// A frame that crossed between a host and the network, in the order in which the network knew of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When, by the network.
    pub time: RunTime,
    /// By how much the network's time differs from that of the host: it took the frame so long after it had come, or it was given
    /// out so long after `time`.
    pub late: Span,
    /// Where it goes; zeros of one that leaves.
    pub destination: MacAddress,
    /// Where it comes from, likewise.
    pub source: MacAddress,
    /// Number of its message; 0 without one.
    pub sequence: u32,
    /// Flow of its message; [`FLOW_FOREIGN`] without one.
    pub flow: u16,
    /// The host.
    pub node: u16,
    /// Bytes, FCS included; less than a frame has, where it is padded on the line.
    pub length: u16,
    /// The tag control information of its VLAN tag (IEEE 802.1Q-2022, 9.6).
    pub tag: Option<u16>,
    /// Its last byte, in which the frame of a virtual link has its number.
    pub last: u8,
    /// Leg and phase of its message.
    pub flags: RecordFlags,
    /// What.
    pub kind: CrossingKind,
}

impl Crossing {
    /// The row of the end.
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

/// A table's cell for no tag.
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

    fn time(&self) -> RunTime {
        self.time
    }

    fn schema(metadata: HashMap<String, String>) -> SchemaRef {
        let field = |name: &str, data_type| Field::new(name, data_type, false);
        let fields = vec![
            field("time", DataType::Int64),
            field("kind", vocabulary_type()),
            field("late", DataType::Int64),
            field("flow", DataType::UInt16),
            field("sequence", DataType::UInt32),
            field("node", DataType::UInt16),
            field("length", DataType::UInt16),
            field("destination", DataType::UInt64),
            field("source", DataType::UInt64),
            field("tag", DataType::Int32),
            field("last", DataType::UInt8),
            field("returning", DataType::Boolean),
            field("warm_up", DataType::Boolean),
        ];
        Arc::new(Schema::new(fields).with_metadata(metadata))
    }

    fn kinds() -> ArrayRef {
        vocabulary::<CrossingKind>()
    }

    fn batch(rows: &[Self], schema: &SchemaRef, kinds: &ArrayRef) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(
            schema.clone(),
            vec![
                numbers::<Self, Int64Type>(rows, |one| one.time.as_picos()),
                codes(rows, kinds, |one| one.kind.code())?,
                numbers::<Self, Int64Type>(rows, |one| one.late.as_picos()),
                numbers::<Self, UInt16Type>(rows, |one| one.flow),
                numbers::<Self, UInt32Type>(rows, |one| one.sequence),
                numbers::<Self, UInt16Type>(rows, |one| one.node),
                numbers::<Self, UInt16Type>(rows, |one| one.length),
                numbers::<Self, UInt64Type>(rows, |one| number(one.destination)),
                numbers::<Self, UInt64Type>(rows, |one| number(one.source)),
                numbers::<Self, Int32Type>(rows, |one| one.tag.map_or(UNTAGGED, i32::from)),
                numbers::<Self, UInt8Type>(rows, |one| one.last),
                bits(rows, |one| one.flags.has(RecordFlags::RETURN)),
                bits(rows, |one| one.flags.has(RecordFlags::WARM_UP)),
            ],
        )
    }

    fn decode(batch: &RecordBatch, into: &mut Vec<Self>) -> Result<(), String> {
        let time = number_column::<Int64Type>(batch, "time")?;
        let kind = CodeColumn::<CrossingKind>::of(batch, "kind")?;
        let late = number_column::<Int64Type>(batch, "late")?;
        let flow = number_column::<UInt16Type>(batch, "flow")?;
        let sequence = number_column::<UInt32Type>(batch, "sequence")?;
        let node = number_column::<UInt16Type>(batch, "node")?;
        let length = number_column::<UInt16Type>(batch, "length")?;
        let destination = number_column::<UInt64Type>(batch, "destination")?;
        let source = number_column::<UInt64Type>(batch, "source")?;
        let tag = number_column::<Int32Type>(batch, "tag")?;
        let last = number_column::<UInt8Type>(batch, "last")?;
        let returning = bit_column(batch, "returning")?;
        let warm_up = bit_column(batch, "warm_up")?;
        into.extend((0..batch.num_rows()).map(|row| Self {
            time: RunTime::from_picos(time[row]),
            late: Span::from_picos(late[row]),
            destination: address(destination[row]),
            source: address(source[row]),
            sequence: sequence[row],
            flow: flow[row],
            node: node[row],
            length: length[row],
            tag: u16::try_from(tag[row]).ok(),
            last: last[row],
            flags: RecordFlags::from_bits(u8::from(returning.value(row)) | u8::from(warm_up.value(row)) << 1),
            kind: kind.at(row),
        }));
        Ok(())
    }
}
