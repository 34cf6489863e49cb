//! Replication and elimination of one stream (IEEE Std 802.1CB).

use std::collections::BTreeSet;

use wg_core::Cause;
use wg_core::frame::{Frame, Handle, Marks, NetworkId, TrafficClass};
use wg_core::frer::{
    Algorithm, Elimination, Handled, LatentErrorConfig, RecoveryConfig, Relay, Replication, StreamId,
    StreamTable,
};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::{RunTime, Span};

use crate::input::Input;

const MS: i64 = 1_000_000_000;
const VLAN: u16 = 5;

fn address(last: u8) -> MacAddress {
    MacAddress([3, 0, 0, 0, 0, last])
}

fn config(input: &mut Input<'_>, algorithm: Algorithm) -> RecoveryConfig {
    let reset = Span::from_picos(MS + input.below(50 * MS.unsigned_abs()) as i64);
    RecoveryConfig { algorithm, reset, take_no_sequence: input.one_in(2), individual: false }
}

/// What becomes of a frame at a system on the way where all member streams go on as the first.
fn relayed(relay: &mut StreamTable, now: RunTime, frame: &Frame) -> Handled {
    let Handled::Branches(branches) = relay.handle_frame(now, frame) else { panic!("not relayed") };
    assert_eq!(branches.count(), 1);
    relay.relay(now, branches, 0, frame)
}

fn relay(all: &[MacAddress], recovery: RecoveryConfig, individual: Option<RecoveryConfig>) -> StreamTable {
    let stream = |destination| StreamId { destination, vlan: VLAN };
    let (stream_out, members) = (stream(address(1)), all.to_vec());
    let junction = Elimination { stream: stream_out, members, recovery, individual, latent: None };
    let relays = all.iter().map(|own| Relay { stream: stream(*own), leaves: vec![address(1)] }).collect();
    StreamTable::default().with_relays(vec![junction], relays).expect("addresses differ")
}

/// For any frames in any member streams: copies share the number, differ in address and equal the original frame when
/// they pass; within the history and between resets a number passes once; every frame is passed, discarded or without
/// number; a frame discarded as repeated passed before; latent errors and counts never go back. A relay that joins the
/// same streams decides alike, and keeps number and tag.
#[expect(clippy::too_many_lines, reason = "an operation each, over one state")]
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let members = 2 + input.byte() % 3;
    let history = 2 + input.below(70) as u32;
    let by_match = input.one_in(4);
    let algorithm = if by_match { Algorithm::Match } else { Algorithm::Vector { history_length: history } };
    let recovery = config(&mut input, algorithm);
    let individual = input.one_in(2).then(|| config(&mut input, algorithm));
    let latent = input.one_in(2).then(|| LatentErrorConfig {
        paths: members.into(),
        difference: input.below(5),
        period: Span::from_picos(1 + input.below(20 * MS.unsigned_abs()) as i64),
        reset_period: Span::from_picos(1 + input.below(90 * MS.unsigned_abs()) as i64),
    });
    let stream = StreamId { destination: address(0), vlan: VLAN };
    let all: Vec<MacAddress> = (1..=members).map(address).collect();
    let mut talker = StreamTable::new(vec![Replication { stream, members: all.clone() }], Vec::new())
        .expect("addresses differ");
    let mut relay = relay(&all, recovery, individual);
    let elimination = Elimination { stream, members: all, recovery, individual, latent };
    let mut listener = StreamTable::new(Vec::new(), vec![elimination]).expect("a configuration that works");
    let sent = Frame {
        destination: address(0),
        source: MacAddress([2; 6]),
        length: 64 + input.byte() as u16,
        vlan: VLAN,
        virtual_link: 0,
        handle: Handle(7),
        priority: 0,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        sequence: 0,
        marks: Marks::TAGGED,
    };
    // Frames in the member streams, and the numbers that passed since anything was forgotten.
    let mut waiting: Vec<Frame> = Vec::new();
    let mut passed: BTreeSet<u16> = BTreeSet::new();
    let (mut time, mut latest, mut last_pass) = (0, i64::MIN, None::<i64>);
    let (mut came, mut counted, mut signalled) = (0_u64, 0_u64, 0_u64);
    while !input.is_done() {
        time += input.step(4 * MS);
        let now = RunTime::from_picos(time);
        match input.byte() % 8 {
            0..=2 => {
                let Handled::Copies(copies) = talker.handle_frame(now, &sent) else { panic!("not split") };
                assert_eq!(copies.count(), usize::from(members));
                let frames: Vec<Frame> =
                    (0..copies.count()).map(|at| talker.copy(copies, at, &sent)).collect();
                assert!(frames.iter().all(|frame| frame.sequence == frames[0].sequence));
                assert!(frames.iter().all(|frame| frame.length == sent.length + 6));
                waiting.extend(frames.iter().filter(|_| !input.one_in(5)));
                waiting.truncate(300);
                continue;
            }
            3 if input.one_in(12) => {
                listener.handle_restart();
                relay.handle_restart();
                passed.clear();
                last_pass = None;
                continue;
            }
            4 if input.one_in(12) => {
                talker.handle_restart();
                continue;
            }
            5 => {
                let mut other = sent;
                other.vlan += 1;
                assert_eq!(listener.handle_frame(now, &other), Handled::Foreign);
                continue;
            }
            _ => {}
        }
        if waiting.is_empty() {
            continue;
        }
        let place = input.below(waiting.len() as u64) as usize;
        let mut frame = if input.one_in(6) { waiting[place] } else { waiting.remove(place) };
        if input.one_in(30) {
            frame.marks = frame.marks.without(Marks::R_TAG);
        }
        latest = latest.max(time);
        let tagged = frame.marks.has(Marks::R_TAG);
        if last_pass.is_some_and(|at| latest - at >= recovery.reset.as_picos()) {
            passed.clear();
        }
        let frame_number = frame.sequence;
        came += 1;
        let handled = listener.handle_frame(now, &frame);
        match (handled, relayed(&mut relay, now, &frame)) {
            (Handled::Pass(_), Handled::Pass(own)) => {
                assert_eq!(own, Frame { destination: address(1), ..frame });
            }
            (ended, other) => assert_eq!(ended, other),
        }
        match handled {
            Handled::Pass(frame) => {
                let length = if tagged { sent.length } else { sent.length + 6 };
                assert_eq!(frame, Frame { length, ..sent });
                counted += 1;
                last_pass = Some(latest);
                if tagged {
                    passed.insert(frame_number);
                }
            }
            Handled::Discard(Cause::SecondCopy) => {
                assert!(tagged);
                // Individual recovery remembers longer than sequence recovery, which knows nothing of it.
                assert!(individual.is_some() || passed.contains(&frame.sequence));
                counted += 1;
            }
            Handled::Discard(Cause::Rogue) => {
                assert!(tagged && !by_match);
                counted += 1;
            }
            Handled::Discard(Cause::Integrity) => assert!(!tagged),
            other => panic!("{other:?}"),
        }
        let eliminated = &listener.eliminated(now)[0];
        assert_eq!(relay.joined(now)[0].recovery, eliminated.recovery);
        assert_eq!(eliminated.came.iter().sum::<u64>(), came);
        let own = eliminated.recovery;
        assert!(own.passed + own.discarded <= counted && own.rogue <= own.discarded);
        if individual.is_none() {
            assert_eq!(own.passed + own.discarded, counted);
        }
        let now_signalled = eliminated.latent.map_or(0, |(signalled, _)| signalled);
        assert!(now_signalled >= signalled);
        signalled = now_signalled;
    }
}
