//! The taut string through a band: the funnel algorithm.

use std::collections::VecDeque;

/// A point of a string: `x`, `y`.
pub type Knot = (f64, f64);

/// Borders grow from their last knot until they cross.
type Hull = VecDeque<Knot>;

/// The knots of the shortest line from the first of `points` to the last that stays within `band` of all between.
///
/// The lower hull of the upper border and the upper hull of the lower border grow from the last knot until they cross.
/// `x` must ascend, and no two be equal.
pub fn taut(points: &[Knot], band: f64) -> Vec<Knot> {
    let (Some(&first), Some(&last)) = (points.first(), points.last()) else { return Vec::new() };
    let mut knots = vec![first];
    let (mut upper, mut lower) = (Hull::from([first]), Hull::from([first]));
    for (place, &(x, y)) in points.iter().enumerate().skip(1) {
        let band = if place + 1 == points.len() { 0.0 } else { band };
        // The string below the upper border is convex, that above the lower one concave.
        grow(&mut upper, (x, y + band), |before, after| before >= after);
        grow(&mut lower, (x, y - band), |before, after| before <= after);
        while upper.len() > 1 && lower.len() > 1 && slope(upper[0], upper[1]) < slope(lower[0], lower[1]) {
            // Where the hulls cross, the string bends around the blocking one.
            let (blocking, other) =
                if upper[1].0 < lower[1].0 { (&mut upper, &mut lower) } else { (&mut lower, &mut upper) };
            blocking.pop_front();
            let apex = blocking[0];
            other.pop_front();
            while other.front().is_some_and(|knot| knot.0 <= apex.0) {
                other.pop_front();
            }
            other.push_front(apex);
            knots.push(apex);
        }
    }
    for &knot in (if upper.len() >= lower.len() { &upper } else { &lower }).iter().skip(1) {
        if knots.last().is_some_and(|before| knot.0 > before.0) {
            knots.push(knot);
        }
    }
    if knots.last().is_some_and(|before| before.0 < last.0) {
        knots.push(last);
    }
    knots
}

fn grow(hull: &mut Hull, knot: Knot, bends: impl Fn(f64, f64) -> bool) {
    while hull.len() > 1 {
        let (before, after) = (hull[hull.len() - 2], hull[hull.len() - 1]);
        if !bends(slope(before, after), slope(after, knot)) {
            break;
        }
        hull.pop_back();
    }
    hull.push_back(knot);
}

fn slope(from: Knot, to: Knot) -> f64 {
    (to.1 - from.1) / (to.0 - from.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_a_band_the_string_goes_through_every_bend() {
        let points = [(0.0, 0.0), (1.0, 2.0), (2.0, 4.0), (3.0, 3.0), (4.0, 5.0)];
        assert_eq!(taut(&points, 0.0), [points[0], points[2], points[3], points[4]]);
        assert_eq!(taut(&points, 9.0), [points[0], points[4]]);
        assert_eq!(taut(&[], 1.0), []);
    }

    proptest! {
        #[test]
        fn the_string_stays_in_the_band_and_bends_at_its_borders_only(
            heights in prop::collection::vec(0_i32..40, 2..40),
            band in 0_i32..12,
        ) {
            let points: Vec<Knot> = (0..).zip(&heights).map(|(x, &y)| (x.into(), y.into())).collect();
            let band = f64::from(band);
            let knots = taut(&points, band);
            prop_assert_eq!((knots[0], knots[knots.len() - 1]), (points[0], points[points.len() - 1]));
            for piece in knots.windows(2) {
                for &(x, y) in points.iter().filter(|(x, _)| piece[0].0 <= *x && *x <= piece[1].0) {
                    let here = piece[0].1 + slope(piece[0], piece[1]) * (x - piece[0].0);
                    prop_assert!((here - y).abs() <= band + 1e-9, "{here} at {x} is not near {y}");
                }
            }
            for bend in knots.windows(3) {
                let at = points.iter().find(|(x, _)| *x == bend[1].0).unwrap().1;
                // A string bends downwards round the lower border only, and upwards round the upper one.
                let down = slope(bend[0], bend[1]) > slope(bend[1], bend[2]);
                prop_assert_eq!(bend[1].1, if down { at - band } else { at + band });
            }
        }
    }
}
