//! Log of a host sent over the network under test: one frame to another host for every so many messages that
//! applications send and receive.
//!
//! The record writer sends it as it processes the messages' records, so no servicing thread allocates, waits or makes a
//! system call for it. The log therefore lags behind its messages and leaves in bursts, whenever the writer gets a
//! core.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};

use wg_frame::ethernet::wire_len;
use wg_frame::layout::udp_frame_len;
use wg_record::{FLOW_FOREIGN, Point, Record};

/// Open log.
#[derive(Debug)]
pub struct RemoteLog {
    socket: UdpSocket,
    /// Content of a frame, which no receiver reads.
    payload: Vec<u8>,
    records: u64,
    done: RemoteLogStats,
}

/// Statistics of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteLogStats {
    /// Logged messages.
    pub logged: u64,
    /// Completed frames.
    pub frames: u64,
    /// Frames accepted by the kernel.
    pub sent: u64,
    /// Bytes of these on the wire, preamble and gap included.
    pub wire_bytes: u64,
}

impl RemoteLog {
    /// Log from `from` to `to` with `records` records of `length` bytes per frame.
    ///
    /// # Errors
    /// The port is in use, or the address is not configured on this host.
    pub fn open(from: SocketAddrV4, to: SocketAddrV4, records: u32, length: u32) -> io::Result<Self> {
        let socket = UdpSocket::bind(from)?;
        socket.connect(to)?;
        // A frame for which the socket has no space is counted and lost.
        socket.set_nonblocking(true)?;
        let bytes = usize::try_from(records.saturating_mul(length)).unwrap_or(0);
        let records = u64::from(records.max(1));
        Ok(Self { socket, payload: vec![0; bytes], records, done: RemoteLogStats::default() })
    }

    /// Processes records.
    pub fn take(&mut self, records: &[Record]) {
        let is_logged = |record: &&Record| {
            matches!(record.point, Point::ApplicationSend | Point::ApplicationReceive)
                && record.flow != FLOW_FOREIGN
        };
        self.done.logged += records.iter().filter(is_logged).count() as u64;
        while self.done.frames < self.done.logged / self.records {
            self.done.frames += 1;
            if self.socket.send(&self.payload).is_ok() {
                self.done.sent += 1;
                self.done.wire_bytes += wire_len(udp_frame_len(self.payload.len(), false)) as u64;
            }
        }
    }

    /// Statistics so far.
    pub fn stats(&self) -> RemoteLogStats {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use wg_frame::time::RunTime;
    use wg_record::{Clock, Crc, DropReason, RecordFlags};

    use super::*;

    #[test]
    fn a_frame_leaves_for_so_many_messages_and_none_for_other_records() {
        let reader = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        reader.set_read_timeout(Some(Duration::from_secs(5))).expect("it can be limited");
        let port = reader.local_addr().expect("an address").port();
        let here = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let mut log = RemoteLog::open(here(0), here(port), 3, 40).expect("a log");
        let record = |point, flow| Record {
            time: RunTime::ZERO,
            sequence: 0,
            flow,
            node: 0,
            port: 1,
            length: 64,
            point,
            clock: Clock::Realtime,
            crc: Crc::Ok,
            reason: DropReason::None,
            flags: RecordFlags::empty(),
        };
        log.take(&[record(Point::ApplicationSend, 1), record(Point::DriverSend, 1)]);
        log.take(&[record(Point::ApplicationReceive, 1), record(Point::ApplicationReceive, FLOW_FOREIGN)]);
        assert_eq!(log.stats().frames, 0);
        log.take(&[record(Point::ApplicationReceive, 2); 5]);
        let expected = RemoteLogStats { logged: 7, frames: 2, sent: 2, wire_bytes: 2 * (120 + 46 + 20) };
        assert_eq!(log.stats(), expected);
        let mut bytes = [1; 200];
        for _ in 0..2 {
            assert_eq!(reader.recv(&mut bytes).expect("a frame came"), 120);
            assert_eq!(bytes[..120], [0; 120]);
        }
    }
}
