//! Timestamps of frames sent, off the error queue: the driver's of every frame, the interface's of those asked about.

use wg_net::{TX_BATCH, TransmitTimestamp};
use wg_record::{Clock, DropReason, Point};

use super::Servicing;
use super::hardware::OUTSTANDING;

impl Servicing {
    /// Whether timestamps of the interface are under way.
    pub(super) fn hardware_timestamps_due(&self) -> bool {
        self.interface.as_ref().is_some_and(|interface| interface.budget.is_waiting())
    }

    /// Where there is never a quiet moment: one batch of timestamps whenever a batch may be there, since the error
    /// queue shares the memory of received frames; and whenever the interface could give a further one if the last were
    /// taken.
    pub(super) fn collect_backlog(&mut self) {
        let full = self.interface.as_ref().is_some_and(|i| i.config.transmit && i.budget.is_full());
        if self.timestamps_due >= self.collect_at || full {
            self.collect_batch();
            self.collect_at = self.timestamps_due + TX_BATCH;
        }
    }

    /// Takes transmit timestamps off the error queue until it is empty, at most as many as are due.
    pub(super) fn collect_timestamps(&mut self) {
        for _ in 0..=self.timestamps_due / TX_BATCH {
            if self.collect_batch() < TX_BATCH {
                break;
            }
        }
        self.collect_at = self.timestamps_due + TX_BATCH;
    }

    /// One batch; how many entries it had.
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
