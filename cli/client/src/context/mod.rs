//! The file that remembers hubs and certificates, as kubectl's contexts do.
//!
//! * `entry.rs`: one context, and all of them. `store.rs`: the file.

mod entry;
mod store;

pub use entry::{Context, Contexts, Pem, valid_name};
pub use store::{Store, bytes, lock, unknown};
