//! Owns: the revisions whose pages are still asked for: each stays as it was until nobody has asked for some time, and
//! there are a few at most. A pin is a copy that shares what did not change, so that it costs what changed since.
//! Never: reads a clock.

use std::sync::Arc;

use shared::model::{Epoch, Revision};

use crate::writer::Published;

/// Revisions that are kept for further pages of operators and readers; one more takes the place of the one that was used
/// longest ago.
pub const PINNED_FOR_PEOPLE_MAX: usize = 5;
/// The same for members: whatever they ask for, the pages of operators and readers continue.
pub const PINNED_FOR_MEMBERS_MAX: usize = 3;
/// A revision is kept for so long after it was asked for, in milliseconds.
pub const PINNED_MILLIS: u64 = 60_000;

/// The revisions that are kept. The one used last is last.
#[derive(Debug, Default)]
pub(crate) struct Pins(Vec<Pin>);

#[derive(Debug)]
struct Pin {
    published: Arc<Published>,
    /// It was the newest then.
    since: u64,
    used_at: u64,
    for_whom: ForWhom,
}

/// For whom a revision is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ForWhom {
    /// Members only.
    Members,
    /// An operator or a reader, and any other caller.
    People,
}

impl Pin {
    fn is_of(&self, epoch: Epoch, revision: Revision) -> bool {
        (self.published.head.epoch, self.published.head.revision) == (epoch, revision)
    }
}

impl Pins {
    /// Keeps a revision from now on, in monotonic milliseconds.
    pub(crate) fn pin(&mut self, published: Arc<Published>, mut for_whom: ForWhom, now: u64) {
        self.let_go(now);
        let (epoch, revision) = (published.head.epoch, published.head.revision);
        for same in self.0.extract_if(.., |pin| pin.is_of(epoch, revision)) {
            for_whom = for_whom.max(same.for_whom);
        }
        let most = match for_whom {
            ForWhom::Members => PINNED_FOR_MEMBERS_MAX,
            ForWhom::People => PINNED_FOR_PEOPLE_MAX,
        };
        let alike = |pin: &Pin| pin.for_whom == for_whom;
        if self.0.iter().filter(|pin| alike(pin)).count() >= most {
            let longest_ago = self.0.iter().position(alike);
            longest_ago.map(|place| self.0.remove(place));
        }
        self.0.push(Pin {
            published,
            since: now,
            used_at: now,
            for_whom,
        });
    }

    /// A revision that is kept, and when it was the newest. It is used now.
    pub(crate) fn find(
        &mut self,
        epoch: Epoch,
        revision: Revision,
        now: u64,
    ) -> Option<(Arc<Published>, u64)> {
        self.let_go(now);
        let place = self.0.iter().position(|pin| pin.is_of(epoch, revision))?;
        let mut pin = self.0.remove(place);
        pin.used_at = now;
        let found = (pin.published.clone(), pin.since);
        self.0.push(pin);
        Some(found)
    }

    /// Drops what nobody asked for long enough.
    pub(crate) fn let_go(&mut self, now: u64) {
        self.0
            .retain(|pin| now.saturating_sub(pin.used_at) < PINNED_MILLIS);
    }
}

#[cfg(test)]
mod tests {
    use shared::model::{Cursor, UnixMillis};

    use super::{
        ForWhom::{Members, People},
        *,
    };
    use crate::fold::State;

    fn epoch() -> Epoch {
        Epoch::default().next(UnixMillis(1_000), 7)
    }

    fn published(revision: u64) -> Arc<Published> {
        let head = Cursor {
            epoch: epoch(),
            revision: Revision(revision),
            ..Cursor::default()
        };
        Arc::new(Published {
            head,
            state: State::new(),
            connected: Arc::default(),
            listed: Arc::default(),
            limits: Default::default(),
            term: 1,
        })
    }

    fn kept(pins: &Pins) -> Vec<u64> {
        pins.0.iter().map(|pin| pin.published.head.revision.0).collect()
    }

    #[test]
    fn a_revision_is_kept_until_nobody_asks_any_more() {
        let mut pins = Pins::default();
        pins.pin(published(1), People, 0);
        let mut find = |epoch, now| pins.find(epoch, Revision(1), now).is_some();
        assert!(find(epoch(), PINNED_MILLIS - 1));
        assert!(
            !find(epoch().next(UnixMillis(2_000), 7), PINNED_MILLIS - 1),
            "of another epoch"
        );
        assert!(find(epoch(), 2 * PINNED_MILLIS - 2), "it was used meanwhile");
        assert!(!find(epoch(), 3 * PINNED_MILLIS - 2));
        assert_eq!(kept(&pins), [] as [u64; 0]);
        pins.pin(published(2), People, 0);
        pins.let_go(PINNED_MILLIS);
        assert_eq!(kept(&pins), [] as [u64; 0], "whether anybody asks or not");
    }

    #[test]
    fn one_too_many_takes_the_place_of_the_one_that_was_used_longest_ago() {
        let mut pins = Pins::default();
        for revision in 1..=5 {
            pins.pin(published(revision), People, revision);
        }
        assert!(pins.find(epoch(), Revision(1), 20).is_some());
        pins.pin(published(3), People, 20);
        assert_eq!(kept(&pins), [2, 4, 5, 1, 3], "none twice");
        pins.pin(published(9), People, 20);
        assert_eq!(kept(&pins), [4, 5, 1, 3, 9]);
        assert!(pins.find(epoch(), Revision(2), 20).is_none());
    }

    #[test]
    fn members_take_each_others_places_and_nobody_elses() {
        let mut pins = Pins::default();
        pins.pin(published(1), People, 1);
        for revision in 2..100 {
            pins.pin(published(revision), Members, revision);
        }
        assert_eq!(kept(&pins), [1, 97, 98, 99]);
        pins.pin(published(97), People, 100);
        for revision in 100..200 {
            pins.pin(published(revision), Members, revision);
        }
        assert_eq!(kept(&pins), [1, 97, 197, 198, 199], "who asks for it keeps it");
        pins.pin(published(97), Members, 200);
        for revision in 200..300 {
            pins.pin(published(revision), People, revision);
        }
        let all = kept(&pins);
        assert_eq!(all, [197, 198, 199, 295, 296, 297, 298, 299]);
        assert_eq!(all.len(), PINNED_FOR_PEOPLE_MAX + PINNED_FOR_MEMBERS_MAX);
    }

    #[test]
    fn the_newest_word_on_sessions_is_kept_with_a_revision() {
        let mut pins = Pins::default();
        pins.pin(published(1), People, 0);
        let newer = published(1);
        pins.pin(newer.clone(), People, 1);
        for now in [2, 3] {
            let found = pins.find(epoch(), Revision(1), now);
            assert!(found.is_some_and(|(found, since)| Arc::ptr_eq(&found, &newer) && since == 1));
        }
    }
}
