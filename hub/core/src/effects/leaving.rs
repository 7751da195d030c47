//! Effects of a member's leaving, or of its cancelling, in sentences for people. Pure.

use model::{ClusterId, ServiceKey};

use super::{
    sentences::Effects,
    services::{some, withdrawn},
};
use fold::{Departure, Member, State};

/// The effects of a departure.
pub(super) fn of(state: &State, cluster: &ClusterId, departure: &Departure) -> Effects {
    match departure {
        Departure::Ordered {
            after_millis, evicts, ..
        } => leave(state, cluster, *after_millis, *evicts),
        Departure::TakenBack { .. } => stay(state, cluster),
        // A departure that is due was reported before, and is not reported again.
        Departure::Due | Departure::OwnWill { .. } => leave_by_itself(state, cluster),
    }
}

/// It is to leave after a time: what goes at once, what stays until then, and what follows then.
fn leave(state: &State, cluster: &ClusterId, after_millis: u64, evicts: bool) -> Effects {
    let mut expected = Vec::new();
    if let Some(member) = state.current_member(cluster) {
        let (after, ends) = (after_millis / 1_000, if evicts { "is evicted" } else { "leaves" });
        expected.push(format!(
            "{cluster} {ends} in {after} s; until then `member stay {cluster}` cancels that"
        ));
        if member.leaving().is_some() {
            expected.push(format!("{cluster} was leaving already: the time starts again"));
        }
        expected.extend(endpoints(state, cluster, member));
        let services: Vec<&ServiceKey> = member.counted_services().collect();
        let what = format!("in {after} s its exports are withdrawn");
        expected.extend(withdrawn(state, cluster, &what, &services));
        expected.extend(keys(cluster, member, evicts));
    }
    Effects {
        expected,
        nothing: None,
    }
}

/// Endpoints that go at once, and services that nobody else serves.
fn endpoints(state: &State, cluster: &ClusterId, member: &Member) -> Vec<String> {
    let (elsewhere, only_here): (Vec<&ServiceKey>, Vec<&ServiceKey>) = member
        .counted_services()
        .partition(|service| state.is_served_without(cluster, service));
    let mut effects = Vec::new();
    if !elsewhere.is_empty() {
        effects.push(format!(
            "its endpoints go at once in every other cluster, because others have ready ones: {}",
            some(&elsewhere)
        ));
    }
    if !only_here.is_empty() {
        effects.push(format!(
            "its endpoints stay until then, or until others have ready ones: {}",
            some(&only_here)
        ));
    }
    effects
}

fn keys(cluster: &ClusterId, member: &Member, evicts: bool) -> Vec<String> {
    let back = if evicts {
        format!(
            "to come back, {cluster} needs a certificate with a new key, and an operator's `member rekey`"
        )
    } else {
        format!("the id {cluster} is free for a certificate with another key")
    };
    let keys = member.keys().keys();
    let keys = keys.map(|key| format!("key {key} stays refused from then on"));
    keys.chain([back]).collect()
}

/// It leaves of its own will, at once.
fn leave_by_itself(state: &State, cluster: &ClusterId) -> Effects {
    let mut expected = Vec::new();
    if let Some(member) = state.current_member(cluster) {
        expected.push(format!("{cluster} is no member any more; its session ends"));
        let services: Vec<&ServiceKey> = member.counted_services().collect();
        expected.extend(withdrawn(state, cluster, "its exports are withdrawn", &services));
        let evicts = member.leaving().is_some_and(|leaving| leaving.evicts);
        expected.extend(keys(cluster, member, evicts));
    }
    Effects {
        expected,
        nothing: None,
    }
}

/// It stays, though it was to leave.
fn stay(state: &State, cluster: &ClusterId) -> Effects {
    let member = state.current_member(cluster);
    let services: Vec<&ServiceKey> = member.into_iter().flat_map(Member::counted_services).collect();
    let endpoints = if services.is_empty() {
        "it exports nothing: no import changes".to_owned()
    } else {
        format!(
            "its endpoints count again in every other cluster: {}",
            some(&services)
        )
    };
    Effects {
        expected: vec![format!("{cluster} stays a member"), endpoints],
        nothing: Some(format!(
            "nothing to do: {cluster} is a member, and is not to leave"
        )),
    }
}
