//! Roles that an agent can play.

use crate::control::role::Role;
use crate::end_system::EndSystem;
use crate::network::NetworkBetween;

/// All roles; the first that supports the request is used.
pub static ROLES: &[&dyn Role] = &[&NetworkBetween, &EndSystem];
