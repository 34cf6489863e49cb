//! The roles an agent can play, a line each.

use crate::control::role::Role;
use crate::end_system::EndSystem;

/// All of them; the first that plays a node is taken.
pub static ROLES: &[&dyn Role] = &[&EndSystem];
