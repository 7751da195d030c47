//! Owns: how the rest of the agent asks the hub for a certificate over the session that is open.
//! Never: makes a key or keeps a certificate.

use bytes::Bytes;
use shared::model::sync::Renewed;
use tokio::sync::oneshot;

/// A certificate is wanted.
#[derive(Debug)]
pub struct CertificateWish {
    /// The signing request, DER.
    pub request: Bytes,
    /// Channel of the hub's answer; dropped if the hub signs no certificates, or the session ends first.
    pub answer: oneshot::Sender<Result<Box<Renewed>, Box<str>>>,
}
