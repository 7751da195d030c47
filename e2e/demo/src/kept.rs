//! The objects of one kind in one cluster, as a watch tells them.
//! It knows names and uids, nothing of what the objects mean.

use std::{collections::BTreeMap, time::Instant};

use kube::{Resource, ResourceExt};

use super::observe::Delta;

/// Namespace and name. A cluster-wide object has an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Name {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    fn of(object: &impl Resource<DynamicType = ()>) -> Self {
        Self::new(&object.namespace().unwrap_or_default(), &object.name_any())
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One object, and when the one with this uid was first heard of.
#[derive(Debug)]
pub(super) struct Seen<T> {
    pub(super) since: Instant,
    pub(super) object: T,
}

/// All objects of a kind.
#[derive(Debug)]
pub(super) struct Kept<T> {
    objects: BTreeMap<Name, Seen<T>>,
    listed: bool,
    removed: BTreeMap<Name, u64>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            listed: false,
            removed: BTreeMap::new(),
        }
    }
}

impl<T: Resource<DynamicType = ()>> Kept<T> {
    pub(super) fn take(&mut self, delta: Delta<T>, at: Instant) {
        match delta {
            Delta::Applied(object) => self.put(*object, at),
            Delta::Deleted(object) => self.remove(&Name::of(&*object)),
            Delta::Listed(objects) => {
                let mut gone: Vec<Name> = self.objects.keys().cloned().collect();
                gone.retain(|name| !objects.iter().any(|object| Name::of(object) == *name));
                gone.iter().for_each(|name| self.remove(name));
                objects.into_iter().for_each(|object| self.put(object, at));
                self.listed = true;
            }
        }
    }

    fn put(&mut self, object: T, at: Instant) {
        let name = Name::of(&object);
        let known = self.objects.get(&name);
        let same = known.filter(|known| known.object.meta().uid == object.meta().uid);
        let since = same.map_or(at, |known| known.since);
        if known.is_some() && same.is_none() {
            self.remove(&name);
        }
        self.objects.insert(name, Seen { since, object });
    }

    fn remove(&mut self, name: &Name) {
        if self.objects.remove(name).is_some() {
            *self.removed.entry(name.clone()).or_default() += 1;
        }
    }

    /// Returns true if the first list is complete.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Seen<T>> {
        self.objects.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &T)> {
        self.objects.iter().map(|(name, seen)| (name, &seen.object))
    }

    /// Number of times that an object of this name has gone, replacements included.
    pub(super) fn removals(&self) -> &BTreeMap<Name, u64> {
        &self.removed
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;

    use super::*;

    fn namespace(name: &str, uid: &str) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.into());
        namespace.metadata.uid = Some(uid.into());
        namespace
    }

    #[test]
    fn what_a_list_leaves_out_and_what_has_a_new_uid_was_removed() {
        let (first, second) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(1));
        let mut kept = Kept::default();
        kept.take(
            Delta::Listed(vec![
                namespace("a", "1"),
                namespace("b", "2"),
                namespace("c", "3"),
            ]),
            first,
        );
        assert!(kept.is_listed() && kept.removals().is_empty());
        kept.take(
            Delta::Listed(vec![namespace("a", "1"), namespace("b", "4")]),
            second,
        );
        let name = |name: &str| Name::new("", name);
        assert_eq!(kept.get(&name("a")).expect("kept").since, first);
        assert_eq!(kept.get(&name("b")).expect("replaced").since, second);
        assert!(kept.get(&name("c")).is_none());
        assert_eq!(
            *kept.removals(),
            [(name("b"), 1), (name("c"), 1)].into_iter().collect()
        );
        kept.take(Delta::Deleted(Box::new(namespace("a", "1"))), second);
        assert_eq!(kept.removals().len(), 3);
    }
}
