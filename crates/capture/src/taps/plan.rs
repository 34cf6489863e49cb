//! The plan that taps themselves imply, if there is no test.

use wg_frame::time::Span;
use wg_plan::{
    Attachment, Bench, Campaign, Fill, Flow, LineRate, Link, Network, NetworkId, Node, NodeIndex, NodeKind,
    PLAN_SCHEMA, Protocol, Receive, Relay, Route, Run, Send, Turn,
};

use crate::taps::order::Order;
use crate::taps::scan::{Contents, Passing};

/// Name of the far end, where a flow was seen by one tap only.
const BEYOND: &str = "beyond the tap";
/// Assumed rate of a line of unknown rate; not used in computations unless timestamps have to be converted.
const SOME_RATE: LineRate = LineRate::GIGABIT;

/// Taps as end systems; flows from the first tap that sees them to the last.
#[expect(clippy::cast_possible_truncation, reason = "there are at most `MOST_TAPS`")]
#[expect(clippy::too_many_lines, reason = "one pass that makes nodes, links and flows of taps together")]
pub(super) fn from_taps(order: &Order, contents: &Contents) -> Campaign {
    let mut nodes: Vec<Node> = (0..)
        .zip(&contents.taps)
        .map(|(index, tap)| {
            Node::new(index, &*tap.name, NodeKind::EndSystem { host: wg_plan::HostModel::default() })
        })
        .collect();
    let beyond = nodes.len() as NodeIndex;
    let mut run = Run { duration: span(contents.last_picos - contents.first_picos), ..Run::default() };
    let mut links: Vec<[NodeIndex; 2]> = Vec::new();
    let mut paths: Vec<Vec<NodeIndex>> = Vec::new();
    let mut ids: Vec<u16> = contents.passing.keys().map(|(flow, _, _)| *flow).collect();
    ids.dedup();
    let mut leads_beyond = false;
    for id in ids {
        let (out, back) = (contents.ways(id, false), contents.ways(id, true));
        let mut path: Vec<NodeIndex> = out.iter().map(|tap| *tap as NodeIndex).collect();
        if path.is_empty() {
            path = back.iter().rev().map(|tap| *tap as NodeIndex).collect();
        }
        if let [only] = path[..] {
            // A returning message was turned round beyond the tap; any other came from beyond it.
            path = if back.is_empty() { vec![beyond, only] } else { vec![only, beyond] };
            leads_beyond = true;
        }
        for pair in path.windows(2) {
            let pair = [pair[0], pair[1]];
            if !links.contains(&pair) && !links.contains(&[pair[1], pair[0]]) {
                links.push(pair);
            }
        }
        let seen: Vec<&Passing> = contents
            .passing
            .range((id, false, 0)..=(id, true, usize::MAX))
            .map(|(_, passing)| passing)
            .collect();
        let in_udp = seen.iter().any(|passing| passing.in_udp);
        let protocol = if in_udp { Protocol::Udp } else { Protocol::Raw };
        let [from, to] = [path.first(), path.last()].map(|node| node.copied().unwrap_or_default());
        let flow = Flow { from, to, ..Flow::plain(id, protocol, Route::default()) };
        paths.push(path);
        if back.is_empty() {
            run.receives.push(Receive { flow: id, on: flow.to });
        } else {
            run.relays.push(Relay {
                flow: id,
                on: flow.to,
                vl: None,
                back: None,
                through: Turn::Servicing,
                faults: Vec::new(),
                detours: Vec::new(),
            });
        }
        run.sends.push(sender(id, &seen, contents.first_picos));
        run.flows.push(flow);
    }
    if leads_beyond {
        nodes.push(Node::new(beyond, BEYOND, NodeKind::EndSystem { host: wg_plan::HostModel::default() }));
    }
    let mut used = vec![0_u16; nodes.len()];
    let mut attach = |node: NodeIndex| {
        let port = &mut used[usize::from(node)];
        *port += 1;
        Attachment { node, port: *port }
    };
    let links = links
        .into_iter()
        .map(|[a, b]| {
            let rate = |node: NodeIndex| contents.taps.get(usize::from(node)).and_then(|tap| tap.rate_bps);
            Link {
                ends: [attach(a), attach(b)],
                rate: rate(a).or(rate(b)).or(order.rate_bps).and_then(LineRate::new).unwrap_or(SOME_RATE),
                delay: Span::ZERO,
                network: NetworkId::A,
            }
        })
        .collect();
    let network = Network { nodes, links };
    for (flow, path) in run.flows.iter_mut().zip(paths) {
        flow.routes = network.route(NetworkId::A, &path).into_iter().collect();
    }
    Campaign {
        schema: PLAN_SCHEMA,
        name: order
            .files
            .first()
            .and_then(|file| file.file_stem())
            .map_or_else(|| "capture".into(), |stem| stem.to_string_lossy().into_owned()),
        seed: 0,
        bench: Bench::default(),
        network,
        axes: Vec::new(),
        repeats: 1,
        runs: vec![run],
        limits: Vec::new(),
        warnings: Vec::new(),
        synchronise: None,
    }
}

/// The sending task that would have produced these messages: numbers up to the greatest, at their mean distance.
fn sender(flow: u16, seen: &[&Passing], begin: i128) -> Send {
    let count = |phase: usize| {
        let greatest = seen.iter().filter_map(|passing| passing.greatest[phase]).max();
        greatest.map_or(0, |number| number.saturating_add(1))
    };
    let most = seen.iter().max_by_key(|passing| passing.frames);
    let period =
        most.map_or(0, |passing| (passing.last - passing.first) / i128::from(passing.frames.max(2) - 1));
    Send {
        offset: span(seen.iter().map(|passing| passing.first).min().unwrap_or(begin) - begin),
        fill: Fill::Sequential,
        warm_up_count: count(1),
        ..Send::periodic(
            flow,
            span(period.max(1)),
            seen.iter().find_map(|passing| passing.payload).map_or(0, u32::from),
            count(0),
        )
    }
}

fn span(picos: i128) -> Span {
    Span::from_picos(i64::try_from(picos).unwrap_or(i64::MAX))
}
