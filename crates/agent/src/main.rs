//! `wiregauge-agent`: the program that runs on every node of a network under test.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
