//! Agent: the program that plays a role of the network under test, and the service by which the testmaster controls it.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`control`] | the gRPC service, the life of a run, its folder; knows no role but by the trait [`control::role::Role`] |
//! | [`registry`] | the roles there are, a line each |
//! | [`end_system`] | the role that sends, receives and relays messages |
//! | [`stream`] | traffic too fast for a queue per message: paced senders, receivers, accounts; knows no plan |
//! | [`timestamps`] | hardware timestamps: which are taken, how many, and what time they are |
//! | [`clocks`] | the programs that keep the host's clock: linuxptp started, heard and stopped; chrony asked |
//! | [`console`] | what is said on the program's own terminal |
//! | [`recording`] | what is written while a run goes on: records, captures, counters of the host |
//! | [`places`] | where an agent keeps what it keeps |
//! | [`remote`] | control over a network: enrolment, callers and their roles, signed plans, what the host allows, the audit log |
//! | [`tsn`] | TSN settings of the interface: queue disciplines and filters made before a run and taken off after it |
//! | [`tools`] | measuring loops and checks that need no run |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

pub mod clocks;
pub mod console;
pub mod control;
pub mod end_system;
pub mod network;
pub mod places;
pub mod recording;
pub mod registry;
pub mod remote;
pub mod stream;
pub mod timestamps;
pub mod tools;
pub mod tsn;

/// The control plane, generated from `proto/agent.proto`.
pub mod proto {
    #![expect(missing_docs, clippy::too_many_lines, reason = "generated; the contract documents itself")]
    tonic::include_proto!("wiregauge.agent.v1");
}
