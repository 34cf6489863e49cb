//! Many short runs in memory are what `simulate` gives of the same offsets, one by one.

use std::collections::BTreeMap;

use wg_frame::time::Span;
use wg_plan::{Flow, Protocol, Send};
use wg_record::{Point, RecordFlags};
use wg_sim::journeys;

use crate::{run, simulated, star, switch, way};

fn pair(id: u16, from: u16) -> (Flow, Send) {
    (Flow::plain(id, Protocol::Udp, way([from, 3, 2])), Send::periodic(id, Span::from_millis(1), 100, 20))
}

#[test]
fn they_are_those_of_single_runs_on_any_number_of_threads() {
    let network = star(3, switch(), 100_000_000);
    let planned = run(vec![pair(1, 0), pair(2, 1)]);
    let offsets: Vec<Vec<i64>> = (0..5).map(|k| vec![0, k * 7_000_000]).collect();
    let found = journeys(&network, &planned, &offsets, true, 3).expect("a plan that can be simulated");
    assert_eq!(found.len(), offsets.len());
    for (own, found) in offsets.iter().zip(&found) {
        let mut single = planned.clone();
        for (send, offset) in single.sends.iter_mut().zip(own) {
            send.offset = Span::from_picos(*offset);
        }
        let (kept, _) = simulated(&network, &single);
        let mut sent = BTreeMap::new();
        let mut longest: BTreeMap<u16, i64> = BTreeMap::new();
        for record in kept.records.iter().filter(|record| !record.flags.has(RecordFlags::RETURN)) {
            let key = (record.flow, record.sequence);
            match record.point {
                Point::ApplicationSend => drop(sent.insert(key, record.time)),
                Point::ApplicationReceive => {
                    let latency = (record.time - sent[&key]).as_picos();
                    let known = longest.entry(record.flow).or_insert(latency);
                    *known = latency.max(*known);
                }
                _ => {}
            }
        }
        let told: BTreeMap<u16, i64> = found.longest.iter().map(|one| (one.flow, one.latency)).collect();
        assert_eq!(told, longest);
        let inside = found.passages.iter().filter(|one| one.node == 3).count();
        assert_eq!(inside, kept.records.iter().filter(|one| one.point == Point::SwitchIn).count());
    }
    // Frames that meet at the switch wait for one another; those that come apart do not.
    assert!(found[0].longest != found[4].longest);
    let one = journeys(&network, &planned, &offsets, true, 1).expect("a plan that can be simulated");
    assert!(one.iter().zip(&found).all(|(a, b)| a.longest == b.longest && a.passages == b.passages));
}
