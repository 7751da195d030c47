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
    /// Where the hub's answer goes; dropped if the hub signs for nobody, or the session ends before it answers.
    pub answer: oneshot::Sender<Result<Box<Renewed>, Box<str>>>,
}
