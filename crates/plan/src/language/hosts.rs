//! Hosts: what lies between an application and the wire.

use wg_frame::time::Span;

use super::attribute::{Attribute, Declared, Text, optional, required, usual};
use super::element::{Element, any, nothing};
use super::types;
use crate::campaign::Protocol;
use crate::network::{Distribution, KeptModel};

elements! {
    /// Values that replace those of the host model of an end system.
    host "host" holds any(&["receive-buffer", "stack"]) {
        /// From the application's call to the egress queue, for any frame, {limit}. Default: that of the host
        /// model.
        TRANSMIT: Span = optional("transmit", &types::TIME).within("0s to 10s");
        /// The same for each byte of the frame, {limit}. Default: that of the host model.
        TRANSMIT_PER_BYTE: Span = optional("transmit-per-byte", &types::TIME).within("0s to 10s");
        /// From the woken thread to the application, for any frame, {limit}. Default: that of the host model.
        RECEIVE: Span = optional("receive", &types::TIME).within("0s to 10s");
        /// The same for each byte of the frame, {limit}. Default: that of the host model.
        RECEIVE_PER_BYTE: Span = optional("receive-per-byte", &types::TIME).within("0s to 10s");
        /// From the driver to the first bit on the wire, {limit}. Default: that of the host model.
        INTERFACE_DELAY: Span = optional("interface-delay", &types::TIME).within("0s to 10s");
        /// From the last bit on the wire to the frame in the receive ring, {limit}. Default: that of the host
        /// model.
        INTERFACE_RECEIVE_DELAY: Span = optional("interface-receive-delay", &types::TIME).within("0s to 10s");
        /// From the interrupt, or the poll, until the driver reads the ring, {limit}. Default: that of the
        /// host model.
        INTERRUPT_LATENCY: Span = optional("interrupt-latency", &types::TIME).within("0s to 10s");
        /// When the interface tells the host of received frames. Default: that of the host model.
        INTERRUPTS: &'static str = optional("interrupts", &types::INTERRUPTS);
        /// Frames after which a coalescing interface interrupts. Default: {default}; coalesced interrupts only.
        INTERRUPT_FRAMES: u32 = optional("interrupt-frames", &types::FRAMES).otherwise("32");
        /// Longest wait of the first frame with coalescing, the polling period, or the least spacing of
        /// spaced interrupts; {limit}. Required for these three, not allowed otherwise.
        INTERRUPT_WAIT: Span = optional("interrupt-wait", &types::TIME).within("more than 0s, at most 10s");
        /// Wake-up latency of a sender, a distribution. Default: that of the host model.
        SEND_WAKE_UP: Distribution = optional("send-wake-up", &types::DISTRIBUTION).within("0s to 10s");
        /// Wake-up latency of the receiving thread, a distribution. Default: that of the host model.
        RECEIVE_WAKE_UP: Distribution = optional("receive-wake-up", &types::DISTRIBUTION).within("0s to 10s");
        /// Wake-up latency of a relay task behind its queue, a distribution. Default: that of the host model.
        RELAY_WAKE_UP: Distribution = optional("relay-wake-up", &types::DISTRIBUTION).within("0s to 10s");
        /// Messages between applications and the egress queue, at most. Default: {default}.
        BACKLOG: u32 = optional("backlog", &types::FRAMES).otherwise("4096");
        /// Size of the receive ring in frames; what does not fit is dropped. Default: {default}.
        RING: u32 = optional("ring", &types::FRAMES).otherwise("4096");
        /// Size of the egress queue, {limit}. Default: {default}.
        EGRESS: u64 = optional("egress", &types::SIZE).otherwise("4MiB").within("2KiB to 1024MiB");
        /// What background load costs the host that it is sent to. Default: received if the host has
        /// card-read, a receive-buffer, or interrupts that are spaced, burst or adaptive; otherwise
        /// discarded.
        BACKGROUND: bool = optional("background", &types::BACKGROUND);
        /// Programmed input: time for which the processor reads any frame from the card, one after another,
        /// before its receiving thread gets it, {limit}. Default: none; the card writes frames to memory.
        CARD_READ: Span = optional("card-read", &types::TIME).within("0s to 10s");
        /// The same for each byte of the frame, {limit}. Default: none. (Programmed output is
        /// transmit-per-byte.)
        CARD_READ_PER_BYTE: Span = optional("card-read-per-byte", &types::TIME).within("0s to 10s");
    }
    /// A host model with a name, which end systems and the network refer to by host. A file may hold it: then
    /// this element names the file, and what is written here replaces what the file says.
    host_model "host-model" named NAME like host holds any(&["receive-buffer", "stack"]) {
        /// Its name, unique among the host models of the network, and neither tuned nor ideal.
        NAME: String = required("name", &types::NAME);
        /// The model whose values it has where none are written.
        LIKE: KeptModel = usual("like", &types::KEPT_HOST_MODEL, "tuned");
        /// A file with a host-model element whose attributes and elements it takes over; its name does not
        /// count.
        FILE: Text = optional("file", &types::PATH);
    }
    /// What holds received frames of a kind until they are read. A host with one has one for each kind, and
    /// reads tt before rc before be frames; it never interrupts a read.
    receive_buffer "receive-buffer" named CLASS holds nothing() {
        /// The frames it is for.
        CLASS: usize = required("class", &types::TRAFFIC_KIND);
        /// Frames it holds, the one being read among them. Default: the ring of the host.
        SLOTS: u32 = optional("slots", &types::FRAMES);
        /// Size of a FIFO in front of the slots, {limit}. It takes a frame only if all of it fits, and hands
        /// frames on as slots become free; what does not fit is lost. Default: none; a frame without a free
        /// slot is lost.
        FIFO: u64 = optional("fifo", &types::SIZE).within("1522B to 1024MiB");
    }
    /// What a protocol's way through the operating system costs, where that is not what the host's transmit
    /// and receive say: raw frames pass fewer layers than UDP. Background load is UDP.
    stack "stack" named PROTOCOL holds nothing() {
        /// The protocol.
        PROTOCOL: Protocol = required("protocol", &types::PROTOCOL);
        /// From the application's call to the egress queue, for any frame, {limit}. Default: that of the
        /// host.
        TRANSMIT: Span = optional("transmit", &types::TIME).within("0s to 10s");
        /// The same for each byte of the frame, {limit}. Default: that of the host.
        TRANSMIT_PER_BYTE: Span = optional("transmit-per-byte", &types::TIME).within("0s to 10s");
        /// From the woken thread to the application, for any frame, {limit}. Default: that of the host.
        RECEIVE: Span = optional("receive", &types::TIME).within("0s to 10s");
        /// The same for each byte of the frame, {limit}. Default: that of the host.
        RECEIVE_PER_BYTE: Span = optional("receive-per-byte", &types::TIME).within("0s to 10s");
    }
}
