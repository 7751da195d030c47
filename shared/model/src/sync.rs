//! The messages between agent and hub, as values. The wire module converts them; the session machine of the
//! hub and the link machine of the agent decide about them. Nothing here sends anything.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

use super::{
    ChangedBy, ClusterId, Cursor, EncodedFact, Epoch, ExportStatus, FactsDigest, ImportedSlice,
    ImportedSliceKey, KeyFingerprint, ListingGroup, Revision, ServiceImport, ServiceKey, SessionId,
    policy::LossAction,
};

pub use super::arrival::ArrivedServices;

/// The protocol version that this build speaks.
pub const PROTOCOL_VERSION: u32 = 1;
/// The feature bit of both sides: heartbeats of the agent have its applied position ([`Applied`]).
pub const FEATURE_APPLIED: u64 = 1;
/// The feature bit of both sides: what was refused for now ([`RefusalReason::is_for_now`]) is reported again when the hub asks.
pub const FEATURE_REPORT_AGAIN: u64 = 2;
/// The feature bit of both sides: of an object that the agent holds only the difference is sent ([`ItemDifference`]), and
/// what it cannot restore it asks for ([`AgentMessage::ItemsWanted`]).
pub const FEATURE_DIFFERENCES: u64 = 4;
/// The feature bit of both sides: the hub certifies keys of the session's member ([`AgentMessage::RenewalRequested`]).
pub const FEATURE_RENEWAL: u64 = 8;
/// The feature bit of the agent: it takes in which clusters its exports arrived ([`HubMessage::ExportsArrived`]).
pub const FEATURE_ARRIVALS: u64 = 16;
/// Most parked services that a heartbeat names.
pub const PARKED_NAMED_MAX: usize = 64;
/// Most services in one message about where exports arrived.
pub const ARRIVED_SERVICES_MAX: usize = 256;
/// Largest certificate signing request, in bytes. One for a P-256 key has 300.
pub const SIGNING_REQUEST_BYTES_MAX: usize = 4 * 1024;
/// Most certificates of one answer to a request, and most authorities.
pub const RENEWAL_CERTIFICATES_MAX: usize = 128;
/// Most objects that an agent asks for whole in one message, and that may wait to be sent whole at a time.
pub const ITEMS_WANTED_MAX: usize = 256;
/// Most hubs that a Welcome names.
pub const HUBS_MAX: usize = 16;
/// Longest name and longest address of a hub in a Welcome, in bytes.
pub const HUB_ADDRESS_BYTES_MAX: usize = 512;
/// Longest age of what is parked, in milliseconds: a year.
pub const PARKED_AGE_MAX_MILLIS: u64 = 366 * 24 * 3_600 * 1_000;
/// Most namespaces in one interest.
pub const INTEREST_NAMESPACES_MAX: usize = 20_000;
/// Most source clusters that a Hello may name.
pub const SOURCES_HELD_MAX: usize = 5_000;
/// Largest message either side takes, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Listings and snapshots are cut into messages of about this size, in bytes: every session keeps buffers of the size
/// of its largest message.
pub const CHUNK_BYTES: usize = 8 * 1024;

/// A message of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentMessage {
    /// The first message of a session.
    Hello(Box<Hello>),
    /// Facts in the order of their sequence numbers.
    Observations(Vec<Observation>),
    /// Namespaces came or went.
    InterestChanged {
        /// The interest's new generation.
        generation: u64,
        /// Namespaces that came.
        added: BTreeSet<Box<str>>,
        /// Namespaces that went.
        removed: BTreeSet<Box<str>>,
    },
    /// A sign of life; with the applied position, if the hub asks for it.
    Heartbeat(Option<Applied>),
    /// The agent shuts down on purpose.
    Goodbye,
    /// The answer to a ping.
    Pong(Pong),
    /// Objects to send whole; 1 to [`ITEMS_WANTED_MAX`].
    ItemsWanted(BTreeSet<DesiredKey>),
    /// A certificate is wanted: the signing request, DER, at most [`SIGNING_REQUEST_BYTES_MAX`] bytes.
    RenewalRequested(Bytes),
}

/// The kind of a message of the agent, known before anything in the message is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentMessageKind {
    /// [`AgentMessage::Hello`].
    Hello,
    /// [`AgentMessage::Heartbeat`].
    Heartbeat,
    /// [`AgentMessage::Goodbye`].
    Goodbye,
    /// [`AgentMessage::Pong`].
    Pong,
    /// Any other kind, and one that this version does not know.
    Other,
}

impl AgentMessage {
    /// The kind of this message.
    pub fn kind(&self) -> AgentMessageKind {
        match self {
            Self::Hello(_) => AgentMessageKind::Hello,
            Self::Heartbeat(_) => AgentMessageKind::Heartbeat,
            Self::Goodbye => AgentMessageKind::Goodbye,
            Self::Pong(_) => AgentMessageKind::Pong,
            Self::Observations(_)
            | Self::InterestChanged { .. }
            | Self::ItemsWanted(_)
            | Self::RenewalRequested(_) => AgentMessageKind::Other,
        }
    }
}

/// The answer to a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pong {
    /// The ping's.
    pub nonce: u64,
    /// The cluster's Lease is this agent's, and nobody else can have been elected there meanwhile; `None`: it does not say.
    pub leads: Option<bool>,
}

/// A message of the hub.
#[derive(Debug, Clone, PartialEq)]
pub enum HubMessage {
    /// The first answer.
    Welcome(Box<Welcome>),
    /// Everything up to the sequence number is durable, unchanged or refused.
    Acknowledged(u64),
    /// One item was not taken; it is acknowledged too.
    Refused(Refused),
    /// Derived objects that changed.
    Desired {
        /// The interest they were computed under.
        interest_generation: u64,
        /// Encoded items (see `wire::desired`): encoded once for all members.
        items: Vec<Bytes>,
    },
    /// A snapshot of everything within the interest begins.
    SnapshotBegin {
        /// The epoch it is taken in.
        epoch: Epoch,
        /// The interest it is computed under.
        interest_generation: u64,
    },
    /// The snapshot is complete.
    SnapshotComplete(UpTo),
    /// Everything of these namespaces was sent before this.
    NamespaceComplete {
        /// The interest it was computed under.
        interest_generation: u64,
        /// The namespaces.
        namespaces: BTreeSet<Box<str>>,
    },
    /// Members whose state changed.
    SourcesChanged(Vec<Source>),
    /// Everything up to the cursor has been sent.
    UpTo(UpTo),
    /// A sign of life; with a cursor when everything up to it has been sent.
    Heartbeat(Option<UpTo>),
    /// Answer with a pong.
    Ping(u64),
    /// Report again what was refused for now ([`RefusalReason::is_for_now`]).
    ReportAgain,
    /// The outcome of the certificate request.
    RenewalAnswered(Result<Box<Renewed>, Box<str>>),
    /// In which clusters exports of the member arrived; at most [`ARRIVED_SERVICES_MAX`] services.
    ExportsArrived(Vec<ArrivedServices>),
}

/// The hub's answer to a certificate request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
    /// The certificate and what it leads over, DER; at least one.
    pub certificates: Vec<Bytes>,
    /// The authorities to trust from here on, and certificates by which one vouches for another, DER; none: those that are
    /// trusted stay.
    pub authorities: Vec<Bytes>,
}

/// An agent's introduction. Its identity is not in it: the certificate names the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The protocol version it speaks.
    pub protocol_version: u32,
    /// Feature bits.
    pub features: u64,
    /// Its program version, for people.
    pub agent_version: Box<str>,
    /// The highest epoch this cluster has known.
    pub highest_epoch: Option<Epoch>,
    /// UID of kube-system.
    pub cluster_fingerprint: Box<str>,
    /// Fresh for every start.
    pub instance: Box<str>,
    /// leaseTransitions of its Lease.
    pub lease_transitions: i64,
    /// Present while it still holds desired state.
    pub cursor: Option<Cursor>,
    /// Digest of the current facts of the group exports; absent until its joins are complete.
    pub exports_digest: Option<FactsDigest>,
    /// The same for the group properties.
    pub properties_digest: Option<FactsDigest>,
    /// Clusters whose objects its cluster holds.
    pub sources_held: BTreeSet<ClusterId>,
    /// The namespaces it wants to hear about.
    pub interest: Interest,
}

/// The position that a member's cluster has applied. It is never recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Everything up to here that was sent to it is applied, but for parked services.
    pub cursor: Option<Cursor>,
    /// Services that cannot be brought to what was sent.
    pub parked: u32,
    /// Time since the first of them was parked, in milliseconds; 0 when none is.
    pub oldest_parked_age_millis: u64,
    /// The first of them by name, at most [`PARKED_NAMED_MAX`].
    pub parked_services: BTreeSet<ServiceKey>,
}

/// The namespaces a member wants to hear about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interest {
    /// Grows with every change.
    pub generation: u64,
    /// The namespaces.
    pub namespaces: Namespaces,
}

/// A set of namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// Every one, also those that do not exist yet.
    All,
    /// These.
    Only(BTreeSet<Box<str>>),
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl Namespaces {
    /// Returns true if `namespace` is among them.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.contains(namespace),
        }
    }
}

/// One item of an agent's report.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Grows by one within a session, from 1.
    pub sequence: u64,
    /// The reported object.
    pub item: ObservedItem,
    /// The last writer of the object that the fact was read from. No decision depends on it.
    pub changed_by: Option<ChangedBy>,
}

impl Observation {
    /// An observation that says nothing of who wrote last.
    pub fn new(sequence: u64, item: ObservedItem) -> Self {
        Self {
            sequence,
            item,
            changed_by: None,
        }
    }
}

/// The object that an observation reports.
#[derive(Debug, Clone, PartialEq)]
pub enum ObservedItem {
    /// A fact.
    Fact(EncodedFact),
    /// Everything of the group was sent before this in this session.
    ListingCompleted(ListingGroup),
    /// Bytes that are no valid fact; the hub refuses them one by one.
    Invalid(Refused),
}

/// The hub's answer to Hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol version of the session.
    pub protocol_version: u32,
    /// Feature bits.
    pub features: u64,
    /// The hub's program version, for people.
    pub hub_version: Box<str>,
    /// The hub's name in its certificate.
    pub hub: Box<str>,
    /// The log's epoch.
    pub epoch: Epoch,
    /// True: deltas from the agent's cursor follow; false: a snapshot.
    pub resume: bool,
    /// A full listing of the group exports is wanted.
    pub list_exports: bool,
    /// A full listing of the group properties is wanted.
    pub list_properties: bool,
    /// The session's number.
    pub session: SessionId,
    /// The member's incarnation.
    pub incarnation: Revision,
    /// Heartbeat interval of each side, in milliseconds.
    pub heartbeat_interval_millis: u32,
    /// Silence after which either side gives the stream up, in milliseconds.
    pub silence_max_millis: u32,
    /// Observations that may be unacknowledged at a time.
    pub unacknowledged_max: u32,
    /// Grows whenever another hub begins to lead; 0: it does not say.
    pub term: u64,
    /// The hubs of the clusterset, the one that speaks first.
    pub hubs: Vec<HubAddress>,
}

/// A hub, as agents find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    /// The name in its certificate.
    pub name: Box<str>,
    /// Its address; `None`: the one dialled.
    pub address: Option<Box<str>>,
}

/// One item was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The observation's sequence number.
    pub sequence: u64,
    /// The kind of reason.
    pub reason: RefusalReason,
    /// Problem and next step, as a message.
    pub message: Arc<str>,
}

/// Why an item was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusalReason {
    /// It breaks a rule of its kind.
    Invalid,
    /// The hub does not know its kind.
    UnknownKind,
    /// The creationTimestamp of a known uid was changed.
    TimestampChanged,
    /// Only the hub decides facts of this kind.
    NotAMembersFact,
    /// A bound per member is reached.
    TooMany,
    /// There is no room to record it for now; the hub keeps its version of the key, and asks again.
    NoRoom,
    /// The member's budget is used up; the hub keeps its version of the key, and asks again when there is room.
    OverBudget,
}

impl RefusalReason {
    /// All seven, in order.
    pub const ALL: [Self; 7] = [
        Self::Invalid,
        Self::UnknownKind,
        Self::TimestampChanged,
        Self::NotAMembersFact,
        Self::TooMany,
        Self::NoRoom,
        Self::OverBudget,
    ];

    /// Nothing is wrong with the item: the hub keeps its version of the key, and asks for it again.
    pub fn is_for_now(self) -> bool {
        matches!(self, Self::NoRoom | Self::OverBudget)
    }

    /// The word that metrics and logs use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::UnknownKind => "unknown_kind",
            Self::TimestampChanged => "timestamp_changed",
            Self::NotAMembersFact => "not_a_members_fact",
            Self::TooMany => "too_many",
            Self::NoRoom => "no_room",
            Self::OverBudget => "over_budget",
        }
    }
}

/// The hub's statement that a membership has ended, for the holder of one of its keys. No other refusal says this: an
/// agent acts on it, and only on one about its own cluster and key, of an epoch that is not lower than the highest it
/// has known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipEnded {
    /// The cluster whose membership it was.
    pub cluster: ClusterId,
    /// The key, which stays refused for ever.
    pub key: KeyFingerprint,
    /// The epoch of the log that recorded the end.
    pub epoch: Epoch,
}

/// The hub's view of a source of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceState {
    /// The member is connected.
    Live,
    /// Silent for a while.
    Suspect,
    /// Silent for long.
    Lost,
    /// No member any more, by its own will.
    Left,
    /// No member any more, by an operator's.
    Evicted,
    /// Declared as not to be waited for.
    Forgotten,
}

impl SourceState {
    /// All six, in order.
    pub const ALL: [Self; 6] = [
        Self::Live,
        Self::Suspect,
        Self::Lost,
        Self::Left,
        Self::Evicted,
        Self::Forgotten,
    ];

    /// The state in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Suspect => "suspect",
            Self::Lost => "lost",
            Self::Left => "left",
            Self::Evicted => "evicted",
            Self::Forgotten => "forgotten",
        }
    }

    /// True when it is no member. [`Source::ended`] says whether its objects may be deleted.
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Left | Self::Evicted | Self::Forgotten)
    }
}

/// A source of facts, as members need to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its state.
    pub state: SourceState,
    /// True if this hub process has its complete exports.
    pub listed: bool,
    /// True if this hub process saw its membership end, or saw it forgotten.
    pub ended: bool,
    /// The action on its endpoints in a cluster where nothing confirms it any more; absent: the hub does not say.
    pub on_loss: Option<LossAction>,
}

/// Everything up to a cursor has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpTo {
    /// The interest it was computed under.
    pub interest_generation: u64,
    /// The cursor.
    pub cursor: Cursor,
}

/// The key of a derived object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DesiredKey {
    /// A ServiceImport.
    Import(ServiceKey),
    /// An imported EndpointSlice.
    Slice(ImportedSliceKey),
    /// The status of one of the member's own exports.
    ExportStatus(ServiceKey),
}

/// One derived object, or its recorded removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredItem {
    /// Revision of the event that last changed it.
    pub revision: Revision,
    /// The change.
    pub change: DesiredChange,
}

/// The change of a derived object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredChange {
    /// An import.
    Import(Arc<ServiceImport>),
    /// A slice.
    Slice(Arc<ImportedSlice>),
    /// A status.
    ExportStatus(Arc<ExportStatus>),
    /// It was removed, by an event.
    Removed(DesiredKey),
}

impl DesiredChange {
    /// The object's key.
    pub fn key(&self) -> DesiredKey {
        match self {
            Self::Import(import) => DesiredKey::Import(import.service.clone()),
            Self::Slice(slice) => DesiredKey::Slice(slice.key.clone()),
            Self::ExportStatus(status) => DesiredKey::ExportStatus(status.service.clone()),
            Self::Removed(key) => key.clone(),
        }
    }
}

/// First 16 bytes of the blake3 hash of an encoded object, as it is sent whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemHash(pub [u8; 16]);

impl ItemHash {
    /// Hashes encoded bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(super::bytes::first_16(blake3::hash(bytes).as_bytes()))
    }
}

/// The difference from one version of an object to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemDifference {
    /// Revision of the version that it leads to.
    pub revision: Revision,
    /// The object.
    pub key: DesiredKey,
    /// The version that it leads from.
    pub base: ItemHash,
    /// The way between them.
    pub difference: Bytes,
    /// The version that it leads to.
    pub hash: ItemHash,
}

/// An item as it reached an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A whole object, or its removal.
    Whole(DesiredItem),
    /// The difference of an object that the agent is thought to hold.
    Difference(ItemDifference),
    /// A whole object that this agent cannot read, of a newer hub.
    Unreadable {
        /// The object's key.
        key: DesiredKey,
        /// Why.
        why: Box<str>,
    },
}

impl Told {
    /// The object's key.
    pub fn key(&self) -> DesiredKey {
        match self {
            Self::Whole(item) => item.change.key(),
            Self::Difference(difference) => difference.key.clone(),
            Self::Unreadable { key, .. } => key.clone(),
        }
    }
}

impl From<DesiredItem> for Told {
    fn from(item: DesiredItem) -> Self {
        Self::Whole(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_those_that_are_named_or_every_one() {
        let only = Namespaces::Only(["shop".into()].into());
        assert!(only.contains("shop") && !only.contains("bank"));
        assert!(Namespaces::All.contains("bank"));
    }

    #[test]
    fn a_source_is_no_member_when_it_left_and_not_when_it_is_silent() {
        use SourceState::{Evicted, Forgotten, Left, Live, Lost, Suspect};
        assert!([Left, Evicted, Forgotten].iter().all(|state| state.is_gone()));
        assert!(![Live, Suspect, Lost].iter().any(|state| state.is_gone()));
    }
}
