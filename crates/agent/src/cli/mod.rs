//! The command line of `wiregauge-agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use options::{CaptureOptions, ClocksOptions, ServeOptions, TicksOptions};

use crate::console;

mod capture;
mod mending;
mod numbers;
mod options;
mod reflecting;
mod serve;
mod serve_tls;
mod serving;
mod stream;

#[derive(Parser)]
#[command(
    name = "wiregauge-agent",
    version,
    about = "The agent of Wiregauge: runs on every node of a network under test",
    max_term_width = 80
)]
struct Cli {
    // A wider usage is written out below, because clap does not wrap it.
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
    /// Prints the join code of an agent that serves on this host and has joined no lab yet, for example of a service
    /// whose output is in the journal. Only root and the agent's own user may.
    JoinCode {
        /// Folder of the host's key, as with `serve`.
        #[arg(long, value_name = "DIR")]
        state: Option<PathBuf>,
    },
    /// Captures the frames that interfaces send and receive into a pcapng file, until SIGINT or SIGTERM.
    #[command(
        override_usage = "wiregauge-agent capture [OPTIONS] --interface <INTERFACE[=NAME]>\n       --out <OUT>"
    )]
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
    #[command(
        override_usage = concat!(
            "wiregauge-agent generate [OPTIONS] --interface <INTERFACE>\n",
            "       --to-mac <TO_MAC> --to <TO> --from <FROM>"
        )
    )]
    Generate(stream::GenerateOptions),
    /// Receives one stream: prints "ready", counts every frame, and prints the account as JSON.
    #[command(
        override_usage = "wiregauge-agent sink [OPTIONS] --interface <INTERFACE> --port <PORT>\n       --count <COUNT>"
    )]
    Sink(stream::SinkOptions),
    /// Answers the test packets of foreign senders by STAMP or TWAMP Light, until SIGINT or SIGTERM; then prints as JSON
    /// what it answered and what not, by reason. It never answers more or longer than it is asked.
    Reflect(reflecting::ReflectOptions),
    /// Sends test packets to a reflector, as `wiregauge probe --protocol stamp` does, and prints what comes as JSON.
    #[command(
        override_usage = concat!(
            "wiregauge-agent ask-reflector [OPTIONS] --to <TO> --count <COUNT>\n",
            "       --period-ns <PERIOD_NS> --patience-ns <PATIENCE_NS>"
        )
    )]
    AskReflector(reflecting::AskOptions),
    /// Measures the clocks of this host: cost of a reading, resolution, drift. Prints one JSON object per line, as
    /// results come.
    Clocks(ClocksOptions),
    /// Runs a timer loop like cyclictest's and prints how late each tick came, in ns, several per line as a JSON array.
    Ticks(TicksOptions),
    /// Checks what this host grants a measuring program, and prints the cure for what it does not.
    Doctor {
        /// Print JSON, with every fact that bears on a measurement.
        #[arg(long)]
        json: bool,
    },
    /// Sets this host for measuring, by named fixes, and keeps the former values until `restore`. Prints each change as
    /// JSON.
    Mend(mending::MendOptions),
    /// Sets everything again that `mend` has changed here and nobody else since. Prints each change as JSON.
    Restore,
}

/// Does what the arguments of this process name.
pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(options) => serve::serve(&options),
        Command::Leave { state } => serve_tls::leave(state.as_deref()),
        Command::JoinCode { state } => serve_tls::join_code(state.as_deref()),
        Command::Capture(options) => capture::capture(&options),
        Command::Enclose { rootless, command } => enclose(rootless, &command),
        Command::Generate(options) => stream::report(stream::generate(&options)),
        Command::Sink(options) => stream::report(stream::sink(&options)),
        Command::Reflect(options) => reflecting::reflect(&options),
        Command::AskReflector(options) => reflecting::ask(&options),
        Command::Doctor { json } => doctor(json),
        Command::Mend(options) => mending::mend(&options),
        Command::Restore => mending::restore(),
        Command::Clocks(options) => clocks(options),
        Command::Ticks(options) => ticks(&options),
    }
}

/// Ends early, with success, when the reader of standard output goes away.
fn clocks(options: ClocksOptions) -> ExitCode {
    let order = crate::tools::clock_survey::Order {
        reads: usize::try_from(options.reads).unwrap_or(usize::MAX),
        seconds: options.seconds,
        every: std::time::Duration::from_millis(options.every_ms),
        hardware: options.phc,
        core: options.placement.core,
        priority: options.placement.priority,
    };
    crate::tools::clock_survey::measure(&order, |fact| console::say(&fact));
    ExitCode::SUCCESS
}

fn ticks(options: &TicksOptions) -> ExitCode {
    let order = crate::tools::timer_loop::Order {
        period_ns: options.period_ns,
        count: usize::try_from(options.count).unwrap_or(usize::MAX),
        core: options.placement.core,
        priority: options.placement.priority,
    };
    let refused = crate::tools::timer_loop::run(order, |late| console::say(&late));
    console::say(&serde_json::json!({ "refused": refused }));
    ExitCode::SUCCESS
}

/// Exit code of the command, or 3 when it could not be enclosed.
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
    let findings = crate::tools::doctor::examine();
    if json {
        let report = serde_json::json!({
            "schema": 1,
            "host": crate::tools::doctor::host_facts(),
            "findings": findings,
            "interfaces": crate::tools::doctor::interfaces(),
            "facts": crate::tools::examination::examine(|_| true, false),
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
        for interface in crate::tools::doctor::interfaces() {
            console::line(&format!("     timestamps of {:<10} {}", interface.name, interface.detail));
        }
    }
    ExitCode::SUCCESS
}
