//! Injector thread that sends a burst frame by frame and then sleeps, as the flooders of the MAPS test bed did. It
//! keeps no schedule: the time taken by sending and sleeping delays every later burst.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use wg_frame::probe::ProbeFlags;
use wg_frame::time::{Epoch, RunTime, Span, WallNanos};
use wg_net::clock;
use wg_net::transmit::Transmitter;

use crate::end_system::servicing::LONGEST_SLEEP_MS;
use crate::stream::paced_sender::{FrameTemplate, PacedStats};

/// One thread of an injector.
#[derive(Clone, Debug)]
pub struct Flooder {
    /// Start time.
    pub begins: RunTime,
    /// Requested sleep after a burst.
    pub sleep: Span,
    /// Frames per burst.
    pub burst: u32,
    /// Next frame number, shared by all threads of the injector so that numbers are unique.
    pub numbers: Arc<AtomicU32>,
}

impl Flooder {
    /// Threads of an injector, started one interval apart.
    pub fn all(threads: u16, interval: Span, burst: u32) -> Vec<Self> {
        let numbers = Arc::new(AtomicU32::new(0));
        let times = |n: u16| interval.checked_mul(i64::from(n)).unwrap_or(Span::from_picos(i64::MAX / 2));
        let one = |place: u16| Self {
            begins: RunTime::ZERO + times(place),
            sleep: times(threads),
            burst: burst.max(1),
            numbers: Arc::clone(&numbers),
        };
        (0..threads.max(1)).map(one).collect()
    }

    /// Sends until `until` or until told to stop.
    ///
    /// # Errors
    /// The backend is unusable; frames sent until then are in the figures.
    pub fn run(
        &self,
        transmitter: &mut Transmitter,
        (bytes, template): &FrameTemplate,
        epoch: Epoch,
        until: RunTime,
        stop: &AtomicBool,
        stats: &mut PacedStats,
    ) -> io::Result<()> {
        let end = epoch.wall_nanos(until).get();
        wait_until(epoch.wall_nanos(self.begins).get().min(end), stop);
        while !stop.load(Ordering::Relaxed) && clock::realtime().get() < end {
            for _ in 0..self.burst {
                let Some(slot) = transmitter.slot() else { break };
                slot.bytes[..bytes.len()].copy_from_slice(bytes);
                let now = clock::realtime();
                let time = epoch.run_time(now).unwrap_or(RunTime::ZERO);
                let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                template.patch(slot.bytes, number, ProbeFlags::NONE, time);
                transmitter.commit(bytes.len());
                stats.offered += 1;
                stats.refused += transmitter.flush()?.refused as u64;
                stats.span = Some((stats.span.map_or(now.get(), |span| span.0), now.get()));
            }
            let sleep = self.sleep.as_nanos_floor();
            wait_until(clock::realtime().get().saturating_add(sleep).min(end), stop);
        }
        Ok(())
    }
}

/// Sleeps until `wall`, ns, or until told to stop.
pub(super) fn wait_until(wall: i64, stop: &AtomicBool) {
    loop {
        let now = clock::realtime().get();
        if now >= wall || stop.load(Ordering::Relaxed) {
            return;
        }
        clock::sleep_until(WallNanos::new(wall.min(now + i64::from(LONGEST_SLEEP_MS) * 1_000_000)));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

    use wg_frame::ethernet::MacAddress;
    use wg_frame::layout::{Carrier, Envelope};

    use super::*;
    use crate::stream::{Extent, FrameSpec};

    #[test]
    fn threads_share_numbers_and_each_sleeps_after_its_burst() {
        let reader = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = reader.local_addr().expect("an address").port();
        let here = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let (destination, source) = (MacAddress([0; 6]), MacAddress([0; 6]));
        let envelope =
            Envelope { destination, source, tag: None, carrier: Carrier::udp(here(0), here(port)) };
        let spec = FrameSpec { flow: 1, envelope, payload: 64, transmit_time: None, number: None };
        let template = spec.template(Extent::Payload).expect("a frame");
        let (epoch, stop) = (Epoch::new(clock::realtime()), AtomicBool::new(false));
        let all = Flooder::all(3, Span::from_millis(2), 10);
        assert_eq!(all[2].begins, RunTime::ZERO + Span::from_millis(4));
        assert!(all.iter().all(|one| one.sleep == Span::from_millis(6)));
        let until = RunTime::ZERO + Span::from_millis(30);
        let sent: u64 = std::thread::scope(|scope| {
            let (template, stop) = (&template, &stop);
            let threads = all.iter().map(|one| {
                scope.spawn(move || {
                    let mut transmitter = Transmitter::udp(here(0), here(port)).expect("a socket");
                    let mut stats = PacedStats::default();
                    one.run(&mut transmitter, template, epoch, until, stop, &mut stats).expect("a way out");
                    stats.offered
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).sum()
        });
        // Each has five bursts at most, for it sleeps at least what it asks to.
        assert!(sent.is_multiple_of(10) && (30..=150).contains(&sent), "{sent}");
        assert_eq!(u64::from(all[0].numbers.load(Ordering::Relaxed)), sent);
    }
}
