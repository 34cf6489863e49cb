//! A short trial of a stream's backend on the path it will use, before a run begins.
//!
//! A way that takes frames is not yet one by which they arrive: a driver may count what no switch ever sees. So between
//! preparing and starting the testmaster has each stream send a few frames that no receiver takes for its own, and asks the
//! receiving end what came. The frames leave by the stream's own way, on its own thread.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::control::gate::Gate;

/// Time between two looks at the gate.
const LOOK: Duration = Duration::from_millis(20);
/// How long a trial may take.
const PATIENCE: Duration = Duration::from_secs(5);

type Answer = Result<u32, String>;

/// Who asks for trials.
#[derive(Debug)]
pub struct TrialClient(Sender<(u32, Sender<Answer>)>);

/// Who carries them out.
#[derive(Debug)]
pub struct TrialServer(Receiver<(u32, Sender<Answer>)>);

/// Both ends.
pub fn trial() -> (TrialClient, TrialServer) {
    let (ask, asked) = channel();
    (TrialClient(ask), TrialServer(asked))
}

impl TrialClient {
    /// Has `frames` sent; how many were.
    ///
    /// # Errors
    /// Why not.
    pub fn ask(&self, frames: u32) -> Answer {
        let (tell, told) = channel();
        let over = |_| "the run has begun".to_owned();
        self.0.send((frames, tell)).map_err(|e| over(e.to_string()))?;
        told.recv_timeout(PATIENCE).map_err(|e| e.to_string())?
    }
}

impl TrialServer {
    /// Carries out what is asked for by `act` until the gate decides.
    pub fn serve(self, gate: &Gate, mut act: impl FnMut(u32) -> Answer) {
        while gate.is_closed() {
            if let Ok((frames, tell)) = self.0.recv_timeout(LOOK) {
                // Who asked may have lost patience.
                drop(tell.send(act(frames)));
            }
        }
    }
}
