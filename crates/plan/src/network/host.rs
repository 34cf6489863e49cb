//! Host models: what lies between an application and the wire, and how a host reads what its interface received.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wg_core::end_system::{Cost, Interrupts, ReceiveBuffer, StackCosts};
use wg_frame::time::Span;

use super::kinds::KeptModel;
use crate::campaign::Protocol;
use crate::diagnostic::Findings;
use crate::distribution::Distribution;
use crate::language::attribute::Attribute;
use crate::language::hosts::{host as own, host_model, receive_buffer, stack};
use crate::language::network::network as section;
use crate::language::types::{KEPT_HOST_MODEL, PROTOCOL, TRAFFIC_KIND};
use crate::reader::Reader;
use crate::statements::{MOST_OF_A_KIND, only};
use crate::tree::Element;

/// What lies between an application and the wire. The default is a plausible tuned machine, not a measured one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostModel {
    /// Time from the application's call to the egress queue.
    pub transmit: Cost,
    /// Time from the woken thread to the application.
    pub receive: Cost,
    /// Time from the driver to the first bit on the wire.
    pub interface_delay: Span,
    /// Time from the interrupt, or the poll, until the driver reads the ring.
    pub interrupt_latency: Span,
    /// When the interface interrupts the host for received frames.
    pub interrupts: Interrupts,
    /// Latency of waking a sender.
    pub send_wake_up: Distribution,
    /// Latency of waking the receiving thread.
    pub receive_wake_up: Distribution,
    /// Latency of waking a relay task behind its queue.
    pub relay_wake_up: Distribution,
    /// Capacity between applications and the egress queue, in messages.
    pub backlog: u32,
    /// Capacity of the receive ring, in frames.
    pub ring: u32,
    /// Capacity of the egress queue, in bytes.
    pub egress_bytes: u64,
    /// Whether background load that comes passes ring, interrupts and reader like any frame; otherwise the interface
    /// discards it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub receives_load: bool,
    /// Processor time for reading a frame from the card; absent: the card writes frames to memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_read: Option<Cost>,
    /// Receive buffers of time-triggered, rate-constrained and best-effort frames; absent: one ring for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffers: Option<[ReceiveBuffer; 3]>,
    /// Time from the last bit on the wire to the frame in the ring.
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    pub interface_receive_delay: Span,
    /// Protocols whose path through the operating system has costs of its own, each once; others have `transmit` and
    /// `receive`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
}

/// Costs of a protocol's path through the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The protocol.
    pub protocol: Protocol,
    /// Its costs, in place of those of other protocols.
    #[serde(flatten)]
    pub costs: StackCosts,
}

impl HostModel {
    /// The model of a name that every test knows.
    fn kept(model: KeptModel) -> Self {
        match model {
            KeptModel::Tuned => Self::default(),
            KeptModel::Ideal => Self::ideal(),
        }
    }

    /// A host that takes no time: what is left is the network itself.
    pub fn ideal() -> Self {
        Self {
            transmit: Cost::default(),
            receive: Cost::default(),
            interface_delay: Span::ZERO,
            interface_receive_delay: Span::ZERO,
            interrupt_latency: Span::ZERO,
            interrupts: Interrupts::EachFrame,
            send_wake_up: Distribution::default(),
            receive_wake_up: Distribution::default(),
            relay_wake_up: Distribution::default(),
            backlog: own::BACKLOG.usual(),
            ring: own::RING.usual(),
            egress_bytes: own::EGRESS.usual(),
            receives_load: false,
            card_read: None,
            receive_buffers: None,
            stacks: Vec::new(),
        }
    }
}

impl Default for HostModel {
    fn default() -> Self {
        let (us, ns) = (Span::from_micros, Span::from_nanos);
        let sleeper =
            [(0, ns(800)), (500_000, ns(1_500)), (990_000, us(4)), (999_000, us(12)), (1_000_000, us(40))];
        let spinner =
            [(0, ns(50)), (500_000, ns(100)), (990_000, ns(300)), (999_000, us(3)), (1_000_000, us(20))];
        Self {
            transmit: Cost { fixed: ns(2_500), per_byte: Span::from_picos(150) },
            receive: Cost { fixed: ns(2_000), per_byte: Span::from_picos(150) },
            interface_delay: ns(600),
            interrupt_latency: us(1),
            send_wake_up: Distribution { quantiles: spinner.to_vec() },
            receive_wake_up: Distribution { quantiles: sleeper.to_vec() },
            relay_wake_up: Distribution { quantiles: sleeper.to_vec() },
            ..Self::ideal()
        }
    }
}

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
            let mut model = like.map_or_else(HostModel::default, HostModel::kept);
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
        let kept = KEPT_HOST_MODEL.chosen(written).ok().map(HostModel::kept);
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

    /// The model of an end system.
    pub(super) fn end_system(&self, reader: &mut Reader<'_>) -> HostModel {
        let mut model = self.of(reader);
        let element = reader.element;
        if let Some(host) = only(element, "host", reader.found) {
            overrides(&mut Reader::new(host, reader.found), &mut model);
        }
        model
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
