//! Calls about the programs that synchronise clocks: admission, and their output.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status};
use wg_net::clock::{self, Leap};

use super::admission::of_session;
use super::service::{AgentService, Streamed};
use super::session::Session;
use crate::clocks::keeping::{Shown, ask_chrony};
use crate::clocks::linuxptp::Settings;
use crate::clocks::{ClockError, ClockPrograms, others};
use crate::proto;

/// Interval at which a stream without lines checks that it is still wanted.
const LOOK: Duration = Duration::from_secs(1);
/// Folder of the programs' sockets, below the working folder of an agent that serves a network.
const FOLDER: &str = "clock-programs";

fn refusal(error: &ClockError) -> Status {
    match error {
        ClockError::Asked(_) => Status::invalid_argument(error.to_string()),
        ClockError::Host(_) => Status::failed_precondition(error.to_string()),
    }
}

impl AgentService {
    pub(super) async fn start_programs(
        &self,
        request: Request<proto::StartClockProgramsRequest>,
    ) -> Result<proto::StartClockProgramsReply, Status> {
        let session = self.session(&request)?;
        session.alive();
        let settings = Settings::of(request.into_inner()).map_err(|error| refusal(&error))?;
        self.may_start(&session, &settings)?;
        let (folder, planted) = (self.programs_folder(), self.planted_clock);
        let shown: Shown = Arc::new(move |time| planted.map_or(time, |planted| planted.shown(time)));
        let started = tokio::task::spawn_blocking(move || ClockPrograms::start(settings, &folder, shown))
            .await
            .map_err(|_| Status::internal("starting programs failed; this is a defect of wiregauge"))?
            .map_err(|error| refusal(&error))?;
        let programs = started.names();
        // Another call of the session may have been first meanwhile.
        if !session.take_programs(started) {
            return Err(running());
        }
        session.alive();
        Ok(proto::StartClockProgramsReply { programs })
    }

    /// Checks that the host permits programs as requested, and that no other program sets its clock.
    fn may_start(&self, session: &Arc<Session>, settings: &Settings) -> Result<(), Status> {
        of_session(session, &settings.interface)?;
        if let Some(rules) = &self.remote {
            let allowed = &rules.allowance;
            allowed.check_program("ptp4l").map_err(Status::permission_denied)?;
            if settings.has_phc2sys() {
                allowed.check_program("phc2sys").map_err(Status::permission_denied)?;
            }
            if settings.steer {
                allowed.check_setting().map_err(Status::permission_denied)?;
            }
        }
        if session.programs().is_some() {
            return Err(running());
        }
        wg_net::interface_named(&settings.interface).map_err(|error| Status::not_found(error.to_string()))?;
        let clock = wg_net::timestamp_capability(&settings.interface).is_ok_and(|able| able.phc().is_some());
        if settings.hardware && !clock {
            return Err(Status::failed_precondition(format!(
                "{} has no clock of its own; write timestamps=\"software\" in <ptp>",
                settings.interface
            )));
        }
        if settings.steer {
            let another = self.sessions().iter().any(|one| one.programs().is_some_and(|p| p.settings.steer));
            let setter = if another { Some("another session's ptp4l") } else { others::setting_the_clock() };
            if let Some(setter) = setter {
                return Err(Status::failed_precondition(format!(
                    "{setter} sets this host's clock already; end it, or write steer=\"off\" in <ptp>"
                )));
            }
        }
        Ok(())
    }

    /// Folder of the programs' sockets: a short path, used by this agent alone.
    fn programs_folder(&self) -> PathBuf {
        if self.remote.is_some() {
            return PathBuf::from(FOLDER);
        }
        std::env::temp_dir().join(format!("wiregauge-{FOLDER}-{}", std::process::id()))
    }

    pub(super) fn watch_programs(
        &self,
        request: &Request<proto::WatchClockProgramsRequest>,
    ) -> Result<Streamed<proto::ClockProgramLine>, Status> {
        let session = self.session(request)?;
        session.alive();
        let programs = session.programs();
        let programs =
            programs.ok_or_else(|| Status::failed_precondition("no program runs for this session"))?;
        let (output, mut after) = (Arc::clone(&programs.output), request.get_ref().after);
        let (sender, receiver) = mpsc::channel(16);
        drop(programs);
        tokio::spawn(async move {
            loop {
                let over = output.is_over();
                for line in output.after(after) {
                    after = line.sequence;
                    if sender.send(Ok(line)).await.is_err() {
                        return;
                    }
                }
                if over || sender.is_closed() {
                    return;
                }
                output.more(LOOK).await;
            }
        });
        Ok(Box::pin(ReceiverStream::new(receiver)))
    }

    pub(super) async fn ask_programs(
        &self,
        request: Request<proto::AskClockProgramsRequest>,
    ) -> Result<proto::AskClockProgramsReply, Status> {
        let session = self.session(&request)?;
        session.alive();
        let asked = request.into_inner();
        if let (true, Some(rules)) = (asked.chrony, &self.remote) {
            rules.allowance.check_program("chronyc").map_err(Status::permission_denied)?;
        }
        let programs = session.programs().filter(|_| asked.ptp);
        tokio::task::spawn_blocking(move || {
            let told = clock::kernel_clock().map_err(|error| {
                Status::internal(format!("the kernel does not tell of its clock: {error}"))
            })?;
            let leap = match told.leap {
                Leap::None => 0,
                Leap::Insert => 1,
                Leap::Delete => -1,
            };
            Ok(proto::AskClockProgramsReply {
                pmc: programs.map(|programs| programs.ask()).unwrap_or_default(),
                chrony: if asked.chrony {
                    ask_chrony().map_err(|error| refusal(&error))?
                } else {
                    String::new()
                },
                kernel: Some(proto::KernelClock { tai_s: told.tai_s, leap }),
            })
        })
        .await
        .map_err(|_| Status::internal("asking programs failed; this is a defect of wiregauge"))?
    }
}

fn running() -> Status {
    Status::failed_precondition("programs run for this session already; call StopClockPrograms first")
}
