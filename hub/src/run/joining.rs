//! Owns: the authority that signs for members, and the port at which clusters join, as the flags name them.
//! Never: signs, or serves.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::Context;
use shared::{
    model::UnixMillis,
    tls::{LiveCredentials, listen, pem_of},
};
use tokio::net::TcpListener;
use tracing::info;

use crate::{
    args::JoinArgs,
    certs::{MemberIssuer, RenewalIssuer},
    membership::Joinable,
};

/// Where clusters join, and what signs for them.
pub(super) struct JoiningDoor {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) issuer: Arc<MemberIssuer>,
    pub(super) authorities: Arc<str>,
    pub(super) joinable: Joinable,
}

/// The authority that signs for members, if the flags name one.
pub(super) fn member_issuer(
    args: &JoinArgs,
    credentials: &LiveCredentials,
) -> anyhow::Result<Option<Arc<MemberIssuer>>> {
    let (Some(cert), Some(key)) = (&args.join_cert, &args.join_key) else {
        return Ok(None);
    };
    let read = |flag: &str, path: &Path| {
        let text = std::fs::read_to_string(path);
        text.with_context(|| format!("cannot read {flag} {}", path.display()))
    };
    let (cert, key) = (read("--join-cert", cert)?, read("--join-key", key)?);
    let issuer = MemberIssuer::from_pem(&cert, &key, &credentials.identity().clusterset)?;
    info!(
        until = issuer.validity().last_day(),
        "certificates of members end with --join-cert at the latest"
    );
    Ok(Some(Arc::new(issuer.lasting(args.member_cert_lifetime))))
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
