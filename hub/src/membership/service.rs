//! `Membership`: members as operators see them, and operators' decisions: tried first, carried out when confirmed.
//! What a decision means is the fold's; this room checks the request, asks, and says what followed.

use proto::v1::{self, membership_server::Membership};
use shared::model::{ClusterId, KeyFingerprint, fact::IDENTITY_STRING_BYTES_MAX};
use tonic::{Request, Response, Status};
use tracing::info;

use super::{
    Inspection,
    access::{Caller, Need},
    convert,
    effects::{self, Effects},
    gone, query,
};
use crate::fold::{Command, Rejection};

#[tonic::async_trait]
impl Membership for Inspection {
    async fn list(
        &self,
        request: Request<v1::ListMembersRequest>,
    ) -> Result<Response<v1::ListMembersResponse>, Status> {
        let listed = async {
            self.admit(&request, &request.get_ref().clusterset, Need::Read)
                .await?;
            self.list_members().await
        };
        self.counted("Membership/List", listed).await
    }

    async fn rekey(
        &self,
        request: Request<v1::RekeyMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let command = Command::Rekey {
                cluster: cluster(&request.cluster)?,
                operator,
                key: key_fingerprint(&request.key_fingerprint)?,
                cluster_fingerprint: cluster_fingerprint(&request.cluster_fingerprint)?,
            };
            self.decide(command, request.confirm).await
        };
        self.counted("Membership/Rekey", decided).await
    }

    async fn evict(
        &self,
        request: Request<v1::EvictMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let command = Command::Evict {
                cluster: cluster(&request.cluster)?,
                operator,
            };
            self.decide(command, request.confirm).await
        };
        self.counted("Membership/Evict", decided).await
    }

    async fn forget(
        &self,
        request: Request<v1::ForgetMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let command = Command::Forget {
                cluster: cluster(&request.cluster)?,
                operator,
            };
            self.decide(command, request.confirm).await
        };
        self.counted("Membership/Forget", decided).await
    }
}

impl Inspection {
    async fn operator<T>(&self, request: &Request<T>, named: &str) -> Result<Box<str>, Status> {
        match self.admit(request, named, Need::Decide).await? {
            Caller::Operator(name) => Ok(name),
            Caller::Member(cluster) => Err(Status::permission_denied(format!(
                "{cluster} is a member: only an operator decides"
            ))),
        }
    }

    async fn list_members(&self) -> Result<v1::ListMembersResponse, Status> {
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

    /// Tries a decision, or carries it out. What it would do is read before it is done.
    async fn decide(&self, command: Command, confirm: bool) -> Result<v1::MemberDecisionResponse, Status> {
        let asked = command.clone();
        let effects = self.writer.query(move |core| effects::of(core.state(), &asked));
        let Effects { expected, nothing } = effects.await.map_err(gone)?;
        let operated = self
            .writer
            .operate(command.clone(), confirm)
            .await
            .map_err(gone)?;
        let operated = operated.map_err(|rejection| rejected(&rejection))?;
        if let Some(revision) = operated.revision {
            info!(revision = revision.0, kinds = ?operated.kinds, ?command, "an operator decided");
        }
        Ok(v1::MemberDecisionResponse {
            done: confirm,
            revision: operated.revision.unwrap_or_default().0,
            effects: if operated.kinds.is_empty() {
                vec![nothing]
            } else {
                expected
            },
        })
    }
}

fn rejected(rejection: &Rejection) -> Status {
    match rejection {
        Rejection::NotAMember { .. } => Status::not_found(rejection.to_string()),
        Rejection::OperatorRefused { .. }
        | Rejection::AdmissionRefused { .. }
        | Rejection::Refused { .. } => Status::failed_precondition(rejection.to_string()),
    }
}

fn cluster(text: &str) -> Result<ClusterId, Status> {
    ClusterId::new(text).map_err(|error| {
        Status::invalid_argument(format!(
            "{error}; `tributary-hub member list` shows the members' ids"
        ))
    })
}

/// A key fingerprint in a request: 64 hexadecimal digits, with or without colons; empty: none.
fn key_fingerprint(text: &str) -> Result<Option<KeyFingerprint>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    parse_key_fingerprint(text)
        .map(Some)
        .map_err(Status::invalid_argument)
}

/// Reads a key fingerprint as openssl or we print it.
pub(crate) fn parse_key_fingerprint(text: &str) -> Result<KeyFingerprint, String> {
    let digits = text.chars().filter(|character| *character != ':');
    let digits: String = digits.map(|digit| digit.to_ascii_lowercase()).collect();
    digits.parse().map_err(|_| {
        "a key fingerprint is the sha256 of the public key (SubjectPublicKeyInfo), 64 hexadecimal digits; the \
         hub's refusal of the session names it"
            .to_owned()
    })
}

fn cluster_fingerprint(text: &str) -> Result<Option<Box<str>>, Status> {
    match text {
        "" => Ok(None),
        text if text.len() <= IDENTITY_STRING_BYTES_MAX && text.chars().all(|c| c.is_ascii_graphic()) => {
            Ok(Some(text.into()))
        }
        _ => Err(Status::invalid_argument(format!(
            "a cluster fingerprint is the uid of the namespace kube-system, at most {IDENTITY_STRING_BYTES_MAX} \
             characters without spaces: kubectl get namespace kube-system -o jsonpath='{{.metadata.uid}}'"
        ))),
    }
}
