//! Tasks of end systems.

use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, list, many, nothing, some};
use super::types;
use super::values::{CycleOffset, Reached};
use crate::campaign::{Backend, Fill, Pacing, Turn};
use crate::network::Distribution;

elements! {
    /// What the end systems do, and for how long.
    tasks "tasks" holds some(&["send", "replay", "receive", "relay", "inject", "remote-log", "capture"]) {
        /// Time before the measured part. Senders send as many messages as fit at their period; none of them
        /// counts.
        WARM_UP: Span = usual("warm-up", &types::TIME, "0s");
        /// Length of the measured part. Without it every sender needs a count (a replay has one), and the
        /// longest sender decides; with both, the one that ends first counts. A run lasts at most 100 days.
        DURATION: Span = optional("duration", &types::TIME);
        /// Wait for frames in flight after the last send, at most 10min. Default: {default} plus the time to
        /// empty every full buffer on the longest path, at most 5s.
        DRAIN: Span = optional("drain", &types::TIME).otherwise("200ms");
        /// Whether measured flows may take more than a link behind a switch carries, as in tests of what a
        /// switch then drops. The links of their senders carry all of them in any case.
        OVERLOAD: bool = usual("overload", &types::SWITCHED, "off");
    }
    /// Sends the messages of a flow on an absolute, open-loop schedule. One per flow; the flow also needs a
    /// receive or a relay. Exactly one of period and load.
    send "send" named FLOW holds nothing() {
        /// The flow it sends.
        FLOW: u16 = required("flow", &types::FLOW_ID_OR_GROUP);
        /// Time between two messages, or between two bursts, at most 1000000s; at least the time its frames
        /// take on the slowest link of the path. For an rc flow at least its bag per message.
        PERIOD: Span = optional("period", &types::TIME);
        /// Share of the rate of the sender's link instead, {limit}, counted in bytes on the wire with
        /// preamble and gap: period = burst * bits on the wire / (load * rate).
        LOAD: u32 = optional("load", &types::SHARE)
            .within("more than 0%, at most 100%")
            .cure("write the share of the sender's link");
        /// Payload of each message, the 12 B probe header included: 12B to 1472B for udp and be, 12B to 1471B
        /// for rc (1472B with sequence-number="within"), 12B to 1500B for raw and tt (padded below 46B).
        /// Exactly one of payload and frame.
        PAYLOAD: u32 = optional("payload", &types::PAYLOAD);
        /// Length of its frames instead, from destination address to FCS, at least 64B; the payload is the
        /// rest of it.
        FRAME: u32 = optional("frame", &types::PAYLOAD);
        /// Content of the payload after the probe header.
        FILL: Fill = usual("fill", &types::FILL, "sequential");
        /// Messages of the measured part. Without it the sender sends for the duration of the tasks.
        COUNT: u32 = optional("count", &types::COUNT);
        /// Intended send of the first message after the end of the warm-up.
        OFFSET: Span = usual("offset", &types::TIME, "0s");
        /// In a group: added to offset, or to a time in cycle-offset, from one member to the next, so that
        /// they do not all send at once. Default: 0s.
        OFFSET_STEP: Span = optional("offset-step", &types::TIME);
        /// In place of offset, an application on the cycle of the network: its messages are released so long
        /// after multiples of its period by the clock of its end system, which a cluster or a PTP domain
        /// corrects; less than the period. With dispatch, of a tt flow: so early that the longest that the
        /// host takes to hand a message over ends as the flow is dispatched, or 2us before, where the clock
        /// is not perfect. The period is a multiple of that of the tt flow; of others a multiple or a part of
        /// the integration cycle of a cluster. Periodic senders and bursts only.
        CYCLE_OFFSET: CycleOffset = optional("cycle-offset", &types::CYCLE_OFFSET);
        /// How its messages are spaced.
        DISTRIBUTION: bool = usual("distribution", &types::INTERVALS, "periodic");
        /// Messages sent every period. Default: 1; periodic senders only.
        BURST: u32 = optional("burst", &types::BURST);
        /// Time between two messages of a burst; the whole burst fits into the period. 0s: back to back.
        SPACING: Span = usual("spacing", &types::TIME, "0s");
        /// Maximum bits per second on the wire, preamble and gap included; messages wait as needed. At least
        /// the average rate of the sender, less than the rate of its link. Default: no limit.
        RATE_LIMIT: u64 = optional("rate-limit", &types::RATE);
        /// Sub-virtual-link of an rc flow that its messages use. Default: {default}.
        SUB_LINK: u8 = optional("sub-link", &types::SUB_LINK).otherwise("1");
        /// Seed of its exponential intervals, the same in every run. Default: that of the run.
        SEED: u64 = optional("seed", &types::SEED);
        /// The period or load at the end of a ramp: the rate changes linearly over the measured part, or over
        /// count messages. Periodic senders without bursts only.
        RAMP_TO: Reached = optional("ramp-to", &types::RAMP_END)
            .cure("write the share of the sender's link at the end");
        /// With pause: how long it sends in each cycle, from the end of the warm-up on (an injector from the
        /// epoch on), {limit}. Period, load and rate are those within this time.
        ACTIVE: Span = optional("active", &types::TIME).within("1us to 1h");
        /// With active: how long it then pauses, {limit}.
        PAUSE: Span = optional("pause", &types::TIME).within("1us to 1h");
        /// What it keeps when a message is late. Default: rate, on a thread shared with others. Not for
        /// relayed flows.
        PACING: Pacing = optional("pacing", &types::PACING);
        /// How its frames leave a real host; the simulator ignores it.
        BACKEND: Option<Backend> = usual("backend", &types::BACKEND, "auto");
        /// Whether the interface of a real host sends its frames at their exact times, handed over ahead of
        /// time; packet sockets only. Not for relayed flows.
        LAUNCH: Option<bool> = usual("launch", &types::LAUNCH, "auto");
        /// Each message carries its transmit time, 8 B, at this offset in its payload, 12B or more. Default:
        /// none. Not for relayed flows.
        TRANSMIT_TIME: u64 = optional("transmit-time", &types::SIZE).within("12B to 1492B");
    }
    /// Sends the messages of a flow with the gaps and sizes of a capture: each frame of the capture becomes a
    /// numbered message of the same length, at its time after the first. Replaces a send; for udp, raw and be
    /// flows that are received. Nothing is sent in the warm-up. Frames too short for the probe header and the
    /// transmit time are lengthened, and the check says how many.
    replay "replay" named FLOW holds nothing() {
        FLOW: u16 = send::FLOW;
        /// The capture, pcapng or pcap, of microseconds or finer, in either byte order; at most 1000000
        /// frames, in the order of their times.
        FILE: Text = required("file", &types::PATH);
        /// Only frames of this interface. Default: the only one that has frames.
        INTERFACE: Text = optional("interface", &types::CAPTURED_INTERFACE);
        /// Only frames in this direction.
        DIRECTION: Option<bool> = usual("direction", &types::DIRECTION, "any");
        /// Speed relative to the capture, {limit}: at 200% every gap is half as long.
        SPEED: u32 = usual("speed", &types::SHARE, "100%")
            .within("100ppm to 100000%")
            .cure("write 200% for twice as fast");
        /// How often it is replayed, at most 1000000 times.
        LOOPS: u32 = usual("loops", &types::COUNT, "1").within("1 to 1000000");
        /// From the last frame of a loop to the first of the next, at most 1h. Default: the mean gap of the
        /// capture.
        LOOP_GAP: Span = optional("loop-gap", &types::TIME).within("0s to 1h");
        /// Messages, at most those of all loops. Default: all of them.
        COUNT: u32 = optional("count", &types::COUNT);
        /// Intended send of the first frame after the end of the warm-up.
        OFFSET: Span = usual("offset", &types::TIME, "0s");
        /// In a group: added to offset from one member to the next, so that they do not all send at once.
        /// Default: 0s.
        OFFSET_STEP: Span = optional("offset-step", &types::TIME);
        /// What it keeps when a message is late. Default: rate.
        PACING: Pacing = optional("pacing", &types::PACING);
        BACKEND: Option<Backend> = send::BACKEND;
        LAUNCH: Option<bool> = send::LAUNCH;
        /// Each message carries its transmit time, 8 B, at this offset in its payload, 12B or more. Default:
        /// none.
        TRANSMIT_TIME: u64 = optional("transmit-time", &types::SIZE);
    }
    /// Receives the messages of a flow at its end, or at all its ends.
    receive "receive" named FLOW holds nothing() {
        /// The flow it receives.
        FLOW: u16 = required("flow", &types::FLOW_ID_OR_GROUP);
        /// Where it runs; if given, it must be a receiver of the flow. Default: all of them.
        ON: String = optional("on", &types::NAME_OR_GROUP);
    }
    /// Sends every message of a flow back to where it came from.
    relay "relay" named FLOW holds list(&[many("fault")]) {
        /// The flow whose messages it returns.
        FLOW: u16 = required("flow", &types::FLOW_ID_OR_GROUP);
        /// Where it runs; if given, it must be a receiver of the flow. Default: every receiver. Several of a
        /// udp, raw or be flow can relay it, and each has round trips of its own; of an rc flow one can, and
        /// is named.
        ON: String = optional("on", &types::NAME_OR_GROUP);
        /// rc flows, required there: number of the return virtual link, 1 to 65535, different from that of
        /// any flow. It has the contract of the flow.
        VL: u16 = optional("vl", &types::VL_ID_OR_GROUP);
        /// Where it returns a message.
        THROUGH: Turn = usual("through", &types::TURN, "servicing");
    }
    /// A planted fault: what the relay does to some messages, to check that the test bed finds it.
    fault "fault" named KIND holds nothing() {
        /// What it does.
        KIND: &'static str = required("kind", &types::FAULT_KIND);
        /// The messages, by sequence number from 0; one fault per message. Warm-up messages have no faults.
        SEQUENCE: Vec<(u32, u32)> = required("sequence", &types::SEQUENCES);
        /// Where misdirected messages go: a third end system. Required for misdirect, not allowed otherwise.
        TO: String = optional("to", &types::NAME);
    }
    /// Background load: bursts of UDP frames through warm-up and measured part. They leave no records; each
    /// is numbered, and its end system accounts for them.
    inject "inject" named ON holds nothing() {
        /// The end system that sends it.
        ON: String = required("on", &types::NAME_OR_GROUP);
        /// The end system that receives it.
        TO: String = required("to", &types::NAME_OR_GROUP);
        /// Share of the rate of its own link, 0% to 100%, counted in bytes on the wire with preamble and gap.
        /// 0% removes the task.
        LOAD: u32 = required("load", &types::SHARE);
        /// UDP payload of each frame, 12B to 1472B. Default: {default}, unless frame is written. An axis of
        /// payload does not change it.
        PAYLOAD: u32 = optional("payload", &types::PAYLOAD).otherwise("1472B");
        /// Length of each frame instead, from destination address to FCS, 64B to 1518B.
        FRAME: u32 = optional("frame", &types::PAYLOAD);
        /// How its bursts are spaced.
        DISTRIBUTION: bool = usual("distribution", &types::INTERVALS, "periodic");
        ACTIVE: Span = send::ACTIVE;
        PAUSE: Span = send::PAUSE;
        /// What it keeps when a burst is late. Default: rate.
        PACING: Pacing = optional("pacing", &types::PACING);
        BACKEND: Option<Backend> = send::BACKEND;
        /// Whether the interface of a real host sends its frames at their exact times, handed over ahead of
        /// time; packet sockets only.
        LAUNCH: Option<bool> = usual("launch", &types::LAUNCH, "auto");
        /// Frames sent back to back. Time between bursts = burst * bits on the wire / (load * rate).
        BURST: u32 = usual("burst", &types::BURST, "10");
        /// Threads that share the bursts: each sends one, sleeps for as many intervals as there are threads,
        /// and does so again. What sending and sleeping takes is not made up for, so the realised load
        /// follows, and stands beside the intended one. With a constant interval only. Agents have real
        /// threads, one interval apart, that sleep as long. Default: the schedule is kept.
        THREADS: u16 = optional("threads", &types::SENDING_THREADS);
        /// What the call that sends one frame takes a thread, {limit}; with threads only. Default: nothing.
        SEND_COST: Distribution = optional("send-cost", &types::DISTRIBUTION).within("0s to 10s");
        /// How much longer than asked a thread sleeps, {limit}; with threads only. Default: nothing.
        SLEEP_OVERHEAD: Distribution = optional("sleep-overhead", &types::DISTRIBUTION).within("0s to 10s");
    }
    /// Remote logging: each message that an application of the host sends or receives makes a record, and
    /// records go to another end system as UDP frames, through the host's stack and over the network under
    /// test. Background load makes none; records that do not fill a frame at the end stay.
    remote_log "remote-log" named ON holds nothing() {
        /// The end system that logs.
        ON: String = required("on", &types::NAME_OR_GROUP);
        /// The end system that its records go to. It treats them as background load.
        TO: String = required("to", &types::NAME_OR_GROUP);
        /// Size of a record, {limit}.
        RECORD: u64 = usual("record", &types::SIZE, "32B").within("8B to 1472B");
        /// Records in a frame, together at most 1472B.
        RECORDS: u32 = usual("records", &types::LOG_RECORDS, "1");
    }
    /// Writes every frame at a node's ports as pcapng.
    capture "capture" named ON holds nothing() {
        /// The end system or switch; one capture per node.
        ON: String = required("on", &types::NAME_OR_GROUP);
        /// Bytes kept of each frame, {limit}.
        SNAP: u64 = usual("snap", &types::SIZE, "1522B").within("14B to 65535B");
    }
}
