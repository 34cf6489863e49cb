//! Timer loop like that of cyclictest: sleep until an absolute time, read the clock, repeat.
//!
//! Most programs that send periodically work this way, so the loop is the reference for a servicing thread, which wakes
//! early and spins. Nothing is sent; the results depend only on the timer, the scheduler and the host.

use std::io;

use wg_frame::time::WallNanos;
use wg_net::{clock, realtime};

/// Settings of the loop.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Period of the ticks, ns, greater than 0.
    pub period_ns: i64,
    /// Number of ticks.
    pub count: usize,
    /// Core of the loop.
    pub core: Option<usize>,
    /// Real-time priority to request; 0: none.
    pub priority: u32,
}

/// Runs the loop and passes the latencies of ticks, ns, to `tell` in batches; `tell` returns false to stop. Returns
/// refused permissions, as sentences. No tick is skipped: a very late one delays the next ones.
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
    // About five batches per second, which is enough to show progress at little cost.
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
