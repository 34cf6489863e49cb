//! Operations read from arbitrary bytes.

/// Bytes not used yet; zeros once they have run out.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    pub(crate) fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
    /// True once in `n` times, `n` up to 255 and not zero.
    pub(crate) fn one_in(&mut self, n: u8) -> bool {
        self.byte().is_multiple_of(n)
    }
    /// Below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }
    /// A step of time: often none, sometimes about `unit`, seldom back.
    pub(crate) fn step(&mut self, unit: i64) -> i64 {
        match self.byte() % 8 {
            0 | 1 => 0,
            2 => unit,
            3 => unit - 1,
            4 => -(self.below(unit.unsigned_abs()) as i64),
            5 => self.below(8 * unit.unsigned_abs()) as i64,
            _ => self.below(unit.unsigned_abs()) as i64,
        }
    }
    /// Any 64 bits, near the ends more often than by chance.
    pub(crate) fn extreme(&mut self) -> i64 {
        match self.byte() % 6 {
            0 => i64::MIN.saturating_add(i64::from(self.byte())),
            1 => i64::MAX - i64::from(self.byte()),
            2 => i64::from(self.byte()) - 128,
            3 => (self.word() >> 20) as i64,
            _ => self.word() as i64,
        }
    }
}
