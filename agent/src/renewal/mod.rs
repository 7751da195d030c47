//! Renews the certificate of a cluster that joined with a string, over the session of the key that it replaces.
//!
//! * `due.rs`: when; pure. `trust.rs`: whether what a hub gives is believed. `keep.rs`: makes a key, keeps it, asks the hub by way of the link, keeps what it gave.
//!
//! Certificates from elsewhere are renewed there: this module leaves them alone.

pub mod due;
mod keep;
mod trust;

pub use keep::{RenewalMetrics, Renewing};
