//! A sender of test packets to a reflector of another maker. It judges nothing: every packet that left, and every
//! answer that fits one, is told with its times; whatever else comes is counted by its reason.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::Serialize;
use wg_frame::stamp::tlv::{self, Protection};
use wg_frame::stamp::{Answer, Format, HASH_LEN, Mode, Request, Timestamp};
use wg_frame::time::WallNanos;
use wg_net::{NetError, SendFailure, Socket, TransmitTimestamp, clock};

use super::authentication::Authentication;
use super::awaited::{Awaited, Found, on_the_wire};
use super::host_time::HostTime;

/// TTL of packets: the other end sees over how many hops they came (RFC 5357, clause 4.1.2).
pub const TTL: u8 = 255;
/// Length of a hash, as the last octet of a TLV's length has it.
const HASH_OCTET: u8 = 16;
/// How often what came is told.
const TELL_NS: i64 = 200_000_000;
/// How often the counts so far are told.
const COUNT_NS: i64 = 1_000_000_000;
/// How late a packet of a session without an end may be; those that are due meanwhile are left out.
const LATEST_NS: i64 = 1_000_000_000;
/// How much longer than `patience_ns` packets of a session without an end are known, so that late answers are told.
const KNOWN_NS: i64 = 10_000_000_000;
/// Time that the kernel takes to switch timestamping on, generously.
const SETTLE: std::time::Duration = std::time::Duration::from_millis(20);

/// What is sent.
#[derive(Clone, Debug)]
pub struct Order {
    /// The reflector.
    pub to: SocketAddr,
    /// Number of packets; `None`: on and on, until the reader goes away.
    pub count: Option<u32>,
    /// Time from one packet to the next, ns.
    pub period_ns: i64,
    /// UDP payload in bytes, at least that of the mode.
    pub payload: usize,
    /// How packets are authenticated.
    pub authentication: Authentication,
    /// Format of timestamps.
    pub format: Format,
    /// Identifier of the session (RFC 8972); 0: none.
    pub session: u16,
    /// Whether padding is a TLV (RFC 8972) rather than zeros.
    pub padding_is_tlv: bool,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Priority of the socket, by which a VLAN interface chooses that of the tag; `None`: that of the class.
    pub priority: Option<u8>,
    /// How long answers are awaited after the last packet, ns.
    pub patience_ns: i64,
}

impl Order {
    /// Number of packets whose answers are awaited at a time.
    fn awaited(&self) -> usize {
        let without_end = (self.patience_ns + KNOWN_NS) / self.period_ns + 2;
        self.count.map_or(usize::try_from(without_end).unwrap_or(usize::MAX), |count| count as usize)
    }
}

/// A packet that was sent: number, time in it, time at which it was due (both ns since 1970; the second by the clock
/// as it was at the begin).
pub type Sent = (u64, i64, i64);
/// A packet that the driver took: number, time.
pub type Left = (u64, i64);

/// An answer that fits a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Heard {
    /// Number of the packet.
    pub asked: u64,
    /// Number of the answer.
    pub sequence: u32,
    /// The reflector's times, ns since 1970 in its timescale.
    pub received_ns: i64,
    /// Time at which it sent the answer.
    pub sent_ns: i64,
    /// Whether its times are PTP's, in TAI.
    pub is_ptp: bool,
    /// Its error estimate, ns; `None`: it states none.
    pub error_ns: Option<u64>,
    /// Whether it states to be synchronised.
    pub is_synchronised: bool,
    /// Whether it copied the identifier of the session.
    pub has_session: bool,
    /// TTL of the packet where it arrived, if the answer has it.
    pub asked_ttl: Option<u8>,
    /// TTL of the answer here.
    pub ttl: Option<u8>,
    /// Traffic class of the answer here.
    pub traffic_class: Option<u8>,
    /// Time of its arrival, ns since 1970.
    pub arrived_ns: i64,
    /// Whether the kernel took it.
    pub by_kernel: bool,
}

/// What is told at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Packets sent.
    pub sent: Vec<Sent>,
    /// Packets that the driver took.
    pub left: Vec<Left>,
    /// Answers.
    pub heard: Vec<Heard>,
    /// The counts so far, once in a while.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub so_far: Option<Summary>,
}

/// Counts of a session, and what the kernel states of this host's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Whether every packet was sent and every answer awaited.
    pub complete: bool,
    /// Sends that the host refused; the packet was sent at the next turn.
    pub refused: u64,
    /// ICMP "port unreachable".
    pub port_unreachable: u64,
    /// ICMP "destination unreachable" for other reasons.
    pub unreachable: u64,
    /// Datagrams from other addresses.
    pub foreign: u64,
    /// Answers too short to hold an answer.
    pub too_short: u64,
    /// Answers whose hash is wrong.
    pub not_authentic: u64,
    /// Answers to no packet of this session: number, time or session identifier are not those of one.
    pub not_asked: u64,
    /// Answers to packets so long ago that nothing is known of them any longer.
    pub too_late: u64,
    /// Packets left out, as the host held this program up for longer than a second.
    pub left_out: u64,
    /// Answers whose times are none.
    pub without_times: u64,
    /// Answers that the host dropped, as this program was too slow.
    pub dropped: u64,
    /// Greatest error of this host's clock, ns; `None`: it is not synchronised.
    pub clock_error_ns: Option<u64>,
    /// By how much this host's clock was set or steered during the session, ns.
    pub clock_moved_ns: i64,
    /// TAI less UTC on this host, ns; 0: unknown.
    pub tai_ahead_ns: i64,
}

/// Sends the packets of an order and tells what comes; `tell` returns false to stop.
///
/// # Errors
/// The host refuses the socket, or every packet.
pub fn run(order: Order, tell: impl FnMut(&Batch) -> bool) -> Result<Summary, NetError> {
    let any =
        if order.to.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = Socket::udp(SocketAddr::new(any, 0))?;
    socket.report_ip_headers(TTL)?;
    socket.set_traffic_class(order.dscp << 2)?;
    if let Some(priority) = order.priority {
        socket.set_priority(priority)?;
    }
    std::thread::sleep(SETTLE);
    let mut session = Sender {
        packet: padded(&order),
        awaited: Awaited::new(order.awaited()),
        drops_before: socket.drops().unwrap_or(0),
        clocks_before: clock::read_pair(),
        time: HostTime::new(order.format),
        summary: Summary::default(),
        batch: Batch::default(),
        told_at: clock::monotonic(),
        counted_at: clock::monotonic(),
        socket,
        order,
        tell,
    };
    let complete = session.go().map_err(|e| NetError::refused("cannot go on sending test packets", e))?;
    Ok(Summary { complete, ..session.so_far() })
}

/// A packet of the order's length, with its padding; of an authenticated one the padding has a hash behind it.
fn padded(order: &Order) -> Vec<u8> {
    let fields = order.authentication.mode().packet_len();
    let mut packet = vec![0; order.payload.max(fields)];
    let hash = if order.authentication.mode() == Mode::Authenticated { tlv::HEAD_LEN + HASH_LEN } else { 0 };
    let value = packet.len().saturating_sub(fields + tlv::HEAD_LEN + hash);
    if order.padding_is_tlv
        && let Ok(length) = u16::try_from(value)
        && let Some(head) = packet.get_mut(fields..fields + tlv::HEAD_LEN)
    {
        let [high, low] = length.to_be_bytes();
        head.copy_from_slice(&[tlv::UNRECOGNISED, tlv::EXTRA_PADDING, high, low]);
        if let Some(head) =
            packet.get_mut(fields + tlv::HEAD_LEN + value..).filter(|rest| rest.len() == hash && hash > 0)
        {
            head[..tlv::HEAD_LEN].copy_from_slice(&[tlv::UNRECOGNISED, tlv::HMAC, 0, HASH_OCTET]);
        }
    }
    packet
}

struct Sender<Tell> {
    order: Order,
    socket: Socket,
    packet: Vec<u8>,
    awaited: Awaited,
    drops_before: u64,
    clocks_before: (WallNanos, i64),
    time: HostTime,
    summary: Summary,
    batch: Batch,
    told_at: i64,
    counted_at: i64,
    tell: Tell,
}

impl<Tell: FnMut(&Batch) -> bool> Sender<Tell> {
    /// Whether it came to its end.
    fn go(&mut self) -> std::io::Result<bool> {
        let begin = clock::monotonic();
        let ahead = clock::realtime().get() - begin;
        let mut due = begin;
        while self.order.count.is_none_or(|count| self.awaited.sent() < u64::from(count)) {
            if !self.wait_until(due)? {
                return Ok(false);
            }
            let late = clock::monotonic() - due;
            if self.order.count.is_none() && late > LATEST_NS {
                // Sent all at once they would measure nothing but themselves.
                let missed = late / self.order.period_ns;
                self.summary.left_out += missed.unsigned_abs();
                due += missed * self.order.period_ns;
            }
            self.send(due + ahead)?;
            due += self.order.period_ns;
        }
        let last = clock::monotonic();
        Ok(self.wait_until(last + self.order.patience_ns)? && (self.tell)(&std::mem::take(&mut self.batch)))
    }

    /// The counts so far.
    fn so_far(&self) -> Summary {
        let (before, after) = (self.clocks_before, clock::read_pair());
        let unreachable = self.socket.unreachable();
        Summary {
            port_unreachable: unreachable.port,
            unreachable: unreachable.other,
            dropped: self.socket.drops().unwrap_or(0).saturating_sub(self.drops_before),
            clock_error_ns: self.time.error_ns(),
            clock_moved_ns: (after.0.get() - before.0.get()) - (after.1 - before.1),
            tai_ahead_ns: self.time.tai_ahead_ns(),
            ..self.summary.clone()
        }
    }

    /// Takes what comes until `due`; false: the reader went away.
    fn wait_until(&mut self, due: i64) -> std::io::Result<bool> {
        loop {
            let now = clock::monotonic();
            if now >= self.told_at + TELL_NS {
                self.told_at = now;
                self.time.refresh();
                if now >= self.counted_at + COUNT_NS {
                    self.counted_at = now;
                    self.batch.so_far = Some(self.so_far());
                }
                if !(self.tell)(&std::mem::take(&mut self.batch)) {
                    return Ok(false);
                }
            }
            if now >= due {
                return Ok(true);
            }
            let ready = self.socket.wait(None, (due - now).min(TELL_NS))?;
            if ready.timestamps {
                self.take_timestamps()?;
            }
            if ready.frames {
                self.take_answers()?;
            }
        }
    }

    fn send(&mut self, due_ns: i64) -> std::io::Result<()> {
        let number = self.awaited.sent();
        let now = clock::realtime().get();
        let timestamp = self.time.timestamp(now);
        let request = Request {
            sequence: on_the_wire(number),
            timestamp,
            error: self.time.error(),
            session: self.order.session,
        };
        request
            .emit(&mut self.packet, self.order.authentication.mode())
            .expect("the packet is as long as its mode demands");
        let fields = self.order.authentication.mode().packet_len();
        if let Protection::At(at) = tlv::protection(&self.packet[fields..]) {
            self.order.authentication.seal_tlvs(&mut self.packet, at);
        }
        self.order.authentication.seal(&mut self.packet);
        match self.socket.send(&self.packet, Some(self.order.to)) {
            Ok(of_kernel) => {
                self.awaited.note(timestamp, of_kernel);
                self.batch.sent.push((number, now, due_ns));
                Ok(())
            }
            Err(SendFailure::NoRoom) => {
                self.summary.refused += 1;
                Ok(())
            }
            Err(SendFailure::Refused(error)) => Err(error),
        }
    }

    fn take_timestamps(&mut self) -> std::io::Result<()> {
        let (awaited, left) = (&self.awaited, &mut self.batch.left);
        while self.socket.transmit_timestamps(|number, at| {
            if let TransmitTimestamp::Driver(at) = at
                && let Some(packet) = awaited.of_kernel(number)
            {
                left.push((packet, at.get()));
            }
        })? > 0
        {}
        Ok(())
    }

    fn take_answers(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 65_536];
        while let Some(got) = self.socket.receive(&mut buffer, false)? {
            let now = clock::realtime();
            if got.source != Some(self.order.to) {
                self.summary.foreign += 1;
                continue;
            }
            let octets = &buffer[..got.len.min(buffer.len())];
            let Ok(answer) = Answer::parse(octets, self.order.authentication.mode()) else {
                self.summary.too_short += 1;
                continue;
            };
            if !self.order.authentication.is_authentic(octets) {
                self.summary.not_authentic += 1;
                continue;
            }
            let asked = match fits(&answer, &self.awaited, self.order.session) {
                Found::Packet(number) => number,
                Found::TooLate => {
                    self.summary.too_late += 1;
                    continue;
                }
                Found::Nothing => {
                    self.summary.not_asked += 1;
                    continue;
                }
            };
            let arrived_ns = got.timestamp.unwrap_or(now).get();
            let Some((received_ns, sent_ns)) = times_of(&answer, arrived_ns) else {
                self.summary.without_times += 1;
                continue;
            };
            self.batch.heard.push(Heard {
                asked,
                sequence: answer.sequence,
                received_ns,
                sent_ns,
                is_ptp: answer.error.format() == Format::Ptp,
                error_ns: answer.error.nanos(),
                is_synchronised: answer.error.is_synchronised(),
                has_session: answer.request.session == self.order.session,
                asked_ttl: answer.ttl,
                ttl: got.ttl,
                traffic_class: got.traffic_class,
                arrived_ns,
                by_kernel: got.timestamp.is_some(),
            });
        }
        Ok(())
    }
}

/// The packet that an answer is to: it returns number and time. A reflector that knows no identifiers of sessions returns
/// zero.
fn fits(answer: &Answer, awaited: &Awaited, session: u16) -> Found {
    if [0, session].contains(&answer.request.session) {
        awaited.find(answer.request.sequence, answer.request.timestamp)
    } else {
        Found::Nothing
    }
}

/// Both times of a reflector, ns since 1970; `None` if it states none.
fn times_of(answer: &Answer, near_ns: i64) -> Option<(i64, i64)> {
    let format = answer.error.format();
    let read = |time: Timestamp| (time.0 != 0).then(|| time.nanos(format, near_ns)).flatten();
    read(answer.received).zip(read(answer.timestamp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflecting::allowed::Allowed;
    use crate::reflecting::reflector::{self, Reflector};
    use std::sync::Arc;
    use wg_frame::stamp::ErrorEstimate;
    use wg_net::Wake;

    fn order(to: SocketAddr, authentication: Authentication) -> Order {
        Order {
            to,
            count: Some(20),
            period_ns: 1_000_000,
            payload: 0,
            authentication,
            format: Format::Ntp,
            session: 77,
            padding_is_tlv: true,
            dscp: 46,
            priority: None,
            patience_ns: 100_000_000,
        }
    }

    /// A reflector on loopback, until the wake-up; its account.
    fn reflecting(
        key: Authentication,
        at: IpAddr,
    ) -> (SocketAddr, Arc<Wake>, std::thread::JoinHandle<reflector::Account>) {
        let socket = Socket::udp(SocketAddr::new(at, 0)).expect("loopback is there");
        let at = socket.local().expect("it is bound");
        let wake = Arc::new(Wake::new().expect("descriptors are left"));
        let end = Arc::clone(&wake);
        let serving = std::thread::spawn(move || {
            let networks = ["127.0.0.1/32", "::1/128"].map(|one| one.parse().expect("a network")).to_vec();
            let mut reflector = Reflector::new(Allowed::new(networks, at.port(), 1_000), key, true);
            reflector::serve(socket, &mut reflector, &end).expect("the socket lasts");
            reflector.account().clone()
        });
        (at, wake, serving)
    }

    #[test]
    fn our_sender_and_our_reflector_understand_each_other_in_both_modes_and_formats() {
        let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        let key = Authentication::with_key(b"key");
        for (key, format, payload, host) in [
            (Authentication::NONE, Format::Ntp, 100, v4),
            (key.clone(), Format::Ptp, 0, v4),
            (Authentication::NONE, Format::Ptp, 44, v6),
            (key, Format::Ntp, 200, v6),
        ] {
            let (at, wake, serving) = reflecting(key.clone(), host);
            let mut told = Batch::default();
            let order = Order { format, payload, ..order(at, key) };
            let summary = run(order, |batch| {
                told.sent.extend(&batch.sent);
                told.left.extend(&batch.left);
                told.heard.extend(&batch.heard);
                true
            })
            .expect("the host lets it send");
            wake.signal();
            let account = serving.join().expect("it served");
            assert!(summary.complete);
            assert_eq!((account.answered, account.sessions, account.refused.len()), (20, 1, 0));
            let kept = (summary.too_short, summary.not_authentic, summary.not_asked, summary.without_times);
            assert_eq!(kept, (0, 0, 0, 0));
            assert_eq!((told.sent.len(), told.left.len(), told.heard.len()), (20, 20, 20));
            for (number, heard) in (0_u64..).zip(&told.heard) {
                assert_eq!(
                    (heard.asked, u64::from(heard.sequence), heard.has_session),
                    (number, number, true)
                );
                assert_eq!((heard.asked_ttl, heard.ttl), (Some(TTL), Some(TTL)));
                assert_eq!(heard.traffic_class, Some(46 << 2), "the answer has the class of the packet");
                assert_eq!(heard.is_ptp, format == Format::Ptp);
                let left = told.left[usize::try_from(number).expect("a few")].1;
                let ahead = if heard.is_ptp { summary.tai_ahead_ns } else { 0 };
                let (received, sent) = (heard.received_ns - ahead, heard.sent_ns - ahead);
                assert!(left <= received && received <= sent && sent <= heard.arrived_ns, "{heard:?}");
            }
        }
    }

    #[test]
    fn a_closed_port_is_told_and_nothing_is_heard() {
        let socket = Socket::udp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("loopback is there");
        let at = socket.local().expect("it is bound");
        drop(socket);
        let summary =
            run(order(at, Authentication::NONE), |batch| batch.heard.is_empty()).expect("it may send");
        assert!(summary.complete && summary.port_unreachable >= 19, "{summary:?}");
    }

    #[test]
    fn a_reader_that_goes_away_ends_it() {
        let (at, wake, serving) = reflecting(Authentication::NONE, Ipv4Addr::LOCALHOST.into());
        let order = Order { count: None, ..order(at, Authentication::NONE) };
        let mut counted = None;
        let summary = run(order, |batch| {
            counted = batch.so_far.clone().or(counted.take());
            counted.is_none()
        })
        .expect("it may send");
        assert_eq!(counted.map(|counts| (counts.left_out, counts.not_asked)), Some((0, 0)));
        wake.signal();
        serving.join().expect("it served");
        assert!(!summary.complete);
    }

    #[test]
    fn answers_to_nothing_that_was_asked_do_not_fit() {
        let times = [Timestamp(5), Timestamp(6)];
        let mut awaited = Awaited::new(2);
        times.iter().zip(0..).for_each(|(time, number)| awaited.note(*time, number));
        let request = Request { sequence: 1, timestamp: times[1], error: ErrorEstimate(1), session: 77 };
        let answer = Answer {
            sequence: 1,
            timestamp: Timestamp(8),
            error: ErrorEstimate(1),
            received: Timestamp(7),
            request,
            ttl: Some(9),
        };
        assert_eq!(fits(&answer, &awaited, 77), Found::Packet(1));
        assert_eq!(
            fits(&Answer { request: Request { session: 0, ..request }, ..answer }, &awaited, 77),
            Found::Packet(1)
        );
        for wrong in [
            Request { sequence: 0, ..request },
            Request { sequence: 2, ..request },
            Request { timestamp: Timestamp(7), ..request },
            Request { session: 78, ..request },
        ] {
            assert_eq!(fits(&Answer { request: wrong, ..answer }, &awaited, 77), Found::Nothing, "{wrong:?}");
        }
        assert!(times_of(&answer, 0).is_some());
        assert!(times_of(&Answer { received: Timestamp(0), ..answer }, 0).is_none());
        let no_second = Answer { timestamp: Timestamp(u64::MAX), error: ErrorEstimate(0x4001), ..answer };
        assert!(times_of(&no_second, 0).is_none());
    }

    #[test]
    fn padding_is_a_tlv_where_a_stamp_reflector_would_read_one() {
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 862));
        let stamp = Order { payload: 60, ..order(to, Authentication::NONE) };
        assert_eq!(padded(&stamp)[44..], [0x80, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(padded(&Order { padding_is_tlv: false, ..stamp.clone() })[44..], [0; 16]);
        assert_eq!(padded(&Order { payload: 44, ..stamp }).len(), Mode::Open.packet_len());
        let sealed = padded(&Order { payload: 140, ..order(to, Authentication::with_key(b"k")) });
        assert_eq!(sealed[112..124], [0x80, 1, 0, 4, 0, 0, 0, 0, 0x80, 8, 0, 16]);
        assert_eq!(tlv::protection(&sealed[112..]), Protection::At(8));
    }
}
