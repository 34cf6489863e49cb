use std::cell::RefCell;
use std::fs;

use wg_frame::time::Span;
use wg_plan::host_tsn::commands::{Command, Program};
use wg_plan::{HostModel, Network, Node, NodeKind, Run, host_tsn};

use super::kept::{Present, Root, channels, filters_in_hardware, mac_merge, read_present};
use super::programs::explained;
use super::support::{missing, preemption};
use super::*;

/// A host whose programs are played: what `tc` shows follows from what it was told.
#[derive(Default)]
struct Played {
    lines: RefCell<Vec<String>>,
    root: RefCell<String>,
    filters: RefCell<bool>,
    /// Part of a command that fails.
    fails: Option<&'static str>,
    /// Whether the other end of the cable takes fragments, seen at this look at the earliest.
    verified_at: Option<usize>,
}

impl Played {
    fn of_a_plain_host() -> Self {
        let root = r#"{"kind":"mq","handle":"0:","root":true}"#.to_owned();
        Self { root: RefCell::new(root), ..Self::default() }
    }

    fn done(&self) -> Vec<String> {
        self.lines.borrow().iter().filter(|line| !line.contains(" -j ")).cloned().collect()
    }

    /// As of a card that was never set, until it is.
    fn mac_merge(&self, interface: &str) -> String {
        let lines = self.lines.borrow();
        let set = lines.iter().rev().find(|line| line.contains("--set-mm"));
        let on = set.is_some_and(|line| line.contains("tx-enabled on"));
        let looks = lines.iter().filter(|line| line.contains("--show-mm")).count();
        let active = on && self.verified_at.is_some_and(|at| looks >= at);
        let status = if active { "SUCCEEDED" } else { "VERIFYING" };
        format!(
            r#"[ {{ "ifname": "{interface}", "pmac-enabled": {on}, "tx-enabled": {on}, "tx-active": {active},
                "tx-min-frag-size": 60, "rx-min-frag-size": 60, "verify-enabled": {on}, "verify-time": 128,
                "max-verify-time": 128, "verify-status": "{status}" }} ]"#
        )
    }
}

impl Programs for Played {
    fn pause(&self, _: std::time::Duration) {}

    fn run(&self, command: &Command) -> Result<String, String> {
        let line = command.line();
        self.lines.borrow_mut().push(line.clone());
        if self.fails.is_some_and(|part| line.contains(part)) {
            return Err("Specified qdisc kind is unknown".into());
        }
        if line.contains("root handle 5747:") {
            *self.root.borrow_mut() = r#"{"kind":"mqprio","handle":"5747:","root":true}"#.into();
        } else if line.ends_with(" root") {
            *self.root.borrow_mut() = r#"{"kind":"mq","handle":"0:","root":true}"#.into();
        } else if line.ends_with("clsact") {
            *self.filters.borrow_mut() = line.contains(" add ");
        } else if line.contains("-j qdisc show") {
            let clsact = if *self.filters.borrow() { r#",{"kind":"clsact","handle":"ffff:"}"# } else { "" };
            return Ok(format!("[{}{clsact}]", self.root.borrow()));
        } else if line.contains("--show-mm") {
            let interface = line.rsplit(' ').next().unwrap_or_default();
            return Ok(self.mac_merge(interface));
        } else if line.contains("ethtool -l") {
            return Ok("Pre-set maximums:\nCombined:\t8\nCurrent hardware settings:\nCombined:\t6\n".into());
        }
        Ok(String::new())
    }
}

/// A folder of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wiregauge-tsn-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn setup(folder: &Path) -> Setup {
    let mut node = Node::new(0, "talker", NodeKind::EndSystem { host: HostModel::default() });
    let class = |priorities: &[u8]| host_tsn::TrafficClass {
        priorities: priorities.to_vec(),
        queues: 1,
        shaper: None,
        preemptable: false,
    };
    node.tsn = Some(Box::new(HostTsn {
        channels: Some(2),
        classes: vec![class(&[7]), class(&[0, 1, 2, 3, 4, 5, 6])],
        ..HostTsn::default()
    }));
    Setup {
        network: Network { nodes: vec![node], links: Vec::new() },
        run: Run::default(),
        node: 0,
        network_ports: Vec::new(),
        ports: vec![crate::control::role::PortInterface { port: 1, interface: "lo".into() }],
        card: false,
        spool: PathBuf::new(),
        agents_on_host: 1,
        distrusted: Vec::new(),
        servicing_core: None,
        own_core: false,
        fifo_priority: 0,
        hold: None,
        planted_hardware: None,
        planted_clock: None,
        tsn_folder: Some(folder.to_owned()),
    }
}

const MADE: [&str; 3] = [
    "ethtool -l lo",
    "ethtool -L lo combined 2",
    "tc qdisc replace dev lo root handle 5747: mqprio num_tc 2 map 1 1 1 1 1 1 1 0 1 1 1 1 1 1 1 1 queues 1@0 1@1 hw 0",
];
const TAKEN_OFF: [&str; 2] = ["tc qdisc del dev lo root", "ethtool -L lo combined 6"];

#[test]
fn settings_are_made_and_taken_off() {
    let (folder, host) = (Folder::new("made"), Played::of_a_plain_host());
    let setup = setup(&folder.0);
    let (mut in_force, _) =
        make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect("allowed").expect("there are some");
    assert_eq!(host.done(), MADE);
    let kept = fs::read_to_string(state_file(&folder.0, "lo")).expect("kept before anything was changed");
    assert!(kept.contains("\"channels\":6"), "{kept}");
    in_force.done = true;
    take_off(&state_file(&folder.0, "lo"), &host).expect("nothing is in the way");
    assert_eq!(host.done()[3..], TAKEN_OFF);
    assert!(!state_file(&folder.0, "lo").exists());
    // Nothing is left to take off.
    take_off(&state_file(&folder.0, "lo"), &host).expect("nothing to do");
    assert_eq!(host.done().len(), 5);
}

#[test]
fn what_a_killed_agent_left_is_taken_off_by_the_next() {
    let (folder, host) = (Folder::new("killed"), Played::of_a_plain_host());
    let setup = setup(&folder.0);
    let (in_force, _) =
        make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect("allowed").expect("there are some");
    // While it lives, nobody else touches them.
    let other = make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect_err("in use");
    assert!(other.contains("another agent"), "{other}");
    // Killed: no destructor runs, the kernel closes the lock.
    let mut in_force = std::mem::ManuallyDrop::new(in_force);
    in_force.done = true;
    drop(std::mem::ManuallyDrop::into_inner(in_force));
    let again = make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect("taken off first");
    let done = host.done();
    assert_eq!(done[3..5], TAKEN_OFF);
    assert_eq!(done[5..], MADE);
    let (mut in_force, _) = again.expect("there are some");
    in_force.done = true;
}

#[test]
fn what_others_set_is_left_alone() {
    let folder = Folder::new("others");
    let setup = setup(&folder.0);
    let host = Played::of_a_plain_host();
    *host.root.borrow_mut() = r#"{"kind":"htb","handle":"1:","root":true}"#.into();
    let refused = make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect_err("it is somebody's");
    assert!(refused.contains("queue discipline htb, which somebody set"), "{refused}");
    assert!(host.done().is_empty() && !state_file(&folder.0, "lo").exists());
    // Somebody replaced ours while it was in force: theirs stays.
    let host = Played::of_a_plain_host();
    let (mut in_force, _) =
        make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect("free").expect("there are some");
    in_force.done = true;
    *host.root.borrow_mut() = r#"{"kind":"htb","handle":"1:","root":true}"#.into();
    take_off(&state_file(&folder.0, "lo"), &host).expect("the rest is ours");
    assert_eq!(host.done()[3..], TAKEN_OFF[1..]);
}

#[test]
fn after_a_boot_nothing_is_ours() {
    let (folder, host) = (Folder::new("boot"), Played::of_a_plain_host());
    let setup = setup(&folder.0);
    let (mut in_force, _) =
        make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect("free").expect("there are some");
    in_force.done = true;
    let file = state_file(&folder.0, "lo");
    let mut kept = Kept::read(&file).expect("kept").expect("there is one");
    kept.changes.filters = true;
    kept.place.as_mut().expect("this version keeps it").boot = "another".into();
    kept.write(&file).expect("it can be kept");
    // Somebody's filters since the boot.
    *host.filters.borrow_mut() = true;
    take_off(&file, &host).expect("nothing to do");
    assert_eq!(host.done().len(), MADE.len(), "nothing is taken off");
    assert!(!file.exists());
}

#[test]
fn what_fails_half_way_is_taken_back() {
    let (folder, mut host) = (Folder::new("half"), Played::of_a_plain_host());
    host.fails = Some("mqprio");
    let setup = setup(&folder.0);
    let refused = make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect_err("no such discipline");
    assert!(refused.starts_with("lo takes no such TSN settings: "), "{refused}");
    assert_eq!(host.done()[3..], TAKEN_OFF[1..]);
    assert!(!state_file(&folder.0, "lo").exists());
}

/// Card with frame preemption: frames of the low class are preemptible.
fn preempting(folder: &Path) -> Setup {
    let mut setup = setup(folder);
    let tsn = setup.network.nodes[0].tsn.as_mut().expect("it has some");
    (tsn.channels, tsn.offload, tsn.shortest_fragment) = (None, TsnOffload::Full, Some(128));
    tsn.classes[1].preemptable = true;
    setup
}

const PREEMPTING: [&str; 3] = [
    "ethtool --json --show-mm lo",
    "ethtool --set-mm lo pmac-enabled on tx-enabled on verify-enabled on tx-min-frag-size 124",
    "tc qdisc replace dev lo root handle 5747: mqprio num_tc 2 map 1 1 1 1 1 1 1 0 1 1 1 1 1 1 1 1 queues 1@0 1@1 hw 1 \
     mode channel fp E P",
];
const NO_LONGER: [&str; 2] = [
    "tc qdisc del dev lo root",
    "ethtool --set-mm lo pmac-enabled off tx-enabled off verify-enabled off tx-min-frag-size 60",
];

#[test]
fn a_run_begins_when_the_other_end_takes_fragments_and_the_layer_is_as_before_when_it_ends() {
    let (folder, mut host) = (Folder::new("preempts"), Played::of_a_plain_host());
    host.verified_at = Some(4);
    let setup = preempting(&folder.0);
    let (mut in_force, changes) =
        make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect("taken").expect("there are some");
    assert_eq!(host.done()[..3], PREEMPTING);
    assert!(host.done()[3..].iter().all(|line| line == PREEMPTING[0]), "it only looks on");
    assert_eq!(host.done().len(), 3 + 3);
    let tsn = setup.network.nodes[0].tsn.as_ref().expect("it has some");
    assert!(described(tsn, &changes).detail.contains("preemption"));
    in_force.done = true;
    take_off(&state_file(&folder.0, "lo"), &host).expect("nothing is in the way");
    assert_eq!(host.done()[6..], NO_LONGER);
}

#[test]
fn another_end_that_takes_no_fragments_is_named_and_all_is_as_before() {
    let (folder, host) = (Folder::new("deaf"), Played::of_a_plain_host());
    let setup = preempting(&folder.0);
    let refused = make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect_err("nobody answers");
    assert!(refused.contains("was not seen to take fragments (verification: VERIFYING)"), "{refused}");
    let done = host.done();
    assert_eq!(done[done.len() - 2..], NO_LONGER);
    assert!(!state_file(&folder.0, "lo").exists());
}

#[test]
fn a_host_that_cannot_preempt_is_changed_in_nothing() {
    let folder = Folder::new("cannot");
    let setup = preempting(&folder.0);
    let mut host = Played::of_a_plain_host();
    host.fails = Some("--show-mm");
    make_with(&setup.run, &setup, ("lo", &folder.0), &host).expect_err("no such card");
    assert_eq!(host.done(), PREEMPTING[..1]);
}

#[test]
fn what_a_host_lacks_for_preemption_is_said_with_its_cure() {
    struct Versions([&'static str; 2]);
    impl Programs for Versions {
        fn run(&self, command: &Command) -> Result<String, String> {
            Ok(self.0[usize::from(command.program == Program::Ethtool)].into())
        }
    }
    let new = ["Usage: ... mqprio [num_tc NUMBER]\n [fp FP0 FP1 FP2 ...]", "ethtool --set-mm DEVNAME"];
    for (release, versions, lacks) in [
        ("6.1.0-18-amd64", new, Some("kernel")),
        ("5.19", new, Some("kernel")),
        ("6.4.0", new, None),
        ("7.0", new, None),
        ("6.12.1", [new[0], "ethtool --show-eee"], Some("ethtool")),
        ("6.12.1", ["Usage: ... mqprio [num_tc NUMBER]", new[1]], Some("tc")),
    ] {
        let found = preemption(release, &Versions(versions));
        assert_eq!((found.name, found.granted), ("tsn-preemption", lacks.is_none()), "{}", found.detail);
        assert!(lacks.is_none_or(|what| found.detail.starts_with(what)), "{}", found.detail);
        assert_eq!(found.cure.is_empty(), found.granted);
    }
}

#[test]
fn nothing_is_made_where_it_is_not_allowed() {
    let folder = Folder::new("refused");
    let setup = Setup { tsn_folder: None, ..setup(&folder.0) };
    let refused = make(&setup, &mut Vec::new()).expect_err("not allowed");
    assert_eq!(refused.fault, Fault::Permission);
    assert!(refused.to_string().contains("tsn = true"));
}

#[test]
fn answers_of_the_programs_are_read() {
    let shown = r#"[{"kind":"taprio","handle":"5747:","root":true,"refcnt":5},{"kind":"pfifo","handle":"0:","parent":"5747:4"},
        {"kind":"clsact","handle":"ffff:","parent":"ffff:fff1"}]"#;
    let root = Some(Root { kind: "taprio".into(), handle: ROOT_HANDLE });
    assert_eq!(read_present(shown), Some(Present { root, filters: true }));
    assert_eq!(read_present("qdisc mq 0: root"), None);
    assert_eq!(channels("Combined: 8\nCurrent hardware settings:\nRX: n/a\nCombined:\t1\n"), Some(1));
    assert_eq!(channels("Current hardware settings:\nCombined:\tn/a\n"), None);
    assert_eq!(filters_in_hardware("Features:\nhw-tc-offload: off\n"), Some(false));
    assert_eq!(filters_in_hardware("hw-tc-offload: off [fixed]\n"), None);
    let shown = mac_merge(&Played::default().mac_merge("lo")).expect("as ethtool 6.3 prints it");
    assert_eq!((shown.tx_active, shown.settings().tx_min_frag_size), (false, 60));
    assert_eq!(mac_merge("[ ]"), None);
    assert_eq!(mac_merge("MAC Merge layer state for lo:\npMAC enabled: on\n"), None);
}

#[test]
fn refusals_name_what_is_missing() {
    let command = |line: &str| Command {
        program: Program::Tc,
        arguments: line.split(' ').map(str::to_owned).collect(),
    };
    let taprio = command("qdisc replace dev lo root handle 5747: taprio num_tc 3");
    let told = explained(&taprio, "Error: Specified qdisc kind is unknown.\n");
    assert!(told.contains("no queue discipline taprio") && told.contains("CONFIG_NET_SCH_TAPRIO"), "{told}");
    let told = explained(&taprio, "Error: sch_taprio: Multi-queue device is required.\n");
    assert!(
        told.starts_with("sch_taprio: Multi-queue device is required; its interface has too few"),
        "{told}"
    );
    let told = explained(&taprio, "Error: Device does not have a PTP clock.\n");
    assert!(told.contains("offload=\"off\""), "{told}");
    let merge = command("--set-mm lo pmac-enabled on");
    let told = explained(&merge, "ethtool: bad command line argument(s)\n");
    assert!(told.contains("install 6.3 or later"), "{told}");
    let told = explained(&merge, "netlink error: Operation not supported\n");
    assert!(told.contains("cannot preempt: write preemptable=\"off\""), "{told}");
    let told = explained(&taprio, "What is \"fp\"?\nUsage: ... taprio clockid CLOCKID\n");
    assert!(told.contains("iproute2 6.4"), "{told}");
    let told = explained(&taprio, "Error: Device does not support preemption.\n");
    assert!(told.contains("cannot preempt"), "{told}");
}

#[test]
fn modules_are_found_on_the_kernel_s_lists() {
    let lists = vec![
        "kernel/net/sched/sch_etf.ko\n".to_owned(),
        "kernel/net/sched/sch_taprio.ko.xz: kernel/net/sched/sch_mqprio.ko.xz\n".to_owned(),
    ];
    let loaded = "sch_cbs 16384 0 - Live 0x0\n";
    assert_eq!(missing(&["sch_etf", "sch_taprio", "sch_mqprio", "sch_cbs"], &lists, loaded), ["sch_mqprio"]);
}

/// On an interface with four queues, by the programs of the host.
#[test]
#[ignore = "needs taprio, mqprio, cbs and etf: make check-tsn-vm"]
fn the_kernel_takes_settings_and_gives_the_interface_back() {
    let name = std::env::var("WIREGAUGE_TSN_INTERFACE").expect("the script of the machine names it");
    let folder = Folder::new("live");
    let class = |priorities: &[u8], shaper| host_tsn::TrafficClass {
        priorities: priorities.to_vec(),
        queues: 1,
        shaper,
        preemptable: false,
    };
    let etf = host_tsn::Shaper::Etf { delta: Span::from_micros(300), offload: false, deadline: false };
    let cbs = host_tsn::Shaper::Cbs {
        idle_slope_bps: 20_000_000,
        max_frame: 1_542,
        max_interference: 1_542,
        offload: false,
    };
    let classes = vec![class(&[7], Some(etf)), class(&[6], Some(cbs)), class(&[0, 1, 2, 3, 4, 5], None)];
    let schedule = host_tsn::GateSchedule {
        base_time: Span::ZERO,
        entries: vec![host_tsn::GateEntry {
            open: vec![0, 1, 2],
            length: Span::from_millis(1),
            mac: Default::default(),
        }],
    };
    for (kind, schedule) in [("mqprio", None), ("taprio", Some(schedule))] {
        let mut setup = setup(&folder.0);
        setup.network.nodes[0].tsn =
            Some(Box::new(HostTsn { classes: classes.clone(), schedule, ..HostTsn::default() }));
        let (in_force, _) = make_with(&setup.run, &setup, (&name, &folder.0), &Tools)
            .expect("the kernel takes it")
            .expect("some");
        let root = kept::present(&name, &Tools).expect("tc tells").root.expect("there is one");
        assert_eq!((root.kind.as_str(), root.handle), (kind, ROOT_HANDLE));
        in_force.take_off().expect("it was made here");
        let present = kept::present(&name, &Tools).expect("tc tells");
        assert!(present.root.is_some_and(|root| root.handle == 0) && !present.filters);
        assert!(!state_file(&folder.0, "lo").exists());
    }
}
