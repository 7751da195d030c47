//! Owns: telling the hub that this cluster leaves, with the cluster's own certificate, and hearing what follows there.
//! Never: touches the cluster.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, bail};
use proto::v1::{LeaveRequest, membership_client::MembershipClient};
use shared::{
    model::{ClusterId, advice},
    tls::{self, HubAddress, HubConnector, HubDial, Reloader, TlsFiles, TlsMetrics},
};
use tonic::{Code, Request, transport::Channel};

use super::report::Hub;
use crate::run;

/// Time that one address of the hub may take to answer.
const HUB_WAIT: Duration = Duration::from_secs(15);

/// The way to the hub, and who comes.
pub(super) struct Way {
    connector: HubConnector,
    addresses: usize,
    /// This cluster, as its certificate says.
    pub(super) cluster: ClusterId,
}

impl Way {
    /// With this certificate.
    pub(super) fn new(hubs: &[HubAddress], files: TlsFiles) -> anyhow::Result<Self> {
        let metrics = TlsMetrics::default();
        let (_, credentials) = Reloader::load(files, metrics.clone())?;
        let cluster = run::cluster_of(&credentials.identity(), None)?;
        Ok(Self {
            connector: HubConnector::new(
                hubs.to_vec(),
                credentials,
                Arc::new(HubDial::from_environment()?),
                metrics,
            ),
            addresses: hubs.len(),
            cluster,
        })
    }

    /// Says it, or asks what it would mean. A cluster that is no member any more has nothing to tell.
    pub(super) async fn say(&self, confirm: bool) -> anyhow::Result<Hub> {
        let mut hub = MembershipClient::new(self.connected().await?);
        let mut request = Request::new(LeaveRequest {
            confirm,
            ..LeaveRequest::default()
        });
        request.set_timeout(HUB_WAIT);
        match hub.leave(request).await {
            Ok(answer) => Ok(Hub::Said(answer.into_inner().effects)),
            Err(status) if status.code() == Code::NotFound => {
                Ok(Hub::Said(vec![format!("{} is no member there", self.cluster)]))
            }
            Err(status) if status.code() == Code::Unimplemented => bail!(
                "the hub is older than this agent and cannot be told: have an operator end the membership (`{}`), then run \
                 this again with --without-hub",
                advice::member_evict(&self.cluster)
            ),
            Err(status) => {
                let why = tls::explain(&status).unwrap_or_else(|| status.message().to_owned());
                bail!("the hub does not take it: {why}")
            }
        }
    }

    async fn connected(&self) -> anyhow::Result<Channel> {
        let mut why = "no address is known".to_owned();
        for _ in 0..self.addresses {
            match tokio::time::timeout(HUB_WAIT, self.connector.connect_once()).await {
                Ok(Ok(channel)) => return Ok(channel),
                Ok(Err(error)) => why = tls::explain(&error).unwrap_or_else(|| error.to_string()),
                Err(_) => why = format!("no answer within {} s", HUB_WAIT.as_secs()),
            }
            self.connector.try_next_address();
        }
        Err(anyhow::anyhow!(why)).context(
            "the hub cannot be reached, and this command has removed nothing: try again later, or leave without it \
             (--without-hub) and have an operator end the membership there",
        )
    }
}
