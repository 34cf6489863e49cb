//! Sockets on the loopback.

use super::*;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

fn pair() -> (Socket, Socket, SocketAddr) {
    let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let sender = Socket::udp(any).expect("loopback is there");
    let receiver = Socket::udp(any).expect("loopback is there");
    receiver.limit_blocking(2_000).expect("a limit can be set");
    let at = receiver.local().expect("it is a UDP socket");
    (sender, receiver, at)
}

#[test]
fn every_send_gets_the_timestamp_of_its_number_and_every_frame_its_own() {
    let (mut sender, mut receiver, at) = pair();
    sender.report_hardware_timestamps().expect("the kernel knows timestamps of both kinds");
    receiver.report_hardware_timestamps().expect("the kernel knows timestamps of both kinds");
    // The kernel turns timestamping on in the background; frames from before have no receive timestamp.
    let mut buffer = [0_u8; 64];
    for _ in 0..200 {
        sender.send(b"first", Some(at)).expect("loopback takes it");
        let frame = receiver.receive(&mut buffer, true).expect("it can be received").expect("in time");
        if frame.timestamp.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    while sender.transmit_timestamps(|_, _| {}).expect("the error queue can be read") > 0 {}
    let mut timestamps = std::collections::BTreeMap::new();
    let mut sent = Vec::new();
    for i in 0..40_u8 {
        let before = crate::clock::realtime();
        // Where nobody can timestamp in hardware a request for it changes neither the number nor the driver's
        // timestamp.
        let asked = i % 3 == 0;
        let send = if asked { Socket::send_with_hardware_timestamp } else { Socket::send };
        let number = send(&mut sender, &[i; 20], Some(at)).expect("loopback takes it");
        let frame = receiver.receive(&mut buffer, true).expect("it can be received").expect("in time");
        assert_eq!((frame.len, frame.source, frame.hardware_ns), (20, sender.local().ok(), None));
        assert_eq!(buffer[..20], [i; 20]);
        sent.push((number, before, frame.timestamp.expect("timestamping is on")));
    }
    while sender
        .transmit_timestamps(|number, timestamp| {
            let TransmitTimestamp::Driver(at) = timestamp else { panic!("loopback has no clock of its own") };
            assert!(timestamps.insert(number, at).is_none(), "{number} twice");
        })
        .expect("the error queue can be read")
        > 0
    {}
    assert_eq!(timestamps.len(), sent.len());
    for (number, before, arrived) in sent {
        let left = timestamps[&number];
        assert!(before <= left && left <= arrived, "{number}: {before:?} {left:?} {arrived:?}");
    }
}

#[test]
fn an_empty_socket_gives_nothing_and_a_cut_frame_tells_its_true_length() {
    let (mut sender, mut receiver, at) = pair();
    assert!(receiver.receive(&mut [0; 8], false).expect("no error").is_none());
    sender.send(&[7; 100], Some(at)).expect("loopback takes it");
    let frame = receiver.receive(&mut [0; 8], true).expect("no error").expect("in time");
    assert_eq!(frame.len, 100);
}

#[test]
fn an_address_taken_twice_is_refused_with_the_cure() {
    let (_sender, receiver, at) = pair();
    let error = Socket::udp(at).expect_err("the port is taken");
    assert!(error.to_string().contains("no other agent"), "{error}");
    drop(receiver);
}

#[test]
fn a_message_beyond_the_mtu_is_refused_and_the_numbering_goes_on() {
    let (mut sender, _receiver, at) = pair();
    let first = sender.send(b"one", Some(at)).expect("loopback takes it");
    assert!(matches!(sender.send(&vec![0; 65_600], Some(at)), Err(SendFailure::Refused(_))));
    let second = sender.send(b"two", Some(at)).expect("loopback takes it");
    assert_eq!(second, first + 1);
}

#[test]
fn a_datagram_tells_its_ttl_and_class_and_one_to_a_closed_port_is_answered() {
    let (mut sender, mut receiver, at) = pair();
    sender.report_ip_headers(255).expect("every kernel can");
    sender.set_traffic_class(46 << 2).expect("every kernel can");
    receiver.report_ip_headers(64).expect("every kernel can");
    sender.send(b"one", Some(at)).expect("loopback takes it");
    let frame = receiver.receive(&mut [0; 8], true).expect("no error").expect("in time");
    assert_eq!((frame.ttl, frame.traffic_class), (Some(255), Some(184)));
    receiver.send(b"two", sender.local().ok()).expect("loopback takes it");
    sender.limit_blocking(2_000).expect("a limit can be set");
    let frame = sender.receive(&mut [0; 8], true).expect("no error").expect("in time");
    assert_eq!((frame.ttl, frame.traffic_class), (Some(64), Some(0)));
    drop(receiver);
    assert_eq!(sender.unreachable(), Unreachable::default());
    for sent in 1..=2 {
        sender.send(b"three", Some(at)).expect("loopback takes it");
        while sender.transmit_timestamps(|_, _| {}).expect("the error queue can be read") > 0 {}
        assert_eq!(sender.unreachable(), Unreachable { port: sent, other: 0 });
    }
}

#[test]
fn datagrams_of_ipv6_have_their_source_hop_limit_class_and_timestamps() {
    let any = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    let Ok(mut receiver) = Socket::udp(any) else { return };
    let mut sender = Socket::udp(any).expect("loopback is there");
    receiver.limit_blocking(2_000).expect("a limit can be set");
    receiver.report_ip_headers(9).expect("IPv6 has a hop limit");
    sender.report_ip_headers(77).expect("IPv6 has a hop limit");
    sender.set_traffic_class(46 << 2).expect("any class");
    sender.set_priority(6).expect("any priority up to 6");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let at = receiver.local().expect("it is a UDP socket");
    let number = sender.send(b"six", Some(at)).expect("loopback takes it");
    let mut buffer = [0_u8; 64];
    let got = receiver.receive(&mut buffer, true).expect("it can be received").expect("in time");
    assert_eq!((got.len, got.source), (3, sender.local().ok()));
    assert_eq!((got.ttl, got.traffic_class), (Some(77), Some(46 << 2)));
    let mut left = Vec::new();
    while sender.transmit_timestamps(|number, _| left.push(number)).expect("the queue can be read") > 0 {}
    assert_eq!(left, [number]);
    drop(receiver);
    sender.send(b"six", Some(at)).expect("loopback takes it");
    std::thread::sleep(std::time::Duration::from_millis(20));
    while sender.transmit_timestamps(|_, _| {}).expect("the queue can be read") > 0 {}
    assert_eq!(sender.unreachable(), Unreachable { port: 1, other: 0 });
}
