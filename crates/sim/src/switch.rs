//! One of the switches a node can be: each is a composition of the same core.

use wg_core::Deadline;
use wg_core::critical_port::CriticalPort;
use wg_core::fifo::Fifo;
use wg_core::ingress::CriticalIngress;
use wg_core::port::{AlwaysOpen, EgressPort, Transmission};
use wg_core::switch::{AdmitAll, Arrival, Output, Switch};
use wg_frame::time::RunTime;

use crate::clocks::DeviceClock;

/// A switch, by what it forwards by.
#[derive(Debug)]
pub(crate) enum SwitchCore {
    /// By address.
    Bridge(Switch<EgressPort<AlwaysOpen>, AdmitAll>),
    /// By virtual link.
    VirtualLinks(Switch<EgressPort<AlwaysOpen>, CriticalIngress>),
    /// By virtual link and by schedule.
    Windows(Switch<CriticalPort<DeviceClock>, CriticalIngress>),
}

macro_rules! each {
    ($core:expr, $switch:ident => $what:expr) => {
        match $core {
            SwitchCore::Bridge($switch) => $what,
            SwitchCore::VirtualLinks($switch) => $what,
            SwitchCore::Windows($switch) => $what,
        }
    };
}

impl SwitchCore {
    #[inline]
    pub(crate) fn handle_frame(&mut self, now: RunTime, arrival: Arrival, more: bool) {
        each!(self, switch => switch.handle_frame(now, arrival, more));
    }
    #[inline]
    pub(crate) fn handle_deadline(&mut self, now: RunTime) {
        each!(self, switch => switch.handle_deadline(now));
    }
    #[inline]
    pub(crate) fn handle_line_free(&mut self, port: usize, transmission: Transmission, free_at: RunTime) {
        each!(self, switch => switch.handle_line_free(port, transmission, free_at));
    }
    pub(crate) fn handle_restart(&mut self, now: RunTime, back_at: RunTime) {
        each!(self, switch => switch.handle_restart(now, back_at));
    }
    #[inline]
    pub(crate) fn outputs(&mut self) -> &mut Fifo<Output> {
        each!(self, switch => switch.outputs())
    }
    #[inline]
    pub(crate) fn next_deadline(&self) -> Deadline {
        each!(self, switch => switch.next_deadline())
    }
    /// The clock runs differently in the time ahead. Switches without windows do nothing by it.
    pub(crate) fn handle_clock(&mut self, now: RunTime, clock: &DeviceClock) {
        if let Self::Windows(switch) = self {
            switch.handle_clock(now, |own| own.clone_from(clock));
        }
    }
    pub(crate) fn peak_bytes(&self, port: usize) -> u64 {
        each!(self, switch => switch.peak_bytes(port))
    }
}
