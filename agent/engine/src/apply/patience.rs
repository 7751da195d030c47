//! Exports that the hub has not answered about, and whether it has had its time: until then nothing is written that
//! its answer would replace.
//! One entry for each such export; it knows no cluster, and waits only where it says so.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use model::ServiceKey;
use tokio::{sync::Notify, time::Instant};

/// Time that the hub has to answer before an export's condition says that it has not answered yet.
pub(super) const HUB_ANSWER_WAIT: Duration = Duration::from_secs(1);

/// The exports that wait.
#[derive(Debug, Default)]
pub(super) struct Patience {
    exports: Mutex<BTreeMap<ServiceKey, Awaited>>,
    begun: Notify,
}

#[derive(Debug)]
struct Awaited {
    uid: Box<str>,
    /// Until when the hub may answer; absent when that time is over.
    until: Option<Instant>,
}

impl Patience {
    /// Returns true if the hub may still answer in time about the export of this uid.
    pub(super) fn lasts(&self, service: &ServiceKey, uid: &str) -> bool {
        let exports = self.lock();
        let awaited = exports.get(service).filter(|awaited| *awaited.uid == *uid);
        awaited.is_none_or(|awaited| awaited.until.is_some())
    }

    /// The export of this uid waits for the hub's answer, from now on if it did not before.
    pub(super) fn begin(&self, service: &ServiceKey, uid: &str, now: Instant) {
        let mut exports = self.lock();
        if exports.get(service).is_some_and(|awaited| *awaited.uid == *uid) {
            return;
        }
        let awaited = Awaited {
            uid: uid.into(),
            until: Some(now + HUB_ANSWER_WAIT),
        };
        exports.insert(service.clone(), awaited);
        drop(exports);
        self.begun.notify_one();
    }

    /// Nothing of this service waits for the hub any more.
    pub(super) fn end(&self, service: &ServiceKey) {
        self.lock().remove(service);
    }

    /// Returns true if the hub may still answer in time about any export.
    #[cfg(any(test, feature = "simulated"))]
    pub(super) fn waits(&self) -> bool {
        self.lock().values().any(|awaited| awaited.until.is_some())
    }

    /// Waits until the time of some exports is over: they are to be looked at again.
    pub(super) async fn lost(&self) -> Vec<ServiceKey> {
        loop {
            let begun = self.begun.notified();
            let next = self.lock().values().filter_map(|awaited| awaited.until).min();
            match next {
                None => begun.await,
                Some(until) => {
                    tokio::time::sleep_until(until).await;
                    return self.lose(Some(until));
                }
            }
        }
    }

    /// The time of all exports that had until `now` is over; without a time, that of all.
    pub(super) fn lose(&self, now: Option<Instant>) -> Vec<ServiceKey> {
        let mut exports = self.lock();
        let due = |awaited: &Awaited| {
            let until = awaited.until;
            until.is_some_and(|until| now.is_none_or(|now| until <= now))
        };
        let over = exports.iter_mut().filter(|(_, awaited)| due(awaited));
        over.map(|(service, awaited)| {
            awaited.until = None;
            service.clone()
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServiceKey, Awaited>> {
        self.exports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_has_its_time_once_for_each_export() {
        let (patience, start) = (Patience::default(), Instant::now());
        let cart = ServiceKey::new("shop", "cart").unwrap();
        assert!(patience.lasts(&cart, "a"), "nobody has waited yet");
        patience.begin(&cart, "a", start);
        assert!(patience.lose(Some(start)).is_empty());
        patience.begin(&cart, "a", start + HUB_ANSWER_WAIT); // looked at again: no time is added
        assert_eq!(
            patience.lose(Some(start + HUB_ANSWER_WAIT)),
            std::slice::from_ref(&cart)
        );
        assert!(!patience.lasts(&cart, "a"));
        assert!(patience.lose(None).is_empty(), "told of once");
        assert!(patience.lasts(&cart, "b"), "another export of that name");
        patience.begin(&cart, "b", start + HUB_ANSWER_WAIT);
        assert_eq!(patience.lose(None), std::slice::from_ref(&cart));
        patience.end(&cart);
        assert!(patience.lasts(&cart, "b"), "the next time is a new one");
    }
}
