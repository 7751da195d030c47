//! Owns: an ordered map for few entries, which takes no more room than they do: a tree has room for eleven from the first
//! on, and most services have one cluster.
//! Never: is meant for many: each entry that is added may move all others.

use std::{fmt, slice};

/// An ordered map for few entries.
#[derive(Clone, PartialEq, Eq)]
pub struct FewMap<K, V>(Vec<(K, V)>);

impl<K: Ord, V> FewMap<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.place(key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// Returns true if a key is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    /// All keys, in their order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    /// All entries, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Sets the value of a key, and gives back what it was.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes a key and its value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key).ok()?;
        Some(self.0.remove(place).1)
    }

    fn place(&self, key: &K) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(key))
    }
}

impl<K, V> Default for FewMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Of entries with one key the last counts.
impl<K: Ord, V> FromIterator<(K, V)> for FewMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            // Equal keys stay in their order, and each is dropped for the next.
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.reverse();
            entries.dedup_by(|(one, _), (other, _)| one == other);
            entries.reverse();
        }
        entries.shrink_to_fit();
        Self(entries)
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for FewMap<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<'a, K, V> IntoIterator for &'a FewMap<K, V> {
    type Item = &'a (K, V);
    type IntoIter = slice::Iter<'a, (K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for FewMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.iter().map(|(key, value)| (key, value)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn same(few: &FewMap<u8, u16>, model: &BTreeMap<u8, u16>) {
        assert!(few.iter().eq(model.iter()) && few.keys().eq(model.keys()));
        assert_eq!((few.len(), few.is_empty()), (model.len(), model.is_empty()));
        assert!(few.into_iter().map(|(key, value)| (key, value)).eq(model.iter()));
        for key in 0..8 {
            assert_eq!(
                (few.get(&key), few.contains_key(&key)),
                (model.get(&key), model.contains_key(&key))
            );
        }
        assert_eq!(format!("{few:?}"), format!("{model:?}"));
    }

    proptest! {
        #[test]
        fn it_is_the_ordered_map_that_it_stands_for(
            first in vec((0_u8..8, any::<u16>()), 0..8), then in vec((0_u8..8, any::<Option<u16>>()), 0..20),
        ) {
            let (mut few, mut model) = (FewMap::from_iter(first.clone()), BTreeMap::from_iter(first));
            same(&few, &model);
            for (key, value) in then {
                match value {
                    Some(value) => prop_assert_eq!(few.insert(key, value), model.insert(key, value)),
                    None => prop_assert_eq!(few.remove(&key), model.remove(&key)),
                }
                same(&few, &model);
            }
        }
    }
}
