//! Faults that happen to the network on purpose.

use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, nothing, some};
use super::types;

elements! {
    /// Faults that happen to the network on purpose. The truth file records each fault as it happens. Times
    /// count from the epoch, the start of the warm-up.
    faults "faults" holds some(&[
        "bit-errors", "loss", "duplicate", "delay", "corrupt", "wrong-length", "cut", "babble",
        "restart", "step-clock"
    ]) {}
    /// Bits of a link's frames are inverted at random; the receiver finds a wrong frame check sequence and
    /// drops the frame.
    bit_errors "bit-errors" named LINK holds nothing() {
        /// The link: its two nodes, with ports if several links join them.
        LINK: Text = required("link", &types::LINK_ENDS);
        /// Errors per bit; seeded.
        RATE: u64 = required("rate", &types::BIT_ERROR_RATE);
        /// The end that frames come from. Default: both.
        SENT_BY: String = optional("sent-by", &types::NAME);
        /// Start of the fault after the epoch, the start of the warm-up.
        FROM: Span = usual("from", &types::TIME, "0s");
        /// End of the fault. Default: the end of the run.
        UNTIL: Span = optional("until", &types::TIME);
    }
    /// Frames of a link do not arrive.
    loss "loss" named LINK holds nothing() {
        LINK: Text = bit_errors::LINK;
        /// Each frame with this probability, {limit}; seeded. Either this, or flow and sequence.
        SHARE: u32 = optional("share", &types::SHARE)
            .within("more than 0%, at most 100%")
            .cure("write the share of frames that are struck");
        /// Messages of this flow, every copy and both legs; the flow must use the link.
        FLOW: u16 = optional("flow", &types::FLOW_ID);
        /// Which of its messages.
        SEQUENCE: Vec<(u32, u32)> = optional("sequence", &types::SEQUENCES);
        SENT_BY: String = bit_errors::SENT_BY;
        FROM: Span = bit_errors::FROM;
        UNTIL: Span = bit_errors::UNTIL;
    }
    /// Frames of a link arrive twice, back to back.
    duplicate "duplicate" named LINK like loss holds nothing() {}
    /// Frames of a link arrive later and may be overtaken.
    delay "delay" named LINK holds nothing() {
        LINK: Text = bit_errors::LINK;
        /// How much later, {limit}.
        BY: Span = required("by", &types::TIME).within("more than 0s, at most 1min");
        SHARE: u32 = loss::SHARE;
        FLOW: u16 = loss::FLOW;
        SEQUENCE: Vec<(u32, u32)> = loss::SEQUENCE;
        SENT_BY: String = bit_errors::SENT_BY;
        FROM: Span = bit_errors::FROM;
        UNTIL: Span = bit_errors::UNTIL;
    }
    /// The payload of a link's frames is altered without the frame check sequence noticing.
    corrupt "corrupt" named LINK like loss holds nothing() {}
    /// A sender cuts frames short, or runs on: they leave as runts or giants, with a right frame check
    /// sequence and a damaged message. Bit errors beside make them fragments and jabbers. Not at a hub, nor
    /// where the sender has windows or traffic classes.
    wrong_length "wrong-length" named LINK holds nothing() {
        LINK: Text = bit_errors::LINK;
        /// The length that they then have, destination address to FCS: 18B to 63B, or 1519B to 16000B.
        LENGTH: u16 = required("length", &types::WRONG_LENGTH);
        SHARE: u32 = loss::SHARE;
        FLOW: u16 = loss::FLOW;
        SEQUENCE: Vec<(u32, u32)> = loss::SEQUENCE;
        SENT_BY: String = bit_errors::SENT_BY;
        FROM: Span = bit_errors::FROM;
        UNTIL: Span = bit_errors::UNTIL;
    }
    /// A link is cut; frames on it are lost.
    cut "cut" named LINK holds nothing() {
        LINK: Text = bit_errors::LINK;
        /// When.
        FROM: Span = required("from", &types::TIME);
        /// When it is restored, after from. Default: never.
        UNTIL: Span = optional("until", &types::TIME);
    }
    /// An end system sends frames of a flow past every regulator and schedule. Exactly one of period and
    /// load.
    babble "babble" named FLOW holds nothing() {
        /// The flow.
        FLOW: u16 = required("flow", &types::FLOW_ID);
        /// From when on.
        FROM: Span = required("from", &types::TIME);
        /// When it ends, after from.
        UNTIL: Span = required("until", &types::TIME);
        /// Time between its frames; at least what a frame takes on the sender's link.
        PERIOD: Span = optional("period", &types::TIME);
        /// Share of the rate of the sender's link instead, {limit}.
        LOAD: u32 = optional("load", &types::SHARE)
            .within("more than 0%, at most 100%")
            .cure("write the share of the sender's link");
        /// Length of its frames, destination address to FCS, {limit}. Default: lmax of an rc or tt flow, else
        /// the frame of its sender.
        LENGTH: u16 = optional("length", &types::FRAME_LENGTH)
            .within("64B to 1518B")
            .problem("is no length of a frame")
            .cure("write a length, destination address to FCS");
    }
    /// A switch restarts: its buffers and learned addresses are lost, and nothing passes until it is back.
    restart "restart" named SWITCH holds nothing() {
        /// The switch.
        SWITCH: String = required("switch", &types::NAME);
        FROM: Span = cut::FROM;
        /// When it is back, after from.
        UNTIL: Span = required("until", &types::TIME);
    }
    /// A node's clock is set.
    step_clock "step-clock" named ON holds nothing() {
        /// The end system or switch.
        ON: String = required("on", &types::NAME);
        /// When, in true time.
        AT: Span = required("at", &types::TIME);
        /// Step forward, back if negative; not 0s, at most one day either way.
        BY: Span = required("by", &types::CLOCK_STEP)
            .within_as("24h either way", "not 0s, one day either way")
            .problem("is no step of a clock")
            .cure("write by how much the clock is set");
    }
}
