//! Fuzz body: a whole frame.

use wg_frame::layout::{self, Carrier};
use wg_frame::{ethernet, ipv4, udp, vlan};

/// A whole frame: what is found in it can be laid round the message again and found again; a canonical frame
/// comes back to the bit.
pub(crate) fn body(data: &[u8]) {
    check(data);
    // Sixteen bits of checksum are a wall no mutation climbs; so the same once more with the header repaired.
    for at in [ethernet::HEADER_LEN, ethernet::HEADER_LEN + vlan::TAG_LEN] {
        let mut repaired = data.to_vec();
        if let Some(Ok(mut packet)) = repaired.get_mut(at..).map(ipv4::Packet::new_checked) {
            packet.fill_checksum();
            check(&repaired);
        }
    }
}

fn check(data: &[u8]) {
    let Ok(found) = layout::find(data) else { return };
    let envelope = found.envelope;
    let at = envelope.header_len();
    let mut buffer = vec![0xEE; envelope.frame_len(found.payload.len())];
    buffer[at..at + found.payload.len()].copy_from_slice(found.payload);
    let rebuilt = envelope.close(&mut buffer, found.payload.len()).expect("the buffer is as long as needed");
    let again = layout::find(rebuilt).expect("what was found once is found again");
    assert_eq!((again.envelope, again.probe), (envelope, found.probe));
    assert!(again.payload.starts_with(found.payload));
    let has_checksum = matches!(envelope.carrier, Carrier::Udp { checksummed: true, .. });
    let expected = if has_checksum { udp::Checksum::Right } else { udp::Checksum::Absent };
    assert_eq!(again.udp_checksum, expected);
    if is_canonical(data, &found) {
        assert_eq!(rebuilt, data);
    }
}

/// Not cut, nothing behind the message but needed padding of zeros, no length longer than its content, and
/// every checksum the one a sender writes.
fn is_canonical(data: &[u8], found: &layout::Found<'_>) -> bool {
    let envelope = found.envelope;
    let end = envelope.header_len() + found.payload.len();
    let length = data.len() + ethernet::FCS_LEN == envelope.frame_len(found.payload.len());
    let padding = length && data[end..].iter().all(|byte| *byte == 0);
    padding
        && match envelope.carrier {
            Carrier::Raw => true,
            Carrier::Udp { .. } => {
                let packet = ipv4::Packet::new_checked(&data[end - found.payload.len() - 28..])
                    .expect("it was found in one");
                packet.total_len() == found.payload.len() + ipv4::HEADER_LEN + udp::HEADER_LEN
                    && packet.checksum_field() != 0xFFFF
                    && found.udp_checksum != udp::Checksum::Wrong
            }
        }
}
