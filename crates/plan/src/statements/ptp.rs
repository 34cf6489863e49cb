//! Domains of clocks that synchronise by PTP, in the simulator.

use wg_frame::time::Span;

use crate::campaign::{DelayFilter, PtpDelay, PtpPi, PtpProfile, PtpRole, PtpServo};
use crate::diagnostic::{Findings, Place};
use crate::language::attribute::Attribute;
use crate::language::synchronise::{ptp_clock, ptp_domain as own};
use crate::language::values::PowerOfTwo;
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
    pub(crate) pi: Option<PtpPi>,
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

pub(super) fn domain(element: &Element, found: &mut Findings) -> PtpDomainStatement {
    let clocks: Vec<_> = element.all("ptp-clock").map(|one| clock(one, found)).collect();
    let mut reader = Reader::new(element, found);
    let profile = reader.read(&own::PROFILE);
    let ordinary = reader.names(&own::ORDINARY_CLOCKS);
    let [boundary, transparent] = [own::BOUNDARY_CLOCKS, own::TRANSPARENT_CLOCKS]
        .map(|clocks| if reader.has(&clocks) { reader.names(&clocks) } else { Some(Vec::new()) });
    // Of a profile that could not be read it is the one or the other.
    let known = profile.as_ref().map_or(PtpProfile::Default, |profile| profile.value);
    let servo = reader.read(&own::SERVO);
    PtpDomainStatement {
        pi: pi(&mut reader, servo.as_ref()),
        number: reader.read(&own::DOMAIN),
        delay: read_in(&mut reader, &own::DELAY, known),
        announce_interval: log_interval(&mut reader, &own::ANNOUNCE_INTERVAL, known),
        sync_interval: log_interval(&mut reader, &own::SYNC_INTERVAL, known),
        delay_interval: log_interval(&mut reader, &own::DELAY_INTERVAL, known),
        announce_timeout: reader.read(&own::ANNOUNCE_TIMEOUT),
        servo,
        priority: reader.read(&own::PRIORITY),
        max_offset: reader.read(&own::MAX_OFFSET),
        named_whole: ordinary.is_some() && boundary.is_some() && transparent.is_some(),
        ordinary: ordinary.unwrap_or_default(),
        boundary: boundary.unwrap_or_default(),
        transparent: transparent.unwrap_or_default(),
        profile,
        place: reader.place,
        clocks,
    }
}

impl Default for PtpPi {
    fn default() -> Self {
        Self {
            kp_thousandths: None,
            ki_thousandths: None,
            first_step_threshold: own::FIRST_STEP_THRESHOLD.usual(),
            step_threshold: None,
            delay_filter: own::DELAY_FILTER.usual(),
            delay_filter_length: own::DELAY_FILTER_LENGTH.usual(),
        }
    }
}

/// The settings of the PI servo, which are for no other.
fn pi(reader: &mut Reader<'_>, servo: Option<&Sourced<PtpServo>>) -> Option<PtpPi> {
    let settings = [
        own::KP.name,
        own::KI.name,
        own::FIRST_STEP_THRESHOLD.name,
        own::STEP_THRESHOLD.name,
        own::DELAY_FILTER.name,
        own::DELAY_FILTER_LENGTH.name,
    ];
    if let Some(other) = servo.filter(|servo| servo.value != PtpServo::Pi) {
        let problem = format!("has no effect with {}", other.named());
        for (name, text) in settings.map(|name| (name, reader.element.get(name))) {
            if let Some(written) = text {
                reader.refuse(name, written, &problem, "servo=\"pi\"", "remove it, or leave servo out");
            }
        }
    }
    let kp = written(reader, &own::KP);
    let ki = written(reader, &own::KI);
    let first_step_threshold = reader.value(&own::FIRST_STEP_THRESHOLD);
    let step_threshold = written(reader, &own::STEP_THRESHOLD);
    let delay_filter: Option<DelayFilter> = reader.value(&own::DELAY_FILTER);
    Some(PtpPi {
        delay_filter_length: reader.value(&own::DELAY_FILTER_LENGTH)?,
        kp_thousandths: kp?,
        ki_thousandths: ki?,
        first_step_threshold: first_step_threshold?,
        step_threshold: step_threshold?,
        delay_filter: delay_filter?,
    })
}

/// A value that may be left out; outer `None`: it could not be read.
fn written<T>(reader: &mut Reader<'_>, attribute: &Attribute<T>) -> Option<Option<T>> {
    reader.optional(attribute).map_or(Some(None), |read| read.map(|read| Some(read.value)))
}

/// What is written, or what is usual in a profile.
fn read_in<T>(reader: &mut Reader<'_>, attribute: &Attribute<T>, profile: PtpProfile) -> Maybe<T> {
    let written = reader.text(attribute).or(attribute.usual_in(profile))?;
    reader.read_as(attribute, written)
}

/// The exponent of a time between two messages.
fn log_interval(
    reader: &mut Reader<'_>,
    attribute: &Attribute<PowerOfTwo>,
    profile: PtpProfile,
) -> Maybe<i8> {
    let interval = read_in(reader, attribute, profile)?;
    Some(reader.sourced(attribute.name, &interval.written, interval.value.log))
}

fn clock(element: &Element, found: &mut Findings) -> PtpClockStatement {
    let mut reader = Reader::new(element, found);
    PtpClockStatement {
        name: reader.read(&ptp_clock::NAME),
        priority1: reader.optional(&ptp_clock::PRIORITY1),
        priority2: reader.optional(&ptp_clock::PRIORITY2),
        role: reader.read(&ptp_clock::ROLE),
        place: reader.place,
    }
}
