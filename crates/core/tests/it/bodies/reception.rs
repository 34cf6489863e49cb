//! Integrity checking and redundancy management.

use wg_core::arinc664::Bag;
use wg_core::arinc664::redundancy::{Receiver, ReceptionDrop, Redundancy};
use wg_core::frame::NetworkId;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// For any frames on both networks: a dropped second copy has a first one on the other network within SkewMax, which
/// served for no other; no pair of copies within SkewMax is delivered; integrity is the rule itself.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let bag = Bag::ALL[usize::from(input.byte() % 8)];
    let skew_max = Span::from_picos(input.below(255 * bag.span().as_picos().unsigned_abs()) as i64);
    let on = !input.one_in(8);
    let mode = if on { Redundancy::FirstValidWins { skew_max } } else { Redundancy::Off };
    let Ok(mut core) = Receiver::new(mode, bag) else {
        assert!(skew_max.as_picos() > 254 * bag.span().as_picos());
        return;
    };
    let mut previous = [None::<u8>; 2];
    // Per number: where and when it was delivered last, unless its second copy came.
    let mut delivered: Vec<Option<(NetworkId, i64)>> = vec![None; 256];
    let (mut time, mut latest, mut number) = (0, i64::MIN, 0_u8);
    while !input.is_done() {
        time += input.step(bag.span().as_picos());
        let network = if input.one_in(2) { NetworkId::A } else { NetworkId::B };
        number = match input.byte() % 8 {
            0 => input.byte(),
            1 => number,
            2 if input.one_in(8) => {
                core.handle_reset();
                previous = [None; 2];
                delivered.fill(None);
                continue;
            }
            _ => number.checked_add(1).unwrap_or(1),
        };
        latest = latest.max(time);
        let place = usize::from(network == NetworkId::B);
        let step = previous[place].map(|p| (255 + i32::from(number) - i32::from(p)) % 255);
        let valid = number == 0 || step.is_none_or(|step| step == 1 || step == 2);
        previous[place] = Some(number);
        let first = &mut delivered[usize::from(number)];
        let second = first.filter(|(on, at)| *on != network && latest - at <= skew_max.as_picos());
        match core.handle_frame(RunTime::from_picos(time), network, number) {
            Err(ReceptionDrop::Integrity(_)) => assert!(!valid),
            Err(ReceptionDrop::SecondCopy { skew }) => {
                assert!(valid && on);
                let (_, at) = second.expect("a first copy in time");
                assert_eq!(skew.as_picos(), latest - at);
                *first = None;
            }
            Ok(_) => {
                assert!(valid && (!on || second.is_none()));
                *first = Some((network, latest));
            }
        }
    }
}
