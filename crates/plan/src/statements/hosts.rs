//! Host models: those with names, and how a host reads what its interface received.

use std::collections::BTreeMap;

use wg_frame::time::Span;

use super::parts::MOST_OF_A_KIND;
use crate::diagnostic::Findings;
use crate::language::attribute::Attribute;
use crate::language::hosts::{host as own, host_model, receive_buffer, stack};
use crate::language::network::network as section;
use crate::language::types::{KEPT_HOST_MODEL, PROTOCOL, TRAFFIC_KIND};
use crate::network::{Cost, HostModel, Interrupts, ReceiveBuffer, Stack, StackCosts};
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

impl HostModels {
    /// The models of a network, and the one its end systems have.
    pub(crate) fn new(network: &Element, found: &mut Findings) -> Self {
        let mut models = Self { usual: HostModel::default(), named: BTreeMap::new(), whole: true };
        for element in network.all("host-model").take(MOST_OF_A_KIND) {
            let mut reader = Reader::new(element, found);
            let like = reader.value(&host_model::LIKE);
            let mut model = like.map_or_else(HostModel::default, |like| like());
            overrides(&mut reader, &mut model);
            let Some(name) = reader.read(&host_model::NAME) else {
                models.whole = false;
                continue;
            };
            let is_kept = KEPT_HOST_MODEL.chosen(&name.value).is_ok();
            if is_kept || models.named.contains_key(&name.value) {
                let cure = "give every host model a name of its own";
                reader.refuse(name.attribute, &name.written, "is already the name of a host model", "", cure);
                continue;
            }
            models.named.insert(name.value, model);
        }
        models.usual = models.of(&mut Reader::new(network, found));
        models
    }

    /// The model a `host` attribute names, or the usual one.
    pub(crate) fn of(&self, reader: &mut Reader<'_>) -> HostModel {
        let Some(written) = reader.text(&section::HOST) else { return self.usual.clone() };
        let kept = KEPT_HOST_MODEL.chosen(written).ok().map(|model| model());
        if let Some(model) = kept.or_else(|| self.named.get(written).cloned()) {
            return model;
        }
        if !self.whole {
            return self.usual.clone();
        }
        let names = KEPT_HOST_MODEL
            .choices()
            .iter()
            .map(|kept| kept.name)
            .chain(self.named.keys().map(String::as_str));
        let names: Vec<&str> = names.take(12).collect();
        let cure = format!("write {}, or declare <host-model name=\"…\"/>", names.join(" or "));
        reader.refuse(section::HOST.name, written, "is not the name of a host model", "", &cure);
        self.usual.clone()
    }
}

/// What an element says about how received frames are read.
pub(super) fn reading(reader: &mut Reader<'_>, model: &mut HostModel, was_detailed: bool) {
    let mut read = model.card_read.unwrap_or_default();
    let mut written = false;
    let Cost { fixed, per_byte } = &mut read;
    for (attribute, into) in [(&own::CARD_READ, fixed), (&own::CARD_READ_PER_BYTE, per_byte)] {
        written |= reader.has(attribute);
        set(reader, attribute, into);
    }
    if written {
        model.card_read = Some(read);
    }
    buffers(reader, model);
    stacks(reader, model);
    match reader.value(&own::BACKGROUND) {
        Some(received) => model.receives_load = received,
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
    let mut seen = Vec::new();
    for child in reader.element.all("stack").take(PROTOCOL.choices().len() + 1) {
        let mut own = Reader::new(child, reader.found);
        let protocol = own.read(&stack::PROTOCOL);
        let place = protocol.as_ref().and_then(|p| model.stacks.iter().position(|s| s.protocol == p.value));
        let usual = StackCosts { transmit: model.transmit, receive: model.receive };
        let mut costs = place.map_or(usual, |place| model.stacks[place].costs);
        let StackCosts { transmit, receive } = &mut costs;
        for (attribute, into) in [
            (&stack::TRANSMIT, &mut transmit.fixed),
            (&stack::TRANSMIT_PER_BYTE, &mut transmit.per_byte),
            (&stack::RECEIVE, &mut receive.fixed),
            (&stack::RECEIVE_PER_BYTE, &mut receive.per_byte),
        ] {
            set(&mut own, attribute, into);
        }
        let Some(protocol) = protocol else { continue };
        if seen.contains(&protocol.value) {
            let cure = "keep one <stack> for each protocol";
            own.refuse(protocol.attribute, &protocol.written, "has a stack already", "1", cure);
            continue;
        }
        seen.push(protocol.value);
        match place {
            Some(place) => model.stacks[place].costs = costs,
            None => model.stacks.push(Stack { protocol: protocol.value, costs }),
        }
    }
}

/// Kinds of received frames.
const CLASSES: usize = TRAFFIC_KIND.choices().len();

fn buffers(reader: &mut Reader<'_>, model: &mut HostModel) {
    let mut seen = [false; CLASSES];
    for child in reader.element.all("receive-buffer").take(CLASSES + 1) {
        let mut own = Reader::new(child, reader.found);
        let class = own.read(&receive_buffer::CLASS);
        let slots = own.value(&receive_buffer::SLOTS);
        let fifo = own.value(&receive_buffer::FIFO);
        let Some(class) = class else { continue };
        if std::mem::replace(&mut seen[class.value], true) {
            let cure = "keep one <receive-buffer> for each class";
            own.refuse(class.attribute, &class.written, "has a receive buffer already", "1", cure);
            continue;
        }
        let usual = ReceiveBuffer { slots: model.ring, fifo_bytes: None };
        let own = &mut model.receive_buffers.get_or_insert([usual; CLASSES])[class.value];
        if let Some(slots) = slots {
            own.slots = slots;
        }
        if let Some(fifo) = fifo {
            own.fifo_bytes = u32::try_from(fifo).ok();
        }
    }
}

/// Puts what an attribute says in place of what was.
fn set<T>(reader: &mut Reader<'_>, attribute: &Attribute<T>, into: &mut T) {
    if let Some(Some(written)) = reader.optional(attribute) {
        *into = written.value;
    }
}

/// What `<host>` or `<host-model>` says in place of the model's own figures.
pub(super) fn overrides(reader: &mut Reader<'_>, model: &mut HostModel) {
    let was_detailed = is_detailed(model);
    let Cost { fixed, per_byte } = &mut model.transmit;
    set(reader, &own::TRANSMIT, fixed);
    set(reader, &own::TRANSMIT_PER_BYTE, per_byte);
    let Cost { fixed, per_byte } = &mut model.receive;
    set(reader, &own::RECEIVE, fixed);
    set(reader, &own::RECEIVE_PER_BYTE, per_byte);
    set(reader, &own::INTERFACE_DELAY, &mut model.interface_delay);
    set(reader, &own::INTERFACE_RECEIVE_DELAY, &mut model.interface_receive_delay);
    set(reader, &own::INTERRUPT_LATENCY, &mut model.interrupt_latency);
    interrupts(reader, &mut model.interrupts);
    set(reader, &own::SEND_WAKE_UP, &mut model.send_wake_up);
    set(reader, &own::RECEIVE_WAKE_UP, &mut model.receive_wake_up);
    set(reader, &own::RELAY_WAKE_UP, &mut model.relay_wake_up);
    set(reader, &own::BACKLOG, &mut model.backlog);
    set(reader, &own::RING, &mut model.ring);
    set(reader, &own::EGRESS, &mut model.egress_bytes);
    reading(reader, model, was_detailed);
}

fn interrupts(reader: &mut Reader<'_>, into: &mut Interrupts) {
    let choice = reader.optional(&own::INTERRUPTS);
    let is_written = choice.is_some();
    let frames = reader.read(&own::INTERRUPT_FRAMES);
    let choice = choice.flatten();
    let how = choice.as_ref().map_or("each", |choice| choice.value);
    let wants_wait = matches!(how, "coalesced" | "polled" | "spaced");
    if is_written && choice.is_none() {
        return;
    }
    let wait = reader.has(&own::INTERRUPT_WAIT);
    if wait && !wants_wait {
        let message = "interrupt-wait belongs to coalesced, polled or spaced interrupts";
        let cure = "write interrupts=\"coalesced\", \"polled\" or \"spaced\", or remove interrupt-wait";
        reader.found.error(&reader.place, message, "", cure);
    }
    if reader.has(&own::INTERRUPT_FRAMES) && how != "coalesced" {
        let message = "interrupt-frames belongs to coalesced interrupts";
        let cure = "write interrupts=\"coalesced\" or remove interrupt-frames";
        reader.found.error(&reader.place, message, "", cure);
    }
    if !wait && wants_wait {
        let message = format!("{how} interrupts need an interrupt-wait");
        reader.found.error(&reader.place, message, "", "add interrupt-wait=\"50us\"");
    }
    let wait = reader.read(&own::INTERRUPT_WAIT);
    *into = match (how, wait) {
        ("coalesced", Some(wait)) => match frames {
            Some(frames) => Interrupts::Coalesced { frames: frames.value, wait: wait.value },
            None => *into,
        },
        ("polled", Some(period)) => Interrupts::Polled { period: period.value },
        ("spaced", Some(spacing)) => Interrupts::Spaced { spacing: spacing.value },
        ("burst", _) => Interrupts::Spaced { spacing: Span::ZERO },
        ("adaptive", _) => Interrupts::Adaptive,
        _ if is_written => Interrupts::EachFrame,
        _ => *into,
    };
}
