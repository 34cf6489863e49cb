//! Edges of a capture: frames of another capture near its beginning and end are unknown.
//!
//! A frame that leaves before the other capture begins or after it ends is not in it, whatever became of it. It is
//! unknown, not lost; captures of any traffic and those of Wiregauge's messages follow this one rule.

/// Arrival times, ps, of frames whose departure, between `window[0]` and `window[1]` later, lies within a capture's
/// `span`.
pub(crate) fn inside([earliest, latest]: [i64; 2], [begin, end]: [i64; 2]) -> [i64; 2] {
    [begin.saturating_sub(earliest), end.saturating_sub(latest)]
}

/// Whether the fate of a frame at `time` is unknown, because the time is not `inside`.
pub(crate) fn is_at(time: i64, inside: [i64; 2]) -> bool {
    time < inside[0] || time > inside[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the definition: some departure that the window allows lies outside the span.
        #[test]
        fn a_frame_is_at_an_edge_where_it_could_leave_outside(
            came in -50_i64..150,
            least in -5_i64..5,
            length in 0_i64..20,
            begin in 0_i64..50,
            span in 0_i64..50,
        ) {
            let window = [least, least + length];
            let could = (window[0]..=window[1]).any(|took| !(begin..=begin + span).contains(&(came + took)));
            prop_assert_eq!(is_at(came, inside(window, [begin, begin + span])), could);
        }
    }

    #[test]
    fn the_ends_of_time_are_no_edge_of_anything() {
        assert_eq!(inside([0, i64::MAX], [0, 10]), [0, 10 - i64::MAX]);
        assert!(is_at(i64::MIN, inside([i64::MIN, i64::MAX], [0, 10])));
    }
}
