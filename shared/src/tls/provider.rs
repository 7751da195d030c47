//! The one cryptography provider of the process: aws-lc-rs.
//! It installs it for libraries that ask for the process default; our own configurations name it directly.

use std::sync::{Arc, LazyLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};

pub use crate::api_client::{ProviderError, install_crypto_provider};

/// The protocol both sides agree on during the handshake: HTTP/2.
pub(super) const ALPN_HTTP2: &[u8] = b"h2";

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(aws_lc_rs::default_provider()));

/// The provider that our TLS configurations are built with.
pub(super) fn provider() -> Arc<CryptoProvider> {
    PROVIDER.clone()
}
