//! Support for TSN settings on this host: kernel modules, programs, TAI offset.

use wg_plan::host_tsn::commands::{Command, Program};

use super::programs::{Programs, Tools, found};
use crate::tools::finding::Finding;
use wg_net::{clock, host};

/// First kernel version with preemptible classes in queue disciplines.
const PREEMPTS_SINCE: [u32; 2] = [6, 4];

/// Kernel modules with their purpose.
const PARTS: [&str; 10] = [
    "sch_taprio",
    "sch_mqprio",
    "sch_cbs",
    "sch_etf",
    "sch_ingress",
    "cls_flower",
    "act_skbedit",
    "act_vlan",
    "act_police",
    "act_gate",
];

/// Findings on available and missing parts. Read-only; loads no module.
pub fn findings() -> Vec<Finding> {
    let folder = format!("/lib/modules/{}", host::kernel_release());
    let lists: Vec<String> = ["modules.builtin", "modules.dep"]
        .iter()
        .filter_map(|list| std::fs::read_to_string(format!("{folder}/{list}")).ok())
        .collect();
    let loaded = std::fs::read_to_string("/proc/modules").unwrap_or_default();
    let missing = missing(&PARTS, &lists, &loaded);
    let kernel = if missing.is_empty() {
        granted("tsn-kernel", "queue disciplines, filters and actions are there".into())
    } else {
        let whence = if lists.is_empty() { format!(" ({folder} lists no modules)") } else { String::new() };
        refused(
            "tsn-kernel",
            format!("no {}{whence}", missing.join(", ")),
            "use a kernel with these modules, such as a distribution's, for <host-tsn>",
        )
    };
    let absent: Vec<&str> = [Program::Tc, Program::Ethtool]
        .into_iter()
        .filter(|one| found(*one).is_none())
        .map(Program::name)
        .collect();
    let programs = match absent.is_empty() {
        true => granted("tsn-programs", "tc and ethtool".into()),
        false => refused(
            "tsn-programs",
            format!("no {}", absent.join(", ")),
            "install the packages iproute2 and ethtool",
        ),
    };
    let tai = match clock::tai_ahead() {
        0 => refused(
            "tai-offset",
            "0 s: CLOCK_TAI is CLOCK_REALTIME".into(),
            "let ptp4l and phc2sys, or chrony with leapsectz, tell the kernel how far TAI is ahead",
        ),
        ahead => granted("tai-offset", format!("{} s", ahead / 1_000_000_000)),
    };
    vec![kernel, programs, preemption(&host::kernel_release(), &Tools), tai]
}

/// Support of kernel and programs for preemptible classes; that of the card is known only when settings are made.
pub(super) fn preemption(release: &str, programs: &dyn Programs) -> Finding {
    const NAME: &str = "tsn-preemption";
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let kernel = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    if kernel < PREEMPTS_SINCE {
        return refused(
            NAME,
            format!("kernel {release}; preemptable classes came with 6.4"),
            "use a later kernel, for preemptable classes in <host-tsn>",
        );
    }
    let knows = |program: Program, line: &str, word: &str| {
        let arguments = line.split(' ').map(str::to_owned).collect();
        programs.said(&Command { program, arguments }).contains(word)
    };
    if !knows(Program::Ethtool, "--help", "--set-mm") {
        return refused(NAME, "ethtool has no --set-mm".into(), "install ethtool 6.3 or later");
    }
    if !knows(Program::Tc, "qdisc add dev lo root mqprio help", "[fp ") {
        return refused(NAME, "tc has no fp".into(), "install iproute2 6.4 or later");
    }
    granted(
        NAME,
        format!("kernel {release}, ethtool and tc know it; `ethtool --show-mm INTERFACE` says of a card"),
    )
}

/// Members of `parts` that are neither loaded nor in a module list.
pub(super) fn missing<'a>(parts: &[&'a str], lists: &[String], loaded: &str) -> Vec<&'a str> {
    let there = |part: &str| {
        loaded.lines().any(|line| line.split_whitespace().next() == Some(part))
            || lists.iter().flat_map(|list| list.lines()).any(|line| {
                // kernel/net/sched/sch_etf.ko.xz: what it needs
                let path = line.split(':').next().unwrap_or(line);
                path.rsplit('/').next().is_some_and(|file| file.split('.').next() == Some(part))
            })
    };
    parts.iter().copied().filter(|part| !there(part)).collect()
}

fn granted(name: &'static str, detail: String) -> Finding {
    Finding { name, granted: true, detail, cure: "" }
}

fn refused(name: &'static str, detail: String, cure: &'static str) -> Finding {
    Finding { name, granted: false, detail, cure }
}
