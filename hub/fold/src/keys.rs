//! Keys of members: which are admitted, how they renew, and which are refused for ever or until an operator's word.
//! It never looks at a certificate: what one says comes from one that has been verified.

use model::{ClusterId, Fact, KeyAcceptance, KeyFingerprint, KeyTerms, UnixMillis, advice};

use super::{
    AdmissionRefusal, Draft, Member, MemberStatus, Presented, Rejection, State,
    derived::Step,
    state::{AdmittedKey, KeyHolder, RevokedKey},
};

/// Most keys that one member may have at a time.
pub const MEMBER_KEYS_MAX: usize = 16;
/// Most keys of one member that are certified over its sessions within [`CERTIFIED_WITHIN_MILLIS`]: each is an event.
pub(super) const CERTIFIED_MAX: usize = 6;
const CERTIFIED_WITHIN_MILLIS: u64 = 60_000;
/// Most keys that are remembered of those over whose sessions another one came to be, one after the other.
pub const CERTIFIED_OVER_MAX: usize = 16;
/// Most keys that a clusterset remembers as refused for ever.
pub const REVOKED_KEYS_MAX: usize = 4_096;

impl AdmittedKey {
    /// Returns true if its certificate had ended by then.
    pub fn ended(&self, at: UnixMillis) -> bool {
        self.terms.not_after.is_some_and(|end| end <= at)
    }

    /// Takes new values over the old; missing ones stay.
    pub(super) fn learn(&mut self, terms: &KeyTerms, at: UnixMillis) {
        if terms.accepted.is_some() {
            (self.terms.accepted, self.accepted_at) = (terms.accepted, at);
            self.certified_over.clear();
        }
        if terms.issuer.is_some() {
            self.terms.issuer.clone_from(&terms.issuer);
        }
        if terms.not_after.is_some() {
            self.terms.not_after = terms.not_after;
        }
    }
}

impl State {
    /// The admitted keys that were certified over sessions of a key, or over sessions of such a one, each with its member.
    pub fn certified_over(&self, key: KeyFingerprint) -> Vec<(&ClusterId, KeyFingerprint)> {
        let mut found = Vec::new();
        for (cluster, member) in self.members.iter() {
            let keys = member.keys.iter();
            let came_of_it = keys.filter(|(_, known)| known.certified_over.contains(&key));
            found.extend(came_of_it.map(|(key, _)| (cluster, *key)));
        }
        found
    }
}

/// Refuses a key that may not be used, whatever certificate it comes with.
pub(super) fn usable(
    state: &State,
    cluster: &ClusterId,
    key: KeyFingerprint,
    presented: &Presented,
) -> Result<(), Rejection> {
    if state.revoked_keys.contains_key(&key) {
        return Err(revoked_key(cluster, key));
    }
    if let Some(end) = presented.not_after.filter(|end| *end <= presented.at) {
        return Err(expired(cluster, end, presented.at));
    }
    match state.member(cluster) {
        Some(member) if member.contested_keys.contains(&key) => Err(contested_key(cluster, key)),
        _ => Ok(()),
    }
}

/// A Hello under an admitted key: nothing, news of its certificate, or the end of a renewal that was none.
pub(super) fn known(
    cluster: &ClusterId,
    member: &Member,
    key: KeyFingerprint,
    presented: &Presented,
) -> Vec<Draft> {
    let Some(admitted) = member.keys.get(&key) else {
        return Vec::new();
    };
    let mut drafts = Vec::new();
    if let Some(renewal) = presented
        .displaces
        .filter(|other| was_renewed_after(member, *other, admitted))
    {
        drafts.push(Draft::decided(
            cluster,
            Fact::MemberKeyContested {
                key: renewal,
                kept: key,
            },
        ));
    }
    let is_later = |end: &UnixMillis| admitted.terms.not_after.is_none_or(|known| known < *end);
    if presented.not_after.as_ref().is_some_and(is_later) {
        drafts.push(rekeyed(
            cluster,
            key,
            KeyTerms {
                accepted: None,
                ..presented.terms(KeyAcceptance::Pinned)
            },
        ));
    }
    drafts
}

/// Returns true if the hub took `other` for the renewal of a key that came back later.
fn was_renewed_after(member: &Member, other: KeyFingerprint, admitted: &AdmittedKey) -> bool {
    member.keys.get(&other).is_some_and(|other| {
        other.terms.accepted == Some(KeyAcceptance::Renewed) && other.accepted_at > admitted.accepted_at
    })
}

/// A Hello under a key that its certificate's issuer vouches for. Nobody answers under another one.
pub(super) fn renewed(cluster: &ClusterId, key: KeyFingerprint, presented: &Presented) -> Vec<Draft> {
    vec![rekeyed(cluster, key, presented.terms(KeyAcceptance::Renewed))]
}

fn rekeyed(cluster: &ClusterId, key: KeyFingerprint, terms: KeyTerms) -> Draft {
    Draft::decided(
        cluster,
        Fact::MemberRekeyed {
            operator: "".into(),
            key: Some(key),
            cluster_fingerprint: None,
            terms,
        },
    )
}

/// A certificate was made for another key of a member that asked over a session of the key `by`. Nothing if the key is
/// admitted: an answer got lost.
pub(super) fn certify(
    state: &State,
    cluster: &ClusterId,
    (key, by): (KeyFingerprint, KeyFingerprint),
    (issuer, not_after): (&str, UnixMillis),
    at: UnixMillis,
) -> Result<Vec<Draft>, Rejection> {
    let member = state
        .current_member(cluster)
        .ok_or_else(|| Rejection::NotAMember {
            cluster: cluster.clone(),
        })?;
    if !member.keys.contains_key(&by) {
        return Err(Rejection::operator(format!(
            "key {by} is not admitted for cluster {cluster} any more, so it cannot renew a certificate"
        )));
    }
    let never_again = member.contested_keys.contains(&key)
        || member.refused_keys.contains(&key)
        || state.revoked_keys.contains_key(&key);
    if never_again {
        return Err(Rejection::operator(format!(
            "key {key} is refused for cluster {cluster}: it was revoked, came beside the member's own, or is of a \
             membership that ended. Ask with a new key"
        )));
    }
    if member.keys.contains_key(&key) {
        return Ok(Vec::new());
    }
    let lately = |known: &&AdmittedKey| {
        known.terms.accepted == Some(KeyAcceptance::Certified)
            && at.0 < known.accepted_at.0.saturating_add(CERTIFIED_WITHIN_MILLIS)
    };
    if member.keys.values().filter(lately).count() >= CERTIFIED_MAX {
        return Err(Rejection::operator(format!(
            "{CERTIFIED_MAX} keys of cluster {cluster} were certified within {} s: ask again later",
            CERTIFIED_WITHIN_MILLIS / 1_000
        )));
    }
    Ok(vec![Draft::decided(
        cluster,
        Fact::MemberKeyCertified {
            key,
            by,
            issuer: issuer.into(),
            not_after,
        },
    )])
}

/// A key is admitted because the hub certified it over a session of the key `by`.
pub(super) fn certified(
    state: &mut State,
    cluster: &ClusterId,
    (key, by): (KeyFingerprint, KeyFingerprint),
    (issuer, not_after): (&str, UnixMillis),
    step: &Step,
) {
    let terms = KeyTerms {
        issuer: Some(issuer.into()),
        not_after: Some(not_after),
        accepted: Some(KeyAcceptance::Certified),
    };
    let known = state.member(cluster).and_then(|member| member.keys.get(&by));
    let before = known.into_iter().flat_map(|known| &known.certified_over);
    let over = std::iter::once(&by).chain(before).take(CERTIFIED_OVER_MAX);
    let over: Vec<KeyFingerprint> = over.copied().collect();
    admitted(state, cluster, key, &terms, step);
    let member = state.member_mut(cluster);
    if let Some(known) = member.and_then(|member| member.keys.get_mut(&key)) {
        known.certified_over = over;
    }
}

/// A new key came while the holder of another one answered.
pub(super) fn contest(
    state: &State,
    cluster: &ClusterId,
    key: KeyFingerprint,
    kept: KeyFingerprint,
) -> Vec<Draft> {
    let news = state
        .current_member(cluster)
        .is_some_and(|member| key != kept && !member.contested_keys.contains(&key));
    let contested = Draft::decided(cluster, Fact::MemberKeyContested { key, kept });
    Vec::from_iter(news.then_some(contested))
}

/// An operator refuses a key for ever, whether it was used or not; and with a member's key those that were certified
/// over its sessions, because its thief may have requested them.
pub(super) fn revoke(
    state: &State,
    holder: &KeyHolder,
    key: KeyFingerprint,
    operator: &str,
) -> Result<Vec<Draft>, Rejection> {
    let came_of_it = match holder {
        KeyHolder::Member(_) => state.certified_over(key),
        KeyHolder::Operator(_) | KeyHolder::Reader(_) => Vec::new(),
    };
    let operator: Box<str> = operator.into();
    let of_member = |cluster: &ClusterId, key| {
        let operator = operator.clone();
        Draft::decided(cluster, Fact::MemberKeyRevoked { operator, key })
    };
    let itself = (!state.revoked_keys.contains_key(&key)).then(|| match holder {
        KeyHolder::Member(cluster) => of_member(cluster, key),
        KeyHolder::Operator(name) | KeyHolder::Reader(name) => Draft::of_the_log(Fact::OperatorKeyRevoked {
            operator: operator.clone(),
            name: name.clone(),
            reader: matches!(holder, KeyHolder::Reader(_)),
            key,
        }),
    });
    let others = came_of_it
        .into_iter()
        .map(|(cluster, key)| of_member(cluster, key));
    let drafts: Vec<Draft> = itself.into_iter().chain(others).collect();
    if !drafts.is_empty() && state.revoked_keys.len() + drafts.len() > REVOKED_KEYS_MAX {
        return Err(Rejection::operator(format!(
            "{REVOKED_KEYS_MAX} keys are refused for ever, the most that are remembered: put this one into the file of \
             --deny-keys, or issue all certificates anew with another CA and take the old one away"
        )));
    }
    Ok(drafts)
}

/// Returns true if the last event of a cluster's membership is that it was ended for it.
pub(super) fn is_evicted(state: &State, cluster: &ClusterId) -> bool {
    let member = state.member(cluster);
    member.is_some_and(|member| member.status == MemberStatus::Evicted)
}

/// A key is admitted, or more is known of it. Keys whose certificates have ended give up their places first.
pub(super) fn admitted(
    state: &mut State,
    cluster: &ClusterId,
    key: KeyFingerprint,
    terms: &KeyTerms,
    step: &Step,
) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    member.contested_keys.remove(&key);
    if !member.keys.contains_key(&key) {
        member.keys.retain(|_, known| !known.ended(step.recorded_at));
        while member.keys.len() >= MEMBER_KEYS_MAX {
            let first_to_end = member.keys.iter().min_by_key(|(key, known)| {
                (
                    known.terms.not_after.unwrap_or(UnixMillis(u64::MAX)),
                    known.accepted_at,
                    **key,
                )
            });
            let Some((&first, _)) = first_to_end else { break };
            member.keys.remove(&first);
        }
    }
    member.keys.entry(key).or_default().learn(terms, step.recorded_at);
}

/// A key needs an operator's word from here on.
pub(super) fn contested(state: &mut State, cluster: &ClusterId, key: KeyFingerprint) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    member.keys.remove(&key);
    // One more than fits is refused each time that it comes beside a holder that answers.
    if member.contested_keys.len() < MEMBER_KEYS_MAX {
        member.contested_keys.insert(key);
    }
}

/// A key is refused from here on, in any certificate.
pub(super) fn revoked(state: &mut State, holder: KeyHolder, key: KeyFingerprint, step: &Step) {
    let at = step.recorded_at;
    if !state.revoked_keys.contains_key(&key) {
        state.revoked_keys.insert(key, RevokedKey { holder, at });
    }
    let holders = state.members.iter();
    let holders = holders.filter(|(_, one)| one.keys.contains_key(&key) || one.contested_keys.contains(&key));
    let holders: Vec<ClusterId> = holders.map(|(cluster, _)| cluster.clone()).collect();
    for cluster in &holders {
        if let Some(member) = state.member_mut(cluster) {
            member.keys.remove(&key);
            member.contested_keys.remove(&key);
        }
    }
}

pub(super) fn revoked_key(cluster: &ClusterId, key: KeyFingerprint) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::RevokedKey,
        format!(
            "key {key} was revoked by an operator and stays refused: issue a certificate with a new key \
             (`{} --force`); the hub's refusal of it then names the command with which an operator admits it",
            advice::certs_member("DIR", Some(cluster)),
        ),
    )
}

fn contested_key(cluster: &ClusterId, key: KeyFingerprint) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::ContestedKey,
        format!(
            "two keys came for cluster id {cluster}, and key {key} is not the one that was kept: two agents share one \
             identity. Find out whose each is. If this one is the cluster's, an operator admits it: `{}`, and revokes \
             the other; if it is a stranger's: `{}`",
            advice::member_rekey(cluster, Some(key), None),
            advice::member_revoke_key(cluster, key)
        ),
    )
}

fn expired(cluster: &ClusterId, end: UnixMillis, at: UnixMillis) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::ExpiredCertificate,
        format!(
            "the certificate of cluster {cluster} ended {} s ago by this hub's clock: renew it (`{} --force`). If it is \
             still valid, set the hub's clock",
            at.0.saturating_sub(end.0) / 1_000,
            advice::certs_member("DIR", Some(cluster))
        ),
    )
}
