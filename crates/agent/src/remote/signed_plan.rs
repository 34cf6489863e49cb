//! Verification of plans, each of which needs its operator's signature and is valid for one session and once.
//!
//! The signature covers [`CONTEXT`], the challenge from Hello, and the request encoded as protocol buffers, with fields
//! in numerical order and without the signature. Plans of another session or agent, modified plans and replayed plans
//! are refused.

use prost::Message;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};

use crate::proto;

/// Prefix of the signed data, so that no other text signed with the key passes for a plan.
pub const CONTEXT: &[u8] = b"wiregauge plan 1\0";

/// Challenge of a session, to which its plans are bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    challenge: [u8; 32],
    /// Counter of the last plan.
    last: u64,
}

/// Reason why a plan is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsigned {
    /// No signature.
    #[error("the plan is not signed; agents that serve a network take signed plans only")]
    Missing,
    /// Signature of other data.
    #[error("the signature is not the caller's of this plan in this session")]
    Wrong,
    /// Replayed plan.
    #[error("plan {count} came before, or one after it did; a plan counts once")]
    Replayed {
        /// Counter of the plan.
        count: u64,
    },
}

impl Challenge {
    /// New challenge.
    ///
    /// # Errors
    /// The kernel provides no random numbers.
    pub fn draw() -> Result<Self, ring::error::Unspecified> {
        let mut session = Self { challenge: [0; 32], last: 0 };
        SystemRandom::new().fill(&mut session.challenge)?;
        Ok(session)
    }

    /// Challenge sent in Hello.
    pub fn challenge(&self) -> &[u8] {
        &self.challenge
    }

    /// Verifies a plan signed with this key, an uncompressed point of P-256.
    ///
    /// # Errors
    /// See [`Unsigned`].
    pub fn take(&mut self, request: &proto::PrepareRequest, key: &[u8]) -> Result<(), Unsigned> {
        if request.signature.is_empty() {
            return Err(Unsigned::Missing);
        }
        let bare = proto::PrepareRequest { signature: Vec::new(), ..request.clone() };
        let signed = [CONTEXT, &self.challenge, &bare.encode_to_vec()].concat();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key)
            .verify(&signed, &request.signature)
            .map_err(|_| Unsigned::Wrong)?;
        if request.count <= self.last {
            return Err(Unsigned::Replayed { count: request.count });
        }
        self.last = request.count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

    use super::*;

    fn signed(session: &Challenge, count: u64, key: &EcdsaKeyPair) -> proto::PrepareRequest {
        let mut request = proto::PrepareRequest {
            network_json: b"{}".to_vec(),
            run_json: b"[]".to_vec(),
            end_system: "a".into(),
            servicing_core: -1,
            count,
            ..proto::PrepareRequest::default()
        };
        let text = [CONTEXT, session.challenge(), &request.encode_to_vec()].concat();
        request.signature = key.sign(&SystemRandom::new(), &text).unwrap().as_ref().to_vec();
        request
    }

    #[test]
    fn a_plan_counts_once_for_its_session_and_as_it_was_signed() {
        let random = SystemRandom::new();
        let key = || {
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, made.as_ref(), &random).unwrap()
        };
        let (own, foreign) = (key(), key());
        let point = own.public_key().as_ref();
        let mut session = Challenge::draw().unwrap();
        let first = signed(&session, 1, &own);
        assert_eq!(session.take(&signed(&session, 1, &foreign), point), Err(Unsigned::Wrong));
        let unsigned = proto::PrepareRequest { signature: Vec::new(), ..first.clone() };
        assert_eq!(session.take(&unsigned, point), Err(Unsigned::Missing));
        for changed in [
            proto::PrepareRequest { run_json: b"[1]".to_vec(), ..first.clone() },
            proto::PrepareRequest { end_system: "b".into(), ..first.clone() },
            proto::PrepareRequest { fifo_priority: 99, ..first.clone() },
            proto::PrepareRequest { count: 2, ..first.clone() },
        ] {
            assert_eq!(session.take(&changed, point), Err(Unsigned::Wrong));
        }
        assert_eq!(session.take(&first, point), Ok(()));
        assert_eq!(session.take(&first, point), Err(Unsigned::Replayed { count: 1 }));
        assert_eq!(session.take(&signed(&session, 3, &own), point), Ok(()));
        assert_eq!(session.take(&signed(&session, 2, &own), point), Err(Unsigned::Replayed { count: 2 }));
        assert_eq!(Challenge::draw().unwrap().take(&first, point), Err(Unsigned::Wrong));
    }
}
