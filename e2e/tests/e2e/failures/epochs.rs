//! Epochs (docs/design.md, sections 5 and 6): a history that is older than what a cluster has seen is not followed.

use std::{
    fs,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::ensure;
use cluster::clusterset::{Backend, LocalClusterset, admin, eventually::eventually};
use proto::v1::{
    self,
    hub_message::Message,
    sync_server::{Sync, SyncServer},
};
use shared::{
    model::{Epoch, sync::PROTOCOL_VERSION},
    tls::{Credentials, LiveCredentials, TlsFiles, TlsMetrics, accept, tcp_connections},
};
use tokio::net::TcpListener;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming, transport::Server};

use super::{
    guard::Guard,
    hub::{copy_directory, listed, said, state},
    shop::Shop,
};

const CLUSTERS: [&str; 2] = ["east", "west"];

/// A log that holds facts and is of an older epoch than members know: it is not served, and says so, until an
/// operator says that it is the one to go on with.
pub(super) async fn an_older_log_stops_serving_until_it_is_adopted() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let first: Epoch = state(&clusterset).await?.epoch.parse()?;
    clusterset.stop_hub().await?;
    let copy = dir.path().join("copy");
    copy_directory(&clusterset.data(), &copy)?;
    fs::remove_dir_all(clusterset.data())?;
    clusterset.start_hub().await?;
    listed(&clusterset, &CLUSTERS).await?;
    let second: Epoch = state(&clusterset).await?.epoch.parse()?;
    ensure!(second > first, "a fresh log has a later epoch: {first}, {second}");
    shop.export(&clusterset, "west", "lamp", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;

    clusterset.stop_hub().await?;
    fs::remove_dir_all(clusterset.data())?;
    fs::rename(&copy, clusterset.data())?;
    clusterset.start_hub().await?;
    for cluster in CLUSTERS {
        let line = said(&clusterset.log(cluster), "--adopt-epoch").await?;
        ensure!(
            line.contains(&first.to_string()) && line.contains(&second.to_string()),
            "{line}"
        );
    }
    said(&clusterset.log("hub"), "--adopt-epoch").await?;
    let refused = admin::metric(
        clusterset.hub()?,
        "tributary_hub_sessions_rejected_total",
        "not_serving",
    )
    .await?;
    ensure!(refused >= 2.0, "it is counted: {refused}");
    let (ready, why) = readiness(&mut clusterset).await?;
    ensure!(
        ready == 503 && why.contains("members know a later epoch"),
        "{ready}: {why}"
    );
    ensure!(
        state(&clusterset)
            .await?
            .members
            .iter()
            .all(|member| !member.connected),
        "nobody is served"
    );
    guard.nothing_lost_of(&["cart", "lamp"])?;

    clusterset.stop_hub().await?;
    clusterset.start_hub_with(&["--adopt-epoch"]).await?;
    listed(&clusterset, &CLUSTERS).await?;
    shop.arrived(&clusterset).await?;
    let (ready, why) = readiness(&mut clusterset).await?;
    ensure!(ready == 200, "{ready}: {why}");
    guard.nothing_lost_of(&["cart", "lamp"])?;
    let third: Epoch = state(&clusterset).await?.epoch.parse()?;
    ensure!(
        third > second,
        "members follow a later epoch only: {second}, {third}"
    );
    clusterset.end().await
}

/// What Kubernetes asks of the hub.
async fn readiness(clusterset: &mut LocalClusterset) -> anyhow::Result<(u16, String)> {
    admin::get(clusterset.hub()?.admin().await?, "/readyz").await
}

/// A hub that does not see that it is old: it welcomes everybody and says that nothing is exported.
#[derive(Clone)]
struct OldHub {
    epoch: v1::Epoch,
    /// The clusters that came, by what they hold.
    welcomed: Arc<Mutex<usize>>,
}

#[tonic::async_trait]
impl Sync for OldHub {
    type StreamStream = Pin<Box<dyn Stream<Item = Result<v1::HubMessage, Status>> + Send>>;

    async fn stream(
        &self,
        request: Request<Streaming<v1::AgentMessage>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        *self.welcomed.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let cursor = v1::Cursor {
            epoch: Some(self.epoch),
            revision: 9,
            hash: vec![7; 16],
        };
        let sources = CLUSTERS.map(|cluster| v1::Source {
            cluster: cluster.into(),
            state: v1::SourceState::SourceLive.into(),
            listed: true,
            ended: false,
            on_loss: 0,
        });
        let said = vec![
            Message::Welcome(v1::Welcome {
                protocol_version: PROTOCOL_VERSION,
                hub: "old".into(),
                epoch: Some(self.epoch),
                session: 1,
                incarnation: 1,
                heartbeat_interval_millis: 1_000,
                silence_max_millis: 10_000,
                unacknowledged_max: 100,
                message_bytes_max: 1_000_000,
                ..Default::default()
            }),
            Message::SnapshotBegin(v1::SnapshotBegin {
                epoch: Some(self.epoch),
                interest_generation: 1,
            }),
            Message::SnapshotComplete(v1::SnapshotComplete {
                interest_generation: 1,
                cursor: Some(cursor),
            }),
            Message::SourcesChanged(v1::SourcesChanged {
                sources: sources.into(),
            }),
        ];
        let said = said.into_iter().map(|message| {
            Ok(v1::HubMessage {
                message: Some(message),
            })
        });
        // It goes on listening, as a hub would, until the agent has heard enough.
        let rest = request.into_inner().filter_map(|_| None);
        Ok(Response::new(Box::pin(tokio_stream::iter(said).chain(rest))))
    }
}

/// A hub that serves an older epoch than the cluster has known: its agents refuse it and touch nothing.
pub(super) async fn a_hub_of_an_older_epoch_is_refused() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &CLUSTERS).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&clusterset, "west", "lamp", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let known: Epoch = state(&clusterset).await?.epoch.parse()?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;
    clusterset.stop_hub().await?;

    let old = OldHub {
        epoch: v1::Epoch {
            created_at_unix_millis: known.created_at.0 - 1,
            random: u64::MAX,
        },
        welcomed: Arc::default(),
    };
    let files = TlsFiles {
        cert: clusterset.certificate("hub.crt"),
        key: clusterset.certificate("hub.key"),
        ca: clusterset.certificate("ca.crt"),
    };
    let credentials = LiveCredentials::new(Credentials::from_pem(&files.read()?)?);
    let listener = TcpListener::bind(clusterset.hub_address).await?;
    let incoming = accept(tcp_connections(listener), credentials, TlsMetrics::default());
    let server = Server::builder().add_service(SyncServer::new(old.clone()));
    let serving = tokio::spawn(server.serve_with_incoming(incoming));
    for cluster in CLUSTERS {
        let line = said(&clusterset.log(cluster), "this cluster has known the later epoch").await?;
        ensure!(line.contains(&known.to_string()), "{line}");
    }
    // A restarted agent has nothing but its Lease to know it by.
    clusterset.kill_agent("west").await?;
    clusterset.start_agent("west").await?;
    let before = *old.welcomed.lock().unwrap_or_else(PoisonError::into_inner);
    eventually("agents came again, and were not won", async || {
        let now = *old.welcomed.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((now >= before + 4).then_some(()))
    })
    .await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["cart", "lamp"])?;
    serving.abort();
    // It is gone when its port is free again.
    let _ = serving.await;

    clusterset.start_hub().await?;
    listed(&clusterset, &CLUSTERS).await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["cart", "lamp"])?;
    clusterset.end().await
}
