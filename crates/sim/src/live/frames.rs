//! Frames between hosts and their cards.

use wg_core::frame::Frame;
use wg_frame::time::RunTime;
use wg_plan::NodeIndex;
use wg_record::RecordFlags;

use super::headers::Headers;

/// A frame that a host has handed to its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The host.
    pub node: NodeIndex,
    /// When.
    pub at: RunTime,
    /// Where its bytes are kept, one copy.
    pub place: u32,
    /// What its bytes say.
    pub headers: Headers,
}

/// A frame that a card hands to its host.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The host.
    pub node: NodeIndex,
    /// When, by the model: its last bit is in.
    pub at: RunTime,
    /// The frame, as it came by the line.
    pub frame: &'a Frame,
    /// Where its bytes are kept.
    pub place: u32,
    /// Flow of its message; [`FLOW_FOREIGN`](wg_record::FLOW_FOREIGN) without one.
    pub flow: u16,
    /// Leg and phase of its message.
    pub flags: RecordFlags,
    /// A fault has altered its content.
    pub is_damaged: bool,
}
