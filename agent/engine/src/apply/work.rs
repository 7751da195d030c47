//! The order of work on services: first come, first served, one worker each. A failed service waits longer each time,
//! and is tried sooner when its plan has other work than the failed steps. A service that changes while it is worked
//! on, or whose wait is over, goes to the end of the queue, so nobody overtakes a waiting one. It knows neither clock
//! nor cluster: callers pass times and plans.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::ServiceKey;
use pace::Backoff;
use tokio::time::Instant;

use super::{metrics::ApplyMetrics, step::Outcome};
use crate::{plan::Plan, watch::Queue};

/// First wait after a failure.
pub(super) const RETRY_FIRST: Duration = Duration::from_millis(50);
/// Longest wait after a failure.
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Shortest wait of what failed until new content is tried: one that is refused too must not be hammered with.
const NEW_CONTENT_WAIT: Duration = Duration::from_secs(1);

/// Services that wait, are worked on, or failed.
#[derive(Default)]
pub(super) struct Work {
    waiting: Queue<ServiceKey>,
    working: BTreeSet<ServiceKey>,
    /// Changed while they were worked on.
    again: BTreeSet<ServiceKey>,
    delayed: BTreeMap<ServiceKey, Delay>,
    failing: BTreeMap<ServiceKey, Failing>,
}

struct Delay {
    until: Instant,
    /// New content does not end the wait before this.
    earliest: Instant,
    /// The steps that could not be done.
    left: Plan,
}

struct Failing {
    backoff: Backoff,
    parked: Option<Box<str>>,
}

/// Reports for people about a service: once, however often it is tried.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Only another content or an operator's hand helps, and why.
    Parked(Box<str>),
    /// It is as desired again.
    Recovered,
}

impl Work {
    /// Something about these services changed, in this order. `planned` says what there is to do for one of them.
    pub(super) fn marked(
        &mut self,
        services: impl IntoIterator<Item = ServiceKey>,
        planned: impl Fn(&ServiceKey) -> Option<Plan>,
    ) {
        for service in services {
            if self.working.contains(&service) {
                self.again.insert(service);
            } else if self.delayed.contains_key(&service) {
                self.reconsider(&service, &planned); // it is planned anew when its wait is over
            } else {
                self.waiting.push(service);
            }
        }
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
            self.waiting.push(service);
        }
        let next: Vec<ServiceKey> = std::iter::from_fn(|| self.waiting.pop()).take(free).collect();
        self.working.extend(next.iter().cloned());
        next
    }

    /// Time at which the next wait ends.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.values().map(|delay| delay.until).min()
    }

    /// A service was worked on; what is new about it comes back. `random` is any uniformly distributed number.
    pub(super) fn done(
        &mut self,
        service: ServiceKey,
        outcome: Outcome,
        planned: impl Fn(&ServiceKey) -> Option<Plan>,
        now: Instant,
        random: u64,
    ) -> Option<News> {
        self.working.remove(&service);
        let again = self.again.remove(&service);
        let Outcome::Retry {
            after,
            held_until,
            parked,
            left,
        } = outcome
        else {
            if again {
                self.waiting.push(service.clone());
            }
            if let Outcome::Unknown = outcome {
                return None; // what stood in its way may still do
            }
            return self.failing.remove(&service)?.parked.map(|_| News::Recovered);
        };
        let failing = self.failing.entry(service.clone()).or_insert_with(|| Failing {
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
            parked: None,
        });
        let is_new = parked.is_some() && parked != failing.parked;
        failing.parked = parked.or(failing.parked.take());
        let news = failing.parked.clone().filter(|_| is_new);
        let asked = after.unwrap_or_default();
        let until = now + failing.backoff.failed(random).max(asked);
        let delay = Delay {
            until: held_until.map_or(until, |held| held.max(until)),
            earliest: now + NEW_CONTENT_WAIT.max(asked),
            left,
        };
        self.delayed.insert(service.clone(), delay);
        if again {
            self.reconsider(&service, planned);
        }
        news.map(News::Parked)
    }

    pub(super) fn measure(&self, metrics: &ApplyMetrics) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.queued.set(number(self.waiting.len() + self.again.len()));
        metrics.delayed.set(number(self.delayed.len()));
        let parked = self
            .failing
            .values()
            .filter(|failing| failing.parked.is_some())
            .count();
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

    /// The later the number, the earlier the name sorts.
    fn service(number: usize) -> ServiceKey {
        ServiceKey::new("shop", &format!("s{:03}", 999 - number)).unwrap()
    }

    #[test]
    fn services_are_served_first_come_first_served() {
        let (mut work, now) = (Work::default(), Instant::now());
        work.marked([service(1), service(2)], |_| None);
        work.marked([service(3), service(1)], |_| None);
        assert_eq!(work.take(2, now), [service(1), service(2)]);
        // Two that change while they are worked on come after those that wait, in the order in which they end.
        work.marked([service(1), service(2), service(4)], |_| None);
        assert!(work.next_due().is_none());
        work.done(service(2), Outcome::Settled, |_| None, now, 0);
        work.done(service(1), Outcome::Settled, |_| None, now, 0);
        let rest = [service(3), service(4), service(2), service(1)];
        assert_eq!(work.take(9, now), rest);
        assert!(work.take(9, now).is_empty());
    }

    #[test]
    fn a_wait_that_is_over_overtakes_nobody() {
        let (mut work, now) = (Work::default(), Instant::now());
        work.marked([service(9)], |_| None);
        assert_eq!(work.take(1, now), [service(9)]);
        work.done(service(9), refused("x", None), |_| None, now, 0);
        work.marked([service(1), service(2), service(9)], |_| None);
        let due = work.next_due().unwrap();
        assert_eq!(work.take(9, due), [service(1), service(2), service(9)]);
    }

    /// 49 services that change 200 times a second in all, and 150 that can be done in a second: by name the last
    /// ones waited for more than ten seconds while the first were served again and again.
    #[test]
    fn under_too_much_load_nobody_is_overtaken_twice() {
        const SERVICES: usize = 49;
        let (mut work, now) = (Work::default(), Instant::now());
        let mut waiting_since = [None::<usize>; SERVICES];
        let mut served_at = [0_usize; SERVICES];
        let mut longest = 0;
        for turn in 0..30 * 150 {
            // Four marks come while three services are done.
            let marks: &[usize] = if turn % 3 == 0 { &[0, 1] } else { &[2] };
            for mark in marks {
                let which = (turn / 3 * 4 + mark + turn % 3) * 31 % SERVICES;
                waiting_since[which].get_or_insert(turn);
                work.marked([service(which)], |_| None);
            }
            let Some(next) = work.take(1, now).pop() else {
                continue;
            };
            let which = (0..SERVICES).find(|which| service(*which) == next).unwrap();
            let since = waiting_since[which].take().unwrap();
            longest = longest.max(turn - since);
            let overtaken = |other: &usize| waiting_since[*other].is_some_and(|at| at < since);
            let overtaken = (0..SERVICES).find(overtaken);
            assert_eq!(
                overtaken, None,
                "turn {turn}: by {which}, which waits since {since}"
            );
            served_at[which] = turn;
            work.done(next, Outcome::Settled, |_| None, now, 0);
        }
        assert!(longest <= SERVICES, "somebody waited for {longest} turns");
        assert!(served_at.iter().all(|at| *at > 29 * 150), "{served_at:?}");
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
            held_until: None,
            parked: Some(what.into()),
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
    fn people_are_told_what_is_in_the_way_once_and_when_it_is_gone() {
        let (mut work, now) = (Work::default(), Instant::now());
        let parked = |why: &str| Some(News::Parked(why.into()));
        let busy = Outcome::Retry {
            after: None,
            held_until: None,
            parked: None,
            left: Plan::default(),
        };
        let mut done = |outcome| work.done(cart(), outcome, |_| None, now, 0);
        assert_eq!(done(Outcome::Settled), None);
        assert_eq!(done(busy.clone()), None);
        assert_eq!(done(Outcome::Settled), None);
        assert_eq!(done(refused("a", None)), parked("a"));
        assert_eq!(done(refused("a", None)), None);
        assert_eq!(done(busy), None);
        assert_eq!(done(refused("a", None)), None);
        assert_eq!(done(refused("b", None)), parked("b"));
        assert_eq!(
            done(Outcome::Unknown),
            None,
            "nobody knows whether it is as desired"
        );
        assert_eq!(done(Outcome::Settled), Some(News::Recovered));
        assert_eq!(done(Outcome::Settled), None);
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
    fn what_is_fought_over_is_looked_at_when_its_wait_is_over_and_new_content_before() {
        let (mut work, now) = (Work::default(), Instant::now());
        let until = now + Duration::from_secs(300);
        let held = Outcome::Retry {
            after: None,
            held_until: Some(until),
            parked: None,
            left: to_do("old"),
        };
        assert_eq!(work.done(cart(), held, |_| None, now, 0), None);
        assert_eq!(work.next_due(), Some(until), "not before, and not later");
        work.marked([cart()], |_| Some(to_do("new")));
        assert_eq!(work.next_due(), Some(now + NEW_CONTENT_WAIT));
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
