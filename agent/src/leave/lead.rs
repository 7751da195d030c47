//! Owns: the Lease of the agent that leads, while this command has it: no agent makes anything again meanwhile.
//! Never: touches anything else in the cluster.

use std::time::Duration;

use anyhow::{bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use shared::{
    api::{names::AGENT_LEASE, server},
    api_client::api_server,
    process::host_name,
};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::lease::{
    self, AgentLease, Attempt, Election, LeaseMetrics, WritePermit, machine::RETRY_PERIOD, monotonic,
};

/// Proof that nobody else leads here. Dropping it ends its renewal.
pub(super) enum Lead {
    /// The Lease is ours.
    Held(Box<Held>),
    /// The namespace of the agent is not there, and so no agent leads.
    NoNamespace,
}

/// The Lease in our hands.
pub(super) struct Held {
    lease: AgentLease,
    permit: WritePermit,
    /// Ends its renewal.
    stop: CancellationToken,
    /// Until it has ended.
    renewal: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Lead {
    /// Takes it, if nobody else has it for as long as we may wait.
    pub(super) async fn taken(client: &Client, namespace: &str, wait: Duration) -> anyhow::Result<Self> {
        let (permit, until) = (WritePermit::default(), Instant::now() + wait);
        let (holder, clock) = (lease::holder(None, &host_name()), (monotonic(), permit.clone()));
        let mut election = Election::new(
            api_server(client.clone()),
            namespace,
            &holder,
            clock,
            LeaseMetrics::default(),
        );
        let lease = loop {
            match election.attempt().await {
                Ok(Attempt::Taken(lease)) => break *lease,
                Ok(Attempt::Waiting { holder, .. }) if Instant::now() >= until => bail!(
                    "an agent runs here ({holder} holds the Lease {AGENT_LEASE} in {namespace}), and would make everything \
                     again. Nothing has changed. Uninstall it first: `helm uninstall tributary-agent --namespace \
                     {namespace}`"
                ),
                Ok(Attempt::Waiting { longest, .. }) => tokio::time::sleep(longest.min(RETRY_PERIOD)).await,
                Err(error) if is_not_found(&error) => return Ok(Self::NoNamespace),
                Err(error) => return Err(error),
            }
        };
        let stop = CancellationToken::new();
        // It ends when told to, or when another one has the Lease, which the permit shows.
        let renewal = tokio::spawn(lease.clone().keep(stop.clone()));
        Ok(Self::Held(Box::new(Held {
            lease,
            permit,
            stop,
            renewal: Some(renewal),
        })))
    }

    /// Before each write: an agent that somebody started may lead by now.
    pub(super) fn still_held(&self) -> anyhow::Result<()> {
        let is_held = match self {
            Self::Held(held) => held.permit.holds(),
            Self::NoNamespace => true,
        };
        ensure!(
            is_held,
            "the Lease {AGENT_LEASE} is not ours any more, or could not be renewed: see that no agent runs here, and run \
             the command again; what is gone stays gone"
        );
        Ok(())
    }

    /// No renewal is on its way any more, which would make the Lease again.
    pub(super) async fn renewed_no_more(&mut self) {
        let Self::Held(held) = self else { return };
        held.stop.cancel();
        if let Some(renewal) = held.renewal.take() {
            // The reason of its end does not matter: the next look finds another holder of the Lease.
            let _ = renewal.await;
        }
    }

    /// Releases it as it is, for the next holder.
    pub(super) async fn released(mut self) {
        self.renewed_no_more().await;
        if let Self::Held(held) = &self {
            held.lease.clone().release().await;
        }
    }
}

/// Returns the current leader.
pub(super) async fn leader(client: &Client, namespace: &str) -> anyhow::Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let found = leases.get_opt(AGENT_LEASE).await?;
    let holder = found.and_then(|lease| lease.spec?.holder_identity);
    Ok(holder.filter(|holder| !holder.is_empty()))
}

fn is_not_found(error: &anyhow::Error) -> bool {
    let answer = error.downcast_ref::<server::Error>();
    matches!(answer, Some(server::Error::Api(status)) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_namespace_that_is_not_there_is_told_from_other_refusals() {
        let answered = |code: u16| {
            let status = Status {
                code,
                ..Status::default()
            };
            let answer = Err::<(), _>(server::Error::Api(Box::new(status)));
            answer.context("cannot take the Lease").unwrap_err()
        };
        assert!(is_not_found(&answered(404)));
        assert!(!is_not_found(&answered(403)));
        assert!(!is_not_found(&anyhow::anyhow!("no answer")));
    }
}
