//! Ring from one thread to the record writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use wg_frame::time::{Epoch, WallNanos};
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};

/// Producer of a record ring. A full ring counts the record as dropped and never blocks.
#[derive(Debug)]
pub struct RecordProducer {
    ring: Producer<Record>,
    dropped: Arc<AtomicU64>,
    epoch: Epoch,
    node: u16,
    port: u16,
}

/// Consumer of a record ring.
#[derive(Debug)]
pub struct RecordConsumer {
    /// Ring of records.
    pub ring: Consumer<Record>,
    /// Number of records dropped because the ring was full.
    pub dropped: Arc<AtomicU64>,
}

/// Message fields that are the same at every record point.
#[derive(Clone, Copy, Debug)]
pub struct MessageInfo {
    /// Flow in the header, or [`wg_record::FLOW_FOREIGN`].
    pub flow: u16,
    /// Sequence number in the header.
    pub sequence: u32,
    /// Frame length, DA to FCS.
    pub length: u16,
    /// Result of the CRC check.
    pub crc: Crc,
    /// Leg and phase.
    pub flags: RecordFlags,
}

/// Arrival times of a frame.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalTimes {
    /// Time on the interface's clock plus its nominal offset, to be translated by the record writer.
    pub wire: Option<WallNanos>,
    /// Time at which the kernel received it from the driver.
    pub driver: Option<WallNanos>,
    /// Time at which the servicing thread received it.
    pub application: WallNanos,
}

/// Ring for `capacity` records with all memory mapped.
pub fn record_ring(capacity: usize, node: u16, port: u16) -> (RecordProducer, RecordConsumer) {
    let (mut producer, mut consumer) = RingBuffer::new(capacity.max(1));
    let nothing = Record {
        time: wg_frame::time::RunTime::ZERO,
        sequence: 0,
        flow: 0,
        node: 0,
        port: 0,
        length: 0,
        point: Point::Drop,
        clock: Clock::Realtime,
        crc: Crc::Unchecked,
        reason: DropReason::None,
        flags: RecordFlags::empty(),
    };
    // Touching every page now avoids page faults on the servicing thread.
    while producer.push(nothing).is_ok() {}
    while consumer.pop().is_ok() {}
    let dropped = Arc::new(AtomicU64::new(0));
    let log = RecordProducer {
        ring: producer,
        dropped: Arc::clone(&dropped),
        epoch: Epoch::new(WallNanos::new(0)),
        node,
        port,
    };
    (log, RecordConsumer { ring: consumer, dropped })
}

impl RecordProducer {
    /// Sets the epoch of the run; times of earlier records count from 1970.
    pub fn begin(&mut self, epoch: Epoch) {
        self.epoch = epoch;
    }

    /// Adds one record, without system call or allocation.
    #[inline]
    pub fn push(&mut self, seen: MessageInfo, point: Point, clock: Clock, reason: DropReason, at: WallNanos) {
        let stored = self.epoch.run_time(at).is_some_and(|time| {
            let record = Record {
                time,
                sequence: seen.sequence,
                flow: seen.flow,
                node: self.node,
                port: self.port,
                length: seen.length,
                point,
                clock,
                crc: seen.crc,
                reason,
                flags: seen.flags,
            };
            self.ring.push(record).is_ok()
        });
        if !stored {
            // A single writer needs no atomic read-modify-write.
            self.dropped.store(self.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Adds a complete record.
    #[inline]
    pub fn push_record(&mut self, record: Record) {
        if self.ring.push(record).is_err() {
            self.dropped.store(self.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Adds the records of a received frame.
    #[inline]
    pub fn received(&mut self, seen: MessageInfo, at: ArrivalTimes) {
        if let Some(at) = at.wire {
            self.push(seen, Point::WireReceive, Clock::Hardware, DropReason::None, at);
        }
        if let Some(at) = at.driver {
            self.push(seen, Point::DriverReceive, Clock::KernelRealtime, DropReason::None, at);
        }
        self.push(seen, Point::ApplicationReceive, Clock::Realtime, DropReason::None, at.application);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_counts_what_it_could_not_take() {
        let (mut log, mut source) = record_ring(3, 7, 2);
        log.begin(Epoch::new(WallNanos::new(1_000)));
        let seen = MessageInfo { flow: 1, sequence: 2, length: 64, crc: Crc::Ok, flags: RecordFlags::RETURN };
        for _ in 0..5 {
            log.push(seen, Point::Drop, Clock::Realtime, DropReason::PlantedFault, WallNanos::new(1_500));
        }
        assert_eq!(source.dropped.load(Ordering::Relaxed), 2);
        let record = source.ring.pop().expect("three records fit");
        assert_eq!((record.time.as_picos(), record.node, record.port), (500_000, 7, 2));
        assert_eq!((record.flow, record.sequence, record.flags), (1, 2, RecordFlags::RETURN));
    }
}
