//! Limits that the host's own configuration sets for callers, whatever their role and signature.
//!
//! A file of a few lines, read at the start of the agent:
//!
//! ```toml
//! interfaces = ["eth1"]           # those a test may use; default: all but loopback
//! addresses = ["10.20.0.0/16"]    # of this host and of those it exchanges frames with; default: private ones
//! rate = "100Mbit/s"              # of all this host sends in a run, on the wire
//! duration = "1h"                 # of a run
//! tsn = true                      # tests may set queue disciplines of those interfaces; default: false
//! programs = ["ptp4l", "chronyc"] # those a test may have started or asked; default: none
//! connections = 256               # to the agent's port, in all; default: 256
//! connections-per-address = 64    # default: 64
//! handshake = "10s"               # until a call is admitted; default: 10 s
//! may-set-clock = true            # whether such a program may set this host's clocks; default: false
//! ```

use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::Ipv4Net;
use serde::Deserialize;
use wg_core::line::LONGEST_TAGGED_FRAME;
use wg_frame::time::{RunTime, Span};
use wg_plan::host_tsn::commands;
use wg_plan::schedule::Schedule;
use wg_plan::wire::wire_bits;
use wg_plan::{Flow, FlowId, Network, NodeIndex, Pattern, Protocol, Run, Send, quantity};
use wg_record::open_regular;

use super::connections::Bounds;

/// RFC 1918, 3927 and 2544 (benchmarks), and loopback for tests of the instrument.
const PRIVATE: [&str; 6] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "198.18.0.0/15", "127.0.0.0/8"];
const RATE: &str = "100Mbit/s";
const DURATION: &str = "1h";
/// Averaging interval for the rate of a replayed capture.
const REPLAYED_OVER: Span = Span::from_millis(1_000);
/// Programs that may be allowed; ptp4l includes pmc, phc2sys includes phc_ctl.
const PROGRAMS: [&str; 3] = ["ptp4l", "phc2sys", "chronyc"];

/// Maximum number of connections that a configuration may allow, since each uses a descriptor.
const MOST_CONNECTIONS: usize = 4_096;
/// Maximum size of a configuration, bytes.
const LARGEST: u64 = 1 << 20;

/// File format of the configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    interfaces: Option<Vec<String>>,
    addresses: Option<Vec<String>>,
    rate: Option<String>,
    duration: Option<String>,
    tsn: Option<bool>,
    programs: Option<Vec<String>>,
    may_set_clock: Option<bool>,
    connections: Option<usize>,
    connections_per_address: Option<usize>,
    handshake: Option<String>,
}

/// Reason why a configuration is unusable.
#[derive(Debug, thiserror::Error)]
pub enum AllowanceError {
    /// Unreadable file.
    #[error("{path}: {source}")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// Invalid content.
    #[error(
        "{path}: {why}; it may have interfaces, addresses, rate, duration, tsn, programs, may-set-clock, connections, \
         connections-per-address and handshake"
    )]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// Problem.
        why: String,
    },
}

/// Limits for callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// `None`: every interface but loopback.
    interfaces: Option<Vec<String>>,
    addresses: Vec<Ipv4Net>,
    rate_bps: u64,
    duration: Span,
    tsn: bool,
    programs: Vec<String>,
    may_set_clock: bool,
    connections: Bounds,
}

/// Connection limits of a configuration.
fn bounds(in_all: Option<usize>, from_one: Option<usize>, handshake: Option<&str>) -> Result<Bounds, String> {
    let usual = Bounds::default();
    let in_all = in_all.unwrap_or(usual.in_all);
    let from_one = from_one.unwrap_or(usual.from_one.min(in_all));
    if !(1..=MOST_CONNECTIONS).contains(&in_all) || !(1..=in_all).contains(&from_one) {
        return Err(format!(
            "connections: {in_all}, of one address {from_one}: from 1 to {MOST_CONNECTIONS}, and of one address no more than in all"
        ));
    }
    let Some(written) = handshake else { return Ok(Bounds { in_all, from_one, ..usual }) };
    let span = quantity::time(written)
        .map_err(|e| format!("handshake: {}", e.sentence(quantity::Kind::Time, written)))?;
    let patience = u64::try_from(span.as_nanos_floor()).map(Duration::from_nanos).unwrap_or_default();
    if !(Duration::from_millis(100)..=Duration::from_secs(3_600)).contains(&patience) {
        return Err(format!("handshake: \"{written}\": from 100ms to 1h"));
    }
    Ok(Bounds { in_all, from_one, patience })
}

impl Allowance {
    /// Limits from a file, or the defaults without one.
    ///
    /// # Errors
    /// See [`AllowanceError`].
    pub fn read(path: Option<&Path>) -> Result<Self, AllowanceError> {
        let Some(path) = path else {
            return Self::of("").map_err(|why| AllowanceError::Wrong { path: "defaults".into(), why });
        };
        let mut text = String::new();
        open_regular(path)
            .and_then(|file| file.take(LARGEST).read_to_string(&mut text))
            .map_err(|source| AllowanceError::Unreadable { path: path.to_owned(), source })?;
        Self::of(&text).map_err(|why| AllowanceError::Wrong { path: path.to_owned(), why })
    }

    fn of(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().replace('\n', " "))?;
        let ranges = file.addresses.unwrap_or_else(|| PRIVATE.map(str::to_owned).to_vec());
        let range = |text: &String| {
            let single = || text.parse::<Ipv4Addr>().map(Ipv4Net::from);
            text.parse().or_else(|_| single()).map_err(|_| {
                format!("addresses: \"{text}\" is no range of IPv4 addresses such as 10.20.0.0/16")
            })
        };
        let written = file.rate.as_deref().unwrap_or(RATE);
        let rate_bps = quantity::rate(written)
            .map_err(|e| format!("rate: {}", e.sentence(quantity::Kind::Rate, written)))?;
        let written = file.duration.as_deref().unwrap_or(DURATION);
        let duration = quantity::time(written)
            .map_err(|e| format!("duration: {}", e.sentence(quantity::Kind::Time, written)))?;
        let programs = file.programs.unwrap_or_default();
        if let Some(unknown) = programs.iter().find(|name| !PROGRAMS.contains(&name.as_str())) {
            return Err(format!("programs: \"{unknown}\" is none of {}", PROGRAMS.join(", ")));
        }
        Ok(Self {
            connections: bounds(file.connections, file.connections_per_address, file.handshake.as_deref())?,
            programs,
            may_set_clock: file.may_set_clock.unwrap_or(false),
            interfaces: file.interfaces,
            addresses: ranges.iter().map(range).collect::<Result<_, _>>()?,
            rate_bps,
            duration,
            tsn: file.tsn.unwrap_or(false),
        })
    }

    /// Limits on the number and duration of connections to the agent's port.
    pub const fn connections(&self) -> Bounds {
        self.connections
    }

    /// True if a test may use this interface.
    pub fn has_interface(&self, name: &str) -> bool {
        name != "lo" && self.interfaces.as_ref().is_none_or(|all| all.iter().any(|known| known == name))
    }

    /// True if the owner has listed the interfaces that tests may use.
    pub const fn names_interfaces(&self) -> bool {
        self.interfaces.is_some()
    }

    /// Reason why an interface may not be used.
    pub fn refusal(&self, interface: &str) -> String {
        format!("this host allows no test on its interface {interface}; it allows {}", self.described()[0])
    }

    /// True if tests may set queue disciplines and filters of interfaces.
    pub const fn allows_tsn(&self) -> bool {
        self.tsn
    }

    /// All limits, one per line.
    pub fn described(&self) -> Vec<String> {
        let interfaces =
            self.interfaces.as_ref().map_or_else(|| "all but loopback".into(), |all| all.join(", "));
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        vec![
            format!("interfaces {interfaces}"),
            format!("addresses {}", addresses.join(", ")),
            format!("at most {} in all", quantity::show_rate(self.rate_bps)),
            format!("runs of at most {}", seconds(self.duration)),
            (if self.tsn { "TSN settings of interfaces" } else { "no TSN settings of interfaces" })
                .to_owned(),
            self.clocks(),
        ]
    }

    fn clocks(&self) -> String {
        let programs = if self.programs.is_empty() { "no programs".into() } else { self.programs.join(", ") };
        format!("{programs}; its clocks are {}set", if self.may_set_clock { "" } else { "not " })
    }

    /// Checks that a test may start or query a program.
    ///
    /// # Errors
    /// Refusal with the remedy.
    pub fn check_program(&self, name: &str) -> Result<(), String> {
        if self.programs.iter().any(|one| one == name) {
            return Ok(());
        }
        Err(format!(
            "this host starts no {name} for tests; write programs = [\"{name}\"] into its agent.toml"
        ))
    }

    /// Checks that a test may set this host's clocks.
    ///
    /// # Errors
    /// Refusal with the remedy.
    pub fn check_setting(&self) -> Result<(), String> {
        if self.may_set_clock {
            return Ok(());
        }
        Err("this host lets no test set its clocks; write steer=\"off\" in <ptp>, or may-set-clock = true into its \
             agent.toml"
            .into())
    }

    /// Checks a run against the limits, given that other agents of this host send `others_bps`; returns its own maximum
    /// rate, bit/s.
    ///
    /// # Errors
    /// The exceeded limit, as a sentence.
    pub fn check(
        &self,
        network: &Network,
        run: &Run,
        played: &Played,
        interfaces: &[&str],
        others_bps: u64,
    ) -> Result<u64, String> {
        for interface in interfaces {
            if !self.has_interface(interface) {
                return Err(self.refusal(interface));
            }
        }
        for node in &played.nodes {
            for peer in peers(run, *node) {
                let Some(peer) = network.nodes.get(usize::from(peer)) else { continue };
                self.check_address(&peer.name, peer.ipv4.into())?;
            }
        }
        for flow in run.flows.iter().filter(|flow| played.nodes.contains(&flow.from)) {
            if let Some(chosen) = flow.addresses.ipv4.destination {
                self.check_address(&format!("flow {}", flow.id), chosen.into())?;
            }
        }
        let set = |node: &NodeIndex| commands::settings(network, *node).is_some();
        if played.with_interfaces && played.nodes.iter().any(set) && !self.tsn {
            return Err(
                "this host allows no TSN settings of its interfaces; tsn = true in its configuration allows them"
                    .to_owned(),
            );
        }
        let length = run.warm_up + run.duration + run.drain;
        if length > self.duration {
            return Err(format!("the run takes {}; {}", seconds(length), self.longest()));
        }
        let sent = played.nodes.iter().map(|node| planned_bps(run, *node));
        let planned = sent.fold(0, u64::saturating_add);
        let together = planned.saturating_add(others_bps);
        if together > self.rate_bps {
            return Err(format!(
                "this host would send {}; it allows at most {}",
                quantity::show_rate(together),
                quantity::show_rate(self.rate_bps)
            ));
        }
        // Checked after the rate, which bounds the number of messages to examine.
        for send in played.nodes.iter().flat_map(|node| sent_by(run, *node)) {
            self.check_end(run, send)?;
        }
        Ok(planned)
    }

    /// Checks that a sender ends within the permitted duration. A plan states both a duration and a number of messages,
    /// and only the number ends a sender.
    fn check_end(&self, run: &Run, send: &Send) -> Result<(), String> {
        let refused = |why: String| Err(format!("flow {} {why}; {}", send.flow, self.longest()));
        // A rate limit delays the longest frame most.
        let schedule = match Schedule::new(run, send, LONGEST_TAGGED_FRAME) {
            Ok(schedule) => schedule,
            Err(error) => return refused(format!("has no schedule: {error}")),
        };
        let (total, due) = (schedule.total(), schedule.due_before(RunTime::ZERO + self.duration));
        if due < total {
            refused(format!("would have sent {due} of its {total} messages by then"))
        } else {
            Ok(())
        }
    }

    fn longest(&self) -> String {
        format!("this host allows at most {}", seconds(self.duration))
    }

    /// Checks that frames may be exchanged with this address.
    ///
    /// # Errors
    /// Refusal, as a sentence.
    pub fn check_address(&self, whose: &str, address: Ipv4Addr) -> Result<(), String> {
        if self.addresses.iter().any(|range| range.contains(&address)) {
            return Ok(());
        }
        Err(format!("{whose} has the address {address}; this host allows {}", self.described()[1]))
    }
}

/// End systems for which an agent sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The agent's own end system, or all whose frames it carries as the network between them.
    pub nodes: Vec<NodeIndex>,
    /// True if its interfaces are theirs and are configured according to the plan.
    pub with_interfaces: bool,
}

fn seconds(span: Span) -> String {
    format!("{} s", span.as_picos() as f64 / 1e12)
}

/// This node and all nodes it exchanges frames with.
fn peers(run: &Run, node: NodeIndex) -> Vec<NodeIndex> {
    let mut met = vec![node];
    for flow in &run.flows {
        let ends: Vec<NodeIndex> =
            [flow.from, flow.to].into_iter().chain(flow.also_to.iter().copied()).collect();
        if ends.contains(&node) {
            met.extend(ends);
        }
    }
    for inject in run.injects.iter().filter(|inject| inject.on == node || inject.to == node) {
        met.extend([inject.on, inject.to]);
    }
    met.sort_unstable();
    met.dedup();
    met
}

fn flow_of(run: &Run, id: FlowId) -> Option<&Flow> {
    run.flows.iter().find(|flow| flow.id == id)
}

/// Senders whose messages leave this node: its own and those that its relays return.
fn sent_by(run: &Run, node: NodeIndex) -> impl Iterator<Item = &Send> {
    run.sends.iter().filter(move |send| {
        let from_here = flow_of(run, send.flow).is_some_and(|flow| flow.from == node);
        from_here || run.relays.iter().any(|relay| relay.flow == send.flow && relay.on == node)
    })
}

/// Maximum rate of a node on the wire, bit/s; a burst is averaged over its period and a capture over one second.
fn planned_bps(run: &Run, node: NodeIndex) -> u64 {
    let rate = |bits: u64, period: Span| {
        let picos = u128::from(period.as_picos().max(1).unsigned_abs());
        u64::try_from(u128::from(bits) * 1_000_000_000_000 / picos).unwrap_or(u64::MAX)
    };
    let mut planned = 0_u64;
    for send in sent_by(run, node) {
        let Some(flow) = flow_of(run, send.flow) else { continue };
        let bits = wire_bits(flow.protocol, flow.vlan, send.payload);
        let fastest = match (&send.replay, send.pattern) {
            (Some(replay), _) => replay.busiest(REPLAYED_OVER).saturating_mul(8),
            (None, Pattern::Periodic | Pattern::Exponential) => rate(bits, send.period),
            (None, Pattern::Bursts { size, .. }) => rate(bits.saturating_mul(u64::from(size)), send.period),
            (None, Pattern::Ramp { to, .. }) => rate(bits, send.period.min(to)),
        };
        planned = planned.saturating_add(send.rate_limit_bps.map_or(fastest, |most| fastest.min(most)));
    }
    for inject in run.injects.iter().filter(|inject| inject.on == node) {
        let bits = wire_bits(Protocol::Udp, None, inject.payload);
        planned = planned.saturating_add(rate(bits.saturating_mul(u64::from(inject.burst)), inject.interval));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_plan::{HostModel, Node, NodeKind, Replay, Route, Trace, Traced};

    #[test]
    fn a_file_says_what_is_allowed() {
        let allowed = Allowance::of(
            "interfaces = [\"eth1\"]\naddresses = [\"10.20.0.0/16\", \"10.9.0.1\"]\nrate = \"1Mbit/s\"",
        )
        .unwrap();
        assert!(allowed.has_interface("eth1") && !allowed.has_interface("eth0"));
        assert_eq!(
            allowed.described(),
            [
                "interfaces eth1",
                "addresses 10.20.0.0/16, 10.9.0.1/32",
                "at most 1Mbit/s in all",
                "runs of at most 3600 s",
                "no TSN settings of interfaces",
                "no programs; its clocks are not set"
            ]
        );
        assert!(allowed.check_address("a", Ipv4Addr::new(10, 20, 255, 1)).is_ok());
        assert!(allowed.check_address("a", Ipv4Addr::new(10, 9, 0, 1)).is_ok());
        let refused = allowed.check_address("a", Ipv4Addr::new(10, 21, 0, 1)).unwrap_err();
        assert_eq!(
            refused,
            "a has the address 10.21.0.1; this host allows addresses 10.20.0.0/16, 10.9.0.1/32"
        );
        let usual = Allowance::of("").unwrap();
        assert!(usual.has_interface("eth0") && !usual.has_interface("lo"));
        assert!(usual.check_address("a", Ipv4Addr::new(8, 8, 8, 8)).is_err());
    }

    #[test]
    fn what_is_sent_is_held_against_the_bounds_and_not_what_a_plan_says_of_itself() {
        let end = |index, name| Node::new(index, name, NodeKind::EndSystem { host: HostModel::default() });
        let network = Network { nodes: vec![end(0, "a"), end(1, "b")], links: Vec::new() };
        let flow = Flow { to: 1, ..Flow::plain(10, Protocol::Udp, Route::default()) };
        let sends = |send: Send| Run {
            duration: Span::from_millis(1),
            flows: vec![flow.clone()],
            sends: vec![send],
            ..Run::default()
        };
        let allowance =
            Allowance::of("addresses = [\"0.0.0.0/0\"]\nrate = \"1Mbit/s\"\nduration = \"1s\"").unwrap();
        let check = |send: Send| {
            allowance.check(&network, &sends(send), &Played { nodes: vec![0], with_interfaces: true }, &[], 0)
        };
        // 128 B of frame and 20 B around it, a hundred times a second.
        let steady = |count| Send::periodic(10, Span::from_millis(10), 82, count);
        assert_eq!(check(steady(100)), Ok(118_400));
        assert_eq!(
            check(steady(102)).unwrap_err(),
            "flow 10 would have sent 100 of its 102 messages by then; this host allows at most 1 s"
        );
        let limited = Send { rate_limit_bps: Some(50_000), ..steady(100) };
        assert!(check(limited).unwrap_err().contains("of its 100 messages"));
        let frames = |length| {
            let frame = |after| Traced { after: Span::from_millis(after), length };
            Trace::new(vec![frame(0), frame(1)]).unwrap()
        };
        let replay = |length, loops| Replay {
            file: "a.pcap".into(),
            trace: frames(length),
            speed_ppm: 1_000_000,
            loops,
            loop_gap: Span::from_millis(100),
            least: 64,
        };
        let replayed = |replay: Replay| Send {
            count: u32::try_from(replay.frames()).unwrap(),
            replay: Some(replay),
            ..steady(1)
        };
        assert!(check(replayed(replay(1_000, 3))).is_ok());
        assert!(check(replayed(replay(1_518, 300))).unwrap_err().contains("of its 600 messages"));
        let dense = Replay { loop_gap: Span::from_millis(1), ..replay(1_518, 100) };
        assert!(check(replayed(dense)).unwrap_err().contains("would send 2460800bit/s"));
    }

    #[test]
    fn programs_and_setting_of_clocks_need_a_word_of_the_host() {
        let usual = Allowance::of("").unwrap();
        assert!(usual.check_program("ptp4l").unwrap_err().contains("programs = [\"ptp4l\"]"));
        assert!(usual.check_setting().unwrap_err().contains("may-set-clock = true"));
        let allowed = Allowance::of("programs = [\"ptp4l\"]\nmay-set-clock = true").unwrap();
        assert!(allowed.check_program("ptp4l").is_ok() && allowed.check_program("chronyc").is_err());
        assert!(allowed.check_setting().is_ok());
        assert_eq!(allowed.described().last().unwrap(), "ptp4l; its clocks are set");
    }

    #[test]
    fn a_file_that_says_something_else_is_refused() {
        for (text, why) in [
            ("interface = [\"eth1\"]", "unknown field `interface`"),
            ("addresses = [\"10.20\"]", "\"10.20\" is no range"),
            ("rate = \"fast\"", "rate: "),
            ("duration = \"1\"", "duration: "),
            ("programs = [\"sh\"]", "programs: \"sh\" is none of ptp4l, phc2sys, chronyc"),
            ("may_set_clock = true", "unknown field"),
            ("interfaces = ", "TOML"),
        ] {
            let refused = Allowance::of(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
