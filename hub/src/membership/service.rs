//! `Membership`: checks who asks and what, has the writer decide, and says what followed. It decides nothing.

use crate::effects;
use proto::v1::{
    self,
    membership_server::{Membership, MembershipServer},
};
use shared::{
    model::{KeyFingerprint, sync::MESSAGE_BYTES_MAX},
    tls,
};
use tonic::{Request, Response, Status};
use tracing::info;

use super::request::{
    cluster, cluster_fingerprint, key_fingerprint, operator_name, reader_name, revoked_key,
};
use crate::{
    fold::{Command, Departure, KeyHolder, Rejection},
    inspect::{Caller, Inspection, Need, gone},
    writer::WriterHandle,
};

/// The service over one hub's parts. Clones are the same service.
#[derive(Clone)]
pub struct MembershipService {
    /// Knows who may ask, counts, and lists the members.
    inspection: Inspection,
    writer: WriterHandle,
}

#[tonic::async_trait]
impl Membership for MembershipService {
    async fn list(
        &self,
        request: Request<v1::ListMembersRequest>,
    ) -> Result<Response<v1::ListMembersResponse>, Status> {
        let listed = async {
            let caller = self
                .inspection
                .admit(&request, &request.get_ref().clusterset, Need::Read)?;
            self.inspection.list_members(request.get_ref(), &caller).await
        };
        self.inspection.counted("Membership/List", listed).await
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
        self.inspection.counted("Membership/Rekey", decided).await
    }

    async fn evict(
        &self,
        request: Request<v1::EvictMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let cluster = cluster(&request.cluster)?;
            let command = match request.after_millis {
                0 => Command::Evict { cluster, operator },
                after_millis => Command::Depart {
                    cluster,
                    departure: Departure::Ordered {
                        operator,
                        at: self.inspection.wall(),
                        after_millis,
                        evicts: true,
                    },
                },
            };
            self.decide(command, request.confirm).await
        };
        self.inspection.counted("Membership/Evict", decided).await
    }

    async fn drain(
        &self,
        request: Request<v1::DrainMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let command = Command::Depart {
                cluster: cluster(&request.cluster)?,
                departure: Departure::Ordered {
                    operator,
                    at: self.inspection.wall(),
                    after_millis: request.after_millis,
                    evicts: false,
                },
            };
            self.decide(command, request.confirm).await
        };
        self.inspection.counted("Membership/Drain", decided).await
    }

    async fn stay(
        &self,
        request: Request<v1::StayMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let command = Command::Depart {
                cluster: cluster(&request.cluster)?,
                departure: Departure::TakenBack { operator },
            };
            self.decide(command, request.confirm).await
        };
        self.inspection.counted("Membership/Stay", decided).await
    }

    async fn leave(
        &self,
        request: Request<v1::LeaveRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let (cluster, key) = self
                .inspection
                .admit_leaver(&request, &request.get_ref().clusterset)?;
            let command = Command::Depart {
                cluster,
                departure: Departure::OwnWill { key },
            };
            self.decide(command, request.get_ref().confirm).await
        };
        self.inspection.counted("Membership/Leave", decided).await
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
        self.inspection.counted("Membership/Forget", decided).await
    }

    async fn revoke_key(
        &self,
        request: Request<v1::RevokeMemberKeyRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let key = not_its_own(&request, &request.get_ref().key_fingerprint)?;
            let request = request.into_inner();
            let command = Command::RevokeKey {
                holder: KeyHolder::Member(cluster(&request.cluster)?),
                key,
                operator,
            };
            self.decide(command, request.confirm).await
        };
        self.inspection.counted("Membership/RevokeKey", decided).await
    }

    async fn revoke_operator(
        &self,
        request: Request<v1::RevokeOperatorRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let key = not_its_own(&request, &request.get_ref().key_fingerprint)?;
            let request = request.into_inner();
            let command = Command::RevokeKey {
                holder: KeyHolder::Operator(operator_name(&request.name)?),
                key,
                operator,
            };
            self.decide(command, request.confirm).await
        };
        self.inspection
            .counted("Membership/RevokeOperator", decided)
            .await
    }

    async fn revoke_reader(
        &self,
        request: Request<v1::RevokeReaderRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let key = not_its_own(&request, &request.get_ref().key_fingerprint)?;
            let request = request.into_inner();
            let command = Command::RevokeKey {
                holder: KeyHolder::Reader(reader_name(&request.name)?),
                key,
                operator,
            };
            self.decide(command, request.confirm).await
        };
        self.inspection.counted("Membership/RevokeReader", decided).await
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseMemberRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let request = request.into_inner();
            let command = Command::ReleaseBrake {
                cluster: cluster(&request.cluster)?,
                operator,
            };
            self.decide(command, request.confirm).await
        };
        self.inspection.counted("Membership/Release", decided).await
    }

    async fn release_self_preservation(
        &self,
        request: Request<v1::ReleaseSelfPreservationRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self.operator(&request, &request.get_ref().clusterset).await?;
            let command = Command::ReleaseSelfPreservation { operator };
            self.decide(command, request.get_ref().confirm).await
        };
        let counted = self
            .inspection
            .counted("Membership/ReleaseSelfPreservation", decided);
        counted.await
    }
}

impl MembershipService {
    /// A service that asks this writer.
    pub fn new(inspection: Inspection, writer: WriterHandle) -> Self {
        Self { inspection, writer }
    }

    /// As it is served.
    pub fn server(self) -> MembershipServer<Self> {
        MembershipServer::new(self).max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Knows who may ask, and counts.
    pub(super) fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// The operator who asks.
    pub(super) async fn operator<T>(&self, request: &Request<T>, named: &str) -> Result<Box<str>, Status> {
        match self.inspection.admit(request, named, Need::Decide)? {
            Caller::Operator(name) => Ok(name),
            Caller::Reader(_) | Caller::Member(_) => {
                Err(Status::permission_denied("only an operator decides"))
            }
        }
    }

    /// Tries a decision, which the writer does not hear of, or has it carried out. Its effects are computed from the
    /// state that it is decided on.
    pub(super) async fn decide(
        &self,
        command: Command,
        confirm: bool,
    ) -> Result<v1::MemberDecisionResponse, Status> {
        let operated = if confirm {
            let operated = self.writer.operate(command.clone(), confirm, effects::of).await;
            operated.map_err(gone)?
        } else {
            let (present, command) = (self.inspection.present()?, command.clone());
            let tried = move || present.tried(&command, effects::of);
            self.inspection.beside().done(tried).await?
        };
        let operator = command.operator();
        let operated = operated.map_err(|rejection| {
            info!(operator, confirm, why = %rejection, "refused a decision");
            rejected(&rejection)
        })?;
        if !confirm {
            info!(
                operator,
                kinds = operated.kinds.join(","),
                "an operator tried a decision"
            );
        }
        if let Some(revision) = operated.revision {
            let effects = operated.effects.join("; ");
            info!(
                revision = revision.0,
                operator,
                kinds = operated.kinds.join(","),
                effects,
                "an operator decided"
            );
        }
        Ok(v1::MemberDecisionResponse {
            done: confirm,
            revision: operated.revision.unwrap_or_default().0,
            nothing_to_do: operated.kinds.is_empty(),
            effects: operated.effects,
            answered_by: self.inspection.answered_by(operated.as_of),
        })
    }
}

/// The key to revoke, whoever's it is said to be, unless it is the request's own.
fn not_its_own<T>(request: &Request<T>, key: &str) -> Result<KeyFingerprint, Status> {
    let key = revoked_key(key)?;
    if key == tls::peer(request)?.key_fingerprint {
        return Err(Status::failed_precondition(format!(
            "key {key} is the one that you came with: nobody locks itself out. Have another operator revoke it, \
             or come with another certificate"
        )));
    }
    Ok(key)
}

fn rejected(rejection: &Rejection) -> Status {
    match rejection {
        Rejection::NotAMember { .. } => Status::not_found(rejection.to_string()),
        Rejection::OperatorRefused { .. }
        | Rejection::AdmissionRefused { .. }
        | Rejection::Refused { .. } => Status::failed_precondition(rejection.to_string()),
    }
}
