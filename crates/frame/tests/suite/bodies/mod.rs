//! What must hold for any bytes whatever. Each body is run by the fuzzer (`fuzz/`) without end and by
//! `arbitrary_bytes.rs` for a bounded number of cases, so the stable tool chain checks them too.
//!
//! A body panics when a property fails; a panic inside the library is therefore a finding as well.

pub(crate) mod frame;
pub(crate) mod message;
pub(crate) mod stamp;
pub(crate) mod views;
