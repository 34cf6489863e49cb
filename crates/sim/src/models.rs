//! Configurations of the cores from the models of the plan.

use std::sync::Arc;

use wg_core::end_system::{HostConfig, StackCosts};
use wg_core::frame::{STACKS, TrafficClass};
use wg_core::line::LineRate;
use wg_core::port::PortConfig;
use wg_core::queue::{Capacity, PRIORITIES, QUEUES};
use wg_core::switch::SwitchConfig;
use wg_frame::time::Span;
use wg_plan::random::Stream;
use wg_plan::{Distribution, HostModel, Integration, Protocol, SwitchKind, SwitchModel};

use crate::error::SimError;

/// Times drawn at random by the quantiles of the plan.
///
/// Draws are integers from start to end, so that they are the same on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draws(Arc<Quantiles>);

#[derive(Debug, PartialEq, Eq)]
struct Quantiles {
    /// Index of the first point above the beginning of each [`GUIDES`]th of the shares.
    guide: [u32; GUIDES],
    /// Cumulative share (in units of 2⁻³², ascending from 0 to 2³²) and time.
    points: Box<[(u64, Span)]>,
}

/// Number of equal parts of the shares in the look-up guide, so that hardly a point has to be passed over.
const GUIDES: usize = 64;
const GUIDE_SHIFT: u32 = u32::BITS - GUIDES.ilog2();

impl Draws {
    /// Draws from `distribution`.
    ///
    /// # Errors
    /// [`SimError::Plan`] where its quantiles do not ascend from 0 to 1 000 000 parts per million.
    pub(crate) fn new(distribution: &Distribution) -> Result<Self, SimError> {
        Self::from(distribution, Span::ZERO)
    }

    /// As [`new`](Self::new), with negative values allowed.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn signed(distribution: &Distribution) -> Result<Self, SimError> {
        Self::from(distribution, Span::from_picos(i64::MIN / 4))
    }

    fn from(distribution: &Distribution, least: Span) -> Result<Self, SimError> {
        let quantiles = &distribution.quantiles;
        let ascending = quantiles.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1);
        let whole = match quantiles[..] {
            [] => true,
            [(_, only)] => only >= least,
            [first, .., last] => first.0 == 0 && first.1 >= least && last.0 == 1_000_000,
        };
        if !(ascending && whole) {
            let problem = "the quantiles of a drawn time do not ascend from 0 to 1 000 000 parts per million";
            return Err(SimError::plan(problem));
        }
        let scaled = |ppm: u32| (u64::from(ppm) << 32) / 1_000_000;
        let points: Box<[_]> = quantiles.iter().map(|&(ppm, time)| (scaled(ppm), time)).collect();
        #[expect(clippy::cast_possible_truncation, reason = "a test has fewer quantiles than characters")]
        let first_above = |share: u64| points.partition_point(|(point, _)| *point <= share).max(1) as u32;
        let guide = core::array::from_fn(|part| first_above((part as u64) << GUIDE_SHIFT));
        Ok(Self(Arc::new(Quantiles { guide, points })))
    }

    /// Draws one time.
    #[inline]
    pub(crate) fn draw(&self, stream: &mut Stream) -> Span {
        let Quantiles { guide, points } = &*self.0;
        match **points {
            [] => return Span::ZERO,
            [(_, time)] => return time,
            _ => {}
        }
        let share = stream.next_u64() >> 32;
        let mut above = guide[(share >> GUIDE_SHIFT) as usize] as usize;
        // The last point is above every share.
        while points[above].0 <= share {
            above += 1;
        }
        let ((from, low), (to, high)) = (points[above - 1], points[above]);
        let (rise, done, whole) =
            ((high - low).as_picos(), (share - from).cast_signed(), (to - from).cast_signed());
        // Shares have 32 bits: rises below 2 ms need no wider division, which is slow.
        #[expect(clippy::cast_possible_truncation, reason = "no more than the rise")]
        let part = match rise.checked_mul(done) {
            Some(product) => product / whole,
            None => (i128::from(rise) * i128::from(done) / i128::from(whole)) as i64,
        };
        Span::from_picos(low.as_picos() + part)
    }
}

pub(crate) fn host_config(model: &HostModel) -> HostConfig {
    HostConfig {
        transmit: model.transmit,
        receive: model.receive,
        backlog: model.backlog,
        ring: model.ring,
        interrupts: model.interrupts,
        interrupt_latency: model.interrupt_latency,
        card_read: model.card_read,
        buffers: model.receive_buffers,
        stacks: stacks(model),
        interface_receive_delay: model.interface_receive_delay,
    }
}

/// Processing times of protocols with their own, by [`stack`].
fn stacks(model: &HostModel) -> [Option<StackCosts>; STACKS] {
    let mut stacks = [None; STACKS];
    for one in &model.stacks {
        stacks[usize::from(stack(one.protocol))] = Some(one.costs);
    }
    stacks
}

/// Protocol stack in hosts of a protocol's frames. That of UDP also serves background load.
pub(crate) const fn stack(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Udp => 0,
        Protocol::Raw => 1,
        Protocol::Be => 2,
        Protocol::Rc => 3,
        Protocol::Tt => 4,
    }
}

/// A port of an end system that feeds `line`. Ordinary frames wait in one queue: the host's queueing discipline has no
/// priorities, as on the live bench. Virtual links precede them.
pub(crate) fn host_port_config(model: &HostModel, line: LineRate, critical: bool) -> PortConfig {
    let limit = Capacity::bytes(model.egress_bytes);
    if !critical {
        return PortConfig::first_in_first_out(line, limit);
    }
    PortConfig { queue_of_priority: [0; PRIORITIES], ..PortConfig::critical(line, limit) }
}

/// Capabilities of a switch beyond forwarding by address. The kinds in the plan name sets of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Filters, polices and forwards by virtual link and critical-traffic identifier.
    pub(crate) virtual_links: bool,
    /// Sends in windows of a schedule.
    pub(crate) windows: bool,
    /// Cuts off frames in progress for those of a schedule.
    pub(crate) preemption: bool,
}

impl Capabilities {
    pub(crate) fn of(model: &SwitchModel) -> Self {
        let windows = model.kind == SwitchKind::MixedCriticality;
        Self {
            virtual_links: windows || model.kind == SwitchKind::Arinc664,
            windows,
            preemption: windows && model.integration == Integration::Preemption,
        }
    }
}

pub(crate) fn switch_config(model: &SwitchModel) -> SwitchConfig {
    SwitchConfig {
        processing_delay: model.processing_delay,
        mixed_rate_delay: model.mixed_rate_delay,
        mode: model.forwarding_mode,
        shared: model.shared_buffer.unwrap_or(Capacity::bytes(u64::MAX)),
    }
}

/// An egress port of a switch that feeds `line`.
pub(crate) fn port_config(model: &SwitchModel, line: LineRate) -> PortConfig {
    let port = model.port_buffer;
    let config = match (model.strict_priority, Capabilities::of(model).virtual_links) {
        (false, _) => PortConfig::first_in_first_out(line, port),
        (true, false) => PortConfig::strict_priority(line, port),
        (true, true) => PortConfig::critical(line, port),
    };
    PortConfig { queue_limits: [model.queue_buffer.unwrap_or(port); QUEUES], ..config }
}

pub(crate) const fn traffic_class(protocol: Protocol) -> TrafficClass {
    match protocol {
        Protocol::Udp | Protocol::Raw | Protocol::Be => TrafficClass::BestEffort,
        Protocol::Rc => TrafficClass::RateConstrained,
        Protocol::Tt => TrafficClass::TimeTriggered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_plan::random::Purpose;

    #[test]
    fn draws_follow_the_quantiles() {
        let us = Span::from_micros;
        let points = [(0, us(1)), (500_000, us(2)), (900_000, us(10)), (1_000_000, us(100))];
        let draws = Draws::new(&Distribution { quantiles: points.to_vec() }).expect("they ascend");
        let mut stream = Stream::new(7, Purpose::SendingThread, 1);
        let mut drawn: Vec<Span> = (0..100_000).map(|_| draws.draw(&mut stream)).collect();
        drawn.sort_unstable();
        assert!(drawn[0] >= us(1) && drawn[99_999] < us(100));
        // Four standard deviations of a share of 100 000 draws are below 0.7 %.
        for (share, time) in [(0.5, us(2)), (0.9, us(10))] {
            let below = drawn.partition_point(|draw| *draw <= time) as f64 / 1e5;
            assert!((below - share).abs() < 0.007, "{below} of the draws are not above {time}");
        }
    }

    #[test]
    fn few_quantiles_are_no_chance_and_falling_ones_are_refused() {
        let us = Span::from_micros;
        let mut stream = Stream::new(7, Purpose::SendingThread, 1);
        let mut drawn = |quantiles: &[(u32, Span)]| {
            Draws::new(&Distribution { quantiles: quantiles.to_vec() }).map(|draws| draws.draw(&mut stream))
        };
        assert_eq!(drawn(&[]).ok(), Some(Span::ZERO));
        assert_eq!(drawn(&[(0, us(3))]).ok(), Some(us(3)));
        assert!(drawn(&[(0, us(2)), (1_000_000, us(1))]).is_err());
        assert!(drawn(&[(0, us(1)), (999_999, us(2))]).is_err());
    }
}
