//! Domains of PTP: who takes part, the ports messages pass, and whether there can be a grandmaster.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::check::PointCheck;
use crate::campaign::{Cluster, Hop, PtpClock, PtpDelay, PtpDomain, PtpProfile, PtpRole};
use crate::diagnostic::Findings;
use crate::language::synchronise::ptp_clock;
use crate::network::{Attachment, NodeIndex, NodeKind};
use crate::reader::Sourced;
use crate::statements::{PtpClockStatement, PtpDomainStatement};

/// Ports of a PTP instance that one may have here: each draws from a stream of its own.
const MOST_PORTS: usize = 64;

/// Nodes by what they are to a domain.
struct Members {
    ordinary: Vec<NodeIndex>,
    boundary: Vec<NodeIndex>,
    transparent: Vec<NodeIndex>,
}

impl Members {
    fn is_clock(&self, node: NodeIndex) -> bool {
        self.ordinary.contains(&node) || self.boundary.contains(&node)
    }
}

impl PointCheck<'_> {
    /// Every domain that is whole.
    pub(super) fn ptp_domains(&self, clusters: &[Cluster], found: &mut Findings) -> Vec<PtpDomain> {
        let statements = &self.test.ptp_domains;
        let mut numbers = BTreeSet::new();
        let mut taken: BTreeSet<NodeIndex> = clusters.iter().flat_map(Cluster::devices).collect();
        let mut members = Vec::new();
        for statement in statements {
            if let (Some(number), Some(profile)) = (&statement.number, &statement.profile)
                && !numbers.insert((number.value, profile.value == PtpProfile::Gptp))
            {
                let message = format!("there are two PTP domains with {}", number.named());
                found.error(&number.place, message, "1", "give one of them another number");
            }
            members.push(self.ptp_members(statement, &mut taken, found));
        }
        let boundary: BTreeSet<NodeIndex> =
            members.iter().flatten().flat_map(|one| one.boundary.iter().copied()).collect();
        let whole = statements.iter().zip(&members);
        whole.filter_map(|(one, members)| self.ptp_domain(one, members.as_ref()?, &boundary, found)).collect()
    }

    fn ptp_members(
        &self,
        statement: &PtpDomainStatement,
        taken: &mut BTreeSet<NodeIndex>,
        found: &mut Findings,
    ) -> Option<Members> {
        let mut here = BTreeSet::new();
        let mut resolve = |names: &[Sourced<String>], kind: &str, steers: bool, found: &mut Findings| {
            let mut nodes = Vec::new();
            for name in names {
                let node = self.topology.node(name, found)?;
                let noun = self.topology.noun(node);
                let wanted = if kind == "ordinary" { "end system" } else { "switch" };
                let fits = match self.topology.network.nodes[usize::from(node)].kind {
                    NodeKind::EndSystem { .. } => kind == "ordinary",
                    NodeKind::Switch(_) => kind != "ordinary",
                    NodeKind::Hub { .. } => false,
                };
                if !fits {
                    let message = format!(
                        "{}: no {noun} can be {} {kind} clock",
                        name.named(),
                        if kind == "ordinary" { "an" } else { "a" }
                    );
                    let cure = format!(
                        "name a node that is {} {wanted}",
                        if wanted == "switch" { "a" } else { "an" }
                    );
                    found.error(
                        &name.place,
                        message,
                        format!("{wanted}{}", if wanted == "switch" { "es" } else { "s" }),
                        cure,
                    );
                    return None;
                }
                if !here.insert(node) || (steers && !taken.insert(node)) {
                    let message = format!("{} already has a clock that something else steers", name.named());
                    found.error(&name.place, message, "1 part in 1 domain or cluster", "name it once");
                    return None;
                }
                nodes.push(node);
            }
            Some(nodes)
        };
        let ordinary = resolve(&statement.ordinary, "ordinary", true, found);
        let boundary = resolve(&statement.boundary, "boundary", true, found);
        let transparent = resolve(&statement.transparent, "transparent", false, found);
        statement.named_whole.then_some(())?;
        Some(Members { ordinary: ordinary?, boundary: boundary?, transparent: transparent? })
    }

    fn ptp_domain(
        &self,
        statement: &PtpDomainStatement,
        members: &Members,
        boundary: &BTreeSet<NodeIndex>,
        found: &mut Findings,
    ) -> Option<PtpDomain> {
        let (profile, delay) = (statement.profile.as_ref()?, statement.delay.as_ref()?);
        let is_gptp = profile.value == PtpProfile::Gptp;
        if is_gptp && delay.value == PtpDelay::E2e {
            let message = format!("{} does not go with {}", delay.named(), profile.named());
            found.error(&delay.place, message, "p2p (IEEE Std 802.1AS-2020, 11.1.2)", "remove delay");
            return None;
        }
        if let (true, Some(transparent)) = (is_gptp, statement.transparent.first()) {
            let message = format!("{}: gPTP has no transparent clocks", transparent.named());
            found.error(&transparent.place, message, "", "name the switch in boundary-clocks");
            return None;
        }
        let clocks = self.ptp_clocks(statement, members, profile.value, found)?;
        let passing = |node: NodeIndex| {
            let is_switch =
                matches!(self.topology.network.nodes[usize::from(node)].kind, NodeKind::Switch(_));
            let passes = delay.value == PtpDelay::E2e || members.transparent.contains(&node);
            is_switch && passes && !boundary.contains(&node)
        };
        let ports = self.ptp_ports(members, passing);
        self.ptp_connected(statement, members, &ports, passing, found)?;
        Some(PtpDomain {
            number: statement.number.as_ref()?.value,
            profile: profile.value,
            delay: delay.value,
            log_announce_interval: statement.announce_interval.as_ref()?.value,
            log_sync_interval: statement.sync_interval.as_ref()?.value,
            log_delay_interval: statement.delay_interval.as_ref()?.value,
            announce_timeout: statement.announce_timeout.as_ref()?.value,
            servo: statement.servo.as_ref()?.value,
            pi: statement.pi?,
            priority: statement.priority.as_ref()?.value,
            max_offset: statement.max_offset.as_ref()?.value,
            clocks,
            transparent: members.transparent.clone(),
            ports: ports.into_iter().map(|hop| hop.from).collect(),
        })
    }

    fn ptp_clocks(
        &self,
        statement: &PtpDomainStatement,
        members: &Members,
        profile: PtpProfile,
        found: &mut Findings,
    ) -> Option<Vec<PtpClock>> {
        let priority1 = ptp_clock::PRIORITY1.usual_value_in(profile);
        let priority2 = ptp_clock::PRIORITY2.usual_value_in(profile);
        let all = members.ordinary.iter().chain(&members.boundary);
        let mut clocks: Vec<PtpClock> =
            all.map(|node| PtpClock { node: *node, priority1, priority2, role: PtpRole::Any }).collect();
        let mut written = BTreeSet::new();
        for own in &statement.clocks {
            self.ptp_clock(own, members, &mut clocks, &mut written, found)?;
        }
        let masters = clocks.iter().filter(|clock| clock.role != PtpRole::SlaveOnly).count();
        let only = clocks.iter().filter(|clock| clock.role == PtpRole::GrandmasterOnly).count();
        let (message, limit, cure) = if clocks.len() < 2 {
            ("a PTP domain needs a clock that follows another", "2 clocks", "name more ordinary-clocks")
        } else if masters == 0 {
            ("no clock of the PTP domain can become grandmaster", "1", "remove role from one <ptp-clock>")
        } else if only > 1 {
            ("grandmaster-only clocks never follow one another", "1", "keep one of them")
        } else {
            return Some(clocks);
        };
        found.error(&statement.place, message, limit, cure);
        None
    }

    fn ptp_clock(
        &self,
        own: &PtpClockStatement,
        members: &Members,
        clocks: &mut [PtpClock],
        written: &mut BTreeSet<NodeIndex>,
        found: &mut Findings,
    ) -> Option<()> {
        let name = own.name.as_ref()?;
        let node = self.topology.node(name, found)?;
        let Some(clock) = clocks.iter_mut().find(|clock| clock.node == node) else {
            let message = format!("{} is no ordinary or boundary clock of this domain", name.named());
            let cure = "name it in ordinary-clocks or boundary-clocks as well";
            found.error(&own.place, message, "", cure);
            return None;
        };
        if !written.insert(node) {
            found.error(&own.place, format!("{} stands here twice", name.named()), "1", "merge the two");
            return None;
        }
        let role = own.role.as_ref()?;
        if role.value == PtpRole::SlaveOnly && members.boundary.contains(&node) {
            let message = format!("{} does not go with a boundary clock", role.named());
            let limit = "ordinary clocks (IEEE Std 1588-2019, 9.2.2.1)";
            found.error(&own.place, message, limit, "leave role out");
            return None;
        }
        for (field, written) in
            [(&mut clock.priority1, &own.priority1), (&mut clock.priority2, &own.priority2)]
        {
            if let Some(priority) = written {
                *field = priority.as_ref()?.value;
            }
        }
        clock.role = role.value;
        if role.value == PtpRole::SlaveOnly {
            if let Some(written) = own.priority1.iter().chain(&own.priority2).next() {
                let message = format!("{} has no effect on a slave-only clock", written.as_ref()?.named());
                found.error(&own.place, message, "", "remove it");
                return None;
            }
            // The worst there is: its own data set is compared with what it hears like that of any other.
            (clock.priority1, clock.priority2) = (u8::MAX, u8::MAX);
        }
        Some(())
    }

    /// Directions of links over which messages are sent: from clocks all, from switches they pass through those to clocks
    /// and end systems, and among such switches those of a tree, breadth first from the first of each part.
    fn ptp_ports(&self, members: &Members, passing: impl Fn(NodeIndex) -> bool) -> Vec<Hop> {
        let nodes = || (0..self.topology.leaving.len()).filter_map(|node| NodeIndex::try_from(node).ok());
        let mut reached: BTreeSet<NodeIndex> = BTreeSet::new();
        let mut tree: BTreeSet<u32> = BTreeSet::new();
        for root in nodes().filter(|node| passing(*node)) {
            if !reached.insert(root) {
                continue;
            }
            let mut next = VecDeque::from([root]);
            while let Some(node) = next.pop_front() {
                for hop in &self.topology.leaving[usize::from(node)] {
                    if passing(hop.to.node) && reached.insert(hop.to.node) {
                        tree.insert(hop.link);
                        next.push_back(hop.to.node);
                    }
                }
            }
        }
        let hops = nodes().flat_map(|node| &self.topology.leaving[usize::from(node)]);
        hops.filter(|hop| {
            let (from, to) = (hop.from.node, hop.to.node);
            let takes_part = members.is_clock(from) || passing(from);
            let blocked = passing(from) && passing(to) && !tree.contains(&hop.link);
            takes_part && !blocked && !self.topology.is_hub(to)
        })
        .copied()
        .collect()
    }

    /// Every clock reaches every other one.
    fn ptp_connected(
        &self,
        statement: &PtpDomainStatement,
        members: &Members,
        ports: &[Hop],
        passing: impl Fn(NodeIndex) -> bool,
        found: &mut Findings,
    ) -> Option<()> {
        let mut count: BTreeMap<NodeIndex, usize> = BTreeMap::new();
        for Hop { from: Attachment { node, .. }, .. } in ports {
            *count.entry(*node).or_default() += 1;
        }
        let crowded = members.boundary.iter().find(|node| count.get(node).is_some_and(|n| *n > MOST_PORTS));
        if let Some(node) = crowded {
            let message = format!("the boundary clock \"{}\" has too many ports", self.topology.name(*node));
            found.error(&statement.place, message, format!("{MOST_PORTS}"), "make it a transparent clock");
            return None;
        }
        let all: Vec<NodeIndex> = members.ordinary.iter().chain(&members.boundary).copied().collect();
        let first = *all.first()?;
        let (mut reached, mut next) = (BTreeSet::from([first]), VecDeque::from([first]));
        while let Some(node) = next.pop_front() {
            for hop in ports.iter().filter(|hop| hop.from.node == node) {
                let to = hop.to.node;
                if (passing(to) || members.is_clock(to)) && reached.insert(to) {
                    next.push_back(to);
                }
            }
        }
        let lonely = all.iter().find(|node| !reached.contains(node));
        let Some(lonely) = lonely.filter(|_| self.topology.links_whole) else { return Some(()) };
        let message = format!(
            "no PTP message gets from \"{}\" to \"{}\"",
            self.topology.name(first),
            self.topology.name(*lonely)
        );
        let cure = if statement.delay.as_ref().is_some_and(|delay| delay.value == PtpDelay::P2p) {
            "name every switch between them in boundary-clocks or transparent-clocks: peers measure delays link by link"
        } else {
            "add the link that joins their parts of the network, without a hub"
        };
        found.error(&statement.place, message, "", cure);
        None
    }
}
