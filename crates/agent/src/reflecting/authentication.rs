//! The authenticated mode: HMAC-SHA-256, cut to 16 octets (RFC 8762, clause 4.4), of packets and of their TLVs.

use std::io::{self, Read};
use std::path::Path;

use ring::hmac;
use wg_frame::stamp::tlv::{self, Protection};
use wg_frame::stamp::{HASH_LEN, Mode};
use wg_record::open_regular;

/// Longest key in bytes: the block of SHA-256, beyond which a longer key is hashed and no stronger.
const LONGEST_KEY: u64 = 64;
/// Length of the sequence number, with which packets begin, in bytes.
const SEQUENCE_LEN: usize = 4;

/// How packets of a session are authenticated.
#[derive(Clone, Debug)]
pub struct Authentication(Option<hmac::Key>);

impl Authentication {
    /// The unauthenticated mode.
    pub const NONE: Self = Self(None);

    /// The authenticated mode with this key.
    pub fn with_key(key: &[u8]) -> Self {
        Self(Some(hmac::Key::new(hmac::HMAC_SHA256, key)))
    }

    /// The authenticated mode with the key in a file: its octets, without a newline at their end.
    ///
    /// # Errors
    /// The file cannot be read, or holds no usable key; a sentence.
    pub fn from_file(path: &Path) -> Result<Self, String> {
        let fail = |why: String| format!("{}: {why}", path.display());
        let unread = |e: io::Error| {
            // In words alone, without the number of the error.
            let why = e.raw_os_error().map_or_else(|| e.to_string(), |_| e.kind().to_string());
            fail(format!("the key cannot be read: {why}"))
        };
        let file = open_regular(path).map_err(unread)?;
        let mut key = Vec::new();
        file.take(LONGEST_KEY + 2).read_to_end(&mut key).map_err(unread)?;
        if key.last() == Some(&b'\n') {
            key.pop();
        }
        if key.is_empty() || key.len() as u64 > LONGEST_KEY {
            return Err(fail(format!(
                "write a key of 1 to {LONGEST_KEY} B into it, as the other end has it"
            )));
        }
        Ok(Self::with_key(&key))
    }

    /// Mode of the session.
    pub fn mode(&self) -> Mode {
        if self.0.is_some() { Mode::Authenticated } else { Mode::Open }
    }

    /// Writes the hash of a packet into it. Does nothing in the unauthenticated mode.
    pub fn seal(&self, packet: &mut [u8]) {
        if let Some(key) = &self.0 {
            let (content, rest) = packet.split_at_mut(self.mode().hashed_len());
            rest[..HASH_LEN].copy_from_slice(&hmac::sign(key, content).as_ref()[..HASH_LEN]);
        }
    }

    /// Writes the hash of a packet's TLVs into the TLV at offset `at` behind its fields (RFC 8972, clause 4.8): over the
    /// sequence number and the TLVs before it. Does nothing in the unauthenticated mode.
    pub fn seal_tlvs(&self, packet: &mut [u8], at: usize) {
        if let Some(key) = &self.0 {
            let hash = self.hash_of_tlvs(key, packet, at);
            let begin = self.mode().packet_len() + at + tlv::HEAD_LEN;
            packet[begin..begin + HASH_LEN].copy_from_slice(&hash);
        }
    }

    /// Whether the TLVs of a packet are as somebody with the key wrote them. Padding alone needs no hash; without a key
    /// a hash cannot be verified.
    pub fn are_tlvs_authentic(&self, packet: &[u8]) -> bool {
        let fields = self.mode().packet_len();
        let protection = tlv::protection(packet.get(fields..).unwrap_or_default());
        match (&self.0, protection) {
            (_, Protection::Broken) | (None, Protection::At(_)) => false,
            (None, Protection::None { .. }) => true,
            (Some(_), Protection::None { is_padding_alone }) => is_padding_alone,
            (Some(key), Protection::At(at)) => {
                let begin = fields + at + tlv::HEAD_LEN;
                is_same(&self.hash_of_tlvs(key, packet, at), &packet[begin..begin + HASH_LEN])
            }
        }
    }

    fn hash_of_tlvs(&self, key: &hmac::Key, packet: &[u8], at: usize) -> [u8; HASH_LEN] {
        let fields = self.mode().packet_len();
        let mut context = hmac::Context::with_key(key);
        context.update(&packet[..SEQUENCE_LEN]);
        context.update(&packet[fields..fields + at]);
        let mut hash = [0; HASH_LEN];
        hash.copy_from_slice(&context.sign().as_ref()[..HASH_LEN]);
        hash
    }

    /// Whether the hash of a packet is right; true in the unauthenticated mode.
    pub fn is_authentic(&self, packet: &[u8]) -> bool {
        let Some(key) = &self.0 else { return true };
        let hashed = self.mode().hashed_len();
        let (Some(content), Some(hash)) = (packet.get(..hashed), packet.get(hashed..hashed + HASH_LEN))
        else {
            return false;
        };
        is_same(&hmac::sign(key, content).as_ref()[..HASH_LEN], hash)
    }
}

/// Whether two hashes are the same. Of one that was cut, `hmac::verify` knows nothing; no early end tells an attacker how
/// far it was right.
fn is_same(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len()
        && ours.iter().zip(theirs).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use wg_frame::stamp::{ErrorEstimate, Request, Timestamp};

    #[test]
    fn a_packet_has_the_hash_that_another_library_computes() {
        let authentication = Authentication::with_key(b"0123456789abcdef");
        let mut packet = [0; 112];
        let request = Request {
            sequence: 7,
            timestamp: Timestamp(0xED00_3780_8000_0000),
            error: ErrorEstimate(0x9483),
            session: 0x1234,
        };
        request.emit(&mut packet, authentication.mode()).expect("it is long enough");
        authentication.seal(&mut packet);
        // By `hmac` and `hashlib` of Python.
        let expected = 0xc92a_5d0b_962c_eb0f_5668_31ee_1271_e001_u128.to_be_bytes();
        assert_eq!(packet[96..], expected);
        assert!(authentication.is_authentic(&packet));
        for at in 0..packet.len() {
            packet[at] ^= 1;
            assert!(!authentication.is_authentic(&packet), "octet {at}");
            packet[at] ^= 1;
        }
        assert!(!authentication.is_authentic(&packet[..111]));
        assert!(!Authentication::with_key(b"another").is_authentic(&packet));
        assert!(Authentication::NONE.is_authentic(&[]));
    }

    #[test]
    fn a_key_file_without_a_key_is_refused_by_name() {
        let path = std::env::temp_dir().join(format!("wg-key-{}", std::process::id()));
        for (content, is_key) in
            [(&b""[..], false), (b"\n", false), (b"k\n", true), (&[7; 64], true), (&[7; 65], false)]
        {
            std::fs::write(&path, content).expect("a file can be written");
            let found = Authentication::from_file(&path);
            assert_eq!(found.is_ok(), is_key, "{content:?}");
            if let Err(why) = found {
                assert!(why.contains("wg-key-") && why.contains("64 B"), "{why}");
            }
        }
        std::fs::remove_file(&path).expect("it was written");
        let gone = Authentication::from_file(&path).expect_err("it was removed");
        assert!(gone.ends_with("the key cannot be read: entity not found"), "{gone}");
        assert!(Authentication::from_file(Path::new("/dev/zero")).is_err());
    }
}
