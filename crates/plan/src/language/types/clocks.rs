//! The forms of values by which clocks are kept together.

use wg_core::as6802::Integrity;

use super::super::attribute::{Choice, Form, Shape, Written};
use super::super::values::{self, Failing};
use crate::campaign::{
    DelayFilter, OnFailure, Protocol, PtpDelay, PtpProfile, PtpRole, PtpServo, PtpTimestamps, PtpTransport,
};

forms! {
    /// What happens if a clock exceeds its limit.
    ON_FAILURE "on-failure": OnFailure = choice() {
        /// the run takes place and is graded DEGRADED
        "grade" => OnFailure::Grade,
        /// the run does not take place; exchanges are evaluated afterwards and make it INVALID
        "refuse" => OnFailure::Refuse,
    };
    /// Frames of an exchange.
    EXCHANGE_PROTOCOL "exchange-protocol": Protocol = choice() {
        /// UDP over IPv4, 64 B frames
        "udp" => Protocol::Udp,
        /// Ethernet II through a packet socket, 64 B frames
        "raw" => Protocol::Raw,
        /// best effort beside rate-constrained and time-triggered frames, 64 B frames
        "be" => Protocol::Be,
    };
    /// Where timestamps are taken.
    PTP_TIMESTAMPS "ptp-timestamps": PtpTimestamps = choice() {
        /// by the interface's own clock
        "hardware" => PtpTimestamps::Hardware,
        /// by the kernel
        "software" => PtpTimestamps::Software,
    };
    /// What carries PTP frames.
    PTP_TRANSPORT "ptp-transport": PtpTransport = choice() {
        /// Ethernet (IEEE 1588-2019, annex E)
        "l2" => PtpTransport::L2,
        /// UDP over IPv4 (annex C)
        "udp" => PtpTransport::Udp,
    };
    /// Number of a PTP domain, {limit}.
    PTP_DOMAIN "ptp-domain": u8 = whole(0, 127);
    /// How PTP measures delays.
    PTP_DELAY "ptp-delay": PtpDelay = choice() {
        /// from end to end, through whatever is between
        "e2e" => PtpDelay::E2e,
        /// from peer to peer; every switch between takes part
        "p2p" => PtpDelay::P2p,
    };
    /// A constant of a servo, 0 to 10, at most three decimals.
    GAIN "gain": u32 = by(Shape::Pattern(&[r"[0-9]{1,3}(\.[0-9]{1,3})?"]), values::gain);
    /// Addresses and usual values of a PTP domain.
    PTP_PROFILE "ptp-profile": PtpProfile = choice() {
        /// IEEE Std 1588-2019, annex I: EtherType 88F7 to 01-1B-19-00-00-00
        "default" => PtpProfile::Default,
        /// IEEE Std 802.1AS-2020 as far as statime has it: to 01-80-C2-00-00-0E, peer delay, path trace;
        /// every switch between clocks is a boundary clock
        "gptp" => PtpProfile::Gptp,
    };
    /// What steers a clock: a filter of statime, or the servo of linuxptp.
    PTP_SERVO "ptp-servo": PtpServo = choice() {
        /// a Kalman filter: steers the frequency, and steps by a millisecond and more
        "kalman" => PtpServo::Kalman,
        /// a proportional filter: steps and steers at every measurement
        "basic" => PtpServo::Basic,
        /// the PI servo of ptp4l, with its defaults for hardware timestamps unless others are written: steps once, by
        /// more than 20 us, and steers from then on
        "pi" => PtpServo::Pi,
    };
    /// What is made of several measured delays.
    DELAY_FILTER "delay-filter": DelayFilter = choice() {
        /// the one in the middle
        "median" => DelayFilter::Median,
        /// their mean
        "average" => DelayFilter::Average,
    };
    /// Measured delays, {limit}.
    DELAY_FILTER_LENGTH "delay-filter-length": u8 = whole(1, 100);
    /// What a PTP clock may become.
    PTP_ROLE "ptp-role": PtpRole = choice() {
        /// as the best master clock algorithm has it
        "any" => PtpRole::Any,
        /// never grandmaster; not for boundary clocks
        "slave-only" => PtpRole::SlaveOnly,
        /// its ports are never slaves; one clock of a domain
        "grandmaster-only" => PtpRole::GrandmasterOnly,
    };
    /// How an AS6802 cluster starts.
    INTEGRITY "integrity": Integrity = choice() {
        /// a master takes up any coldstart frame; acknowledgements are compressed
        "standard" => Integrity::Standard,
        /// a master takes up coldstart frames of others only; acknowledgements pass one by one
        "high" => Integrity::High,
    };
    /// How a faulty synchronisation master behaves.
    MASTER_BEHAVIOUR "master-behaviour": Failing = choice() {
        /// its integration frames and acknowledgements come too early
        "early" => Failing::Early,
        /// all its frames come too late
        "late" => Failing::Late,
        /// it sends nothing
        "silent" => Failing::Silent,
        /// early in the first channel, and late by as much in the others
        "inconsistent" => Failing::Inconsistent,
    };
    /// Integration cycles, {limit}.
    CLUSTER_CYCLES "cluster-cycles": u32 = whole(1, 1_048_576);
    /// Faulty masters, {limit}.
    FAULTY_MASTERS "faulty-masters": u8 = whole(0, 2);
    /// A number of 8 bits, {limit}.
    OCTET "octet": u8 = whole(0, 255);
    /// Synchronisation masters, {limit}.
    SYNC_THRESHOLD "sync-threshold": u8 = whole(1, 32);
    /// A priority, {limit}.
    PRIORITY1 "priority1": u8 = whole(0, 254);
    /// Announce intervals, {limit}.
    ANNOUNCE_TIMEOUT "announce-timeout": u8 = whole(2, 10);
    /// Cycles, {limit}.
    STABLE_CYCLES "stable-cycles": u32 = whole(1, 1_000);
    /// Cycles, {limit}.
    UNSTABLE_CYCLES "unstable-cycles": u32 = whole(0, 1_000);
}
