//! `JoinTokens`: has the writer record tokens with which clusters join, and shows them. It decides nothing, and no token
//! ever comes here: only hashes do.

use proto::v1::{
    self,
    join_tokens_server::{JoinTokens, JoinTokensServer},
};
use shared::{
    model::{JoinToken, KeyFingerprint, TokenHash, UnixMillis, advice, token::InvalidScope},
    wire::view,
};
use tonic::{Request, Response, Status};

use super::service::MembershipService;
use crate::{
    clock::Clock,
    fold::{Command, JoinTokenState, token_time},
    inspect::Need,
};

/// The data of a join string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joinable {
    /// The key of the authority that the hub's certificate leads to.
    pub pin: KeyFingerprint,
    /// The port.
    pub port: u16,
}

/// The service, beside that of members. Clones are the same service.
#[derive(Clone)]
pub struct TokenService {
    membership: MembershipService,
    clock: Clock,
    joinable: Option<Joinable>,
}

#[tonic::async_trait]
impl JoinTokens for TokenService {
    async fn create(
        &self,
        request: Request<v1::CreateJoinTokenRequest>,
    ) -> Result<Response<v1::CreateJoinTokenResponse>, Status> {
        let created = async {
            let operator = self
                .membership
                .operator(&request, &request.get_ref().clusterset)
                .await?;
            self.made(request.into_inner(), operator).await
        };
        self.membership
            .inspection()
            .counted("JoinTokens/Create", created)
            .await
    }

    async fn list(
        &self,
        request: Request<v1::ListJoinTokensRequest>,
    ) -> Result<Response<v1::ListJoinTokensResponse>, Status> {
        let listed = async {
            let inspection = self.membership.inspection();
            inspection.admit(&request, &request.get_ref().clusterset, Need::ReadAll)?;
            let present = inspection.present()?;
            let tokens = present.state.join_tokens().values();
            Ok(v1::ListJoinTokensResponse {
                tokens: tokens.map(|known| shown(known)).collect(),
                answered_by: inspection.answered_by(present.head.revision),
            })
        };
        self.membership
            .inspection()
            .counted("JoinTokens/List", listed)
            .await
    }

    async fn revoke(
        &self,
        request: Request<v1::RevokeJoinTokenRequest>,
    ) -> Result<Response<v1::MemberDecisionResponse>, Status> {
        let decided = async {
            let operator = self
                .membership
                .operator(&request, &request.get_ref().clusterset)
                .await?;
            let request = request.into_inner();
            let token = self.named(&request.id)?;
            let command = Command::RevokeToken { token, operator };
            self.membership.decide(command, request.confirm).await
        };
        self.membership
            .inspection()
            .counted("JoinTokens/Revoke", decided)
            .await
    }
}

impl TokenService {
    /// The service that asks the writer as that one does. `joinable`: nothing when the hub lets nobody join.
    pub fn new(membership: MembershipService, clock: Clock, joinable: Option<Joinable>) -> Self {
        Self {
            membership,
            clock,
            joinable,
        }
    }

    /// As it is served.
    pub fn server(self) -> JoinTokensServer<Self> {
        JoinTokensServer::new(self)
    }

    async fn made(
        &self,
        request: v1::CreateJoinTokenRequest,
        operator: Box<str>,
    ) -> Result<v1::CreateJoinTokenResponse, Status> {
        let Some(Joinable { pin, port }) = self.joinable else {
            return Err(Status::failed_precondition(
                "this hub lets nobody join: start it with --join-listen, --join-cert and --join-key",
            ));
        };
        let hash = request.token_hash.as_slice().try_into().map(TokenHash);
        let hash =
            hash.map_err(|_| Status::invalid_argument("token_hash has 32 bytes: the sha256 of the token"))?;
        let scope = request.cluster_ids.parse();
        let present = self.membership.inspection().present()?;
        let at = token_time(&present.state, self.clock.wall());
        let token = JoinToken {
            hash,
            scope: scope.map_err(|error: InvalidScope| Status::invalid_argument(error.to_string()))?,
            uses: request.uses,
            expires_at: UnixMillis(at.0.saturating_add(request.valid_millis)),
        };
        let expires_at = token.expires_at;
        let command = Command::CreateToken { token, operator, at };
        let decided = self.membership.decide(command, true).await?;
        Ok(v1::CreateJoinTokenResponse {
            id: hash.id(),
            expires_at: Some(view::timestamp(expires_at)),
            pin: pin.0.to_vec(),
            join_port: port.into(),
            answered_by: decided.answered_by,
        })
    }

    /// The token of a name.
    fn named(&self, id: &str) -> Result<TokenHash, Status> {
        let present = self.membership.inspection().present()?;
        let found = present
            .state
            .join_tokens()
            .keys()
            .find(|hash| hash.id() == id)
            .copied();
        found.ok_or_else(|| {
            let id: String = id.chars().take(80).collect();
            Status::not_found(format!(
                "there is no token {id}: `{}` shows all",
                advice::token_list()
            ))
        })
    }
}

fn shown(known: &JoinTokenState) -> v1::JoinTokenState {
    v1::JoinTokenState {
        id: known.token.hash.id(),
        cluster_ids: known.token.scope.to_string(),
        uses: known.token.uses,
        operator: known.operator.to_string(),
        created_at: Some(view::timestamp(known.created_at)),
        expires_at: Some(view::timestamp(known.token.expires_at)),
        revoked_at: known.revoked_at.map(view::timestamp),
        used: known
            .used
            .iter()
            .map(|used| v1::JoinTokenUse {
                cluster: used.cluster.to_string(),
                key_fingerprint: used.key.to_string(),
                used_at: Some(view::timestamp(used.at)),
            })
            .collect(),
    }
}
