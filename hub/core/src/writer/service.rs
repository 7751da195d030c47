//! Owns: reporting whether the clusterset is served: in the log with the members that stopped it, in a metric, and to
//! watchers.
//! Never: decides it.

use model::advice;
use tokio::sync::watch;
use tracing::{info, warn};

use super::core::Core;
use crate::metrics::WriterMetrics;

/// The state that was told last.
#[derive(Debug)]
pub(super) struct ServiceTold(watch::Sender<bool>);

impl Default for ServiceTold {
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

impl ServiceTold {
    /// Says whether the clusterset is served, now and whenever that changes.
    pub(super) fn watch(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }

    /// Tells of a change since it was asked last.
    pub(super) fn note(&self, core: &Core, metrics: &WriterMetrics) {
        let why = core.not_serving();
        let serves = why.is_none();
        let changed = self
            .0
            .send_if_modified(|told| std::mem::replace(told, serves) != serves);
        if !changed {
            return;
        }
        metrics.served(serves);
        let Some(why) = why else {
            info!("the clusterset is served again");
            return;
        };
        let members = core.know_later_epoch();
        let evict = members.first().map(advice::member_evict).unwrap_or_default();
        let members = members
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        warn!(
            members,
            why,
            "the clusterset is not served: these members say that they know a later epoch. If there is no other hub, \
             evict them or revoke their keys (`{evict}`), and it is served again"
        );
    }
}
