//! Ports and rings on real interfaces: pairs of virtual ones, in namespaces that leave nothing behind.

mod enclosed;

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use enclosed::ip;
use wg_net::receive::FrameFilter;
use wg_net::xdp::{FramePool, XdpConfig, XdpFrame, XdpPort, XdpProgram};
use wg_net::{Interface, PacketRing, PortSender, PortsLeft, Protocols, RETIRE_MS, Socket, clock, namespace};

/// IEEE Std 802 local experimental EtherType 1.
const ETHER_TYPE: u16 = 0x88B5;
const LIMIT: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    enclosed::main(&[
        (
            "one_port_returns_every_frame_and_its_pool_is_whole",
            one_port_returns_every_frame_and_its_pool_is_whole,
        ),
        ("two_ports_share_memory_and_forward_both_ways", two_ports_share_memory_and_forward_both_ways),
        ("frames_for_many_hosts_leave_by_af_xdp", frames_for_many_hosts_leave_by_af_xdp),
        ("frames_for_many_hosts_leave_by_a_packet_socket", frames_for_many_hosts_leave_by_a_packet_socket),
        ("a_queue_that_is_not_there_is_named", a_queue_that_is_not_there_is_named),
        (
            "what_loopback_carries_comes_out_of_the_ring_timestamped_between_before_and_after",
            what_loopback_carries_comes_out_of_the_ring_timestamped_between_before_and_after,
        ),
    ])
}

fn interface(name: &str) -> Interface {
    let all = wg_net::interfaces().expect("interfaces can be listed");
    all.into_iter().find(|one| one.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn mac(host: u8) -> [u8; 6] {
    [2, 0, 0, 0, 9, host]
}

/// A host in a namespace of its own: `eth0` there, `p{host}` here.
fn add_host(host: u8) {
    let address = mac(host).map(|byte| format!("{byte:02x}")).join(":");
    ip(&format!("netns add h{host}"));
    ip(&format!("link add p{host} type veth peer name eth0 netns h{host} address {address}"));
    ip(&format!("link set p{host} up"));
    ip(&format!("-n h{host} link set eth0 up"));
}

fn frame(from: u8, to: u8, number: u32) -> [u8; 60] {
    let mut bytes = [0; 60];
    bytes[..6].copy_from_slice(&mac(to));
    bytes[6..12].copy_from_slice(&mac(from));
    bytes[12..14].copy_from_slice(&ETHER_TYPE.to_be_bytes());
    bytes[14..18].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Sends [`FRAMES`] frames from a host to another, at most `window` ahead of those that came to it; returns the numbers
/// that came.
fn host(own: u8, to: u8, window: u32, ready: &Arc<Barrier>) -> JoinHandle<Vec<u32>> {
    let (ready, count) = (Arc::clone(ready), FRAMES);
    std::thread::spawn(move || {
        namespace::enter_network(Path::new(&format!("/run/netns/h{own}"))).expect("it was made");
        let mut socket =
            Socket::packet(interface("eth0").index, &[mac(own).into()], Protocols::Only(ETHER_TYPE))
                .expect("root may open packet sockets");
        ready.wait();
        let (mut came, mut sent, mut buffer) = (Vec::new(), 0, [0; 128]);
        let begin = Instant::now();
        while (came.len() < count as usize || sent < count) && begin.elapsed() < LIMIT {
            if sent < count && sent < came.len() as u32 + window {
                socket.send(&frame(own, to, sent), None).expect("the link takes it");
                sent += 1;
            }
            while let Some(got) = socket.receive(&mut buffer, false).expect("the socket is open") {
                assert!(got.len >= 18, "a frame was cut");
                came.push(u32::from_be_bytes(*buffer[14..].first_chunk().expect("four bytes")));
            }
            let _ = socket.transmit_timestamps(|_, _| {});
            if sent == count || sent == came.len() as u32 + window {
                socket.wait(None, 1_000_000).expect("the socket is open");
            }
        }
        came
    })
}

fn open(pool: &mut FramePool, name: &str, ring: u32) -> XdpPort {
    let at = interface(name);
    let filter = FrameFilter { udp_ports: Vec::new(), ether_type: Some(ETHER_TYPE) };
    let program = Some(XdpProgram::attach(&at, &filter).expect("root may load programs"));
    XdpPort::open(pool, &at, XdpConfig { queue: 0, receive: ring, transmit: ring, program })
        .expect("it is free")
}

/// Forwards a frame by a port; one that finds no room is free again.
fn forward(port: &mut XdpPort, pool: &mut FramePool, frame: XdpFrame) {
    if let Err(frame) = port.send(frame) {
        pool.give_back(frame);
    }
}

fn assert_in_order(came: &[u32]) {
    let wrong = (0..).zip(came).find(|(expected, number)| expected != *number);
    assert_eq!((came.len(), wrong), (FRAMES as usize, None), "each frame once and in order");
}

/// Until the kernel has given back what it had to send, every frame is free or waits to be filled.
fn assert_whole(pool: &mut FramePool, ports: &mut [XdpPort], filling: usize) {
    let begin = Instant::now();
    while pool.free() + filling < pool.frames() && begin.elapsed() < LIMIT {
        for port in &mut *ports {
            port.flush(pool).expect("the port is open");
            port.refill(pool);
        }
    }
    assert_eq!(pool.free() + filling, pool.frames(), "frames were lost");
}

/// The clock that programs may read (`ktime_get_tai_fast_ns`) is read without a lock: where the kernel adjusts it at
/// that moment, it may go back a little, or be ahead of what `clock_gettime` says.
const STEP_NS: i64 = 1_000_000;

const FRAMES: u32 = 5_000;
/// Far fewer than are sent: each is used again and again.
const RING: u32 = 64;

fn one_port_returns_every_frame_and_its_pool_is_whole() {
    add_host(1);
    let mut pool = FramePool::new(4 * RING).expect("memory");
    let mut port = open(&mut pool, "p1", RING);
    let sender = host(1, 1, 16, &Arc::new(Barrier::new(1)));
    let mut last = clock::realtime();
    while !sender.is_finished() {
        port.wait(10).expect("the port is open");
        while let Some((mut frame, at)) = port.receive(&mut pool) {
            let now = clock::realtime();
            let fits = last.get() - STEP_NS <= at.get() && at.get() <= now.get() + STEP_NS;
            assert!(fits, "timestamps are in order and not ahead: {last:?}, then {at:?}, read at {now:?}");
            last = at;
            // Back to where it came from.
            let bytes = pool.memory_mut(&mut frame);
            let (to, from) = bytes[..12].split_at_mut(6);
            to.swap_with_slice(from);
            forward(&mut port, &mut pool, frame);
        }
        port.flush(&mut pool).expect("the port is open");
        port.refill(&mut pool);
    }
    let came = sender.join().expect("the host goes on to the end");
    assert_in_order(&came);
    assert_eq!(port.drops().expect("the kernel counts"), wg_net::receive::RxDrops::default());
    assert_whole(&mut pool, &mut [port], RING as usize);
}

fn two_ports_share_memory_and_forward_both_ways() {
    add_host(1);
    add_host(2);
    let mut pool = FramePool::new(4 * RING).expect("memory");
    let mut ports = [open(&mut pool, "p1", RING), open(&mut pool, "p2", RING)];
    let done = Arc::new(AtomicBool::new(false));
    // Neither sends before the other listens.
    let ready = Arc::new(Barrier::new(2));
    let hosts = [host(1, 2, 8, &ready), host(2, 1, 8, &ready)];
    let both = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let came = hosts.map(|host| host.join().expect("the host goes on to the end"));
            done.store(true, Ordering::Release);
            came
        })
    };
    while !done.load(Ordering::Acquire) {
        for (from, to) in [(0, 1), (1, 0)] {
            while let Some((frame, _)) = ports[from].receive(&mut pool) {
                forward(&mut ports[to], &mut pool, frame);
            }
            ports[to].flush(&mut pool).expect("the port is open");
            ports[from].refill(&mut pool);
        }
        // Hosts and forwarder may share a core.
        ports[0].wait(1).expect("the port is open");
    }
    for came in both.join().expect("both hosts ended") {
        assert_in_order(&came);
    }
    assert_whole(&mut pool, &mut ports, 2 * RING as usize);
}

/// Frames for two hosts in turns, until each has got [`SENT`] of them.
fn frames_for_many_hosts_leave_by_their_ports(open: impl Fn(&[Interface]) -> PortSender, access: &str) {
    add_host(1);
    add_host(2);
    let ready = Arc::new(Barrier::new(3));
    let hosts = [1, 2].map(|own| collect(own, &ready));
    let mut sender = open(&[interface("p1"), interface("p2")]);
    assert_eq!(sender.access(), access);
    ready.wait();
    let (mut taken, mut refused) = ([0; 2], 0);
    let mut note = |left: PortsLeft| {
        taken[left.port] += left.frames.taken;
        refused += left.frames.refused;
    };
    for number in 0..SENT {
        for port in 0..2 {
            let bytes = frame(9, port + 1, number);
            assert!(sender.push(usize::from(port), &bytes), "there is room");
            if sender.is_full() {
                sender.flush(&mut note);
            }
        }
    }
    assert!(!sender.push(2, &frame(9, 1, 0)), "there is no such port");
    sender.flush(&mut note);
    assert_eq!((taken, refused), ([SENT as usize; 2], 0));
    for host in hosts {
        let came = host.join().expect("the host goes on to the end");
        assert!(came.iter().copied().eq(0..SENT), "each once and in order: {came:?}");
    }
    // Nobody takes what leaves towards an interface that is down, and nothing waits for it.
    ip("-n h1 link set eth0 down");
    for _ in 0..40 {
        sender.push(0, &frame(9, 1, 0));
    }
    let mut lost = 0;
    sender.flush(|left| lost += left.frames.refused);
    assert!(lost > 0, "what nobody took was refused");
}

const SENT: u32 = 1_000;

/// The numbers of [`SENT`] frames that come to a host.
fn collect(own: u8, ready: &Arc<Barrier>) -> JoinHandle<Vec<u32>> {
    let ready = Arc::clone(ready);
    std::thread::spawn(move || {
        namespace::enter_network(Path::new(&format!("/run/netns/h{own}"))).expect("it was made");
        let eth0 = interface("eth0");
        let mut ring = wg_net::PacketPorts::open(&[eth0]).expect("root may open packet sockets");
        ready.wait();
        let mut came = Vec::new();
        let begin = Instant::now();
        while came.len() < SENT as usize && begin.elapsed() < LIMIT {
            // A kernel that speaks IPv6 asks for routers on each interface that comes up.
            let number = |frame: wg_net::PortFrame<'_>| {
                let ours = frame.bytes[12..14] == ETHER_TYPE.to_be_bytes();
                ours.then(|| u32::from_be_bytes(*frame.bytes[14..].first_chunk().expect("four bytes")))
            };
            while let Some(number) = ring.receive(number) {
                came.extend(number);
            }
            ring.wait(1_000_000).expect("the socket is open");
        }
        came
    })
}

fn frames_for_many_hosts_leave_by_af_xdp() {
    let open = |ports: &[Interface]| {
        let (sender, why) = PortSender::open(ports).expect("root may open sockets");
        assert!(why.is_none(), "{why:?}");
        sender
    };
    frames_for_many_hosts_leave_by_their_ports(open, "af_xdp");
}

fn frames_for_many_hosts_leave_by_a_packet_socket() {
    let open = |ports: &[Interface]| PortSender::packet(ports).expect("root may open sockets");
    frames_for_many_hosts_leave_by_their_ports(open, "packet");
}

fn a_queue_that_is_not_there_is_named() {
    add_host(1);
    let mut pool = FramePool::new(RING).expect("memory");
    let config = XdpConfig { queue: 7, transmit: RING, ..XdpConfig::default() };
    let error = XdpPort::open(&mut pool, &interface("p1"), config).expect_err("a veth has one queue");
    assert!(error.to_string().contains("queue 7 of p1"), "{error}");
}

fn what_loopback_carries_comes_out_of_the_ring_timestamped_between_before_and_after() {
    let mut ring = PacketRing::capture(&interface("lo"), 96, false).expect("root may open packet sockets");
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    let at = sender.local_addr().expect("it is bound");
    let before = clock::realtime().get();
    let text =
        b"wiregauge-ring-test-000-and-more-than-snap-bytes-so-that-it-is-cut-by-the-filter-of-the-ring";
    for n in 0..50_u8 {
        let mut message = *text;
        message[20] = n;
        sender.send_to(&message, at).expect("loopback takes it");
    }
    let after = clock::realtime().get();
    let mut ours = Vec::new();
    for _ in 0..500 {
        let mut note = |frame: wg_net::Captured<'_>| {
            if frame.bytes.get(42..62) == Some(b"wiregauge-ring-test-") && !frame.is_outgoing {
                assert_eq!((frame.bytes.len(), frame.length), (96, 42 + 92));
                assert!(
                    !frame.by_hardware && frame.timestamp_ns >= before,
                    "{} {before}",
                    frame.timestamp_ns
                );
                ours.push(frame.bytes[62]);
            }
        };
        while ring.read(&mut note).is_some() {}
        if ours.len() == 50 && clock::realtime().get() > after {
            break;
        }
        std::thread::sleep(Duration::from_millis(u64::from(RETIRE_MS)));
    }
    assert_eq!(ours, (0..50).collect::<Vec<_>>());
    let (received, dropped) = ring.statistics().expect("the kernel counts");
    assert!(received >= 100 && dropped == 0, "{received} {dropped}");
    ring.check().expect("loopback stays");
}
