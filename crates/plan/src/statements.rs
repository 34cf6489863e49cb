//! The typed statements of a test: every value has its unit and remembers where it was written, but nothing
//! refers to anything yet.

use wg_frame::time::Span;

use crate::campaign::{Bound, Fill, Protocol, Turn};
use crate::diagnostic::{Findings, Place};
use crate::quantity::{self, Kind};
use crate::reader::{Maybe, Reader, Sourced};
use crate::topology::MOST_PORTS;
use crate::tree::Element;

#[derive(Clone, Debug)]
pub(crate) struct NodeStatement {
    pub(crate) place: Place,
    pub(crate) name: Maybe<String>,
    /// Buffer in bytes for a switch; `None` for an end system.
    pub(crate) switch: Option<Maybe<u64>>,
}

#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) node: String,
    pub(crate) port: Option<u16>,
}

#[derive(Clone, Debug)]
pub(crate) struct LinkStatement {
    pub(crate) place: Place,
    pub(crate) ends: Option<[End; 2]>,
    pub(crate) rate: Maybe<u64>,
    pub(crate) delay: Maybe<Span>,
}

#[derive(Clone, Debug)]
pub(crate) struct FlowStatement {
    pub(crate) place: Place,
    pub(crate) id: Maybe<u16>,
    pub(crate) protocol: Maybe<Protocol>,
    pub(crate) from: Maybe<String>,
    pub(crate) to: Maybe<String>,
    pub(crate) deadline: Maybe<Span>,
    pub(crate) vlan: Maybe<u16>,
    pub(crate) priority: Maybe<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct SendStatement {
    pub(crate) place: Place,
    pub(crate) flow: Maybe<u16>,
    pub(crate) period: Maybe<Span>,
    pub(crate) payload: Maybe<u32>,
    pub(crate) fill: Maybe<Fill>,
    /// Outer `None`: no count was written.
    pub(crate) count: Option<Maybe<u32>>,
    pub(crate) offset: Maybe<Span>,
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiveStatement {
    pub(crate) place: Place,
    pub(crate) flow: Maybe<u16>,
    pub(crate) on: Option<Maybe<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultStatement {
    pub(crate) place: Place,
    pub(crate) kind: Maybe<String>,
    /// Ascending.
    pub(crate) sequences: Maybe<Vec<(u32, u32)>>,
    pub(crate) to: Option<Maybe<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct RelayStatement {
    pub(crate) place: Place,
    pub(crate) flow: Maybe<u16>,
    pub(crate) on: Option<Maybe<String>>,
    pub(crate) through: Maybe<Turn>,
    pub(crate) faults: Vec<FaultStatement>,
}

#[derive(Clone, Debug)]
pub(crate) struct InjectStatement {
    pub(crate) place: Place,
    pub(crate) on: Maybe<String>,
    pub(crate) to: Maybe<String>,
    pub(crate) load: Maybe<u32>,
    pub(crate) payload: Maybe<u32>,
    pub(crate) burst: Maybe<u32>,
}

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
    pub(crate) flow: Option<Maybe<u16>>,
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
    pub(crate) nodes: Vec<NodeStatement>,
    pub(crate) links: Vec<LinkStatement>,
    pub(crate) flows: Vec<FlowStatement>,
    pub(crate) tasks: Place,
    pub(crate) warm_up: Maybe<Span>,
    /// Outer `None`: not written.
    pub(crate) duration: Option<Maybe<Span>>,
    pub(crate) drain: Option<Maybe<Span>>,
    pub(crate) sends: Vec<SendStatement>,
    pub(crate) receives: Vec<ReceiveStatement>,
    pub(crate) relays: Vec<RelayStatement>,
    pub(crate) injects: Vec<InjectStatement>,
    pub(crate) sweep: Option<Place>,
    pub(crate) axes: Vec<AxisStatement>,
    pub(crate) repeats: Maybe<u32>,
    pub(crate) limits: Vec<LimitStatement>,
}

/// Switch buffer where none is written: what a small COTS switch shares among its ports.
const DEFAULT_BUFFER: &str = "512KiB";
/// Seed where none is written; a fixed one, so that the same file always means the same test.
const DEFAULT_SEED: &str = "1";
const INJECT_PAYLOAD: &str = "1472B";
const INJECT_BURST: &str = "10";

/// The two names of the protocols.
pub(crate) const PROTOCOLS: [(&str, Protocol); 2] = [("udp", Protocol::Udp), ("raw", Protocol::Raw)];
/// How a payload can be filled.
pub(crate) const FILLS: [(&str, Fill); 2] = [("sequential", Fill::Sequential), ("random", Fill::Random)];
/// Where a relay can turn a message round.
pub(crate) const TURNS: [(&str, Turn); 2] = [("servicing", Turn::Servicing), ("task", Turn::Task)];
/// Frames of one burst of an injector, at most.
pub(crate) const MOST_BURST: u64 = 10_000;

/// Links, flows, tasks of one kind, or limits of a test. Several checks compare each with each; the bound keeps
/// that a matter of a second whatever the file.
const MOST_OF_A_KIND: usize = 4_096;
/// Values of one axis; more could not be run anyway.
const MOST_VALUES: usize = 10_000;

/// Reads the whole tree.
pub(crate) fn read(tree: &Element, found: &mut Findings) -> Statements {
    let none = Element::default();
    let section = |tag: &str, found: &mut Findings| {
        let mut all = tree.children.iter().filter(|child| child.tag == tag);
        let first = all.next();
        if let Some(second) = all.next() {
            found.error(&second.place(), format!("<{tag}> stands here a second time"), "1", "merge the two");
        }
        first.unwrap_or(&none)
    };
    if tree.tag != "test" {
        let cure = "begin the file with <test xmlns=\"urn:wiregauge:test:1\" name=\"…\">";
        found.error(&tree.place(), "the outermost element is not <test>", "", cure);
    }
    let network = section("network", found);
    let flows = section("flows", found);
    let tasks = section("tasks", found);
    let sweep = section("sweep", found);
    let limits = section("limits", found);
    let mut test = Reader::new(tree, found);
    let name = test.required("name").and_then(|written| test_name(&mut test, written));
    let seed = test.element.get("seed").unwrap_or(DEFAULT_SEED);
    let seed = test.whole("seed", seed, 0, u64::MAX);
    let place = test.place;
    let mut timing = Reader::new(tasks, found);
    let warm_up = timing.time_or("warm-up", "0s");
    let (duration, drain) = (timing.time("duration"), timing.time("drain"));
    let tasks_place = timing.place;
    Statements {
        place,
        name,
        seed,
        nodes: network.children.iter().filter_map(|e| node(e, found)).collect(),
        links: several(network, "link", link, found),
        flows: several(flows, "flow", flow, found),
        tasks: tasks_place,
        warm_up,
        duration,
        drain,
        sends: several(tasks, "send", send, found),
        receives: several(tasks, "receive", receive, found),
        relays: several(tasks, "relay", relay, found),
        injects: several(tasks, "inject", inject, found),
        sweep: (sweep.tag == "sweep").then(|| sweep.place()),
        axes: sweep.all("axis").map(|e| axis(e, found)).collect(),
        repeats: repeats(sweep, found),
        limits: several(limits, "limit", limit, found),
    }
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

fn test_name(reader: &mut Reader<'_>, written: &str) -> Maybe<String> {
    let fits = (1..=64).contains(&written.len())
        && written.starts_with(|c: char| c.is_ascii_alphanumeric())
        && written.chars().all(|c| c.is_ascii_alphanumeric() || " ._-".contains(c));
    if fits {
        return Some(reader.sourced("name", written, written.to_owned()));
    }
    let limit = "1 to 64 of A-Z a-z 0-9 space . _ -, the first a letter or digit";
    reader.refuse("name", written, "is not a name of a test", limit, "choose a name within the limit");
    None
}

fn node(element: &Element, found: &mut Findings) -> Option<NodeStatement> {
    let is_switch = element.tag == "switch";
    if !is_switch && element.tag != "end-system" {
        return None;
    }
    let mut reader = Reader::new(element, found);
    let name = reader.name("name");
    let switch = is_switch.then(|| {
        let kind = element.get("kind").unwrap_or("cots");
        reader.choice("kind", kind, &[("cots", ())]);
        let written = element.get("buffer").unwrap_or(DEFAULT_BUFFER);
        let buffer = reader.quantity("buffer", written, Kind::Size, quantity::size)?;
        if (2_048..=1 << 30).contains(&buffer.value) {
            return Some(buffer);
        }
        let cure = "write a size within the limit";
        reader.refuse("buffer", written, "is out of range", "2KiB to 1024MiB", cure);
        None
    });
    Some(NodeStatement { place: reader.place, name, switch })
}

fn link(element: &Element, found: &mut Findings) -> LinkStatement {
    let mut reader = Reader::new(element, found);
    let ends = reader.required("between").and_then(|written| link_ends(&mut reader, written));
    let rate = reader.required("rate").and_then(|written| {
        let rate = reader.quantity("rate", written, Kind::Rate, quantity::rate)?;
        check_rate(&rate, reader.found).then_some(rate)
    });
    let delay = reader.time_or("delay", "0ns").filter(|delay| {
        let fits = delay.value <= Span::from_millis(10_000);
        if !fits {
            let cure = "write the propagation delay, about 5ns per metre of cable";
            reader.refuse("delay", &delay.written, "is out of range", "10s", cure);
        }
        fits
    });
    LinkStatement { place: reader.place, ends, rate, delay }
}

/// Refuses rates no Ethernet has; true when the rate is sensible.
pub(crate) fn check_rate(rate: &Sourced<u64>, found: &mut Findings) -> bool {
    let sensible = (1_000_000..=400_000_000_000).contains(&rate.value);
    if !sensible {
        let message = format!("{} is no rate of an Ethernet link", rate.named());
        let cure = "write the rate of the link, for example 1Gbit/s";
        found.error(&rate.place, message, "1Mbit/s to 400Gbit/s", cure);
    }
    sensible
}

fn link_ends(reader: &mut Reader<'_>, written: &str) -> Option<[End; 2]> {
    let words: Vec<&str> = written.split_whitespace().collect();
    let [a, b] = words[..] else {
        let problem = format!("names {} ends", words.len());
        let cure = "write two names, for example \"mac sw1\" or \"mac sw1:3\"";
        reader.refuse("between", written, &problem, "2", cure);
        return None;
    };
    let end = |word: &str, reader: &mut Reader<'_>| {
        let (name, port) = match word.split_once(':') {
            Some((name, port)) => {
                (name, Some(reader.whole::<u16>("port", port, 1, u64::from(MOST_PORTS))?.value))
            }
            None => (word, None),
        };
        reader.name_of("between", name).map(|name| End { node: name.value, port })
    };
    let (a, b) = (end(a, reader), end(b, reader));
    Some([a?, b?])
}

fn flow(element: &Element, found: &mut Findings) -> FlowStatement {
    let mut reader = Reader::new(element, found);
    FlowStatement {
        id: reader.flow_id("id"),
        protocol: reader.required("protocol").and_then(|w| reader.choice("protocol", w, &PROTOCOLS)),
        from: reader.name("from"),
        to: reader.name("to"),
        deadline: reader.time("deadline").flatten().filter(|deadline| {
            let fits = deadline.value > Span::ZERO;
            if !fits {
                let cure = "write the largest latency a message may have";
                reader.refuse("deadline", &deadline.written, "is zero", "more than 0s", cure);
            }
            fits
        }),
        vlan: element.get("vlan").and_then(|w| reader.whole("vlan", w, 1, 4_094)),
        priority: element.get("priority").and_then(|w| reader.whole("priority", w, 0, 7)),
        place: reader.place,
    }
}

fn send(element: &Element, found: &mut Findings) -> SendStatement {
    let mut reader = Reader::new(element, found);
    SendStatement {
        flow: reader.flow_id("flow"),
        period: reader
            .required("period")
            .and_then(|written| reader.quantity("period", written, Kind::Time, quantity::time)),
        payload: reader.payload(element.get("payload")),
        fill: reader.choice("fill", element.get("fill").unwrap_or("sequential"), &FILLS),
        count: element.get("count").map(|w| reader.whole("count", w, 1, u64::from(u32::MAX))),
        offset: reader.time_or("offset", "0s"),
        place: reader.place,
    }
}

fn receive(element: &Element, found: &mut Findings) -> ReceiveStatement {
    let mut reader = Reader::new(element, found);
    ReceiveStatement {
        flow: reader.flow_id("flow"),
        on: element.get("on").map(|_| reader.name("on")),
        place: reader.place,
    }
}

fn relay(element: &Element, found: &mut Findings) -> RelayStatement {
    let mut reader = Reader::new(element, found);
    let flow = reader.flow_id("flow");
    let on = element.get("on").map(|_| reader.name("on"));
    let through = reader.choice("through", element.get("through").unwrap_or("servicing"), &TURNS);
    let place = reader.place;
    let faults = element.all("fault").map(|e| fault(e, found)).collect();
    RelayStatement { place, flow, on, through, faults }
}

fn fault(element: &Element, found: &mut Findings) -> FaultStatement {
    let kinds = ["drop", "duplicate", "swap", "corrupt", "misdirect"].map(|kind| (kind, kind));
    let mut reader = Reader::new(element, found);
    let kind = reader.required("kind").and_then(|written| reader.choice("kind", written, &kinds));
    FaultStatement {
        kind: kind.map(|kind| reader.sourced("kind", kind.value, kind.value.to_owned())),
        sequences: reader.required("sequence").and_then(|written| sequences(&mut reader, written)),
        to: element.get("to").map(|_| reader.name("to")),
        place: reader.place,
    }
}

fn sequences(reader: &mut Reader<'_>, written: &str) -> Maybe<Vec<(u32, u32)>> {
    let highest = u64::from(u32::MAX);
    let mut ranges = Vec::new();
    for word in written.split_whitespace() {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let first: u32 = reader.whole("sequence", first, 0, highest)?.value;
        let last: u32 = reader.whole("sequence", last, 0, highest)?.value;
        if last < first {
            reader.refuse("sequence", word, "runs backwards", "", "write the smaller number first");
            return None;
        }
        ranges.push((first, last));
    }
    if ranges.is_empty() {
        let cure = "name sequence numbers, for example \"5 17 100-110\"";
        reader.refuse("sequence", written, "names no message", "", cure);
        return None;
    }
    ranges.sort_unstable();
    Some(reader.sourced("sequence", written, ranges))
}

fn inject(element: &Element, found: &mut Findings) -> InjectStatement {
    let mut reader = Reader::new(element, found);
    let load = reader
        .required("load")
        .and_then(|written| reader.quantity("load", written, Kind::Ratio, quantity::ppm));
    let burst = element.get("burst").unwrap_or(INJECT_BURST);
    InjectStatement {
        on: reader.name("on"),
        to: reader.name("to"),
        load,
        payload: reader.payload(Some(element.get("payload").unwrap_or(INJECT_PAYLOAD))),
        burst: reader.whole("burst", burst, 1, MOST_BURST),
        place: reader.place,
    }
}

fn axis(element: &Element, found: &mut Findings) -> AxisStatement {
    let mut reader = Reader::new(element, found);
    let of = reader.required("of").map(|of| reader.sourced("of", of, of.to_owned()));
    let written = reader.required("values");
    let words = written.unwrap_or("").split_whitespace();
    let values: Vec<String> = words.take(MOST_VALUES + 1).map(ToOwned::to_owned).collect();
    if values.len() > MOST_VALUES {
        let message = "the axis lists too many values";
        reader.found.error(&reader.place, message, MOST_VALUES.to_string(), "use fewer values");
        return AxisStatement { of, values: Vec::new(), flows: None, place: reader.place };
    }
    if let (Some(written), true) = (written, values.is_empty()) {
        let cure = "list values with spaces between, or remove the axis";
        reader.refuse("values", written, "lists no value", "at least 1", cure);
    }
    AxisStatement { of, values, flows: reader.flow_list(), place: reader.place }
}

fn repeats(sweep: &Element, found: &mut Findings) -> Maybe<u32> {
    let empty = Element { tag: "repeat".into(), line: sweep.line, ..Element::default() };
    let mut all = sweep.children.iter().filter(|child| child.tag == "repeat");
    let first = all.next();
    if let Some(second) = all.next() {
        let message = "<repeat> stands here a second time";
        found.error(&second.place(), message, "1", "keep one of them");
    }
    let mut reader = Reader::new(first.unwrap_or(&empty), found);
    let written = if first.is_some() { reader.required("times")? } else { "1" };
    reader.whole("times", written, 1, 10_000)
}

fn limit(element: &Element, found: &mut Findings) -> LimitStatement {
    let mut reader = Reader::new(element, found);
    let measure = reader.required("measure").map(|m| reader.sourced("measure", m, m.to_owned()));
    let flow = element.get("flow").map(|w| reader.whole("flow", w, 1, 65_534));
    let bound = match (element.get("at-most"), element.get("at-least")) {
        (Some(value), None) => Some((Bound::AtMost, reader.sourced("at-most", value, ()))),
        (None, Some(value)) => Some((Bound::AtLeast, reader.sourced("at-least", value, ()))),
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
    LimitStatement { place: reader.place, flow, measure, bound }
}
