//! Members that are to leave: an operator said so, and until when. Their endpoints do not count any more wherever
//! another member has ready ones, their exports go with the membership when the time is over, and an operator can
//! cancel until then. Another module decides when the time is over, because that takes a clock.

use model::{ClusterId, Fact, KeyFingerprint, ServiceKey, UnixMillis, advice};

use super::{
    Departure, Draft, Member, MemberStatus, Rejection, State,
    derived::Step,
    fate::{self, Place},
    lost, membership, slice,
};

/// The longest that a member is to leave before it does, in milliseconds: a week. A departure that is delayed further
/// is forgotten.
pub const LEAVING_LONGEST_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The departure of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Name in the certificate of the operator who said so.
    pub operator: Box<str>,
    /// Time at which that was recorded.
    pub since: UnixMillis,
    /// Time at which the membership ends, by the hub's clock.
    pub until: UnixMillis,
    /// It ends as an eviction: the id needs an operator's word from then on.
    pub evicts: bool,
}

/// Returns the part of a departure to record.
pub(super) fn decide(
    state: &State,
    cluster: &ClusterId,
    departure: &Departure,
) -> Result<Vec<Draft>, Rejection> {
    match departure {
        Departure::Ordered {
            operator,
            at,
            after_millis,
            evicts,
        } => leave(state, cluster, operator, (*at, *after_millis), *evicts),
        Departure::TakenBack { operator } => stay(state, cluster, operator),
        Departure::Due => end(state, cluster),
        Departure::OwnWill { key } => leave_by_itself(state, cluster, *key),
    }
}

/// An operator has a member leave. A second departure replaces the first: its time and its kind count.
fn leave(
    state: &State,
    cluster: &ClusterId,
    operator: &str,
    (at, after_millis): (UnixMillis, u64),
    evicts: bool,
) -> Result<Vec<Draft>, Rejection> {
    membership::current(state, cluster)?;
    if after_millis > LEAVING_LONGEST_MILLIS {
        return Err(Rejection::operator(format!(
            "{cluster} cannot be told to leave in {} s: the longest delay is {} s. Choose a shorter --after",
            after_millis / 1_000,
            LEAVING_LONGEST_MILLIS / 1_000
        )));
    }
    let leaving = Fact::MemberLeaving {
        operator: operator.into(),
        until: UnixMillis(at.0.saturating_add(after_millis)),
        evicts,
    };
    Ok(vec![Draft::decided(cluster, leaving)])
}

/// An operator has a member stay that was to leave; nothing, if it was not. Too late, when it has left.
fn stay(state: &State, cluster: &ClusterId, operator: &str) -> Result<Vec<Draft>, Rejection> {
    let Some(member) = state.member(cluster) else {
        return Err(membership::stranger_to(cluster));
    };
    if !member.is_current() {
        return Err(too_late(cluster, member));
    }
    let stays = member.leaving.as_ref().map(|_| {
        let operator = operator.into();
        Draft::decided(cluster, Fact::MemberStays { operator })
    });
    Ok(Vec::from_iter(stays))
}

fn too_late(cluster: &ClusterId, former: &Member) -> Rejection {
    let ended = former.ended.unwrap_or_default();
    let back = match former.status {
        MemberStatus::Evicted => format!(
            "it was evicted at revision {ended}: to come back it needs a certificate with a new key, and an operator's \
             word for that key (`member rekey {cluster}`)"
        ),
        _ => format!(
            "its membership ended at revision {ended}: to come back it needs a certificate with a new key (`{} --force`)",
            advice::certs_member("DIR", Some(cluster))
        ),
    };
    Rejection::operator(format!("too late for {cluster} to stay: {back}"))
}

/// The time of a leaving member is over: its membership ends as decided. Nothing, if it is not to leave.
fn end(state: &State, cluster: &ClusterId) -> Result<Vec<Draft>, Rejection> {
    let member = membership::current(state, cluster)?;
    let leaving = member.leaving.as_ref();
    Ok(Vec::from_iter(leaving.map(|leaving| {
        Draft::decided(cluster, ends_with(Some(leaving)))
    })))
}

/// A member leaves of its own will, at once. One that is to be evicted does not escape that, and a key that is not admitted
/// ends nothing.
fn leave_by_itself(state: &State, cluster: &ClusterId, key: KeyFingerprint) -> Result<Vec<Draft>, Rejection> {
    let member = membership::current(state, cluster)?;
    if !member.keys.contains_key(&key) {
        return Err(membership::unknown_key(cluster, key));
    }
    Ok(vec![Draft::decided(cluster, ends_with(member.leaving.as_ref()))])
}

fn ends_with(leaving: Option<&Leaving>) -> Fact {
    match leaving {
        Some(leaving) if leaving.evicts => Fact::MemberEvicted {
            operator: leaving.operator.clone(),
        },
        _ => Fact::MemberLeft,
    }
}

/// An operator's decision was recorded: from here on a member's endpoints do not count (or did not before, and only the
/// time changes), or, if it stays, they count again.
pub(super) fn said(state: &mut State, cluster: &ClusterId, fact: &Fact, step: &mut Step) {
    let leaving = match fact {
        Fact::MemberLeaving {
            operator,
            until,
            evicts,
        } => Some(Leaving {
            operator: operator.clone(),
            since: step.recorded_at,
            until: *until,
            evicts: *evicts,
        }),
        _ => None,
    };
    set(state, cluster, leaving, step);
}

fn set(state: &mut State, cluster: &ClusterId, leaving: Option<Leaving>, step: &mut Step) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    let (leaves, left) = (leaving.is_some(), member.leaving.is_some());
    member.leaving = leaving;
    if leaves == left {
        return;
    }
    let services: Vec<ServiceKey> = member.counted_services().cloned().collect();
    if leaves {
        state.leaving.insert(cluster.clone(), ());
    } else {
        state.leaving.remove(cluster);
    }
    for service in &services {
        if !leaves {
            slice::rederive_all(state, service, cluster, step);
        }
        lost::settle(state, service, step);
    }
}

impl Member {
    /// Its departure and the time; `None`: it is not leaving, or has left.
    pub fn leaving(&self) -> Option<&Leaving> {
        self.leaving.as_ref()
    }
}

impl State {
    /// Returns true if another counted member has a ready endpoint behind a service.
    pub fn is_served_without(&self, cluster: &ClusterId, service: &ServiceKey) -> bool {
        fate::is_served(self, service, |other| {
            other != cluster && self.counts(other, service)
        })
    }

    /// The members that are to leave, with when, in the order of their ids.
    pub fn leaving(&self) -> impl Iterator<Item = (&ClusterId, &Leaving)> {
        self.leaving.keys().filter_map(|cluster| {
            let member = self.current_member(cluster)?;
            Some((cluster, member.leaving()?))
        })
    }

    /// Returns true if a member's endpoints behind a service count for the others as it reports them: it is neither withdrawn nor to
    /// leave, and its export is not held.
    pub(super) fn counts(&self, cluster: &ClusterId, service: &ServiceKey) -> bool {
        fate::place(self, service, cluster) == Place::Counts
    }
}
