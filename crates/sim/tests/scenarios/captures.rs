//! Captures, read back as any reader of pcapng would.

use wg_frame::layout::{self, Carrier};
use wg_frame::probe;
use wg_frame::time::Span;
use wg_plan::{Capture, Fill, Flow, LinkFault, LinkFaultKind, Protocol, Send, Victims, VlanTag};
use wg_record::{Point, RecordFlags};

use crate::{at, run, simulated, star, switch, way};

pub(crate) struct Packet {
    interface: u32,
    picos: u64,
    seen: usize,
    pub(crate) bytes: Vec<u8>,
}

/// The packets of a file; panics where its structure is wrong.
pub(crate) fn packets(file: &[u8]) -> Vec<Packet> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut found) = (0, Vec::new());
    while at < file.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length);
        if word(at) == 6 {
            let kept = word(at + 20) as usize;
            found.push(Packet {
                interface: word(at + 8),
                picos: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                seen: word(at + 24) as usize,
                bytes: file[at + 28..at + 28 + kept].to_vec(),
            });
        }
        at += length;
    }
    found
}

fn fcs_ok(bytes: &[u8]) -> bool {
    let (frame, fcs) = bytes.split_at(bytes.len() - 4);
    crc32fast::hash(frame).to_le_bytes() == fcs
}

#[test]
fn frames_have_the_bytes_a_wire_would_carry() {
    let tag = Some(VlanTag { id: 12, priority: 5 });
    let flows = vec![
        (Flow::plain(1, Protocol::Udp, way([0, 2, 1])), Send::periodic(1, Span::from_millis(1), 18, 20)),
        (
            Flow { vlan: tag, ..Flow::plain(2, Protocol::Raw, way([0, 2, 1])) },
            Send { fill: Fill::Random, ..Send::periodic(2, Span::from_millis(1), 300, 20) },
        ),
    ];
    let mut run = run(flows);
    run.captures = vec![Capture { on: 2, snap: 2_000 }, Capture { on: 1, snap: 60 }];
    let fault = |kind, flow, n| LinkFault {
        link: 0,
        sent_by: Some(0),
        kind,
        whom: Victims::Messages { flow, sequences: vec![(n, n)] },
        from: Span::ZERO,
        until: None,
    };
    run.link_faults = vec![
        fault(LinkFaultKind::Corrupt, 1, 3),
        fault(LinkFaultKind::BitError, 2, 4),
        fault(LinkFaultKind::Loss, 2, 5),
    ];
    let (kept, _) = simulated(&star(2, switch(), 100_000_000), &run);
    let all = packets(&kept.captures[&2]);
    let by_port = |port| all.iter().filter(move |packet| packet.interface == port);
    assert_eq!((by_port(0).count(), by_port(1).count()), (39, 38));
    for packet in &all {
        let whole = &packet.bytes;
        assert_eq!(whole.len(), packet.seen);
        let found = layout::find(&whole[..whole.len() - 4]).expect("a message of ours");
        let udp = matches!(found.envelope.carrier, Carrier::Udp { .. });
        assert_eq!(
            (udp, whole.len(), found.envelope.tag.is_some()),
            match found.probe.flow {
                1 => (true, 64, false),
                _ => (false, 322, true),
            }
        );
        let (flow, sequence) = (found.probe.flow, found.probe.sequence);
        assert_eq!(fcs_ok(whole), (flow, sequence) != (2, 4));
        let (_, intact) = probe::read(found.payload).expect("a header");
        assert_eq!(intact, (flow, sequence) != (1, 3));
    }
    // Received: when the last bit is in; sent: with the first bit. As the records say.
    let timestamps = |port| by_port(port).map(|packet| packet.picos as i64).collect::<Vec<_>>();
    let recorded = |point| at(&kept, point).iter().map(|record| record.time.as_picos()).collect::<Vec<_>>();
    assert_eq!(timestamps(0), recorded(Point::SwitchIn));
    assert_eq!(timestamps(1), recorded(Point::SwitchOut));
    let cut = packets(&kept.captures[&1]);
    assert_eq!(cut.len(), 38);
    assert!(cut.iter().all(|packet| packet.bytes.len() == 60 && packet.seen >= 64));
}

#[test]
fn messages_carry_the_instant_they_were_sent_by_the_clock_of_their_sender() {
    let mut network = star(2, switch(), 1_000_000_000);
    network.nodes[0].clock.offset = Span::from_micros(700);
    let send = Send {
        transmit_time: Some(14),
        warm_up_count: 5,
        fill: Fill::Random,
        ..Send::periodic(1, Span::from_millis(1), 100, 20)
    };
    let plain = Send::periodic(2, Span::from_millis(1), 100, 20);
    let mut run = run(vec![
        (Flow::plain(1, Protocol::Udp, way([0, 2, 1])), send),
        (Flow::plain(2, Protocol::Raw, way([0, 2, 1])), plain),
    ]);
    run.warm_up = Span::from_millis(5);
    run.captures = vec![Capture { on: 0, snap: 2_000 }, Capture { on: 1, snap: 2_000 }];
    let (kept, _) = simulated(&network, &run);
    let sent = at(&kept, Point::ApplicationSend);
    for node in [0, 1] {
        let packets = packets(&kept.captures[&node]);
        assert_eq!(packets.len(), 45);
        for packet in packets {
            let message = layout::find(&packet.bytes[..packet.bytes.len() - 4]).expect("a message of ours");
            let (header, whole) = probe::read(message.payload).expect("a header");
            assert!(whole && fcs_ok(&packet.bytes));
            let warm_up = header.flags.has(probe::ProbeFlags::WARM_UP);
            let record = sent.iter().find(|record| {
                (record.flow, record.sequence) == (header.flow, header.sequence)
                    && record.flags.has(RecordFlags::WARM_UP) == warm_up
            });
            let time = probe::read_tx_time(message.payload, 14).expect("it fits");
            assert_eq!(header.flags.has(probe::ProbeFlags::TX_TIME), header.flow == 1);
            if header.flow == 1 {
                assert_eq!(Some(time), record.map(|record| record.time));
            }
        }
    }
}
