//! Domains of clocks that synchronise by PTP.

use statime::config::{ClockIdentity, InstanceConfig, SdoId, TimePropertiesDS, TimeSource};
use wg_frame::time::{RunTime, Span};
use wg_plan::{IncidentKind, Network, NodeIndex, PtpClock, PtpDelay, PtpDomain, PtpProfile, PtpRole, Run};

use crate::error::SimError;
use crate::ptp::instance::Shared;
use crate::ptp::{DomainState, Part, Ptp, PtpNode};
use crate::world::{CoreIndex, World};

/// majorSdoId and minorSdoId: of 802.1AS (8.1), and of all other profiles.
const SDO: [(PtpProfile, u16); 2] = [(PtpProfile::Default, 0), (PtpProfile::Gptp, 0x100)];
/// How long an offset has to be small for a clock to count as synchronised, in sync intervals.
const HOLD: i64 = 8;

/// The clocks of a domain that have a PTP instance: transparent ones only if they measure link delays.
fn clocks(domain: &PtpDomain) -> impl Iterator<Item = (PtpClock, bool)> + '_ {
    let measures = domain.delay == PtpDelay::P2p;
    let role = PtpRole::SlaveOnly;
    let peer = move |node: &NodeIndex| (PtpClock { node: *node, priority1: 255, priority2: 255, role }, true);
    let peers = domain.transparent.iter().filter(move |_| measures).map(peer);
    domain.clocks.iter().map(|clock| (*clock, false)).chain(peers)
}

/// Shared state of instances, one for each time a clock is powered up: ports borrow it.
pub(crate) fn shared(network: &Network, run: &Run) -> Vec<Vec<Shared>> {
    let restarts = |node: NodeIndex| {
        let of =
            |kind: &IncidentKind| matches!(kind, IncidentKind::Restart { switch, .. } if *switch == node);
        run.incidents.iter().filter(|incident| of(&incident.kind)).count()
    };
    let one = |domain: &PtpDomain, clock: &PtpClock| {
        let sdo = SDO[usize::from(domain.profile == PtpProfile::Gptp)].1;
        let config = InstanceConfig {
            clock_identity: ClockIdentity::from_mac_address(network.nodes[usize::from(clock.node)].mac.0),
            priority_1: clock.priority1,
            priority_2: clock.priority2,
            domain_number: domain.number,
            slave_only: clock.role == PtpRole::SlaveOnly,
            sdo_id: SdoId::try_from(sdo).unwrap_or_default(),
            path_trace: domain.profile == PtpProfile::Gptp,
        };
        let scale = TimePropertiesDS::new_arbitrary_time(false, false, TimeSource::InternalOscillator);
        Shared::new(config, scale)
    };
    let all = run.ptp_domains.iter().flat_map(|domain| clocks(domain).map(move |clock| (domain, clock)));
    all.map(|(domain, (clock, _))| (0..=restarts(clock.node)).map(|_| one(domain, &clock)).collect())
        .collect()
}

/// The domains of `run`, before any clock is powered up.
pub(crate) fn domains<'a>(
    world: &World,
    network: &Network,
    run: &Run,
    shared: &'a [Vec<Shared>],
) -> Result<Ptp<'a>, SimError> {
    let mut ptp = Ptp::default();
    let mut shared = shared.iter();
    for (number, plan) in run.ptp_domains.iter().enumerate() {
        let mut state = DomainState {
            plan: plan.clone(),
            ports: [].into(),
            clocks: Vec::new(),
            hold: Span::from_picos(sync_interval(plan).as_picos() * HOLD),
            grandmaster: None,
            changes: 0,
            synchronised_at: None,
            spread: None,
        };
        for at in &plan.ports {
            let index = port_index(world, at.node, at.port);
            let index = index
                .ok_or_else(|| SimError::plan("a PTP domain has a port that is not there".to_owned()))?;
            state.ports.entry(at.node).or_default().push(index);
        }
        for (clock, is_transparent) in clocks(plan) {
            let node = clock.node;
            let twice = ptp.clock_of.contains_key(&node)
                || run.clusters.iter().any(|c| c.devices().any(|d| d == node));
            let Some(kind) = network.nodes.get(usize::from(node)).filter(|_| is_transparent || !twice) else {
                return Err(SimError::plan(format!("node {node} is no PTP clock, or two")));
            };
            let part = match (is_transparent, kind.is_end_system()) {
                (true, _) => Part::Transparent,
                (false, true) => Part::Ordinary,
                (false, false) => Part::Boundary,
            };
            let place = ptp.nodes.len();
            if is_transparent {
                ptp.transparent_of.insert((number, node), place);
            } else {
                ptp.clock_of.insert(node, place);
                state.clocks.push(place);
            }
            ptp.nodes.push(PtpNode {
                node,
                domain: number,
                part,
                instance: None,
                powered: RunTime::ZERO,
                shared: shared.next().into_iter().flatten().collect(),
                states: Vec::new(),
                grandmaster: None,
                is_synchronised: false,
                within_since: None,
                synchronised_at: None,
                losses: 0,
                most: None,
                error: Span::ZERO,
                apart: Span::ZERO,
                refused: 0,
            });
        }
        ptp.domains.push(state);
    }
    Ok(ptp)
}

fn sync_interval(plan: &PtpDomain) -> Span {
    const SECOND: i64 = 1_000_000_000_000;
    let log = plan.log_sync_interval.clamp(-16, 16);
    Span::from_picos(if log < 0 { SECOND >> -log } else { SECOND << log })
}

fn port_index(world: &World, node: NodeIndex, port: u16) -> Option<usize> {
    match world.nodes.get(usize::from(node))?.place {
        CoreIndex::Host(at) => world.hosts[at as usize].ports.iter().position(|own| own.number == port),
        CoreIndex::Switch(at) => world.switches[at as usize].ports.iter().position(|own| own.number == port),
        CoreIndex::Hub(_) => None,
    }
}
