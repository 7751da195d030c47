//! `Policy`: shows the policy in force, and has the writer try or record another one. It decides nothing.

use std::{sync::Arc, time::Duration};

use proto::v1::{
    self,
    policy_server::{Policy, PolicyServer},
};
use shared::{
    model::{ServiceKey, sync::MESSAGE_BYTES_MAX},
    wire::{self, DEFAULT_POLICY, view},
};
use tonic::{Request, Response, Status};

use super::service::MembershipService;
use crate::{fold::Command, inspect::Need};

/// Longest that an operator waits until a document is read.
const READ_WAIT: Duration = Duration::from_secs(5);

/// The service, beside that of members. Clones are the same service.
#[derive(Clone)]
pub struct PolicyService(MembershipService);

#[tonic::async_trait]
impl Policy for PolicyService {
    async fn get(
        &self,
        request: Request<v1::GetPolicyRequest>,
    ) -> Result<Response<v1::GetPolicyResponse>, Status> {
        let got = async {
            let v1::GetPolicyRequest {
                clusterset,
                at_least_revision,
            } = request.get_ref();
            self.0.inspection().admit(&request, clusterset, Need::ReadAll)?;
            self.shown(*at_least_revision).await
        };
        self.0.inspection().counted("Policy/Get", got).await
    }

    async fn apply(
        &self,
        request: Request<v1::ApplyPolicyRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.0.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let policy = read(request.document).await?;
            let command = Command::ApplyPolicy { policy, operator };
            self.0.decide(command, request.confirm).await
        };
        self.0.inspection().counted("Policy/Apply", decided).await
    }

    async fn release(
        &self,
        request: Request<v1::ReleasePrecedenceRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.0.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let named = request.service.unwrap_or_default();
            let service = ServiceKey::new(&named.namespace, &named.name).map_err(|error| {
                Status::invalid_argument(format!("{error}: name the namespace and the name of a Service"))
            })?;
            let command = Command::ReleasePrecedence { service, operator };
            self.0.decide(command, request.confirm).await
        };
        self.0.inspection().counted("Policy/Release", decided).await
    }
}

/// Reads a document beside the threads that serve everybody.
async fn read(document: String) -> Result<Arc<shared::model::Policy>, Status> {
    let reading = tokio::task::spawn_blocking(move || wire::read_policy(&document));
    let read = tokio::time::timeout(READ_WAIT, reading).await.map_err(|_| {
        Status::deadline_exceeded(format!(
            "the policy was not read within {} s: make it shorter, or ask again when the hub has less to do",
            READ_WAIT.as_secs()
        ))
    })?;
    let read = read.map_err(|ended| Status::internal(format!("the policy was not read: {ended}")))?;
    read.map(Arc::new)
        .map_err(|error| Status::invalid_argument(error.to_string()))
}

impl PolicyService {
    /// The service that asks the writer as that one does.
    pub fn new(membership: MembershipService) -> Self {
        Self(membership)
    }

    /// As it is served.
    pub fn server(self) -> PolicyServer<Self> {
        PolicyServer::new(self)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    async fn shown(&self, at_least: u64) -> Result<v1::GetPolicyResponse, Status> {
        let (as_of, applied) = self.0.inspection().policy(at_least).await?;
        let answered_by = self.0.inspection().answered_by(as_of);
        let Some(applied) = applied else {
            return Ok(v1::GetPolicyResponse {
                document: DEFAULT_POLICY.to_owned(),
                answered_by,
                ..Default::default()
            });
        };
        Ok(v1::GetPolicyResponse {
            document: applied.policy.document.to_string(),
            revision: applied.revision.0,
            operator: applied.operator.into(),
            applied_at: Some(view::timestamp(applied.at)),
            answered_by,
        })
    }
}

#[cfg(test)]
mod tests;
