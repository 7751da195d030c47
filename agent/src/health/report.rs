//! Owns: the health that is reported, from the verdict and the count of nodes.
//! Never: judges.

use shared::model::{ControlPlane, ControlPlaneReason, ControlPlaneVerdict, Health, NodesHealth};

/// The health of a cluster. Hubs of before read of it what /readyz would say.
pub fn health(
    version: &str,
    verdict: ControlPlaneVerdict,
    failed_checks: &[Box<str>],
    nodes: Option<NodesHealth>,
) -> Health {
    let control_plane = match (verdict.reason, verdict.reason.is_healthy()) {
        (ControlPlaneReason::ApiServerUnreachable, _) | (_, None) => ControlPlane::Unreachable,
        (_, Some(false)) => ControlPlane::NotReady,
        (_, Some(true)) => ControlPlane::Ready,
    };
    let is_named = control_plane == ControlPlane::NotReady;
    Health {
        kubernetes_version: version.into(),
        control_plane,
        failed_checks: failed_checks.iter().filter(|_| is_named).cloned().collect(),
        verdict: Some(verdict),
        nodes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_of_before_reads_what_readyz_would_say() {
        let of = |reason| {
            let verdict = ControlPlaneVerdict {
                reason,
                api_servers_fresh: 0,
                api_servers_expected: 0,
                api_servers: Vec::new(),
            };
            let health = health("v1", verdict, &["etcd".into()], None);
            (health.control_plane, health.failed_checks.len())
        };
        assert_eq!(
            of(ControlPlaneReason::ApiServersDegraded),
            (ControlPlane::Ready, 0)
        );
        assert_eq!(of(ControlPlaneReason::EtcdUnhealthy), (ControlPlane::NotReady, 1));
        assert_eq!(
            of(ControlPlaneReason::ApiServerUnreachable),
            (ControlPlane::Unreachable, 0)
        );
        assert_eq!(
            of(ControlPlaneReason::AgentIsolated),
            (ControlPlane::Unreachable, 0)
        );
    }
}
