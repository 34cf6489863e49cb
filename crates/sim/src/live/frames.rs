//! Frames between hosts and their interface cards.

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
    /// When it was handed over.
    pub at: RunTime,
    /// The place of its bytes, with one copy.
    pub place: u32,
    /// Its decoded headers.
    pub headers: Headers,
}

/// A frame that a card hands to its host.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The host.
    pub node: NodeIndex,
    /// The model's instant of its last bit.
    pub at: RunTime,
    /// The frame as it arrived from the line.
    pub frame: &'a Frame,
    /// The place of its bytes.
    pub place: u32,
    /// Flow of its message; [`FLOW_FOREIGN`](wg_record::FLOW_FOREIGN) if it carries none.
    pub flow: u16,
    /// Leg and phase of its message.
    pub flags: RecordFlags,
    /// Whether a fault has altered its content.
    pub is_damaged: bool,
}
