//! Whose turn it is: services that wait, are worked on, or failed and wait longer each time. What failed is tried
//! sooner when there is something else to do for it than what failed.
//! It knows neither clock nor cluster: time and plans are asked for by whoever calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use shared::{model::ServiceKey, process::Backoff};
use tokio::time::Instant;

use super::{metrics::ApplyMetrics, step::Outcome};
use crate::plan::Plan;

/// First wait after a failure.
pub(super) const RETRY_FIRST: Duration = Duration::from_millis(50);
/// Longest wait after a failure.
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Shortest wait of what failed until new content is tried: one that is refused too must not be hammered with.
const NEW_CONTENT_WAIT: Duration = Duration::from_secs(1);

/// Who waits, who is worked on, who failed.
#[derive(Default)]
pub(super) struct Work {
    waiting: BTreeSet<ServiceKey>,
    working: BTreeSet<ServiceKey>,
    delayed: BTreeMap<ServiceKey, Delay>,
    failing: BTreeMap<ServiceKey, Failing>,
}

struct Delay {
    until: Instant,
    /// New content does not end the wait before this.
    earliest: Instant,
    /// What could not be done.
    left: Plan,
}

struct Failing {
    backoff: Backoff,
    parked: bool,
}

impl Work {
    /// Something about these services changed. `planned` says what there is to do for one of them.
    pub(super) fn marked(
        &mut self,
        services: BTreeSet<ServiceKey>,
        planned: impl Fn(&ServiceKey) -> Option<Plan>,
    ) {
        for service in &services {
            self.reconsider(service, &planned);
        }
        self.waiting.extend(services);
    }

    /// Shortens the wait of a service for which there is something else to do than what failed.
    fn reconsider(&mut self, service: &ServiceKey, planned: impl Fn(&ServiceKey) -> Option<Plan>) {
        if let Some(delay) = self.delayed.get_mut(service)
            && delay.until > delay.earliest
            && planned(service).is_some_and(|plan| plan != delay.left)
        {
            delay.until = delay.earliest;
        }
    }

    /// At most `free` services that are to be worked on now: not what is being worked on, nor what has to wait.
    pub(super) fn take(&mut self, free: usize, now: Instant) -> Vec<ServiceKey> {
        let due = self.delayed.iter().filter(|(_, delay)| delay.until <= now);
        let due: Vec<ServiceKey> = due.map(|(service, _)| service.clone()).collect();
        for service in due {
            self.delayed.remove(&service);
            self.waiting.insert(service);
        }
        let may_run =
            |service: &&ServiceKey| !self.working.contains(*service) && !self.delayed.contains_key(*service);
        let next: Vec<ServiceKey> = self.waiting.iter().filter(may_run).take(free).cloned().collect();
        for service in &next {
            self.waiting.remove(service);
            self.working.insert(service.clone());
        }
        next
    }

    /// When the next wait ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.values().map(|delay| delay.until).min()
    }

    /// A service was worked on. `random` is any uniformly distributed number.
    pub(super) fn done(
        &mut self,
        service: ServiceKey,
        outcome: Outcome,
        planned: impl Fn(&ServiceKey) -> Option<Plan>,
        now: Instant,
        random: u64,
    ) {
        self.working.remove(&service);
        let Outcome::Retry { after, parked, left } = outcome else {
            self.failing.remove(&service);
            return;
        };
        let failing = self.failing.entry(service.clone()).or_insert_with(|| Failing {
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
            parked,
        });
        failing.parked = parked;
        let asked = after.unwrap_or_default();
        let delay = Delay {
            until: now + failing.backoff.failed(random).max(asked),
            earliest: now + NEW_CONTENT_WAIT.max(asked),
            left,
        };
        self.delayed.insert(service.clone(), delay);
        if self.waiting.contains(&service) {
            self.reconsider(&service, planned); // it changed while it was worked on
        }
    }

    pub(super) fn measure(&self, metrics: &ApplyMetrics) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.queued.set(number(self.waiting.len()));
        metrics.delayed.set(number(self.delayed.len()));
        let parked = self.failing.values().filter(|failing| failing.parked).count();
        metrics.parked.set(number(parked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Action, Kind};

    fn cart() -> ServiceKey {
        ServiceKey::new("shop", "cart").unwrap()
    }

    fn to_do(what: &str) -> Plan {
        let action = Action::Delete {
            kind: Kind::Slice,
            name: what.into(),
            uid: "uid".into(),
        };
        Plan {
            actions: vec![action],
            ..Plan::default()
        }
    }

    fn refused(what: &str, after: Option<Duration>) -> Outcome {
        Outcome::Retry {
            after,
            parked: true,
            left: to_do(what),
        }
    }

    /// A service that failed so often with `what` that it waits longest, until this time.
    fn parked(what: &str, after: Option<Duration>, now: Instant) -> (Work, Duration) {
        let mut work = Work::default();
        work.marked(BTreeSet::from([cart()]), |_| None);
        let mut at = now;
        for _ in 0..12 {
            assert_eq!(work.take(1, at), [cart()]);
            work.done(cart(), refused(what, after), |_| Some(to_do(what)), at, 0);
            at = work.next_due().unwrap();
        }
        assert_eq!(work.take(1, at), [cart()]);
        work.done(cart(), refused(what, after), |_| Some(to_do(what)), at, 0);
        (work, at - now)
    }

    #[test]
    fn new_content_ends_the_wait_and_the_same_content_does_not() {
        let start = Instant::now();
        let (mut work, failed_at) = parked("old", None, start);
        let failed = start + failed_at;
        let parked_until = work.next_due().unwrap();
        assert!(parked_until >= failed + RETRY_LONGEST / 2);
        // Somebody else touched an object of the service: there is nothing new to try.
        work.marked(BTreeSet::from([cart()]), |_| Some(to_do("old")));
        assert_eq!(work.next_due(), Some(parked_until));
        work.marked(BTreeSet::from([cart()]), |_| Some(to_do("new")));
        assert_eq!(work.next_due(), Some(failed + NEW_CONTENT_WAIT));
        assert!(work.take(1, failed).is_empty());
        assert_eq!(work.take(1, failed + NEW_CONTENT_WAIT), [cart()]);
    }

    #[test]
    fn content_that_came_while_the_old_was_tried_counts() {
        let start = Instant::now();
        let (mut work, _) = parked("old", None, start);
        let due = work.next_due().unwrap();
        assert_eq!(work.take(1, due), [cart()]);
        work.marked(BTreeSet::from([cart()]), |_| Some(to_do("new")));
        work.done(cart(), refused("old", None), |_| Some(to_do("new")), due, 0);
        assert_eq!(work.next_due(), Some(due + NEW_CONTENT_WAIT));
    }

    #[test]
    fn new_content_does_not_shorten_what_the_api_server_asked_for() {
        let start = Instant::now();
        let asked = Duration::from_secs(120);
        let (mut work, failed_at) = parked("old", Some(asked), start);
        work.marked(BTreeSet::from([cart()]), |_| Some(to_do("new")));
        assert_eq!(work.next_due(), Some(start + failed_at + asked));
    }
}
