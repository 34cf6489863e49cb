//! A plain timer loop, as cyclictest runs it: sleep until an absolute instant, look at the clock, repeat.
//!
//! It is what most programs that send at a period do, and so the measure for the schedule of a servicing thread, which
//! wakes early and spins. Nothing is sent; what is left is the timer, the scheduler and the host.

use std::io;

use wg_frame::time::WallNanos;
use wg_net::{clock, realtime};

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Time between ticks, ns, more than 0.
    pub period_ns: i64,
    /// Number of ticks.
    pub count: usize,
    /// Core to run on.
    pub core: Option<usize>,
    /// Real-time priority to ask for; 0 for none.
    pub priority: u32,
}

/// Runs the loop and tells, some ticks at a time, how late each came, ns; `tell` answers whether to go on. Returns
/// what the host refused, as sentences. Ticks are not skipped: one that comes too late makes the next ones late.
pub fn run(order: Order, mut tell: impl FnMut(&[i64]) -> bool) -> Vec<String> {
    let mut refused = Vec::new();
    let mut ask = |what: String, done: io::Result<()>| {
        if let Err(error) = done {
            refused.push(format!("{what}: {error}"));
        }
    };
    if let Some(core) = order.core {
        ask(format!("core {core}"), realtime::bind_to_core(core));
    }
    if order.priority > 0 {
        ask(format!("real-time priority {}", order.priority), realtime::fifo(order.priority));
    }
    ask("timer slack".into(), realtime::no_timer_slack());
    ask("memory kept in place".into(), realtime::lock_memory());
    let awake = realtime::keep_cores_awake();
    ask(
        "cores kept awake".into(),
        awake.as_ref().map(drop).map_err(|error| io::Error::other(error.to_string())),
    );
    // About five times a second, so that progress is seen and telling stays rare.
    let batch = usize::try_from(200_000_000 / order.period_ns.max(1)).unwrap_or(1).clamp(1, 10_000);
    let mut late = Vec::with_capacity(batch);
    let mut due = clock::realtime().get() + order.period_ns;
    for _ in 0..order.count {
        clock::sleep_until(WallNanos::new(due));
        late.push(clock::realtime().get() - due);
        due += order.period_ns;
        if late.len() == batch {
            if !tell(&late) {
                return refused;
            }
            late.clear();
        }
    }
    if !late.is_empty() {
        tell(&late);
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tick_is_told_once_and_none_is_early() {
        let mut told = Vec::new();
        run(Order { period_ns: 200_000, count: 50, core: None, priority: 0 }, |late| {
            told.extend_from_slice(late);
            true
        });
        assert_eq!(told.len(), 50);
        assert!(told.iter().all(|&late| late >= 0), "a tick came before its time: {told:?}");
    }

    #[test]
    fn telling_can_stop_it() {
        let mut batches = 0;
        run(Order { period_ns: 100_000_000, count: 100, core: None, priority: 0 }, |_| {
            batches += 1;
            false
        });
        assert_eq!(batches, 1);
    }
}
