//! The stored rows of frames that cross between hosts and network.

use wg_frame::ethernet::MacAddress;
use wg_frame::layout::Tag;
use wg_frame::probe::{Probe, ProbeFlags};
use wg_frame::time::{RunTime, Span};
use wg_frame::vlan;
use wg_plan::NodeIndex;
use wg_record::{Crossing, CrossingKind, FLOW_FOREIGN, RecordFlags};

use super::{Headers, Incoming, Outgoing};

/// Bits of a tag's control information below its priority and its drop eligible indicator (IEEE 802.1Q-2022, 9.6).
const ID_BITS: u32 = 12;
const PRIORITY_AT: u32 = ID_BITS + 1;

/// Converts leg and phase of the probe header to those of records.
const FLAGS: [(ProbeFlags, RecordFlags); 2] =
    [(ProbeFlags::RETURN, RecordFlags::RETURN), (ProbeFlags::WARM_UP, RecordFlags::WARM_UP)];

impl Headers {
    /// The row for a frame from host `node` at `at` that found no room.
    pub fn without_room(&self, node: NodeIndex, at: RunTime) -> Crossing {
        self.crossing(node, at, CrossingKind::NoRoom)
    }

    fn crossing(&self, node: NodeIndex, at: RunTime, kind: CrossingKind) -> Crossing {
        let Self { destination, source, length, tag, probe, label, last } = *self;
        let control = |tag: Tag| {
            u16::from(tag.priority.get()) << PRIORITY_AT
                | u16::from(tag.drop_eligible) << ID_BITS
                | tag.id.get()
        };
        let mut row = Crossing {
            destination,
            source,
            node,
            length,
            tag: tag.map(control),
            last,
            sequence: label,
            kind,
            ..Crossing::ended(at)
        };
        if let Some(probe) = probe {
            (row.flow, row.sequence) = (probe.flow, probe.sequence);
            let set = FLAGS.into_iter().filter(|(theirs, _)| probe.flags.has(*theirs));
            row.flags = set.fold(RecordFlags::empty(), |all, (_, ours)| all.with(ours));
        }
        row
    }
}

impl Incoming {
    /// The row for a frame that entered at `at`.
    pub fn crossing(&self, at: RunTime) -> Crossing {
        Crossing { late: at - self.at, ..self.headers.crossing(self.node, at, CrossingKind::Entered) }
    }

    /// The arrival that a row describes; its bytes are at `place`.
    pub fn again(row: &Crossing, place: u32) -> Self {
        let tag = row.tag.and_then(|control| {
            let id = vlan::VlanId::new(control & ((1 << ID_BITS) - 1)).ok()?;
            let priority = vlan::Priority::new((control >> PRIORITY_AT).to_le_bytes()[0]).ok()?;
            Some(Tag { priority, drop_eligible: control >> ID_BITS & 1 != 0, id })
        });
        let set = FLAGS.into_iter().filter(|(_, theirs)| row.flags.has(*theirs));
        let flags = set.fold(ProbeFlags::NONE, |all, (ours, _)| all.with(ours));
        let probe = Probe { flow: row.flow, sequence: row.sequence, flags };
        let headers = Headers {
            destination: row.destination,
            source: row.source,
            length: row.length,
            tag,
            probe: (row.flow != FLOW_FOREIGN).then_some(probe),
            label: if row.flow == FLOW_FOREIGN { row.sequence } else { 0 },
            last: row.last,
        };
        Self { node: row.node, at: row.time, place, headers }
    }
}

impl Outgoing<'_> {
    /// The row for a frame that was handed out late by `late`, or that its host did not take; `sequence` is that of its message.
    pub fn crossing(&self, sequence: u32, late: Span, is_taken: bool) -> Crossing {
        Crossing {
            late,
            destination: MacAddress([0; 6]),
            source: MacAddress([0; 6]),
            sequence,
            flow: self.flow,
            node: self.node,
            length: self.frame.length,
            flags: self.flags,
            kind: if is_taken { CrossingKind::Left } else { CrossingKind::Refused },
            ..Crossing::ended(self.at)
        }
    }
}
