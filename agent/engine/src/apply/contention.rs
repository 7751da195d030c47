//! Objects that somebody else changes back again and again: each is written at growing intervals, and reported. It
//! keeps a hash of the last write to a bounded number of objects, for a while; it knows neither clock nor cluster.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use model::ServiceKey;
use pace::Backoff;
use tokio::time::Instant;

use crate::plan::Action;

/// So often the same is written to an object at once; from then on it waits.
const AT_ONCE_MAX: u32 = 5;
/// The same again after this time is no fight.
const WINDOW: Duration = Duration::from_secs(60);
/// First wait.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
const WAIT_LONGEST: Duration = Duration::from_secs(300);
/// Shortest time between two reports about one object.
const REPORT_INTERVAL: Duration = Duration::from_secs(600);
/// Objects that are remembered at a time; one more is written as if nobody fought for it.
const OBJECTS_MAX: usize = 4_096;

/// An object, or its status, that is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    service: ServiceKey,
    /// The kind of the object, as Kubernetes calls it.
    pub(super) kind: &'static str,
    /// Its status, and not the rest of it.
    pub(super) status: bool,
    /// Its name.
    pub(super) name: Box<str>,
}

/// Recent writes and vain repetitions, by the object written to.
#[derive(Debug)]
pub struct Contention<P = Part> {
    parts: BTreeMap<P, Written>,
    waits: bool,
}

#[derive(Debug)]
struct Written {
    /// The hash of the write. Two contents of one hash would only be slowed down.
    hash: u64,
    /// Number of times the same content was written again.
    again: u32,
    at: Instant,
    until: Option<Instant>,
    backoff: Backoff,
    reported: Option<Instant>,
}

impl<P> Default for Contention<P> {
    fn default() -> Self {
        Self {
            parts: BTreeMap::new(),
            waits: true,
        }
    }
}

impl Contention {
    /// Nothing waits any more: somebody else decides whose turn it is.
    #[cfg(any(test, feature = "simulated"))]
    pub(super) fn never_wait(&mut self) {
        self.waits = false;
    }

    /// [`Contention::part_held_until`] of what an action writes.
    pub(super) fn held_until(&self, service: &ServiceKey, action: &Action, now: Instant) -> Option<Instant> {
        let (part, hash) = written(service, action)?;
        self.part_held_until(&part, hash, now)
    }

    /// The action was performed. Returns the write and its number of repetitions, when they are to be reported.
    /// `random` is any uniformly distributed number.
    pub(super) fn written(
        &mut self,
        service: &ServiceKey,
        action: &Action,
        now: Instant,
        random: u64,
    ) -> Option<(Part, u32)> {
        let (part, hash) = written(service, action)?;
        let times = self.part_written(&part, hash, now, random)?;
        Some((part, times))
    }
}

impl<P: Ord + Clone> Contention<P> {
    /// Until when the same, by its hash, waits, which was written too often just now. Another content never waits.
    pub fn part_held_until(&self, part: &P, hash: u64, now: Instant) -> Option<Instant> {
        let before = self.parts.get(part).filter(|before| before.hash == hash);
        before?.until.filter(|until| self.waits && *until > now)
    }

    /// Records that content with this hash was written to `part`. Returns the number of repetitions if it is to be
    /// reported. `random` is any uniformly distributed number.
    pub fn part_written(&mut self, part: &P, hash: u64, now: Instant, random: u64) -> Option<u32> {
        if self.parts.len() >= OBJECTS_MAX && !self.parts.contains_key(part) {
            self.forget(now);
            if self.parts.len() >= OBJECTS_MAX {
                return None;
            }
        }
        let new = || Written::new(hash, now);
        let before = self.parts.entry(part.clone()).or_insert_with(new);
        if before.hash != hash || before.is_over(now) {
            *before = new();
        }
        before.once_more(now, random).then_some(before.again)
    }

    /// Number of parts that are written at growing intervals now. Forgets parts that nobody has changed for a while.
    pub(super) fn contended(&mut self, now: Instant) -> usize {
        self.forget(now);
        let contended = self.parts.values().filter(|written| written.until.is_some());
        contended.count()
    }

    fn forget(&mut self, now: Instant) {
        self.parts.retain(|_, written| !written.is_over(now));
    }
}

impl Written {
    fn new(hash: u64, now: Instant) -> Self {
        Self {
            hash,
            again: 0,
            at: now,
            until: None,
            backoff: Backoff::new(WAIT_FIRST, WAIT_LONGEST),
            reported: None,
        }
    }

    /// It was written now; true when that is to be reported.
    fn once_more(&mut self, now: Instant, random: u64) -> bool {
        self.at = now;
        self.again = self.again.saturating_add(1);
        if self.again <= AT_ONCE_MAX {
            return false;
        }
        self.until = Some(now + self.backoff.failed(random));
        let is_due = |before: Instant| now >= before + REPORT_INTERVAL;
        let due = self.reported.is_none_or(is_due);
        if due {
            self.reported = Some(now);
        }
        due
    }

    /// Nobody has changed it for a while.
    fn is_over(&self, now: Instant) -> bool {
        now >= self.until.unwrap_or(self.at) + WINDOW
    }
}

/// The part that an action writes to, and the hash of the content, without uids and revisions.
fn written(service: &ServiceKey, action: &Action) -> Option<(Part, u64)> {
    let mut hasher = DefaultHasher::new();
    let (kind, status, name) = match action {
        Action::ApplyImport { content, .. } => {
            content.hash(&mut hasher);
            ("ServiceImport", false, &service.name)
        }
        Action::ApplyImportStatus { status, .. } => {
            status.hash(&mut hasher);
            ("ServiceImport", true, &service.name)
        }
        Action::ApplyDerived { name, content, .. } => {
            content.hash(&mut hasher);
            ("Service", false, name)
        }
        Action::ApplySlice { name, content, .. } => {
            content.hash(&mut hasher);
            ("EndpointSlice", false, name)
        }
        Action::ApplyExportStatus { conditions, .. } => {
            conditions.hash(&mut hasher);
            ("ServiceExport", true, &service.name)
        }
        Action::Delete { .. } | Action::ExportEvent { .. } => return None,
    };
    let part = Part {
        service: service.clone(),
        kind,
        status,
        name: name.clone(),
    };
    Some((part, hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::content::ImportStatus;

    fn cart() -> ServiceKey {
        ServiceKey::new("shop", "cart").unwrap()
    }

    fn status(uid: &str, present: bool) -> Action {
        let status = ImportStatus {
            endpoint_slice_objects: present,
            ..ImportStatus::default()
        };
        Action::ApplyImportStatus {
            uid: Some(uid.into()),
            status,
        }
    }

    #[test]
    fn what_is_changed_back_again_and_again_waits_longer_each_time() {
        let (mut contention, mut now) = (Contention::default(), Instant::now());
        let (same, began) = (status("a", true), now);
        let (mut writes, mut reports) = (0, 0);
        // Somebody changes it back within 10 ms, for an hour.
        while now < began + Duration::from_secs(3_600) {
            if contention.held_until(&cart(), &same, now).is_none() {
                writes += 1;
                reports += u32::from(contention.written(&cart(), &same, now, 0).is_some());
            }
            now += Duration::from_millis(10);
        }
        assert!((10..=60).contains(&writes), "{writes} writes");
        assert!((2..=6).contains(&reports), "{reports} reports");
        assert_eq!(contention.contended(now), 1);
        // It is given up: later the same is written at once again.
        now += WAIT_LONGEST + WINDOW;
        assert_eq!(contention.contended(now), 0);
        assert_eq!(contention.held_until(&cart(), &same, now), None);
    }

    #[test]
    fn another_content_and_another_object_do_not_wait() {
        let (mut contention, now) = (Contention::default(), Instant::now());
        let mut reported = None;
        for _ in 0..=AT_ONCE_MAX {
            assert_eq!(reported, None, "before it was written too often");
            reported = contention.written(&cart(), &status("a", true), now, 0);
        }
        let (part, times) = reported.expect("said once");
        assert_eq!(
            (part.kind, part.status, times),
            ("ServiceImport", true, AT_ONCE_MAX + 1)
        );
        let till = ServiceKey::new("shop", "till").unwrap();
        let held = |contention: &Contention, service: &ServiceKey, action| {
            contention.held_until(service, &action, now).is_some()
        };
        assert!(held(&contention, &cart(), status("a", true)));
        assert!(held(&contention, &cart(), status("b", true)), "deleted each time");
        assert!(!held(&contention, &cart(), status("a", false)));
        assert!(!held(&contention, &till, status("a", true)));
        contention.never_wait();
        assert!(!held(&contention, &cart(), status("a", true)));
    }

    #[test]
    fn what_goes_to_and_fro_by_our_own_decision_is_no_fight() {
        let (mut contention, now) = (Contention::default(), Instant::now());
        for round in 0..100 {
            let what = status("a", round % 2 == 0);
            assert_eq!(contention.held_until(&cart(), &what, now), None);
            assert_eq!(contention.written(&cart(), &what, now, 0), None);
        }
    }

    #[test]
    fn a_bounded_number_of_objects_is_remembered() {
        let (mut contention, now) = (Contention::default(), Instant::now());
        for number in 0..OBJECTS_MAX + 10 {
            let service = ServiceKey::new("shop", &format!("s{number}")).unwrap();
            contention.written(&service, &status("a", true), now, 0);
        }
        assert_eq!(contention.parts.len(), OBJECTS_MAX);
        contention.written(&cart(), &status("a", true), now + WINDOW, 0);
        assert_eq!(contention.parts.len(), 1, "what is over makes room");
    }
}
