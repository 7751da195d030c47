//! The call that gives a certificate for a token: tried again while nobody answers, given up when the hub refuses.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail, ensure};
use proto::v1::{self, joining_client::JoiningClient};
use shared::{
    identity::Role,
    model::{ClusterId, JoinString},
    tls::{Credentials, HubDial, JoinConnector, Pem, explain, signing_request},
};
use tokio::time::{Instant, sleep};
use tonic::{Code, Request, Status};
use tracing::warn;

use super::addresses;

/// For how long a hub that does not answer is asked again before the agent ends, to be started again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time for one answer: the hub's disk may be slow.
const ANSWER_WAIT: Duration = Duration::from_secs(15);
/// Pause between attempts; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Credentials that a hub gave.
pub(super) struct Given {
    /// PEM, with what it leads over.
    pub certificate: String,
    /// PEM.
    pub authorities: String,
}

/// Why there is no certificate.
enum Failed {
    /// Asking again may help.
    Unanswered(anyhow::Error),
    /// It will not.
    Refused(anyhow::Error),
}

/// A certificate for this key and id.
pub(super) async fn certificate(join: &JoinString, cluster: &ClusterId, key: &str) -> anyhow::Result<Given> {
    let connector = JoinConnector::new(
        addresses(&join.doors)?,
        join.pin,
        Arc::new(HubDial::from_environment()?),
    )?;
    let request = v1::JoinRequest {
        token: join.token.bytes().to_vec(),
        cluster: cluster.to_string(),
        signing_request: signing_request(key)?,
    };
    let end = Instant::now() + PATIENCE;
    let mut pause = PAUSE;
    loop {
        match ask(&connector, request.clone()).await {
            Ok(answer) => return checked(answer, cluster, key),
            Err(Failed::Refused(error)) => return Err(error),
            Err(Failed::Unanswered(error)) if Instant::now() >= end => return Err(error),
            Err(Failed::Unanswered(error)) => {
                warn!(reason = %format!("{error:#}"), "cannot join yet; trying again")
            }
        }
        sleep(pause).await;
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

async fn ask(connector: &JoinConnector, message: v1::JoinRequest) -> Result<v1::JoinResponse, Failed> {
    let channel = connector.connect().await.map_err(|error| {
        let reason = explain(&error).unwrap_or_else(|| error.to_string());
        let error = anyhow!("cannot join: {reason}");
        if connector.met_another() {
            Failed::Refused(error)
        } else {
            Failed::Unanswered(error)
        }
    })?;
    let mut request = Request::new(message);
    request.set_timeout(ANSWER_WAIT);
    let answer = JoiningClient::new(channel).join(request).await;
    answer
        .map(tonic::Response::into_inner)
        .map_err(|status| failed(&status))
}

fn failed(status: &Status) -> Failed {
    let message = status.message();
    match status.code() {
        Code::PermissionDenied | Code::InvalidArgument | Code::FailedPrecondition => {
            Failed::Refused(anyhow!("the hub does not let this cluster join: {message}"))
        }
        Code::Unimplemented => Failed::Refused(anyhow!(
            "what answers lets nobody join: the join string names another port than the hub's --join-listen"
        )),
        _ => Failed::Unanswered(anyhow!("the hub did not let this cluster join yet: {message}")),
    }
}

/// Returns the credentials if they are for this cluster and key.
fn checked(answer: v1::JoinResponse, cluster: &ClusterId, key: &str) -> anyhow::Result<Given> {
    let credentials = Credentials::from_pem(&Pem {
        cert: answer.certificate.clone().into_bytes(),
        key: key.as_bytes().to_vec(),
        ca: answer.authorities.clone().into_bytes(),
    });
    let credentials = credentials.context("the hub gave a certificate that cannot be used")?;
    match &credentials.facts().identity.role {
        Role::Cluster(given) => {
            ensure!(
                given == cluster,
                "the hub gave a certificate for {given} instead of {cluster}"
            );
        }
        _ => bail!("the hub gave a certificate for {}", credentials.facts().identity),
    }
    Ok(Given {
        certificate: answer.certificate,
        authorities: answer.authorities,
    })
}
