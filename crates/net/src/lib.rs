//! Safe interface to sockets, kernel timestamps, real-time set-up and namespaces.
//!
//! The one crate of the project that may hold `unsafe`: everything here is a thin, checked call into Linux,
//! with no policy of its own. Each unsafe block argues why the call cannot break memory safety; whatever the
//! kernel answers comes back as a value. Nothing here allocates after a socket was opened, so the calls may
//! be used on a servicing thread while a run is going on.
//!
//! Not taken: an async runtime (its reactor sits between the wire and the timestamp), a netlink library (the testmaster
//! builds the network; only three lists are read here).
#![deny(unsafe_op_in_unsafe_fn)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

mod ancillary;
mod bpf;
pub mod clock;
pub mod clock_sources;
mod discard;
pub mod enclose;
mod error;
pub mod ethtool;
pub mod host;
mod interface;
mod memory;
pub mod namespace;
mod netdev;
pub mod netfilter;
mod netlink;
mod packet_ports;
mod phc;
mod port_sender;

mod qdisc;
pub mod realtime;
pub mod receive;
mod ring;
mod socket;
mod sys;
mod target;
mod timestamping;
pub mod transmit;
mod wake;
pub mod xdp;

pub use discard::DiscardSocket;
pub use error::NetError;
pub use interface::{
    Interface, LinkCounters, NoInterface, driver, hardware_address, interface_named, interfaces, is_running,
    line_rate, link_counters, mtu,
};
pub use netdev::{XdpSupport, xdp_support};
pub use packet_ports::{PacketPorts, PortFrame};
pub use phc::{CrossMethod, CrossTimestamp, HardwareClock, tightest};
pub use port_sender::{PortSender, PortsLeft};
pub use ring::{Captured, PacketRing, RETIRE_MS};
pub use socket::{Protocols, Ready, Received, SendFailure, Socket, TX_BATCH, TransmitTimestamp, Unreachable};
pub use target::{MacRange, Target};
pub use timestamping::{HardwareTimestamping, TimestampCapability, TimestampSource, timestamp_capability};
pub use wake::Wake;
