//! Inspection: the gRPC services that people and tools read with.
//!
//! * `access.rs`: who may read, who may decide.
//! * `event_log.rs`, `watch.rs`, `filter.rs`: the history, in pages and as it grows.
//! * `state.rs`, `query.rs`: the present, and why an import looks as it does.
//! * `convert.rs`: the one file that knows both our values and the messages.
//!
//! It reads what is durable and asks the writer; it owns no state and never changes any itself.

mod access;
mod convert;
mod event_log;
mod filter;
mod metrics;
mod query;
mod state;
mod watch;

#[cfg(test)]
pub(crate) mod tests;

use std::{future::Future, sync::Arc};

use proto::v1::{self, event_log_server::EventLogServer, state_server::StateServer};
use shared::{
    model::{Clusterset, sync::MESSAGE_BYTES_MAX},
    tls,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::{
    log::{LogError, LogReader},
    view::SharedView,
    writer::{Gone, WriterHandle},
};

pub(crate) use access::{Caller, Need};
pub use metrics::InspectionMetrics;

/// Watches by operators at the same time.
pub const OPERATOR_WATCHES_MAX: usize = 32;
/// Watches with members' certificates at the same time: bounded apart, so that they never keep operators out.
pub const MEMBER_WATCHES_MAX: usize = 32;

/// The inspection services over one hub's parts. Clones are the same services.
#[derive(Clone)]
pub struct Inspection {
    clusterset: Clusterset,
    writer: WriterHandle,
    view: SharedView,
    reader: LogReader,
    metrics: InspectionMetrics,
    drain: CancellationToken,
    operator_watches: Arc<Semaphore>,
    member_watches: Arc<Semaphore>,
}

impl Inspection {
    /// Services over these parts; watches end when `drain` begins.
    pub fn new(
        clusterset: Clusterset,
        writer: WriterHandle,
        view: SharedView,
        reader: LogReader,
        metrics: InspectionMetrics,
        drain: CancellationToken,
    ) -> Self {
        Self {
            clusterset,
            writer,
            view,
            reader,
            metrics,
            drain,
            operator_watches: Arc::new(Semaphore::new(OPERATOR_WATCHES_MAX)),
            member_watches: Arc::new(Semaphore::new(MEMBER_WATCHES_MAX)),
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
        let caller =
            access::check(&self.clusterset, &peer, named, need).map_err(Status::permission_denied)?;
        if let Some(cluster) = caller.cluster() {
            self.refuse_former(cluster.clone(), peer.key_fingerprint).await?;
        }
        Ok(caller)
    }

    /// Whose membership ended reads no more with the key it had.
    async fn refuse_former(
        &self,
        cluster: shared::model::ClusterId,
        key: shared::model::KeyFingerprint,
    ) -> Result<(), Status> {
        let asked = cluster.clone();
        let former = self.writer.query(move |core| {
            let member = core.state().member(&asked);
            member.is_some_and(|member| member.refused_keys().contains(&key))
        });
        match former.await.map_err(gone)? {
            true => Err(Status::permission_denied(access::former_member(&cluster, key))),
            false => Ok(()),
        }
    }

    /// Every cluster that is or was a member.
    pub(crate) async fn list_members(&self) -> Result<v1::ListMembersResponse, Status> {
        let seen = self.writer.query(|core| {
            let members = query::members(core.state(), &query::Sessions::of(core), None);
            (core.head(), members)
        });
        let (head, members) = seen.await.map_err(gone)?;
        Ok(v1::ListMembersResponse {
            epoch: head.epoch.to_string(),
            revision: head.revision.0,
            members: members.into_iter().map(convert::member).collect(),
        })
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

/// What a log that does not answer means for whoever asked.
fn log_status(error: LogError) -> Status {
    match error {
        LogError::Busy => Status::resource_exhausted(format!("{error}")),
        LogError::Closed => Status::unavailable(format!(
            "{error}: the hub is shutting down, ask again in a moment"
        )),
        LogError::Refused(_) => Status::aborted(format!("{error}")),
        LogError::Corrupt(_) | LogError::Failed(_) => Status::internal(format!("{error}")),
    }
}
