//! `wiregauge-agent`: the program that runs on every end system.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod instrument;
mod serve;

#[derive(Parser)]
#[command(name = "wiregauge-agent", version, about = "The end-system program of Wiregauge")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves a testmaster.
    Serve(ServeOptions),
    /// Runs a command in namespaces of its own, so that nothing it builds outlives it.
    Enclose {
        /// Through a user namespace, without root's rights outside.
        #[arg(long)]
        rootless: bool,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Sends one stream by hand and prints how well its rate or its gaps were kept, as JSON.
    Generate(instrument::GenerateOptions),
    /// Receives one stream, accounts for each of its frames, and prints the account as JSON, after a line "ready".
    Absorb(instrument::AbsorbOptions),
    /// Shows what this host grants an instrument, and the cure for what it does not.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// How to serve.
#[derive(clap::Args)]
struct ServeOptions {
    /// Where to listen: ADDRESS:PORT (port 0: any) or unix:PATH. Over unix:PATH a client must name an authority such as
    /// `localhost`; grpcio does with the channel option `grpc.default_authority`.
    #[arg(long)]
    listen: String,
    /// Network namespace of the network under test, for example /run/netns/mac. The control connection stays outside.
    #[arg(long)]
    netns: Option<PathBuf>,
    /// End when the program (more exactly: the thread) that started this one ends, and leave SIGINT and SIGHUP to it.
    #[arg(long)]
    die_with_parent: bool,
    /// Print "listening ADDRESS" on standard output when ready.
    #[arg(long)]
    announce: bool,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(options) => serve::serve(&options),
        Command::Enclose { rootless, command } => enclose(rootless, &command),
        Command::Generate(options) => instrument::report(instrument::generate(&options)),
        Command::Absorb(options) => instrument::report(instrument::absorb(&options)),
        Command::Doctor { json } => doctor(json),
    }
}

/// The command's own exit code, or 3 when it could not be enclosed.
fn enclose(rootless: bool, command: &[String]) -> ExitCode {
    match wg_net::enclose::run(command, rootless) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("wiregauge-agent: {error}");
            ExitCode::from(3)
        }
    }
}

fn doctor(json: bool) -> ExitCode {
    let findings = wg_agent::doctor::examine();
    if json {
        let report = serde_json::json!({
            "schema": 1,
            "host": wg_agent::doctor::host_facts(),
            "findings": findings,
        });
        println!("{report:#}");
    } else {
        for finding in findings {
            let mark = if finding.granted { "yes" } else { "no " };
            println!("{mark}  {:<20} {}", finding.name, finding.detail);
            if !finding.granted {
                println!("     cure: {}", finding.cure);
            }
        }
    }
    ExitCode::SUCCESS
}
