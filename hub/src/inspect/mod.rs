//! Inspection: the gRPC services that people and tools read with.
//!
//! * `audit.rs`: the log lines that say who asked. `turns.rs`: how many requests of each caller are answered at once.
//! * `access.rs`: who may read, who may decide. `concern.rs`: what of it all concerns a member.
//! * `event_log.rs`, `watch.rs`, `filter.rs`: the history, in pages and as it grows.
//! * `backup.rs`: a copy of the log, row by row.
//! * `state.rs`, `query.rs`: the present, and why an import looks as it does. `page.rs`: the continuation of an answer,
//!   pure. `pins.rs`: the revisions whose pages are still asked for, pure. `paging.rs`: pages of one revision.
//! * `answer.rs`: who answers, and as of when. `seek.rs`: where in the history something is.
//! * `convert.rs`: the one file that knows both our values and the messages.
//!
//! It reads what is durable, as the writer published it, and never asks the writer; it changes nothing.

mod access;
mod answer;
mod audit;
mod backup;
mod beside;
mod concern;
mod convert;
mod event_log;
mod filter;
mod metrics;
mod named;
mod page;
mod paging;
mod pins;
mod query;
mod seek;
mod state;
mod topologies;
mod turns;
mod watch;

#[cfg(test)]
pub(crate) mod tests;

use std::{future::Future, sync::Arc};

use proto::v1::{self, event_log_server::EventLogServer, state_server::StateServer};
use shared::{
    model::{ClusterId, Clusterset, Epoch, KeyFingerprint, Revision, UnixMillis, sync::MESSAGE_BYTES_MAX},
    tls::{self, PeerIdentity},
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
    writer::{Gone, Present, Published},
};

use audit::Audit;
use paging::Asked;
use query::Selection;
use turns::{OfOne, Turns};

pub(crate) use access::{Caller, Need};
pub use answer::Answerer;
pub use beside::Beside;
use concern::{Shown, Sight};
pub use metrics::InspectionMetrics;
pub(crate) use named::NamedMembers;
pub use page::{PAGE_BYTES_MAX, PAGE_OBJECTS_DEFAULT, PAGE_OBJECTS_MAX, PAGE_TOKEN_BYTES_MAX};
pub use paging::Pinned;
pub use pins::{PINNED_FOR_MEMBERS_MAX, PINNED_FOR_PEOPLE_MAX, PINNED_MILLIS};
pub use topologies::TOPOLOGIES_EXPLAINED_MAX;
pub use topology_controller::{ExplainsTopologies, NotExplained, ObjectExplained, TopologyExplained};
pub use turns::{ANSWERED_OF_MEMBERS_MAX, ANSWERED_OF_ONE_MAX, ANSWERED_OF_READERS_MAX, WATCHES_OF_ONE_MAX};

/// Watches by operators at the same time.
pub const OPERATOR_WATCHES_MAX: usize = 32;
/// Watches with members' certificates at the same time: bounded apart, so that they never keep operators out.
pub const MEMBER_WATCHES_MAX: usize = 32;
/// Watches by readers at the same time: apart from the operators', and more than one of them may have calls.
pub const READER_WATCHES_MAX: usize = 64;
const _: () = assert!(READER_CALLS_MAX < READER_WATCHES_MAX);
const _: () =
    assert!(2 * WATCHES_OF_ONE_MAX <= MEMBER_WATCHES_MAX && 2 * WATCHES_OF_ONE_MAX <= READER_WATCHES_MAX);

/// Requests that may wait at once for a revision that they name.
const AT_LEAST_WAITING_MAX: usize = 64;

/// Copies of the log that are made at the same time.
pub const BACKUPS_MAX: usize = 1;

/// The inspection services over one hub's parts. Clones are the same services.
#[derive(Clone)]
pub struct Inspection {
    clusterset: Clusterset,
    answerer: Answerer,
    present: Present,
    pinned: Pinned,
    beside: Beside,
    view: SharedView,
    reader: LogReader,
    reports: Reports,
    clock: Clock,
    metrics: InspectionMetrics,
    audit: Audit,
    turns: Turns,
    watches_of_one: OfOne,
    drain: CancellationToken,
    operator_watches: Arc<Semaphore>,
    reader_watches: Arc<Semaphore>,
    member_watches: Arc<Semaphore>,
    at_least_waiting: Arc<Semaphore>,
    backups: Arc<Semaphore>,
    topologies: Option<Arc<dyn ExplainsTopologies>>,
    explaining: Arc<Semaphore>,
}

/// The parts of the inspection services.
pub struct Parts {
    /// The clusterset that is served.
    pub clusterset: Clusterset,
    /// The answering hub.
    pub answerer: Answerer,
    /// The durable state, as of now.
    pub present: Present,
    /// Older states that are still in use.
    pub pinned: Pinned,
    /// The background query thread.
    pub beside: Beside,
    /// The objects sent to members.
    pub view: SharedView,
    /// The history.
    pub reader: LogReader,
    /// Reports of members about themselves.
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
            present,
            pinned,
            beside,
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
            present,
            pinned,
            beside,
            view,
            reader,
            reports,
            clock,
            metrics,
            audit: Audit::default(),
            turns: Turns::default(),
            watches_of_one: OfOne::new(WATCHES_OF_ONE_MAX),
            drain,
            operator_watches: Arc::new(Semaphore::new(OPERATOR_WATCHES_MAX)),
            reader_watches: Arc::new(Semaphore::new(READER_WATCHES_MAX)),
            member_watches: Arc::new(Semaphore::new(MEMBER_WATCHES_MAX)),
            at_least_waiting: Arc::new(Semaphore::new(AT_LEAST_WAITING_MAX)),
            backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
            topologies: None,
            explaining: Arc::new(Semaphore::new(TOPOLOGIES_EXPLAINED_MAX)),
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

    /// Returns the caller, if it is authorized. `named` is the clusterset in the request.
    pub(crate) fn admit<T>(&self, request: &Request<T>, named: &str, need: Need) -> Result<Caller, Status> {
        let peer = tls::peer(request)?;
        let admitted = self.check(&peer, named, need);
        self.audit.asked::<T, _>(&peer, need, &admitted, self.clock.now());
        admitted
    }

    fn check(&self, peer: &PeerIdentity, named: &str, need: Need) -> Result<Caller, Status> {
        if let Some(end) = peer.lifetime.why() {
            return Err(end.status());
        }
        let caller = access::check(&self.clusterset, peer, named, need).map_err(Status::permission_denied)?;
        self.refuse_ended(caller.cluster(), peer.key_fingerprint)?;
        Ok(caller)
    }

    /// Admits a cluster that wants to leave, with its key: a former member with its former key is told that it is none
    /// any more, instead of a refusal of the key.
    pub(crate) fn admit_leaver<T>(
        &self,
        request: &Request<T>,
        named: &str,
    ) -> Result<(ClusterId, KeyFingerprint), Status> {
        let peer = tls::peer(request)?;
        let admitted = self.check_leaver(&peer, named);
        self.audit
            .asked::<T, _>(&peer, Need::Decide, &admitted, self.clock.now());
        Ok((admitted?, peer.key_fingerprint))
    }

    fn check_leaver(&self, peer: &PeerIdentity, named: &str) -> Result<ClusterId, Status> {
        if let Some(end) = peer.lifetime.why() {
            return Err(end.status());
        }
        let caller = access::check(&self.clusterset, peer, named, Need::Read);
        let caller = caller.map_err(Status::permission_denied)?;
        self.refuse_ended(None, peer.key_fingerprint)?;
        let Caller::Member(cluster) = caller else {
            return Err(Status::permission_denied(
                "a cluster leaves with its own certificate; an operator has it leave with `member drain`",
            ));
        };
        Ok(cluster)
    }

    /// Nobody does anything with a revoked key; after the end of a membership its key reads nothing.
    fn refuse_ended(&self, cluster: Option<&ClusterId>, key: KeyFingerprint) -> Result<(), Status> {
        let present = self.present()?;
        if present.state.revoked_keys().contains_key(&key) {
            return Err(Status::permission_denied(access::revoked_key(key)));
        }
        let member = |cluster| present.state.member(cluster);
        match cluster {
            Some(cluster) if member(cluster).is_some_and(|member| member.refused_keys().contains(&key)) => {
                Err(Status::permission_denied(access::former_member(cluster, key)))
            }
            _ => Ok(()),
        }
    }

    /// The hub's wall clock.
    pub(crate) fn wall(&self) -> UnixMillis {
        self.clock.wall()
    }

    /// The background query thread.
    pub(crate) fn beside(&self) -> &Beside {
        &self.beside
    }

    /// The durable state, as of now.
    pub(crate) fn present(&self) -> Result<Arc<Published>, Status> {
        self.present.read().map_err(gone)
    }

    /// Every cluster that is or was a member, and the keys that are refused for ever, as far as they concern whom it is
    /// for: a page of them.
    pub(crate) async fn list_members(
        &self,
        request: &v1::ListMembersRequest,
        caller: &Caller,
    ) -> Result<v1::ListMembersResponse, Status> {
        self.first_page_at(&request.page_token, request.at_least_revision)
            .await?;
        let _turn = self.turns.of(caller).await;
        let sight = caller.sight();
        let asked = Asked {
            method: "Membership/List",
            selection: Selection {
                members: true,
                revoked_keys: true,
                sight,
                ..Selection::default()
            },
            size: request.page_size,
            token: &request.page_token,
        };
        let shown = self.page(asked).await?;
        Ok(v1::ListMembersResponse {
            epoch: shown.head.epoch.to_string(),
            revision: shown.head.revision.0,
            answered_by: self.answered_by_page(&shown),
            members: shown.members,
            next_page_token: shown.next,
            revoked_keys: shown.revoked_keys,
            loss: Some(shown.loss),
            brake: Some(shown.brake),
        })
    }

    /// The policy in force, as of a revision or later, and the revision that this is of.
    pub(crate) async fn policy(&self, at_least: u64) -> Result<(Revision, Option<AppliedPolicy>), Status> {
        self.at_least(at_least).await?;
        let present = self.present()?;
        Ok((present.head.revision, present.state.policy().cloned()))
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

/// The status for an event that cannot be read.
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

/// The status for a log that does not answer.
fn log_status(error: LogError) -> Status {
    match error {
        LogError::Busy => Status::resource_exhausted(format!("{error}")),
        LogError::Closed => Status::unavailable(format!(
            "{error}: the hub is shutting down, ask again in a moment"
        )),
        LogError::Term(_) => Status::unavailable(format!("{error}: ask again in a moment")),
        LogError::Refused(_) => Status::aborted(format!("{error}")),
        LogError::Forgotten { .. } => Status::out_of_range(error.to_string()),
        LogError::Corrupt(_) | LogError::Failed(_) => Status::internal(format!("{error}")),
    }
}
