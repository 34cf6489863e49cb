//! The host's key, its certificate, and the authority it belongs to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::private_file;
use crate::places;

/// What every agent's certificate is for, whatever the host is called: callers check this name.
pub const NAME: &str = "wiregauge-agent";

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No folder to keep it in.
    #[error("there is no folder for the host's key, because HOME is not set; name one with --state")]
    Homeless,
    /// The disk refused, or the file is not as it must be.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is stored is no key or no certificate.
    #[error("{path} cannot be used ({why}); remove it, and the agent makes a new one and has to join again")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// No key could be made.
    #[error("no key could be made: {0}")]
    Key(rcgen::Error),
}

/// Why an agent does not become a member.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// What was sent is no certificate.
    #[error("{0} is no certificate in PEM form")]
    Unreadable(&'static str),
    /// It is for another key.
    #[error("the certificate is for another key than this agent's")]
    ForeignKey,
    /// The authority did not sign it.
    #[error("the certificate is not signed by the authority that came with it")]
    NotSigned,
    /// The disk refused.
    #[error("the membership cannot be stored: {0}")]
    Disk(io::Error),
}

/// The host's key and what vouches for it.
#[derive(Debug)]
pub struct Identity {
    folder: PathBuf,
    key: KeyPair,
    /// Signed by itself, until there is a membership.
    own: rcgen::Certificate,
    membership: Option<Membership>,
}

/// A certificate of the lab's authority, and that.
#[derive(Clone, Debug)]
pub struct Membership {
    /// PEM.
    pub certificate: String,
    /// PEM.
    pub authority: String,
}

impl Identity {
    /// The identity kept in `folder`, or in the usual place; made where there is none. `host` is the host's name.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub fn open(folder: Option<&Path>, host: &str) -> Result<Self, IdentityError> {
        let folder = Self::place(folder)?;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| IdentityError::File { path, source }
        };
        private_file::enter(&folder).map_err(at(&folder))?;
        let folder = fs::canonicalize(&folder).map_err(at(&folder))?;
        let path = folder.join("key.pem");
        let key = match private_file::read(&path).map_err(at(&path))? {
            Some(text) => KeyPair::from_pem(&text)
                .map_err(|e| IdentityError::Damaged { path: path.clone(), why: e.to_string() })?,
            None => {
                let key = KeyPair::generate().map_err(IdentityError::Key)?;
                private_file::write(&path, &key.serialize_pem()).map_err(at(&path))?;
                key
            }
        };
        let own = params(host).self_signed(&key).map_err(IdentityError::Key)?;
        let path = folder.join("membership.pem");
        let stored = private_file::read(&path).map_err(at(&path))?;
        let membership = stored.map(|text| {
            let end = text.find(END).map_or(text.len(), |at| at + END.len());
            let (certificate, authority) = text.split_at(end);
            membership_of(certificate, authority.trim_start(), &key)
                .map_err(|why| IdentityError::Damaged { path, why: why.to_string() })
        });
        Ok(Self { folder, key, own, membership: membership.transpose()? })
    }

    /// Where it is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The private key, PEM: for the TLS library alone.
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// The certificate that the agent made itself.
    pub fn own_certificate(&self) -> &rcgen::Certificate {
        &self.own
    }

    /// What vouches for it, once it has joined a lab.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    /// A request for a certificate, PKCS #10 in PEM.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn request(&self, host: &str) -> Result<String, rcgen::Error> {
        params(host).serialize_request(&self.key)?.pem()
    }

    /// Becomes a member of the lab of this authority, for good.
    ///
    /// # Errors
    /// See [`MembershipError`]; nothing has changed then.
    pub fn join(&self, authority: &str, certificate: &str) -> Result<(), MembershipError> {
        let joined = membership_of(certificate.trim(), authority.trim(), &self.key)?;
        let text = format!("{}\n{}\n", joined.certificate, joined.authority);
        private_file::write(&self.folder.join("membership.pem"), &text).map_err(MembershipError::Disk)
    }

    /// Where the identity is kept that `folder` names, or the usual one.
    ///
    /// # Errors
    /// There is no home to look below.
    pub fn place(folder: Option<&Path>) -> Result<PathBuf, IdentityError> {
        folder.map(Path::to_owned).or_else(|| places::usual("host")).ok_or(IdentityError::Homeless)
    }

    /// Leaves the lab and forgets its authority; whether there was one. The key stays. Root may do this for the agent
    /// of another user.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn leave(folder: Option<&Path>) -> Result<bool, IdentityError> {
        let path = Self::place(folder)?.join("membership.pem");
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(IdentityError::File { path, source }),
        }
    }
}

fn params(host: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names.extend(NAME.try_into().map(rcgen::SanType::DnsName));
    params.distinguished_name.push(DnType::CommonName, host);
    params
}

/// Ends a certificate.
const END: &str = "-----END CERTIFICATE-----";

/// A certificate and its authority, checked against the key and each other.
fn membership_of(certificate: &str, authority: &str, key: &KeyPair) -> Result<Membership, MembershipError> {
    let block = |text: &str, what| {
        let (block, _) = Pem::read(io::Cursor::new(text)).map_err(|_| MembershipError::Unreadable(what))?;
        if block.label == "CERTIFICATE" { Ok(block.contents) } else { Err(MembershipError::Unreadable(what)) }
    };
    let parsed = |der, what| X509Certificate::from_der(der).map_err(|_| MembershipError::Unreadable(what));
    let blocks = (block(certificate, "the certificate")?, block(authority, "the authority")?);
    let (_, own) = parsed(&blocks.0, "the certificate")?;
    let (_, signer) = parsed(&blocks.1, "the authority")?;
    if own.public_key().raw != key.subject_public_key_info() {
        return Err(MembershipError::ForeignKey);
    }
    if !signer.is_ca() || own.verify_signature(Some(signer.public_key())).is_err() {
        return Err(MembershipError::NotSigned);
    }
    Ok(Membership { certificate: certificate.into(), authority: authority.into() })
}
