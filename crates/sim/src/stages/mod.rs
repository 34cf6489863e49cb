//! One network on several cores, with the same bytes as on one: the parts.
//!
//! A window of simulated time in which no node can reach another is too short to share out: 58 end systems at 100 Mbit/s
//! send five frames in one. But senders do not wait for receivers, so a network is [divided](graph) into stages between
//! which frames go one way, by way of an [exchange]. A stage drives its ports as if it were alone, as far as the frames of
//! earlier stages have come; an earlier stage never waits for a later one. Every stage has the whole
//! [world](crate::world), and of a switch drives the ingresses and ports that are its own. The records of all stages are
//! [merged](merge), their reports [summed](sum).
//!
//! Nothing is guessed: the order of events is (time, class, number) whatever was scheduled before, what a stage does at an
//! instant depends on the frames of that instant that reach it, and all of them are there when it comes to that instant.

pub(crate) mod exchange;
pub(crate) mod graph;
pub(crate) mod merge;
pub(crate) mod sum;
