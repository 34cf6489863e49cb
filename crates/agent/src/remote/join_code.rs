//! Join code of a host, entered once by a person with access to the host.
//!
//! 32 characters of Crockford's base 32: 80 bits of the SHA-256 of the agent's certificate, which authenticate the
//! agent to the caller, and an 80-bit secret, which authenticates the caller. The secret is sent only within TLS to the
//! certificate of the first half; the agent keeps it in memory only and accepts it once, within an hour. A wrong secret
//! delays the answer but leaves the code valid: 80 bits cannot be guessed within the hour, and otherwise anyone could
//! invalidate the code.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

/// Alphabet without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const HALF: usize = 10;
const CHARACTERS: usize = 32;
/// Validity of a code.
pub const LIFETIME: Duration = Duration::from_secs(3_600);
/// Delay of the answer to a wrong secret.
pub const GUESS_TAKES: Duration = Duration::from_secs(2);

/// A join code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JoinCode {
    /// First 80 bits of the SHA-256 of the agent's certificate (DER).
    pub fingerprint: [u8; HALF],
    secret: [u8; HALF],
}

/// Omits the secret.
impl fmt::Debug for JoinCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinCode").finish_non_exhaustive()
    }
}

/// Error of a text that is not a join code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a join code has 32 letters and digits in groups of four, as `wiregauge-agent serve` prints it")]
pub struct NoJoinCode;

impl JoinCode {
    /// A new code for the agent with this certificate.
    ///
    /// # Errors
    /// The kernel provides no random numbers.
    pub fn draw(certificate: &[u8]) -> Result<Self, ring::error::Unspecified> {
        let mut code = Self { fingerprint: [0; HALF], secret: [0; HALF] };
        code.fingerprint.copy_from_slice(&digest(&SHA256, certificate).as_ref()[..HALF]);
        SystemRandom::new().fill(&mut code.secret)?;
        Ok(code)
    }

    /// Secret that authenticates the caller.
    pub fn secret(&self) -> &[u8] {
        &self.secret
    }
}

impl fmt::Display for JoinCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut held, mut bits, mut written) = (0_u32, 0_u32, 0);
        for byte in self.fingerprint.iter().chain(&self.secret) {
            (held, bits) = (held << 8 | u32::from(*byte), bits + 8);
            while bits >= 5 {
                bits -= 5;
                if written > 0 && written % 4 == 0 {
                    f.write_str("-")?;
                }
                write!(f, "{}", char::from(ALPHABET[(held >> bits & 31) as usize]))?;
                written += 1;
            }
            held &= (1 << bits) - 1;
        }
        Ok(())
    }
}

impl FromStr for JoinCode {
    type Err = NoJoinCode;

    /// Accepts lower case, any grouping, and O, I and L for the digits they resemble.
    fn from_str(text: &str) -> Result<Self, NoJoinCode> {
        let (mut bytes, mut held, mut bits) = (Vec::with_capacity(2 * HALF), 0_u32, 0_u32);
        let mut read = 0;
        for letter in text.chars().filter(|letter| !matches!(letter, '-' | ' ')) {
            let letter = match letter.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let (value, _) =
                (0..).zip(ALPHABET).find(|(_, known)| char::from(**known) == letter).ok_or(NoJoinCode)?;
            (held, bits, read) = ((held << 5 | value) & 0xFFFF, bits + 5, read + 1);
            if bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits & 0xFF) as u8);
            }
            if read > CHARACTERS {
                return Err(NoJoinCode);
            }
        }
        let (fingerprint, secret) = bytes.split_at_checked(HALF).ok_or(NoJoinCode)?;
        Ok(Self {
            fingerprint: fingerprint.try_into().map_err(|_| NoJoinCode)?,
            secret: secret.try_into().map_err(|_| NoJoinCode)?,
        })
    }
}

/// Issued code and its state.
#[derive(Debug)]
pub struct Invitation {
    code: JoinCode,
    until: Instant,
    taken: bool,
    wrong: u64,
}

/// Reason why a secret is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Wrong secret.
    #[error("this is not the secret of the join code; compare the code with what is on that host's screen")]
    Wrong {
        /// Number of wrong secrets so far.
        so_far: u64,
    },
    /// Already used.
    #[error("the join code was used already; `wiregauge-agent leave` and a new start give another one")]
    Taken,
    /// Expired.
    #[error("the join code is older than an hour; start the agent again for a new one")]
    TooOld,
}

impl Invitation {
    /// Code issued at `now`.
    pub fn new(code: JoinCode, now: Instant) -> Self {
        Self { code, until: now + LIFETIME, taken: false, wrong: 0 }
    }

    /// Checks a secret.
    ///
    /// # Errors
    /// See [`Refused`]; a wrong secret is counted.
    pub fn take(&mut self, secret: &[u8], now: Instant) -> Result<(), Refused> {
        if self.taken {
            return Err(Refused::Taken);
        }
        if now >= self.until {
            return Err(Refused::TooOld);
        }
        // Comparison of digests, so that its duration reveals nothing about the secret.
        if digest(&SHA256, secret).as_ref() == digest(&SHA256, &self.code.secret).as_ref() {
            self.taken = true;
            return Ok(());
        }
        self.wrong += 1;
        Err(Refused::Wrong { so_far: self.wrong })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(fingerprint: [u8; HALF], secret: [u8; HALF], small: bool, spaced: bool) {
            let code = JoinCode { fingerprint, secret };
            let mut text = code.to_string();
            prop_assert_eq!(text.len(), 39);
            if small { text = text.to_lowercase(); }
            if spaced { text = text.replace('-', " "); }
            prop_assert_eq!(text.parse(), Ok(code));
            prop_assert_eq!(text.replace('0', "o").replace('1', "l").parse(), Ok(code));
        }

        #[test]
        fn other_texts_are_none(text in "\\PC{0,60}") {
            if let Ok(code) = text.parse::<JoinCode>() {
                let plain: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
                prop_assert_eq!(plain.len(), CHARACTERS);
                prop_assert_eq!(code.to_string().parse(), Ok(code));
            }
        }
    }

    #[test]
    fn a_code_is_good_once_for_an_hour_whatever_was_guessed() {
        let code = JoinCode::draw(b"certificate").unwrap();
        let begun = Instant::now();
        let mut given = Invitation::new(code, begun);
        for so_far in 1..=1_000 {
            assert_eq!(given.take(b"guess", begun), Err(Refused::Wrong { so_far }));
        }
        assert_eq!(given.take(code.secret(), begun + LIFETIME), Err(Refused::TooOld));
        assert_eq!(given.take(code.secret(), begun), Ok(()));
        assert_eq!(given.take(code.secret(), begun), Err(Refused::Taken));
        assert_eq!(JoinCode::draw(b"certificate").unwrap().fingerprint, code.fingerprint);
        assert_ne!(JoinCode::draw(b"certificate").unwrap(), code);
    }
}
