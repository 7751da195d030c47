//! The one cryptography provider of the process: aws-lc-rs.

use std::sync::{Mutex, PoisonError};

use rustls::crypto::aws_lc_rs;

/// Another provider was installed first, so a part of the process would use a cryptography nobody chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cryptography provider was installed before ours: call install_crypto_provider first in main, and \
     build every dependency with aws-lc-rs"
)]
pub struct ProviderError;

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
