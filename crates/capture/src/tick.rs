//! Units in which captures count time.

const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// Unit of the times of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    per_second: u128,
}

impl Unit {
    /// `if_tsresol`: a negative power of ten, or of two with the highest bit set.
    pub(crate) fn of(code: u8) -> Option<Self> {
        let power = u32::from(code & 0x7f);
        let base: u128 = if code & 0x80 == 0 { 10 } else { 2 };
        // 2^64 ticks must fit 128 bits in picoseconds.
        let limit = if code & 0x80 == 0 { 18 } else { 60 };
        (power <= limit).then(|| Self { per_second: base.pow(power) })
    }

    /// Ticks per second.
    pub(crate) fn per_second(self) -> u128 {
        self.per_second
    }

    /// Its length in picoseconds, at least 1.
    pub(crate) fn step(self) -> u64 {
        u64::try_from((PICOS_PER_SECOND / self.per_second).max(1)).unwrap_or(u64::MAX)
    }

    /// Time in picoseconds from ticks and an offset in whole seconds since 1970; `None` beyond year 9999.
    pub(crate) fn picos(self, ticks: u64, offset: i64) -> Option<i128> {
        const END: i128 = 253_402_300_800 * PICOS_PER_SECOND.cast_signed();
        let ticks = u128::from(ticks);
        let (whole, rest) = (ticks / self.per_second, ticks % self.per_second);
        let part = rest * PICOS_PER_SECOND / self.per_second;
        let seconds = i128::try_from(whole).ok()?.checked_add(i128::from(offset))?;
        let picos = seconds.checked_mul(PICOS_PER_SECOND.cast_signed())?;
        let time = picos.checked_add(i128::try_from(part).ok()?)?;
        (0..END).contains(&time).then_some(time)
    }
}
