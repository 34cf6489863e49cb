//! Activity of the host during a run: a time series of the kernel's counters.
//!
//! A thread of the lowest priority polls ten times a second and writes only changes, so an idle host costs little time
//! and space. It reads text files of the kernel only; the counters of a missing file are omitted. Counters are
//! cumulative since boot, so readers take differences. Tracing every context switch and interrupt was rejected, as it
//! would itself disturb the host.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use wg_frame::time::Epoch;
use wg_net::clock;

/// File name in the spool: lines of time (ps since the epoch), counter, key and value, separated by tabs.
pub const FILE: &str = "noise.tsv";
/// Poll interval of a run of normal length.
const EVERY: Duration = Duration::from_millis(100);
/// Number of agents per host up to which each polls at this interval; with more, the interval grows.
const SHARING: u32 = 8;
/// Maximum number of polls; a longer run has a longer interval, which limits the size of the series.
const MAX_LOOKS: u32 = 36_000;
/// Interval at which the thread checks for the end of the run.
const LOOK: Duration = Duration::from_millis(20);
/// Same interval with many agents on the host.
const LONGEST_LOOK: Duration = Duration::from_millis(200);
/// Times in `/proc/stat` are in units of 1/100 s whatever the kernel's own tick (USER_HZ, proc(5)).
const TICK_NS: i64 = 10_000_000;
/// Maximum number of counters per poll; more interrupt lines are omitted.
const MAX: usize = 4_096;

/// Counters to poll.
#[derive(Debug)]
pub struct HostCounters {
    /// Core of the servicing threads; `None`: they may run on any.
    pub core: Option<usize>,
    /// Interfaces under test.
    pub interfaces: Vec<String>,
    /// Records lost in full rings so far.
    pub rings: Vec<Arc<AtomicU64>>,
    /// Planned length of the run.
    pub length: Duration,
    /// Agents on this host.
    pub sharing: u32,
}

/// Counter and key.
type Name = (&'static str, String);

/// Counters of one poll.
type Look = BTreeMap<Name, i64>;

impl HostCounters {
    /// Polls until `stop` is set, then once more. Returns the reason if not everything could be written.
    pub fn run(&self, spool: &Path, epoch: Epoch, stop: &AtomicBool) -> Option<String> {
        let path = spool.join(FILE);
        let failed = |error: std::io::Error| {
            format!(
                "the host's counters could not be written to {}: {error}; free some disk space there",
                path.display()
            )
        };
        let mut out = match File::create(&path) {
            Ok(file) => BufWriter::new(file),
            Err(error) => return Some(failed(error)),
        };
        let mut last = Look::new();
        let rarer = self.sharing.div_ceil(SHARING).max(1);
        let every = EVERY.max(self.length / MAX_LOOKS) * rarer;
        let look = (LOOK * rarer).min(LONGEST_LOOK);
        loop {
            let over = stop.load(Ordering::Relaxed);
            let time = clock::realtime().get().saturating_sub(epoch.wall().get()).saturating_mul(1_000);
            let now = self.look();
            let mut text = String::new();
            for (name, value) in now.iter().filter(|(name, value)| last.get(*name) != Some(value)) {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{time}\t{}\t{}\t{value}", name.0, name.1);
            }
            last = now;
            if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                return Some(failed(error));
            }
            if over {
                return None;
            }
            let mut waited = Duration::ZERO;
            while waited < every && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(look);
                waited += look;
            }
        }
    }

    fn look(&self) -> Look {
        let mut look = Look::new();
        let mut add = |counter: &'static str, key: String, value: i64| {
            if look.len() < MAX {
                look.insert((counter, key), value);
            }
        };
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let scheduler = read("/proc/schedstat");
        // Some kernels do not count by processor; the counters of the whole host apply then.
        stat(&read("/proc/stat"), self.core, scheduler.is_empty(), &mut add);
        interrupts(&read("/proc/interrupts"), self.core, &mut add);
        switches(&scheduler, self.core, &mut add);
        backlog(&read("/proc/net/softnet_stat"), self.core, &mut add);
        // Counters of this thread's network namespace, which is that of the network under test.
        let devices = read("/proc/thread-self/net/dev");
        for name in &self.interfaces {
            interface(&devices, name, &mut add);
        }
        sockets(&read("/proc/thread-self/net/snmp"), &mut add);
        threads(&mut add);
        if let Some(core) = self.core {
            power(core, &mut add);
        }
        let lost: u64 = self.rings.iter().map(|ring| ring.load(Ordering::Relaxed)).sum();
        add("ring_drops", "records".into(), i64::try_from(lost).unwrap_or(i64::MAX));
        look
    }
}

fn wanted(core: Option<usize>, cpu: usize) -> bool {
    core.is_none_or(|core| core == cpu)
}

/// Stolen time of every processor, interrupt time of the selected ones, and on request context switches of the host.
fn stat(text: &str, core: Option<usize>, whole: bool, add: &mut impl FnMut(&'static str, String, i64)) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let numbers: Vec<i64> = words.map_while(|word| word.parse().ok()).collect();
        if first == "ctxt" && whole {
            numbers.first().iter().for_each(|n| add("switches", "host".into(), **n));
        }
        let Some(cpu) = first.strip_prefix("cpu").and_then(|n| n.parse::<usize>().ok()) else { continue };
        // user nice system idle iowait irq softirq steal (proc(5)).
        if let [_, _, _, _, _, irq, softirq, steal, ..] = numbers[..] {
            add("steal_ns", first.into(), steal.saturating_mul(TICK_NS));
            if wanted(core, cpu) {
                add("irq_ns", first.into(), irq.saturating_mul(TICK_NS));
                add("softirq_ns", first.into(), softirq.saturating_mul(TICK_NS));
            }
        }
    }
}

/// Interrupts by line on the selected processors.
fn interrupts(text: &str, core: Option<usize>, add: &mut impl FnMut(&'static str, String, i64)) {
    let mut lines = text.lines();
    let Some(header) = lines.next() else { return };
    let cpus: Vec<usize> = header
        .split_ascii_whitespace()
        .filter_map(|word| word.strip_prefix("CPU").and_then(|n| n.parse().ok()))
        .collect();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let counts: Vec<i64> = words.iter().take(cpus.len()).map_while(|word| word.parse().ok()).collect();
        // Lines such as ERR have one sum for all processors.
        if counts.len() < cpus.len() {
            continue;
        }
        let sum: i64 =
            counts.iter().zip(&cpus).filter(|(_, cpu)| wanted(core, **cpu)).map(|(count, _)| count).sum();
        let name = words[counts.len()..].join(" ");
        if sum > 0 {
            add("interrupts", format!("{} {name}", number.trim()).trim_end().to_owned(), sum);
        }
    }
}

/// Scheduler calls on the selected processors: the third number of `cpuN` (Documentation/scheduler/sched-stats).
fn switches(text: &str, core: Option<usize>, add: &mut impl FnMut(&'static str, String, i64)) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(name) = words.next() else { continue };
        let Some(cpu) = name.strip_prefix("cpu").and_then(|n| n.parse::<usize>().ok()) else { continue };
        if let (true, Some(count)) = (wanted(core, cpu), words.nth(2).and_then(|word| word.parse().ok())) {
            add("switches", name.into(), count);
        }
    }
}

/// Dropped frames and truncated polls in the kernel's backlog of the selected processors.
fn backlog(text: &str, core: Option<usize>, add: &mut impl FnMut(&'static str, String, i64)) {
    for (cpu, line) in text.lines().enumerate().filter(|(cpu, _)| wanted(core, *cpu)) {
        let numbers: Vec<i64> =
            line.split_ascii_whitespace().map_while(|word| i64::from_str_radix(word, 16).ok()).collect();
        if let [_, dropped, squeezed, ..] = numbers[..] {
            add("backlog_drops", format!("cpu{cpu}"), dropped);
            add("backlog_squeezed", format!("cpu{cpu}"), squeezed);
        }
    }
}

/// Counters of the interface under test.
fn interface(text: &str, name: &str, add: &mut impl FnMut(&'static str, String, i64)) {
    for line in text.lines() {
        let Some((found, rest)) = line.split_once(':') else { continue };
        if found.trim() != name {
            continue;
        }
        let numbers: Vec<i64> = rest.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        // Received: bytes packets errs drop fifo frame compressed multicast; sent: bytes packets errs drop …
        if let [_, rx, rx_errors, rx_drops, rx_fifo, _, _, _, _, tx, tx_errors, tx_drops, ..] = numbers[..] {
            for (counter, value) in [
                ("rx_frames", rx),
                ("rx_errors", rx_errors.saturating_add(rx_fifo)),
                ("rx_drops", rx_drops),
                ("tx_frames", tx),
                ("tx_errors", tx_errors),
                ("tx_drops", tx_drops),
            ] {
                add(counter, name.into(), value);
            }
        }
    }
}

/// Datagrams dropped for lack of socket buffer space, by column name.
fn sockets(text: &str, add: &mut impl FnMut(&'static str, String, i64)) {
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return };
    for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
        if let ("RcvbufErrors" | "SndbufErrors", Ok(value)) = (name, value.parse()) {
            add("socket_drops", name.into(), value);
        }
    }
}

/// Preemptions of this program's network threads.
fn threads(add: &mut impl FnMut(&'static str, String, i64)) {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let name = read("comm").trim().to_owned();
        if !name.starts_with("service") {
            continue;
        }
        let status = read("status");
        let count = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        if let Some(count) = count.and_then(|count| count.trim().parse::<i64>().ok()) {
            *sums.entry(name).or_default() += count;
        }
    }
    sums.into_iter().for_each(|(name, count)| add("preempted", name, count));
}

/// Frequency of a processor and the time it spent in each idle state.
fn power(core: usize, add: &mut impl FnMut(&'static str, String, i64)) {
    let root = format!("/sys/devices/system/cpu/cpu{core}");
    let number = |path: String| fs::read_to_string(path).ok()?.trim().parse::<i64>().ok();
    if let Some(frequency) = number(format!("{root}/cpufreq/scaling_cur_freq")) {
        add("frequency_khz", format!("cpu{core}"), frequency);
    }
    for state in 0..16 {
        let of = format!("{root}/cpuidle/state{state}");
        let (Ok(name), Some(time)) = (fs::read_to_string(format!("{of}/name")), number(format!("{of}/time")))
        else {
            break;
        };
        add("idle_ns", format!("cpu{core} {}", name.trim()), time.saturating_mul(1_000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parse: impl Fn(&mut dyn FnMut(&'static str, String, i64))) -> Vec<(&'static str, String, i64)> {
        let mut found = Vec::new();
        parse(&mut |counter, key, value| found.push((counter, key, value)));
        found
    }

    #[test]
    fn counters_are_those_of_the_servicing_core() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 0 0 0 0 0 1 2 3 0 0\nctxt 77\n";
        let found = all(|add| stat(text, Some(1), true, &mut |a, b, c| add(a, b, c)));
        let expected = [
            ("steal_ns", "cpu0".to_owned(), 80_000_000),
            ("steal_ns", "cpu1".to_owned(), 30_000_000),
            ("irq_ns", "cpu1".to_owned(), 10_000_000),
            ("softirq_ns", "cpu1".to_owned(), 20_000_000),
            ("switches", "host".to_owned(), 77),
        ];
        assert_eq!(found, expected);
        let text = "           CPU0       CPU1\n  0:   5   6  IO-APIC   2-edge  timer\nLOC: 10 20 Local timer\nERR: 3\n";
        let found = all(|add| interrupts(text, Some(1), &mut |a, b, c| add(a, b, c)));
        let expected = [
            ("interrupts", "0 IO-APIC 2-edge timer".to_owned(), 6),
            ("interrupts", "LOC Local timer".to_owned(), 20),
        ];
        assert_eq!(found, expected);
        let both = all(|add| interrupts(text, None, &mut |a, b, c| add(a, b, c)));
        assert_eq!(both[1].2, 30);
        let found = all(|add| {
            switches("version 15\ncpu0 0 0 11 1\ncpu1 0 0 22 1\n", Some(1), &mut |a, b, c| add(a, b, c))
        });
        assert_eq!(found, [("switches", "cpu1".to_owned(), 22)]);
        let found = all(|add| backlog("1 0a 2\n1 0 ff\n", Some(0), &mut |a, b, c| add(a, b, c)));
        assert_eq!(found[0], ("backlog_drops", "cpu0".to_owned(), 10));
    }

    #[test]
    fn an_interface_and_sockets_are_read_by_name() {
        let text = "Inter-| Receive |\n eth0: 100 1 2 3 4 0 0 0 200 5 6 7 0 0 0 0\neth01: 9 9 9 9 9 9 9 9 9 9 9 9 9\n";
        let found = all(|add| interface(text, "eth0", &mut |a, b, c| add(a, b, c)));
        let values: Vec<i64> = found.iter().map(|(_, _, value)| *value).collect();
        assert_eq!(values, [1, 6, 3, 5, 6, 7]);
        let text = "Udp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 5 6 7\n";
        let found = all(|add| sockets(text, &mut |a, b, c| add(a, b, c)));
        assert_eq!(found.iter().map(|(_, _, value)| *value).collect::<Vec<_>>(), [6, 7]);
    }

    #[test]
    fn what_no_kernel_writes_is_passed_over() {
        for text in ["", "\n", "cpu0", "cpu0 x", ":", "a:b", "CPU0\n1: x", "Udp:\nUdp:", "zz zz zz"] {
            let found = all(|add| {
                stat(text, Some(0), true, &mut |a, b, c| add(a, b, c));
                interrupts(text, Some(0), &mut |a, b, c| add(a, b, c));
                switches(text, Some(0), &mut |a, b, c| add(a, b, c));
                backlog(text, Some(0), &mut |a, b, c| add(a, b, c));
                interface(text, "eth0", &mut |a, b, c| add(a, b, c));
                sockets(text, &mut |a, b, c| add(a, b, c));
            });
            assert_eq!(found, [], "{text:?}");
        }
    }
}
