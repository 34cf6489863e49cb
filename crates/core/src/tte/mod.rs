//! Time-triggered traffic: SAE AS6802 (TTEthernet), without its synchronisation.
//!
//! The free text to cite is ECSS-E-ST-50-16C, the space profile of the standard. All instants here are local time: a
//! device acts by its own synchronised clock, and the owner of the [oscillator](crate::oscillator) converts deadlines.
//!
//! [`dispatch`] sends frames at their instants and judges those received; [`schedule`] holds the windows of an
//! egress port; [`access`] decides how time-triggered and other traffic share that port.

pub mod access;
pub mod dispatch;
pub mod schedule;
