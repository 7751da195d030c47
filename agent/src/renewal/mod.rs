//! Renews the certificate of a cluster that joined with a string, over the session of the key that it replaces.
//!
//! * `due.rs`: when; pure. `trust.rs`: whether what a hub gives is believed. `keep.rs`: makes a key, keeps it, asks the hub by way of the link, keeps what it gave.
//!
//! Whoever brings certificates from somewhere else renews them there: this room leaves them alone.

pub mod due;
mod keep;
mod trust;

pub use keep::{RenewalMetrics, Renewing};
