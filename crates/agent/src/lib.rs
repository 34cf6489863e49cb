//! The end-system program: tasks, servicing threads, logging, and the control service the testmaster talks to.
//!
//! The architecture is that of the MAPS paper (2015, "Test bed queues and processes"):
//!
//! ```text
//!  feed ──outbox──▶ servicing ──inbox──▶ reception        one set per access point (UDP socket, packet socket)
//!                    │  ▲ │                │
//!                    │  │ └──▶ relay task  │              relays turn on the servicing thread or in a task
//!                    ▼  └─────────┘        ▼
//!                  record rings ───────▶ logging ──▶ segments
//! ```
//!
//! All queues are wait-free rings between exactly two threads; frames travel through them by pointer. [`run`]
//! owns the threads, [`service`] is the control plane, everything else is one noun per file.
#![forbid(unsafe_code)]

pub mod access;
pub mod assignment;
pub mod buffer;
pub mod capturing;
pub mod clocks;
pub mod doctor;
pub mod feed;
pub mod gate;
pub mod grants;
pub mod hardware;
pub mod log;
pub mod logging;
pub mod noise;
pub mod outbox;
pub mod planted_clock;
pub mod reception;
pub mod relay_task;
pub mod relaying;
pub mod report;
pub mod run;
pub mod service;
pub mod servicing;
pub mod spin;
pub mod spool;
pub mod stream;
pub mod ticks;
pub mod wire;

/// The control plane, generated from `proto/agent.proto`.
pub mod proto {
    #![expect(missing_docs, reason = "generated; the contract documents itself")]
    tonic::include_proto!("wiregauge.agent.v1");
}
