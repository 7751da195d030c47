//! The effects of an operator's decision, in sentences for people, computed from the state on which it is decided.
//! Pure; the fold says whether the decision is allowed at all.

mod leaving;
mod loss;
mod policy;
mod sentences;
mod services;

use model::{ClusterId, KeyFingerprint, ServiceKey, TokenHash};

use self::{
    sentences::Effects,
    services::{NAMED_MAX, withdrawn},
};
use fold::{Command, Connectivity, Draft, KeyHolder, MemberStatus, State};

/// The effects of a command of an operator that leads to these events.
pub fn of(state: &State, command: &Command, events: &[Draft]) -> Vec<String> {
    let Effects { expected, nothing } = effects(state, command);
    if events.is_empty() {
        nothing.into_iter().collect()
    } else {
        expected
    }
}

fn effects(state: &State, command: &Command) -> Effects {
    match command {
        Command::Evict { cluster, .. } => evict(state, cluster),
        Command::Depart { cluster, departure } => leaving::of(state, cluster, departure),
        Command::Rekey {
            cluster,
            key,
            cluster_fingerprint,
            ..
        } => rekey(state, cluster, *key, cluster_fingerprint.as_deref()),
        Command::Forget { cluster, .. } => forget(state, cluster),
        Command::RevokeKey { holder, key, .. } => revoke(state, holder, *key),
        Command::ApplyPolicy { policy, .. } => Effects {
            expected: policy::of(state, policy),
            nothing: Some("nothing to do: this very policy is in force already".to_owned()),
        },
        Command::ReleaseBrake { cluster, .. } => release_brake(state, cluster),
        Command::ReleaseSelfPreservation { .. } => release_self_preservation(state),
        Command::ReleasePrecedence { service, .. } => release(state, service),
        Command::RevokeToken { token, .. } => revoke_token(state, *token),
        _ => Effects {
            expected: Vec::new(),
            nothing: None,
        },
    }
}

fn revoke_token(state: &State, token: TokenHash) -> Effects {
    let id = token.id();
    let used = state
        .join_tokens()
        .get(&token)
        .map_or(0, |known| known.used.len());
    Effects {
        expected: vec![format!(
            "nobody joins with token {id} any more; clusters that joined with it stay ({used})"
        )],
        nothing: Some(format!("nothing to do: token {id} is revoked already")),
    }
}

fn evict(state: &State, cluster: &ClusterId) -> Effects {
    let mut expected = Vec::new();
    if let Some(member) = state.current_member(cluster) {
        expected.push(format!(
            "{cluster} is no member any more (it joined at revision {}); its session ends",
            member.incarnation()
        ));
        let services: Vec<&ServiceKey> = member.counted_services().collect();
        expected.extend(withdrawn(state, cluster, "its exports are withdrawn", &services));
        for key in member.keys().keys() {
            expected.push(format!(
                "key {key} stays refused: to come back, {cluster} needs a certificate with a new key and an operator's \
                 word"
            ));
        }
    }
    Effects {
        expected,
        nothing: Some(format!("nothing to do: {cluster} is no member")),
    }
}

/// Effects of accepting a member's withdrawals: they take place as usual.
fn release_brake(state: &State, cluster: &ClusterId) -> Effects {
    let member = state.current_member(cluster);
    let held: Vec<&ServiceKey> = member
        .into_iter()
        .flat_map(|member| member.taken_back().held_exports())
        .collect();
    let count = match held.len() {
        1 => "1 export".to_owned(),
        more => format!("{more} exports"),
    };
    let what = format!("{count} that {cluster} withdrew end");
    let mut expected = withdrawn(state, cluster, &what, &held);
    expected.push(format!(
        "{cluster} stays a member with what it exports; it is put on hold again if it withdraws too much at once again"
    ));
    Effects {
        expected,
        nothing: Some(format!("nothing to do: no export of {cluster} is on hold")),
    }
}

/// Lists the members that would be withdrawn.
fn release_self_preservation(state: &State) -> Effects {
    let after = state.loss().after_millis / 1_000;
    let lost = state.members().iter().filter(|(_, member)| {
        member.is_current() && member.connectivity() == Connectivity::Lost && !member.is_withdrawn()
    });
    let lost: Vec<&str> = lost.map(|(cluster, _)| cluster.as_str()).collect();
    let mut named = lost
        .iter()
        .take(NAMED_MAX)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if let Some(more @ 1..) = lost.len().checked_sub(NAMED_MAX) {
        named.push_str(&format!(" and {more} more"));
    }
    Effects {
        expected: vec![format!(
            "members that stay lost are withdrawn {after} s after their last sign of life, until fewer are lost: {named}"
        )],
        nothing: Some("nothing to do: members that stay lost are withdrawn".to_owned()),
    }
}

fn rekey(
    state: &State,
    cluster: &ClusterId,
    key: Option<KeyFingerprint>,
    cluster_fingerprint: Option<&str>,
) -> Effects {
    let evicted = state
        .member(cluster)
        .filter(|member| member.status() == MemberStatus::Evicted);
    let member = state.current_member(cluster).or(evicted);
    let known = |key: &KeyFingerprint| member.is_some_and(|member| member.keys().contains_key(key));
    let mut expected = Vec::new();
    if let Some(key) = key.filter(|key| !known(key)) {
        let others = match member.map_or(0, |member| member.keys().len()) {
            0 => "it has no other".to_owned(),
            1 => "the key it has stays admitted".to_owned(),
            others => format!("the {others} keys it has stay admitted"),
        };
        expected.push(format!("{cluster} may connect with key {key}; {others}"));
        if evicted.is_some() {
            expected.push(format!(
                "{cluster} was evicted: with this key it becomes a member again, and lists what it exports"
            ));
        }
    }
    if let (Some(fingerprint), Some(member)) = (cluster_fingerprint, member)
        && fingerprint != member.cluster_fingerprint()
    {
        expected.push(format!(
            "{cluster} may be the cluster whose kube-system has the uid {fingerprint} (now {}); when that one \
             connects, a new incarnation begins and what it does not list is withdrawn",
            member.cluster_fingerprint()
        ));
    }
    Effects {
        expected,
        nothing: Some(format!(
            "nothing to do: all of it is admitted for {cluster} already"
        )),
    }
}

fn forget(state: &State, cluster: &ClusterId) -> Effects {
    let known = match state.member(cluster) {
        Some(member) if member.status() == MemberStatus::Forgotten => {
            format!("{cluster} was forgotten before")
        }
        Some(member) => format!(
            "{cluster} was a member until revision {}",
            member.ended().unwrap_or_default()
        ),
        None => format!("{cluster} is not known to this hub"),
    };
    Effects {
        expected: vec![
            format!("{known}; the hub no longer waits for it"),
            format!("objects that members still hold from {cluster} are removed there, with their endpoints"),
            format!("the id {cluster} is free: a cluster with any new key may join under it"),
        ],
        // It is recorded each time.
        nothing: None,
    }
}

/// Effects on the holder of the key, and on everybody else who has it.
fn revoke(state: &State, holder: &KeyHolder, key: KeyFingerprint) -> Effects {
    let mut expected = vec![format!(
        "key {key} is refused for ever, in any certificate; its open connections end"
    )];
    let came_of_it = match holder {
        KeyHolder::Member(_) => state.certified_over(key),
        KeyHolder::Operator(_) | KeyHolder::Reader(_) => Vec::new(),
    };
    for (cluster, other) in &came_of_it {
        expected.push(format!(
            "key {other} of {cluster} was certified over its sessions, and is refused for ever with it"
        ));
    }
    let goes =
        |cluster: &ClusterId, other: KeyFingerprint| other == key || came_of_it.contains(&(cluster, other));
    for (cluster, member) in state.members().iter() {
        let stay = member
            .keys()
            .keys()
            .filter(|other| !goes(cluster, **other))
            .count();
        match stay {
            same if same == member.keys().len() => {}
            0 => expected.push(format!(
                "{cluster} has no other key: it stays a member with its exports, and cannot connect until an operator \
                 admits a new one (`member rekey`)"
            )),
            more => expected.push(format!("{cluster} keeps {more} other keys")),
        }
    }
    match holder {
        KeyHolder::Member(cluster) if expected.len() == 1 => {
            expected.push(format!("{cluster} has no such key now"));
        }
        KeyHolder::Member(_) => {}
        KeyHolder::Operator(name) => expected.push(new_key_needed("operator", name)),
        KeyHolder::Reader(name) => expected.push(new_key_needed("reader", name)),
    }
    Effects {
        expected,
        nothing: Some(format!("nothing to do: key {key} is refused for ever already")),
    }
}

fn new_key_needed(role: &str, name: &str) -> String {
    format!("{role} {name} needs a certificate with a new key; other certificates of that name stay good")
}

/// Names the export that would come first: the oldest one.
fn release(state: &State, service: &ServiceKey) -> Effects {
    let held = state.contest(service).map(|contest| &contest.standing.cluster);
    let oldest = state.exporters(service).filter_map(|cluster| {
        let mut exports = state.current_member(cluster)?.exports();
        let (_, export) = exports.find(|(_, export)| export.service == *service)?;
        Some((export.created_at, cluster))
    });
    let (held, oldest) = (
        held.map(ToString::to_string).unwrap_or_default(),
        oldest
            .min()
            .map(|(_, cluster)| cluster.to_string())
            .unwrap_or_default(),
    );
    Effects {
        expected: vec![format!(
            "{held} no longer keeps the first place for {service}: the import follows the oldest accepted export, which is \
             {oldest}'s unless it is refused"
        )],
        nothing: None,
    }
}
