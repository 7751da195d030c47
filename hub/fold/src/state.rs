//! The state that events fold into: members with their facts, indexes, derived objects.
//! It only answers questions; `apply` and the files beside it change it, event by event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{
    ClusterId, EndpointSlice, Export, FactKey, FactsDigest, FewMap, JoinToken, KeyFingerprint, KeyTerms,
    ListingGroup, Policy, PrecedenceClaim, Revision, ServiceKey, SessionId, TokenHash, UnixMillis,
    facts_digest, policy::Usage, sync::SourceState,
};

use super::{
    Derived, DerivedKey, FIRST_FOLD_VERSION, Leaving, Map,
    derived::DerivedStore,
    recorded::{self, RecordedFact},
    taken_back::TakenBack,
};

/// Everything that follows from events 1 to n. Two states after the same events are equal. A copy costs next to nothing:
/// it shares what does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub(super) revision: Revision,
    pub(super) recorded_at: UnixMillis,
    pub(super) fold_version: u32,
    pub(super) rules_since: UnixMillis,
    /// The newest term; 0: no other hub ever led.
    pub(super) term: u64,
    /// The highest number of a session in the log, where numbers ran ahead of the recorded time; else 0.
    pub(super) last_session: SessionId,
    pub(super) members: Map<ClusterId, Arc<Member>>,
    /// The exporters of each service. No entry is empty.
    pub(super) exporters: Map<ServiceKey, Exporters>,
    pub(super) derived: DerivedStore,
    /// Keys that are refused for ever, in any certificate.
    pub(super) revoked_keys: Map<KeyFingerprint, RevokedKey>,
    /// The policy in force; `None`: no operator has set one.
    pub(super) policy: Option<AppliedPolicy>,
    /// The last dispute over the first place among a service's exports, as long as its first export exists.
    pub(super) contests: Map<ServiceKey, Contest>,
    /// Withdrawn members, for a lookup by each of a service's exporters.
    pub(super) withdrawn: Map<ClusterId, ()>,
    /// Leaving members, for a lookup by each of a service's exporters.
    pub(super) leaving: Map<ClusterId, ()>,
    /// Since when nothing is withdrawn, because too many members are lost at once.
    pub(super) self_preservation: Option<UnixMillis>,
    /// Members with remembered recent withdrawals that are not on hold.
    pub(super) taking_back: Map<ClusterId, ()>,
    /// Members on hold, for a lookup by each of a service's exporters.
    pub(super) held: Map<ClusterId, ()>,
    /// Tokens with which clusters join, by their hashes.
    pub(super) join_tokens: Map<TokenHash, Arc<JoinTokenState>>,
}

/// A token with which clusters join, and what it was used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinTokenState {
    /// The token's scope.
    pub token: JoinToken,
    /// The operator who made it.
    pub operator: Box<str>,
    /// Time at which that was recorded.
    pub created_at: UnixMillis,
    /// Time of its revocation.
    pub revoked_at: Option<UnixMillis>,
    /// The clusters that joined with it, in order.
    pub used: Vec<JoinTokenUse>,
}

/// The certificate that a cluster got for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinTokenUse {
    /// Its id.
    pub cluster: ClusterId,
    /// Its key.
    pub key: KeyFingerprint,
    /// Time at which that was recorded.
    pub at: UnixMillis,
    /// The certificate and what it leads over, PEM.
    pub certificate: Arc<str>,
}

/// The clusters that export one service.
pub(super) type Exporters = FewMap<ClusterId, ()>;

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedPolicy {
    /// Revision of the event that put it in force.
    pub revision: Revision,
    /// The operator.
    pub operator: Box<str>,
    /// Time at which that was recorded.
    pub at: UnixMillis,
    /// Its content.
    pub policy: Arc<Policy>,
    /// Revision of the event that made its rules on imports what they are; `None`: no policy ever had one.
    pub imports_since: Option<Revision>,
}

/// A dispute over the first place among the exports of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contest {
    /// Revision of the event that recorded it.
    pub revision: Revision,
    /// The first export until now.
    pub standing: PrecedenceClaim,
    /// The one that states to be older.
    pub challenger: PrecedenceClaim,
    /// The former keeps the place, as long as the policy lets the incumbent stand first.
    pub held: bool,
}

/// A key that is refused for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedKey {
    /// The key's holder.
    pub holder: KeyHolder,
    /// Time at which that was recorded.
    pub at: UnixMillis,
}

/// The holder of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyHolder {
    /// The agent's of this cluster.
    Member(ClusterId),
    /// The operator's of this name.
    Operator(Box<str>),
    /// The reader's of this name.
    Reader(Box<str>),
}

/// An admitted key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdmittedKey {
    /// Knowledge of the key.
    pub terms: KeyTerms,
    /// Time at which it was accepted; zero where it is not known how.
    pub accepted_at: UnixMillis,
    /// If the hub certified it: the key over whose session, before it the one over whose session that was certified, and so
    /// on; at most [`CERTIFIED_OVER_MAX`](super::CERTIFIED_OVER_MAX), the latest.
    pub certified_over: Vec<KeyFingerprint>,
}

/// A cluster that is or was a member, or was declared forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub(super) status: MemberStatus,
    pub(super) incarnation: Revision,
    pub(super) ended: Option<Revision>,
    pub(super) cluster_fingerprint: Box<str>,
    pub(super) next_cluster_fingerprint: Option<Box<str>>,
    pub(super) keys: BTreeMap<KeyFingerprint, AdmittedKey>,
    pub(super) contested_keys: BTreeSet<KeyFingerprint>,
    pub(super) refused_keys: Arc<BTreeSet<KeyFingerprint>>,
    /// Time at which the last certificate of the refused keys ends; `None`: not known of all, or there is none.
    pub(super) refused_until: Option<UnixMillis>,
    pub(super) connectivity: Connectivity,
    pub(super) withdrawn: bool,
    pub(super) leaving: Option<Leaving>,
    pub(super) since: UnixMillis,
    pub(super) listings: BTreeMap<ListingGroup, Revision>,
    pub(super) facts: Map<FactKey, RecordedFact>,
    /// Its recent withdrawals, while a hold is in force or they could cause one.
    pub(super) taken_back: TakenBack,
}

/// Membership of a cluster in the clusterset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberStatus {
    /// It does.
    Joined,
    /// It left of its own will.
    Left,
    /// An operator ended the membership.
    Evicted,
    /// An operator declared that nothing of it is to be waited for.
    Forgotten,
}

/// Connectivity of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Connectivity {
    /// The member is connected.
    Live,
    /// Silent for a while.
    Suspect,
    /// Silent for long.
    Lost,
}

impl Member {
    /// Its membership in the clusterset.
    pub fn status(&self) -> MemberStatus {
        self.status
    }

    /// True while it belongs to the clusterset.
    pub fn is_current(&self) -> bool {
        self.status == MemberStatus::Joined
    }

    /// Revision of its last join; zero if it never joined.
    pub fn incarnation(&self) -> Revision {
        self.incarnation
    }

    /// Revision of the event that ended its last membership, if it ended.
    pub fn ended(&self) -> Option<Revision> {
        self.ended
    }

    /// UID of its kube-system.
    pub fn cluster_fingerprint(&self) -> &str {
        &self.cluster_fingerprint
    }

    /// The admitted keys. After the membership ended only those that an operator admitted for its return.
    pub fn keys(&self) -> &BTreeMap<KeyFingerprint, AdmittedKey> {
        &self.keys
    }

    /// Keys that came for the member beside an admitted one: an operator's word admits them.
    pub fn contested_keys(&self) -> &BTreeSet<KeyFingerprint> {
        &self.contested_keys
    }

    /// Keys of memberships that ended: they are never admitted again.
    pub fn refused_keys(&self) -> &BTreeSet<KeyFingerprint> {
        &self.refused_keys
    }

    /// Its connectivity; meaningless once the membership ended.
    pub fn connectivity(&self) -> Connectivity {
        self.connectivity
    }

    /// It was lost for as long as the policy says, and has not come back: its endpoints do not count.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn
    }

    /// Time at which status or connectivity last changed.
    pub fn since(&self) -> UnixMillis {
        self.since
    }

    /// Revision at which its present incarnation last recorded a complete listing of `group`.
    pub fn listing_completed(&self, group: ListingGroup) -> Option<Revision> {
        self.listings.get(&group).copied()
    }

    /// Status and connectivity in one word, as members and people see it.
    pub fn source_state(&self) -> SourceState {
        match (self.status, self.connectivity) {
            (MemberStatus::Joined, Connectivity::Live) => SourceState::Live,
            (MemberStatus::Joined, Connectivity::Suspect) => SourceState::Suspect,
            (MemberStatus::Joined, Connectivity::Lost) => SourceState::Lost,
            (MemberStatus::Left, _) => SourceState::Left,
            (MemberStatus::Evicted, _) => SourceState::Evicted,
            (MemberStatus::Forgotten, _) => SourceState::Forgotten,
        }
    }

    /// Its current facts in key order: exports, slices, properties, health.
    pub fn facts(&self) -> &Map<FactKey, RecordedFact> {
        &self.facts
    }

    /// Its exports with the revisions that recorded them.
    pub fn exports(&self) -> impl Iterator<Item = (Revision, &Arc<Export>)> {
        let recorded = self.facts.values();
        recorded.map_while(|fact| Some((fact.revision, fact.export()?)))
    }

    /// Its slices of one service, exported or not.
    pub fn slices_of<'a>(
        &'a self,
        service: &'a ServiceKey,
    ) -> impl Iterator<Item = (Revision, &'a Arc<EndpointSlice>)> + 'a {
        self.facts
            .from(recorded::first_slice_of(service))
            .map_while(|(_, fact)| Some((fact.revision, fact.endpoint_slice()?)))
            .take_while(move |(_, slice)| slice.key.service == *service)
    }

    /// Usage of its facts, as budgets count. It looks at each of them.
    pub fn usage(&self) -> Usage {
        let facts = self.facts.values().map(|recorded| Usage::of(&recorded.encoded()));
        facts.fold(Usage::default(), Usage::and)
    }

    pub(super) fn export(&self, service: &ServiceKey) -> Option<(Revision, &Arc<Export>)> {
        let recorded = self.facts.get(&FactKey::Export(service.clone()))?;
        Some((recorded.revision, recorded.export()?))
    }

    /// Its recent withdrawals, with those on hold.
    pub fn taken_back(&self) -> &TakenBack {
        &self.taken_back
    }

    /// Its counted export of a service: the reported one, else one on hold.
    pub(super) fn counted_export(&self, service: &ServiceKey) -> Option<(Revision, &Arc<Export>)> {
        self.export(service).or_else(|| {
            let held = self.taken_back.held(&FactKey::Export(service.clone()))?;
            Some((held.revision, held.export()?))
        })
    }

    /// The services of all counted exports: the reported ones, and those on hold.
    pub fn counted_services(&self) -> impl Iterator<Item = &ServiceKey> {
        let reported = self.exports().map(|(_, export)| &export.service);
        reported.chain(self.taken_back.held_exports())
    }

    /// Its counted slices of one service, exported or not: the reported ones, and those on hold.
    pub fn counted_slices_of<'a>(
        &'a self,
        service: &'a ServiceKey,
    ) -> impl Iterator<Item = (Revision, &'a Arc<EndpointSlice>)> + 'a {
        let held = self.taken_back.held_slices_of(service);
        self.slices_of(service).chain(held)
    }

    fn begin_epoch(&mut self) {
        self.incarnation = Revision::default();
        self.ended = self.ended.map(|_| Revision::default());
        self.listings
            .values_mut()
            .for_each(|revision| *revision = Revision::default());
        self.facts = self
            .facts
            .with(|recorded| recorded.revision = Revision::default());
        self.taken_back.begin_epoch();
    }

    /// Digest over its facts of `group`, as its agent computes it.
    pub fn facts_digest(&self, group: ListingGroup) -> FactsDigest {
        let of_group = self.facts.iter().filter(|(key, _)| key.group() == group);
        facts_digest(of_group.map(|(key, recorded)| (key, recorded.hash)))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before the first event.
    pub fn new() -> Self {
        Self {
            revision: Revision::default(),
            recorded_at: UnixMillis::default(),
            fold_version: FIRST_FOLD_VERSION,
            term: 0,
            last_session: SessionId(0),
            rules_since: UnixMillis::default(),
            members: Map::new(),
            exporters: Map::new(),
            derived: DerivedStore::default(),
            revoked_keys: Map::new(),
            policy: None,
            contests: Map::new(),
            withdrawn: Map::new(),
            leaving: Map::new(),
            self_preservation: None,
            taking_back: Map::new(),
            held: Map::new(),
            join_tokens: Map::new(),
        }
    }

    /// The same in a log that rules of another version fold from its first event on.
    #[cfg(any(test, feature = "testing"))]
    pub fn of_version(fold_version: u32) -> Self {
        Self {
            fold_version,
            ..Self::new()
        }
    }

    /// The policy in force; `None`: none was applied.
    pub fn policy(&self) -> Option<&AppliedPolicy> {
        self.policy.as_ref()
    }

    /// The last dispute over the first place among a service's exports.
    pub fn contest(&self, service: &ServiceKey) -> Option<&Contest> {
        self.contests.get(service)
    }

    /// The keys that are refused for ever.
    pub fn revoked_keys(&self) -> &Map<KeyFingerprint, RevokedKey> {
        &self.revoked_keys
    }

    /// Tokens with which clusters join, by their hashes.
    pub fn join_tokens(&self) -> &Map<TokenHash, Arc<JoinTokenState>> {
        &self.join_tokens
    }

    /// Revision of the last event.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Time of the last event.
    pub fn recorded_at(&self) -> UnixMillis {
        self.recorded_at
    }

    /// The newest term; 0: no other hub ever led.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The highest number of a session in the log, where numbers ran ahead of the recorded time; else 0.
    pub fn last_session(&self) -> SessionId {
        self.last_session
    }

    /// A later number is above the recorded time in any case, so a lower one need not be kept.
    pub(super) fn note_session(&mut self, session: SessionId) {
        let last = self.last_session.max(session);
        let is_ahead = last.0 > self.recorded_at.0;
        self.last_session = if is_ahead { last } else { SessionId::default() };
    }

    /// The version of the rules that the log says folds it; adopt when it is not [`super::FOLD_VERSION`].
    pub fn fold_version(&self) -> u32 {
        self.fold_version
    }

    /// Time at which other rules took the log over last; 0 where a snapshot of an earlier release does not say.
    pub fn rules_since(&self) -> UnixMillis {
        self.rules_since
    }

    /// True while no member has any fact.
    pub fn holds_no_facts(&self) -> bool {
        self.members.values().all(|member| member.facts.is_empty())
    }

    /// Number of facts of all members together.
    pub fn fact_count(&self) -> usize {
        self.members.values().map(|member| member.facts.len()).sum()
    }

    /// Makes this the state at revision 0 of a new epoch: nothing changes but revisions, which all become zero, because
    /// revisions of another epoch mean nothing in this one. Cursors of other epochs are answered by a snapshot, so
    /// tombstones are not needed.
    pub fn begin_epoch(&mut self) {
        // Terms and sessions are counted over all epochs.
        self.revision = Revision::default();
        self.derived.begin_epoch();
        if let Some(applied) = &mut self.policy {
            applied.revision = Revision::default();
            applied.imports_since = applied.imports_since.map(|_| Revision::default());
        }
        self.contests = self
            .contests
            .with(|contest| contest.revision = Revision::default());
        self.members = self.members.with(|member| Arc::make_mut(member).begin_epoch());
    }

    /// All clusters that are or were members or are forgotten.
    pub fn members(&self) -> &Map<ClusterId, Arc<Member>> {
        &self.members
    }

    /// One of them.
    pub fn member(&self, cluster: &ClusterId) -> Option<&Member> {
        self.members.get(cluster).map(Arc::as_ref)
    }

    /// One of them, to be changed here and in no copy of this state.
    pub(super) fn member_mut(&mut self, cluster: &ClusterId) -> Option<&mut Member> {
        self.members.get_mut(cluster).map(Arc::make_mut)
    }

    /// The same; one that is not known yet is made.
    pub(super) fn change_member(
        &mut self,
        cluster: &ClusterId,
        stranger: impl FnOnce() -> Member,
        change: impl FnOnce(&mut Member),
    ) {
        if !self.members.contains_key(cluster) {
            self.members.insert(cluster.clone(), Arc::new(stranger()));
        }
        if let Some(member) = self.member_mut(cluster) {
            change(member);
        }
    }

    /// The member, while it belongs to the clusterset.
    pub fn current_member(&self, cluster: &ClusterId) -> Option<&Member> {
        self.member(cluster).filter(|member| member.is_current())
    }

    /// Revision of the cluster's last join; zero before any.
    pub fn incarnation(&self, cluster: &ClusterId) -> Revision {
        self.member(cluster).map(Member::incarnation).unwrap_or_default()
    }

    /// The clusters that export a service.
    pub fn exporters(&self, service: &ServiceKey) -> impl Iterator<Item = &ClusterId> {
        let exporters = self.exporters.get(service);
        exporters.into_iter().flat_map(FewMap::keys)
    }

    /// Digest over a member's facts of `group`; absent for a cluster that is no current member.
    pub fn facts_digest(&self, cluster: &ClusterId, group: ListingGroup) -> Option<FactsDigest> {
        Some(self.current_member(cluster)?.facts_digest(group))
    }

    /// A derived object.
    pub fn derived(&self, key: &DerivedKey) -> Option<&Derived> {
        self.derived.get(key)
    }

    /// All derived objects in key order.
    pub fn all_derived(&self) -> impl Iterator<Item = (&DerivedKey, &Derived)> {
        self.derived.iter()
    }

    /// The derived objects whose keys are not before this one, in key order.
    pub fn derived_from(&self, first: DerivedKey) -> impl Iterator<Item = (&DerivedKey, &Derived)> {
        self.derived.from(first)
    }

    /// The derived objects of a namespace, in key order.
    pub fn derived_in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a DerivedKey, &'a Derived)> + 'a {
        self.derived
            .from(DerivedKey::first_of_namespace(namespace))
            .take_while(move |(key, _)| key.namespace() == Some(namespace))
    }

    /// Recorded removals of derived objects that do not exist, in key order.
    pub fn tombstones(&self) -> impl Iterator<Item = (&DerivedKey, Revision)> {
        self.derived.tombstones()
    }

    /// The revision of a recorded removal.
    pub fn tombstone(&self, key: &DerivedKey) -> Option<Revision> {
        self.derived.tombstone(key)
    }

    /// Number of removals to remember: recorded, for a replay must forget the same ones.
    pub fn tombstones_max(&self) -> u32 {
        self.derived.tombstones_max()
    }

    /// Cursors below it may have missed a removal.
    pub fn tombstone_floor(&self) -> Revision {
        self.derived.tombstone_floor()
    }

    /// True if changes and tombstones after `revision` tell everything that happened since; else a
    /// snapshot is needed.
    pub fn can_resume_from(&self, revision: Revision) -> bool {
        revision >= self.derived.tombstone_floor()
    }

    /// From here on no cursor resumes, the present one included, until an event is recorded: what followed from the events
    /// so far came out otherwise than it was told.
    pub fn doubt_what_was_told(&mut self) {
        self.derived.forget_before(self.revision.next());
    }

    /// Everything derived that changed after `revision`: content, or nothing where it was removed.
    /// Meaningful where [`State::can_resume_from`] holds.
    pub fn changed_since(&self, revision: Revision) -> impl Iterator<Item = super::Change> + '_ {
        self.derived.changed_since(revision)
    }
}
