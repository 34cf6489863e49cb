//! Whole networks, by hand and by laws that every analysis keeps.

mod by_hand;
mod laws;
mod networks;
