//! Output-port networks of Saihu, in JSON: flows with arrival curves along named servers.
//!
//! Numbers are read from the text, so that `0.1` is a tenth. A number without a unit has that of its flow or server, or
//! of the network. A file without any unit is computed in its own unit, and so are its bounds; one with some units is
//! read as Saihu reads it: seconds, bits, bits per second.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use wg_plan::Diagnostic;

use crate::curve::{Bucket, RateLatency};
use crate::formats::units::{self, Kind, shown};
use crate::model::{Flow, Model, Multiplexing, Passage, Server, TimeUnit, Wishes, problem};
use crate::rational::Rational;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    network: &'a RawValue,
    #[serde(borrow)]
    flows: Vec<&'a RawValue>,
    #[serde(borrow)]
    servers: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Units<'a> {
    #[serde(borrow, default)]
    time_unit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data_unit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    rate_unit: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Network<'a> {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    packetizer: Option<bool>,
    #[serde(default)]
    multiplexing: Option<String>,
    #[serde(default, alias = "analysis_options")]
    analysis_option: Option<Vec<String>>,
    #[serde(borrow, default)]
    capacity: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max_packet_length: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenFlow<'a> {
    name: String,
    path: Vec<String>,
    #[serde(default)]
    path_name: Option<String>,
    #[serde(default)]
    multicast: Vec<WrittenPath>,
    #[serde(borrow)]
    arrival_curve: WrittenArrival<'a>,
    #[serde(borrow, default)]
    max_packet_length: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenPath {
    #[serde(default)]
    name: Option<String>,
    path: Vec<String>,
}

#[derive(Deserialize)]
struct WrittenArrival<'a> {
    #[serde(borrow)]
    bursts: Vec<&'a RawValue>,
    #[serde(borrow)]
    rates: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenServer<'a> {
    name: String,
    #[serde(borrow)]
    service_curve: WrittenService<'a>,
    #[serde(borrow, default)]
    capacity: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WrittenService<'a> {
    #[serde(borrow)]
    latencies: Vec<&'a RawValue>,
    #[serde(borrow)]
    rates: Vec<&'a RawValue>,
}

/// Units of numbers without one.
#[derive(Clone, Default)]
struct Defaults {
    time: Option<Rational>,
    data: Option<Rational>,
    rate: Option<Rational>,
}

struct Reading<'a> {
    text: &'a str,
    found: Vec<Diagnostic>,
    with_unit: bool,
    without: bool,
}

/// The text of a JSON string, or of any other value.
fn plain(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

impl<'a> Reading<'a> {
    fn line(&self, raw: &RawValue) -> u32 {
        let offset = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let lines = self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count();
        u32::try_from(lines + 1).unwrap_or(0)
    }

    fn say(&mut self, raw: &RawValue, element: &str, message: &str, limit: &str, cure: &str) {
        let line = self.line(raw);
        self.found.push(problem(line, element, message, limit, cure));
    }

    fn part<T: Deserialize<'a>>(&mut self, raw: &'a RawValue, element: &str) -> Option<T> {
        match serde_json::from_str(raw.get()) {
            Ok(value) => Some(value),
            Err(error) => {
                let line = self.line(raw) + u32::try_from(error.line().saturating_sub(1)).unwrap_or(0);
                let message = format!("it cannot be read: {}", without_place(&error));
                let cure = "give it as Saihu's output-port format says";
                self.found.push(problem(line, element, &message, "", cure));
                None
            }
        }
    }

    fn units(&mut self, raw: &'a RawValue, element: &str, outer: &Defaults) -> Defaults {
        let written: Units<'_> = self.part(raw, element).unwrap_or_default();
        let mut one = |given: Option<&'a RawValue>, kind: Kind, outer: &Option<Rational>| {
            let Some(raw) = given.filter(|raw| raw.get() != "null") else { return outer.clone() };
            self.with_unit = true;
            let unit = units::unit(plain(raw).trim(), kind);
            if unit.is_none() {
                let message = format!("\"{}\" is no unit here", shown(&plain(raw)));
                self.say(raw, element, &message, "", kind.example());
            }
            unit
        };
        Defaults {
            time: one(written.time_unit, Kind::Time, &outer.time),
            data: one(written.data_unit, Kind::Data, &outer.data),
            rate: one(written.rate_unit, Kind::Rate, &outer.rate),
        }
    }

    fn quantity(
        &mut self,
        raw: &RawValue,
        kind: Kind,
        defaults: &Defaults,
        element: &str,
    ) -> Option<Rational> {
        let default = match kind {
            Kind::Time => &defaults.time,
            Kind::Data => &defaults.data,
            Kind::Rate => &defaults.rate,
        };
        match units::split(&plain(raw), kind) {
            Ok((number, Some(unit))) => {
                self.with_unit = true;
                Some(&number * &unit)
            }
            Ok((number, None)) => {
                self.without |= default.is_none();
                Some(default.as_ref().map_or_else(|| number.clone(), |unit| &number * unit))
            }
            Err(message) => {
                self.say(raw, element, &message, "", kind.example());
                None
            }
        }
    }

    /// Two lists that form one curve; unequal lengths are refused.
    fn pairs(
        &mut self,
        (first, kind): (&[&'a RawValue], Kind),
        rates: &[&'a RawValue],
        defaults: &Defaults,
        (whole, element): (&RawValue, &str),
    ) -> Vec<(Rational, Rational)> {
        if first.len() != rates.len() || rates.is_empty() {
            let message = format!("its curve has {} values beside {} rates", first.len(), rates.len());
            self.say(whole, element, &message, "as many of each, at least 1", "give one rate to each value");
            return Vec::new();
        }
        let mut pairs = Vec::new();
        for (value, rate) in first.iter().zip(rates) {
            let value = self.quantity(value, kind, defaults, element);
            let rate = self.quantity(rate, Kind::Rate, defaults, element);
            pairs.extend(value.zip(rate));
        }
        pairs
    }
}

fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Reads an output-port network.
///
/// # Errors
/// All errors of the text.
pub fn read(text: &str) -> Result<Model, Vec<Diagnostic>> {
    let file: File<'_> = serde_json::from_str(text).map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(0);
        let message = format!("this is no output-port network: {}", without_place(&error));
        vec![problem(line, "file", &message, "", "give an object with network, flows and servers")]
    })?;
    let mut reading = Reading { text, found: Vec::new(), with_unit: false, without: false };
    let network: Option<Network<'_>> = reading.part(file.network, "network");
    let Some(network) = network else { return Err(reading.found) };
    let defaults = reading.units(file.network, "network", &Defaults::default());
    let mut model = Model {
        name: network.name.clone().unwrap_or_default(),
        wishes: wishes(&mut reading, file.network, &network),
        notes: unknown(text, &file, &network),
        ..Model::default()
    };
    let assumed = servers(&mut reading, &file, &network, &defaults, &mut model);
    let places: BTreeMap<String, usize> =
        model.servers.iter().enumerate().map(|(index, server)| (server.name.clone(), index)).collect();
    for raw in &file.flows {
        let Some(written) = reading.part::<WrittenFlow<'_>>(raw, "flow") else { continue };
        let flow = flow(&mut reading, raw, written, &network, &defaults, &places);
        model.flows.push(flow);
    }
    if !assumed.is_empty() {
        model.assumptions.push(format!(
            "no capacity is given for {} of {} servers: their links are taken to be as fast as they serve at best, as Saihu does",
            assumed.len(),
            model.servers.len()
        ));
    }
    model.unit = if reading.with_unit { TimeUnit::Seconds } else { TimeUnit::Own };
    if reading.with_unit && reading.without {
        model
            .assumptions
            .push("numbers without a unit are seconds, bits and bits per second, as Saihu reads them".into());
    }
    if !reading.found.is_empty() {
        return Err(reading.found);
    }
    model.check()?;
    Ok(model)
}

/// Adds the servers; returns the names of those without a capacity.
fn servers<'a>(
    reading: &mut Reading<'a>,
    file: &File<'a>,
    network: &Network<'a>,
    defaults: &Defaults,
    model: &mut Model,
) -> Vec<String> {
    let mut assumed = Vec::new();
    for raw in &file.servers {
        let Some(written) = reading.part::<WrittenServer<'_>>(raw, "server") else { continue };
        let element = format!("server \"{}\"", shown(&written.name));
        let own = reading.units(raw, &element, defaults);
        let curve = &written.service_curve;
        let pairs = reading.pairs((&curve.latencies, Kind::Time), &curve.rates, &own, (raw, &element));
        let service: Vec<_> =
            pairs.into_iter().map(|(latency, rate)| RateLatency { rate, latency }).collect();
        let capacity = match (written.capacity, network.capacity) {
            (Some(given), _) => reading.quantity(given, Kind::Rate, &own, &element),
            (None, Some(given)) => reading.quantity(given, Kind::Rate, defaults, "network"),
            (None, None) => {
                assumed.push(written.name.clone());
                service.iter().map(|piece| piece.rate.clone()).max()
            }
        };
        let rate = service.iter().map(|piece| &piece.rate).max();
        let (slower, given) =
            (capacity.as_ref().zip(rate).is_some_and(|(most, rate)| most < rate), rate.cloned());
        if slower {
            model.notes.push(format!(
                "the capacity of server \"{}\" is below the rate that it guarantees: its link is taken to be as fast as that",
                shown(&written.name)
            ));
        }
        let capacity = if slower { given } else { capacity };
        let line = reading.line(raw);
        model.servers.push(Server { capacity, line, ..Server::new(written.name, service) });
    }
    assumed
}

fn flow<'a>(
    reading: &mut Reading<'a>,
    raw: &'a RawValue,
    written: WrittenFlow<'a>,
    network: &Network<'a>,
    defaults: &Defaults,
    places: &BTreeMap<String, usize>,
) -> Flow {
    let element = format!("flow \"{}\"", shown(&written.name));
    let own = reading.units(raw, &element, defaults);
    let curve = &written.arrival_curve;
    let pairs = reading.pairs((&curve.bursts, Kind::Data), &curve.rates, &own, (raw, &element));
    let arrival = pairs.into_iter().map(|(burst, rate)| Bucket { burst, rate }).collect();
    let mut flow = Flow::new(written.name, arrival);
    flow.line = reading.line(raw);
    let frame = match (written.max_packet_length, network.max_packet_length) {
        (Some(given), _) => reading.quantity(given, Kind::Data, &own, &element),
        (None, Some(given)) => reading.quantity(given, Kind::Data, defaults, "network"),
        (None, None) => None,
    };
    flow.longest_frame = frame.unwrap_or(Rational::ZERO);
    let first = WrittenPath { name: written.path_name, path: written.path };
    for WrittenPath { name, path } in core::iter::once(first).chain(written.multicast) {
        let mut passages = Vec::new();
        for server in &path {
            match places.get(server) {
                Some(place) => passages.push(Passage::from(*place)),
                None => {
                    let message = format!("its path passes server \"{}\", which is not there", shown(server));
                    reading.say(raw, &element, &message, "", "add the server, or correct its name");
                }
            }
        }
        let name = name.unwrap_or_else(|| path.last().cloned().unwrap_or_default());
        flow.add_target(name, passages, Rational::ZERO);
    }
    flow
}

fn wishes<'a>(reading: &mut Reading<'a>, raw: &'a RawValue, network: &Network<'a>) -> Wishes {
    let multiplexing = match network.multiplexing.as_deref().map(str::to_ascii_uppercase).as_deref() {
        Some("FIFO") => Some(Multiplexing::Fifo),
        Some("ARBITRARY") => Some(Multiplexing::Arbitrary),
        Some(other) => {
            let message = format!("there is no multiplexing \"{}\"", shown(other));
            reading.say(raw, "network", &message, "FIFO or ARBITRARY", "choose one of them");
            None
        }
        None => None,
    };
    let options = network.analysis_option.as_ref();
    let asks = |word: &str| options.map(|all| all.iter().any(|option| option == word));
    // Either one demands that frames are received completely; ignoring both would be optimistic.
    let packetizer = network.packetizer == Some(true) || asks("PK") == Some(true);
    Wishes { multiplexing, grouping: asks("IS"), packetizer }
}

/// Known members of each object of the format.
const FILE: &[&str] = &["network", "flows", "servers"];
const NETWORK: &[&str] = &[
    "name",
    "packetizer",
    "multiplexing",
    "analysis_option",
    "analysis_options",
    "capacity",
    "max_packet_length",
    "min_packet_length",
    "time_unit",
    "data_unit",
    "rate_unit",
];
const FLOW: &[&str] = &[
    "name",
    "path",
    "path_name",
    "multicast",
    "arrival_curve",
    "max_packet_length",
    "min_packet_length",
    "time_unit",
    "data_unit",
    "rate_unit",
];
const SERVER: &[&str] = &["name", "service_curve", "capacity", "time_unit", "data_unit", "rate_unit"];
/// Known options of analyses; of these `IS` and `PK` change a bound.
const OPTIONS: &[&str] = &["IS", "PK", "CEIL", "FIFO", "ARBITRARY"];
/// Greatest number of members that are named.
const MOST_NAMED: usize = 10;

/// Names unknown members, because a misspelt one would silently have no effect on a bound.
fn unknown(text: &str, file: &File<'_>, network: &Network<'_>) -> Vec<String> {
    let others = |text: &str, known: &[&str]| -> Vec<String> {
        let members: BTreeMap<String, serde::de::IgnoredAny> = serde_json::from_str(text).unwrap_or_default();
        members.into_keys().filter(|name| !known.contains(&name.as_str())).collect()
    };
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, names: Vec<String>| {
        found.extend(names.into_iter().map(|name| (what.to_owned(), shown(&name))));
    };
    add("the file", others(text, FILE));
    add("the network", others(file.network.get(), NETWORK));
    file.flows.iter().for_each(|raw| add("a flow", others(raw.get(), FLOW)));
    file.servers.iter().for_each(|raw| add("a server", others(raw.get(), SERVER)));
    found.sort();
    found.dedup();
    let mut notes: Vec<String> = found
        .iter()
        .take(MOST_NAMED)
        .map(|(what, name)| {
            format!("\"{name}\" of {what} is no member that is known here: it changes nothing")
        })
        .collect();
    if found.len() > MOST_NAMED {
        notes.push(format!("{} more members are not known here", found.len() - MOST_NAMED));
    }
    let options =
        network.analysis_option.iter().flatten().filter(|option| !OPTIONS.contains(&option.as_str()));
    notes.extend(options.map(|option| {
        format!("the analysis option \"{}\" is not known here: it changes nothing", shown(option))
    }));
    notes
}

/// Writes a model as an output-port network, in seconds, bits and bits per second; a number that is not whole is
/// rounded up to a decimal (a server's rate: down), so that no bound becomes optimistic.
pub fn write(model: &Model) -> String {
    let own = model.unit == TimeUnit::Own;
    let path = |flow: &Flow, last: usize| -> Vec<&str> {
        flow.path(last).iter().map(|step| model.servers[flow.steps[*step].server].name.as_str()).collect()
    };
    let flows: Vec<_> = model
        .flows
        .iter()
        .map(|flow| {
            let mut written = serde_json::json!({
                "name": flow.name,
                "path": flow.targets.first().map(|target| path(flow, target.last)),
                "path_name": flow.targets.first().map(|target| target.name.as_str()),
                "arrival_curve": {
                    "bursts": flow.arrival.iter().map(|bucket| bucket.burst.to_f64_up()).collect::<Vec<_>>(),
                    "rates": flow.arrival.iter().map(|bucket| bucket.rate.to_f64_up()).collect::<Vec<_>>(),
                },
                "max_packet_length": flow.longest_frame.to_f64_up(),
            });
            if flow.targets.len() > 1 {
                let others = flow.targets[1..].iter();
                let others = others
                    .map(|target| serde_json::json!({"name": target.name, "path": path(flow, target.last)}));
                written["multicast"] = others.collect();
            }
            written
        })
        .collect();
    let servers: Vec<_> = model
        .servers
        .iter()
        .map(|server| {
            serde_json::json!({
                "name": server.name,
                "service_curve": {
                    "latencies": server.service.iter().map(|piece| piece.latency.to_f64_up()).collect::<Vec<_>>(),
                    "rates": server.service.iter().map(|piece| piece.rate.to_f64_down()).collect::<Vec<_>>(),
                },
                "capacity": server.capacity.as_ref().map(Rational::to_f64_up),
            })
        })
        .collect();
    let mut network = serde_json::json!({
        "name": model.name,
        "packetizer": model.wishes.packetizer,
        "multiplexing": model.wishes.multiplexing.map_or("FIFO", |order| match order {
            Multiplexing::Fifo => "FIFO",
            Multiplexing::Arbitrary => "ARBITRARY",
        }),
        "analysis_option": if model.wishes.grouping == Some(true) { vec!["IS"] } else { Vec::new() },
    });
    if !own {
        network["time_unit"] = "s".into();
        network["data_unit"] = "b".into();
        network["rate_unit"] = "bps".into();
    }
    let whole = serde_json::json!({"network": network, "flows": flows, "servers": servers});
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}
