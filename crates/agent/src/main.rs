//! `wiregauge-agent`: the program that runs on every node of a network under test.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
