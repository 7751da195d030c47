//! Owns: the services with a failing write: since when, and what people are told about it. A refusal by the API server
//! is reported at once, any other failure after [`TOLD_AFTER_MILLIS`], whatever the API server answers.
//! Never: decides what is written, or reads a clock: times are milliseconds of one monotonic clock.

use std::collections::BTreeMap;

use model::ServiceKey;

use super::failure::Failure;
use crate::plan::{Action, Kind, view::Unwritten};

/// Shortest time for which a write fails before people are told, unless the API server refuses its content: and the
/// shortest time between two different messages.
pub(super) const TOLD_AFTER_MILLIS: u64 = 60_000;
/// Most Events about writes that fail, in [`EVENTS_WINDOW_MILLIS`]: where everything fails, some of them say so.
const EVENTS_MAX: u32 = 30;
/// Time in which [`EVENTS_MAX`] are written.
const EVENTS_WINDOW_MILLIS: u64 = 60_000;

/// Services whose writes fail.
#[derive(Debug, Default)]
pub(super) struct Failing {
    services: BTreeMap<ServiceKey, Trouble>,
    /// Since when Events are counted, and how many there were.
    events: (u64, u32),
}

#[derive(Debug)]
struct Trouble {
    since: u64,
    told: Option<Told>,
}

#[derive(Debug)]
struct Told {
    at: u64,
    what: Unwritten,
}

/// A service whose failure is to be told from now on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) what: Unwritten,
    /// An Event says it too.
    pub(super) event: bool,
}

impl Failing {
    /// A write of `service` failed `now`. A failure that comes back is reported from now on.
    pub(super) fn failed(
        &mut self,
        service: &ServiceKey,
        action: &Action,
        failure: &Failure,
        now: u64,
    ) -> Option<News> {
        if matches!(failure, Failure::Suspended) {
            return None; // nobody was asked
        }
        let what = unwritten(service, action, failure)?;
        let trouble = self.services.entry(service.clone()).or_insert(Trouble {
            since: now,
            told: None,
        });
        let age = |since: u64| now.saturating_sub(since);
        let is_due = match &trouble.told {
            None => failure.is_lasting() || age(trouble.since) >= TOLD_AFTER_MILLIS,
            Some(told) => told.what != what && age(told.at) >= TOLD_AFTER_MILLIS,
        };
        if !is_due {
            return None;
        }
        trouble.told = Some(Told {
            at: now,
            what: what.clone(),
        });
        Some(News {
            event: self.has_room_for_an_event(now),
            what,
        })
    }

    fn has_room_for_an_event(&mut self, now: u64) -> bool {
        let (since, events) = &mut self.events;
        if now.saturating_sub(*since) >= EVENTS_WINDOW_MILLIS {
            (*since, *events) = (now, 0);
        }
        *events = events.saturating_add(1);
        *events <= EVENTS_MAX
    }

    /// Nothing of `service` fails any more. True when people had been told.
    pub(super) fn ended(&mut self, service: &ServiceKey) -> bool {
        let trouble = self.services.remove(service);
        trouble.is_some_and(|trouble| trouble.told.is_some())
    }

    /// Returns the words for `service` if its writes have failed for long enough.
    pub(super) fn of(&self, service: &ServiceKey) -> Option<&Unwritten> {
        Some(&self.services.get(service)?.told.as_ref()?.what)
    }
}

/// The object that was not written; absent for an action that writes none.
fn unwritten(service: &ServiceKey, action: &Action, failure: &Failure) -> Option<Unwritten> {
    let import = || (Some(Kind::Import), service.name.clone());
    let (kind, name) = match action {
        Action::ApplyImport { .. } | Action::ApplyImportStatus { .. } => import(),
        Action::ApplyDerived { name, .. } => (Some(Kind::Derived), name.clone()),
        Action::ApplySlice { name, .. } => (Some(Kind::Slice), name.clone()),
        Action::Delete { kind, name, .. } => (Some(*kind), name.clone()),
        Action::ApplyExportStatus { .. } => (None, service.name.clone()),
        Action::ExportEvent { .. } => return None,
    };
    Some(Unwritten {
        kind,
        name,
        deletes: matches!(action, Action::Delete { .. }),
        words: failure.to_string().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cart() -> ServiceKey {
        ServiceKey::new("shop", "cart").expect("a key")
    }

    fn delete(name: &str) -> Action {
        Action::Delete {
            kind: Kind::Slice,
            name: name.into(),
            uid: "uid".into(),
        }
    }

    fn full(times: u32) -> Failure {
        Failure::Failed(format!("HTTP 500: range is full ({times})"))
    }

    #[test]
    fn what_fails_is_told_after_a_minute_whatever_the_api_server_answers() {
        for failure in [
            full(1),
            Failure::Unavailable("no answer".into()),
            Failure::Stale("gone".into()),
        ] {
            let mut failing = Failing::default();
            let mut failed = |now| failing.failed(&cart(), &delete("a"), &failure, now).is_some();
            assert!(
                !failed(5_000) && !failed(5_000 + TOLD_AFTER_MILLIS - 1),
                "{failure}"
            );
            assert!(failed(5_000 + TOLD_AFTER_MILLIS), "{failure}");
            assert!(!failed(5_001 + TOLD_AFTER_MILLIS), "once");
            assert_eq!(*failing.of(&cart()).expect("told").words, *failure.to_string());
            assert!(failing.ended(&cart()) && failing.of(&cart()).is_none());
            assert!(!failing.ended(&cart()));
        }
    }

    #[test]
    fn what_is_refused_is_told_at_once_and_who_may_not_write_says_nothing() {
        let mut failing = Failing::default();
        let forbidden = Failure::Forbidden("quota".into());
        assert!(
            failing
                .failed(&cart(), &delete("a"), &Failure::Suspended, 0)
                .is_none()
        );
        assert!(failing.failed(&cart(), &delete("a"), &forbidden, 0).is_some());
    }

    #[test]
    fn words_that_differ_each_time_are_told_once_in_a_minute() {
        let mut failing = Failing::default();
        let forbidden = Failure::Forbidden("quota".into());
        failing.failed(&cart(), &delete("a"), &forbidden, 0);
        let told = (1..=600).filter(|second| {
            let now = u64::from(*second) * 1_000;
            failing
                .failed(&cart(), &delete("a"), &full(*second), now)
                .is_some()
        });
        assert_eq!(told.count(), 10);
    }

    #[test]
    fn where_everything_fails_some_events_say_so() {
        let mut failing = Failing::default();
        let forbidden = Failure::Forbidden("quota".into());
        let service = |number: u32| ServiceKey::new("shop", &format!("s{number}")).expect("a key");
        let events = (0..1_000).filter(|number| {
            failing
                .failed(&service(*number), &delete("a"), &forbidden, 100)
                .is_some_and(|news| news.event)
        });
        assert_eq!(events.count(), EVENTS_MAX as usize);
        assert!(
            failing.of(&service(999)).is_some(),
            "the condition says it all the same"
        );
    }
}
