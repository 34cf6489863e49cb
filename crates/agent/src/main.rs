//! `wiregauge-agent`: the program that runs on every node of a network under test.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
