//! Owns: the law on members that stay lost: only they are withdrawn, and not the last ready endpoints of a service.
//! Never: knows time, or how the hub comes to it.

use fold::{Connectivity, DerivedContent, DerivedKey, Member};
use model::{ClusterId, EndpointSlice, EndpointView, ServiceKey, policy::LossAction, served_as};

use oracle::laws::{Guarded, Law};

use super::hub::Hub;

/// **None of the last endpoints is withdrawn, and nobody who is not lost.**
pub(super) fn withdrawn(hub: &Hub, guarded: &mut Guarded) -> Result<(), String> {
    let members = hub.state().members().iter();
    for (cluster, member) in members.filter(|(_, member)| member.is_withdrawn()) {
        if !member.is_current() || member.connectivity() != Connectivity::Lost {
            return Err(Law::Withdrawn.broken(format!("{cluster} is withdrawn and not lost")));
        }
        for (_, export) in member.exports() {
            guarded.count(Law::Withdrawn, 1);
            looked_at(hub, cluster, member, &export.service)?;
        }
    }
    Ok(())
}

fn looked_at(hub: &Hub, cluster: &ClusterId, member: &Member, service: &ServiceKey) -> Result<(), String> {
    let state = hub.state();
    let broken =
        |why: &str| Err(Law::Withdrawn.broken(format!("{service} of {cluster}, which is lost: {why}")));
    let served = state.members().iter().any(|(other, member)| {
        member.is_current() && !member.is_withdrawn() && has_ready(hub, other, service)
    });
    let stands = has_slices(hub, cluster, service);
    let action = state.loss().action;
    if served && action == LossAction::Withdraw && stands {
        return broken("its endpoints stand beside those of others");
    }
    if served && action == LossAction::NotReady && has_ready(hub, cluster, service) {
        return broken("its endpoints are ready beside those of others");
    }
    let reported = || {
        member
            .slices_of(service)
            .any(|(_, slice)| may_stand(hub, cluster, slice))
    };
    let plain = cluster.as_str() != super::hostile::NAME && !super::refusals::is_refused(hub, cluster);
    if !served && plain && reported() && !stands {
        return broken("nobody else answers, and its endpoints went");
    }
    Ok(())
}

/// Returns true if a reported slice answers, on a port that its cluster may serve. Without such a port nobody was ever
/// sent it.
pub(super) fn may_stand(hub: &Hub, cluster: &ClusterId, slice: &EndpointSlice) -> bool {
    let import = DerivedKey::Import(slice.key.service.clone());
    let import = hub.state().derived(&import).map(|derived| &derived.content);
    let Some(DerivedContent::Import(import)) = import else {
        return false;
    };
    let member = hub.state().current_member(cluster).into_iter();
    let mut exports = member.flat_map(|member| member.exports().map(|(_, export)| export));
    let Some(export) = exports.find(|export| export.service == slice.key.service) else {
        return false;
    };
    let mut ports = slice.ports.iter();
    let has_port = ports.any(|port| served_as(port, &export.ports, import.eligible_ports(cluster)).is_some());
    has_port && slice.endpoints.iter().any(EndpointView::is_ready)
}

pub(super) fn has_ready(hub: &Hub, cluster: &ClusterId, service: &ServiceKey) -> bool {
    slices(hub, cluster, service).any(|ready| ready)
}

pub(super) fn has_slices(hub: &Hub, cluster: &ClusterId, service: &ServiceKey) -> bool {
    slices(hub, cluster, service).next().is_some()
}

/// Of each derived slice of a cluster behind a service, whether it has a ready endpoint.
fn slices<'a>(
    hub: &'a Hub,
    cluster: &'a ClusterId,
    service: &'a ServiceKey,
) -> impl Iterator<Item = bool> + 'a {
    hub.state()
        .all_derived()
        .filter_map(move |(_, derived)| match &derived.content {
            DerivedContent::Slice(slice)
                if slice.key.service == *service && slice.key.source_cluster == *cluster =>
            {
                Some(slice.endpoints.iter().any(EndpointView::is_ready))
            }
            _ => None,
        })
}
