//! Transmit timestamps from the error queue: the driver's for every frame, the interface's for requested frames.

use wg_net::{TX_BATCH, TransmitTimestamp};
use wg_record::{Clock, DropReason, Point};

use super::Servicing;
use super::hardware::OUTSTANDING;

impl Servicing {
    /// True if hardware timestamps are outstanding.
    pub(super) fn hardware_timestamps_due(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.budget.is_waiting())
    }

    /// Collects timestamps on a thread that is never idle: one batch whenever one may be complete, since the error
    /// queue shares the memory of received frames, and whenever the interface can take a further request after the last
    /// is collected.
    pub(super) fn collect_backlog(&mut self) {
        let full = self.interface.as_ref().is_some_and(|i| i.config.transmit && i.budget.is_full());
        if self.timestamps_due >= self.collect_at || full {
            self.collect_batch();
            self.collect_at = self.timestamps_due + TX_BATCH;
        }
    }

    /// Collects transmit timestamps until the error queue is empty, at most as many as are outstanding.
    pub(super) fn collect_timestamps(&mut self) {
        for _ in 0..=self.timestamps_due / TX_BATCH {
            if self.collect_batch() < TX_BATCH {
                break;
            }
        }
        self.collect_at = self.timestamps_due + TX_BATCH;
    }

    /// Collects one batch and returns its number of entries.
    fn collect_batch(&mut self) -> usize {
        let (outstanding, records, interface) =
            (&mut self.outstanding, &mut self.records, &mut self.interface);
        let mut matched = 0;
        let taken = self.socket.transmit_timestamps(|number, timestamp| {
            let slot = &mut outstanding[number as usize % OUTSTANDING];
            let mut hardware_ns = None;
            match timestamp {
                TransmitTimestamp::Driver(at) if slot.waiting && slot.number == number => {
                    slot.waiting = false;
                    matched += 1;
                    records.push(slot.seen, Point::DriverSend, Clock::KernelRealtime, DropReason::None, at);
                    if let Some(config) = interface.as_ref().map(|i| i.config).filter(|_| slot.asked) {
                        hardware_ns =
                            config.planted.map(|planted| planted.sent(at, slot.seen.length, config.rate.0));
                    }
                }
                TransmitTimestamp::Driver(_) => {}
                TransmitTimestamp::Interface(ns) => hardware_ns = Some(ns),
            }
            if let Some((interface, ns)) = interface.as_mut().zip(hardware_ns)
                && interface.budget.handle_timestamp(number)
                && slot.number == number
            {
                let at = interface.near_realtime(ns);
                records.push(slot.seen, Point::WireSend, Clock::Hardware, DropReason::None, at);
            }
        });
        self.timestamps_due = self.timestamps_due.saturating_sub(matched);
        taken.unwrap_or_else(|error| {
            self.fail(&error);
            0
        })
    }
}
