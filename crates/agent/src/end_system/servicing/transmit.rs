//! Send path.

use wg_frame::probe::Probe;
use wg_frame::time::RunTime;
use wg_net::{SendFailure, clock};
use wg_plan::NodeIndex;
use wg_record::{Clock, Crc, DropReason, Point};

use super::hardware::OUTSTANDING;
use super::{Outstanding, Servicing};
use crate::control::role::Counters;
use crate::end_system::addressing::AccessKind;
use crate::end_system::buffer::Buffer;
use crate::end_system::framing;

/// Properties of the frame to be sent.
#[derive(Clone, Copy)]
pub(super) struct FrameToSend {
    pub(super) to: NodeIndex,
    pub(super) flow: u16,
    pub(super) probe: Probe,
    pub(super) length: u16,
    pub(super) intended: Option<RunTime>,
}

impl Servicing {
    /// Sends the head of outbox `index` and returns its buffer.
    pub(super) fn send_from(&mut self, index: usize) {
        let Some(message) = self.outboxes.take(index) else { return };
        let frame = usize::from(message.frame.start)..usize::from(message.frame.end);
        let send = FrameToSend {
            to: message.to,
            flow: message.flow,
            probe: message.probe,
            length: message.length,
            intended: message.scheduled.then_some(message.due),
        };
        self.transmit(&message.buffer, frame, send);
        match &mut self.returns[index] {
            // The ring has space for every buffer of its task.
            Some(home) => drop(home.push(message.buffer)),
            None => self.recycle(message.buffer),
        }
    }

    /// Timestamps, sends and records one frame.
    pub(super) fn transmit(&mut self, buffer: &Buffer, frame: std::ops::Range<usize>, send: FrameToSend) {
        let to = (self.access == AccessKind::Udp)
            .then(|| self.assignment.addresses[usize::from(send.to)].probes().into());
        let at = clock::realtime();
        let asked = self.interface.as_mut().is_some_and(|interface| interface.may_ask(at));
        let sent = if asked {
            self.socket.send_with_hardware_timestamp(&buffer.bytes[frame], to)
        } else {
            self.socket.send(&buffer.bytes[frame], to)
        };
        let seen = framing::seen(send.probe, send.length, Crc::Unchecked);
        if let Some(intended) = send.intended {
            self.records.push(
                seen,
                Point::IntendedSend,
                Clock::Schedule,
                DropReason::None,
                self.epoch.wall_nanos(intended),
            );
        }
        self.records.push(seen, Point::ApplicationSend, Clock::Realtime, DropReason::None, at);
        if send.intended.is_some() {
            Counters::count(&self.counters.sent);
        }
        match sent {
            Ok(number) => {
                self.stats.frames_sent += 1;
                let slot = &mut self.outstanding[number as usize % OUTSTANDING];
                if slot.waiting {
                    self.stats.missing_tx_timestamps += 1;
                } else {
                    self.timestamps_due += 1;
                }
                *slot = Outstanding { number, waiting: true, asked, seen };
                if let Some(interface) = self.interface.as_mut().filter(|_| asked) {
                    interface.handle_asked(number, at);
                }
                if let Some(intended) = send.intended {
                    let stats = &mut self.stats.sends[usize::from(send.flow)];
                    stats.done += 1;
                    let most = self.assignment.flows[usize::from(send.flow)].late_after_ns;
                    let lateness = at.get() - self.epoch.wall_nanos(intended).get();
                    stats.late += u64::from(lateness > most);
                }
            }
            Err(failure) => {
                self.stats.send_errors += 1;
                self.records.push(seen, Point::Drop, Clock::Realtime, DropReason::SendRefused, at);
                if let SendFailure::Refused(error) = failure
                    && self.stats.failure.is_none()
                {
                    self.stats.failure = Some(format!("the kernel refused to send: {error}"));
                }
            }
        }
    }
}
