//! Pairs of equal numbers in two long lists.

/// Spreads neighbouring numbers over the table: the odd number next to 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// For each of `wanted` the place of the first number of `among` that equals it.
pub fn first_places(among: &[u64], wanted: &[u64]) -> Vec<Option<usize>> {
    // Half empty at most, so that a search soon ends.
    let bits = (2 * among.len()).next_power_of_two().ilog2().max(1);
    let mut table: Vec<Option<usize>> = vec![None; 1 << bits];
    for (place, &number) in among.iter().enumerate() {
        let at = slot(&table, among, number, bits);
        table[at].get_or_insert(place);
    }
    wanted.iter().map(|&number| table[slot(&table, among, number, bits)]).collect()
}

/// The slot of a number, or the empty one where it would be.
#[expect(clippy::cast_possible_truncation, reason = "a slot lies within the table")]
fn slot(table: &[Option<usize>], among: &[u64], number: u64, bits: u32) -> usize {
    let mut at = (number.wrapping_mul(SPREAD) >> (u64::BITS - bits)) as usize;
    while table[at].is_some_and(|place| among[place] != number) {
        at = (at + 1) % table.len();
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_found_where_it_first_stands(
            among in prop::collection::vec(prop_oneof![0_u64..20, any::<u64>()], 0..60),
            others in prop::collection::vec(0_u64..40, 0..60),
        ) {
            let wanted = [among.clone(), others].concat();
            let expected: Vec<_> =
                wanted.iter().map(|one| among.iter().position(|other| other == one)).collect();
            prop_assert_eq!(first_places(&among, &wanted), expected);
        }
    }
}
