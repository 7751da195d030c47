//! Owns: when a health is reported: a flip at once, anything else at most every 30 s, because every report is an event
//! and a write of a ClusterProfile.
//! Never: changes what is reported.

use std::{sync::Arc, time::Duration};

use shared::model::{Health, NodesHealth};

/// Shortest interval between reports without a flip.
pub const ORDINARY_EVERY: Duration = Duration::from_secs(30);

/// The last report and its time.
#[derive(Debug, Clone, Default)]
pub struct Pace(Option<(Arc<Health>, Duration)>);

impl Pace {
    /// The health, if it is to be reported now.
    pub fn due(&mut self, now: Duration, health: Health) -> Option<Arc<Health>> {
        if let Some((reported, at)) = &self.0 {
            let waits = !flips(reported, &health) && now.saturating_sub(*at) < ORDINARY_EVERY;
            if **reported == health || waits {
                return None;
            }
        }
        let health = Arc::new(health);
        self.0 = Some((health.clone(), now));
        Some(health)
    }
}

/// Returns true if a condition changes its status, or something is known for the first time.
fn flips(before: &Health, after: &Health) -> bool {
    let control_plane = |health: &Health| health.verdict.as_ref().map(|verdict| verdict.reason.is_healthy());
    let nodes = |health: &Health| {
        health.nodes.as_ref().map(|nodes| match nodes {
            NodesHealth::NotReadable | NodesHealth::Starting => None,
            NodesHealth::Counted { not_ready, .. } => Some(*not_ready == 0),
        })
    };
    control_plane(before) != control_plane(after)
        || nodes(before) != nodes(after)
        || before.kubernetes_version.is_empty() != after.kubernetes_version.is_empty()
}

#[cfg(test)]
mod tests {
    use shared::model::{ControlPlane, ControlPlaneReason, ControlPlaneVerdict};

    use super::*;

    fn health(reason: ControlPlaneReason, fresh: u32, not_ready: u32) -> Health {
        Health {
            kubernetes_version: "v1".into(),
            control_plane: ControlPlane::Ready,
            failed_checks: Vec::new(),
            verdict: Some(ControlPlaneVerdict {
                reason,
                api_servers_fresh: fresh,
                api_servers_expected: 3,
                api_servers: Vec::new(),
            }),
            nodes: Some(NodesHealth::Counted {
                total: 9,
                not_ready,
                named: Vec::new(),
            }),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn flips_go_at_once_and_counts_wait() {
        use ControlPlaneReason::{ApiServersDegraded, EtcdUnhealthy, Healthy};
        let mut pace = Pace::default();
        assert!(pace.due(at(0), health(Healthy, 3, 0)).is_some());
        assert!(pace.due(at(90), health(Healthy, 3, 0)).is_none(), "unchanged");
        assert!(pace.due(at(91), health(EtcdUnhealthy, 3, 0)).is_some());
        assert!(pace.due(at(92), health(Healthy, 3, 0)).is_some());
        assert!(
            pace.due(at(93), health(ApiServersDegraded, 2, 0)).is_none(),
            "True as before"
        );
        assert!(pace.due(at(94), health(ApiServersDegraded, 2, 1)).is_some());
        assert!(pace.due(at(123), health(ApiServersDegraded, 2, 2)).is_none());
        assert!(pace.due(at(124), health(ApiServersDegraded, 2, 3)).is_some());
    }

    /// The budget of KEP-4322: counts that change every second cost two reports a minute.
    #[test]
    fn counts_that_change_all_the_time_are_reported_every_thirty_seconds() {
        let mut pace = Pace::default();
        let reports = (0..600_u32).filter(|second| {
            let now = at(u64::from(*second));
            pace.due(
                now,
                health(ControlPlaneReason::ApiServersDegraded, *second % 3, 0),
            )
            .is_some()
        });
        assert!(reports.count() <= 20);
    }
}
