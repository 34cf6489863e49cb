//! Selection of a stream's send backend.

use wg_frame::layout::Carrier;
use wg_net::transmit::{Backend, LONGEST_GAP_NS, Launch, LiveFrames, NoLaunch, Transmitter};
use wg_net::{Interface, NetError, link_counters};

use super::paced_sender::FrameTemplate;
use super::{Extent, FrameSpec, FrameSpecError};

/// Requirements of a stream for its backend.
#[derive(Clone, Debug)]
pub struct StreamNeeds<'a> {
    /// Interface of the stream.
    pub interface: &'a Interface,
    /// Frame specifications, which differ only in length.
    pub specs: &'a [FrameSpec],
    /// Backend set by the test.
    pub forced: Option<Backend>,
    /// Shortest gap between frames, ps; 0 if bursts are sent at line rate.
    pub least_gap_ps: i64,
    /// Gap between frames, ps, if it is constant.
    pub constant_gap_ps: Option<i64>,
    /// True if every frame is recorded, which live frames are not.
    pub recorded: bool,
    /// True if no other traffic of this host uses the link, so that its queue may be bypassed.
    pub alone: bool,
    /// True if the headers are those that the kernel would write.
    pub plain_headers: bool,
    /// Policy for launch times.
    pub launch: LaunchPolicy,
    /// Priority of the frames at the interface's queues.
    pub priority: u8,
    /// Backends whose trial frames were lost on this path, each with the observation.
    pub distrusted: &'a [(Backend, String)],
    /// True if the selected backend is tried on the path before use.
    pub tried_later: bool,
}

/// Launch time setting of the test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchPolicy {
    /// Launch times if the interface supports them.
    #[default]
    Auto,
    /// Launch times required.
    On,
    /// No launch times.
    Off,
}

/// Open backend of a stream.
pub enum StreamSender {
    /// Sent by a thread of this program.
    Transmitter(Transmitter, Vec<FrameTemplate>),
    /// Sent within the kernel.
    Live(Box<LiveFrames>, Box<FrameTemplate>),
}

/// Open backend and the reason for its selection.
pub struct ChosenBackend {
    /// Sender of the frames.
    pub sender: StreamSender,
    /// Kind of backend.
    pub backend: Backend,
    /// True if it bypasses the interface's queue.
    pub past_queue: bool,
    /// Launch mechanism of the interface; `None`: this program controls the send times.
    pub launch: Option<Launch>,
    /// Reason, as one sentence for reports.
    pub why: String,
}

/// Reason why a stream has no backend.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Error of the operating system.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Error of the frame specification.
    #[error(transparent)]
    FrameSpec(#[from] FrameSpecError),
    /// The interface has no launch times.
    #[error("launch times cannot be used: {0}; or write launch=\"off\"")]
    Launch(#[from] NoLaunch),
    /// The backend does not support this stream.
    #[error("backend {backend} cannot carry this stream: {reason}")]
    Unfit {
        /// Name of the backend.
        backend: &'static str,
        /// Reason.
        reason: &'static str,
    },
}

/// Frame gap, ps, below which the kernel's ordinary send calls are too slow.
const FAST_GAP_PS: i64 = 3_000_000;
/// Number and interval of the checks whether a link accepts live frames.
const PROBES: u32 = 30;
const BETWEEN_PROBES: std::time::Duration = std::time::Duration::from_millis(50);
const FASTER_GAP_PS: i64 = 1_500_000;

/// Opens the backend set by the test, or the simplest one that is fast enough, since its frames take the same path as
/// those of an application.
///
/// # Errors
/// The error of the backend set by the test, or of the last one tried.
pub fn choose(demand: &StreamNeeds<'_>) -> Result<ChosenBackend, BackendError> {
    if let Some(launch) = launch(demand)? {
        let templates = templates(demand, Extent::Frame)?;
        let sender = StreamSender::Transmitter(Transmitter::launching(demand.interface, launch)?, templates);
        let who = if launch.by_hardware { "the card" } else { "the queue discipline etf" };
        let why = format!("{who} launches each frame, handed over {} us ahead", launch.ahead_ns / 1_000);
        return Ok(ChosenBackend {
            sender,
            backend: Backend::Packet,
            past_queue: false,
            launch: Some(launch),
            why,
        });
    }
    if let Some(backend) = demand.forced {
        return open(demand, backend)
            .map(|sender| chosen(demand, sender, backend, "the test asks for it".into()));
    }
    let mut tried = Vec::new();
    let candidates = candidates(demand);
    for (at, backend) in candidates.iter().copied().enumerate() {
        let seen = demand.distrusted.iter().find(|(distrusted, _)| *distrusted == backend);
        // The last candidate is used despite its losses, since arrivals are evaluated after the run.
        if let Some((_, seen)) = seen
            && at + 1 < candidates.len()
        {
            tried.push(format!("{} ({seen})", backend.name()));
            continue;
        }
        match open(demand, backend) {
            Ok(sender) => {
                let mut why = format!("chosen for {}", pace(demand));
                if !tried.is_empty() {
                    why = format!("{why}; not {}", tried.join("; not "));
                }
                return Ok(chosen(demand, sender, backend, why));
            }
            Err(error) if backend == Backend::Udp || (!udp_fits(demand) && backend == Backend::Packet) => {
                return Err(error);
            }
            Err(error) => tried.push(format!("{} ({error})", backend.name())),
        }
    }
    Err(BackendError::Unfit { backend: "any", reason: "no backend carries it" })
}

/// Launch mechanism of the interface, if required.
fn launch(demand: &StreamNeeds<'_>) -> Result<Option<Launch>, BackendError> {
    let fits = demand.forced.is_none_or(|backend| backend == Backend::Packet);
    match demand.launch {
        LaunchPolicy::Off => Ok(None),
        LaunchPolicy::On if !fits => {
            let backend = demand.forced.map_or("", Backend::name);
            Err(BackendError::Unfit { backend, reason: "launch times need backend packet" })
        }
        LaunchPolicy::On => Ok(Some(Launch::at(demand.interface, demand.priority)??)),
        // If the kernel reports no launch support, no card has it; faster streams use backends without launch times.
        LaunchPolicy::Auto => {
            let found = Launch::at(demand.interface, demand.priority).ok().and_then(Result::ok);
            Ok(found.filter(|launch| launch.by_hardware && fits && demand.least_gap_ps >= FAST_GAP_PS))
        }
    }
}

fn templates(demand: &StreamNeeds<'_>, extent: Extent) -> Result<Vec<FrameTemplate>, BackendError> {
    Ok(demand.specs.iter().map(|spec| spec.template(extent)).collect::<Result<_, _>>()?)
}

fn pace(demand: &StreamNeeds<'_>) -> String {
    match demand.least_gap_ps {
        0 => "bursts".into(),
        gap => format!("gaps of {:.3} us", gap as f64 / 1e6),
    }
}

fn chosen(demand: &StreamNeeds<'_>, sender: StreamSender, backend: Backend, why: String) -> ChosenBackend {
    let past_queue = match backend {
        Backend::Udp => false,
        Backend::Packet => passes_queue(demand),
        Backend::Xdp | Backend::Live => true,
    };
    ChosenBackend { sender, backend, past_queue, launch: None, why }
}

/// A packet socket bypasses the queue only if necessary, since a shaper in the queue may represent the link's rate.
fn passes_queue(demand: &StreamNeeds<'_>) -> bool {
    demand.alone && demand.least_gap_ps > 0 && demand.least_gap_ps < FAST_GAP_PS
}

fn udp_fits(demand: &StreamNeeds<'_>) -> bool {
    demand.plain_headers
        && demand.specs.iter().all(|spec| matches!(spec.envelope.carrier, Carrier::Udp { .. }))
}

fn candidates(demand: &StreamNeeds<'_>) -> Vec<Backend> {
    let mut candidates = Vec::new();
    if demand.alone
        && demand.tried_later
        && demand.least_gap_ps > 0
        && demand.least_gap_ps < FASTER_GAP_PS
        && live_fits(demand).is_ok()
    {
        candidates.push(Backend::Live);
    }
    if demand.alone && demand.least_gap_ps < FAST_GAP_PS && demand.least_gap_ps > 0 {
        candidates.push(Backend::Xdp);
    }
    candidates.push(Backend::Packet);
    if udp_fits(demand) {
        // Slow streams try the simplest backend first.
        let at = if demand.least_gap_ps >= 20_000_000 || demand.least_gap_ps == 0 {
            candidates.len() - 1
        } else {
            candidates.len()
        };
        candidates.insert(at, Backend::Udp);
    }
    candidates
}

fn live_fits(demand: &StreamNeeds<'_>) -> Result<i64, &'static str> {
    if demand.recorded {
        return Err("frames generated in the kernel are not recorded; use xdp or packet");
    }
    if demand.specs.len() != 1 {
        return Err("its frames must all have the same length");
    }
    demand
        .constant_gap_ps
        .filter(|gap| gap / 1_000 <= LONGEST_GAP_NS)
        .ok_or("its frames must have a constant gap of at most 50us")
}

/// True if the other end accepts live frames, possibly after a wait: all end systems prepare at the same time, and a
/// receiver may attach its program slightly later.
fn takes_live_frames(live: &LiveFrames, interface: &Interface) -> Result<bool, NetError> {
    for _ in 0..PROBES {
        let before = link_counters(&interface.name)?;
        live.probe()?;
        let after = link_counters(&interface.name)?;
        if after.transmit_dropped == before.transmit_dropped {
            return Ok(true);
        }
        std::thread::sleep(BETWEEN_PROBES);
    }
    Ok(false)
}

/// Opens one backend.
///
/// # Errors
/// See [`BackendError`].
pub fn open(demand: &StreamNeeds<'_>, backend: Backend) -> Result<StreamSender, BackendError> {
    let templates = |extent| templates(demand, extent);
    let unfit = |reason| BackendError::Unfit { backend: backend.name(), reason };
    match backend {
        Backend::Udp => {
            if !udp_fits(demand) {
                return Err(unfit("its headers differ from those the host would write; use packet"));
            }
            let Some(Carrier::Udp { source, destination, .. }) =
                demand.specs.first().map(|s| s.envelope.carrier)
            else {
                return Err(unfit("it has no frame"));
            };
            Ok(StreamSender::Transmitter(Transmitter::udp(source, destination)?, templates(Extent::Payload)?))
        }
        Backend::Packet => {
            let sender = Transmitter::packet(demand.interface, passes_queue(demand))?;
            Ok(StreamSender::Transmitter(sender, templates(Extent::Frame)?))
        }
        Backend::Xdp => {
            Ok(StreamSender::Transmitter(Transmitter::xdp(demand.interface)?, templates(Extent::Frame)?))
        }
        Backend::Live => {
            live_fits(demand).map_err(unfit)?;
            let (bytes, template) = demand.specs[0].template(Extent::FrameWithoutChecksum)?;
            let live = LiveFrames::new(demand.interface, &bytes, &template)?;
            if !takes_live_frames(&live, demand.interface)? {
                return Err(unfit("the driver at the other end of the link does not accept XDP frames"));
            }
            Ok(StreamSender::Live(Box::new(live), Box::new((bytes, template))))
        }
    }
}
