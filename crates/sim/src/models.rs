//! What the test language does not say of hosts and switches: the models behind a simulated run.
//!
//! The figures are those of a plausible machine, not of a measured one, and a report must not present them as found.
//! They stand here, in one place, and [`Models::ideal`] takes all of them away.

use wg_core::end_system::{Cost, Interrupts};
use wg_core::switch::Mode;
use wg_frame::time::Span;

use crate::random::Stream;

/// Times drawn at random: a piecewise linear distribution through these quantiles.
///
/// Draws are integers from start to end, so that they are the same on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Share of draws that are not above (in units of 2⁻³², ascending from 0 to 2³²) and the time.
    points: Vec<(u64, Span)>,
}

impl Distribution {
    /// Always the same.
    pub fn constant(time: Span) -> Self {
        Self { points: vec![(0, time)] }
    }

    /// Through the quantiles `(share in parts per million, time)`, both ascending, the first at 0 and the last at 1 000 000.
    ///
    /// Panics when they are not.
    pub fn through(quantiles: &[(u32, Span)]) -> Self {
        let ascending = quantiles.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
        let whole = quantiles.first().is_some_and(|q| q.0 == 0 && q.1 >= Span::ZERO)
            && quantiles.last().is_some_and(|q| q.0 == 1_000_000);
        assert!(
            ascending && whole,
            "wg-sim misuse: quantiles must ascend from 0 to 1 000 000 parts per million"
        );
        let scaled = |ppm: u32| (u64::from(ppm) << 32) / 1_000_000;
        Self { points: quantiles.iter().map(|&(ppm, time)| (scaled(ppm), time)).collect() }
    }

    /// One draw.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> Span {
        if let [(_, time)] = self.points[..] {
            return time;
        }
        let share = stream.next_u64() >> 32;
        let above = self.points.partition_point(|(point, _)| *point <= share).clamp(1, self.points.len() - 1);
        let ((from, low), (to, high)) = (self.points[above - 1], self.points[above]);
        let rise = i128::from((high - low).as_picos());
        let part = rise * i128::from(share - from) / i128::from(to - from);
        Span::from_picos(low.as_picos() + part as i64)
    }
}

/// The model of an end system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostModel {
    /// From the application's call to the egress queue.
    pub transmit: Cost,
    /// From the woken thread to the application.
    pub receive: Cost,
    /// From the driver to the first bit on the wire.
    pub interface_delay: Span,
    /// From the interrupt to the driver's look at the ring.
    pub interrupt_latency: Span,
    /// When the interface raises an interrupt.
    pub interrupts: Interrupts,
    /// How late the scheduler wakes a sender.
    pub send_wake_up: Distribution,
    /// How late it wakes the receiving thread.
    pub receive_wake_up: Distribution,
    /// How late it wakes a relay task behind its queue.
    pub relay_wake_up: Distribution,
    /// Messages on their way from applications to the egress queue.
    pub backlog: u32,
    /// Frames in the receive ring.
    pub ring: u32,
    /// Bytes in the egress queue.
    pub egress_bytes: u64,
}

/// The model of a commercial switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchModel {
    /// From the last bit in (cut-through: of the header) to the earliest first bit out.
    pub processing_delay: Span,
    /// Store-and-forward or cut-through.
    pub mode: Mode,
}

/// All models of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models {
    /// Of every end system.
    pub host: HostModel,
    /// Of every switch.
    pub switch: SwitchModel,
}

impl Models {
    /// Hosts and switches that take no time: what is left is the network itself. For closed forms.
    pub fn ideal() -> Self {
        let at_once = Distribution::constant(Span::ZERO);
        Self {
            host: HostModel {
                transmit: Cost::default(),
                receive: Cost::default(),
                interface_delay: Span::ZERO,
                interrupt_latency: Span::ZERO,
                interrupts: Interrupts::EachFrame,
                send_wake_up: at_once.clone(),
                receive_wake_up: at_once.clone(),
                relay_wake_up: at_once,
                backlog: 4_096,
                ring: 4_096,
                egress_bytes: 4 << 20,
            },
            switch: SwitchModel { processing_delay: Span::ZERO, mode: Mode::StoreAndForward },
        }
    }
}

impl Default for Models {
    /// A tuned machine with a real-time scheduler, and a switch that needs 2 µs.
    fn default() -> Self {
        let us = Span::from_micros;
        let ns = Span::from_nanos;
        let sleeper =
            [(0, ns(800)), (500_000, ns(1_500)), (990_000, us(4)), (999_000, us(12)), (1_000_000, us(40))];
        let spinner =
            [(0, ns(50)), (500_000, ns(100)), (990_000, ns(300)), (999_000, us(3)), (1_000_000, us(20))];
        Self {
            host: HostModel {
                transmit: Cost { fixed: ns(2_500), per_byte: Span::from_picos(150) },
                receive: Cost { fixed: ns(2_000), per_byte: Span::from_picos(150) },
                interface_delay: ns(600),
                interrupt_latency: us(1),
                send_wake_up: Distribution::through(&spinner),
                receive_wake_up: Distribution::through(&sleeper),
                relay_wake_up: Distribution::through(&sleeper),
                ..Self::ideal().host
            },
            switch: SwitchModel { processing_delay: us(2), mode: Mode::StoreAndForward },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn draws_follow_the_quantiles() {
        let us = Span::from_micros;
        let points = [(0, us(1)), (500_000, us(2)), (900_000, us(10)), (1_000_000, us(100))];
        let distribution = Distribution::through(&points);
        let mut stream = Stream::new(7, Purpose::SendingThread, 1);
        let mut draws: Vec<Span> = (0..100_000).map(|_| distribution.draw(&mut stream)).collect();
        draws.sort_unstable();
        assert!(draws[0] >= us(1) && draws[99_999] < us(100));
        // Four standard deviations of a share of 100 000 draws are below 0.7 %.
        for (share, time) in [(0.5, us(2)), (0.9, us(10))] {
            let below = draws.partition_point(|draw| *draw <= time) as f64 / 1e5;
            assert!((below - share).abs() < 0.007, "{below} of the draws are not above {time}");
        }
    }

    #[test]
    #[should_panic(expected = "quantiles must ascend")]
    fn quantiles_that_fall_are_refused() {
        Distribution::through(&[(0, Span::from_micros(2)), (1_000_000, Span::from_micros(1))]);
    }
}
