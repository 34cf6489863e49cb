//! Measuring loops and checks that need neither a plan nor a run.

pub mod clock_survey;
pub mod doctor;
pub mod examination;
pub mod finding;
pub mod mending;
pub mod place;
pub mod timer_loop;
