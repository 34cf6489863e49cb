//! Domains of clocks that synchronise by PTP, in the simulator.

use wg_frame::time::Span;

use super::synchronise::log_interval;
use crate::campaign::{PtpDelay, PtpProfile, PtpRole, PtpServo};
use crate::diagnostic::{Findings, Place};
use crate::reader::{Maybe, Reader, Sourced};
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct PtpDomainStatement {
    pub(crate) place: Place,
    pub(crate) number: Maybe<u8>,
    pub(crate) profile: Maybe<PtpProfile>,
    pub(crate) delay: Maybe<PtpDelay>,
    /// Logarithms of seconds.
    pub(crate) announce_interval: Maybe<i8>,
    pub(crate) sync_interval: Maybe<i8>,
    pub(crate) delay_interval: Maybe<i8>,
    pub(crate) announce_timeout: Maybe<u8>,
    pub(crate) servo: Maybe<PtpServo>,
    pub(crate) priority: Maybe<u8>,
    pub(crate) max_offset: Maybe<Span>,
    pub(crate) ordinary: Vec<Sourced<String>>,
    pub(crate) boundary: Vec<Sourced<String>>,
    pub(crate) transparent: Vec<Sourced<String>>,
    /// All names of clocks could be read.
    pub(crate) named_whole: bool,
    pub(crate) clocks: Vec<PtpClockStatement>,
}

/// What a clock has that others have not.
#[derive(Clone, Debug)]
pub(crate) struct PtpClockStatement {
    pub(crate) place: Place,
    pub(crate) name: Maybe<String>,
    /// Outer `None`: that of the profile.
    pub(crate) priority1: Option<Maybe<u8>>,
    pub(crate) priority2: Option<Maybe<u8>>,
    pub(crate) role: Maybe<PtpRole>,
}

const MAX_OFFSET: (Span, Span, &str) = (Span::from_nanos(1), Span::from_millis(1_000), "1ns to 1s");

pub(super) fn domain(element: &Element, found: &mut Findings) -> PtpDomainStatement {
    let clocks: Vec<_> = element.all("ptp-clock").map(|one| clock(one, found)).collect();
    let mut reader = Reader::new(element, found);
    let profiles = [("default", PtpProfile::Default), ("gptp", PtpProfile::Gptp)];
    let delays = [("e2e", PtpDelay::E2e), ("p2p", PtpDelay::P2p)];
    let servos = [("kalman", PtpServo::Kalman), ("basic", PtpServo::Basic)];
    let written =
        |attribute: &str, default: &'static str| element.get(attribute).unwrap_or(default).to_owned();
    let profile = reader.choice("profile", &written("profile", "default"), &profiles);
    let is_gptp = profile.as_ref().is_some_and(|profile| profile.value == PtpProfile::Gptp);
    let usual = |default: &'static str, gptp: &'static str| if is_gptp { gptp } else { default };
    let named = |attribute: &'static str, reader: &mut Reader<'_>| match element.get(attribute) {
        None => Some(Vec::new()),
        Some(_) => reader.names(attribute),
    };
    let ordinary = named("ordinary-clocks", &mut reader);
    let boundary = named("boundary-clocks", &mut reader);
    let transparent = named("transparent-clocks", &mut reader);
    PtpDomainStatement {
        number: reader.whole("domain", &written("domain", "0"), 0, 127),
        delay: reader.choice("delay", &written("delay", usual("e2e", "p2p")), &delays),
        announce_interval: log_interval(&mut reader, "announce-interval", usual("2s", "1s")),
        sync_interval: log_interval(&mut reader, "sync-interval", usual("1s", "125ms")),
        delay_interval: log_interval(&mut reader, "delay-interval", "1s"),
        announce_timeout: reader.whole("announce-timeout", &written("announce-timeout", "3"), 2, 10),
        servo: reader.choice("servo", &written("servo", "kalman"), &servos),
        priority: reader.whole("priority", &written("priority", "7"), 0, 7),
        max_offset: reader.time_within("max-offset", &written("max-offset", "1us"), MAX_OFFSET),
        named_whole: ordinary.is_some() && boundary.is_some() && transparent.is_some(),
        ordinary: ordinary.unwrap_or_default(),
        boundary: boundary.unwrap_or_default(),
        transparent: transparent.unwrap_or_default(),
        profile,
        place: reader.place,
        clocks,
    }
}

fn clock(element: &Element, found: &mut Findings) -> PtpClockStatement {
    let mut reader = Reader::new(element, found);
    let roles = [
        ("any", PtpRole::Any),
        ("slave-only", PtpRole::SlaveOnly),
        ("grandmaster-only", PtpRole::GrandmasterOnly),
    ];
    PtpClockStatement {
        name: reader.name("name"),
        // 255 is for those that never become grandmaster (IEEE Std 802.1AS-2020, 8.6.2.1), which have no priority here.
        priority1: reader.optional_whole("priority1", 0, 254),
        priority2: reader.optional_whole("priority2", 0, 255),
        role: reader.choice("role", element.get("role").unwrap_or("any"), &roles),
        place: reader.place,
    }
}
