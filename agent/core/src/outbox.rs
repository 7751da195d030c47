//! A latest-wins queue, by key, of the facts that this cluster reports and the hub has not acknowledged. Pure. It owns
//! the current facts, the set of facts that still wait, and the hub's refusals. The number of keys bounds it, never
//! time: while connected it holds the changes, while disconnected nothing but the facts.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    ChangedBy, EncodedFact, Fact, FactHash, FactKey, FactsDigest, ListingGroup, facts_digest,
    sync::{Observation, ObservedItem, RefusalReason, Refused},
};
use wire::encode_fact;

/// The kind of an entry in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// The latest state of a key, looked up when it is sent.
    Fact(FactKey),
    /// The end of a listing.
    ListingCompleted(ListingGroup),
}

/// A refused fact: sending it again unchanged gives the same answer, unless it was refused for now, when the hub asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The bytes that were refused.
    pub hash: FactHash,
    /// The kind of reason.
    pub reason: RefusalReason,
    /// Problem and next step, as a message.
    pub message: std::sync::Arc<str>,
}

impl Refusal {
    /// True if the hub has to withdraw its fact of the key. A fact refused for lack of room stays and is taken later.
    fn withdraws(&self) -> bool {
        !self.reason.is_for_now()
    }
}

/// A current fact, and the last writer of its object then.
#[derive(Debug)]
struct Stated {
    fact: EncodedFact,
    changed_by: Option<ChangedBy>,
}

/// One group's facts.
#[derive(Debug, Default)]
struct Group {
    facts: BTreeMap<FactKey, Stated>,
    /// Every watch the group is joined from has finished its first list.
    complete: bool,
    /// The hub of this session wants a listing that has not begun, because the group was not complete.
    wanted: bool,
}

/// The queue.
#[derive(Debug)]
pub struct Outbox {
    exports: Group,
    properties: Group,
    encode_removal: fn(&FactKey) -> EncodedFact,
    refusals: BTreeMap<FactKey, Refusal>,
    /// Keys for which people were told that the hub refuses their fact.
    told: BTreeSet<FactKey>,
    /// The version of the hub that spoke last.
    hub_version: Option<Box<str>>,
    connected: bool,
    /// Waiting entries in the order in which they will be sent.
    waiting: BTreeMap<u64, Entry>,
    place: BTreeMap<FactKey, u64>,
    next_place: u64,
    /// Sent entries that are not acknowledged: sequence number, key, and the hash that was sent.
    sent: BTreeMap<u64, Option<(FactKey, FactHash)>>,
    last_sequence: u64,
}

impl Outbox {
    /// An empty outbox. Removals are encoded by the function, which is wire conversion and not known here.
    pub fn new(encode_removal: fn(&FactKey) -> EncodedFact) -> Self {
        Self {
            exports: Group::default(),
            properties: Group::default(),
            encode_removal,
            refusals: BTreeMap::new(),
            told: BTreeSet::new(),
            hub_version: None,
            connected: false,
            waiting: BTreeMap::new(),
            place: BTreeMap::new(),
            next_place: 0,
            sent: BTreeMap::new(),
            last_sequence: 0,
        }
    }

    fn group(&self, group: ListingGroup) -> &Group {
        match group {
            ListingGroup::Exports => &self.exports,
            ListingGroup::Properties => &self.properties,
        }
    }

    fn group_mut(&mut self, group: ListingGroup) -> &mut Group {
        match group {
            ListingGroup::Exports => &mut self.exports,
            ListingGroup::Properties => &mut self.properties,
        }
    }

    /// States the present value of a key: a fact, or that there is none. Returns whether it is news.
    pub fn set(&mut self, key: FactKey, fact: Option<EncodedFact>) -> bool {
        match fact {
            Some(fact) => self.state(key, fact, None),
            None => {
                let removed = self.group_mut(key.group()).facts.remove(&key).is_some();
                if removed {
                    self.changed(key, true);
                    self.retry_one();
                }
                removed
            }
        }
    }

    /// States the fact of a key, and who wrote last to what it was read from. Returns whether it is news: it is not
    /// where only that somebody wrote is, and then who made the fact what it is stays noted.
    pub fn state(&mut self, key: FactKey, fact: EncodedFact, changed_by: Option<ChangedBy>) -> bool {
        let facts = &mut self.group_mut(key.group()).facts;
        if facts.get(&key).is_some_and(|known| known.fact.hash == fact.hash) {
            return false;
        }
        let replaced = facts.insert(key.clone(), Stated { fact, changed_by }).is_some();
        self.changed(key, replaced);
        true
    }

    /// A key has another value, or none any more.
    fn changed(&mut self, key: FactKey, had_one: bool) {
        // Health belongs to no listing: a cluster that cannot list its ClusterProperties is not healthy for that.
        let listed_later = self.group(key.group()).wanted && key != FactKey::Health;
        if self.connected && !listed_later {
            self.enqueue(key);
        } else if had_one {
            self.refusals.remove(&key);
        }
    }

    /// A fact went, so that one of those may be taken that the hub had no place for.
    fn retry_one(&mut self) {
        let has_no_place = |(_, refusal): &(&FactKey, &Refusal)| refusal.reason == RefusalReason::TooMany;
        let first = self.refusals.iter().find(has_no_place);
        if let Some(key) = first.map(|(key, _)| key.clone()) {
            self.retry(key);
        }
    }

    /// The fact is stated again as if it had never been refused.
    fn retry(&mut self, key: FactKey) {
        self.refusals.remove(&key);
        if self.connected && !self.group(key.group()).wanted {
            self.enqueue(key);
        }
    }

    /// A hub of this version speaks from now on. A hub of another version may know the fact that this one refused.
    pub fn hub_is(&mut self, version: &str) {
        let before = self.hub_version.replace(version.into());
        if before.is_some_and(|before| *before != *version) {
            let refused = self.refusals.iter().filter(|(_, refusal)| refusal.withdraws());
            let refused: Vec<FactKey> = refused.map(|(key, _)| key.clone()).collect();
            refused.into_iter().for_each(|key| self.retry(key));
        }
    }

    /// The group is complete: every key that it has was stated. A listing that waited for it begins.
    pub fn complete(&mut self, group: ListingGroup) {
        self.group_mut(group).complete = true;
        if self.group(group).wanted {
            self.begin_listing(group);
        }
    }

    /// Returns true if the group is complete.
    pub fn is_complete(&self, group: ListingGroup) -> bool {
        self.group(group).complete
    }

    /// Digest of the group's facts that the hub accepted or has not seen; absent until it is complete.
    pub fn digest(&self, group: ListingGroup) -> Option<FactsDigest> {
        let group = self.group(group);
        let accepted = |(key, stated): &(&FactKey, &Stated)| {
            self.refusals
                .get(key)
                .is_none_or(|refusal| refusal.hash != stated.fact.hash || !refusal.withdraws())
        };
        let facts = group
            .facts
            .iter()
            .filter(accepted)
            .map(|(key, stated)| (key, stated.fact.hash));
        group.complete.then(|| facts_digest(facts))
    }

    /// A session begins with Hello: from now on changes are kept in order.
    pub fn begin_session(&mut self) {
        self.end_session();
        self.connected = true;
    }

    /// The session ended: what was not acknowledged will be compared or listed by the next one.
    pub fn end_session(&mut self) {
        self.connected = false;
        self.waiting.clear();
        self.place.clear();
        self.sent.clear();
        self.last_sequence = 0;
        self.exports.wanted = false;
        self.properties.wanted = false;
    }

    /// The hub's Welcome says which groups it wants listed.
    pub fn welcome(&mut self, list_exports: bool, list_properties: bool) {
        // A fact that another session had no room for is recorded, or listed again.
        self.take_held_back();
        for (group, wanted) in [
            (ListingGroup::Exports, list_exports),
            (ListingGroup::Properties, list_properties),
        ] {
            if wanted {
                self.group_mut(group).wanted = true;
                if self.group(group).complete {
                    self.begin_listing(group);
                }
            }
        }
    }

    fn begin_listing(&mut self, group: ListingGroup) {
        self.group_mut(group).wanted = false;
        self.refusals.retain(|key, _| key.group() != group);
        let keys: Vec<FactKey> = self.group(group).facts.keys().cloned().collect();
        for key in keys {
            self.enqueue(key);
        }
        self.push(Entry::ListingCompleted(group));
    }

    /// A key that already waits keeps its place: the latest value is sent once.
    fn enqueue(&mut self, key: FactKey) {
        if !self.place.contains_key(&key) {
            self.place.insert(key.clone(), self.next_place);
            self.push(Entry::Fact(key));
        }
    }

    fn push(&mut self, entry: Entry) {
        self.waiting.insert(self.next_place, entry);
        self.next_place += 1;
    }

    /// The next observations to send: at most so many bytes (but at least one), and never more than
    /// `unacknowledged_max` under way.
    pub fn next_batch(&mut self, bytes_max: usize, unacknowledged_max: usize) -> Vec<Observation> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max && self.sent.len() < unacknowledged_max {
            let Some((_, entry)) = self.waiting.pop_first() else {
                break;
            };
            self.last_sequence += 1;
            let (item, changed_by) = match entry {
                Entry::ListingCompleted(group) => {
                    self.sent.insert(self.last_sequence, None);
                    (ObservedItem::ListingCompleted(group), None)
                }
                Entry::Fact(key) => {
                    self.place.remove(&key);
                    let (fact, changed_by) = self.present(&key);
                    bytes += fact.bytes.len();
                    self.sent.insert(self.last_sequence, Some((key, fact.hash)));
                    (ObservedItem::Fact(fact), changed_by)
                }
            };
            batch.push(Observation {
                sequence: self.last_sequence,
                item,
                changed_by,
            });
        }
        batch
    }

    /// The report for a key: its fact and last writer, or its removal if it has no fact or the hub refused this very
    /// one.
    fn present(&self, key: &FactKey) -> (EncodedFact, Option<ChangedBy>) {
        let stated = self.group(key.group()).facts.get(key);
        let refused = |fact: &EncodedFact| {
            self.refusals
                .get(key)
                .is_some_and(|refusal| refusal.hash == fact.hash && refusal.withdraws())
        };
        match stated {
            // A health is only ever replaced.
            Some(stated) if !refused(&stated.fact) || *key == FactKey::Health => {
                (stated.fact.clone(), stated.changed_by.clone())
            }
            _ => ((self.encode_removal)(key), None),
        }
    }

    /// The hub dealt with everything up to `sequence`. The keys whose facts it took that it had refused before come back.
    pub fn acknowledge(&mut self, sequence: u64) -> Vec<FactKey> {
        let later = self.sent.split_off(&(sequence + 1));
        let done = std::mem::replace(&mut self.sent, later);
        let mut taken = Vec::new();
        for (key, hash) in done.into_values().flatten() {
            let stated = self.group(key.group()).facts.get(&key);
            let is_present = stated.is_some_and(|stated| stated.fact.hash == hash);
            let is_refused = self
                .refusals
                .get(&key)
                .is_some_and(|refusal| refusal.hash == hash);
            if is_present && !is_refused && self.told.remove(&key) {
                self.refusals.remove(&key);
                taken.push(key);
            }
        }
        taken
    }

    /// The hub did not take one item. The hub's earlier fact of the key, if any, is withdrawn: a refused export has no
    /// place in the precedence. Returns the key, if its present fact is the refused one.
    pub fn refuse(&mut self, refused: &Refused) -> Option<FactKey> {
        let (key, hash) = self.sent.get(&refused.sequence)?.clone()?;
        let present = self.group(key.group()).facts.get(&key)?;
        if present.fact.hash != hash {
            return None;
        }
        let refusal = Refusal {
            hash,
            reason: refused.reason,
            message: refused.message.clone(),
        };
        if refusal.withdraws() && key != FactKey::Health {
            self.enqueue(key.clone());
        }
        self.refusals.insert(key.clone(), refusal);
        self.told.insert(key.clone());
        Some(key)
    }

    /// The hub has room again: facts that it refused for lack of room are sent once more.
    pub fn report_again(&mut self) {
        let held_back = self.take_held_back();
        held_back.into_iter().for_each(|key| self.enqueue(key));
    }

    fn take_held_back(&mut self) -> Vec<FactKey> {
        let held_back = self.refusals.extract_if(.., |_, refusal| !refusal.withdraws());
        held_back.map(|(key, _)| key).collect()
    }

    /// Why the hub does not take the present fact of a key.
    pub fn refusal(&self, key: &FactKey) -> Option<&Refusal> {
        let present = self.group(key.group()).facts.get(key)?;
        self.refusals
            .get(key)
            .filter(|refusal| refusal.hash == present.fact.hash)
    }

    /// The keys that have a fact, in a group.
    pub fn keys(&self, group: ListingGroup) -> BTreeSet<FactKey> {
        self.group(group).facts.keys().cloned().collect()
    }

    /// Number of entries that wait, and of entries that are sent and not acknowledged.
    pub fn depth(&self) -> (usize, usize) {
        (self.waiting.len(), self.sent.len())
    }
}

/// The removal of what a key names, as the outbox sends it. Health is never removed.
pub fn removal(key: &FactKey) -> EncodedFact {
    encode_fact(&match key {
        FactKey::Export(service) => Fact::ExportRemoved(service.clone()),
        FactKey::EndpointSlice(slice) => Fact::EndpointSliceRemoved(slice.clone()),
        FactKey::ClusterProperty(name) => Fact::ClusterPropertyRemoved(name.clone()),
        FactKey::Health => unreachable!("health is only ever replaced"),
    })
}

#[cfg(test)]
mod tests;
