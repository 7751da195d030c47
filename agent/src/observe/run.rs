//! The task that observes: it follows the cache and the health probe, and keeps the outbox true.
//! It owns the observer; nothing else states facts.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::Client;
use shared::{
    model::{Fact, FactKey, Health, ServiceKey},
    wire::encode_fact,
};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    Observer,
    health::{PROBE_INTERVAL, Probe},
};
use crate::{
    outbox::Outbox,
    watch::{KeyQueue, SharedCache},
};

/// What observing needs and feeds.
pub struct Observing {
    /// The cluster's API.
    pub client: Client,
    /// The cluster.
    pub cache: SharedCache,
    /// Services whose objects changed.
    pub changed: KeyQueue,
    /// Services to plan again, because the verdict on their export changed.
    pub plan: KeyQueue,
    /// Turns objects into facts.
    pub observer: Observer,
    /// Where the facts go.
    pub outbox: Arc<Mutex<Outbox>>,
    /// Tells that the outbox changed.
    pub outbox_changed: watch::Sender<u64>,
}

impl Observing {
    /// Runs until `drain`.
    pub async fn run(mut self, drain: CancellationToken) -> anyhow::Result<()> {
        let (health_sender, mut health) = mpsc::channel(1);
        let probing = probe(Probe::new(self.client.clone()), health_sender);
        let mut probing = std::pin::pin!(probing);
        let mut cache_changed = self.cache.subscribe();
        let (mut exports_complete, mut health_known) = (false, false);
        loop {
            tokio::select! {
                () = drain.cancelled() => return Ok(()),
                () = &mut probing => {}
                Some(report) = health.recv() => {
                    health_known = true;
                    let fact = encode_fact(&Fact::HealthReported(report));
                    self.outbox().set(FactKey::Health, Some(fact));
                }
                services = self.changed.take(), if exports_complete => self.look(services),
                Ok(()) = cache_changed.changed() => {
                    if !exports_complete && self.cache.read().exports_are_complete() {
                        exports_complete = true;
                        let all = self.cache.read().named_services();
                        self.look(all);
                    }
                    let (cache, mut outbox) = (self.cache.read(), lock(&self.outbox));
                    self.observer.look_at_properties(&cache, &mut outbox);
                }
            }
            let (cache, mut outbox) = (self.cache.read(), lock(&self.outbox));
            self.observer
                .complete(&cache, exports_complete, health_known, &mut outbox);
            self.outbox_changed.send_modify(|version| *version += 1);
        }
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    fn look(&mut self, services: impl IntoIterator<Item = ServiceKey>) {
        let (cache, mut outbox) = (self.cache.read(), lock(&self.outbox));
        let judged = services
            .into_iter()
            .filter(|service| self.observer.look(service, &cache, &mut outbox));
        self.plan.push(judged.collect::<Vec<_>>());
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for the control plane's health again and again; a report that is not taken yet waits.
async fn probe(mut probe: Probe, reports: mpsc::Sender<Arc<Health>>) {
    // Spread, so that a fleet that was started at one moment does not ask at one moment.
    let spread = Duration::from_millis(rand::random_range(0..PROBE_INTERVAL.as_millis() as u64 / 10));
    let mut interval = tokio::time::interval(PROBE_INTERVAL + spread);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Some(health) = probe.ask().await
            && reports.send(health).await.is_err()
        {
            return;
        }
    }
}
