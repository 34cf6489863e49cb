//! Runs tests in namespaces of their own, one after the other, so that nothing they build outlives them.
//!
//! A test program with `harness = false` gives its tests to [`main`], which runs itself again for each: once to enclose
//! (a program of one thread has to), once inside. Where the host grants no namespaces the tests are ignored, visibly;
//! with `WIREGAUGE_SKIPS=refused` they fail, as tests in Python do (tests/conftest.py).

use std::process::{Command, ExitCode};

const INSIDE: &str = "WIREGAUGE_TEST_ENCLOSED";
/// The exit code of an enclosure that the host refuses.
const REFUSED: i32 = 3;

pub(crate) type Test = (&'static str, fn());

/// Runs those of `tests` that the arguments name, as the harness of Rust does.
pub(crate) fn main(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let step = std::env::var(INSIDE).unwrap_or_default();
    if let Some(name) = step.strip_prefix("run ") {
        return run(tests, name);
    }
    if let Some(name) = step.strip_prefix("enclose ") {
        return enclose(name);
    }
    let exact = arguments.iter().any(|word| word == "--exact");
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| {
        filters.is_empty() || filters.iter().any(|f| if exact { name == **f } else { name.contains(*f) })
    };
    let chosen: Vec<&str> = tests.iter().map(|test| test.0).filter(|name| wanted(name)).collect();
    if arguments.iter().any(|word| word == "--list") {
        chosen.iter().for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests, each in namespaces of its own", chosen.len());
    let (mut failed, mut ignored) = (0, 0);
    for name in &chosen {
        match outcome(name) {
            Ok(()) => println!("test {name} ... ok"),
            Err(None) => {
                failed += 1;
                println!("test {name} ... FAILED");
            }
            Err(Some(why)) if std::env::var("WIREGAUGE_SKIPS").is_ok_and(|skips| skips == "refused") => {
                failed += 1;
                println!("test {name} ... FAILED: {why}, and WIREGAUGE_SKIPS=refused makes that a failure");
            }
            Err(Some(why)) => {
                ignored += 1;
                println!("test {name} ... ignored, {why}");
            }
        }
    }
    let passed = chosen.len() - failed - ignored;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored\n");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

/// What became of one test; the reason where the host does not let it run.
fn outcome(name: &str) -> Result<(), Option<String>> {
    let myself = std::env::current_exe().expect("the test program has a path");
    let done = Command::new(myself).env(INSIDE, format!("enclose {name}")).status().expect("it runs");
    match done.code() {
        Some(0) => Ok(()),
        Some(REFUSED) => Err(Some("this host grants no namespaces to this user".into())),
        _ => Err(None),
    }
}

fn enclose(name: &str) -> ExitCode {
    let myself = std::env::current_exe().expect("the test program has a path");
    // The command inherits the environment.
    let command = ["env".into(), format!("{INSIDE}=run {name}"), myself.to_string_lossy().into_owned()];
    match wg_net::enclose::run(&command, false) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

fn run(tests: &[Test], name: &str) -> ExitCode {
    let (_, body) = tests.iter().find(|test| test.0 == name).expect("it was listed");
    // A panic ends the program with code 101.
    body();
    ExitCode::SUCCESS
}

/// Runs `ip` of iproute2.
pub(crate) fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split_whitespace()).status();
    assert!(done.expect("`ip` of iproute2 is installed").success(), "ip {arguments}");
}
