//! Owns: the laws on what a hub says, judged by what the disk has at that moment: acknowledgements, positions, epochs.
//! Never: changes what is said; looks at what members make of it.

use std::collections::{BTreeMap, BTreeSet};

use event_log::{Budget, History, Log, LogError, MemoryLog, StoredEvent};
use fold::State;
use hub_core::{
    clock::Moment,
    recall::{self, RecallError},
    writer::{MINT_INTERVAL_MILLIS, Published},
};
use model::{
    ChainHash, ClusterId, Cursor, Epoch, Event, Fact, KeyFingerprint, ListingGroup, Revision, SessionId,
    sync::{AgentMessage, HubMessage, ObservedItem, Source},
};
use wire::{self, StoredFact};

use oracle::laws::{Guarded, Law};

use super::Recorded;
use crate::{histogram::Histogram, network::StreamId, taken};

/// Largest lead of an epoch over all known time, in milliseconds: a day, and as much as clocks of a world are wrong.
const AHEAD_MAX_MILLIS: u64 = 24 * 60 * 60 * 1000 + 60_000;

/// A hub process's received and sent messages.
#[derive(Debug, Default)]
pub(super) struct Promises {
    streams: BTreeMap<StreamId, Said>,
    acknowledged: BTreeMap<SessionId, u64>,
    /// The highest epoch and the cursor of every Hello.
    claims: Vec<Claim>,
    /// Epochs that began in this process's life, and when the first of them did.
    begun: Option<(u64, usize)>,
    /// Clusters whose present membership has listed its exports, or was told that it need not.
    listed: BTreeSet<ClusterId>,
    /// Clusters whose membership ended in this process's life, and that did not join since.
    ended: BTreeSet<ClusterId>,
    /// Clusters that were told as listed while they waited for their Welcome.
    called_listed: BTreeSet<ClusterId>,
    /// The durable state.
    pub(super) recorded: Recorded,
    /// The hash at every event, and at the base of every epoch, that this process had on disk, also where its segment
    /// has gone since.
    hashes: BTreeMap<(Epoch, Revision), ChainHash>,
    broken: Option<String>,
}

/// A Hello's claim about epochs.
#[derive(Debug)]
struct Claim {
    cluster: Option<ClusterId>,
    highest: Option<Epoch>,
    cursor: Option<Cursor>,
}

/// Messages on a stream.
#[derive(Debug, Default)]
struct Said {
    cluster: Option<ClusterId>,
    key: Option<KeyFingerprint>,
    /// A Hello was heard, and no Welcome answers it yet.
    waits: bool,
    /// Its key was refused for ever when the Hello was heard.
    refused: bool,
    /// Its cursor was older than the log by then.
    is_old: bool,
    cursor: Option<Cursor>,
    session: Option<(SessionId, Epoch)>,
}

impl Promises {
    /// Nothing was said yet over what this log keeps, and this is durable.
    pub(super) fn new(mut recorded: Recorded, log: &MemoryLog) -> Self {
        let (epoch, mut from) = (log.head().epoch, Revision(0));
        let before = Revision(log.stats().oldest_revision.0 - 1);
        let follows = move |history: &dyn History| history.hash_at(epoch, before);
        let follows = log.reader().wait(follows).unwrap_or_default();
        let mut hashes: BTreeMap<_, _> = follows.map(|hash| ((epoch, before), hash)).into_iter().collect();
        let mut broken = None;
        loop {
            let events = events(log, epoch, from).unwrap_or_default();
            let Some((last, _)) = events.last() else {
                break;
            };
            from = last.revision.next();
            for (event, hash) in events {
                hashes.insert((epoch, event.revision), hash);
                let found = recorded.found(epoch, &event, &mut Guarded::default());
                broken = broken.or(found.err());
            }
        }
        Self {
            recorded,
            hashes,
            broken,
            ..Self::default()
        }
    }

    /// A cluster opens a stream with a key.
    pub(super) fn opened(&mut self, stream: StreamId, cluster: &ClusterId, key: KeyFingerprint) {
        let said = self.streams.entry(stream).or_default();
        (said.cluster, said.key) = (Some(cluster.clone()), Some(key));
    }

    /// Open streams, and the cluster of one whose key was revoked.
    pub(super) fn open_under_revoked_key(&self) -> (u64, Option<&ClusterId>) {
        let revoked = |said: &&Said| said.key.is_some_and(|key| self.recorded.is_revoked(key));
        let cluster = self.streams.values().find(revoked);
        (
            self.streams.len() as u64,
            cluster.and_then(|said| said.cluster.as_ref()),
        )
    }

    /// The first cluster in whose name a stream is open under a key that it never had.
    pub(super) fn held_by_a_stranger(
        &self,
        has: impl Fn(&ClusterId, KeyFingerprint) -> bool,
    ) -> Option<&ClusterId> {
        let named = self
            .streams
            .values()
            .filter_map(|said| said.cluster.as_ref().zip(said.key));
        let mut strange = named.filter(|(cluster, key)| !has(cluster, *key));
        strange.next().map(|(cluster, _)| cluster)
    }

    /// The first law that was broken.
    pub(super) fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    fn require(&mut self, law: Law, holds: bool, why: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(law.broken(why()));
        }
    }

    /// Another law was broken.
    pub(super) fn breaks(&mut self, why: String) {
        self.broken.get_or_insert(why);
    }

    /// Returns true if a session was opened on a stream.
    pub(super) fn is_welcomed(&self, stream: StreamId) -> bool {
        self.streams
            .get(&stream)
            .is_some_and(|said| said.session.is_some())
    }

    /// There were so many facts, and are so many now, and the disk's reserve was touched all the while.
    pub(super) fn grew(&mut self, before: usize, now: usize) {
        self.require(Law::Reserve, now <= before, || {
            format!("{before} facts became {now} while the disk was nearly full")
        });
    }

    /// Whoever asks is answered from this: what is durable, and all that members were shown.
    pub(super) fn asked(&mut self, present: &Published, shown: Cursor, durable: Cursor) {
        let head = present.head;
        let is_durable = head.epoch != durable.epoch || head.revision <= durable.revision;
        let holds = head == shown && is_durable && present.state.revision() == head.revision;
        self.require(Law::Durable, holds, || {
            format!("questions see {head}, members were shown {shown}, and {durable} is durable")
        });
    }

    /// A member says something.
    pub(super) fn heard(&mut self, stream: StreamId, message: &AgentMessage, log: &MemoryLog) {
        let said = self.streams.entry(stream).or_default();
        match message {
            AgentMessage::Hello(hello) => {
                self.claims.push(Claim {
                    cluster: said.cluster.clone(),
                    highest: hello.highest_epoch,
                    cursor: hello.cursor,
                });
                (said.cursor, said.waits) = (hello.cursor, true);
                let presented = said.cluster.as_ref().zip(said.key);
                said.refused = presented.is_some_and(|(of, key)| self.recorded.is_refused(of, key));
                let oldest = log.stats().oldest_revision;
                let is_old = |at: Cursor| at.epoch == log.head().epoch && at.revision.next() < oldest;
                said.is_old = hello.cursor.is_some_and(is_old);
            }
            AgentMessage::Observations(observations) => {
                let end = ObservedItem::ListingCompleted(ListingGroup::Exports);
                if observations.iter().any(|observation| observation.item == end) {
                    self.listed.extend(said.cluster.clone());
                }
            }
            _ => {}
        }
    }

    /// A source is told as listed: it must have listed since it joined. Of one that still waits for its Welcome this
    /// is asked when that is said.
    fn sources(&mut self, sources: &[Source], guarded: &mut Guarded) {
        for source in sources.iter().filter(|source| source.ended) {
            guarded.count(Law::Sources, 1);
            self.require(Law::Sources, self.ended.contains(&source.cluster), || {
                format!(
                    "{} is told as ended, and this hub has not seen it end",
                    source.cluster
                )
            });
        }
        for source in sources.iter().filter(|source| source.listed) {
            guarded.count(Law::Sources, 1);
            let of = |said: &&Said| said.cluster.as_ref() == Some(&source.cluster);
            if self.streams.values().filter(of).any(|said| said.waits) {
                self.called_listed.insert(source.cluster.clone());
            } else {
                self.require_listed(&source.cluster);
            }
        }
    }

    fn require_listed(&mut self, cluster: &ClusterId) {
        let listed = self.listed.contains(cluster);
        self.require(Law::Sources, listed, || {
            format!("{cluster} is told as listed, and has not listed since it joined")
        });
    }

    /// A stream is over. One without its Welcome may have listed by its Hello.
    pub(super) fn closed(&mut self, stream: StreamId) {
        if let Some(Said {
            cluster, waits: true, ..
        }) = self.streams.remove(&stream)
        {
            self.listed.extend(cluster);
        }
    }

    /// The hub says something: positions must be of the epoch that the session was opened in, and it resumes only
    /// what is on the history of that epoch.
    /// A certificate goes out: that its key is admitted is on the disk, unless it was taken back since.
    pub(super) fn certified(
        &mut self,
        cluster: &ClusterId,
        key: KeyFingerprint,
        state: Option<&State>,
        guarded: &mut Guarded,
    ) {
        guarded.count(Law::Renewals, 1);
        let member = state.and_then(|state| state.current_member(cluster));
        let revoked = state.is_some_and(|state| state.revoked_keys().contains_key(&key));
        let holds = revoked || member.is_none_or(|member| member.keys().contains_key(&key));
        self.require(Law::Renewals, holds, || {
            format!("{cluster} has a certificate for {key}, which is not admitted: it would need an operator")
        });
    }

    pub(super) fn said(
        &mut self,
        stream: StreamId,
        message: &HubMessage,
        log: &MemoryLog,
        seen: &mut Histogram,
    ) {
        let said = self.streams.entry(stream).or_default();
        let epoch = match message {
            HubMessage::Welcome(welcome) => {
                said.session = Some((welcome.session, welcome.epoch));
                said.waits = false;
                let (cursor, refused) = (said.cursor, said.refused);
                if said.is_old && !welcome.resume {
                    seen.count("cursor older than the log");
                }
                let cluster = said.cluster.clone();
                self.require(Law::Keys, !refused, || {
                    let cluster = cluster.map(|cluster| cluster.to_string()).unwrap_or_default();
                    format!("{cluster} was welcomed under a key that was refused for ever")
                });
                let said = self.streams.entry(stream).or_default();
                if let Some(cluster) = said.cluster.clone() {
                    if !welcome.list_exports {
                        self.listed.insert(cluster.clone());
                    }
                    if self.called_listed.remove(&cluster) {
                        self.require_listed(&cluster);
                    }
                }
                let hashes = &self.hashes;
                let had = |at: Cursor| hashes.get(&(at.epoch, at.revision)) == Some(&at.hash);
                let right = |at: Cursor| at.epoch == welcome.epoch && (is_on_history(log, at) || had(at));
                let holds = !welcome.resume || cursor.is_some_and(right);
                seen.guarded.count(Law::Positions, 1);
                self.require(Law::Positions, holds, || {
                    format!(
                        "{} is resumed in {} and is not on its history",
                        cursor.map_or("nothing".to_owned(), position),
                        welcome.epoch
                    )
                });
                return;
            }
            HubMessage::Acknowledged(sequence) => {
                if let Some((session, _)) = said.session {
                    seen.guarded.count(Law::Durable, 1);
                    self.acknowledged.insert(session, *sequence);
                }
                return;
            }
            HubMessage::SnapshotBegin { epoch, .. } => *epoch,
            HubMessage::SnapshotComplete(up_to)
            | HubMessage::UpTo(up_to)
            | HubMessage::Heartbeat(Some(up_to)) => up_to.cursor.epoch,
            HubMessage::SourcesChanged(sources) => return self.sources(sources, &mut seen.guarded),
            _ => return,
        };
        let opened = said.session.map(|(_, opened)| opened);
        seen.guarded.count(Law::Positions, 1);
        self.require(Law::Positions, opened == Some(epoch), || {
            let opened = opened.map_or("no epoch".to_owned(), |opened| opened.to_string());
            format!("a session that was opened in {opened} is told of {epoch}")
        });
    }

    /// Objects are sent to a cluster, by what is published at this position.
    pub(super) fn sent(
        &mut self,
        cluster: &ClusterId,
        message: &HubMessage,
        at: Cursor,
        guarded: &mut Guarded,
    ) {
        let policy = self.recorded.policy_at(at);
        match policy.map_or(Ok(0), |policy| taken::sent(policy, cluster, message)) {
            Ok(objects) => guarded.count(Law::Taken, objects),
            Err(why) => drop(self.broken.get_or_insert(why)),
        }
    }

    /// The disk has made durable what follows `before`: nobody may have been told so already.
    pub(super) fn synced(&mut self, log: &MemoryLog, before: Cursor, guarded: &mut Guarded) {
        let head = log.head();
        if head.epoch != before.epoch || head.revision == before.revision || self.broken.is_some() {
            return;
        }
        let from = before.revision.next();
        let events = events(log, head.epoch, from).expect("what was synced can be read");
        assert_eq!(
            events.last().map(|(last, _)| last.revision),
            Some(head.revision),
            "a batch fits into a page"
        );
        for (event, hash) in events {
            self.hashes.insert((head.epoch, event.revision), hash);
            if let Some(cluster) = &event.cluster {
                match event.fact.fact {
                    Fact::MemberEvicted { .. } | Fact::MemberLeft => {
                        self.listed.remove(cluster);
                        self.ended.insert(cluster.clone());
                    }
                    Fact::MemberForgotten { .. } => {
                        self.ended.insert(cluster.clone());
                    }
                    Fact::MemberJoined { .. } => {
                        self.ended.remove(cluster);
                    }
                    _ => {}
                }
            }
            if let Err(why) = self.recorded.found(head.epoch, &event, guarded) {
                self.broken.get_or_insert(why);
            }
            let told = self.acknowledged.get(&event.session).copied().unwrap_or_default();
            self.require(
                Law::Durable,
                event.member_sequence == 0 || told < event.member_sequence,
                || {
                    format!(
                        "fact {} of session {} was acknowledged before event {} was durable",
                        event.member_sequence, event.session.0, event.revision.0
                    )
                },
            );
        }
    }

    /// An epoch began where the log stood at `before`: somebody must have shown that this log was rewound, or have
    /// known a later epoch.
    pub(super) fn begun(&mut self, log: &MemoryLog, before: Cursor, at: Moment, guarded: &mut Guarded) {
        guarded.count(Law::Rewinds, 1);
        // Sessions are numbered within an epoch.
        self.acknowledged.clear();
        let base = log.head();
        self.hashes.insert((base.epoch, base.revision), base.hash);
        let latest = at.wall.0.max(before.epoch.created_at.0) + AHEAD_MAX_MILLIS;
        let justifies = |claim: &&Claim| {
            let rewound = |cursor: &Cursor| {
                let had = self.hashes.get(&(cursor.epoch, cursor.revision));
                let differs = had.is_some_and(|hash| *hash != cursor.hash);
                cursor.epoch == before.epoch && (differs || contradicts(log, before, *cursor))
            };
            let later = |highest: Epoch| highest > before.epoch && highest.created_at.0 <= latest;
            claim.highest.is_some_and(later) || claim.cursor.as_ref().is_some_and(rewound)
        };
        let justified = self.claims.iter().any(|claim| justifies(&claim));
        self.require(Law::Rewinds, justified, || {
            format!(
                "nobody has shown that the log of {} was rewound, or known a later epoch that may be, and another epoch began",
                before.epoch
            )
        });
        self.once_for_each(at);
    }

    /// Each member's word leads to one epoch in ten minutes, and no longer does a world last that is not large.
    fn once_for_each(&mut self, at: Moment) {
        let (first, begun) = self.begun.unwrap_or((at.now(), 0));
        self.begun = Some((first, begun + 1));
        let members: BTreeSet<_> = self.claims.iter().map(|claim| &claim.cluster).collect();
        let few = begun < members.len() || at.now() - first >= MINT_INTERVAL_MILLIS;
        let members = members.len();
        self.require(Law::Rewinds, few, || {
            format!(
                "{} epochs began within ten minutes, and {members} members came",
                begun + 1
            )
        });
    }
}

/// Events as whoever reads the log gets them, if the log has them; each that is there must be readable.
fn events(log: &MemoryLog, epoch: Epoch, from: Revision) -> Result<Vec<(Event, ChainHash)>, LogError> {
    let read = move |history: &dyn History| Ok(recall::read(history, epoch, from, Budget::default()));
    match log.reader().wait(read)? {
        Ok(page) => Ok(page.events),
        Err(RecallError::Log(error @ (LogError::Forgotten { .. } | LogError::Refused(_)))) => Err(error),
        Err(error) => panic!("a hub wrote it: {error}"),
    }
}

/// Number of events behind a position that store their fact as the difference to an earlier one.
pub(super) fn differences(log: &MemoryLog, behind: Cursor) -> usize {
    let from = behind.revision.next();
    let read = move |history: &dyn History| history.read(behind.epoch, from, Budget::default());
    let stored = log
        .reader()
        .wait(read)
        .map_or_else(|_| Vec::new(), |page| page.events);
    let parsed = stored.into_iter().filter_map(
        |StoredEvent {
             revision, payload, ..
         }| wire::parse_event(revision, payload.into()).ok(),
    );
    parsed
        .filter(|recorded| matches!(recorded.fact(), StoredFact::Over(_)))
        .count()
}

/// A position in words.
pub(crate) fn position(at: Cursor) -> String {
    let Cursor {
        epoch,
        revision,
        hash,
    } = at;
    format!("revision {revision} of epoch {epoch} (hash {hash})")
}

/// Returns true if the log's history has this cursor.
pub(super) fn is_on_history(log: &MemoryLog, cursor: Cursor) -> bool {
    let question = move |history: &dyn History| history.hash_at(cursor.epoch, cursor.revision);
    log.reader().wait(question).unwrap_or_default() == Some(cursor.hash)
}

/// Returns true if this cursor proves that the log of `head` was rewound. One that it does not reach back to proves
/// nothing.
fn contradicts(log: &MemoryLog, head: Cursor, cursor: Cursor) -> bool {
    let question = move |history: &dyn History| history.hash_at(cursor.epoch, cursor.revision);
    match log.reader().wait(question).unwrap_or_default() {
        Some(on_record) => on_record != cursor.hash,
        None => cursor.revision > head.revision,
    }
}

#[cfg(test)]
mod tests;
