//! Lifetime of an accepted connection: until its certificate ends, until reloaded files refuse it, or until it is old.
//! Its service learns the reason before it is cut. It knows no service and no request.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rustls_pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{clock::now, live::LiveCredentials};
use crate::{model::UnixMillis, process::random};

/// Oldest that a connection gets; what moves behind a load balancer or to another hub does so within this time.
pub const CONNECTION_AGE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// Random reduction of the maximum age: connections that began together do not end together.
const CONNECTION_AGE_JITTER_SECONDS: u64 = 6 * 3_600;
/// Time for a peer to read the reason why its connection ends.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longest wait for the end of a certificate, which only bounds the arithmetic of timers.
const EXPIRY_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The reason why a connection has to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// Its certificate has expired.
    Expired,
    /// The files in force now refuse its certificate.
    Refused(String),
    /// It is as old as connections get.
    Aged,
    /// Its holder opened another, and had as many as it may have; nothing was open over this one.
    Displaced,
}

impl ConnectionEnd {
    /// The status for calls over it.
    pub fn status(&self) -> Status {
        match self {
            Self::Expired => Status::unauthenticated(
                "the certificate that opened this connection has expired: connect with a renewed one",
            ),
            Self::Refused(why) => Status::permission_denied(format!(
                "the certificate that opened this connection is refused now: {why}. Come with another certificate"
            )),
            Self::Aged => Status::unavailable("this connection is as old as connections get: connect again"),
            Self::Displaced => Status::unavailable(
                "this connection was silent, and its holder opened more than one may have: connect again",
            ),
        }
    }
}

/// The life of one connection; clones are the same one.
#[derive(Clone, Default)]
pub struct Lifetime(Arc<Life>);

#[derive(Default)]
struct Life {
    why: OnceLock<ConnectionEnd>,
    /// It has to end, and its server says so.
    ended: CancellationToken,
    /// Its bytes end.
    cut: CancellationToken,
    /// The connection is gone.
    closed: CancellationToken,
}

impl fmt::Debug for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lifetime({:?})", self.why())
    }
}

impl Lifetime {
    /// The reason why it has to end, if it has to.
    pub fn why(&self) -> Option<&ConnectionEnd> {
        self.0.why.get()
    }

    /// Waits until it has to end.
    pub async fn ended(&self) -> Status {
        self.0.ended.cancelled().await;
        self.why().unwrap_or(&ConnectionEnd::Aged).status()
    }

    /// Ends it: nobody serves it any more.
    pub fn end(&self, why: ConnectionEnd) {
        // The first reason stays.
        let _ = self.0.why.set(why);
        self.0.ended.cancel();
    }

    pub(super) fn cut(&self) -> &CancellationToken {
        &self.0.cut
    }

    pub(super) fn closed(&self) {
        self.0.closed.cancel();
    }

    /// Watches over a connection until it is gone or has to go.
    pub(super) async fn watch(
        self,
        credentials: Arc<LiveCredentials>,
        chain: Vec<CertificateDer<'static>>,
        not_after: UnixMillis,
    ) {
        let closed = self.0.closed.clone();
        let watched = async {
            let why = self.first_reason(&credentials, &chain, not_after).await;
            self.end(why);
            tokio::time::sleep(FAREWELL).await;
            self.0.cut.cancel();
        };
        tokio::select! {
            () = closed.cancelled() => {}
            () = watched => {}
        }
    }

    async fn first_reason(
        &self,
        credentials: &LiveCredentials,
        chain: &[CertificateDer<'static>],
        not_after: UnixMillis,
    ) -> ConnectionEnd {
        let left = Duration::from_millis(not_after.0.saturating_sub(now().0)).min(EXPIRY_MAX);
        let earlier = Duration::from_secs(random::<u64>() % CONNECTION_AGE_JITTER_SECONDS);
        let old = CONNECTION_AGE_MAX.saturating_sub(earlier);
        let end = tokio::time::Instant::now() + left.min(old);
        let mut changes = credentials.changes();
        loop {
            // Files replaced between the handshake and now count too.
            if let Err(why) = credentials.current().judge(chain) {
                return ConnectionEnd::Refused(why);
            }
            tokio::select! {
                () = tokio::time::sleep_until(end) => {
                    return if left < old { ConnectionEnd::Expired } else { ConnectionEnd::Aged };
                }
                // An error means that nothing will change any more, and the time is waited for.
                Ok(()) = changes.changed() => {}
            }
        }
    }
}
