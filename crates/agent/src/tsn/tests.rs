use std::cell::RefCell;
use std::fs;

use wg_frame::time::Span;
use wg_plan::host_tsn::commands::{Command, Program};
use wg_plan::{HostModel, Network, Node, NodeKind, Run, host_tsn};

use super::kept::{Present, Root, channels, filters_in_hardware, read_present};
use super::programs::explained;
use super::support::missing;
use super::*;

/// A host whose programs are played: what `tc` shows follows from what it was told.
#[derive(Default)]
struct Played {
    lines: RefCell<Vec<String>>,
    root: RefCell<String>,
    filters: RefCell<bool>,
    /// Part of a command that fails.
    fails: Option<&'static str>,
}

impl Played {
    fn of_a_plain_host() -> Self {
        let root = r#"{"kind":"mq","handle":"0:","root":true}"#.to_owned();
        Self { root: RefCell::new(root), ..Self::default() }
    }

    fn done(&self) -> Vec<String> {
        self.lines.borrow().iter().filter(|line| !line.contains(" -j ")).cloned().collect()
    }
}

impl Programs for Played {
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
        ports: vec![crate::control::role::PortInterface { port: 1, interface: "lo".into() }],
        spool: PathBuf::new(),
        agents_on_host: 1,
        distrusted: Vec::new(),
        servicing_core: None,
        fifo_priority: 0,
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
