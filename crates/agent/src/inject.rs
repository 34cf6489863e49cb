//! The injector task: background load on a schedule of its own, with a socket of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use wg_frame::layout::udp_frame_len;
use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::{FloodSocket, clock};
use wg_plan::Inject;

/// Preamble, start delimiter and smallest gap between frames, bytes (IEEE Std 802.3, 3.2.1 and 4.4.2).
const AROUND_FRAME: u64 = 20;
/// Bursts that are later than this are given up, ns: a host that cannot make the load must not spend the rest of the run catching up.
const GIVE_UP: i64 = 20_000_000;
/// Longest single sleep, ns, so that a stop is noticed.
const LONGEST_SLEEP: i64 = 20_000_000;

/// What the injector did.
#[derive(Debug, Default)]
pub struct InjectFigures {
    /// Frames the schedule asked for.
    pub planned: u64,
    /// Frames the kernel took.
    pub frames: u64,
    /// Their bytes on the wire, preamble and gap included.
    pub wire_bytes: u64,
    /// What went wrong with the socket.
    pub failure: Option<String>,
}

/// Frames the schedule asks for from the epoch to `until`.
pub fn planned(inject: &Inject, until: RunTime) -> u64 {
    let bursts =
        until.as_picos().max(0).unsigned_abs().div_ceil(inject.interval.as_picos().unsigned_abs().max(1));
    bursts * u64::from(inject.burst)
}

/// Makes the load from the epoch to `until`.
pub fn run(
    inject: &Inject,
    socket: &FloodSocket,
    epoch: Epoch,
    until: RunTime,
    stop: &AtomicBool,
) -> InjectFigures {
    let payload = vec![0_u8; inject.payload as usize];
    let on_wire = udp_frame_len(payload.len(), false) as u64 + AROUND_FRAME;
    let mut figures = InjectFigures { planned: planned(inject, until), ..InjectFigures::default() };
    let mut due = RunTime::ZERO;
    while due < until && !stop.load(Ordering::Relaxed) {
        let at = epoch.wall_nanos(due).get();
        let now = clock::realtime().get();
        if at > now {
            clock::sleep_until(WallNanos::new(at.min(now + LONGEST_SLEEP)));
            continue;
        }
        if now - at <= GIVE_UP {
            match socket.burst(&payload, inject.burst as usize) {
                Ok(taken) => {
                    figures.frames += taken as u64;
                    figures.wire_bytes += taken as u64 * on_wire;
                }
                Err(error) => {
                    figures.failure = Some(format!("background load: {error}"));
                    return figures;
                }
            }
        }
        due = due + inject.interval;
    }
    figures
}
