//! Facts of the whole host.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use rustix::process::{Resource, getrlimit};
use wg_net::{clock, host, netfilter};

use super::fact::{Fact, Value};
use super::texts;
use super::tree::Tree;
use crate::tools::doctor;

/// Programs that set clocks, by process name as the kernel shows it (15 characters).
const CLOCK_PROGRAMS: [&str; 7] =
    ["chronyd", "ntpd", "phc2sys", "ptp4l", "systemd-timesyn", "timemaster", "ts2phc"];
/// Maximum size of a kernel configuration, bytes.
const LARGEST_CONFIGURATION: u64 = 4 << 20;

/// All facts of the host.
pub(super) fn facts(tree: &Tree) -> Vec<Fact> {
    let mut facts = clock_facts(tree);
    facts.extend(kernel_facts(tree));
    facts.extend(processor_facts(tree));
    facts.extend(limit_facts(tree));
    facts.extend(firewall_facts());
    let room = host::disk_space(Path::new(".")).map_err(|error| error.to_string());
    facts.push(Fact::of("spool-free-bytes", room.map(|room| signed(room.free))));
    facts
}

/// Facts that need a trial; omitted if it would disturb a run, whose pages and threads it would delay.
pub(super) fn tried(disturbs: bool) -> Vec<Fact> {
    let why = "a run is prepared or in progress, which trying would disturb";
    let untried = doctor::NAMES.map(|name| Fact::of::<bool>(name, Err(why.into())));
    let (untried, findings) = if disturbs {
        // TSN support of the kernel is looked up without a trial.
        (untried.to_vec(), crate::tsn::findings())
    } else {
        (Vec::new(), doctor::examine())
    };
    let found = findings.into_iter().map(|finding| {
        let note = if finding.granted { String::new() } else { finding.detail };
        Fact::of(finding.name, Ok(finding.granted)).noted(note)
    });
    untried.into_iter().chain(found).chain(wake_facts(disturbs.then_some(why))).collect()
}

fn wake_facts(untried: Option<&str>) -> Vec<Fact> {
    let told = match untried {
        Some(why) => Err(why.to_owned()),
        None => doctor::wake_ups().ok_or_else(|| "no thread could be started".to_owned()),
    };
    let of = |pick: fn(&doctor::WakeUps) -> i64| told.as_ref().map(pick).map_err(Clone::clone);
    vec![
        Fact::of("wake-ups", told.as_ref().map(|told| signed(told.n as u64)).map_err(Clone::clone)),
        Fact::of("wake-late-p50-ns", of(|told| told.p50_ns)),
        Fact::of("wake-late-p99-ns", of(|told| told.p99_ns)),
        Fact::of("wake-late-max-ns", of(|told| told.max_ns)),
    ]
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn clock_facts(tree: &Tree) -> Vec<Fact> {
    let told = clock::discipline().map_err(|error| format!("adjtimex: {error}"));
    let of = |pick: fn(&clock::Discipline) -> Value| told.as_ref().map(pick).map_err(Clone::clone);
    vec![
        Fact::of(
            "clock-source",
            tree.read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        Fact::of("clock-synchronised", of(|told| told.synchronised.into())),
        Fact::of("clock-max-error-us", of(|told| told.max_error_us.into())),
        Fact::of("clock-tai-offset-s", of(|told| i64::from(told.tai_offset_s).into())),
        Fact::of("clock-programs", clock_programs(tree)),
    ]
}

/// Running programs of [`CLOCK_PROGRAMS`], if other users' processes are visible.
fn clock_programs(tree: &Tree) -> Result<Vec<String>, String> {
    // A /proc that hides other users' processes hides even process 1.
    tree.read("/proc/1/comm").map_err(|why| format!("the processes of others are hidden: {why}"))?;
    let numbers = tree.names("/proc")?;
    let running: BTreeSet<String> = numbers
        .iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|number| tree.read(&format!("/proc/{number}/comm")).ok())
        .filter(|name| CLOCK_PROGRAMS.contains(&name.as_str()))
        .collect();
    Ok(running.into_iter().collect())
}

fn kernel_facts(tree: &Tree) -> Vec<Fact> {
    let version = tree.read("/proc/sys/kernel/version");
    let preemption = match tree.read("/sys/kernel/realtime") {
        Ok(told) if told == "1" => Ok("PREEMPT_RT".to_owned()),
        _ => version.map(|version| texts::preemption(&version)),
    };
    vec![
        Fact::of("kernel-preemption", preemption),
        Fact::of("kernel-options", configuration(tree).map(|text| texts::options(&text))),
        Fact::of("rt-runtime-us", tree.number("/proc/sys/kernel/sched_rt_runtime_us")),
        Fact::of("rt-period-us", tree.number("/proc/sys/kernel/sched_rt_period_us")),
    ]
}

/// Configuration text of the running kernel.
fn configuration(tree: &Tree) -> Result<String, String> {
    const PACKED: &str = "/proc/config.gz";
    if let Ok(packed) = tree.bytes(PACKED) {
        let mut text = String::new();
        let read = GzDecoder::new(packed.as_slice()).take(LARGEST_CONFIGURATION).read_to_string(&mut text);
        return read.map(|_| text).map_err(|error| format!("{PACKED}: {error}"));
    }
    let beside = format!("/boot/config-{}", tree.read("/proc/sys/kernel/osrelease")?);
    tree.read(&beside).map_err(|why| format!("there is no {PACKED} here, and {why}"))
}

fn processor_facts(tree: &Tree) -> Vec<Fact> {
    const CPUS: &str = "/sys/devices/system/cpu";
    let cores = std::thread::available_parallelism().map(|cores| signed(cores.get() as u64));
    let idle = idle_states(tree, CPUS);
    let deepest = idle
        .as_ref()
        .map_err(Clone::clone)
        .map(|states| states.iter().map(|state| state.latency_us).max().unwrap_or(0));
    let shown = idle.map(|states| -> Vec<String> {
        states.iter().map(|state| format!("{} {} us", state.name, state.latency_us)).collect()
    });
    vec![
        Fact::of("cores", cores.map_err(|error| error.to_string())),
        Fact::of("isolated-cpus", tree.read(&format!("{CPUS}/isolated"))),
        Fact::of("nohz-full-cpus", tree.read(&format!("{CPUS}/nohz_full")).map(|told| none_if_null(&told))),
        Fact::of("governors", governors(tree, CPUS)),
        Fact::of("idle-states", shown),
        Fact::of("idle-latency-us", deepest),
    ]
}

/// Kernels print `(null)` for an unset value.
fn none_if_null(told: &str) -> String {
    if told == "(null)" { String::new() } else { told.to_owned() }
}

fn cpus(tree: &Tree, folder: &str) -> Result<Vec<String>, String> {
    let is_cpu = |name: &String| {
        name.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Ok(tree.names(folder)?.into_iter().filter(is_cpu).collect())
}

/// Frequency governors in use.
fn governors(tree: &Tree, folder: &str) -> Result<Vec<String>, String> {
    let mut found = BTreeSet::new();
    let mut why = "the kernel sets no frequencies here (no cpufreq)".to_owned();
    for cpu in cpus(tree, folder)? {
        let place = format!("{folder}/{cpu}/cpufreq");
        match tree.read(&format!("{place}/scaling_governor")) {
            Ok(governor) => drop(found.insert(governor)),
            Err(said) if tree.has(&place) => why = said,
            Err(_) => {}
        }
    }
    if found.is_empty() { Err(why) } else { Ok(found.into_iter().collect()) }
}

struct IdleState {
    name: String,
    latency_us: i64,
}

/// Idle states of the processors, without duplicates, with their exit latencies.
fn idle_states(tree: &Tree, folder: &str) -> Result<Vec<IdleState>, String> {
    let mut found: Vec<IdleState> = Vec::new();
    let mut any = false;
    for cpu in cpus(tree, folder)? {
        let place = format!("{folder}/{cpu}/cpuidle");
        for state in tree.names(&place).unwrap_or_default() {
            let of = format!("{place}/{state}");
            let (Ok(name), Ok(latency_us)) =
                (tree.read(&format!("{of}/name")), tree.number(&format!("{of}/latency")))
            else {
                continue;
            };
            any = true;
            let enabled = tree.read(&format!("{of}/disable")).is_ok_and(|told| told == "0");
            if enabled && !found.iter().any(|known| known.name == name && known.latency_us == latency_us) {
                found.push(IdleState { name, latency_us });
            }
        }
    }
    if any { Ok(found) } else { Err("the kernel tells of no states of rest (no cpuidle)".into()) }
}

fn limit_facts(tree: &Tree) -> Vec<Fact> {
    // -1 means "unlimited".
    let limit = |resource| Ok(getrlimit(resource).current.map_or(-1, signed));
    let socket = |name: &str| {
        let path = format!("/proc/sys/net/core/{name}");
        tree.number(&path)
            .map_err(|why| format!("{why} (older kernels have it in the first network namespace only)"))
    };
    vec![
        Fact::of("rmem-max-bytes", socket("rmem_max")),
        Fact::of("wmem-max-bytes", socket("wmem_max")),
        Fact::of("limit-locked-memory-bytes", limit(Resource::Memlock)),
        Fact::of("limit-real-time-priority", limit(Resource::Rtprio)),
        Fact::of("limit-open-files", limit(Resource::Nofile)),
    ]
}

fn firewall_facts() -> Vec<Fact> {
    let chains = netfilter::chains().map(|chains| -> Vec<String> {
        let shown = chains.iter().map(|chain| {
            let policy = if chain.drops { "drop" } else { "accept" };
            format!("{} {}: {} at {}, {} rules", chain.name, policy, chain.kind, chain.hook, chain.rules)
        });
        shown.collect()
    });
    let tables = netfilter::tables().map(|tables| -> Vec<String> {
        let shown = tables.iter().map(|table| {
            let entries = table.entries.map_or_else(|| "unknown".into(), |number| number.to_string());
            format!("{}: {entries} rules", table.name)
        });
        shown.collect()
    });
    let why = |error: std::io::Error| format!("the kernel does not tell ({error}); it needs CAP_NET_ADMIN");
    vec![Fact::of("firewall-chains", chains.map_err(why)), Fact::of("firewall-tables", tables.map_err(why))]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn planted(name: &str, files: &[(&str, &str)]) -> (std::path::PathBuf, Tree) {
        let root = std::env::temp_dir().join(format!("wiregauge-examination-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let tree = Tree::below(&root);
        (root, tree)
    }

    #[test]
    fn a_host_is_what_its_files_say() {
        const CPU: &str = "sys/devices/system/cpu";
        let state = format!("{CPU}/cpu0/cpuidle/state2");
        let (root, tree) = planted(
            "whole",
            &[
                ("proc/1/comm", "systemd\n"),
                ("proc/77/comm", "ptp4l\n"),
                ("proc/78/comm", "ptp4l\n"),
                ("proc/self/comm", "phc2sys\n"),
                (&format!("{CPU}/nohz_full"), "(null)\n"),
                (&format!("{CPU}/cpu0/cpufreq/scaling_governor"), "powersave\n"),
                (&format!("{CPU}/cpu1/cpufreq/scaling_governor"), "performance\n"),
                (&format!("{state}/name"), "C6\n"),
                (&format!("{state}/latency"), "133\n"),
                (&format!("{state}/disable"), "0\n"),
                ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n"),
                ("proc/sys/kernel/osrelease", "6.1\n"),
                ("boot/config-6.1", "CONFIG_VETH=m\n"),
                ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ],
        );
        let facts = facts(&tree);
        fs::remove_dir_all(root).expect("it was made here");
        let value =
            |name: &str| facts.iter().find(|fact| fact.name == name).expect("it is told").seen.clone();
        assert_eq!(value("clock-programs"), Ok(vec!["ptp4l".to_owned()].into()));
        assert_eq!(value("nohz-full-cpus"), Ok("".into()));
        assert_eq!(value("governors"), Ok(vec!["performance".to_owned(), "powersave".to_owned()].into()));
        assert_eq!(value("idle-states"), Ok(vec!["C6 133 us".to_owned()].into()));
        assert_eq!(value("idle-latency-us"), Ok(133.into()));
        assert_eq!(value("kernel-preemption"), Ok("PREEMPT_DYNAMIC".into()));
        assert_eq!(value("rt-runtime-us"), Ok(950_000.into()));
        assert!(
            matches!(value("kernel-options"), Ok(Value::Texts(all)) if all.contains(&"CONFIG_VETH=m".into()))
        );
        assert_eq!(value("rt-period-us"), Err("there is no /proc/sys/kernel/sched_rt_period_us here".into()));
    }

    #[test]
    fn what_is_tried_has_the_names_that_it_has_untried() {
        let names = |disturbs| tried(disturbs).iter().map(|fact| fact.name).collect::<Vec<_>>();
        assert_eq!(names(true), names(false));
    }

    #[test]
    fn what_no_file_says_is_not_known() {
        let (_, tree) = planted("empty", &[]);
        for fact in [clock_facts(&tree), kernel_facts(&tree), processor_facts(&tree)].concat() {
            // Queried from the kernel, not read from files.
            if !fact.name.starts_with("clock-") && fact.name != "cores" {
                assert!(fact.seen.is_err(), "{fact:?}");
            }
        }
    }
}
