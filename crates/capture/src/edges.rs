//! Where a capture says nothing of frames of another: near its beginning and its end.
//!
//! A frame that leaves when the other capture has not begun or has ended is not in it, whatever became of it. It is
//! unknown, and not lost; captures of anyone's traffic and those of our own messages go by this one rule.

/// Since and until when a frame came whose leaving, between `window[0]` and `window[1]` later, lies within a capture's
/// `span`; ps.
pub(crate) fn inside([earliest, latest]: [i64; 2], [begin, end]: [i64; 2]) -> [i64; 2] {
    [begin.saturating_sub(earliest), end.saturating_sub(latest)]
}

/// Whether what became of a frame at that time is beyond what is known `inside`.
pub(crate) fn is_at(time: i64, inside: [i64; 2]) -> bool {
    time < inside[0] || time > inside[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the words: some leaving that the window allows lies outside the span.
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
