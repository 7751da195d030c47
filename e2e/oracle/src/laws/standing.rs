//! Owns: *what stood stays*: what was right and was then left alone by people loses no piece, whatever breaks.
//! Never: says what is right, or whether people left it alone.

use std::collections::BTreeMap;

use crate::{Parts, part::in_words};

/// Existing things, by any key of a place: a service in a cluster, an object in a cluster.
#[derive(Debug)]
pub struct Standing<K> {
    standing: BTreeMap<K, Stood>,
    guarded: u64,
}

#[derive(Debug)]
struct Stood {
    parts: Parts,
    looked_at: bool,
}

impl<K> Default for Standing<K> {
    fn default() -> Self {
        Self {
            standing: BTreeMap::new(),
            guarded: 0,
        }
    }
}

impl<K: Ord> Standing<K> {
    /// This is right, and stays from now on.
    pub fn stands(&mut self, key: K, parts: Parts) {
        let looked_at = self.standing.get(&key).is_some_and(|stood| stood.looked_at);
        self.standing.insert(key, Stood { parts, looked_at });
    }

    /// People changed something: it may go.
    pub fn release(&mut self, key: &K) {
        self.standing.remove(key);
    }

    /// The same for all but those that `keep` names.
    pub fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.standing.retain(|key, _| keep(key));
    }

    /// The parts that existed there and no longer do.
    pub fn lost(&mut self, key: &K, shown: &Parts) -> Parts {
        let Some(stood) = self.standing.get_mut(key) else {
            return Parts::new();
        };
        if !stood.parts.is_empty() && !std::mem::replace(&mut stood.looked_at, true) {
            self.guarded += 1;
        }
        stood.parts.difference(shown).cloned().collect()
    }

    /// The same as an error, in words.
    pub fn look(&mut self, key: &K, shown: &Parts) -> Result<(), String> {
        match self.lost(key, shown) {
            lost if lost.is_empty() => Ok(()),
            lost => Err(format!(
                "it was right, nobody changed it, and it lost: {}",
                in_words(lost.iter())
            )),
        }
    }

    /// Returns true if something stands there.
    pub fn has(&self, key: &K) -> bool {
        self.standing.contains_key(key)
    }

    /// The existing things.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.standing.keys()
    }

    /// Number of things that existed and were looked at afterwards.
    pub fn guarded(&self) -> u64 {
        self.guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::{Of, Part};

    fn parts(words: &[&str]) -> Parts {
        let part = |word: &&str| Part {
            of: Of::Import,
            what: (*word).to_owned(),
        };
        words.iter().map(part).collect()
    }

    #[test]
    fn what_stood_is_missed_however_much_else_is_there() {
        let mut standing = Standing::default();
        standing.stands("cart", parts(&["import", "port 80"]));
        assert_eq!(
            standing.look(&"cart", &parts(&["import", "port 80", "port 81"])),
            Ok(())
        );
        let lost = standing
            .look(&"cart", &parts(&["import", "port 81"]))
            .unwrap_err();
        assert!(lost.ends_with("lost: port 80"), "{lost}");
    }

    #[test]
    fn what_people_changed_may_go() {
        let mut standing = Standing::default();
        standing.stands("cart", parts(&["import"]));
        standing.stands("user", parts(&["import"]));
        standing.release(&"cart");
        assert_eq!(standing.look(&"cart", &Parts::new()), Ok(()));
        assert!(standing.look(&"user", &Parts::new()).is_err());
    }

    #[test]
    fn a_thing_is_counted_once_and_only_if_there_is_something_to_guard() {
        let mut standing = Standing::default();
        standing.stands("cart", parts(&["import"]));
        standing.stands("nothing", Parts::new());
        assert_eq!(standing.guarded(), 0, "nobody looked yet");
        for _ in 0..2 {
            assert!(standing.look(&"cart", &parts(&["import"])).is_ok());
            assert!(standing.look(&"nothing", &Parts::new()).is_ok());
        }
        assert_eq!(standing.guarded(), 1);
    }
}
