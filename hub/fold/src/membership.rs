//! Membership: which clusters are admitted, whose membership ends, which cluster fingerprints count. `keys.rs` decides
//! about single keys. It never looks at a certificate: key and id come from one that has been verified.

use model::{
    ClusterId, Fact, FactKey, KeyAcceptance, KeyFingerprint, KeyTerms, ServiceKey, UnixMillis, advice,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    AdmissionRefusal, Connectivity, DerivedKey, Draft, Map, Member, MemberStatus, Presented, Rejection,
    State,
    derived::Step,
    exports,
    keys::{self, MEMBER_KEYS_MAX},
    lost, profile, remembered,
    taken_back::TakenBack,
};

/// Most cluster ids that a clusterset knows, former and forgotten ones included. If all are used up, a new id replaces
/// the former one that has been gone for longest, if that may be forgotten.
pub const MEMBERS_MAX: usize = model::sync::SOURCES_HELD_MAX;
/// Most keys of ended memberships that are kept refused for one id.
pub const REFUSED_KEYS_MAX: usize = 1_024;

/// A former id may be forgotten so long after its end, in milliseconds, if the certificates of its keys have ended: 30
/// days. An agent that was away for longer is not told about it.
pub const FORMER_KEPT_MILLIS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// The same where nobody knows when those certificates end, in milliseconds: 400 days, more than any lasts that the hub's own
/// commands make unless asked otherwise.
pub const FORMER_KEYS_KEPT_MILLIS: u64 = 400 * 24 * 60 * 60 * 1_000;

/// A Hello: nothing, a join, or a refusal that names the operator's command.
pub(super) fn admit(
    state: &State,
    cluster: &ClusterId,
    key: KeyFingerprint,
    cluster_fingerprint: &str,
    presented: &Presented,
) -> Result<Vec<Draft>, Rejection> {
    keys::usable(state, cluster, key, presented)?;
    let joined = Draft::decided(
        cluster,
        Fact::MemberJoined {
            key,
            cluster_fingerprint: cluster_fingerprint.into(),
            terms: presented.terms(KeyAcceptance::Pinned),
        },
    );
    let Some(member) = state.member(cluster) else {
        return if has_room(state, presented.at) {
            Ok(vec![joined])
        } else {
            Err(too_many_members(cluster))
        };
    };
    if member.refused_keys.contains(&key) {
        return Err(if member.is_current() {
            former_key(cluster, key)
        } else {
            ended_membership(cluster, key)
        });
    }
    if keys::is_evicted(state, cluster) && !member.keys.contains_key(&key) {
        return Err(evicted(cluster, key));
    }
    if !member.is_current() {
        return if member.refused_keys.len() < REFUSED_KEYS_MAX {
            Ok(vec![joined])
        } else {
            Err(used_too_often(cluster))
        };
    }
    let known_key = member.keys.contains_key(&key);
    let same_fingerprint = *member.cluster_fingerprint == *cluster_fingerprint;
    let admitted_fingerprint = member.next_cluster_fingerprint.as_deref() == Some(cluster_fingerprint);
    match (known_key, same_fingerprint || admitted_fingerprint) {
        (true, true) if same_fingerprint => Ok(keys::known(cluster, member, key, presented)),
        (true, true) => Ok(vec![joined]),
        (false, true) if same_fingerprint && presented.renewable => {
            Ok(keys::renewed(cluster, key, presented))
        }
        (false, true) => Err(unknown_key(cluster, key)),
        (known_key, false) => Err(changed_fingerprint(
            cluster,
            member,
            (!known_key).then_some(key),
            cluster_fingerprint,
        )),
    }
}

pub(super) fn unknown_key(cluster: &ClusterId, key: KeyFingerprint) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::UnknownKey,
        format!(
            "cluster id {cluster} belongs to a member with another key. If this is the same cluster with a \
             new certificate, an operator admits it: `{}`; else give this cluster an id of its own",
            advice::member_rekey(cluster, Some(key), None)
        ),
    )
}

fn changed_fingerprint(
    cluster: &ClusterId,
    member: &Member,
    unknown_key: Option<KeyFingerprint>,
    stated: &str,
) -> Rejection {
    // A peer with an unknown key is told nothing that it did not say.
    let belongs = match unknown_key {
        None => format!(
            "the cluster whose kube-system UID is {}",
            member.cluster_fingerprint
        ),
        Some(_) => "another cluster, under another key".to_owned(),
    };
    Rejection::admission(
        AdmissionRefusal::ClusterFingerprintChanged,
        format!(
            "cluster id {cluster} belongs to {belongs}; the kube-system UID of this one is {stated}. If the cluster was rebuilt, an operator admits it: `{}`; else give this cluster an id of its own",
            advice::member_rekey(cluster, unknown_key, Some(stated))
        ),
    )
}

fn evicted(cluster: &ClusterId, key: KeyFingerprint) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::Evicted,
        format!(
            "an operator ended the membership of cluster id {cluster}, and it does not come back by itself. If it is to, \
             an operator admits its new key: `{}`; else stop its agent",
            advice::member_rekey(cluster, Some(key), None)
        ),
    )
}

pub(super) fn former_key(cluster: &ClusterId, key: KeyFingerprint) -> Rejection {
    Rejection::admission(AdmissionRefusal::KeyOfFormerMember, of_ended(cluster, key))
}

/// The agent that is told cleans up behind the membership, so no member under another key is named.
fn ended_membership(cluster: &ClusterId, key: KeyFingerprint) -> Rejection {
    Rejection::admission(AdmissionRefusal::MembershipEnded, of_ended(cluster, key))
}

fn of_ended(cluster: &ClusterId, key: KeyFingerprint) -> String {
    format!(
        "key {key} belongs to a membership of cluster id {cluster} that ended, and stays refused: \
         issue a certificate with a new key (`{} --force`)",
        advice::certs_member("DIR", Some(cluster))
    )
}

fn used_too_often(cluster: &ClusterId) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::KeyOfFormerMember,
        format!(
            "cluster id {cluster} has {REFUSED_KEYS_MAX} keys of ended memberships and cannot be used again: \
             choose another cluster id"
        ),
    )
}

fn too_many_members(cluster: &ClusterId) -> Rejection {
    Rejection::admission(
        AdmissionRefusal::TooManyMembers,
        format!(
            "cluster {cluster} would be one more than the {MEMBERS_MAX} cluster ids that a clusterset may \
             know: re-use the id of a cluster that left. One that left is forgotten after {} days, if the certificates of \
             its keys have ended by then",
            FORMER_KEPT_MILLIS / 86_400_000
        ),
    )
}

/// Returns true if one more id can be known at a time.
fn has_room(state: &State, now: UnixMillis) -> bool {
    state.members.len() < MEMBERS_MAX || longest_gone(state, now).is_some()
}

/// The former id that may be forgotten at a time, and has been gone for longest. One that was evicted never is: it needs an
/// operator's word to come back.
fn longest_gone(state: &State, now: UnixMillis) -> Option<&ClusterId> {
    let gone_for = |member: &Member| now.0.saturating_sub(member.since.0);
    let may_go = |member: &Member| {
        let former = matches!(member.status, MemberStatus::Left | MemberStatus::Forgotten);
        // A key that left stays refused for as long as its certificate is known to be good.
        let kept = match member.refused_until {
            _ if member.refused_keys.is_empty() => FORMER_KEPT_MILLIS,
            Some(until) if until > now => return false,
            Some(_) => FORMER_KEPT_MILLIS,
            None => FORMER_KEYS_KEPT_MILLIS,
        };
        former && gone_for(member) >= kept
    };
    let former = state.members.iter().filter(|(_, member)| may_go(member));
    former
        .min_by_key(|(_, member)| member.since)
        .map(|(cluster, _)| cluster)
}

/// A cluster is to be known that is not: where the ids are used up, another one is forgotten.
fn make_room(state: &mut State, cluster: &ClusterId, step: &Step) {
    if state.members.contains_key(cluster) || state.members.len() < MEMBERS_MAX {
        return;
    }
    if let Some(gone) = longest_gone(state, step.recorded_at).cloned() {
        state.members.remove(&gone);
    }
}

/// Time at which the last certificate of all refused keys of a member ends, with those that it has now.
fn refused_until(member: &Member) -> Option<UnixMillis> {
    let mut until = UnixMillis::default();
    if !member.refused_keys.is_empty() {
        until = member.refused_until?;
    }
    if !member.contested_keys.is_empty() {
        return None;
    }
    for known in member.keys.values() {
        until = until.max(known.terms.not_after?);
    }
    Some(until)
}

pub(super) fn evict(state: &State, cluster: &ClusterId, operator: &str) -> Result<Vec<Draft>, Rejection> {
    current(state, cluster)?;
    let operator = operator.into();
    Ok(vec![Draft::decided(cluster, Fact::MemberEvicted { operator })])
}

/// Admits a key, a fingerprint or both, leaving out what is admitted already.
pub(super) fn rekey(
    state: &State,
    cluster: &ClusterId,
    operator: &str,
    key: Option<KeyFingerprint>,
    cluster_fingerprint: Option<&str>,
) -> Result<Vec<Draft>, Rejection> {
    let member = match state.member(cluster) {
        // The operator's decision is about the key: it joins again with whatever cluster fingerprint it states.
        Some(evicted) if evicted.status == MemberStatus::Evicted && key.is_some() => evicted,
        _ => current(state, cluster)?,
    };
    if key.is_none() && cluster_fingerprint.is_none() {
        return Err(Rejection::operator(format!(
            "nothing to admit for {cluster}: name a key fingerprint, a cluster fingerprint, or both"
        )));
    }
    if let Some(refused) = key.filter(|key| member.refused_keys.contains(key)) {
        return Err(former_key(cluster, refused));
    }
    if let Some(revoked) = key.filter(|key| state.revoked_keys.contains_key(key)) {
        return Err(keys::revoked_key(cluster, revoked));
    }
    let key = key.filter(|key| !member.keys.contains_key(key));
    let living = member
        .keys
        .values()
        .filter(|known| !known.ended(state.recorded_at));
    if key.is_some() && living.count() >= MEMBER_KEYS_MAX {
        return Err(Rejection::operator(format!(
            "{cluster} has {MEMBER_KEYS_MAX} admitted keys, the most a member may have: evict it and let it \
             join again with a new key"
        )));
    }
    let fingerprint = cluster_fingerprint.filter(|&fingerprint| {
        member.is_current()
            && fingerprint != &*member.cluster_fingerprint
            && member.next_cluster_fingerprint.as_deref() != Some(fingerprint)
    });
    if key.is_none() && fingerprint.is_none() {
        return Ok(Vec::new());
    }
    let rekeyed = Fact::MemberRekeyed {
        operator: operator.into(),
        key,
        cluster_fingerprint: fingerprint.map(Into::into),
        terms: KeyTerms {
            accepted: key.map(|_| KeyAcceptance::ByOperator),
            ..KeyTerms::default()
        },
    };
    Ok(vec![Draft::decided(cluster, rekeyed)])
}

/// Recorded each time: an old copy of the log may hold such a decision, and it counts only from the hub that took it.
pub(super) fn forget(state: &State, cluster: &ClusterId, operator: &str) -> Result<Vec<Draft>, Rejection> {
    match state.member(cluster) {
        Some(member) if member.is_current() => Err(Rejection::operator(format!(
            "{cluster} is a member: what it exports is not to be forgotten. End its membership instead: \
             `{}`",
            advice::member_evict(cluster)
        ))),
        None if !has_room(state, state.recorded_at) => Err(too_many_members(cluster)),
        _ => {
            let operator = operator.into();
            Ok(vec![Draft::decided(cluster, Fact::MemberForgotten { operator })])
        }
    }
}

/// The member, or the rejection for a cluster that is none.
pub(super) fn current<'a>(state: &'a State, cluster: &ClusterId) -> Result<&'a Member, Rejection> {
    state.current_member(cluster).ok_or_else(|| stranger_to(cluster))
}

/// The refusal to a cluster that is no member.
pub(super) fn stranger_to(cluster: &ClusterId) -> Rejection {
    Rejection::NotAMember {
        cluster: cluster.clone(),
    }
}

/// A membership or an incarnation begins. Facts of the incarnation before stay until its listing is complete.
pub(super) fn joined(
    state: &mut State,
    cluster: &ClusterId,
    key: KeyFingerprint,
    fingerprint: &str,
    terms: &KeyTerms,
    step: &mut Step,
) {
    let joins = |member: &mut Member| {
        member.status = MemberStatus::Joined;
        member.incarnation = step.revision;
        member.ended = None;
        member.cluster_fingerprint = fingerprint.into();
        member.next_cluster_fingerprint = None;
        let known = member.keys.entry(key).or_default();
        known.learn(terms, step.recorded_at);
        member.connectivity = Connectivity::Live;
        member.since = step.recorded_at;
        member.listings.clear();
    };
    make_room(state, cluster, step);
    state.change_member(cluster, || stranger(step), joins);
    // The former cluster's withdrawals do not come back with the new one.
    for service in remembered::forget_all_of(state, cluster) {
        exports::withdraw(state, cluster, &service, step);
    }
    lost::set_withdrawn(state, cluster, false, step);
    profile::rederive(state, cluster, step);
}

/// A membership ends: its facts go, its keys stay refused.
pub(super) fn ended(state: &mut State, cluster: &ClusterId, status: MemberStatus, step: &mut Step) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    member.status = status;
    member.ended = Some(step.revision);
    member.since = step.recorded_at;
    member.next_cluster_fingerprint = None;
    member.listings.clear();
    member.refused_until = refused_until(member);
    let refused = Arc::make_mut(&mut member.refused_keys);
    refused.extend(std::mem::take(&mut member.keys).into_keys());
    refused.append(&mut member.contested_keys);
    let facts = std::mem::take(&mut member.facts);
    let held = remembered::forget_all_of(state, cluster);
    lost::ended(state, cluster);
    let exported: Vec<ServiceKey> = facts.keys().filter_map(exported_service).collect();
    for service in exported.iter().chain(&held) {
        exports::withdraw(state, cluster, service, step);
    }
    state.derived.remove(&DerivedKey::Profile(cluster.clone()), step);
}

fn exported_service(key: &FactKey) -> Option<ServiceKey> {
    match key {
        FactKey::Export(service) => Some(service.clone()),
        _ => None,
    }
}

/// Nothing of the cluster is to be waited for. A current member is never forgotten.
pub(super) fn forgotten(state: &mut State, cluster: &ClusterId, step: &Step) {
    let forgets = |member: &mut Member| {
        if !member.is_current() {
            member.status = MemberStatus::Forgotten;
            member.since = step.recorded_at;
        }
    };
    make_room(state, cluster, step);
    state.change_member(cluster, || stranger(step), forgets);
}

pub(super) fn rekeyed(state: &mut State, cluster: &ClusterId, cluster_fingerprint: Option<&str>) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    if let Some(fingerprint) = cluster_fingerprint {
        member.next_cluster_fingerprint = Some(fingerprint.into());
    }
}

/// The initial knowledge of an unknown cluster.
fn stranger(step: &Step) -> Member {
    Member {
        status: MemberStatus::Forgotten,
        incarnation: Default::default(),
        ended: None,
        cluster_fingerprint: "".into(),
        next_cluster_fingerprint: None,
        keys: BTreeMap::new(),
        contested_keys: BTreeSet::new(),
        refused_keys: Arc::default(),
        refused_until: None,
        connectivity: Connectivity::Lost,
        withdrawn: false,
        leaving: None,
        since: step.recorded_at,
        listings: BTreeMap::new(),
        facts: Map::new(),
        taken_back: TakenBack::default(),
    }
}
