//! Owns: holding imports when a hub removes too many at once: what counts, who is told, and what ends the hold.
//! Never: decides how much that is (`plan::withdrawals`), or deletes anything.

use std::time::Duration;

use model::ServiceKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    handle::{Handle, Shared},
    lock::lock,
    view::{self, RefusedFacts},
};
use crate::{
    plan::{self, Desired, Found, Withdrawals, view::Refusals},
    watch::Kept,
};

/// Most ServiceImports on hold that get an Event: with more the log, the metric and each one's condition say so.
const EVENTS_MAX: usize = 5;

impl Shared {
    /// Returns true if the import of `service` stays although the hub takes it away (`withdraws`): for it takes away too
    /// many at once.
    pub(super) fn is_withdrawal_held(
        &self,
        desired: &Desired,
        service: &ServiceKey,
        withdraws: bool,
    ) -> bool {
        let mut withdrawals = lock(&self.withdrawals);
        if !withdraws {
            if withdrawals.settled(service, desired.import(service).is_some()) {
                info!("the hub has every import again that it took away: nothing is on hold");
                self.withdrawals_changed.notify_one();
            }
        } else if !withdrawals.knows(service) {
            let (standing, imports) = self.withdrawn(desired);
            if let Some(hold) = withdrawals.look(standing, imports, self.now()) {
                let (withdrawn, imports) = (hold.withdrawn, hold.imports);
                warn!(
                    withdrawn,
                    imports,
                    "the hub takes away most imports of this cluster at once: they stay for now; see that the hub and its \
                     data are the right ones. the agent's doctor says how to let them go"
                );
                self.withdrawals_changed.notify_one();
            }
        }
        self.measure_withdrawals(&withdrawals);
        withdrawals.is_held(service)
    }

    fn measure_withdrawals(&self, withdrawals: &Withdrawals) {
        let held = i64::try_from(withdrawals.held().count()).unwrap_or(i64::MAX);
        self.metrics.withdrawals_held.set(held);
    }

    /// Our imports that the hub takes away, and the number of all that stand here.
    fn withdrawn(&self, desired: &Desired) -> (Vec<ServiceKey>, usize) {
        let (mut withdrawn, mut imports) = (Vec::new(), 0);
        for import in self.watches.imports.all() {
            let (Found::Ours(_), Some(service)) = (import.found(), import.head().service()) else {
                continue;
            };
            imports += 1;
            if desired.import(&service).is_some() {
                continue;
            }
            let (view, _) = view::view(
                &self.watches,
                desired,
                &self.config.cluster,
                &self.config.deny,
                &RefusedFacts::new(),
                Refusals::default(),
                &service,
            );
            if plan::withdraws(desired, &view, &service) {
                withdrawn.push(service);
            }
        }
        (withdrawn, imports)
    }
}

impl Handle {
    /// Lets what is on hold go, and returns whether anything was.
    pub fn accept_withdrawals(&self) -> bool {
        let mut withdrawals = lock(&self.0.withdrawals);
        let services = withdrawals.accept();
        self.0.measure_withdrawals(&withdrawals);
        drop(withdrawals);
        let any = !services.is_empty();
        self.0.queue.mark(services);
        any
    }

    /// Ends holds until `drain`: when somebody confirms one (`confirmed` changes), or when its time is over.
    pub async fn end_holds(
        self,
        mut confirmed: watch::Receiver<u64>,
        drain: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut told = false;
        loop {
            let (left, held) = {
                let withdrawals = lock(&self.0.withdrawals);
                let held: Vec<ServiceKey> = withdrawals.held().take(EVENTS_MAX).cloned().collect();
                (withdrawals.left(self.0.now()), held)
            };
            if !std::mem::replace(&mut told, !held.is_empty()) {
                for service in &held {
                    self.0.performer.withdrawal_event(service).await;
                }
            }
            let over = tokio::time::sleep(Duration::from_millis(left.unwrap_or_default()));
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                () = self.0.withdrawals_changed.notified() => {}
                Ok(()) = confirmed.changed() => {
                    if self.accept_withdrawals() {
                        info!("an operator confirmed that the imports on hold may go");
                    } else {
                        info!("an operator confirmed a withdrawal of imports, and none is on hold");
                    }
                }
                () = over, if left.is_some() => {
                    if self.accept_withdrawals() {
                        warn!("the imports that the hub took away were on hold for their whole time, and go now");
                    }
                }
            }
        }
    }
}
