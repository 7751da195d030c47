//! Differences on their way to an agent: some come over a foreign base, some broken, some twice, some after what they
//! once led to. And the law on what becomes of them: the object that the hub sent, or none.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::plan::Desired;
use bytes::Bytes;
use model::sync::{DesiredChange, DesiredItem, DesiredKey, HubMessage, ItemHash, Told};
use prost::Message;
use proto::v1::{self, desired_item::Item};

use oracle::laws::Law;

use super::super::{histogram::Histogram, network::Told as Sent};

/// The fate of one session's differences.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// The last one of each object.
    last: BTreeMap<DesiredKey, Bytes>,
    /// Objects of which something other was told than the hub said.
    disturbed: BTreeSet<DesiredKey>,
}

impl Differences {
    /// Disturbs a message on its way to the agent. The bytes of a difference decide its fate. Returns the objects
    /// concerned.
    pub(super) fn disturb(&mut self, message: &mut HubMessage, seen: &mut Histogram) -> BTreeSet<DesiredKey> {
        let HubMessage::Desired { items, .. } = message else {
            return BTreeSet::new();
        };
        let mut keys = BTreeSet::new();
        for item in std::mem::take(items) {
            let Ok(told) = wire::decode_told(item.clone()) else {
                continue;
            };
            let key = told.key();
            if matches!(told, Told::Difference(_)) {
                let arrived = self.arrives(&key, &item);
                if arrived != [item.clone()] {
                    seen.count("difference disturbed");
                }
                items.extend(arrived);
                self.last.insert(key.clone(), item);
            } else {
                items.push(item);
            }
            keys.insert(key);
        }
        keys
    }

    fn arrives(&mut self, key: &DesiredKey, item: &Bytes) -> Vec<Bytes> {
        let changed = |change: fn(&mut v1::ItemDifference)| {
            let mut item = v1::DesiredItem::decode(item.clone()).expect("it was read before");
            if let Some(Item::Difference(difference)) = &mut item.item {
                change(difference);
            }
            Bytes::from(item.encode_to_vec())
        };
        let earlier = self.last.get(key).cloned();
        let arrives = match blake3::hash(item).as_bytes()[0] % 16 {
            0..=2 => vec![changed(|difference| difference.base_hash[0] ^= 1)],
            3..=4 => vec![changed(|difference| difference.difference.reverse())],
            5 => return vec![item.clone(), item.clone()],
            6..=9 => [item.clone()].into_iter().chain(earlier).collect(),
            _ => return vec![item.clone()],
        };
        self.disturbed.insert(key.clone());
        arrives
    }

    /// **A difference makes the object that was sent**: whatever the agent holds of what this session told is what the hub
    /// published at that revision; and what came as the hub said it leads from what is held.
    pub(super) fn look(
        &self,
        desired: &Desired,
        (keys, sent): (&BTreeSet<DesiredKey>, &Sent),
        seen: &mut Histogram,
    ) -> Result<(), String> {
        for key in keys {
            if desired.wants(key) {
                seen.count("object wanted whole");
                if !self.disturbed.contains(key) {
                    let why =
                        "a difference did not lead from what the agent holds, and nothing was in its way";
                    return Err(Law::Differences.broken(format!("{}: {why}", name(key))));
                }
            }
            if desired.complete_epoch().is_none() {
                // What is held while a snapshot is under way is of an older telling, maybe of another epoch.
                continue;
            }
            let Some(held) = held(desired, key) else { continue };
            let Some(hash) = sent.get(&(key.clone(), held.revision)) else {
                continue;
            };
            if ItemHash::of(&wire::encode_desired(&held)) != *hash {
                let revision = held.revision;
                return Err(
                    Law::Differences.broken(format!("another {} is held as of {revision}", name(key)))
                );
            }
        }
        Ok(())
    }
}

fn name(key: &DesiredKey) -> String {
    match key {
        DesiredKey::Import(service) => format!("the import of {service}"),
        DesiredKey::Slice(slice) => {
            let (service, cluster) = (&slice.service, &slice.source_cluster);
            format!("slice {} of {service} of {cluster}", slice.source_slice)
        }
        DesiredKey::ExportStatus(service) => format!("the status of {service}"),
    }
}

fn held(desired: &Desired, key: &DesiredKey) -> Option<DesiredItem> {
    let (revision, change) = match key {
        DesiredKey::Import(service) => {
            let held = desired.import(service)?;
            (held.revision, DesiredChange::Import(held.value.clone()))
        }
        DesiredKey::Slice(slice) => {
            let mut slices = desired.slices(&slice.service);
            let held = slices.find(|held| held.value.key == *slice)?;
            (held.revision, DesiredChange::Slice(held.value.clone()))
        }
        DesiredKey::ExportStatus(service) => {
            let held = desired.export_status(service)?;
            (held.revision, DesiredChange::ExportStatus(held.value.clone()))
        }
    };
    Some(DesiredItem { revision, change })
}
