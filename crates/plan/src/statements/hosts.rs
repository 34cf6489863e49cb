//! Host models: those with names, and how a host reads what its interface received.

use std::collections::BTreeMap;

use wg_frame::time::Span;

use super::flows::PROTOCOLS;
use super::parts::{COST, MOST_FRAMES, MOST_OF_A_KIND, distribution};
use crate::diagnostic::Findings;
use crate::network::Distribution;
use crate::network::{Cost, HostModel, Interrupts, ReceiveBuffer, Stack, StackCosts};
use crate::reader::Maybe;
use crate::reader::Reader;
use crate::tree::Element;

/// The models of hosts an end system can name.
pub(crate) struct HostModels {
    /// Of end systems that name none.
    pub(crate) usual: HostModel,
    named: BTreeMap<String, HostModel>,
    /// All their names could be read.
    whole: bool,
}

/// Makes a host model.
type Maker = fn() -> HostModel;

/// Names that need no declaration.
const KEPT: [(&str, Maker); 2] = [("tuned", HostModel::default), ("ideal", HostModel::ideal)];
/// Of a FIFO: at least the longest frame, or that would never pass.
const FIFO: (u64, u64, &str) = (1_522, 1 << 30, "1522B to 1024MiB");
/// Class in the test, position in the plan.
const CLASSES: [(&str, usize); 3] = [("tt", 0), ("rc", 1), ("be", 2)];

impl HostModels {
    /// The models of a network, and the one its end systems have.
    pub(crate) fn new(network: &Element, found: &mut Findings) -> Self {
        let mut models = Self { usual: HostModel::default(), named: BTreeMap::new(), whole: true };
        for element in network.all("host-model").take(MOST_OF_A_KIND) {
            let mut reader = Reader::new(element, found);
            let like = reader.optional_choice("like", &KEPT).flatten();
            let mut model = like.map_or_else(HostModel::default, |like| (like.value)());
            overrides(&mut reader, &mut model);
            let Some(name) = reader.name("name") else {
                models.whole = false;
                continue;
            };
            let taken =
                KEPT.iter().any(|(kept, _)| *kept == name.value) || models.named.contains_key(&name.value);
            if taken {
                let cure = "give every host model a name of its own";
                reader.refuse("name", &name.written, "is already the name of a host model", "", cure);
                continue;
            }
            models.named.insert(name.value, model);
        }
        models.usual = models.of(&mut Reader::new(network, found));
        models
    }

    /// The model a `host` attribute names, or the usual one.
    pub(crate) fn of(&self, reader: &mut Reader<'_>) -> HostModel {
        let Some(written) = reader.element.get("host") else { return self.usual.clone() };
        let kept = KEPT.iter().find(|(name, _)| *name == written).map(|(_, model)| model());
        if let Some(model) = kept.or_else(|| self.named.get(written).cloned()) {
            return model;
        }
        if !self.whole {
            return self.usual.clone();
        }
        let names = KEPT.iter().map(|(name, _)| *name).chain(self.named.keys().map(String::as_str));
        let names: Vec<&str> = names.take(12).collect();
        let cure = format!("write {}, or declare <host-model name=\"…\"/>", names.join(" or "));
        reader.refuse("host", written, "is not the name of a host model", "", &cure);
        self.usual.clone()
    }
}

/// What an element says about how received frames are read.
pub(super) fn reading(reader: &mut Reader<'_>, model: &mut HostModel, was_detailed: bool) {
    let mut read = model.card_read.unwrap_or_default();
    let mut written = false;
    let Cost { fixed, per_byte } = &mut read;
    for (attribute, into) in [("card-read", fixed), ("card-read-per-byte", per_byte)] {
        let Some(value) = reader.element.get(attribute) else { continue };
        written = true;
        if let Some(time) = reader.time_within(attribute, value, COST) {
            *into = time.value;
        }
    }
    if written {
        model.card_read = Some(read);
    }
    buffers(reader, model);
    stacks(reader, model);
    let background = reader.optional_choice("background", &[("discarded", false), ("received", true)]);
    match background.flatten() {
        Some(received) => model.receives_load = received.value,
        // Whoever says how frames are read wants to see what all of them cost.
        None => model.receives_load |= !was_detailed && is_detailed(model),
    }
}

/// Whether it says how frames are read.
pub(super) const fn is_detailed(model: &HostModel) -> bool {
    model.card_read.is_some()
        || model.receive_buffers.is_some()
        || matches!(model.interrupts, Interrupts::Spaced { .. } | Interrupts::Adaptive)
}

/// Protocols with costs of their own. What a `<stack>` leaves out is what it was, or the host's.
fn stacks(reader: &mut Reader<'_>, model: &mut HostModel) {
    let mut seen = [false; PROTOCOLS.len()];
    for child in reader.element.all("stack").take(PROTOCOLS.len() + 1) {
        let mut own = Reader::new(child, reader.found);
        let protocol =
            own.required("protocol").and_then(|written| own.choice("protocol", written, &PROTOCOLS));
        let place = protocol.as_ref().and_then(|p| model.stacks.iter().position(|s| s.protocol == p.value));
        let usual = StackCosts { transmit: model.transmit, receive: model.receive };
        let mut costs = place.map_or(usual, |place| model.stacks[place].costs);
        let StackCosts { transmit, receive } = &mut costs;
        for (attribute, into) in [
            ("transmit", &mut transmit.fixed),
            ("transmit-per-byte", &mut transmit.per_byte),
            ("receive", &mut receive.fixed),
            ("receive-per-byte", &mut receive.per_byte),
        ] {
            if let Some(time) = child.get(attribute).and_then(|w| own.time_within(attribute, w, COST)) {
                *into = time.value;
            }
        }
        let Some(protocol) = protocol else { continue };
        let number = PROTOCOLS.iter().position(|(_, one)| *one == protocol.value).unwrap_or_default();
        if std::mem::replace(&mut seen[number], true) {
            let cure = "keep one <stack> for each protocol";
            own.refuse("protocol", &protocol.written, "has a stack already", "1", cure);
            continue;
        }
        match place {
            Some(place) => model.stacks[place].costs = costs,
            None => model.stacks.push(Stack { protocol: protocol.value, costs }),
        }
    }
}

fn buffers(reader: &mut Reader<'_>, model: &mut HostModel) {
    let mut seen = [false; CLASSES.len()];
    for child in reader.element.all("receive-buffer").take(CLASSES.len() + 1) {
        let mut own = Reader::new(child, reader.found);
        let class = own.required("class").and_then(|written| own.choice("class", written, &CLASSES));
        let slots = own.optional_whole("slots", 1, MOST_FRAMES).flatten();
        let fifo = child.get("fifo").and_then(|written| own.size_within("fifo", written, FIFO));
        let Some(class) = class else { continue };
        if std::mem::replace(&mut seen[class.value], true) {
            let cure = "keep one <receive-buffer> for each class";
            own.refuse("class", &class.written, "has a receive buffer already", "1", cure);
            continue;
        }
        let usual = ReceiveBuffer { slots: model.ring, fifo_bytes: None };
        let own = &mut model.receive_buffers.get_or_insert([usual; CLASSES.len()])[class.value];
        if let Some(slots) = slots {
            own.slots = slots.value;
        }
        if let Some(fifo) = fifo {
            own.fifo_bytes = u32::try_from(fifo.value).ok();
        }
    }
}

/// What `<host>` or `<host-model>` says in place of the model's own figures.
pub(super) fn overrides(reader: &mut Reader<'_>, model: &mut HostModel) {
    let was_detailed = is_detailed(model);
    let mut set = |attribute: &'static str, into: &mut Span| {
        if let Some(written) = reader.element.get(attribute)
            && let Some(time) = reader.time_within(attribute, written, COST)
        {
            *into = time.value;
        }
    };
    let Cost { fixed, per_byte } = &mut model.transmit;
    set("transmit", fixed);
    set("transmit-per-byte", per_byte);
    let Cost { fixed, per_byte } = &mut model.receive;
    set("receive", fixed);
    set("receive-per-byte", per_byte);
    set("interface-delay", &mut model.interface_delay);
    set("interface-receive-delay", &mut model.interface_receive_delay);
    set("interrupt-latency", &mut model.interrupt_latency);
    interrupts(reader, &mut model.interrupts);
    let mut draws = |attribute: &'static str, into: &mut Distribution| {
        if let Some(written) = reader.element.get(attribute)
            && let Some(distribution) = distribution(reader, attribute, written, COST)
        {
            *into = distribution;
        }
    };
    draws("send-wake-up", &mut model.send_wake_up);
    draws("receive-wake-up", &mut model.receive_wake_up);
    draws("relay-wake-up", &mut model.relay_wake_up);
    let mut frames = |attribute: &'static str, into: &mut u32| {
        if let Some(Some(frames)) = reader.optional_whole(attribute, 1, MOST_FRAMES) {
            *into = frames.value;
        }
    };
    frames("backlog", &mut model.backlog);
    frames("ring", &mut model.ring);
    if let Some(written) = reader.element.get("egress")
        && let Some(egress) = reader.size_within("egress", written, BUFFER)
    {
        model.egress_bytes = egress.value;
    }
    reading(reader, model, was_detailed);
}

/// Kinds of interrupts.
const INTERRUPTS: [(&str, &str); 6] = [
    ("each", "each"),
    ("coalesced", "coalesced"),
    ("polled", "polled"),
    ("spaced", "spaced"),
    ("burst", "burst"),
    ("adaptive", "adaptive"),
];

fn interrupts(reader: &mut Reader<'_>, into: &mut Interrupts) {
    let written = reader.element.get("interrupts");
    let choice = written.and_then(|w| reader.choice("interrupts", w, &INTERRUPTS));
    let bounds = (Span::from_picos(1), Span::from_millis(10_000), "more than 0s, at most 10s");
    let wait = reader.element.get("interrupt-wait");
    let frames: Option<Maybe<u32>> = reader.optional_whole("interrupt-frames", 1, MOST_FRAMES);
    let how = choice.as_ref().map_or("each", |choice| choice.value);
    let wants_wait = matches!(how, "coalesced" | "polled" | "spaced");
    if written.is_some() && choice.is_none() {
        return;
    }
    if wait.is_some() && !wants_wait {
        let message = "interrupt-wait belongs to coalesced, polled or spaced interrupts";
        let cure = "write interrupts=\"coalesced\", \"polled\" or \"spaced\", or remove interrupt-wait";
        reader.found.error(&reader.place, message, "", cure);
    }
    if frames.is_some() && how != "coalesced" {
        let message = "interrupt-frames belongs to coalesced interrupts";
        let cure = "write interrupts=\"coalesced\" or remove interrupt-frames";
        reader.found.error(&reader.place, message, "", cure);
    }
    let wait = match wait {
        Some(written) => reader.time_within("interrupt-wait", written, bounds),
        None if wants_wait => {
            let message = format!("{how} interrupts need an interrupt-wait");
            reader.found.error(&reader.place, message, "", "add interrupt-wait=\"50us\"");
            None
        }
        None => None,
    };
    *into = match (how, wait) {
        ("coalesced", Some(wait)) => {
            let frames = frames.flatten().map_or(USUAL_COALESCED, |frames| frames.value);
            Interrupts::Coalesced { frames, wait: wait.value }
        }
        ("polled", Some(period)) => Interrupts::Polled { period: period.value },
        ("spaced", Some(spacing)) => Interrupts::Spaced { spacing: spacing.value },
        ("burst", _) => Interrupts::Spaced { spacing: Span::ZERO },
        ("adaptive", _) => Interrupts::Adaptive,
        _ if written.is_some() => Interrupts::EachFrame,
        _ => *into,
    };
}

/// Frames after which an interface that coalesces interrupts where no number is written.
const USUAL_COALESCED: u32 = 32;

pub(super) const BUFFER: (u64, u64, &str) = (2_048, 1 << 30, "2KiB to 1024MiB");
