//! Agent: the program that plays a role of the network under test, and the service by which the testmaster controls it.
//!
//! | module | content |
//! | --- | --- |
//! | [`control`] | gRPC service, sequence and folder of a run; uses roles only through [`control::role::Role`] |
//! | [`reflecting`] | reflector and sender of STAMP and TWAMP Light, for devices of other makers |
//! | [`registry`] | list of roles |
//! | [`end_system`] | role that sends, receives and relays messages |
//! | [`stream`] | traffic too fast for queued messages: paced senders, receivers, counts; independent of the plan |
//! | [`timestamps`] | hardware timestamps: selection, limit, and translation to the system clock |
//! | [`clocks`] | programs that discipline the host's clock: control of linuxptp, queries to chrony |
//! | [`cli`] | the command line; in the library, because what only the program used would be compiled with all of tokio once more |
//! | [`console`] | output on the program's terminal |
//! | [`recording`] | files written during a run: records, captures, host counters |
//! | [`places`] | default folders of an agent |
//! | [`remote`] | remote control: enrolment, callers and their roles, signed plans, host limits, audit log |
//! | [`tsn`] | TSN settings of the interface: queue disciplines and filters, made before a run and removed after it |
//! | [`tools`] | measuring loops and checks that need no run |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)
)]

pub mod cli;
pub mod clocks;
pub mod console;
pub mod control;
pub mod end_system;
pub mod network;
pub mod places;
pub mod recording;
pub mod reflecting;
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
