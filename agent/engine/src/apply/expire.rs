//! Owns: the deletions because of expired Leases of sources, request by request, for the leader or a standby that
//! judged them: so it needs no permit to write. Each request states uid and version of what was seen.
//! Never: decides what has expired, or looks at a Lease.

use std::collections::{BTreeSet, VecDeque};

use model::{ClusterId, ServiceKey};

use super::{
    failure::Failure,
    handle::{Handle, Shared},
    lock::lock,
    metrics::ApplyMetrics,
    perform::Performer,
    seen::Seen,
    view::{self, RefusedFacts},
};
use crate::{
    lease::WritePermit,
    plan::{Action, Desired, Expired, Kind, Settling, Situation, expire, view::Refusals},
};

/// The deletions due for one service.
pub struct Expiring {
    performer: Performer,
    metrics: ApplyMetrics,
    service: ServiceKey,
    seen: Seen,
    actions: VecDeque<(Action, BTreeSet<ClusterId>)>,
}

impl Handle {
    /// The sources of imports, as the leader knows them.
    pub fn situation_of_sources(&self) -> Situation {
        let Shared {
            watches,
            config,
            desired,
            ..
        } = &*self.0;
        let here = watches.slices.is_listed().then(|| {
            let slices = watches.slices.all();
            let sources = slices.iter().filter_map(|slice| slice.source().cloned());
            sources.filter(|source| *source != config.cluster).collect()
        });
        let desired = lock(desired);
        let mut wanted: BTreeSet<ClusterId> = desired.clusters_of_slices().into_iter().cloned().collect();
        wanted.remove(&config.cluster);
        let told = desired.sources().iter();
        Situation {
            here,
            desired: wanted,
            confirmed: desired.is_confirmed(),
            ended: desired.is_membership_ended(),
            policies: told
                .filter_map(|source| Some((source.cluster.clone(), source.on_loss?)))
                .collect(),
        }
    }

    /// Waits until a hub may confirm other sources than before. For one reader.
    pub async fn confirmed_anew(&self) {
        self.0.confirmed.notified().await;
    }

    /// The services that have anything of these sources.
    pub fn services_of_expired(&self, expired: &Expired) -> BTreeSet<ServiceKey> {
        let settling = Settling {
            clusters: expired.keys().cloned().collect(),
            all: false,
        };
        let Shared { watches, config, .. } = &*self.0;
        view::services_of(watches, &Desired::default(), &config.cluster, &settling)
    }

    /// Returns the deletions due for a service.
    pub fn expiring(&self, service: &ServiceKey, expired: &Expired) -> Expiring {
        let Shared {
            client,
            watches,
            config,
            metrics,
            ..
        } = &*self.0;
        let (view, seen) = view::view(
            watches,
            &Desired::default(),
            &config.cluster,
            &config.deny,
            &RefusedFacts::new(),
            Refusals::default(),
            service,
        );
        let plan = expire(expired, &view, &config.cluster, service);
        let all = view.sources();
        let of_slice = |name: &str| {
            let slice = view.slices.get(name).and_then(|found| found.ours());
            slice.and_then(|slice| slice.content.source_cluster.clone())
        };
        let sources = |action: &Action| match action {
            Action::ApplySlice { name, .. }
            | Action::Delete {
                kind: Kind::Slice,
                name,
                ..
            } => of_slice(name).into_iter().collect(),
            _ => all.clone(),
        };
        let actions = plan.actions.into_iter().map(|action| {
            let sources = sources(&action);
            (action, sources)
        });
        Expiring {
            performer: Performer::new(client.clone(), watches.clone(), WritePermit::unlimited()),
            metrics: metrics.clone(),
            service: service.clone(),
            seen,
            actions: actions.collect(),
        }
    }
}

impl Expiring {
    /// The sources that cause the next request; `None` when nothing is left to do.
    pub fn next_is_of(&self) -> Option<&BTreeSet<ClusterId>> {
        self.actions.front().map(|(_, sources)| sources)
    }

    /// Makes the next request. One that fails leaves the rest for another look.
    pub async fn perform_next(&mut self) -> anyhow::Result<()> {
        let Some((action, _)) = self.actions.pop_front() else {
            return Ok(());
        };
        let done = self
            .performer
            .perform(&self.service, &action, &mut self.seen)
            .await;
        self.metrics
            .count(&action, done.as_ref().map_or_else(Failure::word, |()| "done"));
        if let Err(failure) = done {
            self.actions.clear();
            return Err(failure.into());
        }
        Ok(())
    }
}
