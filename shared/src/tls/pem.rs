//! The bytes of PEM files, the certificates in them, and what may be wrong with either.
//! It reads no file and judges no certificate.

use rustls_pki_types::{CertificateDer, pem::PemObject};

use crate::{identity::IdentityError, process::FileError};

/// The bytes of three PEM files, from disk or made in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The certificate, its intermediates after it.
    pub cert: Vec<u8>,
    /// The private key.
    pub key: Vec<u8>,
    /// The trust roots.
    pub ca: Vec<u8>,
}

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(FileError),
    /// A file does not hold what it should.
    #[error("{file} holds no usable {what}: {problem}")]
    Malformed {
        /// The flag that names the file.
        file: &'static str,
        /// The item searched for.
        what: &'static str,
        /// The problem.
        problem: String,
    },
    /// The certificate states no identity of ours.
    #[error("--tls-cert: {0}")]
    Identity(#[from] IdentityError),
    /// The key does not belong to the certificate, or TLS refuses the pair.
    #[error("{}", pair(.0))]
    Pair(rustls::Error),
    /// TLS refuses the roots.
    #[error("--tls-ca cannot be used: {0}")]
    Roots(String),
    /// A reload would turn the process into somebody else.
    #[error("the new certificate is for {new}, this process is {old}: restart it to change who it is")]
    OtherIdentity {
        /// The identity of the process.
        old: String,
        /// The identity in the new certificate.
        new: String,
    },
}

fn pair(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            "--tls-key is not the key of the certificate in --tls-cert".to_owned()
        }
        other => format!("--tls-cert and --tls-key cannot be used together: {other}"),
    }
}

/// The certificates in the file that a flag names; there is one at least.
pub fn certificates(
    file: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let malformed = |problem: String| CredentialsError::Malformed {
        file,
        what: "certificate",
        problem,
    };
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let parsed = parsed.map_err(|error| malformed(error.to_string()))?;
    if parsed.is_empty() {
        return Err(malformed("there is no BEGIN CERTIFICATE in it".to_owned()));
    }
    Ok(parsed)
}
