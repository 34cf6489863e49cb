//! Fuzz body: a test packet of STAMP or TWAMP.

use wg_frame::stamp::{Answer, ErrorEstimate, Format, HASH_LEN, Mode, Request, Timestamp, tlv};

/// A test packet: what is read is written and read again as it was, at its length and no other; times and error
/// estimates are read as they were written; of TLVs only flags and classes of service are written.
pub(crate) fn body(data: &[u8]) {
    reflected(data);
    for mode in [Mode::Open, Mode::Authenticated] {
        let (shortest, shortest_answer) = if mode == Mode::Open { (41, 38) } else { (112, 112) };
        assert_eq!(Request::parse(data, mode).is_ok(), data.len() >= shortest);
        assert_eq!(Answer::parse(data, mode).is_ok(), data.len() >= shortest_answer);
        let mut copy = vec![0xEE; data.len()];
        if let Ok(request) = Request::parse(data, mode) {
            request.emit(&mut copy, mode).expect("as long as it was");
            assert_eq!(Request::parse(&copy, mode), Ok(request));
            untouched(&copy, mode);
        }
        if let Ok(answer) = Answer::parse(data, mode) {
            copy.fill(0xEE);
            assert_eq!(answer.emit(&mut copy, mode).is_ok(), answer.ttl.is_some());
            if answer.ttl.is_some() {
                assert_eq!(Answer::parse(&copy, mode), Ok(answer));
                untouched(&copy, mode);
            }
            times(&answer);
        }
    }
}

fn reflected(data: &[u8]) {
    let mut answered = data.to_vec();
    let asked = tlv::reflect(&mut answered, 0xB9, true);
    if data.first().is_none_or(|flags| flags & 0xBF != tlv::UNRECOGNISED) {
        assert_eq!((answered.as_slice(), asked), (data, None), "padding stays as it is");
        return;
    }
    let (mut at, mut last) = (0, None);
    while let Some(head) = data.get(at..at + tlv::HEAD_LEN) {
        let (kind, len) = (head[1], usize::from(u16::from_be_bytes([head[2], head[3]])));
        let value = at + tlv::HEAD_LEN..at + tlv::HEAD_LEN + len;
        assert_eq!(answered[at + 1..value.start], data[at + 1..value.start], "type and length");
        if answered[at] & tlv::MALFORMED != 0 {
            assert_eq!(answered[value.start..], data[value.start..], "nothing behind it is read");
            break;
        }
        if kind == tlv::CLASS_OF_SERVICE {
            last = Some(data[value.start] & 0xFC);
        } else {
            assert_eq!(answered[value.clone()], data[value.clone()]);
        }
        at = value.end;
    }
    assert_eq!(asked, last);
}

fn untouched(copy: &[u8], mode: Mode) {
    let end = if mode == Mode::Open { mode.packet_len() } else { mode.packet_len() - HASH_LEN };
    assert!(copy.iter().skip(end).all(|byte| *byte == 0xEE), "padding and hash are not its own");
}

fn times(answer: &Answer) {
    let near = i64::try_from(answer.received.0 >> 1).expect("63 bits");
    for format in [Format::Ntp, Format::Ptp] {
        if let Some(ns) = answer.timestamp.nanos(format, near) {
            assert!((i128::from(ns) - i128::from(near)).abs() <= i128::from(1_000_000_000_u64 << 31));
            let again = Timestamp::new(ns, format);
            // A nanosecond is 4.3 steps of NTP's.
            assert!(again.0.wrapping_sub(answer.timestamp.0) < if format == Format::Ntp { 5 } else { 1 });
            assert_eq!(again.nanos(format, near.midpoint(ns)), Some(ns));
        }
    }
    let ErrorEstimate(written) = answer.error;
    if let Some(ns) = answer.error.nanos() {
        let again = ErrorEstimate::new(written & 0x8000 != 0, answer.error.format(), ns);
        assert_eq!((again.is_synchronised(), again.format()), (written & 0x8000 != 0, answer.error.format()));
        let stated = again.nanos().expect("it holds what was read");
        assert!(ns <= stated && stated <= ns + ns / 64 + 1, "{ns} ns written as {stated} ns");
    }
}
