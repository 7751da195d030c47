//! A certificate of a member between its signature and the record of its key.

use bytes::Bytes;

use super::{KeyFingerprint, UnixMillis};

/// A certificate that was made and not handed out yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Its key.
    pub key: KeyFingerprint,
    /// Its issuer, as it names it.
    pub issuer: Box<str>,
    /// Its end.
    pub not_after: UnixMillis,
    /// The certificate and what it leads over, DER.
    pub certificates: Vec<Bytes>,
    /// The authorities that members are to trust, DER; none: those that they trust stay.
    pub authorities: Vec<Bytes>,
}
