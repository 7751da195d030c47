//! The way of an operator to the hub.
//!
//! * [`context`]: the file that remembers hubs and certificates.
//! * [`access`]: flags, variables and context together; the connection, and errors that say what to do.
//! * [`duration`]: times with a unit. [`usage`]: the error for incomplete arguments.
//!
//! Nothing here knows what is asked.

pub mod access;
pub mod context;
pub mod duration;
pub mod usage;

pub use access::{Access, AccessArgs, failed, request};
pub use duration::duration;
pub use usage::Usage;

/// Runs a command on a runtime of its own.
pub fn run<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    shared::tls::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(command)
}
