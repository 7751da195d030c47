//! The conditions of a profile that say how a member does: ControlPlaneHealthy and AllNodesHealthy, from what its agent
//! reports. Silence is Unknown, never False. An agent of a release that concluded nothing has its /readyz judged, and no
//! second condition; what it reported has the words, and so the digest, that it always had.

use std::sync::Arc;

use model::{
    ApiServer, ApiServerState, ControlPlane, ControlPlaneReason as Reason, ControlPlaneVerdict, Health,
    NodesHealth, UnixMillis, visible,
};

use super::{
    Connectivity,
    profile_content::{ConditionStatus, ConditionType, ProfileCondition},
};

/// Most API servers that a message names.
const NAMED_SERVERS_MAX: usize = 5;

/// Status, reason and message.
type Said = (ConditionStatus, &'static str, String);

/// The condition for the member's control plane.
pub(super) fn control_plane_healthy(
    connectivity: Connectivity,
    health: Option<&Arc<Health>>,
    last_transition: UnixMillis,
) -> ProfileCondition {
    let (status, reason, message) = match (connectivity, health) {
        (Connectivity::Lost, _) => lost(),
        (_, None) => (
            ConditionStatus::Unknown,
            "HealthNotReported",
            "The agent has not reported the health of its control plane yet.".to_owned(),
        ),
        (_, Some(health)) => match &health.verdict {
            Some(verdict) => judged(verdict, &health.failed_checks),
            None => by_readyz(health),
        },
    };
    ProfileCondition {
        condition_type: ConditionType::ControlPlaneHealthy,
        status,
        reason,
        message: message.into(),
        last_transition,
    }
}

/// The condition for all of the member's nodes; absent: its agent does not count them.
pub(super) fn all_nodes_healthy(
    connectivity: Connectivity,
    health: Option<&Arc<Health>>,
    last_transition: UnixMillis,
) -> Option<ProfileCondition> {
    let nodes = health?.nodes.as_ref()?;
    let (status, reason, message) = match (connectivity, nodes) {
        (Connectivity::Lost, _) => lost(),
        (_, NodesHealth::NotReadable) => (
            ConditionStatus::Unknown,
            "NodesNotReadable",
            "The agent cannot list the nodes: its ClusterRole must grant list and watch on nodes.".to_owned(),
        ),
        (_, NodesHealth::Starting) => (
            ConditionStatus::Unknown,
            "Starting",
            "The agent has just started, and some nodes are not ready: it waits for its tolerance."
                .to_owned(),
        ),
        (
            _,
            NodesHealth::Counted {
                total,
                not_ready,
                named,
            },
        ) => counted(*total, *not_ready, named),
    };
    Some(ProfileCondition {
        condition_type: ConditionType::AllNodesHealthy,
        status,
        reason,
        message: message.into(),
        last_transition,
    })
}

fn lost() -> Said {
    let message = "The hub hears nothing of this cluster's agent.".to_owned();
    (ConditionStatus::Unknown, "AgentLost", message)
}

fn counted(total: u32, not_ready: u32, named: &[Box<str>]) -> Said {
    match (total, not_ready) {
        (0, _) => (
            ConditionStatus::True,
            "NoNodes",
            "The cluster has no nodes.".to_owned(),
        ),
        (_, 0) => (
            ConditionStatus::True,
            "NodesReady",
            format!("{total} of {total} nodes are ready."),
        ),
        _ => {
            let more = not_ready as usize - named.len().min(not_ready as usize);
            let ready = total.saturating_sub(not_ready);
            let message = format!("{ready} of {total} nodes are ready; not: {}.", list(named, more));
            (ConditionStatus::False, "NodesNotReady", message)
        }
    }
}

fn judged(verdict: &ControlPlaneVerdict, failed_checks: &[Box<str>]) -> Said {
    let status = match verdict.reason.is_healthy() {
        Some(true) => ConditionStatus::True,
        Some(false) => ConditionStatus::False,
        None => ConditionStatus::Unknown,
    };
    (status, verdict.reason.as_str(), message(verdict, failed_checks))
}

fn message(verdict: &ControlPlaneVerdict, failed_checks: &[Box<str>]) -> String {
    let (fresh, expected) = (verdict.api_servers_fresh, verdict.api_servers_expected);
    let renew = format!("{fresh} of {expected} API servers renew their identity Lease");
    let named = |which: fn(&ApiServer) -> bool, say: fn(&ApiServer) -> String| {
        let all: Vec<Box<str>> = verdict
            .api_servers
            .iter()
            .filter(|server| which(server))
            .map(|server| say(server).into())
            .collect();
        let more = all.len().saturating_sub(NAMED_SERVERS_MAX);
        list(&all[..all.len() - more], more)
    };
    match verdict.reason {
        Reason::Healthy => format!("{renew}."),
        Reason::HealthyNoIdentity => {
            "The API server says that it is ready; nobody keeps identity Leases here that the agent may read."
                .to_owned()
        }
        Reason::ApiServersDegraded => {
            let others = named(
                |server| server.state != ApiServerState::Fresh,
                |server| format!("{} ({})", server.host, state(server.state)),
            );
            match &*others {
                "" => format!("{renew}."),
                others => format!("{renew}; not: {others}."),
            }
        }
        Reason::ApiServerFlapping => {
            let flapping = named(|server| server.restarts > 0, restarts);
            format!("{renew}; starting again within 10 minutes: {flapping}.")
        }
        Reason::SharedIdentity => {
            let shared = named(|server| server.shared, |server| server.host.to_string());
            format!("{renew}; several servers share one, for they have one host name: {shared}.")
        }
        Reason::ApiServerNotReady if failed_checks.is_empty() => {
            "The API server refuses connections, or says that it is not ready.".to_owned()
        }
        Reason::ApiServerNotReady => not_ready_message(failed_checks),
        Reason::ApiServerUnreachable => format!("The agent gets no answer from its API server; {renew}."),
        Reason::IdentityLeasesStale => {
            format!("The API server says that it is ready, but writes nothing: {renew}.")
        }
        Reason::EtcdUnhealthy if failed_checks.is_empty() => {
            "The API server says that etcd fails.".to_owned()
        }
        Reason::EtcdUnhealthy => {
            format!(
                "The API server says that etcd fails; failed checks: {}.",
                in_words(failed_checks)
            )
        }
        Reason::ControllerManagerLeaderLost => {
            "Nobody renews the leader's Lease of the controller manager.".to_owned()
        }
        Reason::SchedulerLeaderLost => "Nobody renews the leader's Lease of the scheduler.".to_owned(),
        Reason::Starting => "The agent has started and cannot say yet.".to_owned(),
        Reason::AgentIsolated => "The agent itself had no network.".to_owned(),
        Reason::ReasonNotKnown => {
            "The agent is of a later release and states a reason that this hub does not know: update the hub."
                .to_owned()
        }
        Reason::HealthNotReadable => {
            "The agent may not ask: its ClusterRole must grant get on the nonResourceURLs /readyz and /livez."
                .to_owned()
        }
    }
}

fn restarts(server: &ApiServer) -> String {
    let inferred = if server.restarts_inferred {
        ", inferred"
    } else {
        ""
    };
    format!("{} ({} times{inferred})", server.host, server.restarts)
}

fn state(state: ApiServerState) -> &'static str {
    match state {
        ApiServerState::Unknown => "not seen yet",
        ApiServerState::Fresh => "fresh",
        ApiServerState::Late => "late",
        ApiServerState::Dead => "dead",
    }
}

/// Names that a member chose, one behind the other.
fn in_words(names: &[Box<str>]) -> String {
    visible(&names.join(", "))
}

fn list(named: &[Box<str>], more: usize) -> String {
    let names = in_words(named);
    match more {
        0 => names,
        more => format!("{names}, and {more} more"),
    }
}

/// The verdict of an older agent, which judged by /readyz alone.
fn by_readyz(health: &Health) -> Said {
    match health.control_plane {
        ControlPlane::Ready => (
            ConditionStatus::True,
            "Healthy",
            "The API server says that it is ready.".to_owned(),
        ),
        ControlPlane::NotReady => (
            ConditionStatus::False,
            "APIServerNotReady",
            not_ready_message(&health.failed_checks),
        ),
        ControlPlane::Unreachable => (
            ConditionStatus::Unknown,
            "APIServerUnreachable",
            "The agent gets no answer from its API server.".to_owned(),
        ),
    }
}

fn not_ready_message(failed_checks: &[Box<str>]) -> String {
    if failed_checks.is_empty() {
        "The API server says that it is not ready.".to_owned()
    } else {
        format!(
            "The API server says that it is not ready; failed checks: {}.",
            in_words(failed_checks)
        )
    }
}
