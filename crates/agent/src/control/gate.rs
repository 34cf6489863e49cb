//! The gate at which every thread of a run waits for the start.

use std::sync::{Condvar, Mutex, PoisonError};

use wg_frame::time::Epoch;

/// The decision of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Wait,
    Go(Epoch),
    Cancel,
}

/// A gate that opens once, for all threads.
#[derive(Debug)]
pub struct Gate {
    order: Mutex<Order>,
    changed: Condvar,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    pub const fn new() -> Self {
        Self { order: Mutex::new(Order::Wait), changed: Condvar::new() }
    }

    /// Opens the gate with the run's epoch. Only the first decision counts.
    pub fn open(&self, epoch: Epoch) -> bool {
        self.decide(Order::Go(epoch))
    }

    /// Cancels the run. Only the first decision counts.
    pub fn cancel(&self) -> bool {
        self.decide(Order::Cancel)
    }

    fn decide(&self, order: Order) -> bool {
        let mut now = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *now == Order::Wait;
        if first {
            *now = order;
            self.changed.notify_all();
        }
        first
    }

    /// Whether nothing has been decided yet.
    pub fn is_closed(&self) -> bool {
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) == Order::Wait
    }

    /// Waits for the decision: the epoch, or `None` if the run is cancelled.
    pub fn wait(&self) -> Option<Epoch> {
        let mut now = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *now {
                Order::Wait => now = self.changed.wait(now).unwrap_or_else(PoisonError::into_inner),
                Order::Go(epoch) => return Some(epoch),
                Order::Cancel => return None,
            }
        }
    }
}
