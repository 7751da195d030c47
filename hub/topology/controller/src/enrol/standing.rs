//! Owns: the state of a Cluster's membership, from the hub's state.
//! Never: knows the Cluster.

use shared::model::{ClusterId, TokenHash, TokenScope, UnixMillis};

use fold::{MemberStatus, State};

/// The name under which the hub's own decisions about Clusters are recorded, where an operator's has the one in its
/// certificate.
pub const OPERATOR: &str = "topology";

/// The state of a membership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The Cluster's member is unknown: several Clusters name the same one, or it names an impossible one.
    Nobodys,
    /// It was no member yet.
    Stranger {
        /// The tokens with which it may join, or has asked to.
        tokens: Vec<Token>,
    },
    /// It is a member.
    Member {
        /// It is to leave.
        leaves: bool,
        /// It exports something.
        exports: bool,
        /// It joined with a token that the hub had made for a Cluster, and that is still remembered.
        ours: bool,
    },
    /// It was a member.
    Former {
        /// A new key may have its id.
        free: bool,
        /// The tokens with which it may join again, and those with which it had joined.
        tokens: Vec<Token>,
    },
}

/// A token for the id of one Cluster, not revoked, and used or still valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The token's hash.
    pub hash: TokenHash,
    /// The hub made it for the Cluster.
    pub ours: bool,
    /// The id was given a certificate for it.
    pub used: bool,
}

/// The state of this id's membership.
pub fn standing(state: &State, id: &ClusterId, now: UnixMillis) -> Standing {
    match state.member(id) {
        Some(member) if member.is_current() => Standing::Member {
            leaves: member.leaving().is_some(),
            exports: member.counted_services().next().is_some(),
            ours: tokens(state, id, now)
                .iter()
                .any(|token| token.ours && token.used),
        },
        Some(member) => Standing::Former {
            free: member.status() == MemberStatus::Left,
            tokens: tokens(state, id, now),
        },
        None => Standing::Stranger {
            tokens: tokens(state, id, now),
        },
    }
}

fn tokens(state: &State, id: &ClusterId, now: UnixMillis) -> Vec<Token> {
    let known = state.join_tokens().values();
    let known = known.filter(|known| known.revoked_at.is_none());
    known
        .filter_map(|known| {
            let used = known.used.iter().any(|used| used.cluster == *id);
            let good = known.token.scope == TokenScope::Id(id.clone()) && known.token.expires_at > now;
            (used || good).then(|| Token {
                hash: known.token.hash,
                ours: &*known.operator == OPERATOR,
                used,
            })
        })
        .collect()
}
