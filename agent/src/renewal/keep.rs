//! Owns: the life of the agent's own certificate: a new key is stored before the hub learns of it, a new certificate
//! before it is used, and a standby loads what another replica received.
//! Never: decides when (`due.rs`), or speaks with the hub (the link does).

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail};
use kube::Client;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use shared::{
    identity::Role,
    model::{KeyFingerprint, UnixMillis, advice, sync::Renewed},
    process::random,
    tls::{
        Credentials, LiveCredentials, Pem, TlsFiles, Vouched, fingerprint_of, keys_in, new_key, pem_of,
        signing_request,
    },
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{
    due::{Life, Schedule, Verdict},
    trust,
};
use crate::{
    join::{Kept, Store},
    link::CertificateWish,
};

/// Longest pause between two looks at the clock, which may be set meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// Longest wait for the hub's answer; it includes the wait for a session.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

const RENEWED: &str = "renewed";
const TAKEN_UP: &str = "taken_up";
const REFUSED: &str = "refused";
const FAILED: &str = "failed";
const UNTRUSTED: &str = "untrusted";

/// Metrics of renewals.
#[derive(Debug, Clone, Default)]
pub struct RenewalMetrics(Family<Outcome, Counter>);

impl RenewalMetrics {
    /// Makes the metrics and registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        // Every result is there from the start, at zero, so that a first failure shows as an increase.
        for result in [RENEWED, TAKEN_UP, REFUSED, FAILED, UNTRUSTED] {
            drop(metrics.0.get_or_create(&Outcome { result }));
        }
        registry.register(
            "certificate_renewals",
            "Tries to renew the agent's certificate over its session, by result: renewed, taken_up (another replica was \
             given it), refused, failed, untrusted (what the hub gave leads to no authority that was trusted; it failed, too)",
            metrics.0.clone(),
        );
        metrics
    }

    fn count(&self, result: &'static str) {
        self.0.get_or_create(&Outcome { result }).inc();
    }
}

/// The credentials of a joined cluster, and their place.
pub struct Renewing {
    /// The files.
    pub files: TlsFiles,
    /// The Secret, if there is one.
    pub secret: Option<String>,
    /// The credentials in use.
    pub credentials: Arc<LiveCredentials>,
}

/// Why there is no new certificate.
enum Failed {
    /// The hub said no; which key it was asked for.
    Refused(KeyFingerprint, String),
    /// Something else.
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl Renewing {
    /// Renews until `drain`. `wishes`: the way to the link.
    pub async fn run(
        self,
        at: (Client, String),
        wishes: mpsc::Sender<CertificateWish>,
        metrics: RenewalMetrics,
        drain: CancellationToken,
    ) -> anyhow::Result<()> {
        let renewing = self.keep(at, wishes, metrics);
        drain.run_until_cancelled(renewing).await;
        drain.cancelled().await;
        Ok(())
    }

    async fn keep(
        self,
        (client, namespace): (Client, String),
        wishes: mpsc::Sender<CertificateWish>,
        metrics: RenewalMetrics,
    ) {
        if !self.credentials.current().is_signed_for_members() {
            info!("the certificate is of an issuer of your own, which renews it: this agent does not");
            return;
        }
        let secret = self.secret.as_deref();
        let store = Store::new(
            &self.files,
            secret.map(|name| (client.clone(), &*namespace, name)),
        );
        let (mut schedule, mut refused, mut told) = (Schedule::new(random()), None, false);
        loop {
            let life = life(&self.credentials);
            match schedule.judge(life, now()) {
                Verdict::Wait(millis) => {
                    tokio::time::sleep(Duration::from_millis(millis).min(LOOK_INTERVAL)).await;
                }
                Verdict::Ended => {
                    if !std::mem::replace(&mut told, true) {
                        ended(&self.credentials);
                    }
                    // Another replica, or a person, may put another one there.
                    if let Ok(true) = self.take_up(&store).await {
                        (schedule, told) = (Schedule::new(random()), false);
                        metrics.count(TAKEN_UP);
                    }
                    tokio::time::sleep(LOOK_INTERVAL.min(ANSWER_WAIT)).await;
                }
                Verdict::Renew => {
                    let result = match self.renew(&store, &wishes, refused, &metrics).await {
                        Ok(result) => {
                            schedule = Schedule::new(random());
                            result
                        }
                        Err(failed) => {
                            schedule.failed(life, now());
                            match failed {
                                Failed::Refused(key, why) => {
                                    warn!(
                                        why,
                                        "the hub does not renew the certificate; asking again later, with a new key"
                                    );
                                    refused = Some(key);
                                    REFUSED
                                }
                                Failed::Other(error) => {
                                    let reason = format!("{error:#}");
                                    warn!(reason, "the certificate is not renewed yet; trying again");
                                    FAILED
                                }
                            }
                        }
                    };
                    metrics.count(result);
                }
            }
        }
    }

    /// Puts a later certificate in force that is kept already; true: there was one.
    async fn take_up(&self, store: &Store<'_>) -> anyhow::Result<bool> {
        let kept = store.read().await?;
        let Some(credentials) = credentials(&kept) else {
            return Ok(false);
        };
        if credentials.facts().not_after <= self.credentials.facts().not_after {
            return Ok(false);
        }
        store.write_files(&kept)?;
        self.credentials.replace(credentials)?;
        info!("took up the certificate that another replica was given");
        Ok(true)
    }

    async fn renew(
        &self,
        store: &Store<'_>,
        wishes: &mpsc::Sender<CertificateWish>,
        refused: Option<KeyFingerprint>,
        metrics: &RenewalMetrics,
    ) -> Result<&'static str, Failed> {
        if self.take_up(store).await? {
            return Ok(TAKEN_UP);
        }
        let kept = store.read().await?;
        let current = self.credentials.facts().key_fingerprint;
        let next = match next_key(&kept, current, refused) {
            Some(next) => next,
            None => {
                let made = new_key().context("no new key")?;
                store.keep_next_key(&kept, current, made).await?
            }
        };
        // The file has it before the hub learns of it: once the certificate is in place nothing is missing.
        store.write_key_beside(&next)?;
        let request = signing_request(&next).context("no signing request")?;
        let answer = ask(wishes, request).await?;
        let key = fingerprint_of(&next).context("the key that was made")?;
        let renewed = answer.map_err(|why| Failed::Refused(key, why.into()))?;
        let untrusted = |why: trust::Untrusted| {
            metrics.count(UNTRUSTED);
            error!(%why, "took no certificate from the hub");
            anyhow!(why)
        };
        let trusted = trust::authorities(&self.credentials.current(), &renewed, now());
        let trusted = trusted.map_err(untrusted)?;
        if let Some(trusted) = &trusted {
            tell(trusted);
        }
        let kept = given(&renewed, next, trusted, kept.authorities);
        let credentials = credentials(&kept).context("the hub gave a certificate that cannot be used")?;
        trust::certificate(&credentials, &renewed).map_err(untrusted)?;
        if credentials.facts().key_fingerprint != key
            || credentials.facts().identity != self.credentials.identity()
        {
            let error = anyhow!("the hub gave a certificate for {}", credentials.facts().identity);
            return Err(error.into());
        }
        store.switch(&kept, current).await?;
        self.credentials
            .replace(credentials)
            .context("the certificate that the hub gave")?;
        let until = self.credentials.facts().not_after;
        info!(%key, until_unix_millis = until.0, "the hub renewed the certificate");
        Ok(RENEWED)
    }
}

/// A key that is kept and waits for its certificate. One that the hub refused does not count.
fn next_key(kept: &Kept, current: KeyFingerprint, refused: Option<KeyFingerprint>) -> Option<String> {
    let keys = keys_in(kept.key.as_deref()?);
    keys.into_iter().find(|key| {
        let fingerprint = fingerprint_of(key).ok();
        fingerprint.is_some_and(|key| key != current && Some(key) != refused)
    })
}

/// Logs a change of what is trusted.
fn tell(trusted: &Vouched) {
    if trusted.new > 0 {
        warn!(
            new = trusted.new,
            "the hub named new authorities, and one that this agent trusts vouches for each: it trusts them from now on"
        );
    }
    if trusted.kept > 0 {
        info!(
            kept = trusted.kept,
            "this agent goes on trusting authorities that the hub does not name: they did not expire, and vouched for none \
             that it names"
        );
    }
}

/// The credentials to store from now on.
fn given(renewed: &Renewed, key: String, trusted: Option<Vouched>, before: Option<String>) -> Kept {
    let certificates = renewed.certificates.iter();
    let told = trusted.map(|trusted| trusted.authorities.iter().map(pem_of).collect::<String>());
    Kept {
        key: Some(key),
        certificate: Some(certificates.map(|der| pem_of(&der.to_vec().into())).collect()),
        authorities: told.or(before),
    }
}

/// Asks the hub by way of the link.
async fn ask(
    wishes: &mpsc::Sender<CertificateWish>,
    request: Vec<u8>,
) -> anyhow::Result<Result<Box<Renewed>, Box<str>>> {
    let (answer, answered) = oneshot::channel();
    let wish = CertificateWish {
        request: request.into(),
        answer,
    };
    if wishes.try_send(wish).is_err() {
        bail!("there is no session with the hub over which to ask");
    }
    match tokio::time::timeout(ANSWER_WAIT, answered).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => bail!("the hub does not sign certificates, or the session ended before it answered"),
        Err(_) => bail!("the hub did not answer within {} s", ANSWER_WAIT.as_secs()),
    }
}

fn credentials(kept: &Kept) -> Option<Credentials> {
    let bytes = |text: &Option<String>| text.clone().map(String::into_bytes);
    let pem = Pem {
        cert: bytes(&kept.certificate)?,
        key: bytes(&kept.key)?,
        ca: bytes(&kept.authorities)?,
    };
    Credentials::from_pem(&pem).ok()
}

fn ended(credentials: &LiveCredentials) {
    let identity = credentials.identity();
    let Role::Cluster(cluster) = &identity.role else {
        return;
    };
    error!(
        %identity,
        "the certificate has ended, and nothing renews it any more: have a join string made for this id (`{}`), remove the \
         certificate and keep the key (the file of --tls-cert, or tls.crt in the Secret), and start the agent with the new \
         string",
        advice::token_create(cluster.as_str())
    );
}

fn life(credentials: &LiveCredentials) -> Life {
    let facts = credentials.facts();
    Life {
        not_before: facts.not_before,
        not_after: facts.not_after,
    }
}

fn now() -> UnixMillis {
    UnixMillis(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0))
}
