//! Owns: the law on members that are to leave or have left: their endpoints go first, where others answer, and nothing of
//! them stays afterwards.
//! Never: knows time, or how the hub comes to it.

use fold::{DerivedContent, Member, State};
use model::{ClusterId, ServiceKey};

use oracle::laws::{Guarded, Law};

use super::{hub::Hub, lost};

/// **The endpoints of who is to leave stand only where no other answers, and nothing derived is of who is no member.**
pub(super) fn look(hub: &Hub, guarded: &mut Guarded) -> Result<(), String> {
    let state = hub.state();
    for (cluster, _) in state.leaving() {
        let Some(member) = state.current_member(cluster) else {
            return Err(Law::Leaving.broken(format!("{cluster} is to leave, and is no member")));
        };
        for (_, export) in member.exports() {
            guarded.count(Law::Leaving, 1);
            looked_at(hub, cluster, member, &export.service)?;
        }
    }
    no_ghost(state)
}

fn looked_at(hub: &Hub, cluster: &ClusterId, member: &Member, service: &ServiceKey) -> Result<(), String> {
    let broken =
        |why: &str| Err(Law::Leaving.broken(format!("{service} of {cluster}, which is to leave: {why}")));
    let state = hub.state();
    let counts = |member: &Member| {
        let held = member.taken_back().held_since(service).is_some();
        member.is_current() && !member.is_withdrawn() && member.leaving().is_none() && !held
    };
    let served = state
        .members()
        .iter()
        .any(|(other, member)| counts(member) && lost::has_ready(hub, other, service));
    let stands = lost::has_slices(hub, cluster, service);
    if served && stands {
        return broken("its endpoints stand beside those of others");
    }
    let plain = cluster.as_str() != super::hostile::NAME && !super::refusals::is_refused(hub, cluster);
    let answers = member
        .slices_of(service)
        .any(|(_, slice)| lost::may_stand(hub, cluster, slice));
    if !served && plain && !member.is_withdrawn() && answers && !stands {
        return broken("nobody else answers, and its endpoints went before it");
    }
    Ok(())
}

/// Nothing that is derived names a cluster that is no member.
fn no_ghost(state: &State) -> Result<(), String> {
    for (key, derived) in state.all_derived() {
        let ghost = match &derived.content {
            DerivedContent::Slice(slice) => Some(&slice.key.source_cluster),
            DerivedContent::Import(import) => import
                .clusters
                .keys()
                .find(|cluster| state.current_member(cluster).is_none()),
            DerivedContent::ExportStatus(_) | DerivedContent::Profile(_) => None,
        };
        if let Some(ghost) = ghost.filter(|cluster| state.current_member(cluster).is_none()) {
            return Err(Law::Leaving.broken(format!("{key} is of {ghost}, which is no member")));
        }
    }
    Ok(())
}
