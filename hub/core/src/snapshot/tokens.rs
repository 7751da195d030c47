//! Rows of a snapshot for tokens with which clusters join, and for their uses.

use model::{JoinToken, KeyFingerprint, TokenHash, UnixMillis, token::InvalidScope};
use proto::v1;

use super::{Decoded, cluster, fixed, wrong};
use fold::{JoinTokenState, JoinTokenUse, SnapshotRow};

pub(super) fn token_to_proto(known: &JoinTokenState) -> v1::SnapshotJoinToken {
    v1::SnapshotJoinToken {
        token_hash: known.token.hash.0.to_vec(),
        cluster_ids: known.token.scope.to_string(),
        uses: known.token.uses,
        expires_at_unix_millis: known.token.expires_at.0,
        operator: known.operator.to_string(),
        created_at_unix_millis: known.created_at.0,
        revoked_at_unix_millis: known.revoked_at.map(|at| at.0),
    }
}

pub(super) fn token_from_proto(known: v1::SnapshotJoinToken) -> Decoded<SnapshotRow> {
    Ok(SnapshotRow::JoinToken(JoinTokenState {
        token: JoinToken {
            hash: TokenHash(fixed(&known.token_hash)?),
            scope: known
                .cluster_ids
                .parse()
                .map_err(|error: InvalidScope| wrong(error))?,
            uses: known.uses,
            expires_at: UnixMillis(known.expires_at_unix_millis),
        },
        operator: known.operator.into(),
        created_at: UnixMillis(known.created_at_unix_millis),
        revoked_at: known.revoked_at_unix_millis.map(UnixMillis),
        used: Vec::new(),
    }))
}

pub(super) fn token_use_to_proto(hash: TokenHash, used: &JoinTokenUse) -> v1::SnapshotJoinTokenUse {
    v1::SnapshotJoinTokenUse {
        token_hash: hash.0.to_vec(),
        cluster: used.cluster.to_string(),
        key_fingerprint: used.key.0.to_vec(),
        used_at_unix_millis: used.at.0,
        certificate: used.certificate.to_string(),
    }
}

pub(super) fn token_use_from_proto(used: v1::SnapshotJoinTokenUse) -> Decoded<SnapshotRow> {
    let hash = TokenHash(fixed(&used.token_hash)?);
    Ok(SnapshotRow::JoinTokenUse(
        hash,
        JoinTokenUse {
            cluster: cluster(&used.cluster)?,
            key: KeyFingerprint(fixed(&used.key_fingerprint)?),
            at: UnixMillis(used.used_at_unix_millis),
            certificate: used.certificate.into(),
        },
    ))
}
