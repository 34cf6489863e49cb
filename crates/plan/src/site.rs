//! The ports of a switch that a statement is for, and what frames of flows are to it.

use std::collections::BTreeSet;

use wg_core::line::bytes;
use wg_frame::ethernet::MacAddress;
use wg_frame::rtag;

use crate::campaign::{Flow, Run};
use crate::network::Network;
use crate::places::{FlowId, NodeIndex};
use crate::statements::SwitchTsnStatement;
use crate::wire::frame_length;

/// The ports of a switch that a statement is for.
pub(crate) struct Site<'a> {
    pub(crate) network: &'a Network,
    pub(crate) node: NodeIndex,
    pub(crate) statement: &'a SwitchTsnStatement,
    /// Ports that some statement names.
    pub(crate) named: BTreeSet<u16>,
    /// Frames of different priorities wait in different queues.
    pub(crate) has_queues: bool,
}

/// What a switch tells the frames of a flow by: its receiver or group, or an address of its own, and the VLAN.
pub(crate) fn stream(flow: &Flow) -> (Option<FlowId>, Option<MacAddress>, NodeIndex, u16) {
    let group = (!flow.also_to.is_empty()).then_some(flow.id);
    (group, flow.addresses.mac.destination, flow.to, flow.vlan.map_or(0, |tag| tag.id))
}

/// The longest frame a flow sends in a run.
pub(crate) fn longest_frame(run: &Run, flow: &Flow) -> Option<u32> {
    let own = |id: FlowId| run.sends.iter().filter(move |send| send.flow == id);
    let tag = if flow.frer.is_some() { bytes(rtag::TAG_LEN) } else { 0 };
    own(flow.id).map(|send| frame_length(flow.protocol, flow.vlan, send.payload) + tag).max()
}
