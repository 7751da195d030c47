//! Owns: the mass-withdrawal hold of an importing cluster: which of its imports a hub takes away at one time, when that is
//! too much to be believed at once, and what is on hold until it is confirmed, comes back, or its time is over. The line is
//! the one that a hub draws for what a member withdraws ([`Brake`]).
//! Never: reads a clock, or says what a plan does with an import on hold. Times are milliseconds of one monotonic clock.

use std::collections::{BTreeMap, BTreeSet};

use model::{ServiceKey, policy::Brake};

/// The imports that a hub took away.
#[derive(Debug, Clone, Default)]
pub struct Withdrawals {
    brake: Brake,
    /// As many as stand here, at most: those that went are forgotten after the time within which they count.
    withdrawn: BTreeMap<ServiceKey, Withdrawn>,
    hold: Option<Hold>,
}

/// An import that a hub took away.
#[derive(Debug, Clone, Copy)]
struct Withdrawn {
    at: u64,
    /// It was on hold, and may go.
    accepted: bool,
}

/// A hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Its beginning.
    pub since: u64,
    /// Imports that the hub took away then.
    pub withdrawn: u64,
    /// Imports that it accepted.
    pub imports: u64,
}

impl Withdrawals {
    /// Holds what is more than `brake` lets pass.
    pub fn new(brake: Brake) -> Self {
        Self {
            brake,
            ..Self::default()
        }
    }

    /// Returns true if the hub is known to have removed this import, so that nothing has to be counted again.
    pub fn knows(&self, service: &ServiceKey) -> bool {
        !self.brake.enabled || self.withdrawn.contains_key(service)
    }

    /// Takes all imports that stand here and that the hub took away, of `imports` that stand here. Returns the hold that
    /// begins with it.
    pub fn look(
        &mut self,
        standing: impl IntoIterator<Item = ServiceKey>,
        imports: usize,
        now: u64,
    ) -> Option<Hold> {
        if !self.brake.enabled {
            return None;
        }
        if self.hold.is_none() {
            let within = self.brake.within_millis;
            self.withdrawn
                .retain(|_, one| one.accepted || now.saturating_sub(one.at) <= within);
        }
        let before: Vec<ServiceKey> = self.counted().cloned().collect();
        let standing: BTreeSet<ServiceKey> = standing.into_iter().collect();
        let went = before.iter().filter(|service| !standing.contains(service));
        let went: Vec<ServiceKey> = went.cloned().collect();
        let new = Withdrawn {
            at: now,
            accepted: false,
        };
        for service in standing {
            self.withdrawn.entry(service).or_insert(new);
        }
        if self.hold.is_some() {
            return None;
        }
        let hold = Hold {
            since: now,
            withdrawn: self.counted().count() as u64,
            imports: (imports + went.len()) as u64,
        };
        if !self.brake.holds(hold.withdrawn, hold.imports) {
            return None;
        }
        for service in went {
            self.withdrawn.remove(&service);
        }
        self.hold = Some(hold);
        self.hold
    }

    /// Takes note that the hub does not take this import away, or that it does not stand here any more; `wanted`: that the
    /// hub has it again. Returns true if the hold ended by it.
    pub fn settled(&mut self, service: &ServiceKey, wanted: bool) -> bool {
        let forgets = |one: &Withdrawn| wanted || one.accepted || self.hold.is_some();
        if self.withdrawn.get(service).is_some_and(forgets) {
            self.withdrawn.remove(service);
        }
        let is_over = self.hold.is_some() && self.counted().next().is_none();
        if is_over {
            self.hold = None;
        }
        is_over
    }

    /// Returns true while this import stays although the hub took it away.
    pub fn is_held(&self, service: &ServiceKey) -> bool {
        let withdrawn = self.withdrawn.get(service).filter(|_| self.hold.is_some());
        withdrawn.is_some_and(|one| !one.accepted)
    }

    /// The imports on hold.
    pub fn held(&self) -> impl Iterator<Item = &ServiceKey> {
        let holds = self.hold.is_some();
        self.counted().filter(move |_| holds)
    }

    /// The hold, while there is one.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// Milliseconds until the hold ends by itself.
    pub fn left(&self, now: u64) -> Option<u64> {
        let longest = self.brake.longest_millis?;
        let age = now.saturating_sub(self.hold?.since);
        Some(longest.saturating_sub(age))
    }

    /// Ends the hold; what was on hold may go.
    pub fn accept(&mut self) -> Vec<ServiceKey> {
        if self.hold.take().is_none() {
            return Vec::new();
        }
        let held = self.withdrawn.iter_mut().filter(|(_, one)| !one.accepted);
        held.map(|(service, one)| {
            one.accepted = true;
            service.clone()
        })
        .collect()
    }

    fn counted(&self) -> impl Iterator<Item = &ServiceKey> {
        let counted = self.withdrawn.iter().filter(|(_, one)| !one.accepted);
        counted.map(|(service, _)| service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000;

    fn services(numbers: std::ops::Range<u32>) -> Vec<ServiceKey> {
        let named = |number| ServiceKey::new("shop", &format!("s{number}")).expect("a key");
        numbers.map(named).collect()
    }

    fn withdrawals() -> Withdrawals {
        Withdrawals::new(Brake::default())
    }

    #[test]
    fn most_of_the_imports_at_once_are_held_and_a_few_never_are() {
        for (gone, imports, holds) in [
            (4, 4, false),
            (5, 5, true),
            (5, 10, true),
            (5, 11, false),
            (50, 50, true),
        ] {
            let mut withdrawals = withdrawals();
            let hold = withdrawals.look(services(0..gone), imports, SECOND);
            assert_eq!(hold.is_some(), holds, "{gone} of {imports}");
            assert_eq!(withdrawals.held().count(), if holds { gone as usize } else { 0 });
            let known = withdrawals.knows(&services(0..1)[0]);
            assert!(known, "nothing is counted twice");
        }
        let off = Brake {
            enabled: false,
            ..Brake::default()
        };
        let mut off = Withdrawals::new(off);
        assert!(off.look(services(0..50), 50, 0).is_none() && off.knows(&services(0..1)[0]));
    }

    /// A hub that takes them away in several messages takes as many.
    #[test]
    fn what_went_within_the_time_counts_and_what_went_before_does_not() {
        let mut withdrawals = withdrawals();
        assert!(withdrawals.look(services(0..4), 10, 0).is_none());
        for gone in services(0..4) {
            assert!(!withdrawals.settled(&gone, false), "it went");
        }
        let hold = withdrawals.look(services(4..6), 6, 20 * SECOND).expect("6 of 10");
        assert_eq!((hold.withdrawn, hold.imports), (6, 10));
        assert_eq!(withdrawals.held().count(), 2, "the others are gone");

        let mut slowly = self::withdrawals();
        assert!(slowly.look(services(0..4), 10, 0).is_none());
        assert!(services(0..4).iter().all(|gone| !slowly.settled(gone, false)));
        assert!(slowly.look(services(4..6), 6, 31 * SECOND).is_none());
    }

    #[test]
    fn a_hold_ends_when_all_are_back_when_it_is_accepted_and_when_its_time_is_over() {
        let mut withdrawals = withdrawals();
        withdrawals.look(services(0..5), 5, SECOND).expect("a hold");
        let back = services(0..5);
        assert!(
            back[1..]
                .iter()
                .all(|service| !withdrawals.settled(service, true))
        );
        assert!(withdrawals.is_held(&back[0]));
        assert!(withdrawals.settled(&back[0], true));
        assert_eq!((withdrawals.hold(), withdrawals.left(0)), (None, None));

        withdrawals.look(services(0..5), 5, SECOND).expect("a hold");
        assert_eq!(withdrawals.left(61 * SECOND), Some(14 * 60 * SECOND));
        assert_eq!(withdrawals.left(u64::MAX), Some(0));
        assert_eq!(withdrawals.accept(), services(0..5));
        assert!(services(0..5).iter().all(|service| !withdrawals.is_held(service)));
        assert!(
            withdrawals.look(services(0..5), 5, 2 * SECOND).is_none(),
            "they may go"
        );
        assert!(withdrawals.accept().is_empty(), "nothing is on hold");
    }

    /// Deleting a definition deletes all its objects, one after the other.
    #[test]
    fn what_is_taken_away_during_a_hold_is_held_too() {
        let mut withdrawals = withdrawals();
        withdrawals.look(services(0..5), 8, 0).expect("a hold");
        assert!(!withdrawals.knows(&services(7..8)[0]));
        assert!(
            withdrawals.look(services(0..8), 8, 60 * SECOND).is_none(),
            "it goes on"
        );
        assert_eq!(withdrawals.held().count(), 8);
    }
}
