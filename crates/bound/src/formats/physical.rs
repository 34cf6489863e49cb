//! Physical networks in XML, as WoPANets, xTFA and Saihu read them: stations, switches, links and flows between them.
//!
//! A server is an output port of a station or a switch, named `node-port`. A link is full duplex; attributes of one
//! direction hold for the other too, unless that is written as well. Frames of a flow with a period cost `8 · max(84,
//! max-payload + overhead)` bits of an AFDX network: 84 B are the shortest frame with preamble and gap.

use std::collections::BTreeMap;

use wg_plan::{Diagnostic, Element};

use crate::curve::{Bucket, RateLatency};
use crate::formats::units::{self, Kind, shown};
use crate::model::{Flow, Limit, Model, Multiplexing, Passage, Server, Wishes, problem};
use crate::rational::Rational;

/// Shortest Ethernet frame with preamble and gap, in bytes.
const SHORTEST_ON_WIRE: i128 = 84;

/// Meaning of a number without a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    /// Base unit times `10^power`.
    Power(i32),
    /// Bytes.
    Bytes,
    /// Tools differ, so that only zero needs no unit.
    Disputed,
}

struct Node<'a> {
    element: &'a Element,
    is_switch: bool,
}

struct Port {
    server: usize,
    /// Index of the node at the other end of the link.
    to: usize,
}

struct Reading<'a> {
    network: &'a Element,
    nodes: Vec<Node<'a>>,
    places: BTreeMap<&'a str, usize>,
    /// Output ports of each node.
    ports: Vec<Vec<Port>>,
    found: Vec<Diagnostic>,
}

fn get<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    element.attributes.get(name).map(String::as_str)
}

fn called(element: &Element) -> String {
    match get(element, "name") {
        Some(name) => format!("<{} name=\"{}\">", element.tag, shown(name)),
        None => format!("<{}>", element.tag),
    }
}

impl<'a> Reading<'a> {
    fn say(&mut self, element: &Element, message: &str, limit: &str, cure: &str) {
        self.found.push(problem(element.line, &called(element), message, limit, cure));
    }

    /// A quantity from the first of `elements` that states it.
    fn quantity(&mut self, elements: &[&Element], name: &str, kind: Kind, bare: Bare) -> Option<Rational> {
        let (element, text) = elements.iter().find_map(|element| Some((*element, get(element, name)?)))?;
        match units::split(text, kind) {
            Ok((number, Some(unit))) => Some(&number * &unit),
            Ok((number, None)) => match bare {
                Bare::Power(power) => {
                    let ten = Rational::decimal(&format!("1e{power}")).unwrap_or(Rational::ONE);
                    Some(&number * &ten)
                }
                Bare::Bytes => Some(&number * &Rational::integer(8)),
                Bare::Disputed if number.is_zero() => Some(number),
                Bare::Disputed => {
                    let message = format!(
                        "{name}=\"{}\" has no unit, and tools take it for different ones",
                        shown(text)
                    );
                    self.say(element, &message, "", kind.example());
                    None
                }
            },
            Err(message) => {
                self.say(element, &format!("{name}: {message}"), "", kind.example());
                None
            }
        }
    }

    fn required<'e>(&mut self, element: &'e Element, name: &str) -> Option<&'e str> {
        let value = get(element, name);
        if value.is_none() {
            self.say(element, &format!("it has no {name}"), "", &format!("add {name}=\"…\""));
        }
        value
    }

    fn read_nodes(&mut self, root: &'a Element) {
        for element in root.children.iter().filter(|child| matches!(child.tag.as_str(), "station" | "switch"))
        {
            let Some(name) = self.required(element, "name") else { continue };
            if self.places.insert(name, self.nodes.len()).is_some() {
                self.say(element, "its name is given twice", "", "give each node a name of its own");
            }
            if let Some(policy) =
                get(element, "service-policy").filter(|policy| *policy != "FIRST_IN_FIRST_OUT")
            {
                let message = format!("service-policy \"{}\" is not understood", shown(policy));
                self.say(
                    element,
                    &message,
                    "FIRST_IN_FIRST_OUT",
                    "ask for another order with --multiplexing",
                );
            }
            self.nodes.push(Node { element, is_switch: element.tag == "switch" });
        }
        self.ports = self.nodes.iter().map(|_| Vec::new()).collect();
    }

    fn node(&mut self, element: &Element, name: &str) -> Option<usize> {
        let place = self.places.get(name).copied();
        if place.is_none() {
            let message = format!("there is no node \"{}\"", shown(name));
            self.say(element, &message, "", "add a <station> or <switch>, or correct the name");
        }
        place
    }

    /// Adds both directions of every link; those written explicitly first.
    fn read_links(&mut self, root: &'a Element, model: &mut Model) {
        let links: Vec<&Element> = root.children.iter().filter(|child| child.tag == "link").collect();
        let mut ends = Vec::new();
        for link in &links {
            let (Some(from), Some(to)) = (self.required(link, "from"), self.required(link, "to")) else {
                continue;
            };
            let (Some(from), Some(to)) = (self.node(link, from), self.node(link, to)) else { continue };
            let [out, into] =
                [("fromPort", "o0"), ("toPort", "i0")].map(|(name, other)| get(link, name).unwrap_or(other));
            ends.push((*link, from, to, out, into));
        }
        let mut names = BTreeMap::new();
        for (link, from, to, out, _) in &ends {
            self.port(link, (*from, *to, out), model, &mut names);
        }
        for (link, from, to, _, into) in &ends {
            if !self.ports[*to].iter().any(|port| port.to == *from) {
                self.port(link, (*to, *from, into), model, &mut names);
            }
        }
    }

    fn port(
        &mut self,
        link: &Element,
        (from, to, port): (usize, usize, &str),
        model: &mut Model,
        names: &mut BTreeMap<String, usize>,
    ) {
        let node = self.nodes[from].element;
        let name = format!("{}-{port}", get(node, "name").unwrap_or_default());
        if self.ports[from].iter().any(|known| known.to == to) {
            return;
        }
        if names.contains_key(&name) {
            let message = format!(
                "port \"{}\" of \"{}\" has two links",
                shown(port),
                shown(get(node, "name").unwrap_or_default())
            );
            self.say(link, &message, "1", "give each link a port of its own");
            return;
        }
        let network = self.network;
        let capacity =
            self.quantity(&[link, node, network], "transmission-capacity", Kind::Rate, Bare::Power(0));
        let rate = self
            .quantity(&[link, node, network], "service-rate", Kind::Rate, Bare::Power(0))
            .or_else(|| capacity.clone());
        let latency = self.quantity(&[link, node, network], "service-latency", Kind::Time, Bare::Disputed);
        let technological = if self.nodes[from].is_switch {
            self.quantity(&[node], "tech-latency", Kind::Time, Bare::Power(-6))
        } else {
            None
        };
        let latency = &latency.unwrap_or(Rational::ZERO) + &technological.unwrap_or(Rational::ZERO);
        // Only a port that a flow passes needs a rate; its absence is reported there.
        let service = rate.map(|rate| RateLatency { rate, latency }).into_iter().collect();
        names.insert(name.clone(), model.servers.len());
        self.ports[from].push(Port { server: model.servers.len(), to });
        model.servers.push(Server { capacity, line: link.line, ..Server::new(name, service) });
    }

    fn bits_of_frame(&mut self, flow: &Element, afdx: bool) -> Option<Rational> {
        let network = self.network;
        let payload = self.quantity(&[flow], "max-payload", Kind::Data, Bare::Bytes)?;
        let overhead = self.quantity(&[flow, network], "overhead", Kind::Data, Bare::Bytes);
        let whole = &payload + &overhead.unwrap_or(Rational::ZERO);
        let least = self.quantity(&[flow, network], "minimum-packet-size", Kind::Data, Bare::Bytes);
        let shortest = if afdx { Rational::integer(8 * SHORTEST_ON_WIRE) } else { Rational::ZERO };
        Some(whole.max(least.unwrap_or(shortest)))
    }

    /// Burst, rate and longest frame of a flow.
    fn arrival(&mut self, element: &Element, afdx: bool) -> Option<(Bucket<Rational>, Rational)> {
        let network = self.network;
        let frame = self.quantity(&[element, network], "maximum-packet-size", Kind::Data, Bare::Bytes);
        if get(element, "lb-burst").is_some() || get(element, "lb-rate").is_some() {
            let both =
                self.required(element, "lb-burst").is_some() & self.required(element, "lb-rate").is_some();
            let burst = self.quantity(&[element], "lb-burst", Kind::Data, Bare::Disputed);
            let rate = self.quantity(&[element], "lb-rate", Kind::Rate, Bare::Power(0));
            let (burst, rate) = burst.zip(rate).filter(|_| both)?;
            return Some((Bucket { burst, rate }, frame.unwrap_or_default()));
        }
        if !(self.required(element, "max-payload").is_some() & self.required(element, "period").is_some()) {
            return None;
        }
        let bits = self.bits_of_frame(element, afdx);
        let period = self.quantity(&[element], "period", Kind::Time, Bare::Power(-3));
        let jitter = self.quantity(&[element], "jitter", Kind::Time, Bare::Power(-3)).unwrap_or_default();
        let (bits, period) = bits.zip(period)?;
        if period.signum() <= 0 {
            self.say(element, "its period is not above zero", "above 0", "give the time between two frames");
            return None;
        }
        let rate = &bits / &period;
        let burst = &bits + &(&rate * &jitter);
        Some((Bucket { burst, rate }, frame.unwrap_or_default().max(bits)))
    }

    /// The servers on the path to a target, and its name.
    fn path(
        &mut self,
        target: &Element,
        source: usize,
        flow: (&Element, &str),
        model: &Model,
    ) -> Option<(Vec<Passage>, String)> {
        let mut at = source;
        let mut passages = Vec::new();
        for step in target.children.iter().filter(|child| child.tag == "path") {
            let next = self.required(step, "node")?.to_owned();
            let next = self.node(step, &next)?;
            let Some(port) = self.ports[at].iter().find(|port| port.to == next) else {
                let [from, to] =
                    [at, next].map(|node| shown(get(self.nodes[node].element, "name").unwrap_or_default()));
                let message =
                    format!("flow \"{}\" goes from \"{from}\" to \"{to}\", and no link does", shown(flow.1));
                self.say(step, &message, "", "add the link, or correct the path");
                return None;
            };
            // A station without a rate sends at once: it is no server.
            let server = &model.servers[port.server];
            if !server.service.is_empty() {
                passages.push(Passage::from(port.server));
            } else if self.nodes[at].is_switch {
                let message = format!(
                    "port \"{}\" has no rate, and flow \"{}\" passes it",
                    shown(&server.name),
                    shown(flow.1)
                );
                let cure = "give the link or its node a transmission-capacity or a service-rate";
                self.say(flow.0, &message, "above 0", cure);
                return None;
            }
            at = next;
        }
        Some((passages, get(self.nodes[at].element, "name").unwrap_or_default().to_owned()))
    }

    fn read_flow(&mut self, element: &'a Element, afdx: bool, model: &mut Model) {
        let Some(name) = self.required(element, "name") else { return };
        let Some(source) = self.required(element, "source") else { return };
        let Some(source) = self.node(element, source) else { return };
        let Some((bucket, frame)) = self.arrival(element, afdx) else { return };
        let mut flow = Flow::new(name, vec![bucket]);
        flow.longest_frame = frame;
        flow.line = element.line;
        for (index, target) in element.children.iter().filter(|child| child.tag == "target").enumerate() {
            let Some((passages, last)) = self.path(target, source, (element, name), model) else { return };
            let unnamed = || if index == 0 { last.clone() } else { format!("p{index}") };
            flow.add_target(
                get(target, "name").map_or_else(unnamed, str::to_owned),
                passages,
                Rational::ZERO,
            );
        }
        if let Some(written) = get(element, "deadline")
            && let Some(at_most) = self.quantity(&[element], "deadline", Kind::Time, Bare::Power(-3))
        {
            let unit =
                if written.trim().ends_with(|letter: char| letter.is_ascii_digit()) { " ms" } else { "" };
            let written = format!("{written}{unit}");
            model.limits.push(Limit { flow: Some(name.to_owned()), at_most, written, line: element.line });
        }
        model.flows.push(flow);
    }
}

/// Reads a physical network.
///
/// # Errors
/// All errors of the tree.
pub fn read(root: &Element) -> Result<Model, Vec<Diagnostic>> {
    let networks: Vec<&Element> = root.children.iter().filter(|child| child.tag == "network").collect();
    let [network] = networks[..] else {
        let message = format!("it has {} <network> elements", networks.len());
        return Err(vec![problem(root.line, &called(root), &message, "1", "keep one")]);
    };
    let technology = get(network, "technology").unwrap_or("FIFO").to_ascii_uppercase();
    let options: Vec<&str> = technology.split(['+', ':', '/']).collect();
    let has = |option: &str| options.contains(&option);
    let mut model = Model {
        name: get(network, "name").unwrap_or_default().to_owned(),
        wishes: Wishes {
            multiplexing: if has("ARBITRARY") {
                Some(Multiplexing::Arbitrary)
            } else {
                Some(Multiplexing::Fifo)
            },
            grouping: Some(has("IS")),
            packetizer: has("PK"),
        },
        ..Model::default()
    };
    let mut reading =
        Reading { network, nodes: Vec::new(), places: BTreeMap::new(), ports: Vec::new(), found: Vec::new() };
    reading.read_nodes(root);
    reading.read_links(root, &mut model);
    for element in root.children.iter().filter(|child| child.tag == "flow") {
        reading.read_flow(element, has("AFDX"), &mut model);
    }
    let mut found = reading.found;
    if found.is_empty() {
        // An unused direction of a link matters to no flow, and a station may lack a rate.
        model.drop_idle();
        model.check()?;
        return Ok(model);
    }
    found.sort_by_key(|finding| finding.line);
    Err(found)
}

/// Reason why a network cannot be written in this format.
#[derive(Debug, thiserror::Error)]
pub enum UnwritableError {
    /// More than one bucket or piece, for which a physical network has no place.
    #[error("{0} has a curve of several parts, and a physical network knows one")]
    Parts(String),
    /// Times without a unit.
    #[error("the network has no units, and a physical network needs them")]
    Units,
    /// Two ports of one switch that lead to one place.
    #[error(
        "ports \"{0}\" and \"{1}\" lead from one switch to the same one, and a path of nodes cannot tell them apart"
    )]
    Alike(String, String),
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Writes a model as a physical network, in `s`, `b` and `bps`.
///
/// Servers that follow one server are ports of one switch. A number that is no double is rounded up to one (a server's
/// rate: down), so that no bound becomes optimistic.
///
/// # Errors
/// [`UnwritableError`] for parts that the format cannot express.
pub fn write(model: &Model) -> Result<String, UnwritableError> {
    if model.unit == crate::model::TimeUnit::Own {
        return Err(UnwritableError::Units);
    }
    let (switch, behind) = switches(model);
    let node = |server: usize| format!("n{}", switch[server]);
    let end = |server: usize| behind[server].map_or_else(|| format!("end{server}"), node);
    let mut lines = vec![r#"<?xml version="1.0" encoding="UTF-8"?>"#.to_owned(), "<elements>".to_owned()];
    let mut technology =
        vec![if model.wishes.multiplexing == Some(Multiplexing::Arbitrary) { "ARBITRARY" } else { "FIFO" }];
    technology.extend((model.wishes.grouping == Some(true)).then_some("IS"));
    technology.extend(model.wishes.packetizer.then_some("PK"));
    lines.push(format!(
        r#"  <network name="{}" technology="{}"/>"#,
        escaped(&model.name),
        technology.join("+")
    ));
    let mut switches: Vec<usize> = switch.clone();
    switches.sort_unstable();
    switches.dedup();
    lines.extend(switches.iter().map(|index| format!(r#"  <switch name="n{index}"/>"#)));
    let ends = (0..behind.len()).filter(|server| behind[*server].is_none());
    lines.extend(ends.map(|server| format!(r#"  <station name="end{server}"/>"#)));
    let mut links: BTreeMap<(String, String), &str> = BTreeMap::new();
    for (index, server) in model.servers.iter().enumerate() {
        let [piece] = &server.service[..] else { return Err(UnwritableError::Parts(server.name.clone())) };
        if let Some(other) = links.insert((node(index), end(index)), &server.name) {
            return Err(UnwritableError::Alike(other.to_owned(), server.name.clone()));
        }
        let capacity = server
            .capacity
            .as_ref()
            .map(|rate| format!(r#" transmission-capacity="{}bps""#, rate.to_f64_up()));
        lines.push(format!(
            r#"  <link from="{}" fromPort="{}" to="{}" toPort="in{index}" service-latency="{}s" service-rate="{}bps"{}/>"#,
            node(index),
            escaped(&server.name),
            end(index),
            piece.latency.to_f64_up(),
            piece.rate.to_f64_down(),
            capacity.unwrap_or_default()
        ));
    }
    for flow in &model.flows {
        lines.extend(written_flow(flow, &node, &end)?);
    }
    lines.push("</elements>\n".to_owned());
    Ok(lines.join("\n"))
}

/// The switch of each server, and a server behind it: ports that follow one server belong to one switch.
fn switches(model: &Model) -> (Vec<usize>, Vec<Option<usize>>) {
    let mut switch: Vec<usize> = (0..model.servers.len()).collect();
    let mut behind: Vec<Option<usize>> = vec![None; model.servers.len()];
    for flow in &model.flows {
        for step in &flow.steps {
            let Some(before) = step.before.map(|before| flow.steps[before].server) else { continue };
            if let Some(known) = behind[before] {
                let (old, new) = (switch[known], switch[step.server]);
                switch.iter_mut().filter(|of| **of == old).for_each(|of| *of = new);
            }
            behind[before] = Some(step.server);
        }
    }
    (switch, behind)
}

fn written_flow(
    flow: &Flow,
    node: &dyn Fn(usize) -> String,
    end: &dyn Fn(usize) -> String,
) -> Result<Vec<String>, UnwritableError> {
    let [bucket] = &flow.arrival[..] else { return Err(UnwritableError::Parts(flow.name.clone())) };
    let source = flow.steps.first().map(|step| node(step.server)).unwrap_or_default();
    let mut lines = vec![format!(
        r#"  <flow name="{}" source="{source}" arrival-curve="leaky-bucket" lb-burst="{}b" lb-rate="{}bps" maximum-packet-size="{}b">"#,
        escaped(&flow.name),
        bucket.burst.to_f64_up(),
        bucket.rate.to_f64_up(),
        flow.longest_frame.to_f64_up()
    )];
    for target in &flow.targets {
        lines.push(format!(r#"    <target name="{}">"#, escaped(&target.name)));
        let path = flow.path(target.last).into_iter();
        lines.extend(path.map(|step| format!(r#"      <path node="{}"/>"#, end(flow.steps[step].server))));
        lines.push("    </target>".to_owned());
    }
    lines.push("  </flow>".to_owned());
    Ok(lines)
}
