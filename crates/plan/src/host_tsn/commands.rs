//! TSN settings as commands of tc(8) and ethtool(8): the one place that writes them.
//!
//! Every argument is made here from typed values; the only text that comes from elsewhere is the name of the interface,
//! and [`is_interface_name`] is what it has to be. Nothing here runs anything.

use serde::{Deserialize, Serialize};
use wg_core::line::SMALLEST_FRAME;
use wg_core::selection::MacOperation;
use wg_frame::time::Span;

use super::{
    FrameMatch, GateSchedule, HostTsn, IngressRule, Shaper, StreamGate, TrafficClass, TsnOffload, arrivals,
    credits, departures,
};
use crate::campaign::Run;
use crate::network::{Network, NodeIndex};

/// Handle of the queue discipline at the root, "WG" in ASCII: what has it was made by an agent.
pub const ROOT_HANDLE: u16 = 0x5747;
/// Preference of the first filter of each direction, and of the action index: those of others are left alone.
const FIRST_FILTER: u32 = 5_700;
/// Bytes of the shortest fragment that is not the last, with its check sequence, where nobody says otherwise.
const SHORTEST_FRAGMENT: u16 = SMALLEST_FRAME;
/// Bytes of a check sequence, which ethtool does not count.
const CHECK_SEQUENCE: u16 = 4;
/// Priorities of the kernel's table.
const PRIORITIES: u8 = 16;

/// A program of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// tc(8) of iproute2.
    Tc,
    /// ethtool(8).
    Ethtool,
}

impl Program {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tc => "tc",
            Self::Ethtool => "ethtool",
        }
    }
}

/// A program and what it is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program.
    pub program: Program,
    /// Its arguments, none of which is read by a shell.
    pub arguments: Vec<String>,
}

impl Command {
    fn new(program: Program, written: &str) -> Self {
        Self { program, arguments: written.split_whitespace().map(str::to_owned).collect() }
    }

    fn tc(written: &str) -> Self {
        Self::new(Program::Tc, written)
    }

    fn and(mut self, written: &str) -> Self {
        self.arguments.extend(written.split_whitespace().map(str::to_owned));
        self
    }

    fn with(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(more);
        self
    }

    /// As it is typed.
    pub fn line(&self) -> String {
        format!("{} {}", self.program.name(), self.arguments.join(" "))
    }
}

/// What the settings of a host change of its interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Its queue discipline.
    pub root: bool,
    /// Filters, which hang at a queue discipline of their own kind.
    pub filters: bool,
    /// The number of its queues.
    pub channels: Option<u16>,
    /// That the card filters.
    pub hardware_filters: bool,
    /// Its MAC merge layer, which preempts.
    pub mac_merge: bool,
}

/// The MAC merge layer of an interface (IEEE Std 802.3-2022, clause 99), as `ethtool --set-mm` sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MacMerge {
    /// It takes fragments.
    pub pmac_enabled: bool,
    /// It sends fragments.
    pub tx_enabled: bool,
    /// It does so only where the other end has said that it takes them.
    pub verify_enabled: bool,
    /// Bytes of a fragment that is not the last, without its check sequence.
    pub tx_min_frag_size: u16,
}

/// What was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// Its queues.
    pub channels: Option<u16>,
    /// Whether the card filtered.
    pub hardware_filters: Option<bool>,
    /// Its MAC merge layer.
    pub mac_merge: Option<MacMerge>,
}

/// Whether this can be the name of an interface: what the kernel takes (`dev_valid_name`), and no option of a program.
pub fn is_interface_name(name: &str) -> bool {
    (1..16).contains(&name.len())
        && !name.starts_with(['-', '.'])
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:".contains(&byte))
}

/// What the settings of `node` change.
pub fn changes(network: &Network, run: &Run, node: NodeIndex) -> Changes {
    let Some(tsn) = settings(network, node) else { return Changes::default() };
    Changes {
        root: !tsn.classes.is_empty(),
        filters: !egress(tsn, network, run, node).is_empty() || !tsn.ingress.is_empty(),
        channels: tsn.channels,
        hardware_filters: tsn.ingress.iter().any(|rule| rule.offload),
        mac_merge: tsn.preempts(),
    }
}

/// The settings of a node.
pub fn settings(network: &Network, node: NodeIndex) -> Option<&HostTsn> {
    network.nodes.get(usize::from(node))?.tsn.as_deref()
}

/// The commands that make the settings of `node` at its interface, in their order; none without settings.
pub fn apply(network: &Network, run: &Run, node: NodeIndex, interface: &str) -> Vec<Command> {
    let Some(tsn) = settings(network, node) else { return Vec::new() };
    let changes = changes(network, run, node);
    let mut commands = Vec::new();
    if let Some(channels) = changes.channels {
        commands.push(set_channels(interface, channels));
    }
    if changes.hardware_filters {
        commands.push(set_hardware_filters(interface, true));
    }
    // Before the queue discipline, whose preemptable classes a card takes only where its MAC merge layer is on.
    if changes.mac_merge {
        commands.push(set_mac_merge(interface, wanted(tsn)));
    }
    // First, because it resets the queue discipline at the root, and with it the timer of a schedule.
    if changes.filters {
        commands.push(Command::tc(&format!("qdisc add dev {interface} clsact")));
    }
    if changes.root {
        commands.push(root(tsn, interface));
        let rate = rate_of(network, run, node);
        let classes = tsn.classes.iter().enumerate();
        let shapers: Vec<Command> = classes.filter_map(|class| shaper(tsn, class, rate, interface)).collect();
        // So does each of these (`taprio_reset`, Linux 6.1): to state the schedule again starts its timer.
        let again = tsn.schedule.is_some() && tsn.offload == TsnOffload::Off && !shapers.is_empty();
        commands.extend(shapers);
        commands.extend(again.then(|| root(tsn, interface)));
    }
    if changes.filters {
        commands.extend(egress(tsn, network, run, node).into_iter().map(|filter| filter.command(interface)));
        commands.extend(ingress(tsn, network, run, node).into_iter().map(|filter| filter.command(interface)));
    }
    commands
}

/// The commands that take the settings off again: what was made is deleted, what was changed gets its former value.
pub fn undo(changes: &Changes, before: &Before, interface: &str) -> Vec<Command> {
    let mut commands = Vec::new();
    if changes.filters {
        commands.push(Command::tc(&format!("qdisc del dev {interface} clsact")));
    }
    if changes.root {
        commands.push(Command::tc(&format!("qdisc del dev {interface} root")));
    }
    if let (true, Some(was)) = (changes.mac_merge, before.mac_merge) {
        commands.push(set_mac_merge(interface, was));
    }
    if let (true, Some(was)) = (changes.hardware_filters, before.hardware_filters) {
        commands.push(set_hardware_filters(interface, was));
    }
    if let (Some(_), Some(was)) = (changes.channels, before.channels) {
        commands.push(set_channels(interface, was));
    }
    commands
}

/// The commands that tell what is there before anything is changed, as JSON.
pub fn look(changes: &Changes, interface: &str) -> Vec<Command> {
    let mut commands = vec![Command::tc(&format!("-j qdisc show dev {interface}"))];
    if changes.channels.is_some() {
        commands.push(Command::new(Program::Ethtool, &format!("-l {interface}")));
    }
    if changes.hardware_filters {
        commands.push(Command::new(Program::Ethtool, &format!("-k {interface}")));
    }
    if changes.mac_merge {
        commands.push(show_mac_merge(interface));
    }
    commands
}

/// The command that tells of the MAC merge layer, as JSON.
pub fn show_mac_merge(interface: &str) -> Command {
    Command::new(Program::Ethtool, &format!("--json --show-mm {interface}"))
}

/// How the MAC merge layer has to be where some class is preemptable. What is not verified could be lost: another end that
/// knows no fragments takes them for damaged frames.
fn wanted(tsn: &HostTsn) -> MacMerge {
    let fragment = tsn.shortest_fragment.unwrap_or(SHORTEST_FRAGMENT);
    MacMerge {
        pmac_enabled: true,
        tx_enabled: true,
        verify_enabled: true,
        tx_min_frag_size: fragment.saturating_sub(CHECK_SEQUENCE),
    }
}

fn set_mac_merge(interface: &str, layer: MacMerge) -> Command {
    let on = |yes: bool| if yes { "on" } else { "off" };
    Command::new(
        Program::Ethtool,
        &format!(
            "--set-mm {interface} pmac-enabled {} tx-enabled {} verify-enabled {} tx-min-frag-size {}",
            on(layer.pmac_enabled),
            on(layer.tx_enabled),
            on(layer.verify_enabled),
            layer.tx_min_frag_size
        ),
    )
}

fn set_channels(interface: &str, channels: u16) -> Command {
    Command::new(Program::Ethtool, &format!("-L {interface} combined {channels}"))
}

fn set_hardware_filters(interface: &str, on: bool) -> Command {
    let on = if on { "on" } else { "off" };
    Command::new(Program::Ethtool, &format!("-K {interface} hw-tc-offload {on}"))
}

/// Rate of the link that a node sends by, bit/s.
pub fn rate_of(network: &Network, run: &Run, node: NodeIndex) -> u64 {
    let own = network.links.iter().find(|link| link.ends.iter().any(|end| end.node == node));
    run.link_rate.or(own.map(|link| link.rate)).map_or(0, |rate| rate.bits_per_second())
}

fn nanos(span: Span) -> i64 {
    span.as_picos() / 1_000
}

/// The queue discipline at the root: classes, and when each may send.
fn root(tsn: &HostTsn, interface: &str) -> Command {
    let kind = if tsn.schedule.is_some() { "taprio" } else { "mqprio" };
    let command = Command::tc(&format!("qdisc replace dev {interface} root handle {ROOT_HANDLE:x}: {kind}"))
        .and(&format!("num_tc {} map", tsn.classes.len()))
        .with((0..PRIORITIES).map(|priority| class_number(tsn, priority).to_string()))
        .and("queues")
        .with((0..tsn.classes.len()).map(|class| queues(tsn, class)));
    let command = match &tsn.schedule {
        Some(schedule) => scheduled(command, tsn, schedule),
        None => command.and(if tsn.offload == TsnOffload::Full { "hw 1 mode channel" } else { "hw 0" }),
    };
    if !tsn.preempts() {
        return command;
    }
    let kind = |class: &TrafficClass| if class.preemptable { "P" } else { "E" };
    command.and("fp").with(tsn.classes.iter().map(|class| kind(class).to_owned()))
}

/// The class of one of the kernel's priorities. Those above 7 have no place in a tag: they go with priority 0.
fn class_number(tsn: &HostTsn, priority: u8) -> usize {
    tsn.class_of(if priority > 7 { 0 } else { priority }).unwrap_or(0)
}

fn queues(tsn: &HostTsn, class: usize) -> String {
    format!("{}@{}", tsn.classes[class].queues, tsn.first_queue(class))
}

fn scheduled(command: Command, tsn: &HostTsn, schedule: &GateSchedule) -> Command {
    let mut command = command.and(&format!("base-time {}", nanos(schedule.base_time)));
    for entry in &schedule.entries {
        let operation = match entry.mac {
            MacOperation::Unchanged => "S",
            MacOperation::Hold => "H",
            MacOperation::Release => "R",
        };
        let (mask, length) = (entry.mask(), nanos(entry.length));
        command = command.and(&format!("sched-entry {operation} {mask:02x} {length}"));
    }
    match tsn.offload {
        TsnOffload::Off => command.and("clockid CLOCK_TAI"),
        // The card's own clock keeps the schedule: to name another one is refused.
        TsnOffload::Full => command.and("flags 0x2"),
        TsnOffload::TxtimeAssist => {
            let delay = nanos(tsn.txtime_delay.unwrap_or(Span::ZERO));
            command.and(&format!("flags 0x1 txtime-delay {delay} clockid CLOCK_TAI"))
        }
    }
}

/// What holds the frames of a class back, at its only queue.
fn shaper(
    tsn: &HostTsn,
    (place, class): (usize, &TrafficClass),
    rate: u64,
    interface: &str,
) -> Option<Command> {
    // Of classful queue disciplines with a queue each, the first queue has the number 1.
    let at = tsn.first_queue(place) + 1;
    let command = Command::tc(&format!(
        "qdisc replace dev {interface} parent {ROOT_HANDLE:x}:{at:x} handle {:x}:",
        ROOT_HANDLE + at
    ));
    Some(match class.shaper? {
        Shaper::Cbs { offload, .. } => {
            let credits = credits(tsn, place, rate)?;
            command.and(&format!(
                "cbs idleslope {} sendslope {} hicredit {} locredit {} offload {}",
                credits.idle_slope,
                credits.send_slope,
                credits.high,
                credits.low,
                u8::from(offload)
            ))
        }
        Shaper::Etf { delta, offload, deadline } => {
            let mut command = command.and(&format!("etf clockid CLOCK_TAI delta {}", nanos(delta)));
            for (flag, on) in [
                ("offload", offload),
                ("deadline_mode", deadline),
                // taprio says when frames leave, sockets do not.
                ("skip_sock_check", tsn.offload == TsnOffload::TxtimeAssist),
            ] {
                command = if on { command.and(flag) } else { command };
            }
            command
        }
    })
}

/// A filter and what it does with the frames it matches.
struct Filter {
    way: &'static str,
    number: u32,
    protocol: String,
    keys: Vec<String>,
    by_card: Option<bool>,
    actions: Vec<String>,
}

impl Filter {
    fn command(self, interface: &str) -> Command {
        let preference = FIRST_FILTER + self.number;
        let place = match self.by_card {
            None => "",
            Some(true) => "skip_sw",
            Some(false) => "skip_hw",
        };
        let Self { way, protocol, .. } = self;
        Command::tc(&format!(
            "filter add dev {interface} {way} pref {preference} protocol {protocol} flower {place}"
        ))
        .with(self.keys)
        .with(self.actions.iter().flat_map(|action| action.split_whitespace()).map(str::to_owned))
    }
}

fn numbered<T>(of: impl IntoIterator<Item = T>) -> impl Iterator<Item = (u32, T)> {
    (0_u32..).zip(of)
}

/// Gives frames that leave the priority of their flow, and those of a UDP socket their tag.
fn egress(tsn: &HostTsn, network: &Network, run: &Run, node: NodeIndex) -> Vec<Filter> {
    let mut known: Vec<(FrameMatch, Vec<String>)> = Vec::new();
    let mut give = |frames: FrameMatch, actions: Vec<String>| {
        if !actions.is_empty() && !known.iter().any(|(other, _)| *other == frames) {
            known.push((frames, actions));
        }
    };
    for (flow, leaves) in departures(network, run, node) {
        // Without classes the interface has no queues to choose from.
        let within = if tsn.classes.is_empty() { 0 } else { tsn.priority_of(flow, leaves.priority) };
        let queued = (within > 0).then(|| format!("action skbedit priority {within}"));
        let Some(priority) = leaves.priority.filter(|_| leaves.untagged) else {
            give(leaves.frames, queued.into_iter().collect());
            continue;
        };
        // A priority tag (IEEE Std 802.1Q-2022, 6.9): VID 0, which receivers take without a VLAN of their own.
        let tag = format!("action vlan push id 0 protocol 802.1Q priority {priority}");
        let first = queued.clone().map(|queued| format!("{queued} pipe"));
        give(leaves.frames, first.into_iter().chain([tag]).collect());
        // A stream writes the headers of its frames itself, and the tag among them.
        let tagged = FrameMatch { tag: Some((0, priority)), ..leaves.frames };
        give(tagged, queued.into_iter().collect());
    }
    numbered(known)
        .map(|(number, (frames, actions))| {
            let (protocol, keys) = frames.flower();
            Filter { way: "egress", number, protocol, keys, by_card: None, actions }
        })
        .collect()
}

/// Holds frames that arrive to their gate and their meter.
fn ingress(tsn: &HostTsn, network: &Network, run: &Run, node: NodeIndex) -> Vec<Filter> {
    let coming = arrivals(network, run, node);
    let rules = tsn.ingress.iter().filter_map(|rule| {
        let (_, frames) = coming.iter().find(|(flow, _)| *flow == rule.flow)?;
        Some((rule, frames))
    });
    numbered(rules)
        .map(|(number, (rule, frames))| {
            let (protocol, keys) = frames.flower();
            // The gate first, as in IEEE Std 802.1Q, 8.6.5.2; and tc lays a gate's entries into the first 1024 bytes of a
            // message, most of which a meter takes.
            let gate = rule.gate.as_ref().map(|gate| stream_gate(rule, gate));
            let actions = gate.into_iter().chain(rule.meter.map(|meter| {
                let (rate, burst) = (meter.rate_bps, meter.burst);
                format!("action police rate {rate}bit burst {burst}b conform-exceed drop/ok")
            }));
            let by_card = Some(rule.offload);
            Filter { way: "ingress", number, protocol, keys, by_card, actions: actions.collect() }
        })
        .collect()
}

fn stream_gate(rule: &IngressRule, gate: &StreamGate) -> String {
    // A card counts by its own clock.
    let clock = if rule.offload { "" } else { "clockid CLOCK_TAI " };
    let mut action = format!("action gate {clock}base-time {}", nanos(gate.base_time));
    for entry in &gate.entries {
        let (state, length) = (if entry.open { "open" } else { "close" }, nanos(entry.length));
        action.push_str(&format!(" sched-entry {state} {length}"));
        if let Some(octets) = entry.max_octets.filter(|_| entry.open) {
            action.push_str(&format!(" -1 {octets}"));
        }
    }
    if rule.meter.is_some() {
        action.push_str(" pipe");
    }
    action
}
