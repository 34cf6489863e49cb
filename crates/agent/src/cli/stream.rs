//! `generate` and `sink`: both ends of one stream without a test file, for calibrations and comparisons.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use clap::builder::RangedU64ValueParser;
use serde_json::json;
use wg_capture::Files;
use wg_core::line::{LONGEST_FRAME, SMALLEST_FRAME};
use wg_core::pacing::Pacing;
use wg_frame::ethernet::{FRAME_OVERHEAD, MacAddress, wire_len};
use wg_frame::layout::{Carrier, DATAGRAM_HEADER_LEN, Envelope};
use wg_frame::probe::ProbeFlags;
use wg_frame::time::{Epoch, RunTime, Span, WallNanos};
use wg_net::receive::{FrameFilter, RxFrame};
use wg_net::transmit::{Backend, LiveSchedule};
use wg_net::{DiscardSocket, Interface, NoInterface, clock, realtime};
use wg_plan::schedule::Schedule;
use wg_plan::{Captures, Replay, Wanted};

use super::numbers::within;
use crate::console;
use crate::end_system::assignment::RAW_ETHER_TYPE;
use crate::end_system::stream_task::{distinct_lengths, dues, gap_of as densest_gap};
use crate::stream::FrameSpec;
use crate::stream::account::{Accounts, Expected};
use crate::stream::backend::{ChosenBackend, LaunchPolicy, StreamNeeds, StreamSender, choose};
use crate::stream::paced_sender::{DueFrame, PacedSender, PacedStats, Unobserved, Waiting};
use crate::stream::receiver::{RxBackend, StreamReceiver};
use crate::stream::summary::{AccountSummary, RxDropsSummary, SendSummary};

/// Length of headers and FCS around a UDP payload, and around a raw one, in bytes.
const UDP_HEADERS: usize = FRAME_OVERHEAD + DATAGRAM_HEADER_LEN;
const RAW_HEADERS: usize = FRAME_OVERHEAD;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BackendName {
    Udp,
    Packet,
    Xdp,
    XdpLive,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ModeName {
    #[default]
    Rate,
    Gap,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RxBackendName {
    PacketRing,
    Xdp,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LaunchName {
    #[default]
    Auto,
    On,
    Off,
}

impl From<BackendName> for Backend {
    fn from(name: BackendName) -> Self {
        match name {
            BackendName::Udp => Self::Udp,
            BackendName::Packet => Self::Packet,
            BackendName::Xdp => Self::Xdp,
            BackendName::XdpLive => Self::Live,
        }
    }
}

impl From<LaunchName> for LaunchPolicy {
    fn from(name: LaunchName) -> Self {
        match name {
            LaunchName::Auto => Self::Auto,
            LaunchName::On => Self::On,
            LaunchName::Off => Self::Off,
        }
    }
}

/// An hour, in ns.
const LONGEST_GAP_NS: f64 = 3.6e12;

/// How to generate.
#[derive(clap::Args)]
pub(crate) struct GenerateOptions {
    /// Interface to send on.
    #[arg(long)]
    interface: String,
    /// Destination MAC address.
    #[arg(long)]
    to_mac: MacAddress,
    /// Destination IPv4 address and UDP port.
    #[arg(long)]
    to: SocketAddrV4,
    /// Source IPv4 address and UDP port.
    #[arg(long)]
    from: SocketAddrV4,
    /// Frames of EtherType 0x88B5 without IP and UDP.
    #[arg(long)]
    raw: bool,
    /// Frame length in bytes, from destination address to FCS.
    #[arg(long, default_value_t = 64, conflicts_with = "replay")]
    frame: usize,
    /// Capture (pcapng or pcap) to replay: its gaps and frame lengths.
    #[arg(long, conflicts_with_all = ["gap_ns", "load", "line_rate"])]
    replay: Option<PathBuf>,
    /// Interface within the capture, by name or by number from 0. Default: its only one.
    #[arg(long, requires = "replay")]
    replay_interface: Option<String>,
    /// Speed of the replay, in per cent of the capture's.
    #[arg(long, default_value_t = 100.0, requires = "replay", value_parser = within(0.01, 100_000.0, "%"))]
    speed: f64,
    /// How often the capture is replayed.
    #[arg(long, default_value_t = 1, requires = "replay", value_parser = clap::value_parser!(u32).range(1..))]
    loops: u32,
    /// Time from the start of one frame to the start of the next, in ns; 0: as fast as possible.
    #[arg(long, default_value_t = 0.0, value_parser = within(0.0, LONGEST_GAP_NS, "ns"))]
    gap_ns: f64,
    /// Offered load instead of a gap, in per cent of --line-rate.
    #[arg(long, requires = "line_rate", conflicts_with = "gap_ns", value_parser = within(0.001, 100.0, "%"))]
    load: Option<f64>,
    /// Line rate in bit/s.
    #[arg(long, value_parser = within(1.0, 1e13, "bit/s"))]
    line_rate: Option<f64>,
    /// Number of frames. Default with --replay: all frames of the capture, --loops times.
    #[arg(long, required_unless_present = "replay", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// What the sender keeps when a frame is late: the rate (it catches up) or the gap (it does not).
    #[arg(long, value_enum, default_value_t)]
    mode: ModeName,
    /// Whether the interface launches frames at their times (SO_TXTIME). auto: where the card does it in hardware.
    #[arg(long, value_enum, default_value_t)]
    launch: LaunchName,
    /// How frames leave the host. Default: the plainest backend that is fast enough.
    #[arg(long, value_enum)]
    backend: Option<BackendName>,
    /// Offset of the transmit time in the payload, in bytes. Default: frames carry none.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(..=9_000))]
    transmit_time: Option<usize>,
    /// Flow number in the probe header.
    #[arg(long, default_value_t = 1)]
    flow: u16,
    /// Origin of transmit times, in ns of CLOCK_REALTIME. Default: the start.
    #[arg(long, value_parser = clap::value_parser!(i64).range(0..))]
    epoch_ns: Option<i64>,
    /// CPU core of the sending thread.
    #[arg(long)]
    core: Option<usize>,
    /// Its SCHED_FIFO priority; 0: ordinary scheduling.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=99))]
    fifo: u32,
}

/// How to receive.
#[derive(clap::Args)]
pub(crate) struct SinkOptions {
    /// Interface to receive on.
    #[arg(long)]
    interface: String,
    /// Destination UDP port of the frames; ignored with --raw.
    #[arg(long)]
    port: u16,
    /// Frames of EtherType 0x88B5 without IP and UDP.
    #[arg(long)]
    raw: bool,
    /// Flow number in the probe header.
    #[arg(long, default_value_t = 1)]
    flow: u16,
    /// End after this many frames.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// End when nothing has arrived for this many seconds.
    #[arg(long, default_value_t = 2.0, value_parser = within(0.1, 3_600.0, "s"))]
    patience: f64,
    /// How frames are received. Default: xdp where the host grants it, else packet-ring.
    #[arg(long, value_enum)]
    receiver: Option<RxBackendName>,
    /// Offset of the transmit time in the payload, in bytes.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(..=9_000))]
    transmit_time: Option<usize>,
    /// The gap that frames are sent at, in ns; received gaps are compared with it.
    #[arg(long, value_parser = within(0.0, LONGEST_GAP_NS, "ns"))]
    gap_ns: Option<f64>,
    /// Origin of transmit times, in ns of CLOCK_REALTIME. Default: no latency is computed.
    #[arg(long, value_parser = clap::value_parser!(i64).range(0..))]
    epoch_ns: Option<i64>,
    /// CPU core of the receiving thread.
    #[arg(long)]
    core: Option<usize>,
    /// Its SCHED_FIFO priority; 0: ordinary scheduling.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=99))]
    fifo: u32,
}

/// Prints the figures, or what is wrong: 2 for what was asked, 3 for what the host refuses.
/// Exit code and message: 2 for a bad request, 3 for a refusal of the host.
type Failure = (u8, String);

pub(crate) fn report(done: Result<serde_json::Value, Failure>) -> ExitCode {
    match done {
        Ok(stats) => {
            console::json(&format!("{stats:#}"));
            ExitCode::SUCCESS
        }
        Err((code, problem)) => {
            console::complain(&problem);
            ExitCode::from(code)
        }
    }
}

fn environment(problem: impl ToString) -> Failure {
    (3, problem.to_string())
}

pub(super) fn interface_of(name: &str) -> Result<Interface, Failure> {
    wg_net::interface_named(name).map_err(|error| match error {
        NoInterface::Missing { .. } => (2, error.to_string()),
        NoInterface::Unknown(_) => environment(error),
    })
}

fn place_thread(core: Option<usize>, fifo: u32) -> Result<(), Failure> {
    if let Some(core) = core {
        realtime::bind_to_core(core).map_err(|e| (2, format!("core {core} cannot be used: {e}")))?;
    }
    if fifo > 0 {
        realtime::fifo(fifo).map_err(|e| (3, format!("SCHED_FIFO {fifo} is not granted: {e}")))?;
    }
    // Without it sleeps end a little later, which the lead time accounts for.
    let _ = realtime::no_timer_slack();
    Ok(())
}

/// A non-negative number of the command line, without its fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "options are 0 to 1e13")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// A time in whole ps.
#[expect(clippy::cast_possible_truncation, reason = "options are at most an hour")]
fn picos(ns: f64) -> i64 {
    (ns * 1e3).round() as i64
}

/// Time from the sender's start to the first frame, ns.
const HEAD_START: i64 = 20_000_000;
/// Time before the first frame at which the kernel takes over, ns.
const AWAKE_BEFORE: i64 = 10_000;

/// Sends one stream.
#[expect(clippy::too_many_lines, reason = "one step of a command after the other")]
pub(crate) fn generate(options: &GenerateOptions) -> Result<serde_json::Value, Failure> {
    let interface = interface_of(&options.interface)?;
    let headers = if options.raw { RAW_HEADERS } else { UDP_HEADERS };
    let replay = replay_of(options, headers)?;
    let lengths = match &replay {
        Some((replay, _)) => distinct_lengths(replay),
        None => vec![u16::try_from(options.frame).unwrap_or(u16::MAX)],
    };
    let specs = specs_of(options, &interface, &lengths, headers)?;
    let gap_ps = match &replay {
        Some((replay, _)) => densest_gap(replay),
        None => gap_of(options)?,
    };
    let pacing = match options.mode {
        ModeName::Rate => Pacing::Rate,
        ModeName::Gap => Pacing::Gap,
    };
    let chosen = choose(&StreamNeeds {
        interface: &interface,
        specs: &specs,
        forced: options.backend.map(Backend::from),
        least_gap_ps: gap_ps,
        constant_gap_ps: replay.is_none().then_some(gap_ps),
        recorded: false,
        alone: true,
        distrusted: &[],
        // The receiver of live frames is started separately, and is not asked for its counts.
        tried_later: false,
        plain_headers: std::net::UdpSocket::bind((*options.from.ip(), 0)).is_ok(),
        launch: options.launch.into(),
        priority: 0,
    })
    .map_err(environment)?;
    place_thread(options.core, options.fifo)?;
    let now = clock::realtime().get();
    let epoch = Epoch::new(WallNanos::new(options.epoch_ns.unwrap_or(now)));
    let planned = replay.as_ref().map_or(1, |(replay, _)| u32::try_from(replay.frames()).unwrap_or(u32::MAX));
    let stream = LiveSchedule {
        first: 0,
        count: options.count.unwrap_or(planned).max(1),
        flags: ProbeFlags::NONE,
        epoch_ns: epoch.wall().get(),
        first_due_ps: (now + HEAD_START - epoch.wall().get()).saturating_mul(1_000),
        gap_ps,
        exact_gaps: pacing == Pacing::Gap,
    };
    let mut report = json!({
        "schema": 1,
        "backend": chosen.backend.name(),
        "why": chosen.why,
        "past_queue": chosen.past_queue,
        "mode": pacing.name(),
        "frame_bytes": lengths.last(),
        "gap_ns": gap_ps as f64 / 1e3,
    });
    let dues: Box<dyn Iterator<Item = DueFrame>> = match &replay {
        Some((replay, _)) => {
            let first = RunTime::from_picos(stream.first_due_ps);
            let schedule = Schedule::replayed(first, replay.clone(), u64::from(stream.count));
            Box::new(dues(schedule.map_err(|e| (2, e.to_string()))?, &lengths))
        }
        None => Box::new(evenly(stream)),
    };
    let sent = send(chosen, epoch, &stream, dues)?;
    report["sent"] = json!(SendSummary::of(&sent));
    if let Some((replay, notes)) = &replay {
        add_replay(&mut report, replay, notes);
    }
    Ok(report)
}

/// Sends `dues`, or, as live frames, the equivalent `stream`.
fn send(
    chosen: ChosenBackend,
    epoch: Epoch,
    stream: &LiveSchedule,
    dues: impl Iterator<Item = DueFrame>,
) -> Result<PacedStats, Failure> {
    let mut sent = PacedStats::default();
    match chosen.sender {
        StreamSender::Transmitter(mut transmitter, templates) => PacedSender {
            transmitter: &mut transmitter,
            templates: &templates,
            epoch,
            pacing: if stream.exact_gaps { Pacing::Gap } else { Pacing::Rate },
            give_up_ns: None,
            ahead_ns: chosen.launch.map(|launch| launch.ahead_ns),
            waiting: Waiting::Awake,
            in_turn: None,
            stop: &AtomicBool::new(false),
        }
        .run(dues, &mut sent, &mut Unobserved)
        .map_err(environment)?,
        StreamSender::Live(mut live, template) => {
            let begin = stream.epoch_ns + stream.first_due_ps / 1_000;
            clock::sleep_until(WallNanos::new(begin - AWAKE_BEFORE));
            live.send(&template.1, stream).map_err(environment)?;
            sent.offered = u64::from(stream.count);
            sent.span = Some((begin, clock::realtime().get()));
        }
    }
    Ok(sent)
}

/// The frames of a stream, one for each length.
fn specs_of(
    options: &GenerateOptions,
    interface: &Interface,
    lengths: &[u16],
    headers: usize,
) -> Result<Vec<FrameSpec>, Failure> {
    let source = wg_net::hardware_address(&interface.name).map_err(environment)?.unwrap_or([0; 6]);
    let spec = |length: &u16| {
        let whole = (SMALLEST_FRAME..=LONGEST_FRAME).contains(length).then(|| usize::from(*length) - headers);
        let payload = whole.ok_or_else(|| {
            (2, format!("a frame has from {SMALLEST_FRAME} B to {LONGEST_FRAME} B, not {length} B"))
        })?;
        Ok(FrameSpec {
            flow: options.flow,
            envelope: Envelope {
                destination: options.to_mac,
                source: MacAddress(source),
                tag: None,
                carrier: if options.raw { Carrier::Raw } else { Carrier::udp(options.from, options.to) },
            },
            payload,
            transmit_time: options.transmit_time,
            number: None,
        })
    };
    lengths.iter().map(spec).collect()
}

fn evenly(stream: LiveSchedule) -> impl Iterator<Item = DueFrame> {
    (0..stream.count).map(move |sequence| {
        let after = stream.gap_ps.saturating_mul(i64::from(sequence));
        let at = RunTime::from_picos(stream.first_due_ps.saturating_add(after));
        DueFrame { at, sequence, warm_up: false, template: 0 }
    })
}

fn add_replay(report: &mut serde_json::Value, replay: &Replay, notes: &[String]) {
    let frames = replay.trace.frames().len();
    report["gap_ns"] = json!(replay.cycle().as_picos() as f64 / frames as f64 / 1e3);
    report["replay"] = json!({
        "file": replay.file,
        "frames": frames,
        "loops": replay.loops,
        "loop_gap_ns": replay.loop_gap.as_picos() as f64 / 1e3,
        "span_ns": replay.scaled(replay.trace.span()).as_picos() as f64 / 1e3,
        "raised": replay.raised(),
        "least_bytes": replay.least,
        "notes": notes,
    });
}

/// A replay, with notes about frames of the capture that are not in it.
type Noted = (Replay, Vec<String>);

/// The requested replay.
fn replay_of(options: &GenerateOptions, headers: usize) -> Result<Option<Noted>, Failure> {
    let Some(path) = &options.replay else { return Ok(None) };
    let file = path.display().to_string();
    let wanted = Wanted { file: &file, interface: options.replay_interface.as_deref(), sent: None };
    let (trace, notes) = Files { below: PathBuf::new() }.read(wanted).map_err(|none| (2, none.of(&file)))?;
    if trace.longest() > LONGEST_FRAME {
        let cure = "switch offloads off before capturing: ethtool -K IFACE gro off tso off gso off";
        return Err((
            2,
            format!(
                "capture \"{file}\" has a frame of {} B; the most is {LONGEST_FRAME}; {cure}",
                trace.longest()
            ),
        ));
    }
    let needed = headers + options.transmit_time.map_or(wg_frame::probe::LEN, |at| at + 8);
    let least = u16::try_from(needed.max(64)).unwrap_or(u16::MAX);
    let mut replay = Replay {
        file,
        trace,
        speed_ppm: whole(options.speed * 1e4),
        loops: options.loops,
        loop_gap: Span::ZERO,
        least,
    };
    replay.loop_gap = replay.mean_gap(options.line_rate.map_or(0, whole));
    Ok(Some((replay, notes)))
}

fn gap_of(options: &GenerateOptions) -> Result<i64, Failure> {
    let gap_ns = match (options.load, options.line_rate) {
        (Some(load), Some(rate)) => wire_len(options.frame) as f64 * 8e9 / (rate * load / 100.0),
        // Clap requires the line rate.
        (Some(_), None) => return Err((2, "a load needs --line-rate".into())),
        (None, _) => options.gap_ns,
    };
    if !(0.0..=LONGEST_GAP_NS).contains(&gap_ns) {
        return Err((2, format!("the gap is {gap_ns} ns; it must be from 0 to one hour")));
    }
    Ok(picos(gap_ns))
}

/// Receives one stream.
pub(crate) fn sink(options: &SinkOptions) -> Result<serde_json::Value, Failure> {
    let interface = interface_of(&options.interface)?;
    let filter = match options.raw {
        true => FrameFilter { udp_ports: Vec::new(), ether_type: Some(RAW_ETHER_TYPE) },
        false => FrameFilter { udp_ports: vec![options.port], ether_type: None },
    };
    let preferred = options.receiver.map(|name| match name {
        RxBackendName::PacketRing => (RxBackend::Ring, "forced"),
        RxBackendName::Xdp => (RxBackend::Xdp, "forced"),
    });
    let (mut receiver, why) =
        StreamReceiver::open(&interface, &filter, preferred, true).map_err(environment)?;
    // Without a listener at the port the host's stack answers datagrams that a packet ring also sees with ICMP. If
    // there is one, this is refused and not needed.
    let _nobody_reads = (!options.raw)
        .then(|| DiscardSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, options.port)))
        .transpose();
    place_thread(options.core, options.fifo)?;
    let epoch = Epoch::new(WallNanos::new(options.epoch_ns.unwrap_or_else(|| clock::realtime().get())));
    let expected = Expected {
        flow: options.flow,
        payload: None,
        transmit_time: options.transmit_time,
        gap_ps: options.gap_ns.map(picos),
    };
    let mut accounts = Accounts::new(epoch, &[expected]);
    println!("ready");
    let patience = Duration::from_secs_f64(options.patience);
    let mut last = Instant::now();
    loop {
        let note = |arrival: RxFrame<'_>| {
            accounts.take(arrival);
        };
        let got = receiver.take(50, note).map_err(environment)?;
        let account = &accounts.streams[0][0];
        if account.received + account.corrupted >= options.count || (got == 0 && last.elapsed() > patience) {
            break;
        }
        if got > 0 {
            last = Instant::now();
        }
    }
    let mut stats = AccountSummary::of(&accounts.streams[0][0]);
    if options.epoch_ns.is_none() {
        stats.latency_ns = None;
    }
    let drops: RxDropsSummary = receiver.drops().map_err(environment)?.into();
    Ok(json!({
        "schema": 1,
        "receiver": receiver.backend().name(),
        "why": why,
        "received": stats,
        "foreign": accounts.foreign,
        "missed": drops,
    }))
}
