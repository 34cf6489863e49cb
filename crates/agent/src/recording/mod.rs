//! Records, captures and counters written during a run by threads of the lowest priority.

pub mod held_back;
pub mod host_counters;
pub mod live;
pub mod packet_capture;
pub mod planted_clock;
pub mod record_ring;
pub mod record_writer;
pub mod remote_log;
