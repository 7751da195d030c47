//! The hub's decisions about tokens with which clusters join ↔ protobuf.

use proto::v1::{self, fact::Fact as ProtoFact};

use super::common::Taken;
use model::{
    ClusterId, Fact, InvalidKeyFingerprint, JoinToken, TokenHash, TokenScope, UnixMillis,
    token::InvalidScope, validate::InvalidValue,
};

/// A decision about a token as protobuf; nothing for other facts.
pub(super) fn to_proto(fact: &Fact) -> Option<ProtoFact> {
    Some(match fact {
        Fact::JoinTokenCreated { operator, token } => ProtoFact::JoinTokenCreated(v1::JoinTokenCreated {
            operator: operator.to_string(),
            token_hash: token.hash.0.to_vec(),
            cluster_ids: token.scope.to_string(),
            uses: token.uses,
            expires_at_unix_millis: token.expires_at.0,
        }),
        Fact::JoinTokenUsed {
            token,
            cluster,
            key,
            certificate,
        } => ProtoFact::JoinTokenUsed(v1::JoinTokenUsed {
            token_hash: token.0.to_vec(),
            cluster: cluster.to_string(),
            key_fingerprint: key.to_string(),
            certificate: certificate.to_string(),
        }),
        Fact::JoinTokenRevoked { operator, token } => ProtoFact::JoinTokenRevoked(v1::JoinTokenRevoked {
            operator: operator.to_string(),
            token_hash: token.0.to_vec(),
        }),
        _ => return None,
    })
}

pub(super) fn created_from_proto(created: v1::JoinTokenCreated) -> Taken<Fact> {
    Ok(Fact::JoinTokenCreated {
        token: JoinToken {
            hash: hash(&created.token_hash)?,
            scope: scope(&created.cluster_ids)?,
            uses: created.uses,
            expires_at: UnixMillis(created.expires_at_unix_millis),
        },
        operator: created.operator.into(),
    })
}

pub(super) fn used_from_proto(used: v1::JoinTokenUsed) -> Taken<Fact> {
    let key = used.key_fingerprint.parse();
    Ok(Fact::JoinTokenUsed {
        token: hash(&used.token_hash)?,
        cluster: ClusterId::new(&used.cluster)
            .map_err(|error| InvalidValue::new("cluster", error.to_string()))?,
        key: key
            .map_err(|error: InvalidKeyFingerprint| InvalidValue::new("keyFingerprint", error.to_string()))?,
        certificate: used.certificate.into(),
    })
}

pub(super) fn revoked_from_proto(revoked: v1::JoinTokenRevoked) -> Taken<Fact> {
    Ok(Fact::JoinTokenRevoked {
        token: hash(&revoked.token_hash)?,
        operator: revoked.operator.into(),
    })
}

fn hash(bytes: &[u8]) -> Taken<TokenHash> {
    let hash = bytes.try_into().map(TokenHash);
    hash.map_err(|_| InvalidValue::new("tokenHash", format!("has {} bytes; 32 are needed", bytes.len())))
}

fn scope(text: &str) -> Taken<TokenScope> {
    text.parse()
        .map_err(|error: InvalidScope| InvalidValue::new("clusterIds", error.to_string()))
}
