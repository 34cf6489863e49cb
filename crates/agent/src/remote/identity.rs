//! Key and certificate of the host, and the authority of its lab.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData};
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::private_file;
use crate::places;

/// Name in every agent's certificate, independent of the host name; callers verify it.
pub const NAME: &str = "wiregauge-agent";

/// Reason why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// No folder for it.
    #[error("there is no folder for the host's key, because HOME is not set; name one with --state")]
    Homeless,
    /// Disk error, or invalid type, owner or permissions of the file.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Invalid key or certificate in the file.
    #[error("{path} cannot be used ({why}); remove it, and the agent makes a new one and has to join again")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Problem.
        why: String,
    },
    /// Key generation failed.
    #[error("no key could be made: {0}")]
    Key(rcgen::Error),
}

/// Reason why an agent cannot become a member.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// Not a certificate.
    #[error("{0} is no certificate in PEM form")]
    Unreadable(&'static str),
    /// Certificate for another key.
    #[error("the certificate is for another key than this agent's")]
    ForeignKey,
    /// Certificate not signed by the authority.
    #[error("the certificate is not signed by the authority that came with it")]
    NotSigned,
    /// Disk error.
    #[error("the membership cannot be stored: {0}")]
    Disk(io::Error),
}

/// Key of the host and its certificates.
#[derive(Debug)]
pub struct Identity {
    folder: PathBuf,
    key: KeyPair,
    /// Self-signed certificate, used until there is a membership.
    own: rcgen::Certificate,
    membership: Option<Membership>,
}

/// Certificate issued by the lab's authority, and the authority's own.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Certificate, PEM.
    pub certificate: String,
    /// Certificate of the authority, PEM.
    pub authority: String,
}

impl Identity {
    /// Identity in `folder` or the default folder; created if there is none. `host` is the host's name.
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

    /// Folder of the identity.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Private key, PEM, for use by the TLS library only.
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// Self-signed certificate.
    pub fn own_certificate(&self) -> &rcgen::Certificate {
        &self.own
    }

    /// Membership, once the host has joined a lab.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    /// Certificate request, PKCS #10 in PEM.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn request(&self, host: &str) -> Result<String, rcgen::Error> {
        params(host).serialize_request(&self.key)?.pem()
    }

    /// Makes the host a permanent member of the authority's lab.
    ///
    /// # Errors
    /// See [`MembershipError`]; in this case nothing has changed.
    pub fn join(&self, authority: &str, certificate: &str) -> Result<(), MembershipError> {
        let joined = membership_of(certificate.trim(), authority.trim(), &self.key)?;
        let text = format!("{}\n{}\n", joined.certificate, joined.authority);
        private_file::write(&self.folder.join("membership.pem"), &text).map_err(MembershipError::Disk)
    }

    /// Folder of the identity: `folder` or the default one.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn place(folder: Option<&Path>) -> Result<PathBuf, IdentityError> {
        folder.map(Path::to_owned).or_else(|| places::usual("host")).ok_or(IdentityError::Homeless)
    }

    /// Leaves the lab and deletes its authority; false if there was none. The key is kept. Root may do this for another
    /// user's agent.
    ///
    /// # Errors
    /// Refused by the disk.
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

/// Last line of a certificate.
const END: &str = "-----END CERTIFICATE-----";

/// Checks a certificate and its authority against the key and each other.
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
