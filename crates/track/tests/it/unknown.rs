//! What the instrument may have lost is not lost by the network.

use proptest::prelude::*;
use wg_plan::Run;
use wg_record::Gap;
use wg_record::{DropReason, Point, Record};
use wg_track::tracking::{FlowSummary, Outcome, Tracked, Tracker};

use crate::scenario::{ONE_WAY, network, record, run};

/// Time between sends, ps.
const APART: i64 = 1_000_000;
const MESSAGES: u32 = 200;

/// Messages of which some have no record of their sending, some none of their arrival, some one of a drop.
fn records_without(unsent: &[u32], missing: &[u32], dropped: &[u32]) -> Vec<Record> {
    let mut all = Vec::new();
    for number in 0..MESSAGES {
        let sent = i64::from(number) * APART;
        if !unsent.contains(&number) {
            all.push(record(ONE_WAY, number, 0, Point::ApplicationSend, sent));
        }
        if dropped.contains(&number) {
            let reason = DropReason::BufferFull;
            all.push(Record { reason, ..record(ONE_WAY, number, 2, Point::Drop, sent + 100) });
        } else if !missing.contains(&number) {
            all.push(record(ONE_WAY, number, 1, Point::ApplicationReceive, sent + 10));
        }
    }
    all.sort_by_key(|record| record.time);
    all
}

fn tracked(run: &Run, records: &[Record], gaps: &[Gap]) -> (Tracked, FlowSummary) {
    let mut tracker = Tracker::with_window(&network(), run, 0, 1, true, 64).with_gaps(run, gaps);
    tracker.observe_all(records);
    let tracked = tracker.finish();
    let flow = tracked.summary.flows.iter().find(|flow| flow.flow == ONE_WAY).unwrap().clone();
    assert_eq!(flow.sent, flow.delivered + flow.lost + flow.unknown);
    assert_eq!(flow.outcomes.total(), flow.sent);
    (tracked, flow)
}

fn at(node: u16, from: u32, to: u32) -> Gap {
    let ps = |number: u32| Some(i64::from(number) * APART);
    Gap { node: Some(node), from_ps: ps(from), to_ps: ps(to), ..Gap::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// In doubt is what was missing while its receiver may have lost records, and nothing else.
    #[test]
    fn what_came_into_a_gap_is_unknown_and_the_rest_is_lost(
        missing in prop::collection::btree_set(0..MESSAGES, 0..60), from in 0..MESSAGES, length in 0..MESSAGES
    ) {
        let (run, to) = (run(MESSAGES, 0), from + length);
        let patience = run.drain.as_picos();
        let missing: Vec<u32> = missing.into_iter().collect();
        let records = records_without(&[], &missing, &[]);
        let (tracked, flow) = tracked(&run, &records, &[at(1, from, to)]);
        for message in tracked.messages.iter().filter(|message| message.flow == ONE_WAY) {
            let sent = i64::from(message.sequence) * APART;
            let in_doubt = sent <= i64::from(to) * APART && sent + patience >= i64::from(from) * APART;
            let expected = match (missing.contains(&message.sequence), in_doubt) {
                (false, _) => Outcome::Delivered,
                (true, true) => Outcome::Unknown,
                (true, false) => Outcome::Lost,
            };
            prop_assert_eq!(message.outcome, expected);
        }
        prop_assert_eq!(flow.lost + flow.unknown, missing.len() as u64);
    }
}

#[test]
fn without_a_gap_at_its_receiver_a_message_is_lost() {
    let run = run(MESSAGES, 0);
    let records = records_without(&[], &[7, 9], &[]);
    let other_flow = Gap { flows: vec![ONE_WAY + 1], ..Gap::default() };
    for gaps in [vec![], vec![Gap { node: Some(0), ..Gap::default() }], vec![other_flow]] {
        let (_, flow) = tracked(&run, &records, &gaps);
        assert_eq!((flow.lost, flow.unknown), (2, 0));
    }
    let (_, flow) = tracked(&run, &records, &[Gap::default()]);
    assert_eq!((flow.lost, flow.unknown), (0, 2));
}

#[test]
fn what_is_known_to_have_been_dropped_is_lost() {
    let run = run(MESSAGES, 0);
    let (_, flow) = tracked(&run, &records_without(&[], &[7], &[9]), &[Gap::default()]);
    assert_eq!((flow.lost, flow.unknown), (1, 1));
}

/// A message that neither end recorded vanishes, and the loss with it, unless the sender says how many it handed over.
#[test]
fn what_the_sender_lost_the_record_of_is_counted() {
    let run = run(MESSAGES, 0);
    let last = MESSAGES - 1;
    let records = records_without(&[3, 4, 198, last], &[4, 198, last], &[]);
    let (_, flow) = tracked(&run, &records, &[]);
    assert_eq!((flow.sent, flow.unknown), (u64::from(MESSAGES) - 3, 0));
    let gap = Gap { node: Some(0), flows: vec![ONE_WAY], handed_over: Some(MESSAGES), ..Gap::default() };
    let (tracked, flow) = tracked(&run, &records, &[gap]);
    assert_eq!((flow.sent, flow.lost, flow.unknown), (u64::from(MESSAGES), 0, 3));
    assert_eq!(unknown(&tracked), [4, 198, last]);
}

#[test]
fn what_left_no_record_at_all_is_counted_to_the_last() {
    let run = run(MESSAGES, 0);
    let gap = Gap { node: Some(0), flows: vec![ONE_WAY], handed_over: Some(MESSAGES), ..Gap::default() };
    let (tracked, flow) = tracked(&run, &[], &[gap]);
    assert_eq!((flow.sent, flow.unknown), (u64::from(MESSAGES), u64::from(MESSAGES)));
    assert_eq!(unknown(&tracked), (0..MESSAGES).collect::<Vec<_>>());
}

fn unknown(tracked: &Tracked) -> Vec<u32> {
    let rows = tracked.messages.iter().filter(|message| message.outcome == Outcome::Unknown);
    rows.map(|message| message.sequence).collect()
}
