//! Watches the TLS files and puts new ones in force.
//! Files that cannot be used leave the old ones in force: it logs, counts, and tries again when they change.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{
    credentials::{Credentials, CredentialsError, Pem},
    files::TlsFiles,
    live::LiveCredentials,
    metrics::TlsMetrics,
};
use crate::model::UnixMillis;

/// How often the files are looked at.
pub const RELOAD_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A certificate that is nearer than this to its end is warned about when it is loaded.
const EXPIRY_WARNING_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// What a look at the files found.
#[derive(Debug)]
pub enum Reload {
    /// The same content as at the last look.
    Unchanged,
    /// New content, now in force.
    Loaded,
    /// Content that cannot be used; the old stays in force.
    Refused(CredentialsError),
}

/// Loads the files once, then watches them.
pub struct Reloader {
    files: TlsFiles,
    live: Arc<LiveCredentials>,
    metrics: TlsMetrics,
    seen: Option<blake3::Hash>,
    last_problem: Option<String>,
}

impl Reloader {
    /// Loads the files for the first time: here any problem is the caller's error.
    pub fn load(
        files: TlsFiles,
        metrics: TlsMetrics,
    ) -> Result<(Self, Arc<LiveCredentials>), CredentialsError> {
        let pem = files.read()?;
        let credentials = Credentials::from_pem(&pem)?;
        if files.key_is_world_readable() {
            let path = files.key.display();
            warn!(%path, "everybody on this machine can read the private key: chmod 600, or defaultMode 0400 in a pod");
        }
        announce(&credentials);
        let live = LiveCredentials::new(credentials);
        let reloader = Self {
            files,
            live: live.clone(),
            metrics,
            seen: Some(digest(&pem)),
            last_problem: None,
        };
        Ok((reloader, live))
    }

    /// Looks at the files once.
    pub fn check(&mut self) -> Reload {
        let outcome = match self.files.read() {
            Ok(pem) if self.seen == Some(digest(&pem)) => return Reload::Unchanged,
            Ok(pem) => {
                self.seen = Some(digest(&pem));
                Credentials::from_pem(&pem)
            }
            Err(error) => {
                self.seen = None;
                Err(error)
            }
        };
        let outcome = outcome.and_then(|new| {
            announce(&new);
            self.live.replace(new)
        });
        self.metrics.reloaded(outcome.is_ok());
        match outcome {
            Ok(()) => {
                self.last_problem = None;
                Reload::Loaded
            }
            Err(problem) => {
                self.report(&problem);
                Reload::Refused(problem)
            }
        }
    }

    /// Looks at the files every [`RELOAD_CHECK_INTERVAL`] until the token is cancelled.
    pub async fn run(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep(RELOAD_CHECK_INTERVAL) => {}
            }
            // Reading may block for long when the files lie on a network volume.
            self = tokio::task::spawn_blocking(move || {
                self.check();
                self
            })
            .await?;
        }
    }

    /// One line per problem, not one per look.
    fn report(&mut self, problem: &CredentialsError) {
        let problem = problem.to_string();
        if self.last_problem.as_ref() != Some(&problem) {
            error!(%problem, "new TLS files cannot be used, the old ones stay in force: replace the files");
            self.last_problem = Some(problem);
        }
    }
}

fn digest(pem: &Pem) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in [&pem.cert, &pem.key, &pem.ca] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

fn announce(credentials: &Credentials) {
    let facts = credentials.facts();
    let (identity, key) = (&facts.identity, &facts.key_fingerprint);
    let expires_at = timestamp(facts.not_after);
    let left = facts.not_after.0.saturating_sub(now().0);
    if left == 0 {
        error!(%identity, %expires_at, "the certificate has expired, every peer will refuse it: replace it");
    } else if left < EXPIRY_WARNING_MILLIS {
        warn!(%identity, %expires_at, "the certificate expires soon: replace it");
    }
    info!(%identity, %key, %expires_at, "TLS files loaded");
}

pub(super) fn now() -> UnixMillis {
    UnixMillis(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0))
}

fn timestamp(time: UnixMillis) -> String {
    let millis = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| format!("{millis} ms"), |time| time.to_string())
}
