//! The writer's mind: takes requests one by one, decides, numbers and applies, and collects what a durable
//! batch will release. It owns the state and what is volatile about members. Pure: the thread around it
//! appends, publishes and answers; nothing of a batch is seen before that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{
    ChainHash, ChangedBy, ClusterId, ConflictReason, Cursor, DenialReason, Epoch, Fact, FactKey,
    KeyFingerprint, ListingGroup, SessionId, UnixMillis,
    sync::{Observation, ObservedItem, RefusalReason, Refused, Source},
};

use super::{
    budgets::Budgets,
    claims::Claims,
    conflicts::OpenConflicts,
    departures::{Departures, Holds},
    disk_room::DiskRoom,
    event_size::refuse_too_large,
    heard::Heard,
    log_time::LogTime,
    publication::{concerns_sources, publication},
    published::Published,
    request::{Dealt, Reply, Request, TERM},
    self_preservation::SelfPreservation,
    stored::Stored,
    waiting::Waiting,
};
use crate::{bounds::Bounds, view::Publication};
use event_log::{Limits, chain};
use fold::{self, Command, Draft, DraftFact, Rejection, State};

/// The effects of a batch, released when it is durable.
#[derive(Debug, Default)]
pub struct Batch {
    /// Encoded events, each with the chain hash at it; may be empty.
    pub events: Vec<(ChainHash, Vec<u8>)>,
    /// Their bytes.
    pub payload_bytes: usize,
    /// The head after it.
    pub head: Cursor,
    /// Derived objects that changed.
    pub publications: Vec<Publication>,
    /// All sources, if any of them changed.
    pub sources: Option<Vec<Source>>,
    /// Disputes over the first place among exports: whether the first one keeps it.
    pub contests: Vec<bool>,
    /// Answers.
    pub replies: Vec<Reply>,
}

/// A member's open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Open {
    /// Its number.
    pub session: SessionId,
    /// The key under which it was admitted.
    pub key: KeyFingerprint,
    /// The agent's instance.
    pub instance: Box<str>,
    /// The agent's leaseTransitions.
    pub lease_transitions: i64,
    /// Position of the last handled delivery.
    pub acknowledged: u64,
    /// It can be told that there is no room for now, and asked to report again.
    pub reports_again: bool,
    /// It was told so, and is to be asked.
    pub held_back: bool,
    /// Groups with reports held back: until they are listed again, their record is incomplete.
    pub lacking: BTreeSet<ListingGroup>,
    /// A group was listed that lacks something: the session is to end when there is room, and the next one lists.
    pub lists_anew: bool,
    /// Items for which the member's budget has no room.
    pub waiting: Waiting,
}

/// The writer's mind.
#[derive(Debug)]
pub struct Core {
    pub(super) state: State,
    pub(super) head: Cursor,
    /// The wall clock at the last request or tick. It may be wrong, and set back later: nothing is kept of it but what is
    /// recorded.
    pub(super) clock: UnixMillis,
    pub(super) options: Options,
    pub(super) sessions: BTreeMap<ClusterId, Open>,
    /// Members with an open session, as last published.
    connected: Arc<BTreeSet<ClusterId>>,
    pub(super) sessions_changed: bool,
    pub(super) listed: Arc<BTreeSet<ClusterId>>,
    /// Members whose membership ended, or that were forgotten, while this process was level with the log: an earlier end may
    /// be that of an old copy.
    pub(super) ended: BTreeSet<ClusterId>,
    /// The hub's name, if it took the lead from another one; and its term.
    pub(super) replica: Option<Box<str>>,
    pub(super) term: u64,
    pub(super) heard: Heard,
    pub(super) self_preservation: SelfPreservation,
    pub(super) departures: Departures,
    pub(super) holds: Holds,
    log_time: LogTime,
    pub(super) last_session: SessionId,
    pub(super) claims: Claims,
    /// The key and the leaseTransitions under which each member was admitted last.
    pub(super) last_admitted: BTreeMap<ClusterId, (KeyFingerprint, i64)>,
    conflicts: OpenConflicts,
    pub(super) must_mint: Option<Epoch>,
    /// The cluster on whose word an epoch begins, or began last.
    pub(super) minted_by: Option<ClusterId>,
    /// The epoch began in this process: nobody can know more of it than this process.
    pub(super) epoch_is_own: bool,
    /// The latest epoch that members know while this one is served.
    pub(super) later_epoch: Option<Epoch>,
    pub(super) not_serving: Option<String>,
    pub(super) room: DiskRoom,
    pub(super) budgets: Budgets,
    /// Monotonic milliseconds, as of the last request or tick.
    pub(super) now: u64,
    pub(super) limits: Limits,
    pub(super) batch: Batch,
    pub(super) sources_changed: bool,
    pub(super) stored: Stored,
}

/// Constant options of a running hub.
#[derive(Debug, Clone)]
pub struct Options {
    /// The hub's name in its certificate.
    pub hub: Box<str>,
    /// The program's version.
    pub hub_version: Box<str>,
    /// True if a higher epoch of members is adopted although the log holds facts.
    pub adopt_epoch: bool,
    /// The bounds that are settings.
    pub bounds: Bounds,
}

impl Core {
    /// A core over a replayed state; `now` is monotonic milliseconds.
    pub fn new(state: State, head: Cursor, clock: UnixMillis, options: Options, now: u64) -> Self {
        let mut conflicts = OpenConflicts::default();
        for (key, derived) in state.all_derived() {
            conflicts.changed(key, Some(&derived.content));
        }
        let budgets = Budgets::of(&state, options.bounds.state, now);
        let departures = Departures::of(&state, now);
        let holds = Holds::of(&state);
        let log_time = LogTime::since(state.recorded_at(), now);
        Self {
            state,
            head,
            clock,
            options,
            sessions: BTreeMap::new(),
            connected: Arc::default(),
            sessions_changed: false,
            listed: Arc::default(),
            ended: BTreeSet::new(),
            replica: None,
            term: TERM,
            heard: Heard::new(now),
            self_preservation: SelfPreservation::default(),
            departures,
            holds,
            log_time,
            last_session: SessionId(0),
            claims: Claims::default(),
            last_admitted: BTreeMap::new(),
            conflicts,
            must_mint: None,
            minted_by: None,
            epoch_is_own: false,
            later_epoch: None,
            not_serving: None,
            room: DiskRoom::default(),
            budgets,
            now,
            limits: Limits::default(),
            batch: Batch {
                head,
                ..Batch::default()
            },
            sources_changed: true,
            stored: Stored::default(),
        }
    }

    /// Keeps to what its log takes at a time.
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Notes that later events are in another segment of the log.
    pub fn segment_begun(&mut self) {
        self.stored.begin();
    }

    /// Records that these rules and bounds take over a log that others folded, if they do.
    pub fn adopt_rules(&mut self, clock: UnixMillis) {
        self.clock = clock;
        let from = self.state.fold_version();
        let max = self.options.bounds.tombstones;
        for command in [
            Command::AdoptFoldVersion { from },
            Command::BoundTombstones { max },
        ] {
            // The fold always takes its own rules.
            let _ = self.decide_and_apply(&command);
        }
    }

    /// The state, which may hold more than is durable: for looking only between batches.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The time that an event recorded now has: times in the log never go back.
    pub(super) fn recorded_at(&self) -> UnixMillis {
        let now = self.log_time.at(self.clock, self.now);
        now.max(self.state.recorded_at())
    }

    /// The bounds that are settings.
    pub fn bounds(&self) -> Bounds {
        self.options.bounds
    }

    /// The clusters that are listed in this process's life.
    pub fn listed(&self) -> &BTreeSet<ClusterId> {
        &self.listed
    }

    /// Number of exports in conflict for a reason.
    pub fn open_conflicts(&self, reason: ConflictReason) -> u64 {
        self.conflicts.count(reason)
    }

    /// Number of refused exports for a reason.
    pub fn refused_exports(&self, reason: DenialReason) -> u64 {
        self.conflicts.refused(reason)
    }

    /// The position after everything that was applied.
    pub fn head(&self) -> Cursor {
        self.head
    }

    /// Set when the clusterset is not served, and why.
    pub fn not_serving(&self) -> Option<&str> {
        self.not_serving.as_deref()
    }

    /// The cluster on whose word the last epoch began, if one began in this process.
    pub fn minted_by(&self) -> Option<&str> {
        self.minted_by.as_ref().map(ClusterId::as_str)
    }

    /// The members that know a later epoch than the one that is served.
    pub fn know_later_epoch(&self) -> Vec<ClusterId> {
        self.claims.witnesses().cloned().collect()
    }

    /// An epoch that must be begun before anything else is answered.
    pub fn must_mint(&self) -> Option<Epoch> {
        self.must_mint
    }

    /// Returns true if the batch would release nothing.
    pub fn is_idle(&self) -> bool {
        let Batch {
            events,
            publications,
            replies,
            ..
        } = &self.batch;
        let unchanged = !self.sources_changed && !self.sessions_changed;
        events.is_empty() && publications.is_empty() && replies.is_empty() && unchanged
    }

    /// The state for queries, with everything applied so far. It may be shown when all of that is durable, and costs
    /// next to nothing until then.
    pub fn published(&mut self) -> Published {
        if std::mem::take(&mut self.sessions_changed) {
            self.connected = Arc::new(self.sessions.keys().cloned().collect());
        }
        debug_assert!(
            self.connected.iter().eq(self.sessions.keys()),
            "a change of sessions was not noted"
        );
        Published {
            head: self.head,
            state: self.state.clone(),
            connected: self.connected.clone(),
            listed: self.listed.clone(),
            limits: self.limits,
            term: self.term,
        }
    }

    /// Number of events in the batch, and their bytes.
    pub fn pending(&self) -> (usize, usize) {
        (self.batch.events.len(), self.batch.payload_bytes)
    }

    /// Takes one request. `clock` is the wall clock, `now` monotonic milliseconds.
    pub fn handle(&mut self, request: Request, clock: UnixMillis, now: u64) {
        self.clock = clock;
        self.now = self.now.max(now);
        match request {
            Request::Admit(token, request) => self.admit(token, *request, now),
            Request::Observe {
                session,
                cluster,
                observations,
            } => {
                self.observe(session, &cluster, observations);
            }
            Request::Withdraw {
                session,
                cluster,
                services,
            } => self.brake_before_shares(session, &cluster, services),
            Request::CompleteListing {
                session,
                cluster,
                sequence,
                group,
                seen,
            } => {
                self.complete_listing(session, &cluster, sequence, group, seen);
            }
            Request::Closed {
                session,
                cluster,
                heard_at,
                goodbye,
            } => {
                if goodbye && self.admits(session, &cluster) {
                    self.heard.said_goodbye(&cluster, heard_at);
                }
                self.closed(session, &cluster, heard_at);
            }
            Request::Certify(token, certification) => self.certify(token, certification, now),
            Request::Operate {
                token,
                command,
                confirm,
                describe,
            } => self.operate(token, &command, confirm, describe, now),
        }
    }

    /// Takes the batch; the next one begins.
    pub fn take_batch(&mut self) -> Batch {
        if std::mem::take(&mut self.sources_changed) {
            let on_loss = Some(self.state.loss().action);
            let sources = self.state.members().iter().map(|(cluster, member)| Source {
                cluster: cluster.clone(),
                state: member.source_state(),
                listed: self.listed.contains(cluster),
                ended: self.ended.contains(cluster),
                on_loss,
            });
            self.batch.sources = Some(sources.collect());
        }
        self.batch.head = self.head;
        std::mem::replace(
            &mut self.batch,
            Batch {
                head: self.head,
                ..Batch::default()
            },
        )
    }

    fn observe(&mut self, session: SessionId, cluster: &ClusterId, observations: Vec<Observation>) {
        if self.admits(session, cluster) {
            self.brake_before(cluster, &observations);
        }
        for observation in observations {
            let Observation {
                sequence,
                item,
                changed_by,
            } = observation;
            if !self.admits(session, cluster) {
                // A stale session: its stream is being closed, and its facts may contradict the present one's.
                return;
            }
            let before = self.batch.events.len();
            let outcome = match item {
                ObservedItem::Fact(fact) if self.room.refuses(&fact) && self.grows(cluster, &fact) => {
                    let group = fact.fact.key().map(|key| key.group());
                    if !self.hold_back(session, cluster, sequence, group) {
                        return;
                    }
                    Ok(())
                }
                ObservedItem::Fact(fact) if let Some(why) = self.over_budget(cluster, &fact, self.now) => {
                    if !self.let_wait(session, cluster, sequence, fact.fact.key(), &why) {
                        return;
                    }
                    Ok(())
                }
                ObservedItem::Fact(fact) => {
                    self.waits_no_more(cluster, &fact);
                    let command = Command::Observe {
                        cluster: cluster.clone(),
                        session,
                        sequence,
                        fact,
                    };
                    self.record_reported(&command, changed_by.as_ref())
                }
                ObservedItem::Invalid(refused) => {
                    self.batch
                        .replies
                        .push(Reply::Refused(session, Refused { sequence, ..refused }));
                    Ok(())
                }
                // The session hands listings over on their own.
                ObservedItem::ListingCompleted(_) => Ok(()),
            };
            if let Err(rejection) = outcome {
                self.batch
                    .replies
                    .push(Reply::Refused(session, refused(sequence, &rejection)));
            }
            self.acknowledge(cluster, sequence, before);
        }
    }

    fn complete_listing(
        &mut self,
        session: SessionId,
        cluster: &ClusterId,
        sequence: u64,
        group: ListingGroup,
        seen: Arc<BTreeSet<FactKey>>,
    ) {
        if !self.admits(session, cluster) {
            return;
        }
        let before = self.batch.events.len();
        if self.lacks(cluster, group) {
            self.acknowledge(cluster, sequence, before);
            return;
        }
        self.brake_before_listing(cluster, group, &seen);
        let command = Command::CompleteListing {
            cluster: cluster.clone(),
            session,
            sequence,
            group,
            seen,
        };
        match self.decide_and_apply(&command) {
            Ok(()) if group == ListingGroup::Exports => self.exports_listed(cluster),
            Ok(()) => {}
            Err(rejection) => {
                self.batch
                    .replies
                    .push(Reply::Refused(session, refused(sequence, &rejection)));
            }
        }
        self.acknowledge(cluster, sequence, before);
    }

    pub(super) fn mark_listed(&mut self, cluster: &ClusterId) {
        if !self.listed.contains(cluster) {
            Arc::make_mut(&mut self.listed).insert(cluster.clone());
            self.sources_changed = true;
        }
    }

    pub(super) fn admits(&self, session: SessionId, cluster: &ClusterId) -> bool {
        self.sessions
            .get(cluster)
            .is_some_and(|open| open.session == session)
    }

    /// Everything up to this sequence number is dealt with; `before`: how many events the batch had before the last of it.
    fn acknowledge(&mut self, cluster: &ClusterId, sequence: u64, before: usize) {
        let deliveries = (self.batch.events.len() - before).saturating_mul(self.sessions.len()) as u64;
        let Some(open) = self.sessions.get_mut(cluster) else {
            return;
        };
        open.acknowledged = sequence;
        let session = open.session;
        // Only the last acknowledgement of a batch says anything.
        if let Some(Reply::Acknowledged(last, known)) = self.batch.replies.last_mut()
            && *last == session
        {
            known.sequence = sequence;
            known.deliveries = known.deliveries.saturating_add(deliveries);
            return;
        }
        let dealt = Dealt { sequence, deliveries };
        self.batch.replies.push(Reply::Acknowledged(session, dealt));
    }

    pub(super) fn closed(&mut self, session: SessionId, cluster: &ClusterId, heard_at: u64) {
        if self.admits(session, cluster) {
            self.sessions.remove(cluster);
            self.sessions_changed = true;
            self.heard.left(cluster, heard_at);
        }
    }

    pub(super) fn decide_and_apply(&mut self, command: &Command) -> Result<(), Rejection> {
        let drafts = fold::decide(&self.state, command)?;
        self.record(drafts, None);
        Ok(())
    }

    /// Records what a member reported, if it is news and the log takes it.
    fn record_reported(
        &mut self,
        command: &Command,
        changed_by: Option<&ChangedBy>,
    ) -> Result<(), Rejection> {
        let drafts = fold::decide(&self.state, command)?;
        for draft in &drafts {
            if let DraftFact::Encoded(fact) = &draft.fact {
                refuse_too_large(fact, self.limits)?;
            }
        }
        self.record(drafts, changed_by);
        Ok(())
    }

    /// `changed_by` is noted beside what a member reported: nothing was decided by it.
    pub(super) fn record(&mut self, drafts: Vec<Draft>, changed_by: Option<&ChangedBy>) {
        for draft in drafts {
            let fact = match &draft.fact {
                DraftFact::Encoded(fact) => fact.clone(),
                DraftFact::Decided(fact) => wire::encode_fact(fact),
            };
            let mut event = draft.event(&self.state, fact, self.recorded_at());
            self.log_time.record(self.clock, self.now);
            let reported = matches!(draft.fact, DraftFact::Encoded(_));
            event.changed_by = changed_by.filter(|_| reported).cloned();
            if let Fact::PrecedenceContested { held, .. } = &event.fact.fact {
                self.batch.contests.push(*held);
            }
            let bytes_min = self.options.bounds.difference_bytes;
            let payload = self.stored.encode(&self.state, &event, bytes_min);
            self.head = Cursor {
                revision: event.revision,
                hash: chain(self.head.hash, &payload),
                ..self.head
            };
            self.sources_changed |= concerns_sources(&event.fact.fact);
            self.note_end(&event);
            let replaced = self.replaced_by(&event);
            let changes = fold::apply(&mut self.state, &event);
            self.budgets.recorded(&self.state, &event, replaced, self.now);
            for change in &changes {
                self.conflicts.changed(&change.key, change.content.as_ref());
            }
            self.batch.payload_bytes += payload.len();
            self.batch.events.push((self.head.hash, payload));
            self.batch
                .publications
                .extend(changes.into_iter().filter_map(publication));
        }
    }
}

fn refused(sequence: u64, rejection: &Rejection) -> Refused {
    let reason = match rejection {
        Rejection::Refused { reason, .. } => *reason,
        _ => RefusalReason::Invalid,
    };
    Refused {
        sequence,
        reason,
        message: rejection.to_string().into(),
    }
}

#[cfg(test)]
mod tests;
