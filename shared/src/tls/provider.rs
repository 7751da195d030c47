//! The one cryptography provider of the process: aws-lc-rs.
//! It installs it for libraries that ask for the process default; our own configurations name it directly.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Another provider was installed first, so a part of the process would use a cryptography nobody chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cryptography provider was installed before ours: call install_crypto_provider first in main, and \
     build every dependency with aws-lc-rs"
)]
pub struct ProviderError;

/// The protocol both sides agree on during the handshake: HTTP/2.
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(aws_lc_rs::default_provider()));
static INSTALLED_BY_US: Mutex<bool> = Mutex::new(false);

/// Makes aws-lc-rs the process default. Call it first in `main`; a second call does nothing.
pub fn install_crypto_provider() -> Result<(), ProviderError> {
    let mut installed = INSTALLED_BY_US.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| ProviderError)?;
    *installed = true;
    Ok(())
}

/// The provider that our TLS configurations are built with.
pub(super) fn provider() -> Arc<CryptoProvider> {
    PROVIDER.clone()
}
