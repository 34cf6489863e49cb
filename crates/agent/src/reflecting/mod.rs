//! Both ends of a test session with devices of other makers, by STAMP (RFC 8762, RFC 8972) and TWAMP Light (RFC 5357,
//! appendix I): [`sender`] asks a reflector, [`reflector`] answers senders.

pub mod allowed;
pub mod authentication;
pub mod awaited;
pub mod host_time;
pub mod reflector;
pub mod sender;
