//! `wiregauge-agent`: the program that runs on every node of a network under test.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    wg_agent::cli::main()
}
