//! Tokens with which clusters join: who may make one, what one may be used for, when one is forgotten.
//! It sees neither a token nor a certificate's key: hashes, fingerprints and what is to be recorded are given to it.

use std::sync::Arc;

use model::{
    ClusterId, Fact, JoinToken, KeyFingerprint, TokenHash, TokenScope, UnixMillis, advice,
    token::{JOINED_CERTIFICATE_BYTES_MAX, TOKEN_MILLIS_MAX, TOKEN_USES_MAX},
};

use super::{
    Draft, MemberStatus, Rejection, State,
    derived::Step,
    state::{JoinTokenState, JoinTokenUse},
};

/// Most tokens that a clusterset remembers.
pub const TOKENS_MAX: usize = 1_024;
/// Most clusters that may join with all of them together: each use holds a certificate.
pub const TOKEN_USES_OF_ALL_MAX: u64 = 4_096;
/// Time for which an expired token is remembered, so that its bearer is told that it expired.
pub const TOKEN_REMEMBERED_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The grant of a token for a key and an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// A certificate that is to be made and recorded.
    New,
    /// The one that was recorded for this key before: an answer got lost.
    Again(Arc<str>),
}

/// Returns the time by which a token is judged where the clock says `clock`: not before what the log recorded last, so that
/// a clock that is set back revives no token.
pub fn token_time(state: &State, clock: UnixMillis) -> UnixMillis {
    clock.max(state.recorded_at)
}

/// Returns the grant for this id and key at a time. Refusals say what to do.
pub fn may_join(
    state: &State,
    token: TokenHash,
    cluster: &ClusterId,
    key: KeyFingerprint,
    at: UnixMillis,
) -> Result<Grant, Rejection> {
    let Some(known) = state.join_tokens.get(&token) else {
        return Err(refused(
            "this hub knows no such token: it is of another hub, or expired more than a day ago",
        ));
    };
    if known.revoked_at.is_some() {
        return Err(refused("this token was revoked"));
    }
    if state.revoked_keys.contains_key(&key) {
        return Err(Rejection::operator(format!(
            "key {key} was revoked by an operator: remove the agent's key, so that it makes another, and come with a \
             new join string"
        )));
    }
    let used = known.used.iter().find(|used| used.key == key);
    if let Some(used) = used {
        return if used.cluster == *cluster {
            Ok(Grant::Again(used.certificate.clone()))
        } else {
            Err(refused(&format!(
                "this key was given cluster id {} with this token",
                used.cluster
            )))
        };
    }
    if known.token.expires_at <= token_time(state, at) {
        return Err(refused("this token expired"));
    }
    if !known.token.scope.covers(cluster) {
        return Err(Rejection::operator(format!(
            "this token is not good for cluster id {cluster}, only for {}: choose another id, or have a token made for \
             this one (`{}`)",
            known.token.scope,
            advice::token_create(cluster.as_str())
        )));
    }
    is_free(state, cluster, key)?;
    if known.used.len() >= known.token.uses as usize {
        return Err(refused(
            "this token is spent: as many clusters as it was made for have joined with it",
        ));
    }
    Ok(Grant::New)
}

/// Refuses an id that another cluster has. The cluster that has it is left alone.
fn is_free(state: &State, cluster: &ClusterId, key: KeyFingerprint) -> Result<(), Rejection> {
    let taken = |by: &str| {
        Rejection::operator(format!(
            "cluster id {cluster} is taken: {by}. Choose another id; if it is the same cluster with a new key, an operator \
             admits that: `{}`",
            advice::member_rekey(cluster, Some(key), None)
        ))
    };
    match state.member(cluster) {
        Some(member) if member.is_current() => {
            return if member.keys().contains_key(&key) {
                Ok(())
            } else {
                Err(taken("a member has it, with another key"))
            };
        }
        Some(member) if member.refused_keys().contains(&key) => {
            return Err(taken("this key is of a membership that ended"));
        }
        Some(member) if member.status() == MemberStatus::Evicted => {
            return Err(taken("its last membership was ended by an operator"));
        }
        Some(_) => return Ok(()),
        None => {}
    }
    // The clusters that got a certificate for it and have not come yet.
    let tokens = state
        .join_tokens
        .values()
        .filter(|token| token.revoked_at.is_none());
    let waits = tokens
        .flat_map(|token| &token.used)
        .find(|used| used.cluster == *cluster);
    match waits {
        Some(used) if used.key != key => Err(taken(
            "another key was given a certificate for it and has not come yet; revoking its token frees the id",
        )),
        _ => Ok(()),
    }
}

fn refused(why: &str) -> Rejection {
    Rejection::operator(format!(
        "{why}: have another join string made with `{}`",
        advice::token_create("my-cluster")
    ))
}

/// An operator makes a token.
pub(super) fn create(
    state: &State,
    token: &JoinToken,
    operator: &str,
    at: UnixMillis,
) -> Result<Vec<Draft>, Rejection> {
    let at = token_time(state, at);
    if !(1..=TOKEN_USES_MAX).contains(&token.uses) {
        let uses = token.uses;
        return Err(Rejection::operator(format!(
            "{uses} uses: a token has 1 to {TOKEN_USES_MAX}"
        )));
    }
    let lasts = token.expires_at.0.saturating_sub(at.0);
    if lasts == 0 || lasts > TOKEN_MILLIS_MAX {
        let days = TOKEN_MILLIS_MAX / 86_400_000;
        return Err(Rejection::operator(format!(
            "a token is good for more than nothing and at most {days} days: choose another --expires"
        )));
    }
    if matches!(&token.scope, TokenScope::Id(_)) && token.uses > 1 {
        return Err(Rejection::operator(
            "a token for one id has one use: several clusters need a pattern of ids (--id-pattern)"
                .to_owned(),
        ));
    }
    if state.join_tokens.contains_key(&token.hash) {
        return Err(Rejection::operator("this token exists: make another".to_owned()));
    }
    let kept = || {
        state
            .join_tokens
            .values()
            .filter(|known| !is_forgotten(known, at))
    };
    let promised: u64 = kept().map(|known| known.holds()).sum();
    if kept().count() >= TOKENS_MAX || promised + u64::from(token.uses) > TOKEN_USES_OF_ALL_MAX {
        return Err(Rejection::operator(format!(
            "at most {TOKENS_MAX} tokens for {TOKEN_USES_OF_ALL_MAX} clusters are remembered at a time, and each for a day \
             after it expired: revoke what is not needed (`{}` shows them), or wait",
            advice::token_list()
        )));
    }
    Ok(vec![Draft::of_the_log(Fact::JoinTokenCreated {
        operator: operator.into(),
        token: token.clone(),
    })])
}

/// An operator takes a token back.
pub(super) fn revoke(state: &State, token: TokenHash, operator: &str) -> Result<Vec<Draft>, Rejection> {
    let Some(known) = state.join_tokens.get(&token) else {
        return Err(Rejection::operator(format!(
            "there is no token {}: `{}` shows all",
            token.id(),
            advice::token_list()
        )));
    };
    let revoked = Draft::of_the_log(Fact::JoinTokenRevoked {
        operator: operator.into(),
        token,
    });
    Ok(Vec::from_iter(known.revoked_at.is_none().then_some(revoked)))
}

/// A certificate that was made for a token is to be handed out. Nothing if one was before.
pub(super) fn join(
    state: &State,
    token: TokenHash,
    (cluster, key): (&ClusterId, KeyFingerprint),
    certificate: &Arc<str>,
    at: UnixMillis,
) -> Result<Vec<Draft>, Rejection> {
    match may_join(state, token, cluster, key, at)? {
        Grant::Again(_) => Ok(Vec::new()),
        Grant::New if certificate.len() > JOINED_CERTIFICATE_BYTES_MAX => Err(Rejection::operator(format!(
            "the certificate and what it leads over have {} bytes, and {JOINED_CERTIFICATE_BYTES_MAX} are recorded: give \
             the hub a --join-cert without further certificates",
            certificate.len()
        ))),
        Grant::New => Ok(vec![Draft::decided(
            cluster,
            Fact::JoinTokenUsed {
                token,
                cluster: cluster.clone(),
                key,
                certificate: certificate.clone(),
            },
        )]),
    }
}

/// A token is known; those that ended long enough ago are not any more.
pub(super) fn created(state: &mut State, operator: &str, token: &JoinToken, step: &Step) {
    let at = step.recorded_at;
    let gone = state
        .join_tokens
        .iter()
        .filter(|(_, known)| is_forgotten(known, at));
    let gone: Vec<TokenHash> = gone.map(|(hash, _)| *hash).collect();
    for hash in &gone {
        state.join_tokens.remove(hash);
    }
    let known = JoinTokenState {
        token: token.clone(),
        operator: operator.into(),
        created_at: at,
        revoked_at: None,
        used: Vec::new(),
    };
    state.join_tokens.insert(token.hash, Arc::new(known));
}

/// A cluster has a certificate.
pub(super) fn used(state: &mut State, fact: &Fact, step: &Step) {
    let Fact::JoinTokenUsed {
        token,
        cluster,
        key,
        certificate,
    } = fact
    else {
        return;
    };
    let used = JoinTokenUse {
        cluster: cluster.clone(),
        key: *key,
        at: step.recorded_at,
        certificate: certificate.clone(),
    };
    if let Some(known) = state.join_tokens.get_mut(token) {
        Arc::make_mut(known).used.push(used);
    }
}

/// Nobody is given anything for it any more.
pub(super) fn revoked(state: &mut State, token: TokenHash, step: &Step) {
    if let Some(known) = state.join_tokens.get_mut(&token) {
        Arc::make_mut(known).revoked_at.get_or_insert(step.recorded_at);
    }
}

fn is_forgotten(known: &JoinTokenState, at: UnixMillis) -> bool {
    known.token.expires_at.0.saturating_add(TOKEN_REMEMBERED_MILLIS) <= at.0
}

impl JoinTokenState {
    /// Number of certificates that it has given or may give.
    fn holds(&self) -> u64 {
        match self.revoked_at {
            Some(_) => self.used.len() as u64,
            None => u64::from(self.token.uses),
        }
    }
}
