//! How clocks are kept together.

use wg_core::as6802::Integrity;
use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, any, list, many, nothing};
use super::types;
use super::values::{Failing, PowerOfTwo};
use crate::campaign::{
    DelayFilter, OnFailure, Protocol, PtpDelay, PtpProfile, PtpRole, PtpServo, PtpTimestamps, PtpTransport,
};

elements! {
    /// How the clocks of the end systems are synchronised and compared. Without it, clocks are as the bench
    /// knows them.
    synchronise "synchronise" holds any(&["exchange", "ptp", "chrony", "as6802", "ptp-domain"]) {
        /// The end system with whose clock the others are compared; with ptp, the server. Default: the sender
        /// of the first flow.
        REFERENCE: String = optional("reference", &types::NAME);
        /// Maximum difference between the fixed delays of the two directions between two end systems;
        /// {limit}. Half of it is part of the uncertainty of every offset. Default: the whole round trip,
        /// which always holds.
        ASYMMETRY: Span = optional("asymmetry", &types::TIME).within("more than 0s, at most 1s");
        /// Limit for every clock: its offset (ptp, chrony) and the uncertainty of its offset (exchange);
        /// {limit}. Default: no limit.
        MAX_OFFSET: Span = optional("max-offset", &types::TIME).within("more than 0s, at most 1s");
        /// What happens if a clock exceeds its limit.
        ON_FAILURE: OnFailure = usual("on-failure", &types::ON_FAILURE, "grade");
        /// Time before a run in which clocks must come within their limit, {limit}; ptp and chrony.
        WAIT: Span = usual("wait", &types::TIME, "30s").within("0s to 1h");
    }
    /// Two-way exchanges between the reference and every other end system of the flows, over the network
    /// under test, before, during and after the measured part. They give each clock's offset over time with
    /// its uncertainty, and every one-way latency is corrected by it.
    exchange "exchange" holds nothing() {
        /// Time between two exchanges with one end system, {limit}.
        PERIOD: Span = usual("period", &types::TIME, "10ms").within("100us to 10s");
        /// The end systems whose clocks are compared with the reference. Default: all ends of flows.
        TO: Text = optional("to", &types::NAMES);
        /// Frames that carry the exchanges.
        PROTOCOL: Protocol = usual("protocol", &types::EXCHANGE_PROTOCOL, "udp");
    }
    /// linuxptp on every end system: ptp4l, and phc2sys if the interface has a clock. Started before the
    /// first run, watched through every run, stopped at the end.
    ptp "ptp" holds nothing() {
        /// Where timestamps of PTP frames are taken.
        TIMESTAMPS: PtpTimestamps = usual("timestamps", &types::PTP_TIMESTAMPS, "hardware");
        /// Whether clocks are set and disciplined. If off, they run free and are only compared; end systems
        /// that share one clock must run free.
        STEER: bool = usual("steer", &types::SWITCHED, "on");
        /// Time between two Sync messages, a power of two of a second, {limit}.
        INTERVAL: PowerOfTwo = usual("interval", &types::INTERVAL, "1s").within("7.8125ms to 16s");
        /// Proportional constant of the servo that sets the system's clock: phc2sys, or ptp4l with software
        /// timestamps.
        KP: u32 = usual("kp", &types::GAIN, "0.35");
        /// Its integral constant.
        KI: u32 = usual("ki", &types::GAIN, "0.15");
        /// Number of the PTP domain, 0 to 127.
        DOMAIN: u8 = usual("domain", &types::PTP_DOMAIN, "0")
            .problem("is no PTP domain")
            .cure("write domain=\"0\"");
        /// What carries PTP frames.
        TRANSPORT: PtpTransport = usual("transport", &types::PTP_TRANSPORT, "l2");
        /// How delays are measured.
        DELAY: PtpDelay = usual("delay", &types::PTP_DELAY, "e2e");
    }
    /// chrony already synchronises the clocks; its state is watched during every run.
    chrony "chrony" holds nothing() {}
    /// A cluster of devices that synchronise by SAE AS6802 (TTEthernet): windows and instants of
    /// time-triggered flows then follow the synchronised clocks, and a device that is not synchronised sends
    /// none. Several clusters differ in domain or priority; a device has one part in one. Simulator only.
    as6802 "as6802" holds list(&[many("faulty-master")]) {
        /// End systems that are synchronisation masters, 1 to 32, in the order of their bits of the
        /// membership.
        MASTERS: Text = required("masters", &types::NAMES);
        /// Switches that are compression masters, 1 to 3: one for each redundant channel. Control frames of a
        /// channel take the shortest way to and from it over switches; of several the one through the link
        /// written first.
        COMPRESSION_MASTERS: Text = required("compression-masters", &types::NAMES);
        /// End systems and switches that are synchronisation clients. Default: all that have no part in a
        /// cluster yet.
        CLIENTS: Text = optional("clients", &types::NAMES);
        /// How the cluster starts.
        INTEGRITY: Integrity = usual("integrity", &types::INTEGRITY, "standard");
        /// Integration cycle, {limit}: time between two integration frames of a master.
        CYCLE: Span = usual("cycle", &types::TIME, "1ms").within("10us to 1s");
        /// Integration cycles in a cluster cycle, which every period of a time-triggered flow divides.
        CYCLES: u32 = usual("cycles", &types::CLUSTER_CYCLES, "16");
        /// By how much synchronised clocks may differ: the half width of windows of acceptance, and the
        /// window of observation. Default: the bound that follows from the drift of the clocks, the cycle and
        /// the ways.
        PRECISION: Span = optional("precision", &types::TIME).within("more than 0s, at most 10ms");
        /// The most that an oscillator of the cluster is off by. Default: that of its clocks, with six
        /// standard deviations of their wander over the run.
        MAX_DRIFT: i64 = optional("max-drift", &types::DRIFT);
        /// Longest that a control frame is under way between an end system and a compression master
        /// (max_transmission_delay), at most 100ms. Frames that take longer are not used. Default: at every
        /// hop behind a longest frame, the control frames of all masters and the windows of its port.
        MAX_DELAY: Span = optional("max-delay", &types::TIME).within("more than 0s, at most 100ms");
        /// Faulty masters that are tolerated. It takes twice as many masters and one more.
        FAULTY_MASTERS: u8 = usual("faulty-masters", &types::FAULTY_MASTERS, "0");
        /// Synchronisation domain of its frames.
        DOMAIN: u8 = usual("domain", &types::OCTET, "0");
        /// Synchronisation priority of its frames.
        PRIORITY: u8 = usual("priority", &types::OCTET, "0");
        /// Masters that must be in schedule for a device to be synchronised: more than are faulty, no more
        /// than are correct. Default: a majority.
        SYNC_THRESHOLD: u8 = optional("sync-threshold", &types::SYNC_THRESHOLD);
        /// Good cycles from SYNC to STABLE.
        STABLE_CYCLES: u32 = usual("stable-cycles", &types::STABLE_CYCLES, "3");
        /// Bad cycles in a row that a device in STABLE tolerates.
        UNSTABLE_CYCLES: u32 = usual("unstable-cycles", &types::UNSTABLE_CYCLES, "1");
        /// Devices begin to synchronise at times drawn from the beginning of the run up to this, 1min at
        /// most.
        POWERED_WITHIN: Span = usual("powered-within", &types::TIME, "0s").within("0s to 1min");
    }
    /// A synchronisation master that fails on purpose, throughout the run.
    faulty_master "faulty-master" holds nothing() {
        /// Which.
        NAME: String = required("name", &types::NAME);
        /// What it does.
        BEHAVIOUR: Failing = required("behaviour", &types::MASTER_BEHAVIOUR);
        /// By how much it is early or late, up to 10ms and a quarter of the cycle; not for a silent one.
        BY: Span = optional("by", &types::TIME).within("more than 0s, at most 10ms");
    }
    /// A domain of clocks that synchronise by PTP (IEEE Std 1588-2019) inside the simulated network: messages
    /// are frames, the crate statime plays the protocol, and the clocks of its nodes are steered; windows,
    /// gates and schedules follow them. A node has one clock that is steered, by one domain or cluster.
    /// Simulator only.
    ptp_domain "ptp-domain" holds list(&[many("ptp-clock")]) {
        /// End systems with a PTP clock. One with two links has a port at each.
        ORDINARY_CLOCKS: Text = required("ordinary-clocks", &types::NAMES);
        /// Switches with a PTP clock: they follow a master at one port and are one at the others.
        BOUNDARY_CLOCKS: Text = optional("boundary-clocks", &types::NAMES);
        /// Switches that add to messages what these waited in them; with delay="p2p" also what the link took.
        /// Other switches pass messages on as they are with e2e, and not at all with p2p. Not with gptp.
        TRANSPARENT_CLOCKS: Text = optional("transparent-clocks", &types::NAMES);
        /// domainNumber of its messages, 0 to 127.
        DOMAIN: u8 = usual("domain", &types::PTP_DOMAIN, "0");
        /// Addresses and usual values.
        PROFILE: PtpProfile = usual("profile", &types::PTP_PROFILE, "default");
        /// How delays are measured: end to end, or between peers of a link. Default: {default}; with gptp {in_gptp}, the
        /// only one there.
        DELAY: PtpDelay = optional("delay", &types::PTP_DELAY).otherwise("e2e").in_gptp("p2p");
        /// Time between two Announce messages, a power of two of a second, {limit}. Default: {default}; with
        /// gptp {in_gptp}.
        ANNOUNCE_INTERVAL: PowerOfTwo = optional("announce-interval", &types::INTERVAL)
            .otherwise("2s")
            .in_gptp("1s")
            .within("7.8125ms to 16s");
        /// Time between two Sync messages, a power of two of a second, {limit}. Default: {default}; with
        /// gptp {in_gptp}.
        SYNC_INTERVAL: PowerOfTwo = optional("sync-interval", &types::INTERVAL)
            .otherwise("1s")
            .in_gptp("125ms")
            .within("7.8125ms to 16s");
        /// Mean time between two measurements of a delay, a power of two of a second, {limit}.
        DELAY_INTERVAL: PowerOfTwo = usual("delay-interval", &types::INTERVAL, "1s")
            .within("7.8125ms to 16s");
        /// Announce intervals without a message after which a master is lost, 2 to 10; up to as many more are
        /// drawn.
        ANNOUNCE_TIMEOUT: u8 = usual("announce-timeout", &types::ANNOUNCE_TIMEOUT, "3");
        /// What steers a clock.
        SERVO: PtpServo = usual("servo", &types::PTP_SERVO, "pi");
        /// Proportional constant of servo="pi", parts in 10^9 of frequency for each ns of offset. Without it that of
        /// linuxptp for hardware timestamps, which follows from the sync interval; for software timestamps it has 0.1.
        KP: u32 = optional("kp", &types::GAIN);
        /// Its integral constant, likewise; for software timestamps linuxptp has 0.001.
        KI: u32 = optional("ki", &types::GAIN);
        /// servo="pi" steps a clock whose first offset is greater, and steers away every other one; 0s: it never
        /// steps at the first.
        FIRST_STEP_THRESHOLD: Span = usual("first-step-threshold", &types::TIME, "20us").within("0s to 1h");
        /// servo="pi" steps a clock with a greater offset whenever there is one. Without it, only at the first.
        STEP_THRESHOLD: Span = optional("step-threshold", &types::TIME).within("1ns to 1h");
        /// What servo="pi" takes for the delay of the last ones measured.
        DELAY_FILTER: DelayFilter = usual("delay-filter", &types::DELAY_FILTER, "median");
        /// How many those are.
        DELAY_FILTER_LENGTH: u8 = usual("delay-filter-length", &types::DELAY_FILTER_LENGTH, "10");
        /// Priority that its frames have in queues.
        PRIORITY: u8 = usual("priority", &types::PRIORITY, "7");
        /// The greatest offset from the grandmaster of a clock that counts as synchronised, {limit}.
        MAX_OFFSET: Span = usual("max-offset", &types::TIME, "1us").within("1ns to 1s");
    }
    /// What an ordinary or boundary clock has that others have not.
    ptp_clock "ptp-clock" holds nothing() {
        NAME: String = faulty_master::NAME;
        /// Compared first where a grandmaster is chosen; the least wins. 0 to 254, not for slave-only.
        /// Default: {default}; with gptp {in_gptp} (IEEE Std 1588-2019, I.3.2; IEEE Std 802.1AS-2020, 8.6.2.1).
        PRIORITY1: u8 = optional("priority1", &types::PRIORITY1).otherwise("128").in_gptp("246");
        /// Compared among clocks that are as good; the least wins. Not for slave-only. Default: {default};
        /// with gptp {in_gptp}.
        PRIORITY2: u8 = optional("priority2", &types::OCTET).otherwise("128").in_gptp("248");
        /// What it may become.
        ROLE: PtpRole = usual("role", &types::PTP_ROLE, "any");
    }
}
