//! `generate` and `absorb`: the two ends of one stream by hand, for calibrations and comparisons.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::json;
use wg_agent::assignment::RAW_ETHER_TYPE;
use wg_agent::stream::Shape;
use wg_agent::stream::account::{Accounts, Expected};
use wg_agent::stream::arriving::{Arrivals, Entrance};
use wg_agent::stream::despatch::{Despatch, Despatched, Due, Mode, Nobody};
use wg_agent::stream::figures::{AccountFigures, MissedFigures, SentFigures};
use wg_agent::stream::way::{Demand, Way, choose};
use wg_frame::ethernet::{MacAddress, wire_len};
use wg_frame::layout::{Carrier, Envelope};
use wg_frame::probe::ProbeFlags;
use wg_frame::time::{Epoch, RunTime, WallNanos};
use wg_net::arrivals::{Arrival, Selection};
use wg_net::transmit::{Backend, Order};
use wg_net::{Interface, clock, realtime};

/// Bytes of headers and FCS round a UDP payload, and round a raw one.
const ROUND_UDP: usize = 46;
const ROUND_RAW: usize = 18;

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
enum EntranceName {
    PacketRing,
    Xdp,
}

/// How to generate.
#[derive(clap::Args)]
pub(crate) struct GenerateOptions {
    /// Interface frames leave by.
    #[arg(long)]
    interface: String,
    /// MAC address they go to.
    #[arg(long)]
    to_mac: MacAddress,
    /// IPv4 address and UDP port they go to.
    #[arg(long)]
    to: SocketAddrV4,
    /// IPv4 address and UDP port they come from.
    #[arg(long)]
    from: SocketAddrV4,
    /// Frames of EtherType 0x88B5 without IP and UDP.
    #[arg(long)]
    raw: bool,
    /// Length of a frame in bytes, DA to FCS.
    #[arg(long, default_value_t = 64)]
    frame: usize,
    /// Time between the beginnings of two frames, ns; 0: as fast as possible.
    #[arg(long, default_value_t = 0.0)]
    gap_ns: f64,
    /// Share of a line's rate instead, in per cent; needs --line-rate.
    #[arg(long, requires = "line_rate", conflicts_with = "gap_ns")]
    load: Option<f64>,
    /// The line's rate in bit/s.
    #[arg(long)]
    line_rate: Option<f64>,
    /// Frames to send.
    #[arg(long)]
    count: u32,
    /// What is kept when a frame is late.
    #[arg(long, value_enum, default_value_t)]
    mode: ModeName,
    /// How frames leave the host. Default: the plainest way that is fast enough.
    #[arg(long, value_enum)]
    backend: Option<BackendName>,
    /// Where the transmit time lies in the payload, in bytes; without it frames carry none.
    #[arg(long)]
    transmit_time: Option<usize>,
    /// Number of the flow in the probe header.
    #[arg(long, default_value_t = 1)]
    flow: u16,
    /// Transmit times count from here, ns of CLOCK_REALTIME. Default: the start.
    #[arg(long)]
    epoch_ns: Option<i64>,
    /// Core of the sending thread.
    #[arg(long)]
    core: Option<usize>,
    /// Its SCHED_FIFO priority; 0: ordinary scheduling.
    #[arg(long, default_value_t = 0)]
    fifo: u32,
}

/// How to absorb.
#[derive(clap::Args)]
pub(crate) struct AbsorbOptions {
    /// Interface frames arrive at.
    #[arg(long)]
    interface: String,
    /// UDP port they go to; of raw frames it means nothing.
    #[arg(long)]
    port: u16,
    /// Frames of EtherType 0x88B5 without IP and UDP.
    #[arg(long)]
    raw: bool,
    /// Number of the flow in the probe header.
    #[arg(long, default_value_t = 1)]
    flow: u16,
    /// Ends after this many frames.
    #[arg(long)]
    count: u64,
    /// Ends when nothing came for this many seconds.
    #[arg(long, default_value_t = 2.0)]
    patience: f64,
    /// How frames come in. Default: xdp where granted, else packet-ring.
    #[arg(long, value_enum)]
    receiver: Option<EntranceName>,
    /// Where the transmit time lies in the payload, in bytes.
    #[arg(long)]
    transmit_time: Option<usize>,
    /// The gap frames were sent at, ns; gaps are held against it.
    #[arg(long)]
    gap_ns: Option<f64>,
    /// Transmit times count from here, ns of CLOCK_REALTIME; without it there is no latency.
    #[arg(long)]
    epoch_ns: Option<i64>,
    /// Core of the receiving thread.
    #[arg(long)]
    core: Option<usize>,
    /// Its SCHED_FIFO priority; 0: ordinary scheduling.
    #[arg(long, default_value_t = 0)]
    fifo: u32,
}

/// Prints the figures, or what is wrong: 2 for what was asked, 3 for what the host refuses.
pub(crate) fn report(done: Result<serde_json::Value, (u8, String)>) -> ExitCode {
    match done {
        Ok(figures) => {
            println!("{figures:#}");
            ExitCode::SUCCESS
        }
        Err((code, problem)) => {
            eprintln!("wiregauge-agent: {problem}");
            ExitCode::from(code)
        }
    }
}

fn environment(problem: impl ToString) -> (u8, String) {
    (3, problem.to_string())
}

fn interface_of(name: &str) -> Result<Interface, (u8, String)> {
    let existing = wg_net::interfaces().map_err(environment)?;
    existing.iter().find(|interface| interface.name == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = existing.iter().map(|interface| interface.name.as_str()).collect();
        (2, format!("there is no interface '{name}' here; there are {}", names.join(", ")))
    })
}

fn settle(core: Option<usize>, fifo: u32) -> Result<(), (u8, String)> {
    if let Some(core) = core {
        realtime::bind_to_core(core).map_err(|e| (2, format!("core {core} cannot be used: {e}")))?;
    }
    if fifo > 0 {
        realtime::fifo(fifo).map_err(|e| (3, format!("SCHED_FIFO {fifo} is not granted: {e}")))?;
    }
    // Without it sleeps end a little later, which the lead learns.
    let _ = realtime::no_timer_slack();
    Ok(())
}

/// Sends one stream.
pub(crate) fn generate(options: &GenerateOptions) -> Result<serde_json::Value, (u8, String)> {
    let interface = interface_of(&options.interface)?;
    let source = wg_net::hardware_address(&interface.name).map_err(environment)?.unwrap_or([0; 6]);
    let round = if options.raw { ROUND_RAW } else { ROUND_UDP };
    let whole = (64..=1_518).contains(&options.frame).then(|| options.frame - round);
    let payload =
        whole.ok_or((2, format!("a frame of {} B: the least is 64, the most 1518", options.frame)))?;
    let shape = Shape {
        flow: options.flow,
        envelope: Envelope {
            destination: options.to_mac,
            source: MacAddress(source),
            tag: None,
            carrier: if options.raw { Carrier::Raw } else { Carrier::udp(options.from, options.to) },
        },
        payload,
        transmit_time: options.transmit_time,
    };
    let gap_ps = gap_of(options)?;
    let mode = match options.mode {
        ModeName::Rate => Mode::Rate,
        ModeName::Gap => Mode::Gap,
    };
    let shapes = [shape];
    let own = |address: Ipv4Addr| std::net::UdpSocket::bind((address, 0)).is_ok();
    let demand = Demand {
        interface: &interface,
        shapes: &shapes,
        forced: options.backend.map(|name| match name {
            BackendName::Udp => Backend::Udp,
            BackendName::Packet => Backend::Packet,
            BackendName::Xdp => Backend::Xdp,
            BackendName::XdpLive => Backend::Live,
        }),
        least_gap_ps: gap_ps,
        constant_gap_ps: Some(gap_ps),
        mode,
        witnessed: false,
        alone: true,
        plain_headers: own(*options.from.ip()),
    };
    let chosen = choose(&demand).map_err(environment)?;
    settle(options.core, options.fifo)?;
    let now = clock::realtime().get();
    let epoch = Epoch::new(WallNanos::new(options.epoch_ns.unwrap_or(now)));
    let first_due = RunTime::from_picos((now + 20_000_000 - epoch.wall().get()).saturating_mul(1_000));
    let count = options.count.max(1);
    let mut done = Despatched::default();
    match chosen.way {
        Way::Transmitter(mut way, moulds) => {
            let dues = (0..count).map(|sequence| Due {
                at: RunTime::from_picos(
                    first_due.as_picos().saturating_add(gap_ps.saturating_mul(i64::from(sequence))),
                ),
                sequence,
                warm_up: false,
                template: 0,
            });
            Despatch {
                way: &mut way,
                moulds: &moulds,
                epoch,
                mode,
                give_up_ns: None,
                spin: true,
                stop: &AtomicBool::new(false),
                witness: &mut Nobody,
            }
            .run(dues, &mut done)
            .map_err(environment)?;
        }
        Way::Live(mut live, mould) => {
            clock::sleep_until(WallNanos::new(now + 19_990_000));
            let order = Order {
                first: 0,
                count,
                flags: ProbeFlags::NONE,
                epoch_ns: epoch.wall().get(),
                first_due_ps: first_due.as_picos(),
                gap_ps,
                exact_gaps: mode == Mode::Gap,
            };
            live.send(&mould.1, &order).map_err(environment)?;
            done.offered = u64::from(count);
            done.span = Some((now + 20_000_000, clock::realtime().get()));
        }
    }
    Ok(json!({
        "schema": 1,
        "backend": chosen.backend.name(),
        "why": chosen.why,
        "past_queue": chosen.past_queue,
        "mode": mode.name(),
        "frame_bytes": shape.frame_len(),
        "gap_ns": gap_ps as f64 / 1e3,
        "sent": SentFigures::of(&done),
    }))
}

fn gap_of(options: &GenerateOptions) -> Result<i64, (u8, String)> {
    let gap_ns = match (options.load, options.line_rate) {
        (Some(load), Some(rate)) if load > 100.0 => {
            return Err((
                2,
                format!("{load} % of a line of {rate} bit/s is more than it carries; write 100 or less"),
            ));
        }
        (Some(load), Some(rate)) if load > 0.0 && rate > 0.0 => {
            wire_len(options.frame) as f64 * 8e9 / (rate * load / 100.0)
        }
        (Some(_), _) => return Err((2, "a load and a line rate must be more than 0".into())),
        (None, _) => options.gap_ns,
    };
    if !(0.0..=3.6e12).contains(&gap_ns) {
        return Err((2, format!("a gap of {gap_ns} ns: the least is 0, the most an hour")));
    }
    Ok((gap_ns * 1e3).round() as i64)
}

/// Receives one stream.
pub(crate) fn absorb(options: &AbsorbOptions) -> Result<serde_json::Value, (u8, String)> {
    let interface = interface_of(&options.interface)?;
    let selection = match options.raw {
        true => Selection { udp_ports: Vec::new(), ether_type: Some(RAW_ETHER_TYPE) },
        false => Selection { udp_ports: vec![options.port], ether_type: None },
    };
    let wish = options.receiver.map(|name| match name {
        EntranceName::PacketRing => Entrance::Ring,
        EntranceName::Xdp => Entrance::Xdp,
    });
    let mut arrivals = Arrivals::open(&interface, &selection, wish, true).map_err(environment)?;
    settle(options.core, options.fifo)?;
    let epoch = Epoch::new(WallNanos::new(options.epoch_ns.unwrap_or_else(|| clock::realtime().get())));
    let expected = Expected {
        flow: options.flow,
        payload: None,
        transmit_time: options.transmit_time,
        gap_ps: options.gap_ns.map(|gap| (gap * 1e3).round() as i64),
    };
    let mut accounts = Accounts::new(epoch, &[expected]);
    println!("ready");
    let patience = Duration::from_secs_f64(options.patience.clamp(0.1, 3_600.0));
    let mut last = Instant::now();
    loop {
        let note = |arrival: Arrival<'_>| {
            accounts.take(arrival);
        };
        let got = arrivals.take(50, note).map_err(environment)?;
        let account = &accounts.streams[0][0];
        if account.received + account.corrupted >= options.count || (got == 0 && last.elapsed() > patience) {
            break;
        }
        if got > 0 {
            last = Instant::now();
        }
    }
    let mut figures = AccountFigures::of(&accounts.streams[0][0]);
    if options.epoch_ns.is_none() {
        figures.latency_ns = None;
    }
    let missed: MissedFigures = arrivals.missed().map_err(environment)?.into();
    Ok(json!({
        "schema": 1,
        "receiver": arrivals.entrance().name(),
        "received": figures,
        "foreign": accounts.foreign,
        "missed": missed,
    }))
}
