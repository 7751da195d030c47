//! Owns: the authority that signs for members, and the port at which clusters join, as the flags name them.
//! Never: signs, or serves.

use std::{fmt, net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Registry,
};
use shared::{
    model::UnixMillis,
    process::{FileError, reason},
    tls::{LiveCredentials, RELOAD_CHECK_INTERVAL, listen, pem_of},
};
use tokio::{net::TcpListener, time::sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use crate::{
    args::JoinArgs,
    certs::{MemberIssuer, RenewalIssuer},
    clock::Clock,
    membership::Joinable,
};

/// The join port and its authority.
pub(super) struct JoiningDoor {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) issuer: Arc<MemberIssuer>,
    pub(super) authorities: Arc<str>,
    pub(super) joinable: Joinable,
}

/// The authority that signs for members, if the flags name one; `tributary_hub_join_certificate_expires_in_seconds` says how
/// long it does.
pub(super) fn member_issuer(
    args: &JoinArgs,
    credentials: &LiveCredentials,
    registry: &mut Registry,
) -> anyhow::Result<Option<Arc<MemberIssuer>>> {
    let Some((cert, key)) = pair(args) else {
        return Ok(None);
    };
    let (cert, key) = read(cert, key)?;
    let issuer = MemberIssuer::from_pem(&cert, &key, &credentials.identity().clusterset)?;
    info!(
        until = issuer.validity().last_day(),
        "certificates of members end with --join-cert at the latest"
    );
    let issuer = Arc::new(issuer.lasting(args.member_cert_lifetime));
    registry.register_collector(Box::new(Expiry(issuer.clone())));
    Ok(Some(issuer))
}

/// The two files, if the flags name both.
fn pair(args: &JoinArgs) -> Option<(&Path, &Path)> {
    Some((args.join_cert.as_deref()?, args.join_key.as_deref()?))
}

fn read(cert: &Path, key: &Path) -> Result<(String, String), FileError> {
    let read = |flag: &str, path: &Path| {
        std::fs::read_to_string(path).map_err(|error| FileError::new(flag, path, &error))
    };
    Ok((read("--join-cert", cert)?, read("--join-key", key)?))
}

/// Checks the files every [`RELOAD_CHECK_INTERVAL`] until the token is cancelled: a successor signs from then on, an
/// unusable one is reported once.
pub(super) async fn follow(
    args: JoinArgs,
    issuer: Arc<MemberIssuer>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut told = None;
    let Some((cert, key)) = pair(&args) else {
        shutdown.cancelled().await;
        return Ok(());
    };
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = sleep(RELOAD_CHECK_INTERVAL) => {}
        }
        // Reading may block for long when the files lie on a network volume.
        let (issuer, cert, key) = (issuer.clone(), cert.to_owned(), key.to_owned());
        let looked = tokio::task::spawn_blocking(move || {
            let (cert, key) = read(&cert, &key)?;
            let replaced = issuer.replace(&cert, &key)?;
            anyhow::Ok(replaced.then(|| issuer.validity().last_day()))
        });
        match looked.await? {
            Ok(None) => told = None,
            Ok(Some(until)) => {
                told = None;
                info!(
                    until,
                    "a new --join-cert is in force: certificates of members end with it at the latest"
                );
            }
            Err(error) => {
                let problem = reason(&error);
                // Once for each problem, not once for each look.
                if told.as_ref() != Some(&problem) {
                    error!(
                        problem,
                        "the new --join-cert cannot be used, the old one stays in force: replace the files"
                    );
                    told = Some(problem);
                }
            }
        }
    }
}

/// Computed at each scrape; below zero once it has ended.
struct Expiry(Arc<MemberIssuer>);

impl fmt::Debug for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expiry")
    }
}

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let seconds = |millis: UnixMillis| i64::try_from(millis.0 / 1_000).unwrap_or(i64::MAX);
        let now = Clock::start().wall();
        let left = seconds(self.0.validity().not_after).saturating_sub(seconds(now));
        let gauge = ConstGauge::new(left);
        let help = "Seconds until the authority in --join-cert expires, and with it every certificate that it signed";
        let name = "join_certificate_expires_in_seconds";
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }
}

/// Opens the port at which clusters join, if the flags name one.
pub(super) fn joining_door(
    at: Option<SocketAddr>,
    issuer: Option<Arc<MemberIssuer>>,
    credentials: &LiveCredentials,
) -> anyhow::Result<Option<JoiningDoor>> {
    let (Some(at), Some(issuer)) = (at, issuer) else {
        return Ok(None);
    };
    let current = credentials.current();
    let pin = current.pin().context(
        "the certificate in --tls-cert leads to no authority in --tls-ca: clusters could not know this hub",
    )?;
    let listener = listen(at).with_context(|| format!("cannot listen on --join-listen {at}"))?;
    let address = listener.local_addr()?;
    let authorities = current
        .authorities()
        .iter()
        .map(|der| pem_of(der))
        .collect::<String>();
    Ok(Some(JoiningDoor {
        listener,
        address,
        issuer,
        authorities: authorities.into(),
        joinable: Joinable {
            pin,
            port: address.port(),
        },
    }))
}

/// Signs for members that renew.
pub(super) fn renewals(
    issuer: Arc<MemberIssuer>,
    credentials: Arc<LiveCredentials>,
    now: UnixMillis,
) -> anyhow::Result<RenewalIssuer> {
    let ends = issuer.validity().not_after;
    let renewals = RenewalIssuer::new(issuer, credentials);
    // One that has ended is no reason to serve nobody: it signs nothing, and says so to who asks.
    if ends > now {
        renewals.check(now).map_err(anyhow::Error::msg)?;
    }
    Ok(renewals)
}
