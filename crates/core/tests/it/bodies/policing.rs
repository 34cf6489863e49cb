//! Token accounts.

use wg_core::arinc664::policing::{Account, MAX_GRANTED_JITTER, Mode, Verdict};
use wg_core::arinc664::{Bag, Contract};
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

/// What passed is within the contract over every window, at any instants in any order.
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let bag = Bag::ALL[usize::from(input.byte() % 8)].span().as_picos();
    let smax = 64 + input.below(1_455) as u16;
    let jitter = input.extreme().checked_abs().unwrap_or(0) >> (input.byte() % 64);
    let jitter = jitter.min(MAX_GRANTED_JITTER.as_picos());
    let mode = if input.one_in(2) { Mode::ByteBased } else { Mode::FrameBased };
    let contract =
        Contract::new(Bag::new(Span::from_picos(bag)).expect("a gap"), smax).expect("within bounds");
    let mut account = Account::new(contract, Span::from_picos(jitter), mode).expect("a jitter");
    let (mut time, mut effective) = (0_i64, i64::MIN);
    // Of all windows that end now, the fullest: granted minus used, in byte·ps.
    let mut room = None::<i128>;
    while !input.is_done() {
        time = match input.byte() {
            0 => input.extreme(),
            _ => time.saturating_add(input.step(bag)),
        };
        let len = input.below(3_000) as usize;
        let elapsed = i128::from(time.max(effective)) - i128::from(effective);
        let full = i128::from(smax) * (i128::from(bag) + i128::from(jitter));
        room = Some(room.map_or(full, |room| full.min(room + elapsed * i128::from(smax))));
        effective = effective.max(time);
        let charged = if mode == Mode::ByteBased { len as i128 } else { i128::from(smax) };
        let left = room.expect("just set") - charged * i128::from(bag);
        match account.handle_frame(RunTime::from_picos(time), len) {
            Verdict::Conforming => {
                assert!(left >= 0, "beyond the contract");
                room = Some(left);
            }
            Verdict::Excess { early_by } => assert!(left < 0 && early_by > Span::ZERO),
            Verdict::BeyondAccount => assert!(charged * i128::from(bag) > full),
        }
    }
}
