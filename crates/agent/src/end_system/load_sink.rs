//! Receiver of background load; counts every frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wg_frame::time::Epoch;
use wg_net::Interface;
use wg_net::receive::{FrameFilter, RxDrops};

use super::stream_task::{is_fast, load_shape};
use crate::end_system::assignment::{Assignment, DISCARD_PORT, LoadTask};
use crate::stream::account::{Account, Accounts, Expected};
use crate::stream::receiver::{RxBackend, StreamReceiver};

/// Longest single wait for frames, ms.
const WAIT_MS: i32 = 20;
/// Receive calls after the end of the run, for frames still queued.
const LAST_ROUNDS: usize = 1_000;

/// Open receiver before the start of the run.
pub struct LoadSink {
    receiver: StreamReceiver,
    why: String,
    expected: Vec<Expected>,
}

/// Counts of background load received.
pub struct LoadSinkStats {
    /// Receive backend.
    pub backend: &'static str,
    /// Reason for the backend.
    pub why: String,
    /// Accounts by load, in the order of the plan.
    pub accounts: Vec<Account>,
    /// Frames to the load's port that belong to no load.
    pub foreign: u64,
    /// Frames dropped for lack of buffer space.
    pub drops: RxDrops,
    /// First error.
    pub failure: Option<String>,
}

impl LoadSink {
    /// Opens the receiver of the loads sent to this end system; `card`: they come from the simulated network. If the
    /// host refuses, the load has no account.
    ///
    /// # Errors
    /// The reason why there is no account.
    pub fn open(assignment: &Assignment, interface: &Interface, card: bool) -> Result<Self, String> {
        let loads: &[Arc<LoadTask>] = &assignment.loads_to_here;
        let filter = FrameFilter { udp_ports: vec![DISCARD_PORT], ether_type: None };
        // A frame received by AF_XDP never reaches a capture, and a capture must show all arrivals.
        let beside_capture =
            (RxBackend::Ring, "the capture on this interface would not see frames received by AF_XDP");
        // A third of the time that the network has to deliver a frame to the receiver.
        let from_model = (
            RxBackend::Ring,
            "frames of the model are socket buffers, which AF_XDP would have to copy first",
        );
        let preferred = assignment.capture_snap.map(|_| beside_capture).or(card.then_some(from_model));
        let (receiver, why) =
            StreamReceiver::open(interface, &filter, preferred, is_fast(loads)).map_err(|e| e.to_string())?;
        let expected = loads
            .iter()
            .map(|task| Expected {
                flow: task.flow(),
                payload: None,
                transmit_time: load_shape(assignment, task).transmit_time,
                gap_ps: (task.inject.burst == 1
                    && !task.inject.exponential
                    && task.inject.threads.is_none()
                    && task.inject.activity.is_none())
                .then_some(task.inject.interval.as_picos()),
            })
            .collect();
        Ok(Self { receiver, why, expected })
    }

    /// Receives frames until `stop` is set.
    pub fn run(mut self, epoch: Epoch, stop: &AtomicBool) -> LoadSinkStats {
        let mut accounts = Accounts::new(epoch, &self.expected);
        let mut failure = None;
        let mut rounds = 0;
        loop {
            let over = stop.load(Ordering::Relaxed);
            let wait = if over { 0 } else { WAIT_MS };
            let got = self.receiver.take(wait, |arrival| {
                accounts.take(arrival);
            });
            rounds += usize::from(over);
            match got {
                Ok(0) if over => break,
                Ok(_) if rounds < LAST_ROUNDS => {}
                Ok(_) => break,
                Err(error) => {
                    failure = Some(format!("receiver of background load: {error}"));
                    break;
                }
            }
        }
        let drops = self.receiver.drops().unwrap_or_default();
        let measured = accounts.streams.into_iter().map(|[measured, _]| measured).collect();
        let (backend, foreign) = (self.receiver.backend().name(), accounts.foreign);
        LoadSinkStats { backend, why: self.why, accounts: measured, foreign, drops, failure }
    }
}
