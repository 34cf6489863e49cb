use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use wg_frame::time::{RunTime, Span};

use super::*;
use crate::clock::{LocalTime, TrueTime};
use crate::frame::{Handle, NetworkId, TrafficClass};
use crate::ingress::IngressRules;

const HERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const THERE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

fn frame(source: MacAddress, destination: MacAddress, vlan: u16, length: u16) -> Frame {
    Frame {
        destination,
        source,
        length,
        vlan,
        virtual_link: 0,
        sequence: 0,
        handle: Handle(0),
        priority: 3,
        class: TrafficClass::BestEffort,
        network: NetworkId::A,
        marks: if vlan == 0 { Marks::none() } else { Marks::TAGGED },
    }
}

fn arrival(port: usize, at_ps: i64, frame: Frame) -> Arrival {
    Arrival { port, frame, complete: RunTime::ZERO + Span::from_picos(at_ps) }
}

fn filter(port: usize, stream: Identification) -> StreamFilterConfig {
    StreamFilterConfig {
        port,
        streams: vec![stream],
        max_sdu: None,
        block_oversize: false,
        gate: None,
        meter: None,
    }
}

const fn gate(entries: Vec<StreamGateEntry>) -> StreamGateConfig {
    StreamGateConfig { base: LocalTime::ZERO, entries, close_on_invalid: false, close_on_octets: false }
}

#[test]
fn a_stream_is_known_by_port_address_and_vlan() {
    let tight = |port, stream| StreamFilterConfig { max_sdu: Some(1), ..filter(port, stream) };
    let mut filters = StreamFilters::new(vec![
        tight(0, Identification::Destination(THERE, 5)),
        tight(1, Identification::Source(HERE, 0)),
    ])
    .unwrap();
    let mut judge = |port, frame| filters.judge(&TrueTime, &arrival(port, 0, frame));
    let refused = Verdict::Refuse(Cause::OversizeSdu);
    assert_eq!(judge(0, frame(HERE, THERE, 5, 100)), refused);
    assert_eq!(judge(0, frame(HERE, THERE, 6, 100)), Verdict::Bridge, "another VLAN");
    assert_eq!(judge(0, frame(THERE, HERE, 5, 100)), Verdict::Bridge, "another address");
    assert_eq!(judge(1, frame(HERE, THERE, 5, 100)), Verdict::Bridge, "another port");
    assert_eq!(judge(1, frame(HERE, THERE, 0, 100)), refused);
    assert_eq!(judge(1, frame(THERE, HERE, 0, 100)), Verdict::Bridge);
    assert_eq!(filters.counters().map(|counters| counters.matching).collect::<Vec<_>>(), [1, 1]);
    // Frames of virtual links are no business of stream filters.
    let mut rules = IngressRules { critical: None, streams: Some(alloc::boxed::Box::new(filters)) };
    let critical = Frame { class: TrafficClass::RateConstrained, ..frame(HERE, THERE, 5, 100) };
    assert_eq!(rules.judge(&TrueTime, &arrival(0, 0, critical)), Verdict::Bridge);
    assert_eq!(rules.judge(&TrueTime, &arrival(0, 0, frame(HERE, THERE, 5, 100))), refused);
}

#[test]
fn the_service_data_unit_lies_between_the_tag_and_the_check_sequence() {
    for (vlan, around) in [(0, 18), (7, 22)] {
        let stream = Identification::Destination(THERE, vlan);
        let config = StreamFilterConfig { max_sdu: Some(100), block_oversize: true, ..filter(0, stream) };
        let mut filters = StreamFilters::new(vec![config]).unwrap();
        let mut judge = |length| filters.judge(&TrueTime, &arrival(0, 0, frame(HERE, THERE, vlan, length)));
        assert_eq!(judge(100 + around), Verdict::Bridge);
        assert_eq!(judge(101 + around), Verdict::Refuse(Cause::OversizeSdu));
        assert_eq!(judge(100 + around), Verdict::Refuse(Cause::StreamBlocked));
        filters.handle_restart();
        assert_eq!(filters.judge(&TrueTime, &arrival(0, 0, frame(HERE, THERE, vlan, 100))), Verdict::Bridge);
        let [counters] = filters.counters().collect::<Vec<_>>()[..] else { unreachable!() };
        assert_eq!((counters.matching, counters.not_passing_sdu, counters.passed()), (4, 2, 2));
    }
}

#[test]
fn a_frame_keeps_its_code_point_through_an_internal_priority() {
    let own = frame(HERE, THERE, 5, 64);
    for internal in 0..8 {
        let within = own.with_internal_priority(internal);
        assert_eq!((within.priority & 7, within.leaving()), (internal, own));
        assert_eq!(within.with_internal_priority(2).leaving(), own);
    }
    let entries = vec![StreamGateEntry {
        open: true,
        priority: Some(6),
        length: Span::from_picos(1),
        max_octets: None,
    }];
    let stream = Identification::Destination(THERE, 5);
    let meter = MeterConfig { excess_burst: 200, ..MeterConfig::default() };
    let (gate, meter) = (Some(Instance::Own(gate(entries))), Some(Instance::Own(meter)));
    let config = StreamFilterConfig { gate, meter, ..filter(0, stream) };
    let mut filters = StreamFilters::new(vec![config]).unwrap();
    let mut judge = || filters.judge(&TrueTime, &arrival(0, 0, own));
    assert_eq!(judge(), Verdict::BridgeAs { priority: Some(6), drop_eligible: true });
}

#[test]
fn filters_that_cannot_work_are_refused() {
    let stream = Identification::Destination(THERE, 5);
    let twice = StreamFilters::new(vec![filter(0, stream), filter(1, stream), filter(0, stream)]);
    assert_eq!(twice.unwrap_err(), PsfpError::Twice(2));
    let empty = StreamFilterConfig { gate: Some(Instance::Own(self::gate(vec![]))), ..filter(0, stream) };
    let error = StreamFilters::new(vec![empty]).unwrap_err();
    assert_eq!(error, PsfpError::Gate { filter: 0, error: StreamGateError::Empty });
}

#[test]
fn what_is_shared_belongs_to_somebody() {
    let stream = |vlan| Identification::Destination(THERE, vlan);
    let sharing = |vlan, of| StreamFilterConfig { meter: Some(Instance::Of(of)), ..filter(0, stream(vlan)) };
    let own = Some(Instance::Own(MeterConfig { committed_burst: 100, ..MeterConfig::default() }));
    let own = || StreamFilterConfig { meter: own.clone(), ..filter(0, stream(1)) };
    for (configs, of) in [
        (vec![filter(0, stream(1)), sharing(2, 0)], 0),
        (vec![own(), sharing(2, 2), sharing(3, 0)], 2),
        (vec![own(), sharing(2, 7)], 7),
        (vec![own(), sharing(2, 1)], 1),
    ] {
        let error = StreamFilters::new(configs).unwrap_err();
        assert_eq!(error, PsfpError::NothingToShare { filter: 1, part: "meter", of });
    }
    // One after it will do.
    assert!(StreamFilters::new(vec![sharing(2, 1), own()]).is_ok());
}

proptest! {
    /// Which filter a frame meets, against a search of all filters one after the other: that of its destination before
    /// that of its source, and that before one of its headers, of which a filter may have several.
    #[test]
    fn a_frame_meets_the_filter_that_knows_it(
        kinds in prop::collection::vec((0_usize..2, 0_u8..3, 0_u8..3, 0_u16..3, prop::collection::btree_set(1_u16..6, 0..4)), 1..6),
        frames in prop::collection::vec((0_usize..2, 0_u8..3, 0_u8..3, 0_u16..3, 0_u16..6), 1..60),
    ) {
        let address = |last: u8| MacAddress([2, 0, 0, 0, 0, last]);
        let known = |(_, kind, last, vlan, numbers): &(usize, u8, u8, u16, alloc::collections::BTreeSet<u16>)| match kind {
            0 => vec![Identification::Destination(address(*last), *vlan)],
            1 => vec![Identification::Source(address(*last), *vlan)],
            _ => numbers.iter().map(|number| Identification::Headers(*number)).collect::<Vec<_>>(),
        };
        let configs: Vec<_> = kinds
            .iter()
            .map(|one| StreamFilterConfig { streams: known(one), ..filter(one.0, Identification::Headers(0)) })
            .collect();
        let mut all: Vec<(usize, Identification)> =
            configs.iter().flat_map(|one| one.streams.iter().map(|stream| (one.port, *stream))).collect();
        all.sort_unstable();
        let twice = all.windows(2).any(|pair| pair[0] == pair[1]);
        let filters = StreamFilters::new(configs.clone());
        prop_assert_eq!(filters.is_err(), twice);
        let Ok(mut filters) = filters else { return Ok(()) };
        let mut expected = vec![0; configs.len()];
        for (port, destination, source, vlan, number) in frames {
            let own = Frame { virtual_link: number, ..frame(address(source), address(destination), vlan, 100) };
            let ways = [
                Identification::Destination(address(destination), vlan),
                Identification::Source(address(source), vlan),
                Identification::Headers(number),
            ];
            let meets = ways.iter().find_map(|way| {
                configs.iter().position(|one| one.port == port && one.streams.contains(way))
            });
            if let Some(place) = meets {
                expected[place] += 1;
            }
            prop_assert_eq!(filters.judge(&TrueTime, &arrival(port, 0, own)), Verdict::Bridge);
        }
        prop_assert_eq!(filters.counters().map(|one| one.matching).collect::<Vec<_>>(), expected);
    }

    /// Counters are those of what was said to each frame, and each stream meets its own filter alone: a stream that
    /// breaks all rules changes nothing for another.
    #[test]
    fn streams_do_not_touch_one_another(
        limits in prop::collection::vec((46_u16..300, any::<bool>(), 0_u32..2_000, 1_i64..50), 3),
        frames in prop::collection::vec((0_i64..100, 0_usize..3, 64_u16..400), 1..120),
    ) {
        let config = |number: usize| {
            let (max_sdu, block_oversize, committed_burst, length) = limits[number];
            let entry = |open| StreamGateEntry { open, priority: None, length: Span::from_picos(length), max_octets: None };
            StreamFilterConfig {
                max_sdu: Some(max_sdu),
                block_oversize,
                gate: Some(Instance::Own(gate(vec![entry(true), entry(false)]))),
                meter: Some(Instance::Own(MeterConfig {
                    committed_burst,
                    committed_rate_bps: 1_000_000_000,
                    ..MeterConfig::default()
                })),
                ..filter(0, Identification::Destination(THERE, u16::try_from(number).unwrap() + 1))
            }
        };
        let mut together = StreamFilters::new((0..3).map(config).collect()).unwrap();
        let mut alone: Vec<_> = (0..3).map(|number| StreamFilters::new(vec![config(number)]).unwrap()).collect();
        let (mut now, mut said) = (0, [Counters::default(); 3]);
        for (step, number, length) in frames {
            now += step;
            let own = arrival(0, now, frame(HERE, THERE, u16::try_from(number).unwrap() + 1, length));
            let verdict = together.judge(&TrueTime, &own);
            prop_assert_eq!(verdict, alone[number].judge(&TrueTime, &own));
            let counted = &mut said[number];
            counted.matching += 1;
            match verdict {
                Verdict::Refuse(Cause::OversizeSdu | Cause::StreamBlocked) => counted.not_passing_sdu += 1,
                Verdict::Refuse(Cause::StreamGateClosed) => counted.not_passing += 1,
                Verdict::Refuse(Cause::MeteredRed) => counted.red += 1,
                other => prop_assert_eq!(other, Verdict::Bridge),
            }
        }
        prop_assert_eq!(together.counters().collect::<Vec<_>>(), said);
    }

    /// Filters that share gate and meter say to each frame what one filter of all their streams says.
    #[test]
    fn filters_that_share_are_as_one(
        lines in prop::collection::vec((any::<bool>(), 1_i64..60, prop::option::of(0_u32..600)), 1..5),
        (close_on_invalid, close_on_octets, mark_all_red, first) in any::<(bool, bool, bool, bool)>(),
        buckets in [0_u32..900, 0_u32..900],
        frames in prop::collection::vec((0_i64..40, 0_u16..3, 64_u16..400), 1..120),
        restart in 0_usize..120,
    ) {
        let entry = |&(open, length, max_octets): &(bool, i64, Option<u32>)| StreamGateEntry {
            open, priority: None, length: Span::from_picos(length), max_octets,
        };
        let lines = lines.iter().map(entry).collect();
        let gate = Instance::Own(StreamGateConfig { close_on_invalid, close_on_octets, ..gate(lines) });
        let meter = Instance::Own(MeterConfig {
            committed_burst: buckets[0],
            committed_rate_bps: 1_000_000_000_000,
            excess_burst: buckets[1],
            excess_rate_bps: 1_000_000_000_000,
            mark_all_red,
            ..MeterConfig::default()
        });
        let stream = |number: u16| Identification::Destination(THERE, number + 1);
        let own = |streams| StreamFilterConfig {
            streams, gate: Some(gate.clone()), meter: Some(meter.clone()), ..filter(0, stream(0))
        };
        let owner = if first { 0 } else { 2 };
        let sharing = |number| StreamFilterConfig {
            gate: Some(Instance::Of(owner.into())), meter: Some(Instance::Of(owner.into())), ..filter(0, stream(number))
        };
        let config = |number| if number == owner { own(vec![stream(number)]) } else { sharing(number) };
        let mut each = StreamFilters::new((0..3).map(config).collect()).unwrap();
        let mut all = StreamFilters::new(vec![own((0..3).map(stream).collect())]).unwrap();
        let mut now = 0;
        for (place, (step, number, length)) in frames.into_iter().enumerate() {
            now += step;
            if place == restart {
                each.handle_restart();
                all.handle_restart();
            }
            let came = arrival(0, now, frame(HERE, THERE, number + 1, length));
            prop_assert_eq!(each.judge(&TrueTime, &came), all.judge(&TrueTime, &came));
        }
        let sum = |of: fn(&Counters) -> u64| each.counters().map(|counted| of(&counted)).sum::<u64>();
        let whole = all.counters().next().unwrap();
        prop_assert_eq!(sum(|one| one.matching), whole.matching);
        prop_assert_eq!(sum(|one| one.not_passing), whole.not_passing);
        prop_assert_eq!(sum(|one| one.red), whole.red);
        prop_assert_eq!(sum(|one| one.yellow), whole.yellow);
    }
}
