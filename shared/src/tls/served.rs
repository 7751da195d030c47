//! Owns: a certificate for clients without one of ours that know us by a name, such as API servers that call a webhook:
//! it is shown to every client, and new files of it take effect while connections stay up.
//! Never: asks a client for a certificate: what is answered behind it is for anybody who gets there.

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    ServerConfig,
    server::NoServerSessionStorage,
    sign::{CertifiedKey, SingleCertAndKey},
    version::TLS13,
};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    clock::now,
    files::read,
    pem::{CredentialsError, certificates},
    provider::provider,
    reload::RELOAD_CHECK_INTERVAL,
};

/// The protocol that is spoken behind it.
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// The two PEM files, and the flags that name them.
#[derive(Debug, Clone)]
pub struct ServedFiles {
    /// The certificate, its intermediates after it.
    pub cert: PathBuf,
    /// Its flag.
    pub cert_flag: &'static str,
    /// The private key.
    pub key: PathBuf,
    /// Its flag.
    pub key_flag: &'static str,
}

/// The certificate in force.
pub struct ServedCertificate {
    files: ServedFiles,
    current: RwLock<Arc<Shown>>,
}

/// The certificate for new handshakes.
struct Shown {
    config: Arc<ServerConfig>,
    /// Time at which the certificate ends, in seconds since 1970.
    ends: i64,
    /// The digest of both files.
    digest: blake3::Hash,
}

impl ServedCertificate {
    /// Reads the files for the first time.
    ///
    /// # Errors
    ///
    /// They cannot be read, or are no certificate with its key.
    pub fn load(files: ServedFiles) -> Result<Arc<Self>, CredentialsError> {
        let shown = Arc::new(shown(&files)?);
        Ok(Arc::new(Self {
            files,
            current: RwLock::new(shown),
        }))
    }

    /// Seconds until it ends; negative afterwards.
    pub fn expires_in_seconds(&self) -> i64 {
        let now = i64::try_from(now().0 / 1_000).unwrap_or(i64::MAX);
        self.current().ends.saturating_sub(now)
    }

    /// The handshake of one who comes; `None`: it failed.
    pub async fn greet<IO: AsyncRead + AsyncWrite + Unpin>(
        self: Arc<Self>,
        socket: IO,
    ) -> Option<TlsStream<IO>> {
        let config = self.current().config.clone();
        let greeted = TlsAcceptor::from(config).accept(socket).await;
        // Anybody who gets here can cause this line.
        greeted
            .inspect_err(|error| debug!(%error, "a TLS handshake failed"))
            .ok()
    }

    /// Looks at the files once; says whether new ones are in force.
    ///
    /// # Errors
    ///
    /// They cannot be used; the old ones stay in force.
    pub fn check(&self) -> Result<bool, CredentialsError> {
        let new = shown(&self.files)?;
        let changed = new.digest != self.current().digest;
        if changed {
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        }
        Ok(changed)
    }

    /// Looks at the files every [`RELOAD_CHECK_INTERVAL`] until the token is cancelled.
    ///
    /// # Errors
    ///
    /// A look panicked.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut told = None;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = sleep(RELOAD_CHECK_INTERVAL) => {}
            }
            // Reading may block for long when the files lie on a network volume.
            let looked = self.clone();
            let looked = tokio::task::spawn_blocking(move || looked.check()).await?;
            let file = self.files.cert.display();
            match looked {
                Ok(false) => told = None,
                Ok(true) => {
                    told = None;
                    info!(%file, "a new certificate is in force");
                }
                Err(problem) => {
                    let problem = problem.to_string();
                    // Once for each problem, not once for each look.
                    if told.as_ref() != Some(&problem) {
                        error!(%problem, "a new certificate cannot be used, the old one stays in force: replace the files");
                        told = Some(problem);
                    }
                }
            }
        }
    }

    fn current(&self) -> Arc<Shown> {
        // The lock guards one pointer: a panic elsewhere cannot leave it half written.
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn shown(files: &ServedFiles) -> Result<Shown, CredentialsError> {
    let (cert, key) = (
        read(files.cert_flag, &files.cert)?,
        read(files.key_flag, &files.key)?,
    );
    let chain = certificates(files.cert_flag, &cert)?;
    let malformed = |file, what, problem: String| CredentialsError::Malformed { file, what, problem };
    let ends = match X509Certificate::from_der(&chain[0]) {
        Ok((_, certificate)) => certificate.validity().not_after.timestamp(),
        Err(error) => return Err(malformed(files.cert_flag, "certificate", error.to_string())),
    };
    let of_key = |problem: String| malformed(files.key_flag, "private key of that certificate", problem);
    let der = PrivateKeyDer::from_pem_slice(&key).map_err(|error| of_key(error.to_string()))?;
    let provider = provider();
    let pair = CertifiedKey::from_der(chain, der, &provider).map_err(|error| of_key(error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(CredentialsError::Pair)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
    config.alpn_protocols = vec![ALPN_HTTP1.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let mut hasher = blake3::Hasher::new();
    for part in [&cert, &key] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    Ok(Shown {
        config: Arc::new(config),
        ends,
        digest: hasher.finalize(),
    })
}
