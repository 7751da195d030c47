//! Watches the TLS files and puts new ones in force.
//! Files that cannot be used leave the old ones in force: it logs, counts, and tries again when they change.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{
    clients::{ClientFiles, ClientPem},
    clock::now,
    credentials::Credentials,
    files::TlsFiles,
    live::LiveCredentials,
    metrics::TlsMetrics,
    pem::{CredentialsError, Pem},
};
use crate::{
    identity::{CertificateFacts, Role},
    model::{KeyFingerprint, UnixMillis},
};

/// Interval of checking the files.
pub const RELOAD_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A certificate that is nearer than this to its end is warned about.
const EXPIRY_WARNING_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A warning is repeated after this time.
const EXPIRY_REMINDER_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The outcome of a look at the files.
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
    clients: ClientFiles,
    live: Arc<LiveCredentials>,
    metrics: TlsMetrics,
    seen: Option<blake3::Hash>,
    last_problem: Option<String>,
    /// The key whose certificate's end was last warned of, and when.
    warned: Option<(KeyFingerprint, UnixMillis)>,
}

impl Reloader {
    /// Loads the files for the first time: here any problem is the caller's error.
    pub fn load(
        files: TlsFiles,
        metrics: TlsMetrics,
    ) -> Result<(Self, Arc<LiveCredentials>), CredentialsError> {
        Self::load_for_hub(files, ClientFiles::default(), metrics)
    }

    /// The same for a hub, with more rules on its clients' certificates.
    pub fn load_for_hub(
        files: TlsFiles,
        clients: ClientFiles,
        metrics: TlsMetrics,
    ) -> Result<(Self, Arc<LiveCredentials>), CredentialsError> {
        let (pem, client_pem) = (files.read()?, clients.read()?);
        let credentials = Credentials::with_clients(&pem, &client_pem)?;
        if files.key_is_world_readable() {
            let path = files.key.display();
            warn!(%path, "everybody on this machine can read the private key: chmod 600, or defaultMode 0400 in a pod");
        }
        announce(credentials.facts());
        let live = LiveCredentials::new(credentials);
        let mut reloader = Self {
            files,
            clients,
            live: live.clone(),
            metrics,
            seen: Some(digest(&pem, &client_pem)),
            last_problem: None,
            warned: None,
        };
        reloader.warn_of_expiry(now());
        Ok((reloader, live))
    }

    /// Looks at the files once.
    pub fn check(&mut self) -> Reload {
        let read = self.files.read();
        let outcome = match read.and_then(|pem| Ok((pem, self.clients.read()?))) {
            Ok((pem, clients)) if self.seen == Some(digest(&pem, &clients)) => {
                self.warn_of_expiry(now());
                return Reload::Unchanged;
            }
            Ok((pem, clients)) => {
                self.seen = Some(digest(&pem, &clients));
                Credentials::with_clients(&pem, &clients)
            }
            Err(error) => {
                self.seen = None;
                Err(error)
            }
        };
        let outcome = outcome.and_then(|new| {
            keeps_its_own_root(&self.live.current(), &new)?;
            self.live.replace(new)
        });
        self.metrics.reloaded(outcome.is_ok());
        match outcome {
            Ok(()) => {
                self.last_problem = None;
                announce(&self.live.facts());
                self.warn_of_expiry(now());
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

    /// Warns of a certificate that ends soon, when it is loaded and once a day; says whether it did.
    fn warn_of_expiry(&mut self, now: UnixMillis) -> bool {
        let facts = self.live.facts();
        let left = facts.not_after.0.saturating_sub(now.0);
        let warned = self.warned.filter(|(key, at)| {
            *key == facts.key_fingerprint && now.0.saturating_sub(at.0) < EXPIRY_REMINDER_MILLIS
        });
        if left >= EXPIRY_WARNING_MILLIS || warned.is_some() {
            return false;
        }
        self.warned = Some((facts.key_fingerprint, now));
        let (identity, expires_at) = (&facts.identity, timestamp(facts.not_after));
        if left == 0 {
            error!(%identity, %expires_at, "the certificate has expired, every peer will refuse it: replace it");
        } else {
            warn!(%identity, %expires_at, "the certificate expires soon: replace it");
        }
        true
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

/// A hub that takes its own authority off its roots would cut off every member whose certificate is of it. While an
/// authority is replaced both are there.
fn keeps_its_own_root(old: &Credentials, new: &Credentials) -> Result<(), CredentialsError> {
    let is_hub = matches!(new.facts().identity.role, Role::Hub(_));
    if is_hub && old.pin().is_some() && new.pin().is_none() {
        return Err(CredentialsError::Roots(
            "it lacks the authority of this hub's own certificate: while an authority is replaced the old and the new \
             one are both in it"
                .to_owned(),
        ));
    }
    Ok(())
}

fn digest(pem: &Pem, clients: &ClientPem) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in [&pem.cert, &pem.key, &pem.ca] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    for part in [&clients.renewal_issuer, &clients.client_crl, &clients.deny_keys] {
        let part = part.as_deref();
        hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
        hasher.update(part.unwrap_or_default());
    }
    hasher.finalize()
}

fn announce(facts: &CertificateFacts) {
    let (identity, key) = (&facts.identity, &facts.key_fingerprint);
    let expires_at = timestamp(facts.not_after);
    info!(%identity, %key, %expires_at, "TLS files loaded");
}

fn timestamp(time: UnixMillis) -> String {
    let millis = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| format!("{millis} ms"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::tests::pki::{Authority, HUB};

    #[test]
    fn the_end_of_a_certificate_is_warned_of_once_a_day() {
        let dir = tempfile::tempdir().expect("directory");
        let pem = Authority::new("ca").issue_for(HUB);
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            path
        };
        let files = TlsFiles {
            cert: file("tls.crt", &pem.cert),
            key: file("tls.key", &pem.key),
            ca: file("ca.crt", &pem.ca),
        };
        let (mut reloader, live) = Reloader::load(files, TlsMetrics::default()).expect("loaded");
        let end = live.facts().not_after.0;
        let mut warned_at = |time: u64| reloader.warn_of_expiry(UnixMillis(time));
        assert!(!warned_at(end - 1_000), "loading it has warned already");
        assert!(warned_at(end + EXPIRY_REMINDER_MILLIS));
        assert!(!warned_at(end + EXPIRY_REMINDER_MILLIS + 1));
        reloader.warned = None;
        assert!(
            !reloader.warn_of_expiry(UnixMillis(end - EXPIRY_WARNING_MILLIS)),
            "too early"
        );
        assert!(reloader.warn_of_expiry(UnixMillis(end - EXPIRY_WARNING_MILLIS + 1)));
    }

    #[test]
    fn a_hub_keeps_the_root_of_its_own_certificate_while_an_authority_is_replaced() {
        let dir = tempfile::tempdir().expect("directory");
        let (old, new) = (Authority::new("old"), Authority::new("new"));
        let pem = old.issue_for(HUB);
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("written");
            path
        };
        let files = TlsFiles {
            cert: file("tls.crt", &pem.cert),
            key: file("tls.key", &pem.key),
            ca: file("ca.crt", &pem.ca),
        };
        let (mut reloader, live) = Reloader::load(files, TlsMetrics::default()).expect("loaded");
        let roots = || live.current().authorities().len();
        file("ca.crt", new.ca().as_bytes());
        let Reload::Refused(why) = reloader.check() else {
            panic!("the old root went without a word");
        };
        let why = why.to_string();
        assert!(why.contains("both in it") && !why.contains('\n'), "{why}");
        assert_eq!(roots(), 1, "the old one stays in force");
        file("ca.crt", format!("{}{}", old.ca(), new.ca()).as_bytes());
        assert!(matches!(reloader.check(), Reload::Loaded));
        assert_eq!(roots(), 2);
        let renewed = new.issue_for(HUB);
        file("tls.crt", &renewed.cert);
        file("tls.key", &renewed.key);
        assert!(matches!(reloader.check(), Reload::Loaded));
        file("ca.crt", new.ca().as_bytes());
        assert!(matches!(reloader.check(), Reload::Loaded));
    }
}
