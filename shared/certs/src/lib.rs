//! Certificates for hubs, members, operators and readers, so that nothing ever runs without mutual TLS.
//!
//! * [`CertificateAuthority`]: makes authorities and issues certificates, all in memory.
//! * [`MemberIssuer`]: the intermediate with which a hub lets clusters join.
//! * [`RenewalIssuer`]: the same for members that renew.
//! * [`Directory`], [`read_authority`]: the files of an authority and of what it issued.
//! * [`command`]: `tributary-hub certs`, the same with files.
//!
//! It issues; it never decides who is a member. Any other issuer serves as well, if its certificates carry the
//! same URI name.

mod authority;
pub mod command;
mod files;
mod joining;
mod renewal;
mod validity;

pub use authority::{AuthorityError, CertificateAuthority, Issued, MembersOnlyPem, Subject};
pub use files::{Directory, read_authority};
pub use joining::{IssuerError, MemberIssuer, SIGNING_REQUEST_BYTES_MAX, SigningRequest};
pub use renewal::RenewalIssuer;
pub use validity::Validity;
