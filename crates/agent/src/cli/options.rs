//! Options of the commands.

use std::path::PathBuf;

use super::numbers;
use crate::recording::planted_clock::PlantedHostClock;

/// How to serve.
#[derive(clap::Args)]
pub(super) struct ServeOptions {
    /// Where to listen: tls:ADDRESS:PORT, where only members of the lab that this host has joined may give orders;
    /// until it has joined one, it prints a join code and waits. Or unix:PATH, where only the same user and root may
    /// connect; a client must then name an authority such as `localhost` (grpcio: the channel option
    /// `grpc.default_authority`).
    #[arg(long, default_value = "tls:0.0.0.0:47170")]
    pub(super) listen: String,
    /// With tls: folder for the host's key, its membership and the audit log. It must belong to this user, with mode
    /// 700. Default: /var/lib/wiregauge/host for root, ~/.local/state/wiregauge/host for others, host below a service's
    /// STATE_DIRECTORY.
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// With tls: file (TOML) that says what callers may do: interfaces, addresses, rate, duration, tsn. Default:
    /// /etc/wiregauge/agent.toml where there is one; else every interface but loopback, private addresses, 100 Mbit/s,
    /// 1 h and no TSN settings.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder for everything this agent records. It must belong to this user, with mode 700. Default: with tls
    /// `records` in the state folder; else a new folder below /var/lib/wiregauge/agent for root, below
    /// ~/.local/state/wiregauge/agent for others.
    #[arg(long, value_name = "DIR")]
    pub(super) spool: Option<PathBuf>,
    /// Network namespace of the network under test, for example /run/netns/mac. The control connection stays outside
    /// it.
    #[arg(long)]
    pub(super) netns: Option<PathBuf>,
    /// End when the thread that started this program ends, and ignore SIGINT and SIGHUP, which are for its program.
    #[arg(long)]
    pub(super) die_with_parent: bool,
    /// Print "listening ADDRESS" on standard output when ready.
    #[arg(long)]
    pub(super) announce: bool,
    /// Present the kernel's timestamps as hardware timestamps of a clock with this offset (ns), drift (ppb) and step
    /// (ns). For tests of the instrument; every report says that they were planted. Default: the environment variable
    /// WIREGAUGE_PLANTED_HARDWARE.
    #[arg(long, value_name = "OFFSET,DRIFT,STEP", allow_hyphen_values = true)]
    pub(super) planted_hardware: Option<String>,
    /// Be a host whose clock has this offset (ns) and drift (ppb), and is set by a step (ns) so many seconds after the
    /// agent's start. For tests of the instrument. Default: the environment variable WIREGAUGE_PLANTED_CLOCK.
    #[arg(
        long,
        value_name = "OFFSET,DRIFT[,STEP@SECONDS]",
        allow_hyphen_values = true,
        env = "WIREGAUGE_PLANTED_CLOCK"
    )]
    pub(super) planted_clock: Option<PlantedHostClock>,
}

/// What to measure of the clocks.
#[derive(clap::Args)]
pub(super) struct ClocksOptions {
    /// How often each clock is read to find the cost of a reading.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    pub(super) reads: u64,
    /// How long the clocks are compared, in s.
    #[arg(long, default_value_t = 10.0, value_parser = numbers::within(0.0, 86_400.0, "s"))]
    pub(super) seconds: f64,
    /// Time between two comparisons, in ms.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(super) every_ms: u64,
    /// A PTP hardware clock to read as well, for example /dev/ptp0; may be repeated.
    #[arg(long)]
    pub(super) phc: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) placement: ThreadPlacement,
}

/// The timer loop.
#[derive(clap::Args)]
pub(super) struct TicksOptions {
    /// Time between ticks, in ns.
    #[arg(long, value_parser = clap::value_parser!(i64).range(1_000..=3_600_000_000_000))]
    pub(super) period_ns: i64,
    /// Number of ticks.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) count: u64,
    #[command(flatten)]
    pub(super) placement: ThreadPlacement,
}

/// Where and how a measuring loop runs.
#[derive(clap::Args)]
pub(super) struct ThreadPlacement {
    /// CPU core to run on.
    #[arg(long)]
    pub(super) core: Option<usize>,
    /// SCHED_FIFO priority, 1 to 99; 0: ordinary scheduling.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=99))]
    pub(super) priority: u32,
}

/// What to capture.
#[derive(clap::Args)]
pub(super) struct CaptureOptions {
    /// Interface to capture on, and optionally its name in the file; may be repeated.
    #[arg(long, short, required = true, value_name = "INTERFACE[=NAME]")]
    pub(super) interface: Vec<String>,
    /// File to write; it must not exist.
    #[arg(long, short)]
    pub(super) out: PathBuf,
    /// Bytes to keep of each frame.
    #[arg(long, default_value_t = 65_535, value_parser = clap::value_parser!(u32).range(14..=65_535))]
    pub(super) snap: u32,
    /// Capture all frames on the wire, not only those addressed to this host.
    #[arg(long)]
    pub(super) promiscuous: bool,
    /// Have the interfaces timestamp received frames by their own clocks, and capture only these.
    #[arg(long)]
    pub(super) hardware_timestamps: bool,
    /// Line rate of the interfaces in bit/s, where their drivers do not report it.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000_000))]
    pub(super) rate: Option<u64>,
    /// Network namespace of the interfaces.
    #[arg(long)]
    pub(super) netns: Option<PathBuf>,
    /// Hold frames back for so many milliseconds and write those only that a line `keep FROM TO` on standard input asks
    /// for by then, both in ns since 1970.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub(super) hold: Option<u64>,
    /// End when the program that started this one ends.
    #[arg(long)]
    pub(super) die_with_parent: bool,
}
