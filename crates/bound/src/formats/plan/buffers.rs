//! Buffers of switches: bounds of the backlog, because a frame that finds a full buffer is lost.

use std::collections::BTreeMap;

use wg_plan::{Capacity, ForwardingMode, NodeKind, SwitchKind};

use super::{AROUND_FRAME, Reading};
use crate::model::Flow;
use crate::rational::Rational;

/// Shortest and longest frame of a class, destination address to FCS, in bytes.
type Lengths = (i128, i128);

impl Reading<'_> {
    /// Notes the frame lengths of the next flow.
    pub(super) fn note_lengths(&mut self, wire_bits: impl Iterator<Item = i128>) {
        let bytes: Vec<i128> = wire_bits.map(|bits| bits / 8 - AROUND_FRAME).collect();
        let ends = bytes.iter().min().copied().zip(bytes.iter().max().copied());
        self.lengths.push(ends.unwrap_or_default());
    }

    /// Adds the buffer limits of ports of plain switches. Windows, traffic classes and virtual links have separate
    /// queues, and a frame that is cut through waits in none.
    pub(super) fn buffer(&mut self) {
        let mut ends: BTreeMap<(usize, u8), Lengths> = BTreeMap::new();
        for (Flow { steps, .. }, lengths) in self.model.flows.iter().zip(&self.lengths) {
            for step in steps {
                let known = ends.entry((step.server, step.class)).or_insert(*lengths);
                *known = (known.0.min(lengths.0), known.1.max(lengths.1));
            }
        }
        for (port, server) in &self.servers {
            let NodeKind::Switch(switch) = &self.network.nodes[usize::from(port.node)].kind else { continue };
            let plain = switch.kind == SwitchKind::Cots
                && switch.forwarding_mode == ForwardingMode::StoreAndForward
                && switch.tsn_of(port.port).is_none()
                && self.model.servers[*server].reserved.is_none();
            if !plain {
                continue;
            }
            let limits = [Some(switch.port_buffer), switch.queue_buffer, switch.shared_buffer];
            for ((_, class), lengths) in ends.range((*server, 0)..=(*server, u8::MAX)) {
                let each = limits.iter().flatten().map(|limit| most_bits(*limit, *lengths));
                let least = each.min().map(Rational::integer);
                self.model.servers[*server].buffers.extend(least.map(|bits| (*class, bits)));
            }
        }
    }
}

/// Greatest number of bits on the wire of the frames in a buffer.
pub(super) fn most_bits(limit: Capacity, (shortest, longest): Lengths) -> i128 {
    let bytes = i128::from(limit.bytes);
    let frames = (bytes / shortest.max(1)).min(i128::from(limit.frames));
    8 * (bytes.min(frames * longest) + AROUND_FRAME * frames)
}
