//! Credits of the credit-based shaper (IEEE Std 802.1Q-2022, Annex L).

use super::{HostTsn, Shaper};

/// What cbs(8) takes beside the idle slope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// kbit/s.
    pub idle_slope: i64,
    /// The same less the rate of the line, kbit/s; negative.
    pub send_slope: i64,
    /// Bytes.
    pub high: i64,
    /// Bytes; negative.
    pub low: i64,
}

/// The credits of the class at this place on a line of `rate_bps`; `None` where it has no credit-based shaper.
///
/// The class with the highest priority is SR class A: of interference it meets one frame of others (equation L-3, with
/// the frame as the largest burst). The one below, class B, also meets the largest burst of class A (L-16). A frame in
/// transmission takes credit at the send slope (L-2). Fractions are rounded away from zero, so that no credit is cut off.
pub fn credits(tsn: &HostTsn, class: usize, rate_bps: u64) -> Option<Credits> {
    let own = shaped(tsn, class)?;
    let rate = i128::from(rate_bps);
    let (idle, frame) = (i128::from(own.idle_slope), i128::from(own.max_frame));
    let interference = i128::from(own.max_interference);
    let above = (0..tsn.classes.len())
        .filter(|other| *other != class)
        .filter_map(|other| shaped(tsn, other))
        .find(|other| other.top > own.top);
    let high = match above {
        None => away(idle * interference, rate),
        // idle · (interference / (rate - idle A) + frame A / rate) on one denominator.
        Some(a) => {
            let left = rate - i128::from(a.idle_slope);
            away(idle * (interference * rate + i128::from(a.max_frame) * left), left.checked_mul(rate)?)
        }
    };
    let kilobits = |bps: i128| away(bps, 1_000);
    let idle_slope = kilobits(idle)?;
    Some(Credits {
        idle_slope,
        // tc counts both slopes in kbit/s: they have to differ by the line's rate there, too.
        send_slope: idle_slope - i64::try_from(rate / 1_000).ok()?,
        high: high?,
        low: away(frame * (idle - rate), rate)?,
    })
}

/// A class with a credit-based shaper.
struct Shaped {
    top: u8,
    idle_slope: u64,
    max_frame: u32,
    max_interference: u32,
}

fn shaped(tsn: &HostTsn, class: usize) -> Option<Shaped> {
    let class = tsn.classes.get(class)?;
    let Some(Shaper::Cbs { idle_slope_bps, max_frame, max_interference, .. }) = class.shaper else {
        return None;
    };
    let top = class.priorities.iter().copied().max().unwrap_or(0);
    Some(Shaped { top, idle_slope: idle_slope_bps, max_frame, max_interference })
}

/// The quotient rounded away from zero; `None` without a positive divisor.
fn away(dividend: i128, divisor: i128) -> Option<i64> {
    if divisor <= 0 {
        return None;
    }
    let quotient = dividend.unsigned_abs().div_ceil(divisor.unsigned_abs());
    i64::try_from(i128::try_from(quotient).ok()? * dividend.signum()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_tsn::TrafficClass;

    fn class(priorities: &[u8], idle_slope_bps: Option<u64>, frame: u32) -> TrafficClass {
        let shaper = idle_slope_bps.map(|idle_slope_bps| Shaper::Cbs {
            idle_slope_bps,
            max_frame: frame,
            max_interference: 1_500,
            offload: false,
        });
        TrafficClass { priorities: priorities.to_vec(), queues: 1, shaper, preemptable: false }
    }

    #[test]
    fn one_shaped_class_has_the_credits_of_the_manual_page() {
        let tsn = HostTsn {
            classes: vec![class(&[3], Some(20_000_000), 1_500), class(&[0, 1, 2, 4, 5, 6, 7], None, 0)],
            ..HostTsn::default()
        };
        assert_eq!(
            credits(&tsn, 0, 1_000_000_000),
            Some(Credits { idle_slope: 20_000, send_slope: -980_000, high: 30, low: -1_470 })
        );
        assert_eq!(credits(&tsn, 1, 1_000_000_000), None);
    }

    /// Figures by the formulas of the AVnu Alliance's script, which follows Annex L:
    /// Mo / (Ro - Ra) + Ma / Ro, times Rb.
    #[test]
    fn the_second_class_also_waits_for_the_burst_of_the_first() {
        let tsn = HostTsn {
            classes: vec![
                class(&[3], Some(98_432_000), 153),
                class(&[2], Some(3_648_000), 1_000),
                class(&[0, 1, 4, 5, 6, 7], None, 0),
            ],
            ..HostTsn::default()
        };
        let a = credits(&tsn, 0, 1_000_000_000).expect("shaped");
        assert_eq!((a.high, a.low), (148, -138));
        let b = credits(&tsn, 1, 1_000_000_000).expect("shaped");
        // 3.648 · (1500 / 901.568 + 153 / 1000) = 6.07 + 0.56
        assert_eq!((b.high, b.low, b.send_slope), (7, -997, -996_352));
    }

    #[test]
    fn a_class_that_takes_the_whole_line_leaves_the_next_none() {
        let tsn = HostTsn {
            classes: vec![class(&[3], Some(1_000_000_000), 1_500), class(&[2], Some(1_000_000), 1_500)],
            ..HostTsn::default()
        };
        assert_eq!(credits(&tsn, 1, 1_000_000_000), None);
    }
}
