//! A MAC that gates hold and release, in closed form and beside the count of every byte.

use super::*;

/// Bytes of the line that the MAC is released and held for, by turns, and how many before each it is told.
#[derive(Clone, Copy, Debug)]
struct Turns {
    released: i64,
    held: i64,
    hold_advance: i64,
    release_advance: i64,
}

impl Turns {
    const fn cycle(self) -> i64 {
        self.released + self.held
    }

    /// Whether the MAC is held, by the text of the standard: the advances before the entries that hold and release.
    const fn holds(self, byte: i64) -> bool {
        let into = byte.rem_euclid(self.cycle());
        self.released - self.hold_advance <= into && into < self.cycle() - self.release_advance
    }

    /// All gates are open throughout.
    fn config(self, queues: u8, shortest_fragment: u16) -> TrafficClassConfig {
        let entry = |mac, length| GateEntry { open: u8::MAX, length: span(length), mac };
        let entries = vec![entry(MacOperation::Release, self.released), entry(MacOperation::Hold, self.held)];
        let advances = HoldAdvances { hold: span(self.hold_advance), release: span(self.release_advance) };
        TrafficClassConfig {
            gates: Some(
                Gates::new(&[GateList { base: LocalTime::ZERO, extension: Span::ZERO, entries }]).unwrap(),
            ),
            preemption: Some(Preemption { queues, shortest_fragment, advances }),
            ..with([None; PRIORITIES], None)
        }
    }
}

fn span(bytes: i64) -> Span {
    Span::from_picos(bytes * BYTE)
}

/// When an express frame begins that comes as the held window opens, behind a preemptable one of `length` that came at
/// `at`.
fn begins(turns: Turns, length: u16, at: i64) -> i64 {
    let all = fragments(turns.config(0x01, 64), &[(at, 0, length), (turns.released, 7, 64)]);
    all.iter().find(|(_, line)| *line == Line::Begins(1)).expect("it is sent").0
}

#[test]
fn an_express_window_opens_on_a_free_line_and_a_byte_less_of_advance_is_too_little() {
    let advance = Preemption::longest_rest(64, LineRate::GIGABIT).as_picos() / BYTE;
    assert_eq!(advance, 143);
    let turns = Turns { released: 2_000, held: 500, hold_advance: advance, release_advance: 0 };
    let (mut short, mut without) = (0, 0);
    for length in (64_u16..=140).chain([256, 1_000, 1_522]) {
        for at in (2_000 - 8 - i64::from(length) - 12 - advance).max(0)..2_000 {
            assert_eq!(begins(turns, length, at), 2_000, "{length} B from {at}");
            short = short.max(begins(Turns { hold_advance: advance - 1, ..turns }, length, at) - 2_000);
            without = without.max(begins(Turns { hold_advance: 0, ..turns }, length, at) - 2_000);
        }
    }
    // What begins a byte before the hold is told is in the way for a byte; without advance it is the smallest rest.
    assert_eq!((short, without), (0, 142));
}

#[test]
fn what_is_lost_is_the_advance() {
    let turns = Turns { released: 10_000, held: 1_000, hold_advance: 143, release_advance: 0 };
    // Never cut: as many begin as before the hold is told.
    let all = fragments(turns.config(0x01, 64), &[(0, 0, 64); 400]);
    let in_first = all.iter().filter(|(at, line)| *at < 11_000 && matches!(line, Line::Begins(_))).count();
    assert_eq!(in_first, (10_000_usize - 143).div_ceil(84));
    assert!(all.iter().all(|(at, line)| !matches!(line, Line::Begins(_)) || !turns.holds(*at)));
    // Cut: sent up to the very byte, and on again when it is released.
    let all = fragments(turns.config(0x01, 64), &[(0, 0, 1_518); 10]);
    let cut: Vec<i64> =
        all.iter().filter(|(_, line)| matches!(line, Line::Cut(_))).map(|(at, _)| *at).collect();
    let on: Vec<i64> =
        all.iter().filter(|(_, line)| matches!(line, Line::GoesOn(_))).map(|(at, _)| *at).collect();
    assert_eq!((cut, on), (vec![9_857], vec![11_000]));
    // Released in advance it goes on within the window.
    let early = Turns { release_advance: 200, ..turns };
    let all = fragments(early.config(0x01, 64), &[(0, 0, 1_518); 10]);
    assert!(all.iter().any(|(at, line)| *at == 10_800 && matches!(line, Line::GoesOn(_))));
}

#[test]
fn nobody_else_takes_notice_of_a_hold() {
    let turns = Turns { released: 1_000, held: 1_000, hold_advance: 200, release_advance: 0 };
    let all = fragments(turns.config(0x01, 64), &[(900, 7, 64), (1_100, 3, 1_000), (1_200, 0, 64)]);
    let begins: Vec<(i64, Line)> =
        all.into_iter().filter(|(_, line)| matches!(line, Line::Begins(_))).collect();
    assert_eq!(begins, [(900, Line::Begins(0)), (1_100, Line::Begins(1)), (2_120, Line::Begins(2))]);
}

#[test]
fn a_clock_that_is_set_holds_the_mac_at_once() {
    // The clock shows nothing of what is coming; it is set so that the window has begun.
    let turns = Turns { released: 5_000, held: 1_000, hold_advance: 0, release_advance: 0 };
    let capacity = Capacity { bytes: u64::MAX, frames: u32::MAX };
    let mut port = Port::new(
        PortConfig::strict_priority(LineRate::GIGABIT, capacity),
        TrafficClasses::new(turns.config(0x01, 64)),
    );
    let clock = DisciplinedClock::new(
        Oscillator::new(FrequencyOffset::from_ppb(0).unwrap()),
        Span::ZERO,
        Span::from_picos(1),
    )
    .unwrap();
    let mut device = NodeShared::new(capacity, clock);
    let now = |byte: i64| RunTime::ZERO + span(byte);
    let mut told = Vec::new();
    port.handle_frame(now(0), frame(0, 0, 1_500), &mut device, &mut |effect| told.push(effect));
    let Some(Effect::Transmit { transmission, .. }) = told.pop() else { panic!("the line is free") };
    port.handle_line_free(transmission, now(1_520));
    // Nobody waits, and still the port has a deadline only when the hold would come before the end.
    assert_eq!((port.is_at_rest(&device), device.buffer.is_idle()), (false, false));
    assert_eq!(port.next_deadline(&device), crate::deadline::Deadline::NEVER);
    device.clock.step(now(100), span(5_000)).unwrap();
    port.handle_clock_change(now(100), &device);
    assert_eq!(port.next_deadline(&device).instant(), Some(now(100)));
    port.handle_deadline(now(100), &mut device, &mut |effect| told.push(effect));
    assert!(matches!(told[..], [Effect::Fragment { edge: FragmentEdge::Cut { .. }, .. }]));
    assert!(port.next_deadline(&device).instant() > Some(now(500)), "not before it is released");
}

proptest! {
    #[test]
    fn held_or_not_fragments_are_where_a_count_of_every_byte_has_them(
        gaps in proptest::collection::vec((1_i64..900, 0_u8..8, 20_u16..1_522), 1..60),
        express in 1_u8..8,
        shortest in prop_oneof![Just(64_u16), Just(128), Just(192), Just(256)],
        (released, held) in (1_i64..4_000, 1_i64..3_000),
        (hold_advance, release_advance) in (0_i64..500, 0_i64..500),
    ) {
        let mut at = 0;
        let arrivals: Vec<Arrival> = gaps.iter().map(|(gap, priority, length)| {
            at += gap;
            (at, *priority, *length)
        }).collect();
        let turns = Turns {
            released,
            held,
            hold_advance: hold_advance.min(released - 1),
            release_advance: release_advance.min(held - 1),
        };
        let queues = (1_u8 << express) - 1;
        prop_assert_eq!(
            fragments(turns.config(queues, shortest), &arrivals),
            fragments_counted(express, i64::from(shortest), &arrivals, &|byte| turns.holds(byte))
        );
    }
}
