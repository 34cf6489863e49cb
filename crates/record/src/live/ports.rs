//! How long frames stayed in switches, by the port of their departure.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;
use wg_frame::time::RunTime;
use wg_plan::{FlowId, NodeIndex};

use crate::{Point, Record, RecordFlags};

/// Arrivals at switches that are remembered at least.
pub(super) const MOST_INSIDE: usize = 1 << 15;
/// Departures by a port that are remembered.
const MOST_DEPARTED: usize = 1 << 12;

/// Stays of frames in switches that ended at one port, since the last look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortSums {
    /// The switch.
    pub node: NodeIndex,
    /// The port by which they left.
    pub port: u16,
    /// How many left.
    pub frames: u64,
    /// The longest stay, ns.
    pub longest_ns: i64,
    /// The most frames that left by the port while one stayed, that one included: what it found before it in the queue,
    /// and what overtook it. Of departures that are remembered, 4096 at most.
    pub queued: u64,
}

/// A frame in a switch: node, flow, sequence number, whether it is on the way back.
type Inside = (NodeIndex, FlowId, u32, bool);

#[derive(Debug, Default)]
struct Departures {
    /// Of the last frames, in order.
    left: VecDeque<RunTime>,
    frames: u64,
    longest_ns: i64,
    queued: u64,
}

impl Departures {
    fn add(&mut self, came: RunTime, left: RunTime) {
        if self.left.len() == MOST_DEPARTED {
            self.left.pop_front();
        }
        self.left.push_back(left);
        self.frames += 1;
        self.longest_ns = self.longest_ns.max((left - came).as_picos() / 1_000);
        let before = self.left.partition_point(|earlier| *earlier <= came);
        self.queued = self.queued.max((self.left.len() - before) as u64);
    }
}

/// Frames of the test in switches. A frame that stays while [`MOST_INSIDE`] others come may be forgotten, and then has no
/// stay.
#[derive(Debug, Default)]
pub(super) struct Stays {
    /// Arrivals, the later and the earlier ones. None is removed by leaving: copies may follow.
    pub(super) came: [HashMap<Inside, RunTime>; 2],
    of_ports: BTreeMap<(NodeIndex, u16), Departures>,
}

impl Stays {
    pub(super) fn take(&mut self, record: &Record) {
        let inside = (record.node, record.flow, record.sequence, record.flags.has(RecordFlags::RETURN));
        if record.point == Point::SwitchIn {
            if self.came[0].len() >= MOST_INSIDE {
                self.came.swap(0, 1);
                self.came[0].clear();
            }
            self.came[0].insert(inside, record.time);
            return;
        }
        let came = self.came.iter().find_map(|came| came.get(&inside));
        let Some(came) = came else { return };
        self.of_ports.entry((record.node, record.port)).or_default().add(*came, record.time);
    }

    /// Sums of the ports by which any frame left since the last look.
    pub(super) fn look(&mut self) -> Vec<PortSums> {
        let used = self.of_ports.iter_mut().filter(|(_, departures)| departures.frames > 0);
        used.map(|(&(node, port), of)| PortSums {
            node,
            port,
            frames: std::mem::take(&mut of.frames),
            longest_ns: std::mem::take(&mut of.longest_ns),
            queued: std::mem::take(&mut of.queued),
        })
        .collect()
    }
}
