//! The test language from the element tree to the campaign: every rule, sweeps, routes, and texts nobody meant.
#![forbid(unsafe_code)]

mod critical;
mod expansion;
mod networks;
mod outline;
mod routes;
mod rules;
mod schema;
mod texts;
