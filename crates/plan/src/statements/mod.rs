//! The typed statements of a test: every value has its unit and remembers where it was written, but nothing
//! refers to anything yet.

mod addresses;
mod clusters;
mod faults;
mod flows;
mod frer;
mod host_tsn;
mod parts;
mod ptp;
mod replay;
mod reservations;
mod sending;
mod shaping;
mod stream_filters;
mod switch_tsn;
mod synchronise;
mod tasks;
mod tsn;

use wg_frame::time::Span;

use crate::campaign::{Bench, Bound};
use crate::diagnostic::{Findings, Place};
use crate::language::attribute::Attribute;
use crate::language::judging::{axis as varied, limit as bound, repeat};
use crate::language::network::{network as section_network, test as whole};
use crate::language::tasks::tasks as timing;
use crate::network::{HostModels, LinkStatement, NodeStatement};
use crate::reader::{Maybe, Reader, Sourced};
use crate::trace::Captures;
use crate::tree::Element;

pub(crate) use clusters::ClusterStatement;
pub(crate) use faults::{Babble, FrameFault, FrameFaultKind, NetworkFault, NetworkFaultKind, Pace, Whom};
pub(crate) use flows::{Carriage, FlowStatement, PathStatement, homes};
pub(crate) use frer::FrerStatement;
pub(crate) use host_tsn::{HostTsnStatement, host_tsn};
pub(crate) use parts::{End, MOST_OF_A_KIND, link_ends, only};
pub(crate) use ptp::{PtpClockStatement, PtpDomainStatement};
pub(crate) use reservations::ReservationStatement;
pub(crate) use sending::SendStatement;
pub(crate) use shaping::{RampEnd, Shaping};
pub(crate) use switch_tsn::{SwitchTsnStatement, switch_tsn};
pub(crate) use synchronise::SynchroniseStatement;
pub(crate) use tasks::{
    CaptureStatement, FaultStatement, InjectStatement, ReceiveStatement, RelayStatement, RemoteLogStatement,
};

#[derive(Clone, Debug)]
pub(crate) struct AxisStatement {
    pub(crate) place: Place,
    pub(crate) of: Maybe<String>,
    /// Values as written.
    pub(crate) values: Vec<String>,
    /// Flows the axis is restricted to; `None`: all.
    pub(crate) flows: Option<Maybe<Vec<u16>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct LimitStatement {
    pub(crate) place: Place,
    pub(crate) flows: Option<Maybe<Vec<u16>>>,
    pub(crate) measure: Maybe<String>,
    /// Bound and value as written; `None` when neither or both were given.
    pub(crate) bound: Option<(Bound, Sourced<()>)>,
}

/// All statements of a test, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Statements {
    pub(crate) place: Place,
    pub(crate) name: Maybe<String>,
    pub(crate) seed: Maybe<u64>,
    pub(crate) bench: Bench,
    pub(crate) nodes: Vec<NodeStatement>,
    pub(crate) links: Vec<LinkStatement>,
    /// Of several ways the shortest is taken.
    pub(crate) shortest: bool,
    pub(crate) synchronise: Option<SynchroniseStatement>,
    pub(crate) clusters: Vec<ClusterStatement>,
    pub(crate) ptp_domains: Vec<PtpDomainStatement>,
    pub(crate) flows: Vec<FlowStatement>,
    /// Share of a port that reserved streams may have together, ppm.
    pub(crate) reservable: u32,
    pub(crate) tasks: Place,
    pub(crate) warm_up: Maybe<Span>,
    /// Outer `None`: not written.
    pub(crate) duration: Option<Maybe<Span>>,
    pub(crate) drain: Option<Maybe<Span>>,
    /// Measured flows may take more than a link behind a switch carries.
    pub(crate) overload: bool,
    pub(crate) sends: Vec<SendStatement>,
    pub(crate) receives: Vec<ReceiveStatement>,
    pub(crate) relays: Vec<RelayStatement>,
    pub(crate) injects: Vec<InjectStatement>,
    pub(crate) remote_logs: Vec<RemoteLogStatement>,
    pub(crate) captures: Vec<CaptureStatement>,
    pub(crate) faults: Vec<NetworkFault>,
    pub(crate) sweep: Option<Place>,
    pub(crate) axes: Vec<AxisStatement>,
    pub(crate) repeats: Maybe<u32>,
    pub(crate) limits: Vec<LimitStatement>,
}

/// Values of one axis; more could not be run anyway.
const MOST_VALUES: usize = 10_000;

/// Reads the whole tree.
#[expect(clippy::too_many_lines, reason = "one section after the other")]
pub(crate) fn read(tree: &Element, captures: &dyn Captures, found: &mut Findings) -> Statements {
    let none = Element::default();
    let section =
        |tag, found: &mut Findings| parts::single(tree, tag, "merge the two", found).unwrap_or(&none);
    if tree.tag != "test" {
        let cure = "begin the file with <test xmlns=\"urn:wiregauge:test:2\" name=\"…\">";
        found.error(&tree.place(), "the outermost element is not <test>", "", cure);
    }
    let nodes = section("network", found);
    let flow_list = section("flows", found);
    let task_list = section("tasks", found);
    let sweep = section("sweep", found);
    let fault_list = section("faults", found);
    let limits = section("limits", found);
    let clocks = section("synchronise", found);
    let mut test = Reader::new(tree, found);
    let (name, seed) = (test.read(&whole::NAME), test.read(&whole::SEED));
    let bench = test.value(&whole::BENCH).unwrap_or_default();
    let place = test.place;
    let shortest = Reader::new(nodes, found).value(&section_network::ROUTING);
    let hosts = HostModels::new(nodes, found);
    let mut times = Reader::new(task_list, found);
    let warm_up = times.read(&timing::WARM_UP);
    let (duration, drain) = (times.optional(&timing::DURATION), times.optional(&timing::DRAIN));
    // What could not be read may have meant it.
    let overload = times.value(&timing::OVERLOAD).unwrap_or(true);
    let tasks_place = times.place;
    let node_statements: Vec<_> =
        nodes.children.iter().filter_map(|e| NodeStatement::read(e, &hosts, found)).collect();
    let links = several(nodes, "link", LinkStatement::read, found);
    let reservable = reservations::reservable(flow_list, found);
    let mut flow_statements = several(flow_list, "flow", flows::flow, found);
    let synchronise = synchronise::synchronise(clocks, &flow_statements, found);
    let exchanges = synchronise.as_ref().map_or_else(Default::default, |statement| {
        synchronise::exchanges(statement, &node_statements, &flow_statements, found)
    });
    flow_statements.extend(exchanges.flows);
    let mut sends = several(task_list, "send", tasks::send, found);
    sends.extend(several(task_list, "replay", |e, found| replay::replay(e, captures, found), found));
    sends.extend(exchanges.sends);
    let receives = several(task_list, "receive", tasks::receive, found);
    let mut relays = several(task_list, "relay", tasks::relay, found);
    relays.extend(exchanges.relays);
    Statements {
        place,
        name,
        seed,
        bench,
        nodes: node_statements,
        links,
        shortest: shortest.unwrap_or_default(),
        synchronise,
        clusters: several(clocks, "as6802", clusters::cluster, found),
        ptp_domains: several(clocks, "ptp-domain", ptp::domain, found),
        flows: flow_statements,
        reservable,
        tasks: tasks_place,
        warm_up,
        duration,
        drain,
        overload,
        sends,
        receives,
        relays,
        injects: several(task_list, "inject", tasks::inject, found),
        remote_logs: several(task_list, "remote-log", tasks::remote_log, found),
        captures: several(task_list, "capture", tasks::capture, found),
        faults: network_faults(fault_list, found),
        sweep: (sweep.tag == "sweep").then(|| sweep.place()),
        axes: sweep.all("axis").map(|e| axis(e, found)).collect(),
        repeats: repeats(sweep, found),
        limits: several(limits, "limit", limit, found),
    }
}

/// Reads the faults of the network, up to [`MOST_OF_A_KIND`].
fn network_faults(section: &Element, found: &mut Findings) -> Vec<NetworkFault> {
    if let Some(beyond) = section.children.get(MOST_OF_A_KIND) {
        let message = format!("there are more than {MOST_OF_A_KIND} faults");
        found.error(&beyond.place(), message, MOST_OF_A_KIND.to_string(), "split the test");
    }
    let all = section.children.iter().take(MOST_OF_A_KIND);
    all.filter_map(|element| faults::network_fault(element, found)).collect()
}

/// Reads every child with this tag, up to [`MOST_OF_A_KIND`].
fn several<T>(
    parent: &Element,
    tag: &str,
    read: impl Fn(&Element, &mut Findings) -> T,
    found: &mut Findings,
) -> Vec<T> {
    if let Some(beyond) = parent.all(tag).nth(MOST_OF_A_KIND) {
        let message = format!("there are more than {MOST_OF_A_KIND} <{tag}> elements");
        found.error(&beyond.place(), message, MOST_OF_A_KIND.to_string(), "split the test");
    }
    parent.all(tag).take(MOST_OF_A_KIND).map(|element| read(element, found)).collect()
}

fn axis(element: &Element, found: &mut Findings) -> AxisStatement {
    let mut reader = Reader::new(element, found);
    let of = as_written(&mut reader, &varied::OF);
    let written = reader.written(&varied::VALUES);
    let words = written.unwrap_or("").split_whitespace();
    let values: Vec<String> = words.take(MOST_VALUES + 1).map(ToOwned::to_owned).collect();
    if values.len() > MOST_VALUES {
        let message = "the axis lists too many values";
        reader.found.error(&reader.place, message, MOST_VALUES.to_string(), "use fewer values");
        return AxisStatement { of, values: Vec::new(), flows: None, place: reader.place };
    }
    if let (Some(written), true) = (written, values.is_empty()) {
        let cure = "list values with spaces between, or remove the axis";
        reader.refuse(varied::VALUES.name, written, "lists no value", "at least 1", cure);
    }
    AxisStatement { of, values, flows: reader.optional(&varied::FLOW), place: reader.place }
}

/// An attribute whose text is judged later.
fn as_written<T>(reader: &mut Reader<'_>, attribute: &Attribute<T>) -> Maybe<String> {
    let written = reader.written(attribute)?;
    Some(reader.sourced(attribute.name, written, written.to_owned()))
}

fn repeats(sweep: &Element, found: &mut Findings) -> Maybe<u32> {
    match only(sweep, "repeat", found) {
        Some(element) => Reader::new(element, found).read(&repeat::TIMES),
        None => Some(Reader::new(sweep, found).sourced(repeat::TIMES.name, "1", 1)),
    }
}

fn limit(element: &Element, found: &mut Findings) -> LimitStatement {
    let mut reader = Reader::new(element, found);
    let measure = as_written(&mut reader, &bound::MEASURE);
    let flows = reader.optional(&bound::FLOW);
    let bound = match (reader.text(&bound::AT_MOST), reader.text(&bound::AT_LEAST)) {
        (Some(value), None) => Some((Bound::AtMost, reader.sourced(bound::AT_MOST.name, value, ()))),
        (None, Some(value)) => Some((Bound::AtLeast, reader.sourced(bound::AT_LEAST.name, value, ()))),
        (None, None) => {
            let cure = "add at-most=\"…\" or at-least=\"…\"";
            reader.found.error(&reader.place, "the limit has no bound", "", cure);
            None
        }
        (Some(_), Some(_)) => {
            let message = "the limit has two bounds, at-most and at-least";
            reader.found.error(&reader.place, message, "1 bound", "write two <limit> elements");
            None
        }
    };
    LimitStatement { place: reader.place, flows, measure, bound }
}
