//! What is written while a run goes on, by threads that run behind everybody else.

pub mod host_counters;
pub mod packet_capture;
pub mod planted_clock;
pub mod record_ring;
pub mod record_writer;
