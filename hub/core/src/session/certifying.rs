//! Owns: one session's way to a certificate for another key: sign, have it recorded, hand it out. It hands out the
//! things that it waits for; its caller waits.
//! Never: signs itself, or hands out what is not recorded.

use bytes::Bytes;
use fold::Rejection;
use model::{ClusterId, KeyFingerprint, SessionId, Signed, sync::Renewed};
use tokio::sync::oneshot;

use super::renewals::Answered;
use crate::writer::{Certification, Operated, Permit};

/// The writer's word on a certificate, when it is durable.
pub type CertifiedAnswer = oneshot::Receiver<Result<Operated, Rejection>>;

/// The stage of a certificate request.
#[derive(Debug, Default)]
pub(super) enum Certifying {
    /// Nothing is asked for.
    #[default]
    Not,
    /// A request is to be signed.
    Sign(Bytes),
    /// Somebody signs it.
    Signing,
    /// The writer is to record it.
    Record(Box<Signed>),
    /// It was asked to.
    Recording(Box<Signed>),
}

impl Certifying {
    /// Nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Not)
    }

    /// The request that is to be signed now.
    pub(super) fn take_request(&mut self) -> Option<Bytes> {
        if !matches!(self, Self::Sign(_)) {
            return None;
        }
        match std::mem::replace(self, Self::Signing) {
            Self::Sign(request) => Some(request),
            _ => None,
        }
    }

    /// It was signed, or not: then that is the answer.
    pub(super) fn signed(&mut self, signed: Result<Box<Signed>, Box<str>>) -> Option<Answered> {
        match signed {
            Ok(signed) => {
                *self = Self::Record(signed);
                None
            }
            Err(why) => {
                *self = Self::Not;
                Some(Err(why))
            }
        }
    }

    /// Returns true if it has something for the writer.
    pub(super) fn wants_permit(&self) -> bool {
        matches!(self, Self::Record(_))
    }

    /// Has it recorded that the key was certified over this session.
    pub(super) fn record(
        &mut self,
        permit: Permit<'_>,
        (session, cluster): (SessionId, &ClusterId),
        by: KeyFingerprint,
    ) -> Option<CertifiedAnswer> {
        let Self::Record(signed) = std::mem::take(self) else {
            return None;
        };
        let certification = Certification {
            session,
            cluster: cluster.clone(),
            key: signed.key,
            by,
            issuer: signed.issuer.clone(),
            not_after: signed.not_after,
        };
        *self = Self::Recording(signed);
        Some(permit.certify(certification))
    }

    /// It is recorded, or was refused: the answer. `None`: the writer is gone.
    pub(super) fn recorded(&mut self, outcome: Option<Result<Operated, Rejection>>) -> Option<Answered> {
        let Self::Recording(signed) = std::mem::take(self) else {
            return None;
        };
        match outcome? {
            Ok(_) => Some(Ok(Box::new(Renewed {
                certificates: signed.certificates,
                authorities: signed.authorities,
            }))),
            Err(rejection) => Some(Err(rejection.to_string().into())),
        }
    }
}
