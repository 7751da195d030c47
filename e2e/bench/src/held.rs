//! Owns: what a played member holds of what it was told, so that a difference leads it to the whole object, as it does an
//! agent.
//! Never: asks for anything whole: what a session was told is what it holds, and a difference that leads nowhere is the
//! hub's mistake.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use shared::{
    difference,
    model::sync::{DesiredChange, DesiredKey, ItemHash, Told},
    wire::decode_told,
};

/// Objects by their key, encoded as they came: one process plays hundreds of members, and none of them plans.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<DesiredKey, Bytes>);

impl Held {
    /// The whole object that is told, encoded.
    pub(super) fn whole(&mut self, told: Bytes) -> anyhow::Result<Bytes> {
        match decode_told(told.clone()).context("the hub pushed what is no object")? {
            Told::Whole(item) => {
                let key = item.change.key();
                if matches!(item.change, DesiredChange::Removed(_)) {
                    self.0.remove(&key);
                } else {
                    self.0.insert(key, told.clone());
                }
                Ok(told)
            }
            Told::Difference(told) => {
                let base = self
                    .0
                    .get(&told.key)
                    .context("nothing is held that a difference leads from")?;
                let held = ItemHash::of(base);
                if held == told.hash {
                    return Ok(base.clone());
                }
                ensure!(
                    held == told.base,
                    "a difference leads from another version than the one that is held"
                );
                let whole: Bytes = difference::restore(base, &told.difference)?.into();
                ensure!(
                    ItemHash::of(&whole) == told.hash,
                    "a difference leads to another object than it says"
                );
                self.0.insert(told.key, whole.clone());
                Ok(whole)
            }
            Told::Unreadable { .. } => bail!("the hub pushed an object of another version of it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::{
        model::{
            ClusterId, Endpoint, ImportedSlice, ImportedSliceKey, IpFamily, Revision, ServiceKey,
            sync::DesiredItem,
        },
        wire::{encode_desired, encode_difference},
    };

    use super::*;

    fn version(revision: u64) -> DesiredItem {
        let endpoints = (0..50).map(|number| Endpoint {
            addresses: vec![[10, 0, 0, number].into()],
            ready: Some(revision != u64::from(number)),
            serving: None,
            terminating: None,
            hostname: None,
            zone: None,
        });
        let slice = ImportedSlice {
            key: ImportedSliceKey {
                service: ServiceKey::new("shop", "cart").expect("valid"),
                source_cluster: ClusterId::new("east").expect("valid"),
                source_slice: "cart-1".into(),
            },
            import_revision: Revision(1),
            address_type: IpFamily::V4,
            ports: Vec::new(),
            endpoints: endpoints.collect(),
        };
        DesiredItem {
            revision: Revision(revision),
            change: DesiredChange::Slice(slice.into()),
        }
    }

    #[test]
    fn a_difference_leads_to_the_object_and_from_another_one_nowhere() {
        let whole = |revision| -> Bytes { encode_desired(&version(revision)) };
        let difference = encode_difference(&whole(1), &whole(2), &version(2)).expect("it is shorter");
        let mut held = Held::default();
        held.whole(difference.clone()).expect_err("nothing is held");
        assert_eq!(held.whole(whole(1)).expect("an object"), whole(1));
        assert_eq!(
            held.whole(difference.clone()).expect("the next version"),
            whole(2)
        );
        assert_eq!(held.whole(difference.clone()).expect("told again"), whole(2));
        held.whole(whole(3)).expect("an object");
        held.whole(difference).expect_err("another version is held");
    }
}
