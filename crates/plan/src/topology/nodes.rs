//! What a statement makes of a node: every default applied.

use wg_frame::time::Span;

use crate::network::{Capacity, Distribution, NodeKind, SwitchModel};
use crate::places::MOST_PORTS;
use crate::statements::{Limits, SwitchStatement, What};

/// A node of the plan. What could not be read was reported; the value in its place is never used.
pub(super) fn kind(what: &What) -> NodeKind {
    match what {
        What::EndSystem(host) => NodeKind::EndSystem { host: host.clone() },
        What::Switch(switch) => NodeKind::Switch(model(switch)),
        What::Hub(delay) => NodeKind::Hub { delay: delay.as_ref().map_or(Span::ZERO, |delay| delay.value) },
    }
}

fn model(switch: &SwitchStatement) -> SwitchModel {
    let bytes = switch.buffer.as_ref().map_or(0, |buffer| buffer.value);
    let limited = |limits: &Limits, otherwise: u64| {
        let written = limits.bytes.is_some() || limits.frames.is_some();
        written.then(|| Capacity {
            bytes: limits.bytes.unwrap_or(otherwise),
            frames: limits.frames.unwrap_or(u32::MAX),
        })
    };
    let (constant, drawn) = match &switch.delay {
        None => (Span::ZERO, Distribution::default()),
        Some(one) if one.quantiles.len() == 1 => (one.least(), Distribution::default()),
        Some(drawn) => (Span::ZERO, drawn.clone()),
    };
    SwitchModel {
        kind: switch.kind,
        forwarding_mode: switch.forwarding_mode,
        processing_delay: constant,
        drawn_delay: drawn,
        mixed_rate_delay: switch.mixed_rate_delay,
        frame_lengths: switch.frame_lengths,
        own_frames: switch.own_frames.iter().map(|(frames, _)| frames.clone()).collect(),
        learning: switch.learning,
        address_table: switch.address_table,
        strict_priority: switch.strict,
        port_buffer: Capacity { bytes, frames: switch.frames.unwrap_or(u32::MAX) },
        queue_buffer: limited(&switch.queue, bytes),
        // What all ports can hold together: bytes alone then never limit.
        shared_buffer: limited(&switch.shared, bytes * u64::from(MOST_PORTS)),
        vlans: switch.vlans.iter().map(|(vlan, _)| vlan.clone()).collect(),
        policing: switch.policing,
        integration: switch.integration,
        raster: switch.raster.as_ref().map(|(raster, _)| *raster),
        tsn: switch.tsn.iter().map(|statement| statement.tsn.clone()).collect(),
    }
}
