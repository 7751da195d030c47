//! A state as rows, and a state from rows. Derived content is recomputed, never stored: a row holds its digest and the
//! revision that last changed it. The codec turns rows into bytes.

mod brakes;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use model::{
    ClusterId, ContentDigest, EncodedFact, KeyFingerprint, ListingGroup, Revision, ServiceKey, SessionId,
    TokenHash, UnixMillis,
};

use super::{
    AdmittedKey, AppliedPolicy, Connectivity, Contest, Derived, DerivedContent, DerivedKey, EngagedBrake,
    JoinTokenState, JoinTokenUse, Leaving, Map, Member, MemberStatus, RULES, RecordedFact, RevokedKey, State,
    TakenBack, canonical,
    derived::{DerivedStore, Step},
    exports, profile,
    state::Exporters,
};

/// One row of a snapshot. The header comes first, a member before its facts.
#[derive(Debug, Clone, PartialEq)]
pub enum SnapshotRow {
    /// Position and sizes.
    Header(SnapshotHeader),
    /// A member without its facts.
    Member(Box<MemberRow>),
    /// A current fact of a member.
    Fact {
        /// The member.
        cluster: ClusterId,
        /// Revision of the event that recorded it.
        revision: Revision,
        /// The fact with its bytes as they were sent.
        fact: EncodedFact,
    },
    /// A derived object.
    Derived(DerivedRow),
    /// A key that is refused for ever.
    RevokedKey(KeyFingerprint, RevokedKey),
    /// The policy in force.
    Policy(AppliedPolicy),
    /// The last dispute over the first place among a service's exports.
    Precedence(ServiceKey, Contest),
    /// A token with which clusters join, without its uses.
    JoinToken(JoinTokenState),
    /// A use of a token.
    JoinTokenUse(TokenHash, JoinTokenUse),
    /// The removal brake of a member, engaged.
    Brake(ClusterId, EngagedBrake),
    /// A withdrawn fact of a member, on hold or remembered.
    TakenBack {
        /// The member.
        cluster: ClusterId,
        /// Revision of the event that recorded the fact.
        revision: Revision,
        /// Time at which its removal was recorded.
        at: UnixMillis,
        /// The fact with its bytes as they were sent.
        fact: EncodedFact,
    },
    /// The recorded removal of a derived object.
    Tombstone {
        /// The object's key.
        key: DerivedKey,
        /// Revision of the event that removed it.
        revision: Revision,
    },
}

/// Position and sizes of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The version of the rules that derived it.
    pub fold_version: u32,
    /// The time at which other rules took the log over last.
    pub rules_since: UnixMillis,
    /// The last event folded.
    pub revision: Revision,
    /// Its time.
    pub recorded_at: UnixMillis,
    /// Cursors below it need a snapshot.
    pub tombstone_floor: Revision,
    /// Number of member rows that follow.
    pub members: u64,
    /// Fact rows.
    pub facts: u64,
    /// Derived rows.
    pub derived: u64,
    /// Tombstone rows.
    pub tombstones: u64,
    /// Number of removals to remember.
    pub tombstones_max: u32,
    /// Rows of revoked keys.
    pub revoked_keys: u64,
    /// Rows of the policy: one at most.
    pub policies: u64,
    /// Rows of disputes over the first place.
    pub precedences: u64,
    /// Since when nothing is withdrawn because too many members are lost.
    pub self_preservation: Option<UnixMillis>,
    /// Rows of tokens with which clusters join.
    pub join_tokens: u64,
    /// Rows of uses of them.
    pub join_token_uses: u64,
    /// Rows of brakes that are engaged.
    pub brakes: u64,
    /// Rows of withdrawn facts.
    pub taken_back: u64,
    /// The newest term; 0: no other hub ever led.
    pub term: u64,
    /// The highest number of a session in the log, if that is above the recorded time; else 0.
    pub last_session: SessionId,
}

/// A member without its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// The cluster.
    pub cluster: ClusterId,
    /// Membership in the clusterset.
    pub status: MemberStatus,
    /// Revision of its last join.
    pub incarnation: Revision,
    /// Revision of the end of its last membership.
    pub ended: Option<Revision>,
    /// UID of its kube-system.
    pub cluster_fingerprint: Box<str>,
    /// Admitted for its next Hello.
    pub next_cluster_fingerprint: Option<Box<str>>,
    /// Admitted keys.
    pub keys: BTreeMap<KeyFingerprint, AdmittedKey>,
    /// Keys that need an operator's word.
    pub contested_keys: BTreeSet<KeyFingerprint>,
    /// Keys of ended memberships.
    pub refused_keys: BTreeSet<KeyFingerprint>,
    /// Time at which the last certificate of those ends, if that is known.
    pub refused_until: Option<UnixMillis>,
    /// Connectivity of the member.
    pub connectivity: Connectivity,
    /// Its endpoints do not count.
    pub withdrawn: bool,
    /// It is to leave.
    pub leaving: Option<Leaving>,
    /// Time at which status or connectivity last changed.
    pub since: UnixMillis,
    /// Revisions of the completed listings of this incarnation.
    pub listings: BTreeMap<ListingGroup, Revision>,
}

/// A derived object without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedRow {
    /// The object's key.
    pub key: DerivedKey,
    /// Revision of the event that last changed it.
    pub revision: Revision,
    /// Digest of its content.
    pub digest: ContentDigest,
    /// For a slice: revision of the import it waits for. Else zero.
    pub import_revision: Revision,
    /// For a profile: times of its conditions' last flips, in their order. Else empty.
    pub transitions: Vec<UnixMillis>,
}

/// A state that was restored from rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The state.
    pub state: State,
    /// Derived objects whose content in the rows does not follow from their facts, under rules that this program has: a
    /// defect of the program that wrote them, or damage. They are derived again, count as changed, and no cursor
    /// resumes until an event is recorded.
    pub differing: Vec<DerivedKey>,
}

/// Why rows give no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreError {
    /// The first row is no header, or a second one follows.
    Header,
    /// A row in a wrong place.
    Misplaced(String),
    /// Fewer or more rows than the header says.
    Incomplete(Box<SnapshotHeader>),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => write!(f, "a snapshot has exactly one header, as its first row"),
            Self::Misplaced(what) => write!(f, "a snapshot row is out of place: {what}"),
            Self::Incomplete(header) => write!(
                f,
                "a snapshot at revision {} lacks rows that its header counts",
                header.revision
            ),
        }
    }
}

impl std::error::Error for RestoreError {}

impl State {
    /// Everything that is needed to restore this state, in the order in which it is to be restored.
    pub fn snapshot_rows(&self) -> impl Iterator<Item = SnapshotRow> + Send {
        self.clone().into_snapshot_rows()
    }

    /// The same for a caller that writes rows beside the state: digests are computed as the rows are taken.
    pub fn into_snapshot_rows(self) -> impl Iterator<Item = SnapshotRow> + Send {
        let (brakes, taken_back) = brakes::counts(&self.members);
        let header = SnapshotHeader {
            brakes,
            taken_back,
            fold_version: self.fold_version,
            rules_since: self.rules_since,
            revision: self.revision,
            recorded_at: self.recorded_at,
            tombstone_floor: self.derived.tombstone_floor(),
            members: self.members.len() as u64,
            facts: self.fact_count() as u64,
            derived: self.derived.len() as u64,
            tombstones: self.derived.tombstone_count() as u64,
            tombstones_max: self.derived.tombstones_max(),
            revoked_keys: self.revoked_keys.len() as u64,
            policies: u64::from(self.policy.is_some()),
            precedences: self.contests.len() as u64,
            self_preservation: self.self_preservation,
            join_tokens: self.join_tokens.len() as u64,
            join_token_uses: join_token_uses(&self.join_tokens),
            term: self.term,
            last_session: self.last_session,
        };
        let tokens = self.join_tokens.clone().into_iter().map(|(_, known)| {
            SnapshotRow::JoinToken(JoinTokenState {
                used: Vec::new(),
                ..known.as_ref().clone()
            })
        });
        let uses = self.join_tokens.into_iter().flat_map(|(hash, known)| {
            let used = known.used.clone().into_iter();
            used.map(move |used| SnapshotRow::JoinTokenUse(hash, used))
        });
        let revoked_keys = self.revoked_keys.into_iter();
        let policy = self.policy.into_iter().map(SnapshotRow::Policy);
        let contests = self.contests.into_iter();
        let contests = contests.map(|(service, contest)| SnapshotRow::Precedence(service, contest));
        let taken_back = brakes::rows(self.members.clone());
        let members = self.members.into_iter().flat_map(|(cluster, member)| {
            let row = SnapshotRow::Member(Box::new(member_row(&cluster, &member)));
            let facts = member
                .facts
                .clone()
                .into_iter()
                .map(move |(_, recorded)| SnapshotRow::Fact {
                    cluster: cluster.clone(),
                    revision: recorded.revision,
                    fact: recorded.encoded(),
                });
            std::iter::once(row).chain(facts)
        });
        let (objects, tombstones) = self.derived.into_parts();
        let derived = objects
            .into_iter()
            .map(|(key, derived)| derived_row(key, &derived));
        let tombstones = tombstones
            .into_iter()
            .map(|(key, revision)| SnapshotRow::Tombstone { key, revision });
        std::iter::once(SnapshotRow::Header(header))
            .chain(members)
            .chain(derived.map(SnapshotRow::Derived))
            .chain(tombstones)
            .chain(revoked_keys.map(|(key, revoked)| SnapshotRow::RevokedKey(key, revoked)))
            .chain(policy)
            .chain(contests)
            .chain(tokens)
            .chain(uses)
            .chain(taken_back)
    }

    /// The state that gave `rows`, equal to the last byte where its derived objects follow from its facts. Objects that
    /// differ, as under other rules, count as changed, and all cursors need a snapshot.
    pub fn restore(rows: impl IntoIterator<Item = SnapshotRow>) -> Result<Self, RestoreError> {
        Ok(Self::restore_and_compare(rows)?.state)
    }

    /// [`State::restore`], and which derived objects came out differently though the rules are the same.
    pub fn restore_and_compare(
        rows: impl IntoIterator<Item = SnapshotRow>,
    ) -> Result<Restored, RestoreError> {
        let mut rows = rows.into_iter();
        let Some(SnapshotRow::Header(header)) = rows.next() else {
            return Err(RestoreError::Header);
        };
        let mut restoring = Restoring::default();
        for row in rows {
            restoring.take(row)?;
        }
        restoring.finish(&header)
    }
}

fn join_token_uses(tokens: &Map<TokenHash, Arc<JoinTokenState>>) -> u64 {
    tokens.values().map(|token| token.used.len() as u64).sum()
}

fn member_row(cluster: &ClusterId, member: &Member) -> MemberRow {
    MemberRow {
        cluster: cluster.clone(),
        status: member.status,
        incarnation: member.incarnation,
        ended: member.ended,
        cluster_fingerprint: member.cluster_fingerprint.clone(),
        next_cluster_fingerprint: member.next_cluster_fingerprint.clone(),
        keys: member.keys.clone(),
        contested_keys: member.contested_keys.clone(),
        refused_keys: member.refused_keys.as_ref().clone(),
        refused_until: member.refused_until,
        connectivity: member.connectivity,
        withdrawn: member.withdrawn,
        leaving: member.leaving.clone(),
        since: member.since,
        listings: member.listings.clone(),
    }
}

fn derived_row(key: DerivedKey, derived: &Derived) -> DerivedRow {
    let (import_revision, transitions) = match &derived.content {
        DerivedContent::Slice(slice) => (slice.import_revision, Vec::new()),
        DerivedContent::Profile(profile) => {
            let transitions = profile.conditions.iter().map(|c| c.last_transition);
            (Revision::default(), transitions.collect())
        }
        DerivedContent::Import(_) | DerivedContent::ExportStatus(_) => (Revision::default(), Vec::new()),
    };
    DerivedRow {
        key,
        revision: derived.revision,
        digest: canonical::digest(&derived.content),
        import_revision,
        transitions,
    }
}

#[derive(Default)]
struct Restoring {
    members: BTreeMap<ClusterId, Member>,
    facts: u64,
    derived: BTreeMap<DerivedKey, DerivedRow>,
    tombstones: Map<DerivedKey, Revision>,
    revoked_keys: Map<KeyFingerprint, RevokedKey>,
    policies: Vec<AppliedPolicy>,
    contests: Map<ServiceKey, Contest>,
    join_tokens: Map<TokenHash, Arc<JoinTokenState>>,
    join_token_uses: u64,
    brakes: brakes::Restoring,
}

impl Restoring {
    fn take(&mut self, row: SnapshotRow) -> Result<(), RestoreError> {
        match row {
            SnapshotRow::Header(_) => return Err(RestoreError::Header),
            SnapshotRow::Member(row) => {
                self.members.insert(row.cluster.clone(), restored_member(*row));
            }
            SnapshotRow::Fact {
                cluster,
                revision,
                fact,
            } => {
                let misplaced = |why| RestoreError::Misplaced(format!("a fact of {cluster} {why}"));
                let member = self.members.get_mut(&cluster);
                let member = member.ok_or_else(|| misplaced("before the member"))?;
                let current = fact.fact.key().zip(RecordedFact::new(&fact, revision));
                let (key, recorded) =
                    current.ok_or_else(|| misplaced("that is none of its current facts"))?;
                member.facts.insert(key, recorded);
                self.facts += 1;
            }
            SnapshotRow::Derived(row) => {
                self.derived.insert(row.key.clone(), row);
            }
            SnapshotRow::RevokedKey(key, revoked) => {
                self.revoked_keys.insert(key, revoked);
            }
            SnapshotRow::Policy(policy) => self.policies.push(policy),
            SnapshotRow::Precedence(service, contest) => {
                self.contests.insert(service, contest);
            }
            SnapshotRow::JoinToken(known) => {
                self.join_tokens.insert(known.token.hash, Arc::new(known));
            }
            SnapshotRow::JoinTokenUse(hash, used) => {
                let misplaced = || RestoreError::Misplaced("a use before its token".to_owned());
                let known = self.join_tokens.get_mut(&hash).ok_or_else(misplaced)?;
                Arc::make_mut(known).used.push(used);
                self.join_token_uses += 1;
            }
            SnapshotRow::Brake(cluster, brake) => self.brakes.brake(cluster, brake),
            SnapshotRow::TakenBack {
                cluster,
                revision,
                at,
                fact,
            } => self.brakes.fact(cluster, revision, at, &fact)?,
            SnapshotRow::Tombstone { key, revision } => {
                self.tombstones.insert(key, revision);
            }
        }
        Ok(())
    }

    fn finish(mut self, header: &SnapshotHeader) -> Result<Restored, RestoreError> {
        let counts = (
            self.members.len() as u64,
            self.facts,
            self.derived.len() as u64,
            self.tombstones.len() as u64,
            self.revoked_keys.len() as u64,
            self.policies.len() as u64,
            self.contests.len() as u64,
            self.join_tokens.len() as u64,
            self.join_token_uses,
            self.brakes.counts(),
        );
        let announced = (
            header.members,
            header.facts,
            header.derived,
            header.tombstones,
            header.revoked_keys,
            header.policies,
            header.precedences,
            header.join_tokens,
            header.join_token_uses,
            (header.brakes, header.taken_back),
        );
        if counts != announced {
            return Err(RestoreError::Incomplete(Box::new(*header)));
        }
        let (held, taking_back) = self.brakes.give(&mut self.members)?;
        let withdrawn = self.members.iter().filter(|(_, member)| member.withdrawn);
        let leaving = self.members.iter().filter(|(_, member)| member.leaving.is_some());
        let mut state = State {
            withdrawn: withdrawn.map(|(cluster, _)| (cluster.clone(), ())).collect(),
            leaving: leaving.map(|(cluster, _)| (cluster.clone(), ())).collect(),
            self_preservation: header.self_preservation,
            held,
            taking_back,
            revision: header.revision,
            recorded_at: header.recorded_at,
            fold_version: header.fold_version,
            term: header.term,
            last_session: header.last_session,
            rules_since: header.rules_since,
            exporters: exporters(&self.members),
            members: self
                .members
                .into_iter()
                .map(|(cluster, member)| (cluster, Arc::new(member)))
                .collect(),
            derived: DerivedStore::default(),
            revoked_keys: self.revoked_keys,
            policy: self.policies.into_iter().next_back(),
            contests: self.contests,
            join_tokens: self.join_tokens,
        };
        rederive_everything(&mut state);
        let (objects, mut differing) = dated(&state.derived, self.derived, header.revision);
        let same_rules = RULES.fold(header.fold_version).is_ok();
        let (tombstones, floor) = if same_rules && differing.is_empty() {
            (self.tombstones, header.tombstone_floor)
        } else {
            (Map::new(), header.revision.next())
        };
        state.derived = DerivedStore::restored(objects, tombstones, header.tombstones_max, floor);
        if !same_rules {
            differing.clear();
        }
        Ok(Restored { state, differing })
    }
}

fn restored_member(row: MemberRow) -> Member {
    Member {
        status: row.status,
        incarnation: row.incarnation,
        ended: row.ended,
        cluster_fingerprint: row.cluster_fingerprint,
        next_cluster_fingerprint: row.next_cluster_fingerprint,
        keys: row.keys,
        contested_keys: row.contested_keys,
        refused_keys: Arc::new(row.refused_keys),
        refused_until: row.refused_until,
        connectivity: row.connectivity,
        withdrawn: row.withdrawn,
        leaving: row.leaving,
        since: row.since,
        listings: row.listings,
        facts: Map::new(),
        taken_back: TakenBack::default(),
    }
}

fn exporters(members: &BTreeMap<ClusterId, Member>) -> Map<ServiceKey, Exporters> {
    let mut exporters: BTreeMap<_, Exporters> = BTreeMap::new();
    for (cluster, member) in members {
        for service in member.counted_services() {
            let of_service = exporters.entry(service.clone()).or_default();
            of_service.insert(cluster.clone(), ());
        }
    }
    exporters.into_iter().collect()
}

/// Derives all content again from members and facts; revisions and times are still missing.
fn rederive_everything(state: &mut State) {
    let mut step = Step {
        revision: state.revision,
        recorded_at: state.recorded_at,
        changes: Vec::new(),
    };
    let services: Vec<_> = state.exporters.keys().cloned().collect();
    for service in &services {
        exports::rederive(state, service, &mut step);
        step.changes.clear();
    }
    let clusters: Vec<_> = state.members.keys().cloned().collect();
    for cluster in &clusters {
        profile::rederive(state, cluster, &mut step);
        step.changes.clear();
    }
}

/// Recomputed objects: those that the rows have too keep their revisions, the others count as changed at a revision. Returns
/// their keys as well, and those of rows that nothing follows from.
fn dated(
    recomputed: &DerivedStore,
    mut rows: BTreeMap<DerivedKey, DerivedRow>,
    changed_at: Revision,
) -> (Map<DerivedKey, Derived>, Vec<DerivedKey>) {
    let mut differing = Vec::new();
    let date = |(key, derived): (&DerivedKey, &Derived)| {
        let row = rows
            .remove(key)
            .filter(|row| row.digest == canonical::digest(&derived.content));
        let derived = match row {
            Some(row) => recorded(&derived.content, &row),
            None => {
                differing.push(key.clone());
                Derived {
                    revision: changed_at,
                    content: derived.content.clone(),
                }
            }
        };
        (key.clone(), derived)
    };
    let objects = recomputed.iter().map(date).collect();
    differing.extend(rows.into_keys());
    (objects, differing)
}

fn recorded(content: &DerivedContent, row: &DerivedRow) -> Derived {
    let content = match content {
        DerivedContent::Slice(slice) => {
            let mut slice = (**slice).clone();
            slice.import_revision = row.import_revision;
            DerivedContent::Slice(slice.into())
        }
        DerivedContent::Profile(profile) => {
            let mut profile = (**profile).clone();
            for (condition, at) in profile.conditions.iter_mut().zip(&row.transitions) {
                condition.last_transition = *at;
            }
            DerivedContent::Profile(profile.into())
        }
        DerivedContent::Import(_) | DerivedContent::ExportStatus(_) => content.clone(),
    };
    Derived {
        revision: row.revision,
        content,
    }
}
