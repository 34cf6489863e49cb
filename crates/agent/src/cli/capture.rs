//! `wiregauge-agent capture`: a tap without a test, and the captures of switches on the netns bench.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use wg_net::realtime;

use super::options::CaptureOptions;
use super::stream::interface_of;
use crate::console;
use crate::recording::held_back::Asked;
use crate::recording::packet_capture::{Capture, CaptureConfig, CaptureInterface, CaptureStats};

type Failure = (u8, String);

/// Captures until SIGINT or SIGTERM, then prints statistics as JSON. Exit code 2: a bad option; 3: the host refuses; 4:
/// the file is incomplete.
pub(crate) fn capture(options: &CaptureOptions) -> ExitCode {
    match run(options) {
        Ok(stats) => {
            console::json(&described(&stats).to_string());
            match stats.failure {
                None => ExitCode::SUCCESS,
                Some(failure) => fail(4, &format!("{}: {failure}", options.out.display())),
            }
        }
        Err((code, problem)) => fail(code, &problem),
    }
}

fn fail(code: u8, problem: &str) -> ExitCode {
    console::complain(&problem);
    ExitCode::from(code)
}

fn run(options: &CaptureOptions) -> Result<CaptureStats, Failure> {
    let host = |problem: String| (3, problem);
    if options.die_with_parent {
        realtime::die_with_parent().map_err(|e| host(format!("--die-with-parent: {e}")))?;
    }
    if let Some(path) = &options.netns {
        wg_net::namespace::enter_network(path).map_err(|e| host(e.to_string()))?;
    }
    if options.out.exists() {
        let problem =
            "exists already, and captures are never overwritten; name another file or remove this one";
        return Err((2, format!("{}: {problem}", options.out.display())));
    }
    let taps = options.interface.iter().map(|named| tap(named, options.rate));
    let taps = taps.collect::<Result<Vec<_>, _>>()?;
    let how = CaptureConfig {
        snap: options.snap,
        see_all: options.promiscuous,
        by_hardware: options.hardware_timestamps,
    };
    let mut capture = Capture::open(taps, &options.out, how).map_err(|e| host(e.to_string()))?;
    if let Some(patience) = options.hold {
        let asked = Arc::new(Asked::default());
        capture = capture.on_demand(Duration::from_millis(patience), Arc::clone(&asked));
        // The thread ends with its input, or with the program.
        std::thread::Builder::new()
            .name("asked".into())
            .spawn(move || listen(&asked))
            .map_err(|e| host(format!("cannot start a thread: {e}")))?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let capturing = {
        let stop = Arc::clone(&stop);
        std::thread::Builder::new().name("capture".into()).spawn(move || capture.run(&stop))
    }
    .map_err(|e| host(format!("cannot start a thread: {e}")))?;
    wait_for_the_end("capturing").map_err(|e| host(format!("cannot wait for signals: {e}")))?;
    stop.store(true, Ordering::Relaxed);
    capturing.join().map_err(|_| (70, "the capture failed; this is a defect of wiregauge".to_owned()))
}

/// Reads requests to keep frames from standard input.
fn listen(asked: &Asked) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match stretch(&line) {
            Some([from, to]) => asked.ask(from, to),
            None => console::complain(&format!("'{line}': write keep FROM TO, in ns since 1970")),
        }
    }
}

/// Parses `keep FROM TO`.
fn stretch(line: &str) -> Option<[i64; 2]> {
    let mut words = line.split_whitespace();
    let (word, from, to, rest) = (words.next()?, words.next()?, words.next()?, words.next());
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (word == "keep" && rest.is_none() && from <= to).then_some([from, to])
}

fn tap(named: &str, rate: Option<u64>) -> Result<CaptureInterface, Failure> {
    let (interface, name) = named.split_once('=').unwrap_or((named, named));
    Ok(CaptureInterface {
        interface: interface_of(interface)?,
        name: name.into(),
        rate_bps: rate.or_else(|| wg_net::line_rate(interface)),
    })
}

/// Announces on standard output what goes on, and waits for SIGINT or SIGTERM.
pub(super) fn wait_for_the_end(announcement: &str) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        // A reader that went away does not need the line.
        let _ = writeln!(std::io::stdout(), "{announcement}").and_then(|()| std::io::stdout().flush());
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}

/// Statistics as in the manifest of a run: the fields of a capture task in `agent.proto`.
fn described(stats: &CaptureStats) -> serde_json::Value {
    serde_json::json!({
        "kind": "capture",
        "planned": stats.seen,
        "done": stats.written,
        "ring_drops": stats.dropped,
        "unwritten": stats.unwritten,
        "hardware_timestamps": stats.by_hardware,
        "passed_over": stats.passed_over,
        "crowded_out": stats.crowded_out,
        "missing_hardware_timestamps": stats.untimestamped,
        "failure": stats.failure.clone().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_stretch_or_nothing() {
        assert_eq!(stretch("keep 5 7"), Some([5, 7]));
        for wrong in ["", "keep", "keep 5", "keep 7 5", "keep 5 7 9", "drop 5 7", "keep five 7"] {
            assert_eq!(stretch(wrong), None, "{wrong}");
        }
    }
}
