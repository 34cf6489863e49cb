//! Flows, and what belongs to one.

use wg_frame::ethernet::MacAddress;
use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, any, list, nothing, several};
use super::types;
use crate::campaign::{IndividualRecovery, Protocol};
use crate::network::NetworkId;
use crate::stream_class::StreamClass;

elements! {
    /// The flows through the network.
    flows "flows" holds list(&[several("flow")]) {
        /// Share of the rate of each port that reserved streams may have together: deltaBandwidth of class A,
        /// that of class B being 0 (IEEE 802.1Q-2022, 34.3.1). With stream-reservation. Default: {default}.
        RESERVABLE: u32 = optional("reservable", &types::SHARE)
            .otherwise("75%")
            .within("more than 0%, at most 100%")
            .problem("is no share of a port")
            .cure("write a share of each port, for example 75%");
    }
    /// A stream of numbered messages from one end system to one or several others, and back if relays return
    /// them (not tt).
    flow "flow" named ID holds any(&["window", "path", "frer", "stream-reservation"]) {
        /// Its number, unique in the test; it travels in every message.
        ID: u16 = required("id", &types::FLOW_ID_OR_GROUP);
        /// How it is carried.
        PROTOCOL: Protocol = required("protocol", &types::PROTOCOL);
        /// Sending end system.
        FROM: String = required("from", &types::NAME_OR_GROUP);
        /// Receiving end systems, each once; several make it multicast. The sender alone makes it a loopback:
        /// down the stack of the host and up again, past every interface (udp, raw and be flows).
        TO: Text = required("to", &types::NAMES);
        /// A message that is older than this on arrival is late; {limit}. Without it no message is late.
        DEADLINE: Span = optional("deadline", &types::TIME)
            .within("more than 0s")
            .problem("is zero")
            .cure("write the largest latency a message may have");
        /// 802.1Q VLAN of its frames; raw and be flows only. With priority alone frames are priority-tagged
        /// (VLAN 0).
        VLAN: u16 = optional("vlan", &types::VLAN_ID);
        /// 802.1Q priority (PCP) of its frames; udp, raw and be flows; 0 if only vlan is given. On hosts of a
        /// lab, frames of udp flows get the tag from filters of <host-tsn> where all who send or return them
        /// have it; else agents write it. rc flows: switches with strict priorities and end systems have two
        /// queues above those of all other frames, the lower one for 0 to 3, the upper one for 4 to 7; the
        /// frames carry no tag. Default for rc: 4.
        PRIORITY: u8 = optional("priority", &types::PRIORITY);
        /// udp and be: differentiated services code point of its packets (RFC 2474). Switches ignore it;
        /// captures show it. Default: {default}.
        DSCP: u8 = optional("dscp", &types::DSCP).otherwise("0");
        /// The networks it travels on. Default: for rc both if all its ends are on both; otherwise A if all
        /// its ends are on A, else B. For a tt flow on both, the first accepted copy counts.
        NETWORKS: Option<NetworkId> = optional("networks", &types::NETWORKS);
        /// rc and tt: number of the virtual link or critical-traffic identifier, unique among both. Default:
        /// the flow's id.
        VL: u16 = optional("vl", &types::VL_ID_OR_GROUP);
        /// rc and tt: longest frame, destination address to FCS, {limit}. Default: the frame of its sender.
        LMAX: u16 = optional("lmax", &types::FRAME_LENGTH)
            .within("64B to 1518B")
            .problem("is no length of a frame")
            .cure("write the longest frame, destination address to FCS");
        /// rc, required there: bandwidth allocation gap, 1, 2, 4, 8, 16, 32, 64 or 128ms. On every link the
        /// contracts of all virtual links, lmax + 20B per bag, must fit; an end system has at most 128
        /// virtual links, and its output jitter, 40us + sum of (20B + lmax) / rate, must not exceed 500us.
        BAG: Span = optional("bag", &types::BAG);
        /// rc: sub-virtual-links, served in turn. Default: {default}.
        SUB_LINKS: u8 = optional("sub-links", &types::SUB_LINK).otherwise("1");
        /// rc: frames each sub-virtual-link holds, {default} by default. tt: messages that wait for their dispatch;
        /// without it only the last one is kept.
        QUEUE: u32 = optional("queue", &types::QUEUED).otherwise("64");
        /// rc: maximum time between two copies of a frame for the second to be removed; more than 0s, less
        /// than 254 BAG. Default: {default}.
        SKEW_MAX: Span =
            optional("skew-max", &types::TIME).otherwise("5ms").within("more than 0s, at most 100s");
        /// rc: whether second copies are removed. Default: {default}.
        REDUNDANCY: bool = optional("redundancy", &types::SWITCHED).otherwise("on");
        /// rc: where the sequence number of the virtual link lies. Default: {default}.
        SEQUENCE_NUMBER: bool =
            optional("sequence-number", &types::SEQUENCE_NUMBER).otherwise("behind");
        /// rc: jitter that a switch allows the virtual link at an input port, {limit}. Default: {default}.
        JITTER: Span = optional("jitter", &types::TIME).otherwise("500us").within("0s to 128ms");
        /// tt, required there: time between two dispatches, {limit}. All windows of a port must begin
        /// together again within 65536 openings.
        PERIOD: Span = optional("period", &types::TIME).within("more than 0s, at most 100s");
        /// tt: first dispatch by the sender's clock, less than the period. Default: {default}.
        OFFSET: Span = optional("offset", &types::TIME).otherwise("0s").within("0s to 100s");
        /// tt: In a group: added to offset from one member to the next, so that they do not all send at once.
        /// Default: 0s.
        OFFSET_STEP: Span = optional("offset-step", &types::TIME);
        /// tt: length of each window on its path: at least the longest frame with preamble and gap, at most
        /// the period. Default: that time, plus 2us, plus blocking by other frames: under shuffling the
        /// longest other frame of each switch, under preemption a preamble and a gap, in a raster the slots
        /// of others and one frame.
        WINDOW: Span = optional("window", &types::TIME).within("more than 0s, at most 100s");
        /// tt: how long before the planned instant of reception a frame is accepted, less than the period.
        /// Default: {default}, plus the time by which frames shorter than lmax arrive earlier.
        EARLY: Span = optional("early", &types::TIME).otherwise("1us").within("0s to 100s");
        /// tt: how long after the planned instant it is accepted, less than the period. Default: the length
        /// of the last window.
        LATE: Span = optional("late", &types::TIME).within("0s to 100s");
        /// udp, raw, be: source MAC address of its frames; not that of another end system. Default, as for
        /// the next five: that of the end system.
        SOURCE_MAC: MacAddress = optional("source-mac", &types::MAC);
        /// udp, raw, be: destination MAC address of its frames. Switches know its port; a learning switch
        /// floods it. A raw flow to several end systems can have ff:ff:ff:ff:ff:ff, which switches send out
        /// of every port.
        DESTINATION_MAC: MacAddress = optional("destination-mac", &types::MAC);
        /// udp, raw, be: how many source MAC addresses its messages have in turn, from source-mac on: message
        /// k has the one k mod source-macs behind it. Default: 1.
        SOURCE_MACS: u32 = optional("source-macs", &types::ADDRESSES);
        /// The same of destination MAC addresses, from destination-mac on. Default: 1.
        DESTINATION_MACS: u32 = optional("destination-macs", &types::ADDRESSES);
        /// udp, be: source IPv4 address of its frames.
        SOURCE_IP: [u8; 4] = optional("source-ip", &types::IPV4);
        /// udp, be: destination IPv4 address of its frames.
        DESTINATION_IP: [u8; 4] = optional("destination-ip", &types::IPV4);
        /// udp, be: source UDP port of its frames. Default: 61189 for streams, otherwise 61188.
        SOURCE_PORT: u16 = optional("source-port", &types::UDP_PORT);
        /// udp, be: destination UDP port of its frames. Default: 61188.
        DESTINATION_PORT: u16 = optional("destination-port", &types::UDP_PORT);
    }
    /// Bandwidth reserved for a raw or be flow at every port on its path, by the formula of the stream
    /// reservation protocol (IEEE 802.1Q-2022, clauses 34 and 35): each port gets traffic classes, with a
    /// credit-based shaper for the class of the stream whose idle slope is the sum over its streams of (frame
    /// + 20B) * interval-frames per class measurement interval. Its frames have the priority of the class,
    /// and VLAN 2 unless the flow names another. The switches on the path are cots switches; ports with
    /// traffic classes of their own are refused. Simulator only.
    stream_reservation "stream-reservation" holds nothing() {
        /// Its stream reservation class.
        CLASS: StreamClass = required("class", &types::STREAM_CLASS);
        /// Longest frame without addresses, tag, type and check sequence (MaxFrameSize of the TSpec),
        /// {limit}; with them at least a frame of 64B counts. Default: that of the longest message of its
        /// sender in any run.
        MAX_FRAME_SIZE: u64 = optional("max-frame-size", &types::SIZE).within("1B to 1500B");
        /// Frames in a class measurement interval, at most (MaxIntervalFrames). The sender may send no more
        /// on average.
        INTERVAL_FRAMES: u32 = usual("interval-frames", &types::INTERVAL_FRAMES, "1");
    }
    /// Frame replication and elimination for reliability (IEEE Std 802.1CB) of a udp, raw or be flow to one
    /// receiver: a copy of each frame, numbered in a redundancy tag of 6B, goes every path of the flow, 2 to
    /// 8 of them; where they meet, the first copy passes and the others are discarded. Between where they
    /// part and where they meet the paths share no node and no link. Each member stream has a group address
    /// of its own, 03:46:52:NN:FF:FF of path NN and flow FFFF, by which the switches on its path, all of them
    /// static, forward it.
    frer "frer" holds nothing() {
        /// How copies are told (7.4.3).
        RECOVERY: bool = usual("recovery", &types::RECOVERY, "vector");
        /// Vector recovery: sequence numbers it remembers, 2 to 32768. A copy that comes so many messages
        /// behind the first one is rogue and discarded; so it must exceed the messages that are sent while a
        /// copy is on its way longer than another. Default: {default}.
        HISTORY_LENGTH: u32 = optional("history-length", &types::HISTORY_LENGTH).otherwise("2");
        /// Any sequence number is accepted after so long without one that passed; at most 24h, longer than
        /// the paths are apart.
        RESET: Span = usual("reset", &types::TIME, "2s").within("more than 0s, at most 24h");
        /// Individual recovery (7.5): repetitions within a member stream, of a talker that is stuck for
        /// example, are discarded before the streams meet.
        INDIVIDUAL: Option<IndividualRecovery> = usual("individual", &types::INDIVIDUAL_RECOVERY, "off");
        /// Where frames are numbered and copied: the sender, or a store-and-forward switch that all paths
        /// pass before they part. Default: the sender.
        REPLICATE_AT: String = optional("replicate-at", &types::NAME_OR_GROUP);
        /// Where copies are discarded: the receiver, or a store-and-forward switch that all paths pass after
        /// they met. Default: the receiver.
        ELIMINATE_AT: String = optional("eliminate-at", &types::NAME_OR_GROUP);
        /// Whether the store-and-forward switches on the way take part (802.1CB, annex C): where paths meet,
        /// copies are discarded, where they part, each gets one. Paths may then share links and switches, and
        /// a link carries one copy for all of them.
        INTERMEDIATE_RECOVERY: bool = usual("intermediate-recovery", &types::SWITCHED, "off");
        /// Latent error detection (7.4.4): copies that may be missing, or too many, before it is an error.
        /// Default: there is no such function.
        LATENT_DIFFERENCE: u64 = optional("latent-difference", &types::LATENT_DIFFERENCE);
        /// Time between two tests, at most 24h. Default: {default}.
        LATENT_PERIOD: Span =
            optional("latent-period", &types::TIME).otherwise("2s").within("more than 0s, at most 24h");
        /// Missing copies are forgotten each time; at least latent-period, at most 24h. Default: {default}.
        LATENT_RESET: Span =
            optional("latent-reset", &types::TIME).otherwise("30s").within("more than 0s, at most 24h");
    }
    /// The path of a flow to one of its receivers over one network: the switches and hubs it passes. Needed
    /// where links close a loop and routing says nothing; elsewhere it may be written, and is checked.
    path "path" holds nothing() {
        /// The switches and hubs from the sender to the receiver, both left out. Where several links lead to
        /// the next, the port it leaves by follows a name: sw1:3.
        VIA: Text = required("via", &types::VIA);
        /// The receiver it leads to. Default: the only one.
        TO: String = optional("to", &types::NAME_OR_GROUP);
        /// The network it is on. Default: A, or B where the sender is on B only.
        NETWORK: NetworkId = optional("network", &types::NETWORK_ID);
    }
    /// The window of one output port on the path of a tt flow, set by hand. The windows of other ports are
    /// derived: a window opens when the whole frame has arrived and been processed, or with the next period
    /// if it would cross the end of this one.
    window "window" named PORT holds nothing() {
        /// The output port, towards the receiver.
        PORT: Text = required("port", &types::PORT);
        /// When it opens, by the node's clock; less than the period of the flow, and not before the frame can
        /// have arrived.
        OFFSET: Span = required("offset", &types::TIME).within("0s to 100s");
        /// How long it is open. Default: as for the other windows of the flow.
        LENGTH: Span = optional("length", &types::TIME).within("more than 0s, at most 100s");
    }
}
