//! Owns: who attacks, with which certificate, with how much and until when.
//! Never: knows an attack.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use shared::{
    model::ClusterId,
    tls::{Dial, HubAddress, HubConnector, HubStream, LiveCredentials, TcpDial, TlsMetrics},
};
use tokio::time::Instant;
use tower::Service;

use super::{answers::Answers, raw::Raw, size::Size};
use crate::hub::{HubProcess, Setup};

/// Longest time for one connection of an attacker.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Time for the hub's first or last byte on a connection.
pub(super) const ANSWER_WAIT: Duration = Duration::from_secs(1);
/// The member that attacks.
const HOSTILE: &str = "hostile";

/// The attacker and its target.
#[derive(Clone)]
pub(super) struct Attacker {
    /// The hub's socket.
    pub(super) listen: SocketAddr,
    hub: HubAddress,
    credentials: Arc<LiveCredentials>,
    /// Of the members that attack beside the first.
    crowd: Arc<[Arc<LiveCredentials>]>,
    /// The amounts.
    pub(super) size: Size,
    /// The hub's answers to all of it.
    pub(super) answers: Arc<Answers>,
    /// Time at which it must be over.
    pub(super) until: Instant,
}

impl Attacker {
    /// From now on, for so long; so many members beside the first.
    pub(super) fn begin(
        setup: &Setup,
        hub: &HubProcess,
        size: Size,
        (crowd, lasting): (usize, Duration),
    ) -> anyhow::Result<Self> {
        let member = |index: usize| setup.member(&ClusterId::new(&format!("{HOSTILE}-{index}"))?);
        let crowd = (0..crowd).map(member).collect::<anyhow::Result<Arc<[_]>>>()?;
        Ok(Self {
            crowd,
            listen: hub.listen,
            hub: hub.address.clone(),
            credentials: setup.member(&ClusterId::new(HOSTILE)?)?,
            size,
            answers: Arc::default(),
            until: Instant::now() + lasting,
        })
    }

    /// The same as each of the crowd.
    pub(super) fn of_crowd(&self) -> impl Iterator<Item = Self> {
        self.crowd.iter().map(|credentials| Self {
            credentials: credentials.clone(),
            ..self.clone()
        })
    }

    /// A connection of the hostile member, after its handshake.
    pub(super) async fn connect(&self) -> anyhow::Result<HubStream> {
        self.connect_by(Arc::new(TcpDial)).await
    }

    /// The same over a way of its own.
    pub(super) async fn connect_by(&self, dial: Arc<dyn Dial>) -> anyhow::Result<HubStream> {
        let addresses = vec![self.hub.clone()];
        let mut connector =
            HubConnector::new(addresses, self.credentials.clone(), dial, TlsMetrics::default());
        let connecting = connector.call(http::Uri::from_static("http://hub"));
        let connected = tokio::time::timeout(CONNECT_WAIT, connecting).await;
        Ok(connected.context("the hub takes no connection")??)
    }

    /// The same, with HTTP/2 by hand.
    pub(super) async fn raw(&self) -> anyhow::Result<Raw> {
        Raw::begin(self.connect().await?, self.answers.clone()).await
    }

    /// True once it must be over.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}
