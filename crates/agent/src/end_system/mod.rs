//! The end system: sends, receives and relays the messages of a test.
//!
//! The architecture is that of the MAPS paper (2015, "Test bed queues and processes"):
//!
//! ```text
//!  message builder ──outbox──▶ servicing ──inbox──▶ receiver task   one set per access point (UDP socket, packet socket)
//!                               │  ▲ │                │
//!                               │  │ └──▶ relay task  │             relays turn on the servicing thread or in a task
//!                               ▼  └─────────┘        ▼
//!                           record rings ───────▶ record writer ──▶ segments
//! ```
//!
//! All queues are wait-free rings between exactly two threads; frames travel through them by pointer.

mod access_points;
pub mod addressing;
pub mod assignment;
pub mod buffer;
pub mod flooder;
pub mod framing;
mod live_figures;
pub mod load_sink;
pub mod message_builder;
pub mod outbox;
pub mod parts;
pub mod receiver_task;
pub mod relay;
pub mod relay_task;
mod report;
mod role;
pub mod servicing;
pub mod stream_task;
mod threads;

pub use role::EndSystem;
