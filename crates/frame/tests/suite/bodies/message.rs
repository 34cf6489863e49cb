//! Fuzz body: the payload of a message.

use wg_frame::fill;
use wg_frame::probe::{self, ProbeFlags};

/// A payload: reading, sealing, flags, transmit time and content agree with each other.
pub(crate) fn body(data: &[u8]) {
    let read = probe::read(data);
    assert_eq!(probe::peek(data), read.ok().map(|(header, _)| header));
    if let Ok((header, intact)) = read {
        let mut sealed = data.to_vec();
        probe::seal(&mut sealed, header).expect("as long as it was");
        assert_eq!(probe::read(&sealed), Ok((header, true)));
        let reserved_clear = data[1] & 8 == 0;
        assert_eq!(sealed == data, intact && reserved_clear);
        for bits in 0..8 {
            flags(data, header, intact, ProbeFlags::from_bits(bits));
        }
    } else {
        let mut untouched = data.to_vec();
        assert!(probe::set_flags(&mut untouched, ProbeFlags::RETURN).is_err());
        assert_eq!(untouched, data);
    }
    let offset = data.first().map_or(0, |byte| usize::from(*byte));
    let mut copy = data.to_vec();
    match probe::read_tx_time(data, offset) {
        Ok(time) => {
            probe::write_tx_time(&mut copy, offset, time).expect("where it was read");
            assert_eq!(copy, data);
        }
        Err(error) => assert_eq!(probe::write_tx_time(&mut copy, offset, Default::default()), Err(error)),
    }
    for pattern in [fill::Pattern::Sequential, fill::Pattern::Random { seed: 1, flow: 2, sequence: 3 }] {
        let damage = pattern.first_damage(data, Some(offset));
        assert!(damage.is_none_or(|at| (probe::LEN..data.len()).contains(&at)));
        pattern.write(&mut copy);
        assert_eq!(pattern.first_damage(&copy, None), None);
    }
}

fn flags(data: &[u8], header: probe::Probe, intact: bool, flags: ProbeFlags) {
    let changed = probe::Probe { flags, ..header };
    let mut set = data.to_vec();
    probe::set_flags(&mut set, flags).expect("it was readable");
    assert_eq!(probe::read(&set), Ok((changed, intact)), "neither the damage nor its absence may change");
    assert_eq!(set[probe::LEN..], data[probe::LEN..]);
    if intact {
        let mut sealed = data.to_vec();
        probe::seal(&mut sealed, changed).expect("as long as it was");
        assert_eq!(set, sealed);
    }
}
