//! The Leases of source clusters, as an agent of a world looks at them: by the agent's own machines, on its own clock.

use std::collections::BTreeSet;

use agent_engine::{
    expiry::{ExpiryMetrics, SourceLeases},
    lease::Monotonic,
};
use api::{
    identity_lease::{IdentityLease, IdentityLeaseMetrics, Replica},
    names::AGENT_MANAGER,
};
use model::ClusterId;
use tokio::runtime::Runtime;

use super::{AGENT_NAMESPACE, Agent, Handle, WritePermit};
use crate::still::{look_every, settings};

/// The duration that the Lease of an agent itself states; nothing reads it here.
const IDENTITY_LEASE_SECONDS: i32 = 40;

/// The Leases of sources as an agent in this pod looks at them.
pub(super) fn leases(
    client: api::server::Client,
    pod: &str,
    expires: bool,
    (handle, permit): (&Handle, &WritePermit),
    clock: Monotonic,
) -> SourceLeases {
    let replica = Replica {
        program: AGENT_MANAGER,
        namespace: AGENT_NAMESPACE.to_owned(),
        place: pod.to_owned(),
        host: pod.to_owned(),
        duration_seconds: IDENTITY_LEASE_SECONDS,
    };
    let metrics = IdentityLeaseMetrics::default();
    let identity = IdentityLease::new(client.clone(), replica, clock.clone(), || false, metrics);
    SourceLeases::new(
        client,
        (AGENT_NAMESPACE, pod),
        settings(expires),
        (handle.clone(), permit.clone(), identity.own()),
        clock,
        ExpiryMetrics::default(),
    )
}

impl Agent {
    /// Returns true if it is time to look at the Leases of sources.
    pub(crate) fn is_to_look_at_sources(&self, now: u64) -> bool {
        self.looked_at_sources.is_none_or(|at| now >= at + look_every())
    }

    /// Looks at them, renews what is to be renewed, and takes away what expired.
    pub(crate) fn look_at_sources(&mut self, runtime: &Runtime, now: u64) {
        self.looked_at_sources = Some(now);
        let may_write = self.may_write();
        self.permit.switch(may_write);
        if !may_write && self.leads() {
            self.permit.set(Some(tokio::time::Instant::now())); // it was given, and has run out
        }
        self.way.by_lease(true);
        // What fails is looked at again.
        let _ = runtime.block_on(self.sources.turn());
        self.way.by_lease(false);
    }

    /// The sources that a hub confirms over this agent's own session, which is open.
    pub(crate) fn confirmed_sources(&self) -> BTreeSet<ClusterId> {
        self.handle.read(|desired| {
            let sources = desired.clusters_of_slices().into_iter().cloned();
            sources.filter(|_| desired.is_confirmed()).collect()
        })
    }

    /// Returns true if it saw any of them expire, and not move since.
    pub(crate) fn has_expired_sources(&self) -> bool {
        self.handle.read(|desired| !desired.expired().is_empty())
    }
}
