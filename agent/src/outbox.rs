//! What this cluster reports and the hub has not acknowledged: a latest-wins queue of facts, by key.
//! Pure. It owns the current facts, which of them still wait, and what the hub refused. It is bounded by the
//! number of keys, never by time: connected it holds what changed, disconnected nothing but the facts.

use std::collections::{BTreeMap, BTreeSet};

use shared::model::{
    ChangedBy, EncodedFact, FactHash, FactKey, FactsDigest, ListingGroup, facts_digest,
    sync::{Observation, ObservedItem, RefusalReason, Refused},
};

/// What a place in the queue stands for.
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
    /// What is wrong and what to do.
    pub message: std::sync::Arc<str>,
}

impl Refusal {
    /// What the hub holds of the key is to go. For want of room it stays, and the fact is taken later.
    fn withdraws(&self) -> bool {
        !self.reason.is_for_now()
    }
}

/// A fact as it stands, and who had written last when it came to be so.
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
        let listed_later = self.group(key.group()).wanted;
        if self.connected && !listed_later {
            self.enqueue(key);
        } else if had_one {
            self.refusals.remove(&key);
        }
    }

    /// The group is complete: every key that it has was stated. A listing that waited for it begins.
    pub fn complete(&mut self, group: ListingGroup) {
        self.group_mut(group).complete = true;
        if self.group(group).wanted {
            self.begin_listing(group);
        }
    }

    /// Whether the group is complete.
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
        // What another session had no room for is recorded, or listed again.
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

    /// What to say about a key: its fact and who wrote last, or its removal if it has none or the hub refused just
    /// this one.
    fn present(&self, key: &FactKey) -> (EncodedFact, Option<ChangedBy>) {
        let stated = self.group(key.group()).facts.get(key);
        let refused = |fact: &EncodedFact| {
            self.refusals
                .get(key)
                .is_some_and(|refusal| refusal.hash == fact.hash && refusal.withdraws())
        };
        match stated {
            Some(stated) if !refused(&stated.fact) => (stated.fact.clone(), stated.changed_by.clone()),
            _ => ((self.encode_removal)(key), None),
        }
    }

    /// The hub dealt with everything up to `sequence`.
    pub fn acknowledge(&mut self, sequence: u64) {
        self.sent = self.sent.split_off(&(sequence + 1));
    }

    /// The hub did not take one item. What it may hold of the key from before is withdrawn: a refused export
    /// has no place in the precedence. Returns the key, if its present fact is the refused one.
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
        Some(key)
    }

    /// The hub has room again: what it refused for want of it is said once more.
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

    /// How many entries wait, and how many are sent and not acknowledged.
    pub fn depth(&self) -> (usize, usize) {
        (self.waiting.len(), self.sent.len())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shared::model::{Fact, ServiceKey};

    use super::*;

    fn key(name: &str) -> FactKey {
        FactKey::Export(ServiceKey::new("shop", name).unwrap())
    }

    /// Facts here are told apart by their bytes alone.
    fn fact(text: &str) -> EncodedFact {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let hash = FactHash::of(&bytes);
        EncodedFact {
            fact: Fact::MemberLive,
            bytes,
            hash,
        }
    }

    fn removal(_: &FactKey) -> EncodedFact {
        fact("removed")
    }

    fn texts(batch: &[Observation]) -> Vec<String> {
        let text = |observation: &Observation| match &observation.item {
            ObservedItem::Fact(fact) => String::from_utf8(fact.bytes.to_vec()).unwrap(),
            ObservedItem::ListingCompleted(_) => "listed".into(),
            ObservedItem::Invalid(_) => unreachable!("agents send none"),
        };
        batch.iter().map(text).collect()
    }

    fn listed(facts: &[(&str, &str)]) -> Outbox {
        let mut outbox = Outbox::new(removal);
        for (name, text) in facts {
            outbox.set(key(name), Some(fact(text)));
        }
        outbox.complete(ListingGroup::Exports);
        outbox.begin_session();
        outbox
    }

    #[test]
    fn a_listing_waits_until_its_group_is_complete() {
        let mut outbox = Outbox::new(removal);
        outbox.set(key("a"), Some(fact("a1")));
        outbox.begin_session();
        assert_eq!(outbox.digest(ListingGroup::Exports), None);
        outbox.welcome(true, false);
        outbox.set(key("b"), Some(fact("b1")));
        assert!(outbox.next_batch(1_000, 10).is_empty());
        outbox.complete(ListingGroup::Exports);
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a1", "b1", "listed"]);
    }

    #[test]
    fn only_the_latest_value_of_a_waiting_key_is_sent() {
        let mut outbox = listed(&[("a", "a1")]);
        outbox.welcome(false, false);
        for text in ["a2", "a3"] {
            outbox.set(key("a"), Some(fact(text)));
        }
        outbox.set(key("b"), Some(fact("b1")));
        outbox.set(key("b"), None);
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a3", "removed"]);
    }

    #[test]
    fn a_change_after_sending_is_sent_again_and_the_window_holds() {
        let mut outbox = listed(&[("a", "a1"), ("b", "b1")]);
        outbox.welcome(true, false);
        assert_eq!(texts(&outbox.next_batch(1_000, 2)), ["a1", "b1"]);
        outbox.set(key("a"), Some(fact("a2")));
        assert!(outbox.next_batch(1_000, 2).is_empty());
        outbox.acknowledge(2);
        assert_eq!(texts(&outbox.next_batch(1_000, 2)), ["listed", "a2"]);
    }

    #[test]
    fn a_refused_fact_is_withdrawn_and_left_out_of_the_digest() {
        let mut outbox = listed(&[("a", "a1"), ("b", "b1")]);
        let before = outbox.digest(ListingGroup::Exports);
        outbox.welcome(true, false);
        outbox.next_batch(1_000, 10);
        let refused = Refused {
            sequence: 1,
            reason: RefusalReason::Invalid,
            message: "bad".into(),
        };
        assert_eq!(outbox.refuse(&refused), Some(key("a")));
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["removed"]);
        assert!(outbox.refusal(&key("a")).is_some());
        assert_ne!(outbox.digest(ListingGroup::Exports), before);
        outbox.set(key("a"), Some(fact("a2")));
        assert!(outbox.refusal(&key("a")).is_none());
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a2"]);
    }

    #[test]
    fn what_the_hub_has_no_room_for_is_not_withdrawn_and_said_once_more_when_it_asks() {
        let mut outbox = listed(&[("a", "a1"), ("b", "b1")]);
        let before = outbox.digest(ListingGroup::Exports);
        outbox.welcome(true, false);
        outbox.next_batch(1_000, 10);
        let refused = Refused {
            sequence: 1,
            reason: RefusalReason::NoRoom,
            message: "full".into(),
        };
        assert_eq!(outbox.refuse(&refused), Some(key("a")));
        assert!(outbox.refusal(&key("a")).is_some());
        assert!(
            outbox.next_batch(1_000, 10).is_empty(),
            "what the hub holds stands"
        );
        assert_eq!(outbox.digest(ListingGroup::Exports), before);
        outbox.report_again();
        assert!(outbox.refusal(&key("a")).is_none());
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a1"]);
        let refused = Refused {
            sequence: 4,
            ..refused
        };
        assert_eq!(outbox.refuse(&refused), Some(key("a")));
        outbox.set(key("a"), None);
        outbox.report_again();
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["removed"]);
        // The next session compares or lists: nothing is held back by it yet.
        outbox.begin_session();
        outbox.welcome(false, false);
        assert!(outbox.refusal(&key("a")).is_none());
    }

    #[test]
    fn a_listing_asks_anew_for_its_own_group_only() {
        let mut outbox = listed(&[("a", "a1")]);
        outbox.complete(ListingGroup::Properties);
        outbox.welcome(true, false);
        outbox.next_batch(1_000, 10);
        let refused = Refused {
            sequence: 1,
            reason: RefusalReason::Invalid,
            message: "bad".into(),
        };
        outbox.refuse(&refused);
        outbox.welcome(false, true);
        assert!(outbox.refusal(&key("a")).is_some(), "exports were not asked for");
        outbox.welcome(true, false);
        assert!(outbox.refusal(&key("a")).is_none(), "the hub judges anew");
    }

    #[test]
    fn a_batch_ends_with_the_fact_that_reaches_the_bound() {
        let mut outbox = listed(&[("a", "a1"), ("b", "b1"), ("c", "c1"), ("d", "d1")]);
        outbox.welcome(true, false);
        assert_eq!(texts(&outbox.next_batch(2, 10)), ["a1"]);
        assert_eq!(texts(&outbox.next_batch(3, 10)), ["b1", "c1"]);
        assert_eq!(texts(&outbox.next_batch(1, 10)), ["d1"]);
    }

    #[test]
    fn it_says_what_it_knows_and_how_much_waits() {
        let mut outbox = Outbox::new(removal);
        outbox.set(key("a"), Some(fact("a1")));
        assert!(!outbox.is_complete(ListingGroup::Exports));
        outbox.complete(ListingGroup::Exports);
        assert!(outbox.is_complete(ListingGroup::Exports) && !outbox.is_complete(ListingGroup::Properties));
        assert_eq!(outbox.keys(ListingGroup::Exports), [key("a")].into());
        assert!(outbox.keys(ListingGroup::Properties).is_empty());
        outbox.begin_session();
        outbox.welcome(true, false);
        assert_eq!(outbox.depth(), (2, 0));
        outbox.next_batch(1, 10);
        assert_eq!(outbox.depth(), (1, 1));
        outbox.next_batch(1, 10);
        assert_eq!(outbox.depth(), (0, 2));
    }

    #[test]
    fn a_new_session_starts_from_nothing_but_the_facts() {
        let mut outbox = listed(&[("a", "a1")]);
        outbox.welcome(true, false);
        outbox.next_batch(1_000, 1);
        outbox.end_session();
        outbox.set(key("b"), Some(fact("b1")));
        outbox.begin_session();
        outbox.welcome(true, false);
        assert_eq!(texts(&outbox.next_batch(1_000, 10)), ["a1", "b1", "listed"]);
    }
}
