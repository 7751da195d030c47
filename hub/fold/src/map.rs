//! Owns: an ordered map whose copies cost nothing: they share what they have in common, and a change costs the path to
//! the changed entry. So a state is published, pinned and written down as it was, while the next is made.
//! Never: depends on hashing: it is walked in the order of its keys. The one file that names `rpds`.

use std::{fmt, ops::Bound};

use rpds::RedBlackTreeMapSync;

/// Entries that an owning walk copies at a time.
const STRIDE: usize = 256;

/// An ordered map whose copies share what they have in common.
#[derive(Clone)]
pub struct Map<K: Ord, V>(RedBlackTreeMapSync<K, V>);

impl<K: Ord, V> Map<K, V> {
    /// An empty one.
    pub fn new() -> Self {
        Self(RedBlackTreeMapSync::new_sync())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// Returns true if a key is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.0.contains_key(key)
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter()
    }

    /// All keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.values()
    }

    /// The entries whose keys are not before this one.
    pub fn from(&self, first: K) -> impl Iterator<Item = (&K, &V)> {
        self.range(Bound::Included(first))
    }

    /// The entries whose keys come after this one.
    pub fn after(&self, last: K) -> impl Iterator<Item = (&K, &V)> {
        self.range(Bound::Excluded(last))
    }

    fn range(&self, start: Bound<K>) -> impl Iterator<Item = (&K, &V)> {
        self.0.range::<K, (Bound<K>, Bound<K>)>((start, Bound::Unbounded))
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        self.0.insert_mut(key, value);
    }
}

impl<K: Ord + Clone, V: Clone> Map<K, V> {
    /// The value of a key, to be changed here and in no copy.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// Sets the value of a key, and gives back what it was.
    pub fn replace(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.0.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        self.insert(key, value);
        None
    }

    /// Takes a key and its value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        // A removal would copy the way to where the key is not.
        let value = self.get(key).cloned()?;
        self.0.remove_mut(key);
        Some(value)
    }

    /// The entries for which this holds.
    pub fn only(&self, mut holds: impl FnMut(&K, &V) -> bool) -> Self {
        let entries = self.iter().filter(|(key, value)| holds(key, value));
        entries.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The same keys with changed values.
    pub fn with(&self, mut change: impl FnMut(&mut V)) -> Self {
        let changed = self.iter().map(|(key, value)| {
            let mut value = value.clone();
            change(&mut value);
            (key.clone(), value)
        });
        changed.collect()
    }
}

impl<K: Ord, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord, V: PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Ord, V: Eq> Eq for Map<K, V> {}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord + Clone, V: Clone> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter {
            map: self,
            taken: None,
            stride: Vec::new().into_iter(),
        }
    }
}

/// A walk through a map that it holds. It copies a few entries at a time.
#[derive(Debug)]
pub struct IntoIter<K: Ord, V> {
    map: Map<K, V>,
    /// The last key that was copied.
    taken: Option<K>,
    stride: std::vec::IntoIter<(K, V)>,
}

impl<K: Ord + Clone, V: Clone> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        if let Some(entry) = self.stride.next() {
            return Some(entry);
        }
        let start = self.taken.take().map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.map.range(start).take(STRIDE);
        let entries: Vec<(K, V)> = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.taken = entries.last().map(|(key, _)| key.clone());
        if self.taken.is_none() {
            // A repeated query gets the same answer, without a walk from the start.
            self.map = Map::new();
        }
        self.stride = entries.into_iter();
        self.stride.next()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Change {
        Insert(u16, u32),
        Replace(u16, u32),
        Remove(u16),
        Alter(u16),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let key = 0_u16..600;
        let change = prop_oneof![
            2 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Change::Insert(key, value)),
            1 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Change::Replace(key, value)),
            1 => key.clone().prop_map(Change::Remove),
            1 => key.prop_map(Change::Alter),
        ];
        prop::collection::vec(change, 0..800)
    }

    fn same(map: &Map<u16, u32>, model: &BTreeMap<u16, u32>) {
        assert_eq!(map.len(), model.len());
        assert_eq!(map.is_empty(), model.is_empty());
        assert!(
            map.iter().eq(model.iter()) && map.keys().eq(model.keys()) && map.values().eq(model.values())
        );
        let owned = map.clone().into_iter();
        assert!(owned.eq(model.iter().map(|(key, value)| (*key, *value))));
        for key in [0, 1, 255, 256, 599] {
            assert_eq!(
                (map.get(&key), map.contains_key(&key)),
                (model.get(&key), model.contains_key(&key))
            );
            assert!(map.from(key).eq(model.range(key..)));
            assert!(
                map.after(key)
                    .eq(model.range((Bound::Excluded(key), Bound::Unbounded)))
            );
        }
    }

    proptest! {
        #[test]
        fn it_is_the_ordered_map_that_it_stands_for_and_no_copy_sees_a_later_change(changes in changes()) {
            let (mut map, mut model) = (Map::new(), BTreeMap::new());
            let mut copies = Vec::new();
            for (number, change) in changes.into_iter().enumerate() {
                if number % 100 == 0 {
                    copies.push((map.clone(), model.clone()));
                }
                match change {
                    Change::Insert(key, value) => {
                        map.insert(key, value);
                        model.insert(key, value);
                    }
                    Change::Replace(key, value) => {
                        prop_assert_eq!(map.replace(key, value), model.insert(key, value));
                    }
                    Change::Remove(key) => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    Change::Alter(key) => {
                        let altered = [map.get_mut(&key), model.get_mut(&key)].map(|value| {
                            value.map(|value| *value = value.wrapping_add(1))
                        });
                        prop_assert_eq!(altered[0], altered[1]);
                    }
                }
            }
            same(&map, &model);
            let odd = map.only(|key, _| key % 2 == 1);
            model.retain(|key, _| key % 2 == 1);
            same(&odd, &model);
            model.values_mut().for_each(|value| *value /= 2);
            same(&odd.with(|value| *value /= 2), &model);
            for (map, model) in copies {
                same(&map, &model);
            }
        }
    }

    #[test]
    fn an_owning_walk_ends_once_and_stays_ended() {
        let map: Map<usize, ()> = (0..2 * STRIDE).map(|key| (key, ())).collect();
        let mut walk = map.into_iter();
        assert_eq!(walk.by_ref().count(), 2 * STRIDE);
        assert_eq!((walk.next(), walk.next()), (None, None));
    }

    #[test]
    fn two_are_equal_by_what_they_hold_however_it_came_to_be() {
        let forth: Map<u8, u8> = (0..20).map(|key| (key, key)).collect();
        let back: Map<u8, u8> = (0..20).rev().map(|key| (key, key)).collect();
        assert_eq!(forth, back);
        assert_ne!(forth, (0..19).map(|key| (key, key)).collect());
        assert_ne!(forth, back.with(|value| *value = 0));
        assert_eq!(Map::<u8, u8>::default(), Map::new());
        assert_eq!(format!("{:?}", Map::from_iter([(1, 2)])), "{1: 2}");
    }
}
