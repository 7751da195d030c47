//! The hub's inspection services, called with a certificate of the clusterset.
//! It asks and returns what was answered.

use std::sync::Arc;

use proto::v1::{
    event_log_client::EventLogClient, membership_client::MembershipClient, state_client::StateClient,
};
use shared::tls::{Credentials, HubConnector, LiveCredentials, TcpDial, TlsFiles, TlsMetrics};
use tonic::transport::Channel;

use super::LocalClusterset;

/// The services.
pub struct Inspection {
    /// The history.
    pub log: EventLogClient<Channel>,
    /// The present.
    pub state: StateClient<Channel>,
    /// Operators' decisions.
    pub membership: MembershipClient<Channel>,
}

impl Inspection {
    /// Connects with the certificate `NAME.crt`.
    pub async fn connect(clusterset: &LocalClusterset, name: &str) -> anyhow::Result<Self> {
        let files = TlsFiles {
            cert: clusterset.certificate(&format!("{name}.crt")),
            key: clusterset.certificate(&format!("{name}.key")),
            ca: clusterset.certificate("ca.crt"),
        };
        Self::at(&clusterset.hub_address.to_string(), &files).await
    }

    /// Connects to `HOST:PORT` with the certificate in these files.
    pub async fn at(address: &str, files: &TlsFiles) -> anyhow::Result<Self> {
        let credentials = LiveCredentials::new(Credentials::from_pem(&files.read()?)?);
        let address = format!("https://{address}").parse()?;
        let connector = HubConnector::new(
            vec![address],
            credentials,
            Arc::new(TcpDial),
            TlsMetrics::default(),
        );
        let channel = connector.connect().await?;
        Ok(Self {
            log: EventLogClient::new(channel.clone()),
            state: StateClient::new(channel.clone()),
            membership: MembershipClient::new(channel),
        })
    }
}
