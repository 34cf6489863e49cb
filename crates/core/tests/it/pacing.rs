//! Pacing: what it promises of any lateness, and of instants at the ends of time.

use proptest::prelude::*;
use wg_core::pacing::{Gap, Pacer, Pacing};
use wg_frame::time::{RunTime, Span};

use crate::contract::{self, Sent};

fn at(ps: i64) -> RunTime {
    RunTime::from_picos(ps)
}

fn either() -> impl Strategy<Value = Pacing> {
    prop_oneof![Just(Pacing::Rate), Just(Pacing::Gap)]
}

/// Sends messages planned `steps` apart, each so long after its instant, by a thread that does one thing at a time.
fn driven(pacing: Pacing, steps: &[(i64, i64)]) -> (Vec<Sent>, Vec<Gap>) {
    let mut pacer = Pacer::new(pacing);
    let (mut planned, mut free) = (at(0), at(0));
    let (mut sent, mut gaps) = (Vec::new(), Vec::new());
    for (step, hindrance) in steps {
        planned = planned + Span::from_picos(*step);
        let intended = pacer.intended(planned);
        free = intended.max(free) + Span::from_picos(*hindrance);
        gaps.extend(pacer.handle_sent(planned, free));
        sent.push(Sent { planned, intended, at: free });
    }
    (sent, gaps)
}

proptest! {
    #[test]
    fn schedule_or_gaps_are_kept(
        pacing in either(),
        steps in prop::collection::vec((0_i64..1_000, prop_oneof![3 => Just(0), 1 => 0_i64..5_000]), 0..200),
    ) {
        let (sent, gaps) = driven(pacing, &steps);
        contract::holds(pacing, Span::from_picos(1), &sent);
        let pairs = sent.windows(2).map(|pair| (pair[1].planned - pair[0].planned, pair[1].at - pair[0].at));
        prop_assert!(pairs.eq(gaps.iter().map(|gap| (gap.planned, gap.sent))));
    }

    /// A delay is in the sum of all gaps where they are kept, and in nothing that follows where the schedule is.
    #[test]
    fn one_delay_shifts_all_or_none(
        steps in prop::collection::vec(1_i64..1_000, 1..100),
        late in (any::<prop::sample::Index>(), 0_i64..100_000),
    ) {
        let hindered = late.0.index(steps.len());
        let hindrance = |number| if number == hindered { late.1 } else { 0 };
        let steps: Vec<_> = steps.iter().enumerate().map(|(number, step)| (*step, hindrance(number))).collect();
        for (number, one) in driven(Pacing::Gap, &steps).0.iter().enumerate() {
            let shift = if number >= hindered { late.1 } else { 0 };
            prop_assert_eq!(one.at - one.planned, Span::from_picos(shift));
        }
        let delayed_until = driven(Pacing::Rate, &steps).0[hindered].at;
        for (number, one) in driven(Pacing::Rate, &steps).0.iter().enumerate() {
            let expected = if number >= hindered { one.planned.max(delayed_until) } else { one.planned };
            prop_assert_eq!(one.at, expected);
        }
    }

    /// Only where there is no gap to be kept may messages go together, and a launch is only put off where there is.
    #[test]
    fn company_and_launches(pacing in either(), planned in -9_i64..9, now in -9_i64..9) {
        let pacer = Pacer::new(pacing);
        prop_assert_eq!(pacer.may_join(at(planned), at(now)), pacing == Pacing::Rate && planned <= now);
        let launch = if pacing == Pacing::Rate { planned } else { planned.max(now) };
        prop_assert_eq!(pacer.intended_launch(at(planned), at(now)), at(launch));
        prop_assert_eq!(pacing.follows_sends(), pacing == Pacing::Gap);
    }

    #[test]
    fn any_instants_are_taken(pacing in either(), instants in prop::collection::vec(any::<(i64, i64)>(), 0..50)) {
        let mut pacer = Pacer::new(pacing);
        for (planned, sent) in instants {
            let intended = pacer.intended(at(planned));
            prop_assert!(pacing == Pacing::Gap || intended == at(planned));
            pacer.handle_sent(at(planned), at(sent));
            prop_assert_eq!(pacer.intended(at(planned)), if pacing == Pacing::Gap { at(sent) } else { at(planned) });
        }
    }
}
