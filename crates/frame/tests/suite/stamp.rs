//! Test packets of STAMP, against octets laid out by hand from the figures of RFC 8762 and RFC 8972.

use wg_frame::stamp::{Answer, ErrorEstimate, Format, Mode, PORT, Request, Timestamp, TooShort};

/// 2026-01-01 00:00:00.5 UTC, ns since 1970.
const NOON: i64 = 1_767_225_600_500_000_000;
/// The same in seconds since 1900 (1 767 225 600 + 2 208 988 800) and 2^-32 s.
const NOON_NTP: [u8; 8] = [0xED, 0x00, 0x37, 0x80, 0x80, 0x00, 0x00, 0x00];

/// Sequence number 7, synchronised within 131 * 2^(20 - 32) s, session 0x1234.
fn request() -> Request {
    Request {
        sequence: 7,
        timestamp: Timestamp::new(NOON, Format::Ntp),
        error: ErrorEstimate(0x9483),
        session: 0x1234,
    }
}

/// Parts at their offsets, in a packet of zeros.
fn packet(len: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, part) in parts {
        bytes[*at..at + part.len()].copy_from_slice(part);
    }
    bytes
}

#[test]
fn requests_are_the_octets_of_the_figures() {
    assert_eq!(PORT, 862);
    let (number, error, session) = ([0, 0, 0, 7], [0x94, 0x83], [0x12, 0x34]);
    let open = packet(44, &[(0, &number), (4, &NOON_NTP), (12, &error), (14, &session)]);
    let hashed = packet(112, &[(0, &number), (16, &NOON_NTP), (24, &error), (26, &session)]);
    for (mode, expected) in [(Mode::Open, open), (Mode::Authenticated, hashed)] {
        let mut bytes = vec![0; expected.len()];
        request().emit(&mut bytes, mode).expect("it is long enough");
        assert_eq!(bytes, expected);
        assert_eq!(Request::parse(&expected, mode), Ok(request()));
    }
}

#[test]
fn answers_are_the_octets_of_the_figures() {
    let received = [0xED, 0x00, 0x37, 0x80, 0xC0, 0x00, 0x00, 0x00];
    let sent = [0xED, 0x00, 0x37, 0x81, 0x00, 0x00, 0x00, 0x00];
    let answer = Answer {
        sequence: 3,
        timestamp: Timestamp::new(NOON + 500_000_000, Format::Ntp),
        error: ErrorEstimate(0x0001),
        received: Timestamp::new(NOON + 250_000_000, Format::Ntp),
        request: request(),
        ttl: Some(251),
    };
    let (number, asked, error, asked_error) = ([0, 0, 0, 3], [0, 0, 0, 7], [0, 1], [0x94, 0x83]);
    let session = [0x12, 0x34];
    let head: [(usize, &[u8]); 1] = [(0, &number)];
    let open: [(usize, &[u8]); 8] = [
        (4, &sent),
        (12, &error),
        (14, &session),
        (16, &received),
        (24, &asked),
        (28, &NOON_NTP),
        (36, &asked_error),
        (40, &[251]),
    ];
    let hashed: [(usize, &[u8]); 8] = [
        (16, &sent),
        (24, &error),
        (26, &session),
        (32, &received),
        (48, &asked),
        (64, &NOON_NTP),
        (72, &asked_error),
        (80, &[251]),
    ];
    for (mode, parts) in [(Mode::Open, open), (Mode::Authenticated, hashed)] {
        let expected = packet(mode.packet_len(), &[&head[..], &parts].concat());
        let mut bytes = vec![0; expected.len()];
        answer.emit(&mut bytes, mode).expect("it is long enough");
        assert_eq!(bytes, expected);
        assert_eq!(Answer::parse(&expected, mode), Ok(answer));
    }
}

#[test]
fn a_twamp_reflector_may_end_its_answer_behind_the_ttl_or_before_it() {
    let bytes = packet(44, &[(40, &[64])]);
    for (len, ttl) in [(41, Some(64)), (40, None), (38, None)] {
        assert_eq!(Answer::parse(&bytes[..len], Mode::Open).map(|answer| answer.ttl), Ok(ttl));
    }
    assert_eq!(Answer::parse(&bytes[..37], Mode::Open), Err(TooShort { len: 37, needed: 38 }));
    assert_eq!(Request::parse(&bytes[..40], Mode::Open), Err(TooShort { len: 40, needed: 41 }));
    let error = Answer::parse(&[0; 111], Mode::Authenticated).expect_err("it has no whole hash");
    assert_eq!(error.to_string(), "111 B cannot hold the 112 B of a test packet");
}

#[test]
fn timestamps_of_both_formats_are_read_in_the_era_that_is_near() {
    assert_eq!(Timestamp::new(NOON, Format::Ptp), Timestamp(0x6955_B900_1DCD_6500));
    for format in [Format::Ntp, Format::Ptp] {
        // NTP's seconds begin anew in 2036, PTP's in 2106.
        for near in [NOON, 2_085_978_495_999_999_999, 2_085_978_496_000_000_000, 4_294_967_296_000_000_001] {
            for away in [-3_600_000_000_000, 0, 1, 86_400_000_000_000] {
                let written = Timestamp::new(near + away, format);
                assert_eq!(written.nanos(format, near), Some(near + away), "{format:?} {near} {away}");
            }
        }
    }
    assert_eq!(Timestamp(1_000_000_000).nanos(Format::Ptp, 0), None, "a second has fewer nanoseconds");
}

#[test]
fn error_estimates_are_never_written_smaller_than_they_are() {
    let worked = ErrorEstimate(0x9483);
    // 131 * 2^20 / 2^32 s.
    assert_eq!(
        (worked.is_synchronised(), worked.format(), worked.nanos()),
        (true, Format::Ntp, Some(31_982_422))
    );
    assert_eq!(ErrorEstimate::new(true, Format::Ntp, 31_982_421), worked);
    assert_eq!(ErrorEstimate(0x4000).format(), Format::Ptp);
    assert_eq!(ErrorEstimate(0x8000).nanos(), None, "a multiplier of zero states nothing");
    assert_eq!(ErrorEstimate(0x3FFF).nanos().map(|ns| ns / 1_000_000_000), None, "longer than any run");
}
