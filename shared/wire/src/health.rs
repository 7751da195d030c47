//! A cluster's health ↔ protobuf. Fields that older agents leave out stay absent.

use proto::v1;

use super::common::{Taken, unknown_value};
use model::{
    ApiServer, ApiServerState, ControlPlane, ControlPlaneReason, ControlPlaneVerdict, Health, NodesHealth,
};

pub(super) fn to_proto(health: &Health) -> v1::Health {
    let control_plane = match health.control_plane {
        ControlPlane::Ready => v1::ControlPlane::Ready,
        ControlPlane::NotReady => v1::ControlPlane::NotReady,
        ControlPlane::Unreachable => v1::ControlPlane::Unreachable,
    };
    v1::Health {
        kubernetes_version: health.kubernetes_version.to_string(),
        control_plane: control_plane.into(),
        failed_checks: health.failed_checks.iter().map(ToString::to_string).collect(),
        verdict: health.verdict.as_ref().map(verdict_to_proto),
        nodes: health.nodes.as_ref().map(nodes_to_proto),
    }
}

pub(super) fn from_proto(health: v1::Health) -> Taken<Health> {
    let control_plane = match v1::ControlPlane::try_from(health.control_plane) {
        Ok(v1::ControlPlane::Ready) => ControlPlane::Ready,
        Ok(v1::ControlPlane::NotReady) => ControlPlane::NotReady,
        Ok(v1::ControlPlane::Unreachable) => ControlPlane::Unreachable,
        Ok(v1::ControlPlane::Unspecified) | Err(_) => {
            return Err(unknown_value("controlPlane", health.control_plane));
        }
    };
    Ok(Health {
        kubernetes_version: health.kubernetes_version.into(),
        control_plane,
        failed_checks: health.failed_checks.into_iter().map(Box::from).collect(),
        verdict: health.verdict.map(verdict_from_proto),
        nodes: health.nodes.map(nodes_from_proto),
    })
}

fn verdict_to_proto(verdict: &ControlPlaneVerdict) -> v1::ControlPlaneVerdict {
    v1::ControlPlaneVerdict {
        reason: reason_to_proto(verdict.reason).into(),
        api_servers_fresh: verdict.api_servers_fresh,
        api_servers_expected: verdict.api_servers_expected,
        api_servers: verdict.api_servers.iter().map(api_server_to_proto).collect(),
    }
}

fn verdict_from_proto(verdict: v1::ControlPlaneVerdict) -> ControlPlaneVerdict {
    let known = ControlPlaneReason::ALL.into_iter();
    let reason = known
        .into_iter()
        .find(|reason| i32::from(reason_to_proto(*reason)) == verdict.reason);
    ControlPlaneVerdict {
        // A hub serves agents of the next release: what it does not know of their words it takes as unknown.
        reason: reason.unwrap_or(ControlPlaneReason::ReasonNotKnown),
        api_servers_fresh: verdict.api_servers_fresh,
        api_servers_expected: verdict.api_servers_expected,
        api_servers: verdict
            .api_servers
            .into_iter()
            .map(api_server_from_proto)
            .collect(),
    }
}

fn reason_to_proto(reason: ControlPlaneReason) -> v1::ControlPlaneReason {
    match reason {
        ControlPlaneReason::Healthy => v1::ControlPlaneReason::Healthy,
        ControlPlaneReason::HealthyNoIdentity => v1::ControlPlaneReason::HealthyNoIdentity,
        ControlPlaneReason::ApiServersDegraded => v1::ControlPlaneReason::ApiServersDegraded,
        ControlPlaneReason::ApiServerFlapping => v1::ControlPlaneReason::ApiServerFlapping,
        ControlPlaneReason::SharedIdentity => v1::ControlPlaneReason::SharedIdentity,
        ControlPlaneReason::ApiServerNotReady => v1::ControlPlaneReason::ApiServerNotReady,
        ControlPlaneReason::ApiServerUnreachable => v1::ControlPlaneReason::ApiServerUnreachable,
        ControlPlaneReason::IdentityLeasesStale => v1::ControlPlaneReason::IdentityLeasesStale,
        ControlPlaneReason::EtcdUnhealthy => v1::ControlPlaneReason::EtcdUnhealthy,
        ControlPlaneReason::ControllerManagerLeaderLost => {
            v1::ControlPlaneReason::ControllerManagerLeaderLost
        }
        ControlPlaneReason::SchedulerLeaderLost => v1::ControlPlaneReason::SchedulerLeaderLost,
        ControlPlaneReason::Starting => v1::ControlPlaneReason::Starting,
        ControlPlaneReason::AgentIsolated => v1::ControlPlaneReason::AgentIsolated,
        ControlPlaneReason::HealthNotReadable => v1::ControlPlaneReason::HealthNotReadable,
        ControlPlaneReason::ReasonNotKnown => v1::ControlPlaneReason::Unspecified,
    }
}

pub(super) fn api_server_to_proto(server: &ApiServer) -> v1::ApiServer {
    let state = match server.state {
        ApiServerState::Unknown => v1::ApiServerState::ApiServerUnknown,
        ApiServerState::Fresh => v1::ApiServerState::ApiServerFresh,
        ApiServerState::Late => v1::ApiServerState::ApiServerLate,
        ApiServerState::Dead => v1::ApiServerState::ApiServerDead,
    };
    v1::ApiServer {
        host: server.host.to_string(),
        state: state.into(),
        restarts: server.restarts,
        restarts_inferred: server.restarts_inferred,
        shared: server.shared,
    }
}

fn api_server_from_proto(server: v1::ApiServer) -> ApiServer {
    let state = match v1::ApiServerState::try_from(server.state) {
        Ok(v1::ApiServerState::ApiServerFresh) => ApiServerState::Fresh,
        Ok(v1::ApiServerState::ApiServerLate) => ApiServerState::Late,
        Ok(v1::ApiServerState::ApiServerDead) => ApiServerState::Dead,
        Ok(v1::ApiServerState::ApiServerUnknown | v1::ApiServerState::Unspecified) | Err(_) => {
            ApiServerState::Unknown
        }
    };
    ApiServer {
        host: server.host.into(),
        state,
        restarts: server.restarts,
        restarts_inferred: server.restarts_inferred,
        shared: server.shared,
    }
}

fn nodes_to_proto(nodes: &NodesHealth) -> v1::NodesHealth {
    match nodes {
        NodesHealth::NotReadable => v1::NodesHealth {
            not_readable: true,
            ..Default::default()
        },
        // A hub of the release before says that it is unknown.
        NodesHealth::Starting => v1::NodesHealth {
            not_readable: true,
            starting: true,
            ..Default::default()
        },
        NodesHealth::Counted {
            total,
            not_ready,
            named,
        } => v1::NodesHealth {
            not_readable: false,
            total: *total,
            not_ready: *not_ready,
            not_ready_names: named.iter().map(ToString::to_string).collect(),
            starting: false,
        },
    }
}

fn nodes_from_proto(nodes: v1::NodesHealth) -> NodesHealth {
    if nodes.starting {
        return NodesHealth::Starting;
    }
    if nodes.not_readable {
        return NodesHealth::NotReadable;
    }
    NodesHealth::Counted {
        total: nodes.total,
        not_ready: nodes.not_ready,
        named: nodes.not_ready_names.into_iter().map(Box::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent of the next release judges by what this hub has no word for.
    #[test]
    fn words_of_a_later_release_are_taken_as_unknown() {
        let said = v1::Health {
            control_plane: v1::ControlPlane::Ready.into(),
            verdict: Some(v1::ControlPlaneVerdict {
                reason: 1_000,
                api_servers: vec![v1::ApiServer {
                    state: 1_000,
                    ..Default::default()
                }],
                ..Default::default()
            }),
            ..Default::default()
        };
        let verdict = from_proto(said).expect("taken").verdict.expect("one");
        assert_eq!(verdict.reason, ControlPlaneReason::ReasonNotKnown);
        assert_eq!(verdict.reason.is_healthy(), None);
        assert_eq!(verdict.api_servers[0].state, ApiServerState::Unknown);
    }
}
