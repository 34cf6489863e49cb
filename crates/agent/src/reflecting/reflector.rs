//! A reflector for senders of other makers: stateful, which numbers its answers itself, or stateless.
//!
//! An answer is as long as the packet that asked for it, and carries its padding unchanged. TLVs (RFC 8972) are answered
//! in their place; where packets are authenticated, those of a wrong hash are flagged and not obeyed.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use wg_frame::stamp::tlv::{self, Protection};
use wg_frame::stamp::{Answer, Format, Request};
use wg_net::{NetError, Socket, Wake, clock};

use super::allowed::{Allowed, FORGOTTEN_NS, MOST, Refusal};
use super::authentication::Authentication;
use super::host_time::HostTime;
use super::sender::TTL;

/// Silence after which a packet numbered 0 begins the session anew, ns.
const RESTART_NS: i64 = 5_000_000_000;
/// Largest datagram in bytes.
const LARGEST: usize = 65_507;
const WAIT_NS: i64 = 1_000_000_000;

/// What a reflector has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Packets answered.
    pub answered: u64,
    /// Packets not answered, by reason.
    pub refused: BTreeMap<Refusal, u64>,
    /// Answers that the host did not send.
    pub unsent: u64,
    /// Sessions begun.
    pub sessions: u64,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its sender.
    pub source: SocketAddr,
    /// Time of arrival, ns of `CLOCK_REALTIME`.
    pub at_ns: i64,
    /// Its TTL.
    pub ttl: u8,
    /// Its traffic class: DSCP and ECN.
    pub traffic_class: u8,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    next: u32,
    last_ns: i64,
}

/// The rules of a reflector, without a socket.
#[derive(Debug)]
pub struct Reflector {
    allowed: Allowed,
    authentication: Authentication,
    is_stateful: bool,
    sessions: BTreeMap<(SocketAddr, u16), Session>,
    ntp: HostTime,
    ptp: HostTime,
    account: Account,
}

impl Reflector {
    /// A reflector for these senders. A stateless one copies sequence numbers.
    pub fn new(allowed: Allowed, authentication: Authentication, is_stateful: bool) -> Self {
        Self {
            allowed,
            authentication,
            is_stateful,
            sessions: BTreeMap::new(),
            ntp: HostTime::new(Format::Ntp),
            ptp: HostTime::new(Format::Ptp),
            account: Account::default(),
        }
    }

    /// What it has done so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Makes the answer of `packet` in its place, and returns the traffic class to send it with; timestamps are in the
    /// format that it has. `now` is a clock that never goes back, and `realtime` is read last.
    ///
    /// # Errors
    /// It must not be answered; counted.
    pub fn answer(
        &mut self,
        packet: &mut [u8],
        arrival: Arrival,
        now: i64,
        realtime: impl FnOnce() -> i64,
    ) -> Result<u8, Refusal> {
        let made = self.made(packet, arrival, now, realtime);
        match made {
            Ok(_) => self.account.answered += 1,
            Err(refusal) => *self.account.refused.entry(refusal).or_default() += 1,
        }
        made
    }

    fn made(
        &mut self,
        packet: &mut [u8],
        arrival: Arrival,
        now: i64,
        realtime: impl FnOnce() -> i64,
    ) -> Result<u8, Refusal> {
        self.allowed.admit(arrival.source, now)?;
        let mode = self.authentication.mode();
        let request = Request::parse(packet, mode).map_err(|_| Refusal::TooShort)?;
        if !self.authentication.is_authentic(packet) {
            return Err(Refusal::NotAuthentic);
        }
        let sequence = if self.is_stateful {
            self.number((arrival.source, request.session), request.sequence, now)?
        } else {
            request.sequence
        };
        let time = match request.error.format() {
            Format::Ntp => &mut self.ntp,
            Format::Ptp => &mut self.ptp,
        };
        time.refresh();
        let are_authentic = self.authentication.are_tlvs_authentic(packet);
        let behind = packet.get_mut(mode.packet_len()..).unwrap_or_default();
        let protection = tlv::protection(behind);
        let asked_class = tlv::reflect(behind, arrival.traffic_class, are_authentic);
        let answer = Answer {
            sequence,
            error: time.error(),
            received: time.timestamp(arrival.at_ns),
            request,
            ttl: Some(arrival.ttl),
            timestamp: time.timestamp(realtime()),
        };
        answer.emit(packet, mode).map_err(|_| Refusal::TooShort)?;
        self.authentication.seal(packet);
        if let (true, Protection::At(at)) = (are_authentic, protection) {
            self.authentication.seal_tlvs(packet, at);
        }
        Ok(asked_class.unwrap_or(arrival.traffic_class))
    }

    /// The next number of a session.
    fn number(&mut self, key: (SocketAddr, u16), asked: u32, now: i64) -> Result<u32, Refusal> {
        if !self.sessions.contains_key(&key) {
            if self.sessions.len() >= MOST {
                self.sessions.retain(|_, session| now.saturating_sub(session.last_ns) < FORGOTTEN_NS);
                if self.sessions.len() >= MOST {
                    return Err(Refusal::TooMany);
                }
            }
            self.account.sessions += 1;
        }
        let session = self.sessions.entry(key).or_insert(Session { next: 0, last_ns: now });
        let silence = now.saturating_sub(session.last_ns);
        if silence >= FORGOTTEN_NS || silence >= RESTART_NS && asked == 0 {
            session.next = 0;
            self.account.sessions += 1;
        }
        let number = session.next;
        *session = Session { next: number.wrapping_add(1), last_ns: now };
        Ok(number)
    }
}

/// Answers what comes to `socket` until `wake` is signalled.
///
/// # Errors
/// The socket is unusable.
pub fn serve(mut socket: Socket, reflector: &mut Reflector, wake: &Wake) -> Result<(), NetError> {
    let failed = |e| NetError::refused("the reflector's socket is unusable", e);
    socket.report_ip_headers(TTL)?;
    let mut buffer = vec![0; LARGEST];
    let mut class = 0;
    loop {
        let ready = socket.wait(Some(wake), WAIT_NS).map_err(failed)?;
        if ready.woken {
            return Ok(());
        }
        // Only there to be emptied.
        while ready.timestamps && socket.transmit_timestamps(|_, _| {}).map_err(failed)? > 0 {}
        while let Some(got) = socket.receive(&mut buffer, false).map_err(failed)? {
            let at_ns = got.timestamp.unwrap_or_else(clock::realtime).get();
            let (Some(source), Some(packet)) = (got.source, buffer.get_mut(..got.len)) else { continue };
            let traffic_class = got.traffic_class.unwrap_or(0);
            let arrival = Arrival { source, at_ns, ttl: got.ttl.unwrap_or(0), traffic_class };
            let made = reflector.answer(packet, arrival, clock::monotonic(), || clock::realtime().get());
            let Ok(asked_class) = made else { continue };
            if asked_class != class {
                socket.set_traffic_class(asked_class)?;
                class = asked_class;
            }
            if socket.send(packet, Some(source)).is_err() {
                reflector.account.unsent += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};
    use wg_frame::stamp::{ErrorEstimate, Mode, Timestamp};

    const SENDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5_000);
    const NOW: i64 = 1_767_225_600_000_000_000;

    fn reflector(authentication: Authentication, is_stateful: bool) -> Reflector {
        let networks = vec!["127.0.0.0/8".parse().expect("a network")];
        Reflector::new(Allowed::new(networks, 862, 1_000_000), authentication, is_stateful)
    }

    fn packet(sequence: u32, session: u16, authentication: &Authentication, len: usize) -> Vec<u8> {
        // No sender of TLVs sets these flags: it is padding.
        let mut packet = vec![0xAB; len];
        let error = ErrorEstimate::new(true, Format::Ptp, 1_000);
        let request = Request { sequence, timestamp: Timestamp(u64::from(sequence) + 99), error, session };
        request.emit(&mut packet, authentication.mode()).expect("it is long enough");
        authentication.seal(&mut packet);
        packet
    }

    fn ask(
        reflector: &mut Reflector,
        packet: &mut [u8],
        source: SocketAddr,
        now: i64,
    ) -> Result<u8, Refusal> {
        let arrival = Arrival { source, at_ns: NOW, ttl: 61, traffic_class: 0xB9 };
        reflector.answer(packet, arrival, now, || NOW + 7_000)
    }

    #[test]
    fn an_answer_is_as_long_as_its_request_and_copies_it() {
        for authentication in [Authentication::NONE, Authentication::with_key(b"key")] {
            let mode = authentication.mode();
            let mut reflector = reflector(authentication.clone(), true);
            let mut octets = packet(5, 9, &authentication, 200);
            let request = Request::parse(&octets, mode).expect("it is one");
            ask(&mut reflector, &mut octets, SENDER, 0).expect("it is answered");
            assert!(authentication.is_authentic(&octets));
            let answer = Answer::parse(&octets, mode).expect("it is one");
            assert_eq!((answer.request, answer.ttl, answer.sequence), (request, Some(61), 0));
            assert_eq!(answer.error.format(), Format::Ptp, "in the format of the request");
            let times = [answer.received, answer.timestamp].map(|time| time.nanos(Format::Ptp, NOW));
            assert_eq!(times[1].zip(times[0]).map(|(sent, received)| sent - received), Some(7_000));
            assert!(octets[mode.packet_len()..].iter().all(|byte| *byte == 0xAB), "padding comes back");
        }
    }

    #[test]
    fn tlvs_are_answered_and_one_may_ask_for_a_class() {
        let mut reflector = reflector(Authentication::NONE, true);
        // Padding; a class of service that asks for EF (46); a type that nobody knows; one longer than the packet.
        let tlvs = [
            &[0xC0, 1, 0, 2, 7, 7][..],
            &[0x80, 4, 0, 4, 46 << 2, 0, 0, 0],
            &[0x80, 200, 0, 1, 9],
            &[0x80, 1, 0, 50, 3],
        ]
        .concat();
        let mut octets = packet(0, 0, &Authentication::NONE, 44 + tlvs.len());
        octets[44..].copy_from_slice(&tlvs);
        assert_eq!(ask(&mut reflector, &mut octets, SENDER, 0), Ok(46 << 2));
        let answered = [
            &[0, 1, 0, 2, 7, 7][..],
            // DSCP 46 asked for; 46 and ECN 1 received.
            &[0, 4, 0, 4, 46 << 2 | 0b10, 0b1110_0100, 0, 0],
            &[0x80, 200, 0, 1, 9],
            &[0x40, 1, 0, 50, 3],
        ]
        .concat();
        assert_eq!(octets[44..], answered);
        let mut plain = packet(1, 0, &Authentication::NONE, 60);
        assert_eq!(ask(&mut reflector, &mut plain, SENDER, 0), Ok(0xB9), "the class of the packet");
    }

    /// By `hmac` and `hashlib` of Python, with the key `key`: of a class of service behind sequence number 3, and of its
    /// answer with sequence number 0.
    const ASKED: u128 = 0x8e33_a6aa_42da_a6d5_b245_8e92_0539_efc5;
    const ANSWERED: u128 = 0xf6c9_fa07_dce5_8140_dc81_089f_23e6_63d7;

    #[test]
    fn tlvs_of_authenticated_packets_are_answered_where_their_own_hash_is_right() {
        let key = Authentication::with_key(b"key");
        let class = [0x80, 4, 0, 4, 46 << 2, 0, 0, 0];
        let with = |hash: Option<u128>, behind: &[u8]| {
            let head = hash.map(|hash| [&[0x80, 8, 0, 16][..], &hash.to_be_bytes()].concat());
            let tlvs = [&class[..], &head.unwrap_or_default(), behind].concat();
            let mut octets = packet(3, 0, &key, 112 + tlvs.len());
            octets[112..].copy_from_slice(&tlvs);
            octets
        };
        for behind in [&[][..], &[0x80, 1, 0, 1, 9]] {
            let mut reflector = reflector(key.clone(), true);
            let mut octets = with(Some(ASKED), behind);
            assert_eq!(ask(&mut reflector, &mut octets, SENDER, 0), Ok(46 << 2));
            assert!(key.is_authentic(&octets));
            assert_eq!(octets[112..124], [0, 4, 0, 4, 46 << 2 | 0b10, 0b1110_0100, 0, 0, 0, 8, 0, 16]);
            assert_eq!(octets[124..140], ANSWERED.to_be_bytes());
        }
        // A wrong hash, none, one that does not protect what is behind it, two of them.
        for mut octets in [
            with(Some(ASKED ^ 1), &[]),
            with(None, &[]),
            with(Some(ASKED), &class),
            with(Some(ASKED), &[&[0x80, 8, 0, 16][..], &ASKED.to_be_bytes()].concat()),
        ] {
            let before = octets.clone();
            let mut reflector = reflector(key.clone(), true);
            assert_eq!(ask(&mut reflector, &mut octets, SENDER, 0), Ok(0xB9), "the class of the packet");
            assert_eq!(octets[112], tlv::NOT_AUTHENTIC);
            assert_eq!(octets[113..120], before[113..120], "nothing is obeyed");
        }
        // Without a key nobody can tell.
        let mut octets = packet(3, 0, &Authentication::NONE, 44 + 28);
        octets[44..].copy_from_slice(&with(Some(ASKED), &[])[112..]);
        assert_eq!(ask(&mut reflector(Authentication::NONE, true), &mut octets, SENDER, 0), Ok(0xB9));
        assert_eq!((octets[44], octets[52]), (tlv::NOT_AUTHENTIC, tlv::NOT_AUTHENTIC));
    }

    #[test]
    fn a_stateful_reflector_numbers_each_session_by_itself_and_a_stateless_one_copies() {
        let other = SocketAddr::from((Ipv4Addr::LOCALHOST, 5_001));
        // Sender, session, number, at; and the number of the answer.
        let second = 1_000_000_000;
        for (is_stateful, expected) in [(true, [0, 1, 0, 0, 2, 0, 1, 0]), (false, [0, 2, 0, 7, 3, 0, 1, 5])] {
            let mut reflector = reflector(Authentication::NONE, is_stateful);
            let asked = [
                (SENDER, 0, 0, 0),
                (SENDER, 0, 2, 0),
                (SENDER, 1, 0, 0),
                (other, 0, 7, 0),
                (SENDER, 0, 3, 0),
                (SENDER, 0, 0, 6 * second),
                (SENDER, 0, 1, 20 * second),
                (SENDER, 0, 5, 2_000 * second),
            ];
            for ((source, session, sequence, now), expected) in asked.into_iter().zip(expected) {
                let mut octets = packet(sequence, session, &Authentication::NONE, 44);
                ask(&mut reflector, &mut octets, source, now).expect("it is answered");
                assert_eq!(Answer::parse(&octets, Mode::Open).map(|answer| answer.sequence), Ok(expected));
            }
            assert_eq!(reflector.account().answered, 8);
            assert_eq!(reflector.account().sessions, if is_stateful { 5 } else { 0 });
        }
    }

    #[test]
    fn what_must_not_be_answered_is_counted_by_its_reason() {
        let key = Authentication::with_key(b"key");
        let mut reflector = reflector(key.clone(), true);
        let mut wrong = packet(0, 0, &key, 112);
        wrong[111] ^= 1;
        assert_eq!(ask(&mut reflector, &mut wrong, SENDER, 0), Err(Refusal::NotAuthentic));
        assert_eq!(ask(&mut reflector, &mut [0; 111], SENDER, 0), Err(Refusal::TooShort));
        let stranger = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 5_000));
        let mut good = packet(0, 0, &key, 112);
        assert_eq!(ask(&mut reflector, &mut good, stranger, 0), Err(Refusal::NotAllowed));
        let counted = &reflector.account().refused;
        assert_eq!(counted.values().copied().collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(reflector.account().sessions, 0, "nothing is kept of them");
    }
}
