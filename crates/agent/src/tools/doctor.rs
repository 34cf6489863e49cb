//! Permissions and functions that this host grants an instrument, with remedies for missing ones.

use std::collections::BTreeMap;
use std::fs;

use super::finding::Finding;
use serde::Serialize;
use wg_frame::time::WallNanos;
use wg_net::{HardwareClock, TimestampSource, clock, host, realtime};

/// Names of the checks, in order.
pub const NAMES: [&str; 7] = [
    "sched-fifo",
    "mlockall",
    "cpu-dma-latency",
    "timestamps",
    "packet-sockets",
    "network-namespaces",
    "user-namespaces",
];

/// Wake-up latencies of a sender's or simulated network's thread, ns.
#[derive(Clone, Copy, Debug)]
pub struct WakeUps {
    /// Number of wake-ups.
    pub n: usize,
    /// Median.
    pub p50_ns: i64,
    /// 99th percentile.
    pub p99_ns: i64,
    /// Maximum.
    pub max_ns: i64,
}

/// Sleeps about 400 times, 0.1 s in total, under the conditions of such a thread: on the last core, with real-time
/// priority if granted. `None`: no thread could be started.
pub fn wake_ups() -> Option<WakeUps> {
    const TIMES: usize = 400;
    const PERIOD_NS: i64 = 250_000;
    const PRIORITY: u32 = 50;
    let thread = std::thread::Builder::new().spawn(|| {
        let last = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
        // A refusal increases the latencies, which is what is measured.
        let _ = (realtime::bind_to_core(last), realtime::fifo(PRIORITY), realtime::no_timer_slack());
        let mut late: Vec<i64> = Vec::with_capacity(TIMES);
        let mut due = clock::realtime().get();
        for _ in 0..TIMES {
            due = clock::realtime().get().max(due) + PERIOD_NS;
            clock::sleep_until(WallNanos::new(due));
            late.push(clock::realtime().get() - due);
        }
        late.sort_unstable();
        WakeUps {
            n: TIMES,
            p50_ns: late[TIMES / 2 - 1],
            p99_ns: late[TIMES * 99 / 100 - 1],
            max_ns: late[TIMES - 1],
        }
    });
    thread.ok()?.join().ok()
}

/// All findings. Nothing is changed on the host or in this process: checks that need a trial run in a separate thread
/// or process.
pub fn examine() -> Vec<Finding> {
    let mut found = of_instrument();
    found.extend(crate::tsn::findings());
    found
}

fn of_instrument() -> Vec<Finding> {
    vec![
        tried(
            "sched-fifo",
            in_thread(|| realtime::fifo(1)),
            "run as root, or give the program CAP_SYS_NICE (setcap cap_sys_nice+ep)",
        ),
        tried(
            "mlockall",
            realtime::can_lock_memory(),
            "run as root, or raise the limit: ulimit -l unlimited",
        ),
        tried(
            "cpu-dma-latency",
            realtime::keep_cores_awake().map(drop),
            "run as root, or let the user write to /dev/cpu_dma_latency",
        ),
        tried(
            "timestamps",
            timestamps(),
            "use a kernel with software timestamps of sent and received frames",
        ),
        tried("packet-sockets", wg_net::enclose::can_open_packet_socket(), "run as root, or in an enclosure"),
        tried(
            "network-namespaces",
            wg_net::enclose::can_unshare(false),
            "run as root, or use user namespaces where the host allows them",
        ),
        tried("user-namespaces", wg_net::enclose::can_unshare(true), wg_net::enclose::ROOTLESS_CURE),
    ]
}

fn tried(name: &'static str, done: std::io::Result<()>, cure: &'static str) -> Finding {
    match done {
        Ok(()) => Finding { name, granted: true, detail: "yes".into(), cure: "" },
        Err(error) => Finding { name, granted: false, detail: error.to_string(), cure },
    }
}

fn in_thread(body: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().spawn(body)?;
    thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the attempt failed")))
}

fn timestamps() -> std::io::Result<()> {
    let at = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
    match wg_net::Socket::udp(at) {
        Ok(_) => Ok(()),
        Err(error) => Err(std::io::Error::other(error.to_string())),
    }
}

/// Timestamping functions and clock of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct InterfaceReport {
    /// Interface name.
    pub name: String,
    /// Source of timestamps of sent frames: `hardware`, `software` or `none`.
    pub transmit: &'static str,
    /// Source of timestamps of received frames, with the same values.
    pub receive: &'static str,
    /// Clock of the timestamps, if any.
    pub clock: Option<String>,
    /// Method of reading this clock together with the system clock; `None` without a clock or if it is unreadable.
    pub cross_timestamp: Option<&'static str>,
    /// Uncertainty of such a reading, ns.
    pub cross_timestamp_uncertainty_ns: Option<i64>,
    /// Line rate in bit/s; `None` for virtual interfaces and those without link.
    pub rate_bps: Option<u64>,
    /// Summary in one line, with the reason if available hardware timestamps are not used.
    pub detail: String,
}

/// Timestamping functions of all interfaces in this network namespace. Read-only.
pub fn interfaces() -> Vec<InterfaceReport> {
    let found = wg_net::interfaces().unwrap_or_default();
    found.iter().map(|one| interface(&one.name)).collect()
}

/// Timestamping functions of one interface.
pub fn interface(name: &str) -> InterfaceReport {
    let source = |source| match source {
        TimestampSource::Hardware => "hardware",
        TimestampSource::Software => "software",
        TimestampSource::None => "none",
    };
    let rate_bps = wg_net::line_rate(name);
    let unknown = |detail: String| InterfaceReport {
        name: name.into(),
        transmit: "none",
        receive: "none",
        clock: None,
        cross_timestamp: None,
        cross_timestamp_uncertainty_ns: None,
        rate_bps,
        detail,
    };
    let can = match wg_net::timestamp_capability(name) {
        Ok(can) => can,
        Err(error) => return unknown(error.to_string()),
    };
    let mut report = InterfaceReport {
        transmit: source(can.transmit()),
        receive: source(can.receive()),
        clock: can.phc().map(|number| format!("/dev/ptp{number}")),
        ..unknown(can.described())
    };
    if let Some(number) = can.phc() {
        match HardwareClock::open(number) {
            Ok(clock) => {
                report.cross_timestamp = Some(clock.method().name());
                report.cross_timestamp_uncertainty_ns =
                    clock.cross_timestamp().ok().map(|timestamp| timestamp.uncertainty_ns);
            }
            Err(error) => report.detail = format!("{}; {error}", report.detail),
        }
    }
    report
}

/// Host facts for the run's manifest.
pub fn host_facts() -> BTreeMap<String, String> {
    let read =
        |path: &str| fs::read_to_string(path).map_or_else(|_| "unknown".into(), |s| s.trim().to_owned());
    let cpu = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown".into());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    BTreeMap::from([
        ("kernel".into(), host::kernel_release()),
        // Hosts with the same boot ID share a real-time clock.
        ("boot-id".into(), read("/proc/sys/kernel/random/boot_id")),
        ("cpu".into(), cpu),
        ("cores".into(), cores.to_string()),
        ("clock-source".into(), read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("governor".into(), read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("clock-read-ns".into(), clock::read_cost_ns(64).to_string()),
        ("user".into(), if host::is_root() { "root" } else { "ordinary" }.into()),
    ])
}
