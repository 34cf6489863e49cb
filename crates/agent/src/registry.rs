//! The roles an agent can play, a line each.

use crate::control::role::Role;
use crate::end_system::EndSystem;
use crate::network::NetworkBetween;

/// All of them; the first that plays what is asked for is taken.
pub static ROLES: &[&dyn Role] = &[&NetworkBetween, &EndSystem];
