//! `Joining`: gives a certificate to the bearer of a token, over the port for peers without a certificate. The fold
//! judges a token, twice: here before anything is signed, and by the writer, which records the use. The certificate
//! goes out when that is durable. It keeps no token and writes none into a log; what unauthenticated peers can cause at
//! will is a `debug` line.

use std::sync::Arc;

use proto::v1::{
    self,
    joining_server::{Joining, JoiningServer},
};
use shared::model::{ClusterId, TokenHash, TokenSecret, UnixMillis, token::TOKEN_BYTES};
use tonic::{Request, Response, Status};
use tracing::{debug, info};

use crate::{
    certs::{MemberIssuer, SIGNING_REQUEST_BYTES_MAX, SigningRequest},
    clock::Clock,
    fold::{Command, Grant, Rejection, may_join},
    inspect::gone,
    writer::{Present, WriterHandle},
};

/// Largest request: a token, an id, a signing request.
const REQUEST_BYTES_MAX: usize = SIGNING_REQUEST_BYTES_MAX + 1024;

/// A request to join, with its parts read.
pub struct JoinWish {
    token: TokenHash,
    cluster: ClusterId,
    signing: SigningRequest,
}

impl JoinWish {
    /// Reads a request of somebody without a certificate.
    ///
    /// # Errors
    ///
    /// The part that is none.
    pub fn read(request: &v1::JoinRequest) -> Result<Self, Status> {
        let token = <[u8; TOKEN_BYTES]>::try_from(request.token.as_slice());
        let token =
            token.map_err(|_| Status::invalid_argument(format!("a token has {TOKEN_BYTES} bytes")))?;
        let cluster = ClusterId::new(&request.cluster);
        let cluster = cluster.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let signing = SigningRequest::read(&request.signing_request).map_err(|error| {
            Status::invalid_argument(format!("the signing request cannot be read: {error}"))
        })?;
        Ok(Self {
            token: TokenSecret::new(token).hash(),
            cluster,
            signing,
        })
    }
}

/// The service over one hub's parts. Clones are the same service.
#[derive(Clone)]
pub struct JoiningService {
    /// The durable state.
    pub present: Present,
    /// Records uses.
    pub writer: WriterHandle,
    /// The hub's time.
    pub clock: Clock,
    /// Signs.
    pub issuer: Arc<MemberIssuer>,
    /// The authorities that members are to trust, PEM.
    pub authorities: Arc<str>,
}

#[tonic::async_trait]
impl Joining for JoiningService {
    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinResponse>, Status> {
        let joined = self.joined(request.get_ref()).await;
        if let Err(status) = &joined {
            // Anybody who reaches the port can cause this line.
            debug!(code = %status.code(), reason = status.message(), "nobody joined");
        }
        joined.map(Response::new)
    }
}

impl JoiningService {
    /// As it is served.
    pub fn server(self) -> JoiningServer<Self> {
        JoiningServer::new(self)
            .max_decoding_message_size(REQUEST_BYTES_MAX)
            .max_encoding_message_size(1024 * 1024)
    }

    async fn joined(&self, request: &v1::JoinRequest) -> Result<v1::JoinResponse, Status> {
        let JoinWish {
            token,
            cluster,
            signing: wanted,
        } = JoinWish::read(request)?;
        let at = self.clock.wall();
        let certificate = match self.granted(token, &cluster, &wanted, at)? {
            Grant::Again(certificate) => certificate,
            Grant::New => self.recorded(token, cluster, &wanted, at).await?,
        };
        Ok(v1::JoinResponse {
            certificate: certificate.to_string(),
            authorities: self.authorities.to_string(),
        })
    }

    /// The grant in the durable state.
    fn granted(
        &self,
        token: TokenHash,
        cluster: &ClusterId,
        wanted: &SigningRequest,
        at: UnixMillis,
    ) -> Result<Grant, Status> {
        let present = self.present.read().map_err(gone)?;
        may_join(&present.state, token, cluster, wanted.key, at).map_err(|rejection| refused(&rejection))
    }

    /// Signs and has the use recorded; what is handed out is what the log has.
    async fn recorded(
        &self,
        token: TokenHash,
        cluster: ClusterId,
        wanted: &SigningRequest,
        at: UnixMillis,
    ) -> Result<Arc<str>, Status> {
        let signed = self
            .issuer
            .sign(wanted, &cluster, self.issuer.member_validity(at));
        let signed = signed.map_err(|error| Status::internal(format!("the hub cannot sign: {error}")))?;
        let command = Command::Join {
            token,
            cluster: cluster.clone(),
            key: wanted.key,
            certificate: signed.into(),
            at,
        };
        let operated = self
            .writer
            .operate(command, true, |_, _, _| Vec::new())
            .await
            .map_err(gone)?;
        let operated = operated.map_err(|rejection| refused(&rejection))?;
        if let Some(revision) = operated.revision {
            info!(%cluster, token = token.id(), revision = revision.0, "a cluster was given a certificate");
        }
        // Another answer for the same key may have been recorded before this one.
        match self.granted(token, &cluster, wanted, at)? {
            Grant::Again(certificate) => Ok(certificate),
            Grant::New => Err(Status::aborted("the use is not recorded: ask again")),
        }
    }
}

fn refused(rejection: &Rejection) -> Status {
    Status::permission_denied(rejection.to_string())
}

#[cfg(test)]
mod tests;
