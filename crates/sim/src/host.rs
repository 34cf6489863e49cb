//! One of the hosts an end system can be: each is a composition of the same core.

use wg_core::Deadline;
use wg_core::critical_port::CriticalPort;
use wg_core::end_system::{Handed, Host, Output};
use wg_core::fifo::Fifo;
use wg_core::frame::Frame;
use wg_core::port::{AlwaysOpen, EgressPort, Transmission};
use wg_core::queue::Full;
use wg_frame::time::{RunTime, Span};

use crate::clocks::DeviceClock;

/// The host of an end system.
#[derive(Debug)]
pub(crate) enum HostCore {
    /// Without windows.
    Plain(Host<EgressPort<AlwaysOpen>>),
    /// With windows, by a clock of its own.
    Windows(Host<CriticalPort<DeviceClock>>),
}

macro_rules! each {
    ($core:expr, $host:ident => $what:expr) => {
        match $core {
            HostCore::Plain($host) => $what,
            HostCore::Windows($host) => $what,
        }
    };
}

impl HostCore {
    #[inline]
    pub(crate) fn handle_send(
        &mut self,
        now: RunTime,
        frame: Frame,
        wake_up: Span,
        more: bool,
    ) -> Result<Handed, Full> {
        each!(self, host => host.handle_send(now, frame, wake_up, more))
    }
    #[inline]
    pub(crate) fn call_at(&mut self, now: RunTime, wake_up: Span) -> Result<RunTime, Full> {
        each!(self, host => host.call_at(now, wake_up))
    }
    #[inline]
    pub(crate) fn handle_generated(&mut self, now: RunTime, frame: Frame, more: bool) {
        each!(self, host => host.handle_generated(now, frame, more));
    }
    #[inline]
    pub(crate) fn handle_frame(&mut self, now: RunTime, port: usize, frame: Frame, wake_up: Span) {
        each!(self, host => host.handle_frame(now, port, frame, wake_up));
    }
    #[inline]
    pub(crate) fn handle_deadline(&mut self, now: RunTime) {
        each!(self, host => host.handle_deadline(now));
    }
    #[inline]
    pub(crate) fn handle_line_free(&mut self, port: usize, transmission: Transmission, free_at: RunTime) {
        each!(self, host => host.handle_line_free(port, transmission, free_at));
    }
    /// The clock runs differently in the time ahead. Hosts without windows do nothing by it.
    pub(crate) fn handle_clock(&mut self, now: RunTime, clock: &DeviceClock) {
        if let Self::Windows(host) = self {
            host.handle_clock(now, |own| own.clone_from(clock));
        }
    }
    #[inline]
    pub(crate) fn outputs(&mut self) -> &mut Fifo<Output> {
        each!(self, host => host.outputs())
    }
    #[inline]
    pub(crate) fn next_deadline(&self) -> Deadline {
        each!(self, host => host.next_deadline())
    }
}
