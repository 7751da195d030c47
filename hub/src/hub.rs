//! One running hub, as a library: the log, the writer's thread, the gRPC services. The program puts sockets
//! and supervision around it; tests put memory and simulated networks around it.

use shared::process::random;
use std::sync::Arc;

use anyhow::Context;
use proto::v1::sync_server::SyncServer;
use shared::{
    model::{Clusterset, sync::MESSAGE_BYTES_MAX},
    process::Shutdown,
};
use tokio::sync::{mpsc::UnboundedReceiver, oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::service::{Routes, RoutesBuilder};

use crate::{
    bounds::Bounds,
    certs::{MemberIssuer, RenewalIssuer},
    clock::Clock,
    doors::DoorMetrics,
    fold::FOLD_VERSION,
    inspect::{Answerer, Beside, ExplainsTopologies, Inspection, InspectionMetrics, Parts, Pinned},
    log::{Log, LogReader},
    membership::{Joinable, JoiningService, MembershipService, PolicyService, TokenService},
    metrics::WriterMetrics,
    replay,
    session::{Reports, SyncMetrics, SyncService},
    view::SharedView,
    writer::{Completed, Options, Present, Writer, WriterError, WriterHandle},
};

/// A hub's metrics.
pub struct HubMetrics {
    /// The writer's.
    pub writer: WriterMetrics,
    /// The sync service's.
    pub sync: SyncMetrics,
    /// The inspection services'.
    pub inspection: InspectionMetrics,
    /// The doors'.
    pub doors: DoorMetrics,
}

impl HubMetrics {
    /// Makes all metrics and registers them.
    pub fn register(registry: &mut prometheus_client::registry::Registry) -> Self {
        Self {
            writer: WriterMetrics::register(registry),
            sync: SyncMetrics::register(registry),
            inspection: InspectionMetrics::register(registry),
            doors: DoorMetrics::register(registry),
        }
    }
}

/// The way to a writer that runs, and how it ended.
type SpawnedWriter = (WriterHandle, oneshot::Receiver<Result<(), WriterError>>);

/// A hub whose writer runs.
pub struct Hub {
    /// The clusterset that it serves.
    pub clusterset: Clusterset,
    /// The way to the writer.
    pub writer: WriterHandle,
    /// The objects to send to members.
    pub view: SharedView,
    /// The state that queries read.
    pub present: Present,
    /// Revisions of it that are still asked for.
    pub pinned: Pinned,
    /// The log's history.
    pub reader: LogReader,
    /// The same for the positions of members that connect again, beside readers of history.
    pub cursors: LogReader,
    /// Its clock.
    pub clock: Clock,
    /// The sessions that run.
    pub sessions: TaskTracker,
    /// Reports of members about themselves.
    pub reports: Reports,
    /// Refusals before any service.
    pub doors: DoorMetrics,
    /// The way for clusters to join, if the hub lets them.
    pub joinable: Option<Joinable>,
    /// Signs for members that renew, if it does.
    pub renewals: Option<RenewalIssuer>,
    /// Explains topologies, if it reads them.
    pub topologies: Option<Arc<dyn ExplainsTopologies>>,
    /// Says whether the clusterset is served, or members know a later epoch.
    pub service: watch::Receiver<bool>,
    answerer: Answerer,
    beside: Beside,
    bounds: Bounds,
    sync_metrics: SyncMetrics,
    inspection_metrics: InspectionMetrics,
    writer_ended: oneshot::Receiver<Result<(), WriterError>>,
}

impl Hub {
    /// Replays the log and starts the writer on its thread. It blocks while it replays.
    pub fn start(
        log: Box<dyn Log>,
        options: Options,
        clock: Clock,
        metrics: HubMetrics,
    ) -> anyhow::Result<Self> {
        let on_thread = |writer: Writer, completed| {
            let spawned = writer.spawn(completed, clock, random);
            spawned.context("cannot start the writer's thread")
        };
        let beside = Beside::begin().context("cannot start the thread that puts answers together")?;
        Self::start_writer(log, options, clock, metrics, (on_thread, beside))
    }

    /// [`Hub::start`] with the writer as a task, for simulations over a log in memory. Needs a runtime.
    #[cfg(any(test, feature = "simulated"))]
    pub fn start_task(
        log: Box<dyn Log>,
        options: Options,
        clock: Clock,
        metrics: HubMetrics,
    ) -> anyhow::Result<Self> {
        let as_task = |writer: Writer, completed| Ok(writer.spawn_task(completed, clock, random));
        Self::start_writer(log, options, clock, metrics, (as_task, Beside::default()))
    }

    fn start_writer(
        log: Box<dyn Log>,
        options: Options,
        clock: Clock,
        metrics: HubMetrics,
        (spawn, beside): (
            impl FnOnce(Writer, UnboundedReceiver<Completed>) -> anyhow::Result<SpawnedWriter>,
            Beside,
        ),
    ) -> anyhow::Result<Self> {
        let (reader, cursors) = (log.reader(), log.cursors());
        let (state, head) = replay::replay(&reader).context("the event log cannot be replayed")?;
        tracing::info!(
            epoch = %head.epoch,
            revision = head.revision.0,
            members = state.members().len(),
            fold_version = FOLD_VERSION,
            millis = clock.now(),
            "replayed the event log"
        );
        let clusterset = log.clusterset().clone();
        let bounds = options.bounds;
        let answerer = Answerer {
            hub: options.hub.clone(),
            hub_version: options.hub_version.clone(),
        };
        let (writer, view, completed) = Writer::new(state, log, options, metrics.writer, clock.moment());
        let (present, service) = (writer.present(), writer.service());
        let (writer, writer_ended) = spawn(writer, completed)?;
        let sessions = TaskTracker::new();
        Ok(Self {
            clusterset,
            writer,
            view,
            present,
            pinned: Pinned::default(),
            beside,
            reader,
            cursors,
            clock,
            sessions,
            reports: Reports::new(clock),
            doors: metrics.doors,
            joinable: None,
            renewals: None,
            topologies: None,
            service,
            answerer,
            bounds,
            sync_metrics: metrics.sync,
            inspection_metrics: metrics.inspection,
            writer_ended,
        })
    }

    /// The gRPC services that members and people use, until `drain`.
    pub fn routes(&self, drain: &CancellationToken) -> Routes {
        let sync = SyncService {
            clusterset: self.clusterset.clone(),
            writer: self.writer.clone(),
            view: self.view.clone(),
            cursors: self.cursors.clone(),
            clock: self.clock,
            bounds: self.bounds,
            renewals: self.renewals.clone(),
            metrics: self.sync_metrics.clone(),
            reports: self.reports.clone(),
            comings: Default::default(),
            drain: drain.clone(),
            tasks: self.sessions.clone(),
        };
        let mut routes = RoutesBuilder::default();
        routes.add_service(
            SyncServer::new(sync)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
        );
        let inspection = self.inspection(drain.clone());
        routes.add_service(inspection.event_log());
        routes.add_service(inspection.state());
        let membership = MembershipService::new(inspection, self.writer.clone());
        routes.add_service(PolicyService::new(membership.clone()).server());
        routes.add_service(TokenService::new(membership.clone(), self.clock, self.joinable).server());
        routes.add_service(membership.server());
        routes.routes()
    }

    /// The service with which clusters join, for a port of its own.
    pub fn joining(&self, issuer: Arc<MemberIssuer>, authorities: Arc<str>) -> JoiningService {
        JoiningService {
            present: self.present.clone(),
            writer: self.writer.clone(),
            clock: self.clock,
            issuer,
            authorities,
        }
    }

    /// The services that people and tools read with; watches end when `drain` begins.
    pub fn inspection(&self, drain: CancellationToken) -> Inspection {
        Inspection::new(Parts {
            clusterset: self.clusterset.clone(),
            answerer: self.answerer.clone(),
            present: self.present.clone(),
            pinned: self.pinned.clone(),
            beside: self.beside.clone(),
            view: self.view.clone(),
            reader: self.reader.clone(),
            reports: self.reports.clone(),
            clock: self.clock,
            metrics: self.inspection_metrics.clone(),
            drain,
        })
        .explaining(self.topologies.clone())
    }

    /// Runs the writer until the drain is over: sessions end first, then what they handed over is made durable.
    /// An error is the writer's own end: nothing more can be acknowledged.
    pub async fn run(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let Self {
            writer,
            sessions,
            writer_ended,
            pinned,
            clock,
            ..
        } = self;
        let ticking = writer.clone();
        let mut ended = writer_ended;
        tokio::select! {
            biased;
            ended = &mut ended => return ended.context("the writer's thread panicked")?.map_err(Into::into),
            _gone = ticking.tick() => {}
            () = pinned.let_go(clock) => {}
            () = shutdown.drain().cancelled() => {
                sessions.close();
                sessions.wait().await;
                writer.stop().await;
            }
        }
        ended
            .await
            .context("the writer's thread panicked")?
            .map_err(Into::into)
    }
}
