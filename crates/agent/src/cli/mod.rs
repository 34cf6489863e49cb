//! The command line of `wiregauge-agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use wg_agent::console;
use wg_agent::recording::planted_clock::PlantedHostClock;

mod capture;
mod mending;
mod numbers;
mod serve;
mod serve_tls;
mod stream;

#[derive(Parser)]
#[command(
    name = "wiregauge-agent",
    version,
    about = "The agent of Wiregauge: runs on every node of a network under test"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the testmaster, which prepares, starts and ends runs.
    Serve(ServeOptions),
    /// Leaves the lab that this host has joined: nobody there can give it orders any more. It can join another.
    Leave {
        /// Folder of the host's key, as with `serve`.
        #[arg(long, value_name = "DIR")]
        state: Option<PathBuf>,
    },
    /// Prints the join code of an agent that serves on this host and has joined no lab yet, for example of a service whose output
    /// is in the journal. Only root and the agent's own user may.
    JoinCode {
        /// Folder of the host's key, as with `serve`.
        #[arg(long, value_name = "DIR")]
        state: Option<PathBuf>,
    },
    /// Captures the frames that interfaces send and receive into a pcapng file, until SIGINT or SIGTERM.
    Capture(CaptureOptions),
    /// Runs a command in its own namespaces; when it ends, everything it built there is gone.
    Enclose {
        /// Use a user namespace, which needs no root rights outside.
        #[arg(long)]
        rootless: bool,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Sends one stream and prints as JSON how well it kept its rate or its gaps.
    Generate(stream::GenerateOptions),
    /// Receives one stream: prints "ready", counts every frame, and prints the account as JSON.
    Sink(stream::SinkOptions),
    /// Measures the clocks of this host: cost of a reading, resolution, drift. Prints one JSON object per line, as results come.
    Clocks(ClocksOptions),
    /// Runs a timer loop like cyclictest's and prints how late each tick came, in ns, several per line as a JSON array.
    Ticks(TicksOptions),
    /// Checks what this host grants a measuring program, and prints the cure for what it does not.
    Doctor {
        /// Print JSON, with every fact that bears on a measurement.
        #[arg(long)]
        json: bool,
    },
    /// Sets this host for measuring, by named fixes, and keeps the former values until `restore`. Prints each change as JSON.
    Mend(mending::MendOptions),
    /// Sets everything again that `mend` has changed here and nobody else since. Prints each change as JSON.
    Restore,
}

/// How to serve.
#[derive(clap::Args)]
struct ServeOptions {
    /// Where to listen: tls:ADDRESS:PORT, where only members of the lab that this host has joined may give orders; until it
    /// has joined one, it prints a join code and waits. Or unix:PATH, where only the same user and root may connect; a client
    /// must then name an authority such as `localhost` (grpcio: the channel option `grpc.default_authority`).
    #[arg(long, default_value = "tls:0.0.0.0:47170")]
    listen: String,
    /// With tls: folder for the host's key, its membership and the audit log. It must belong to this user, with mode 700.
    /// Default: /var/lib/wiregauge/host for root, ~/.local/state/wiregauge/host for others, host below a service's STATE_DIRECTORY.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// With tls: file (TOML) that says what callers may do: interfaces, addresses, rate, duration, tsn. Default:
    /// /etc/wiregauge/agent.toml where there is one; else every interface but loopback, private addresses, 100 Mbit/s, 1 h and no TSN settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for everything this agent records. It must belong to this user, with mode 700. Default: with tls `records` in the
    /// state folder; else a new folder below /var/lib/wiregauge/agent for root, below ~/.local/state/wiregauge/agent for others.
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Network namespace of the network under test, for example /run/netns/mac. The control connection stays outside it.
    #[arg(long)]
    netns: Option<PathBuf>,
    /// End when the thread that started this program ends, and ignore SIGINT and SIGHUP, which are for its program.
    #[arg(long)]
    die_with_parent: bool,
    /// Print "listening ADDRESS" on standard output when ready.
    #[arg(long)]
    announce: bool,
    /// Present the kernel's timestamps as hardware timestamps of a clock with this offset (ns), drift (ppb) and step (ns). For
    /// tests of the instrument; every report says that they were planted. Default: the environment variable
    /// WIREGAUGE_PLANTED_HARDWARE.
    #[arg(long, value_name = "OFFSET,DRIFT,STEP", allow_hyphen_values = true)]
    planted_hardware: Option<String>,
    /// Be a host whose clock has this offset (ns) and drift (ppb), and is set by a step (ns) so many seconds after the agent's
    /// start. For tests of the instrument. Default: the environment variable WIREGAUGE_PLANTED_CLOCK.
    #[arg(
        long,
        value_name = "OFFSET,DRIFT[,STEP@SECONDS]",
        allow_hyphen_values = true,
        env = "WIREGAUGE_PLANTED_CLOCK"
    )]
    planted_clock: Option<PlantedHostClock>,
}

/// What to measure of the clocks.
#[derive(clap::Args)]
struct ClocksOptions {
    /// How often each clock is read to find the cost of a reading.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(2..=100_000_000))]
    reads: u64,
    /// How long the clocks are compared, in s.
    #[arg(long, default_value_t = 10.0, value_parser = numbers::within(0.0, 86_400.0, "s"))]
    seconds: f64,
    /// Time between two comparisons, in ms.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    every_ms: u64,
    /// A PTP hardware clock to read as well, for example /dev/ptp0; may be repeated.
    #[arg(long)]
    phc: Vec<PathBuf>,
    #[command(flatten)]
    placement: ThreadPlacement,
}

/// The timer loop.
#[derive(clap::Args)]
struct TicksOptions {
    /// Time between ticks, in ns.
    #[arg(long, value_parser = clap::value_parser!(i64).range(1_000..=3_600_000_000_000))]
    period_ns: i64,
    /// Number of ticks.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    #[command(flatten)]
    placement: ThreadPlacement,
}

/// Where and how a measuring loop runs.
#[derive(clap::Args)]
struct ThreadPlacement {
    /// CPU core to run on.
    #[arg(long)]
    core: Option<usize>,
    /// SCHED_FIFO priority, 1 to 99; 0: ordinary scheduling.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=99))]
    priority: u32,
}

/// What to capture.
#[derive(clap::Args)]
struct CaptureOptions {
    /// Interface to capture on, and optionally its name in the file; may be repeated.
    #[arg(long, short, required = true, value_name = "INTERFACE[=NAME]")]
    interface: Vec<String>,
    /// File to write; it must not exist.
    #[arg(long, short)]
    out: PathBuf,
    /// Bytes to keep of each frame.
    #[arg(long, default_value_t = 65_535, value_parser = clap::value_parser!(u32).range(14..=65_535))]
    snap: u32,
    /// Capture all frames on the wire, not only those addressed to this host.
    #[arg(long)]
    promiscuous: bool,
    /// Have the interfaces timestamp received frames by their own clocks, and capture only these.
    #[arg(long)]
    hardware_timestamps: bool,
    /// Line rate of the interfaces in bit/s, where their drivers do not report it.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000_000))]
    rate: Option<u64>,
    /// Network namespace of the interfaces.
    #[arg(long)]
    netns: Option<PathBuf>,
    /// Hold frames back for so many milliseconds and write those only that a line `keep FROM TO` on standard input asks for
    /// by then, both in ns since 1970.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    hold: Option<u64>,
    /// End when the program that started this one ends.
    #[arg(long)]
    die_with_parent: bool,
}

pub(crate) fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(options) => serve::serve(&options),
        Command::Leave { state } => serve_tls::leave(state.as_deref()),
        Command::JoinCode { state } => serve_tls::join_code(state.as_deref()),
        Command::Capture(options) => capture::capture(&options),
        Command::Enclose { rootless, command } => enclose(rootless, &command),
        Command::Generate(options) => stream::report(stream::generate(&options)),
        Command::Sink(options) => stream::report(stream::sink(&options)),
        Command::Doctor { json } => doctor(json),
        Command::Mend(options) => mending::mend(&options),
        Command::Restore => mending::restore(),
        Command::Clocks(options) => clocks(options),
        Command::Ticks(options) => ticks(&options),
    }
}

/// Ends early, with success, when nobody reads on: whoever listened has what it wanted.
fn clocks(options: ClocksOptions) -> ExitCode {
    let order = wg_agent::tools::clock_survey::Order {
        reads: usize::try_from(options.reads).unwrap_or(usize::MAX),
        seconds: options.seconds,
        every: std::time::Duration::from_millis(options.every_ms),
        hardware: options.phc,
        core: options.placement.core,
        priority: options.placement.priority,
    };
    wg_agent::tools::clock_survey::measure(&order, |fact| say(&fact));
    ExitCode::SUCCESS
}

fn ticks(options: &TicksOptions) -> ExitCode {
    let order = wg_agent::tools::timer_loop::Order {
        period_ns: options.period_ns,
        count: usize::try_from(options.count).unwrap_or(usize::MAX),
        core: options.placement.core,
        priority: options.placement.priority,
    };
    let refused = wg_agent::tools::timer_loop::run(order, |late| say(&late));
    say(&serde_json::json!({ "refused": refused }));
    ExitCode::SUCCESS
}

/// One line of JSON on standard output; whether it was taken.
fn say(fact: &impl serde::Serialize) -> bool {
    use std::io::Write;

    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, fact).is_ok() && out.write_all(b"\n").is_ok() && out.flush().is_ok()
}

/// The command's own exit code, or 3 when it could not be enclosed.
fn enclose(rootless: bool, command: &[String]) -> ExitCode {
    match wg_net::enclose::run(command, rootless) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            console::complain(&error);
            ExitCode::from(3)
        }
    }
}

fn doctor(json: bool) -> ExitCode {
    let findings = wg_agent::tools::doctor::examine();
    if json {
        let report = serde_json::json!({
            "schema": 1,
            "host": wg_agent::tools::doctor::host_facts(),
            "findings": findings,
            "interfaces": wg_agent::tools::doctor::interfaces(),
            "facts": wg_agent::tools::examination::examine(|_| true, false),
        });
        console::json(&format!("{report:#}"));
    } else {
        for finding in findings {
            let mark = if finding.granted { "yes" } else { "no " };
            console::line(&format!("{mark}  {:<20} {}", finding.name, finding.detail));
            if !finding.granted {
                console::line(&format!("     cure: {}", finding.cure));
            }
        }
        for interface in wg_agent::tools::doctor::interfaces() {
            console::line(&format!("     timestamps of {:<10} {}", interface.name, interface.detail));
        }
    }
    ExitCode::SUCCESS
}
