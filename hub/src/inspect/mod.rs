//! Inspection: the gRPC services that people and tools read with.
//!
//! * `access.rs`: who may read, who may decide. `concern.rs`: what of it all concerns a member.
//! * `event_log.rs`, `watch.rs`, `filter.rs`: the history, in pages and as it grows.
//! * `backup.rs`: a copy of the log, row by row.
//! * `state.rs`, `query.rs`: the present, and why an import looks as it does.
//! * `answer.rs`: who answers, and as of when. `seek.rs`: where in the history something is.
//! * `convert.rs`: the one file that knows both our values and the messages.
//!
//! It reads what is durable and asks the writer; it owns no state and never changes any itself.

mod access;
mod answer;
mod backup;
mod concern;
mod convert;
mod event_log;
mod filter;
mod metrics;
mod query;
mod seek;
mod state;
mod watch;

#[cfg(test)]
pub(crate) mod tests;

use std::{future::Future, sync::Arc};

use proto::v1::{self, event_log_server::EventLogServer, state_server::StateServer};
use shared::{
    model::{Clusterset, Epoch, Revision, sync::MESSAGE_BYTES_MAX},
    tls,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    clock::Clock,
    doors::READER_CALLS_MAX,
    fold::AppliedPolicy,
    log::{LogError, LogReader},
    recall::RecallError,
    session::Reports,
    view::SharedView,
    writer::{Gone, WriterHandle},
};

pub(crate) use access::{Caller, Need};
pub use answer::Answerer;
use concern::{Shown, Sight};
pub use metrics::InspectionMetrics;

/// Watches by operators at the same time.
pub const OPERATOR_WATCHES_MAX: usize = 32;
/// Watches with members' certificates at the same time: bounded apart, so that they never keep operators out.
pub const MEMBER_WATCHES_MAX: usize = 32;
/// Watches by readers at the same time: apart from the operators', and more than one of them may have calls.
pub const READER_WATCHES_MAX: usize = 64;
const _: () = assert!(READER_CALLS_MAX < READER_WATCHES_MAX);

/// Requests that may wait at once for a revision that they name.
const AT_LEAST_WAITING_MAX: usize = 64;

/// Copies of the log that are made at the same time.
pub const BACKUPS_MAX: usize = 1;

/// The inspection services over one hub's parts. Clones are the same services.
#[derive(Clone)]
pub struct Inspection {
    clusterset: Clusterset,
    answerer: Answerer,
    writer: WriterHandle,
    view: SharedView,
    reader: LogReader,
    reports: Reports,
    clock: Clock,
    metrics: InspectionMetrics,
    drain: CancellationToken,
    operator_watches: Arc<Semaphore>,
    reader_watches: Arc<Semaphore>,
    member_watches: Arc<Semaphore>,
    at_least_waiting: Arc<Semaphore>,
    backups: Arc<Semaphore>,
}

/// What the inspection services are made of.
pub struct Parts {
    /// The clusterset that is served.
    pub clusterset: Clusterset,
    /// Who answers.
    pub answerer: Answerer,
    /// The way to the writer.
    pub writer: WriterHandle,
    /// What is published.
    pub view: SharedView,
    /// The history.
    pub reader: LogReader,
    /// What members say of themselves.
    pub reports: Reports,
    /// The hub's clock.
    pub clock: Clock,
    /// Counts.
    pub metrics: InspectionMetrics,
    /// Ends watches, and what waits.
    pub drain: CancellationToken,
}

impl Inspection {
    /// Services over these parts; watches end when the drain begins.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            clusterset,
            answerer,
            writer,
            view,
            reader,
            reports,
            clock,
            metrics,
            drain,
        } = parts;
        Self {
            clusterset,
            answerer,
            writer,
            view,
            reader,
            reports,
            clock,
            metrics,
            drain,
            operator_watches: Arc::new(Semaphore::new(OPERATOR_WATCHES_MAX)),
            reader_watches: Arc::new(Semaphore::new(READER_WATCHES_MAX)),
            member_watches: Arc::new(Semaphore::new(MEMBER_WATCHES_MAX)),
            at_least_waiting: Arc::new(Semaphore::new(AT_LEAST_WAITING_MAX)),
            backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
        }
    }

    /// The service `EventLog`.
    pub fn event_log(&self) -> EventLogServer<Self> {
        EventLogServer::new(self.clone()).max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// The service `State`.
    pub fn state(&self) -> StateServer<Self> {
        StateServer::new(self.clone()).max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Who asks, if they may. `named` is the clusterset in the request.
    pub(crate) async fn admit<T>(
        &self,
        request: &Request<T>,
        named: &str,
        need: Need,
    ) -> Result<Caller, Status> {
        let peer = tls::peer(request)?;
        if let Some(end) = peer.lifetime.why() {
            return Err(end.status());
        }
        let caller =
            access::check(&self.clusterset, &peer, named, need).map_err(Status::permission_denied)?;
        self.refuse_ended(caller.cluster().cloned(), peer.key_fingerprint)
            .await?;
        Ok(caller)
    }

    /// Nobody does anything with a revoked key; whose membership ended reads no more with the key it had.
    async fn refuse_ended(
        &self,
        cluster: Option<shared::model::ClusterId>,
        key: shared::model::KeyFingerprint,
    ) -> Result<(), Status> {
        let asked = cluster.clone();
        let ended = self.writer.query(move |core| {
            let member = asked.and_then(|cluster| core.state().member(&cluster));
            let former = member.is_some_and(|member| member.refused_keys().contains(&key));
            (core.state().revoked_keys().contains_key(&key), former)
        });
        match (ended.await.map_err(gone)?, cluster) {
            ((true, _), _) => Err(Status::permission_denied(access::revoked_key(key))),
            ((false, true), Some(cluster)) => {
                Err(Status::permission_denied(access::former_member(&cluster, key)))
            }
            _ => Ok(()),
        }
    }

    /// Every cluster that is or was a member and concerns whom it is for, as of a revision or later.
    pub(crate) async fn list_members(
        &self,
        at_least: u64,
        sight: Sight,
    ) -> Result<v1::ListMembersResponse, Status> {
        self.at_least(at_least).await?;
        let seen = self.writer.query(move |core| {
            let members = query::members(core.state(), &query::Sessions::of(core), None, &sight);
            let mut revoked = core.state().revoked_keys().clone();
            revoked.retain(|_, revoked| sight.shows(Shown::RevokedKey(&revoked.holder)));
            (core.head(), members, revoked)
        });
        let (head, members, revoked) = seen.await.map_err(gone)?;
        Ok(v1::ListMembersResponse {
            epoch: head.epoch.to_string(),
            revision: head.revision.0,
            members: self.shown_members(members),
            answered_by: self.answered_by(head.revision),
            revoked_keys: revoked.into_iter().map(convert::revoked_key).collect(),
        })
    }

    /// The policy in force, as of a revision or later, and the revision that this is of.
    pub(crate) async fn policy(&self, at_least: u64) -> Result<(Revision, Option<AppliedPolicy>), Status> {
        self.at_least(at_least).await?;
        let seen = self
            .writer
            .query(|core| (core.head().revision, core.state().policy().cloned()));
        seen.await.map_err(gone)
    }

    /// Members with what they say of themselves.
    fn shown_members(&self, members: Vec<query::SeenMember>) -> Vec<v1::MemberState> {
        let now = self.reports.now();
        let shown = members.into_iter().map(|seen| {
            let report = self.reports.of(&seen.cluster);
            convert::member(seen, report, now)
        });
        shown.collect()
    }

    /// Runs a request and counts how it ended.
    pub(crate) async fn counted<T>(
        &self,
        method: &'static str,
        request: impl Future<Output = Result<T, Status>>,
    ) -> Result<Response<T>, Status> {
        let outcome = request.await;
        let code = outcome.as_ref().map_or_else(Status::code, |_| tonic::Code::Ok);
        self.metrics.request(method, code);
        outcome.map(Response::new)
    }
}

/// The writer has ended, and the process with it.
pub(crate) fn gone(gone: Gone) -> Status {
    Status::unavailable(format!("{gone}; ask again in a moment"))
}

/// What an event that cannot be read means for whoever asked.
fn recall_status(error: RecallError) -> Status {
    match error {
        RecallError::Log(error) => log_status(error),
        RecallError::Event(error) => Status::data_loss(format!(
            "{error}; this build cannot read it: use the one that wrote it, or a newer one"
        )),
    }
}

/// Revisions mean something within their epoch only.
fn new_epoch(epoch: Epoch) -> Status {
    Status::aborted(format!(
        "epoch {epoch} began, and its revisions count from 1: ask again, from revision 1"
    ))
}

/// What a log that does not answer means for whoever asked.
fn log_status(error: LogError) -> Status {
    match error {
        LogError::Busy => Status::resource_exhausted(format!("{error}")),
        LogError::Closed => Status::unavailable(format!(
            "{error}: the hub is shutting down, ask again in a moment"
        )),
        LogError::Refused(_) => Status::aborted(format!("{error}")),
        LogError::Forgotten { .. } => Status::out_of_range(error.to_string()),
        LogError::Corrupt(_) | LogError::Failed(_) => Status::internal(format!("{error}")),
    }
}
