//! The driver without its loop, for a simulation that chooses the next turn itself: no timer, no task. A turn does what
//! the loop does; only the order and the waiting are the caller's.

use std::collections::BTreeSet;

use model::ServiceKey;

use super::{
    driver::{Driver, read_schema},
    handle::Shared,
    lock::lock,
    step::{Outcome, step, what_to_do},
};

/// A driver that is moved turn by turn.
pub struct ManualDriver {
    driver: Driver,
    waiting: BTreeSet<ServiceKey>,
    listed: [bool; 5],
}

impl ManualDriver {
    /// Takes the driver in the place of its loop.
    pub fn new(driver: Driver) -> Self {
        lock(&driver.shared.contention).never_wait();
        Self {
            driver,
            waiting: BTreeSet::new(),
            listed: [false; 5],
        }
    }

    fn shared(&self) -> &Shared {
        &self.driver.shared
    }

    /// The services that wait for a turn, those included that were marked since the last call.
    pub fn waiting(&mut self) -> &BTreeSet<ServiceKey> {
        let watches = &self.shared().watches;
        let listed = [
            watches.namespaces.is_listed(),
            watches.services.is_listed(),
            watches.slices.is_listed(),
            watches.exports.is_listed(),
            watches.imports.is_listed(),
        ];
        if std::mem::replace(&mut self.listed, listed) != listed {
            self.shared().mark_all();
        }
        let namespaces = self.driver.namespaces.take_now();
        if !namespaces.is_empty() {
            self.shared().mark_namespaces(&namespaces.into_iter().collect());
        }
        let marked = self.shared().queue.take_now();
        self.waiting.extend(marked);
        &self.waiting
    }

    /// Works on one service, at the simulation's own time in milliseconds. Steps that could not be done wait for
    /// another turn.
    pub async fn work(&mut self, service: &ServiceKey, now: u64) {
        self.waiting.remove(service);
        if let Outcome::Retry { .. } = step(self.shared(), service, now).await {
            self.waiting.insert(service.clone());
        }
    }

    /// Reads the served schema; false when the API server did not answer.
    pub async fn read_schema(&mut self) -> bool {
        read_schema(self.shared(), None).await.is_ok()
    }

    /// The time is over that the hub had to answer about exports; false when no export waited for it.
    pub fn lose_patience(&mut self) -> bool {
        let over = self.shared().patience.lose(None);
        let waited = !over.is_empty();
        self.shared().queue.mark(over);
        waited
    }

    /// Returns true if nothing is left to do for any service that anything is known of, nor will be when the hub is
    /// silent.
    pub fn is_settled(&self) -> bool {
        let mut services = lock(&self.shared().desired).services();
        services.extend(super::view::observed_services(&self.shared().watches));
        let settled =
            |service: &ServiceKey| what_to_do(self.shared(), service).is_some_and(|plan| plan.is_settled());
        !self.shared().patience.waits() && services.iter().all(settled)
    }
}
