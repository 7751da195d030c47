//! Owns: what one member of a storm has received in its session, and what it holds over all of them: whether it is where
//! it was before.
//! Never: measures time, or takes the hub's word for what it holds.

use std::collections::{BTreeSet, HashSet};

use anyhow::Context;
use bytes::Bytes;
use prost::Message as _;
use proto::v1::{self, desired_item::Item};
use shared::model::{ClusterId, sync::Source};

use super::player::Heard;

/// A member's messages in this session, and its objects.
pub(super) struct Progress<'a> {
    pushed: bool,
    snapshot_due: bool,
    listed: BTreeSet<ClusterId>,
    held: &'a mut HashSet<v1::ImportedSliceKey>,
    /// Something came that is no object.
    broken: Option<anyhow::Error>,
}

impl<'a> Progress<'a> {
    /// A session begins. What was held before is held no more if the hub starts over, and is what a resume goes on from.
    pub(super) fn begin(starts_over: bool, held: &'a mut HashSet<v1::ImportedSliceKey>) -> Self {
        if starts_over {
            held.clear();
        }
        Self {
            pushed: false,
            snapshot_due: starts_over,
            listed: BTreeSet::new(),
            held,
            broken: None,
        }
    }

    /// An error once something came that is no object.
    pub(super) fn unbroken(&mut self) -> anyhow::Result<()> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// True for the first thing that the hub pushed.
    pub(super) fn take(&mut self, heard: &Heard) -> bool {
        match heard {
            Heard::SnapshotComplete => self.snapshot_due = false,
            Heard::Sources(sources) => sources.iter().for_each(|source| self.source(source)),
            Heard::Desired(items) => {
                if let Err(error) = items.iter().try_for_each(|item| self.hold(item)) {
                    self.broken.get_or_insert(error);
                }
            }
            Heard::Renewal(_) | Heard::Other => return false,
        }
        !std::mem::replace(&mut self.pushed, true)
    }

    fn source(&mut self, source: &Source) {
        if source.listed {
            self.listed.insert(source.cluster.clone());
        } else {
            self.listed.remove(&source.cluster);
        }
    }

    fn hold(&mut self, item: &Bytes) -> anyhow::Result<()> {
        let item = v1::DesiredItem::decode(item.clone()).context("the hub pushed what is no object")?;
        match item.item {
            Some(Item::ImportedSlice(slice)) => drop(slice.key.map(|key| self.held.insert(key))),
            Some(Item::ImportedSliceRemoved(key)) => drop(self.held.remove(&key)),
            _ => {}
        }
        Ok(())
    }

    /// Objects are counted: that the hub calls a snapshot complete proves nothing.
    pub(super) fn is_complete(&self, members: usize, due: usize) -> bool {
        !self.snapshot_due && self.listed.len() == members && self.held.len() == due
    }
}

#[cfg(test)]
mod tests {
    use shared::model::sync::SourceState;

    use super::*;

    fn key(name: &str) -> v1::ImportedSliceKey {
        v1::ImportedSliceKey {
            source_slice: name.to_owned(),
            ..Default::default()
        }
    }

    fn item(item: Item) -> Bytes {
        let item = v1::DesiredItem {
            item: Some(item),
            ..Default::default()
        };
        item.encode_to_vec().into()
    }

    fn slice(name: &str) -> Bytes {
        item(Item::ImportedSlice(v1::ImportedSlice {
            key: Some(key(name)),
            ..Default::default()
        }))
    }

    fn removed(name: &str) -> Bytes {
        item(Item::ImportedSliceRemoved(key(name)))
    }

    fn source(cluster: &str, listed: bool) -> Heard {
        Heard::Sources(vec![Source {
            cluster: ClusterId::new(cluster).expect("valid"),
            state: SourceState::Live,
            listed,
            ended: false,
            on_loss: None,
        }])
    }

    /// A session whose snapshot is complete and in which both members have listed.
    fn listed(held: &mut HashSet<v1::ImportedSliceKey>, starts_over: bool) -> Progress<'_> {
        let mut progress = Progress::begin(starts_over, held);
        for cluster in ["east", "west"] {
            progress.take(&source(cluster, true));
        }
        if starts_over {
            progress.take(&Heard::SnapshotComplete);
        }
        progress
    }

    #[test]
    fn a_complete_snapshot_that_lacks_an_object_is_not_complete() {
        let mut held = HashSet::new();
        let mut progress = listed(&mut held, true);
        progress.take(&Heard::Desired(vec![slice("a")]));
        assert!(!progress.is_complete(2, 2), "one of two");
        progress.take(&Heard::Desired(vec![slice("a")]));
        assert!(!progress.is_complete(2, 2), "the same once more");
        progress.take(&Heard::Desired(vec![slice("b")]));
        assert!(progress.is_complete(2, 2));
    }

    #[test]
    fn everything_held_is_not_complete_before_the_snapshot_is_and_all_have_listed() {
        let mut held = HashSet::new();
        let mut progress = Progress::begin(true, &mut held);
        assert!(progress.take(&Heard::Desired(vec![slice("a")])), "the first push");
        assert!(!progress.take(&source("east", true)), "not the first");
        assert!(!progress.is_complete(1, 1), "the snapshot goes on");
        progress.take(&Heard::SnapshotComplete);
        assert!(progress.is_complete(1, 1));
        assert!(!progress.is_complete(2, 1), "one has not listed");
        progress.take(&source("east", false));
        assert!(!progress.is_complete(1, 1), "it lists anew");
    }

    #[test]
    fn what_is_removed_is_held_no_more() {
        let mut held = HashSet::new();
        let mut progress = listed(&mut held, true);
        progress.take(&Heard::Desired(vec![slice("a"), slice("b")]));
        assert!(progress.is_complete(2, 2));
        progress.take(&Heard::Desired(vec![removed("b")]));
        assert!(!progress.is_complete(2, 2));
        assert!(progress.is_complete(2, 1));
    }

    #[test]
    fn a_resume_keeps_what_is_held_and_a_snapshot_begins_with_nothing() {
        let mut held = HashSet::from([key("a"), key("b")]);
        assert!(
            listed(&mut held, false).is_complete(2, 2),
            "nothing is sent again"
        );
        let mut progress = listed(&mut held, true);
        progress.take(&Heard::Desired(vec![slice("a")]));
        assert!(!progress.is_complete(2, 2), "what was held before proves nothing");
        assert_eq!(held, HashSet::from([key("a")]));
    }

    #[test]
    fn what_is_no_object_breaks_the_session() {
        let mut held = HashSet::new();
        let mut progress = listed(&mut held, true);
        progress.unbroken().expect("nothing is wrong yet");
        progress.take(&Heard::Desired(vec![Bytes::from_static(b"\xff")]));
        progress.unbroken().expect_err("that was no object");
    }
}
