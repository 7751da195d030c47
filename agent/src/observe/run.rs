//! The task that observes: it follows the watches and the health of the cluster, and keeps the outbox true.
//! It owns the observer; nothing else states facts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::{
    api::ClusterProperty,
    model::{Fact, FactKey, ListingGroup, ServiceKey},
    wire::encode_fact,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Observer;
use crate::{
    health::watch::HealthWatch,
    outbox::Outbox,
    watch::{Dirty, Watched, Watches, Whole},
};

/// Inputs and output of observing.
pub struct Observing {
    /// The cluster.
    pub watches: Watches,
    /// Its ClusterProperties.
    pub properties: Watched<Whole<ClusterProperty>>,
    /// Turns objects into facts.
    pub observer: Observer,
    /// The queue that the facts go to.
    pub outbox: Arc<Mutex<Outbox>>,
    /// Tells that the outbox changed.
    pub outbox_changed: watch::Sender<u64>,
}

impl Observing {
    /// Runs until `drain`, with the health of the control plane and the nodes.
    pub async fn run(mut self, health: HealthWatch, drain: CancellationToken) -> anyhow::Result<()> {
        let (reporting, mut reports) = mpsc::channel(1);
        let mut watching_health = std::pin::pin!(health.run(reporting, drain.clone()));
        let (changed, properties_changed) = (self.changed_services(), Dirty::<()>::default());
        self.properties.mark_changes(&properties_changed, |_| Some(()));
        let unreadable_in = Dirty::<Box<str>>::default();
        self.watches.mark_unreadable(&unreadable_in);
        let watches = self.watches.clone();
        let mut exports_known = std::pin::pin!(known(&watches));
        let mut properties_listed = self.properties.listed();
        let mut exports_awaited = true;
        loop {
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                () = &mut watching_health, if !drain.is_cancelled() => {}
                () = &mut exports_known, if exports_awaited => {
                    exports_awaited = !self.look([]);
                    exports_known.set(known(&watches));
                }
                Some(report) = reports.recv() => {
                    let fact = encode_fact(&Fact::HealthReported(report));
                    self.outbox().set(FactKey::Health, Some(fact));
                }
                _ = properties_changed.taken() => self.look_at_properties(),
                Ok(()) = properties_listed.changed() => self.look_at_properties(),
                namespaces = unreadable_in.taken() => {
                    let namespaces = namespaces.into_iter().collect();
                    let services = self.observer.services_in(&namespaces, &self.watches);
                    exports_awaited = !self.look(services);
                }
                // Last, because it may always have something.
                services = changed.taken() => {
                    // A kind that is not served any more makes what changed wait until it is known again.
                    exports_awaited = !self.look(services);
                }
            }
            // Health is a group of its own: it is stated once it is known, whatever else can be listed.
            if self.properties.is_listed() && !self.outbox().is_complete(ListingGroup::Properties) {
                self.outbox().complete(ListingGroup::Properties);
            }
            self.outbox_changed.send_modify(|version| *version += 1);
        }
    }

    /// Marks the services that an event concerns.
    fn changed_services(&self) -> Dirty<ServiceKey> {
        let changed = Dirty::default();
        let watches = &self.watches;
        watches.exports.mark_services(&changed);
        watches.services.mark_services(&changed);
        watches.slices.mark_services(&changed);
        changed
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    /// False while they wait.
    fn look(&mut self, services: impl IntoIterator<Item = ServiceKey>) -> bool {
        self.observer
            .services_changed(services, &self.watches, &mut lock(&self.outbox))
    }

    fn look_at_properties(&mut self) {
        if self.properties.is_listed() {
            self.observer
                .look_at_properties(&self.properties, &mut lock(&self.outbox));
        }
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns once every kind that exports are joined from has been listed.
pub async fn known(watches: &Watches) {
    let mut listed = [
        watches.namespaces.listed(),
        watches.services.listed(),
        watches.slices.listed(),
        watches.exports.listed(),
    ];
    while !watches.exports_known() {
        let waiting = listed.iter_mut().find(|listed| !*listed.borrow());
        if let Some(waiting) = waiting {
            // The sender lives as long as the watches do.
            let _ = waiting.wait_for(|listed| *listed).await;
        }
    }
}
