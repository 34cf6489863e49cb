//! The end system as a role of the agent.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::thread::JoinHandle;

use wg_net::{DiscardSocket, HardwareTimestamping};
use wg_plan::Node;

use super::access_points::{check_interface, describe, open, open_log, silence};
use super::assignment::{Assignment, AssignmentError, DISCARD_PORT};
use super::live_figures;
use super::report::Gathered;
use super::threads::{AccessPoint, CaptureThread, LoadSinkThread, Starter, Stream};
use crate::control::role::{ActiveRole, Fault, OpenError, Role, RoleReport, RunContext, Setup, Timetable};
use crate::stream::backend::BackendError;
use crate::timestamps::{PortTimestamps, TimestampInfo, Timestamping};

impl From<AssignmentError> for OpenError {
    fn from(error: AssignmentError) -> Self {
        Self::new(Fault::Request, error)
    }
}

impl From<BackendError> for OpenError {
    fn from(error: BackendError) -> Self {
        Self::new(Fault::Precondition, error)
    }
}

/// Role that sends, receives and relays messages at one port.
#[derive(Clone, Copy, Debug)]
pub struct EndSystem;

impl Role for EndSystem {
    fn plays(&self, setup: &Setup) -> bool {
        setup.this_node().is_some_and(Node::is_end_system)
    }

    fn open(&self, setup: &Setup, run: &mut RunContext) -> Result<Box<dyn ActiveRole>, OpenError> {
        let assignment = Arc::new(Assignment::new(&setup.network, &setup.run, setup.node, setup.card)?);
        run.timetable = Timetable {
            last_send: assignment.last_send,
            drain: assignment.drain,
            to_send: assignment.to_send(),
        };
        run.live = live_figures::of(&assignment);
        run.remote_log = open_log(&assignment)?;
        let interface = check_interface(setup, &assignment)?;
        let here = SocketAddrV4::new(assignment.address().ipv4, DISCARD_PORT);
        let mut sinks = vec![DiscardSocket::bind(here)?];
        sinks.extend(silence(&assignment)?);
        let (port, rate_bps) = assignment.port;
        let Timestamping { info, config, clock, on } =
            Timestamping::open(&interface.name, rate_bps, setup.planted_hardware);
        if let Some(clock) = clock {
            run.add_hardware_clock(port, clock);
        }
        run.access_points = describe(&assignment, &interface.name);
        let mut starter = Starter {
            assignment: Arc::clone(&assignment),
            interface: &interface,
            setup,
            run,
            timestamps: config,
            timestamped_by: info.in_words(),
        };
        let mut access_points = Vec::new();
        for &access in &assignment.accesses {
            let socket = open(access, &assignment, &interface, config.is_some())?;
            access_points.push(starter.start_access_point(access, socket)?);
        }
        let streams = starter.start_streams()?;
        let load_sink = starter.start_load_sink()?;
        let capture = starter.start_capture()?;
        Ok(Box::new(ActiveEndSystem {
            assignment,
            access_points,
            streams,
            load_sink,
            capture,
            timestamps: info,
            _timestamping: on,
            _sinks: sinks,
        }))
    }
}

/// The threads of an end system.
struct ActiveEndSystem {
    assignment: Arc<Assignment>,
    access_points: Vec<AccessPoint>,
    streams: Vec<Stream>,
    load_sink: LoadSinkThread,
    capture: Option<CaptureThread>,
    timestamps: TimestampInfo,
    _timestamping: Option<HardwareTimestamping>,
    _sinks: Vec<DiscardSocket>,
}

impl ActiveRole for ActiveEndSystem {
    fn close(self: Box<Self>) -> RoleReport {
        let mut gathered = Gathered::default();
        for access_point in self.access_points {
            let access = access_point.access;
            gathered.take_access_point(access, access_point.servicing.join());
            if let Some(task) = access_point.relay_task {
                gathered.take_relay_task(access, task.join());
            }
            if let Some(task) = access_point.receiver {
                gathered.take_reception(task.join());
            }
            if access_point.builder.is_some_and(|builder| builder.join().is_err()) {
                gathered.defect("a sender task");
            }
        }
        for stream in self.streams {
            if let Some(stopper) = stream.stopper {
                // Once its frames have left there is nothing to stop; after a refusal the close waits for them.
                let _ = stopper.stop();
            }
            let joined = stream.threads.into_iter().map(JoinHandle::join).collect();
            gathered.take_stream(stream.info, joined);
        }
        match self.load_sink {
            LoadSinkThread::None => {}
            LoadSinkThread::Refused(why) => gathered.no_account = Some(why),
            LoadSinkThread::Running(thread) => gathered.take_load_sink(thread.join()),
        }
        // Closed last, so that the capture includes the frames of all other threads.
        if let Some(capture) = self.capture.and_then(CaptureThread::finish) {
            gathered.take_capture(capture);
        }
        let timestamps =
            PortTimestamps { port: self.assignment.port.0, info: self.timestamps, ..Default::default() };
        gathered.report(&self.assignment, timestamps)
    }
}
