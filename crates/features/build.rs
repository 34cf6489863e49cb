//! Without it, cargo would take no notice of the dependencies of building.

fn main() {}
