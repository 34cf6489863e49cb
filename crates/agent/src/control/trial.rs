//! A short trial of a stream's backend on the path it will use, before a run begins.
//!
//! A backend that accepts frames need not deliver them: a driver may count frames that no switch ever sees. So between
//! preparing and starting the testmaster has each stream send a few frames that no receiver accepts as messages, and
//! queries the receiving end. The frames leave by the stream's own backend and thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::control::gate::Gate;

/// Interval of checks of the gate.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit of a trial.
const PATIENCE: Duration = Duration::from_secs(5);

type Answer = Result<u32, String>;

/// The end that requests trials.
#[derive(Debug)]
pub struct TrialClient(Sender<(u32, Sender<Answer>)>);

/// The end that carries them out.
#[derive(Debug)]
pub struct TrialServer(Receiver<(u32, Sender<Answer>)>);

/// Makes both ends.
pub fn trial() -> (TrialClient, TrialServer) {
    let (ask, asked) = channel();
    (TrialClient(ask), TrialServer(asked))
}

impl TrialClient {
    /// Requests `frames` trial frames; returns the number sent.
    ///
    /// # Errors
    /// The reason for a failure.
    pub fn ask(&self, frames: u32) -> Answer {
        let (tell, told) = channel();
        let over = |_| "the run has begun".to_owned();
        self.0.send((frames, tell)).map_err(|e| over(e.to_string()))?;
        told.recv_timeout(PATIENCE).map_err(|e| e.to_string())?
    }
}

impl TrialServer {
    /// Carries out requested trials by `act` until the gate decides.
    pub fn serve(self, gate: &Gate, mut act: impl FnMut(u32) -> Answer) {
        while gate.is_closed() {
            if let Ok((frames, tell)) = self.0.recv_timeout(LOOK) {
                // The requester may have given up.
                drop(tell.send(act(frames)));
            }
        }
    }
}
