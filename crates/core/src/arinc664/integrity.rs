//! Sequence numbers and integrity checking.
//!
//! The sender numbers the frames of a virtual link 0, 1, 2, … 255, 1, 2, …: zero appears only after its reset.
//! The receiver checks each network on its own, before the copies meet: a frame is accepted if its number is one
//! or two after that of the previous frame of the virtual link on this network (one lost frame is tolerated), if
//! it is zero (the sender was reset), or if it is the first after the receiver's own reset. The *previous* frame
//! is the previous one received, accepted or not, so that after a longer loss only one frame is refused.
//!
//! Source: AIM "AFDX / ARINC 664 Tutorial", Integrity Checking; omnetpp-models/afdx keeps the previous number in
//! the same way. That model adds one to the number without a wrap, and so refuses 1 when 255 was lost; here both
//! steps wrap. Another public dissector takes any step other than +1 modulo 256 for an error, which flags every
//! legal 255 → 1.

/// Numbers the frames of one virtual link at its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceGenerator {
    next: u8,
}

impl SequenceGenerator {
    /// After a reset: the first number is zero.
    pub const fn new() -> Self {
        Self { next: 0 }
    }
    /// The number of the next frame. Both copies of a frame carry the same one: ask once for the two.
    pub const fn next_number(&mut self) -> u8 {
        let number = self.next;
        self.next = successor(number);
        number
    }
    /// The end system restarts.
    pub const fn handle_reset(&mut self) {
        self.next = 0;
    }
}

/// The number after `number`: 255 is followed by 1.
pub const fn successor(number: u8) -> u8 {
    if number == u8::MAX { 1 } else { number + 1 }
}

/// Reason why a frame is accepted as part of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// The first one after the receiver's reset.
    First,
    /// One after the previous.
    Next,
    /// Two after the previous: one frame is missing.
    OneMissing,
    /// Zero: the sender was reset.
    SenderReset,
}

/// A frame that is not part of the sequence: repeated, stale, or after a loss of two frames or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discontinuity {
    /// The number of the previous frame received.
    pub previous: u8,
    /// The number it carried.
    pub number: u8,
}

/// Integrity checking of one virtual link on one network. No time enters: the rule knows only order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrityChecker {
    previous: Option<u8>,
}

impl IntegrityChecker {
    /// After a reset: any number is accepted first.
    pub const fn new() -> Self {
        Self { previous: None }
    }

    /// Judges the next frame received.
    ///
    /// # Errors
    /// [`Discontinuity`]: the frame is to be dropped; the checker has taken note of its number.
    pub fn handle_frame(&mut self, number: u8) -> Result<Continuity, Discontinuity> {
        let previous = self.previous.replace(number);
        match previous {
            None => Ok(Continuity::First),
            Some(_) if number == 0 => Ok(Continuity::SenderReset),
            Some(previous) if number == successor(previous) => Ok(Continuity::Next),
            Some(previous) if number == successor(successor(previous)) => Ok(Continuity::OneMissing),
            Some(previous) => Err(Discontinuity { previous, number }),
        }
    }

    /// The receiving end system restarts.
    pub const fn handle_reset(&mut self) {
        self.previous = None;
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_run_to_255_and_wrap_to_1() {
        let mut generator = SequenceGenerator::new();
        for i in 0_u32..2_000 {
            let expected = if i == 0 { 0 } else { (i - 1) % 255 + 1 };
            assert_eq!(u32::from(generator.next_number()), expected);
        }
        generator.handle_reset();
        assert_eq!((generator.next_number(), generator.next_number()), (0, 1));
    }

    /// Every pair of numbers against the interval as a table of positions on the circle 1..=255.
    #[test]
    fn every_step_is_judged_as_on_the_circle() {
        for previous in 0_u8..=255 {
            for number in 0_u8..=255 {
                let mut checker = IntegrityChecker::new();
                assert_eq!(checker.handle_frame(previous), Ok(Continuity::First));
                // 0 sits where 255 sits: 1 follows both.
                let distance = (255 + i32::from(number) - i32::from(previous)) % 255;
                let expected = match (number, distance) {
                    (0, _) => Ok(Continuity::SenderReset),
                    (_, 1) => Ok(Continuity::Next),
                    (_, 2) => Ok(Continuity::OneMissing),
                    _ => Err(Discontinuity { previous, number }),
                };
                assert_eq!(checker.handle_frame(number), expected, "{previous} then {number}");
            }
        }
    }

    /// Runs of losses; what each must cost follows from their lengths alone.
    fn cost_of_losses(losses: &[u8], check: &mut dyn FnMut(u8) -> bool) -> Vec<bool> {
        let mut sender = SequenceGenerator::new();
        losses
            .iter()
            .map(|&lost| {
                (0..lost).for_each(|_| {
                    sender.next_number();
                });
                check(sender.next_number())
            })
            .collect()
    }

    proptest! {
        /// Fewer than 255 losses in a row: after a whole lap no receiver can tell.
        #[test]
        fn a_gap_of_one_is_tolerated_and_a_longer_one_costs_one_frame(
            losses in prop::collection::vec(prop_oneof![3 => Just(0_u8), 2 => 1..4_u8, 1 => 0..=254_u8], 1..300)
        ) {
            let mut checker = IntegrityChecker::new();
            let accepted = cost_of_losses(&losses, &mut |number| checker.handle_frame(number).is_ok());
            for (i, (&lost, accepted)) in losses.iter().zip(accepted).enumerate() {
                prop_assert_eq!(accepted, i == 0 || lost <= 1, "frame {} after {} lost", i, lost);
            }
        }
    }

    #[test]
    fn wrong_checkers_are_found_out() {
        // Number 255 lost, a gap of three, and laps without a loss.
        let mut losses = std::vec![0_u8; 600];
        losses[255] = 1;
        losses[300] = 3;
        let rule = |i: usize| losses[i] <= 1;
        let right = |accepted: Vec<bool>| accepted.iter().enumerate().all(|(i, ok)| *ok == rule(i));
        let mut checker = IntegrityChecker::new();
        assert!(right(cost_of_losses(&losses, &mut |n| checker.handle_frame(n).is_ok())));

        let mut expected = 0_u32;
        let no_wrap = cost_of_losses(&losses, &mut |n| {
            let ok = expected == 0 || n == 0 || u32::from(n) == expected || u32::from(n) == expected + 1;
            expected = if n == 255 { 1 } else { u32::from(n) + 1 };
            ok
        });
        assert!(!right(no_wrap), "expected + 1 without a wrap");

        let mut previous = None;
        let accepted_only = cost_of_losses(&losses, &mut |n| {
            let ok = previous.is_none_or(|p| n == successor(p) || n == successor(successor(p)));
            previous = if ok { Some(n) } else { previous };
            ok
        });
        assert!(!right(accepted_only), "the previous accepted frame instead of the previous received one");

        let mut last = None;
        let modulo_256 = cost_of_losses(&losses, &mut |n| {
            let ok = last.is_none_or(|p: u8| matches!(n.wrapping_sub(p), 1 | 2));
            last = Some(n);
            ok
        });
        assert!(!right(modulo_256), "steps modulo 256");
    }
}
