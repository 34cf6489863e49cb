//! Traffic generators.

use wg_core::generator::{Exponential, RateLimit};
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const MANY: usize = 64;

/// Any parameters, refused or not: times never go back, counts are kept, and a limited rate is kept.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let start = RunTime::from_picos(input.extreme());
    let mean = Span::from_picos(input.extreme() >> (input.byte() % 64));
    let samples: Vec<_> = (0..MANY).map(|_| input.word()).collect();
    if let Ok(times) = Exponential::new(start, mean, samples.into_iter()) {
        assert!(times.collect::<Vec<_>>().is_sorted());
    }
    let (rate, bucket) = (input.word() >> (input.byte() % 64), input.word() >> (input.byte() % 64));
    let messages: Vec<_> = (0..MANY)
        .map(|_| (RunTime::from_picos(input.extreme()), u64::from(input.byte()) << (input.byte() % 40)))
        .collect();
    let most = messages.iter().map(|(_, bits)| *bits).max().unwrap_or(0);
    if let Ok(limited) = RateLimit::new(rate, bucket, most, messages.iter().copied()) {
        let times: Vec<_> = limited.collect();
        assert!(times.is_sorted());
        assert!(times.iter().zip(&messages).all(|(time, (intended, _))| time >= intended));
        let bits: u128 = messages.iter().take(times.len()).map(|(_, bits)| u128::from(*bits)).sum();
        if let (Some(first), Some(last)) = (times.first(), times.last()) {
            let window = (i128::from(last.as_picos()) - i128::from(first.as_picos())).unsigned_abs();
            let granted = (u128::from(rate) * window).saturating_add(u128::from(bucket) * 1_000_000_000_000);
            assert!(bits * 1_000_000_000_000 <= granted);
        }
    }
}
