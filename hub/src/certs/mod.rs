//! Certificates for hubs, members, operators and readers, so that nothing ever runs without mutual TLS.
//!
//! * [`CertificateAuthority`]: makes authorities and issues certificates, all in memory.
//! * [`command`]: `tributary-hub certs`, the same with files.
//!
//! It issues; it never decides who is a member. Any other issuer serves as well, if its certificates carry the
//! same URI name.

mod authority;
pub mod command;
mod files;
mod validity;

pub use authority::{AuthorityError, CertificateAuthority, Issued, Subject};
pub use validity::Validity;
