//! Commands to the fold and its answers: drafts of events, rejections. Values only; `decide` and the files beside it
//! give the answers.

use std::{collections::BTreeSet, fmt, sync::Arc};

use model::{
    ClusterId, EncodedFact, Event, Fact, FactKey, JoinToken, KeyAcceptance, KeyFingerprint, KeyTerms,
    ListingGroup, Policy, Revision, ServiceKey, SessionId, TokenHash, UnixMillis, advice,
    sync::RefusalReason,
};

use super::{Connectivity, KeyHolder, State};

/// A question to the fold. The caller checks before whether a session is still the admitted one.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// A Hello: may this cluster speak, and does a membership or an incarnation begin with it?
    Admit {
        /// The id in its certificate.
        cluster: ClusterId,
        /// The key in its certificate.
        key: KeyFingerprint,
        /// UID of its kube-system.
        cluster_fingerprint: Box<str>,
        /// Further knowledge of the key, and of a holder of another one.
        presented: Presented,
    },
    /// A member reports a fact about its own cluster.
    Observe {
        /// The member.
        cluster: ClusterId,
        /// Its session.
        session: SessionId,
        /// The observation's number in the session.
        sequence: u64,
        /// The fact, as it was sent.
        fact: EncodedFact,
    },
    /// A member has sent everything of a group: what was not among it is gone.
    CompleteListing {
        /// The member.
        cluster: ClusterId,
        /// Its session.
        session: SessionId,
        /// The observation's number in the session.
        sequence: u64,
        /// The group.
        group: ListingGroup,
        /// The keys of the listing, refused facts included: what is there but not valid is not gone.
        seen: Arc<BTreeSet<FactKey>>,
    },
    /// A member's connectivity changed.
    Connectivity {
        /// The member.
        cluster: ClusterId,
        /// Live, suspect or lost.
        to: Connectivity,
    },
    /// A member is lost for as long as the policy says.
    Withdraw {
        /// The member.
        cluster: ClusterId,
    },
    /// Nothing more is withdrawn, or members are again.
    SelfPreserve {
        /// Number of lost members that are not withdrawn; `None`: they are withdrawn again.
        lost: Option<u32>,
    },
    /// An operator lets members be withdrawn again, although many are lost.
    ReleaseSelfPreservation {
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// A member is about to withdraw exports: is it put on hold?
    Brake {
        /// The member.
        cluster: ClusterId,
        /// The services whose exports are to go.
        taking_back: BTreeSet<ServiceKey>,
        /// The time that an event recorded now would have.
        at: UnixMillis,
    },
    /// Withdraws the exports of a member on hold.
    ReleaseBrake {
        /// The member.
        cluster: ClusterId,
        /// Name in the operator's certificate; empty: the policy says so.
        operator: Box<str>,
    },
    /// A member leaves in good order, or stays after all.
    Depart {
        /// The member.
        cluster: ClusterId,
        /// The step of its departure.
        departure: Departure,
    },
    /// An operator ends a membership.
    Evict {
        /// The member.
        cluster: ClusterId,
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// An operator admits another key, another cluster fingerprint, or both.
    Rekey {
        /// The member.
        cluster: ClusterId,
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The key to admit besides the known ones.
        key: Option<KeyFingerprint>,
        /// The cluster fingerprint that the next Hello may state.
        cluster_fingerprint: Option<Box<str>>,
    },
    /// An operator states that nothing of a cluster is to be waited for.
    Forget {
        /// An id that is not a current member's.
        cluster: ClusterId,
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// A new key came for a member while the holder of another one answered.
    ContestKey {
        /// The member.
        cluster: ClusterId,
        /// The new key.
        key: KeyFingerprint,
        /// The key that is kept.
        kept: KeyFingerprint,
    },
    /// The hub made a certificate for another key of a member, which asked over a session: it is to be handed out.
    CertifyKey {
        /// The member.
        cluster: ClusterId,
        /// The key of the certificate.
        key: KeyFingerprint,
        /// The key of the session.
        by: KeyFingerprint,
        /// The certificate's issuer, as it names it.
        issuer: Box<str>,
        /// Time at which the certificate ends.
        not_after: UnixMillis,
        /// The time that an event recorded now would have.
        at: UnixMillis,
    },
    /// An operator refuses a key for ever.
    RevokeKey {
        /// The key's holder.
        holder: KeyHolder,
        /// The key.
        key: KeyFingerprint,
        /// Name in the certificate of who decides.
        operator: Box<str>,
    },
    /// An operator gives the clusterset a policy.
    ApplyPolicy {
        /// Its content.
        policy: Arc<Policy>,
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// An operator lets the oldest export of a service stand first again.
    ReleasePrecedence {
        /// The service.
        service: ServiceKey,
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// An operator makes a token with which clusters join.
    CreateToken {
        /// The token to record.
        token: JoinToken,
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The hub's time.
        at: UnixMillis,
    },
    /// An operator takes a token back.
    RevokeToken {
        /// The token's hash.
        token: TokenHash,
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// A cluster comes with a token: it is to be handed a certificate.
    Join {
        /// The token's hash.
        token: TokenHash,
        /// The id that it asks for.
        cluster: ClusterId,
        /// Its key.
        key: KeyFingerprint,
        /// The certificate made for it.
        certificate: Arc<str>,
        /// The hub's time.
        at: UnixMillis,
    },
    /// Another hub begins to lead.
    BeginTerm {
        /// The term.
        term: u64,
        /// The hub's name.
        replica: Box<str>,
    },
    /// Another version of the fold's rules takes over a log.
    AdoptFoldVersion {
        /// The version that folded everything up to here.
        from: u32,
    },
    /// So many removals of derived objects are to be remembered from here on.
    BoundTombstones {
        /// The bound.
        max: u32,
    },
}

impl Command {
    /// The operator whose decision it is, if it is one's.
    pub fn operator(&self) -> Option<&str> {
        match self {
            Self::Evict { operator, .. }
            | Self::Rekey { operator, .. }
            | Self::Forget { operator, .. }
            | Self::RevokeKey { operator, .. }
            | Self::ApplyPolicy { operator, .. }
            | Self::ReleasePrecedence { operator, .. }
            | Self::CreateToken { operator, .. }
            | Self::RevokeToken { operator, .. }
            | Self::ReleaseSelfPreservation { operator }
            | Self::ReleaseBrake { operator, .. } => Some(operator),
            Self::Depart { departure, .. } => departure.operator(),
            _ => None,
        }
    }
}

/// A step of an orderly departure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// An operator has it leave: its endpoints first, the rest later.
    Ordered {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The hub's time.
        at: UnixMillis,
        /// Time until the membership ends, in milliseconds: up to [`super::LEAVING_LONGEST_MILLIS`].
        after_millis: u64,
        /// It ends as an eviction.
        evicts: bool,
    },
    /// An operator has it stay, though it was to leave.
    TakenBack {
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// Its time is over.
    Due,
    /// It says itself that it leaves, at once.
    OwnWill {
        /// The key in its certificate.
        key: KeyFingerprint,
    },
}

impl Departure {
    /// The operator whose decision it is, if it is one's.
    fn operator(&self) -> Option<&str> {
        match self {
            Self::Ordered { operator, .. } | Self::TakenBack { operator } => Some(operator),
            Self::Due | Self::OwnWill { .. } => None,
        }
    }
}

/// Further properties of a key that comes with a Hello.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Presented {
    /// Issuer of its certificate; `None`: not known.
    pub issuer: Option<Box<str>>,
    /// Time at which its certificate ends; `None`: not known.
    pub not_after: Option<UnixMillis>,
    /// The certificate is of an issuer that is trusted to renew members' keys.
    pub renewable: bool,
    /// The time that an event recorded now would have.
    pub at: UnixMillis,
    /// Another key that was last admitted for the member, and that this one would displace without a new election
    /// among its agents.
    pub displaces: Option<KeyFingerprint>,
}

impl Presented {
    /// The terms to record for the key.
    pub(super) fn terms(&self, accepted: KeyAcceptance) -> KeyTerms {
        KeyTerms {
            issuer: self.issuer.clone(),
            not_after: self.not_after,
            accepted: Some(accepted),
        }
    }
}

/// An event that is to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The member it is about.
    pub cluster: Option<ClusterId>,
    /// The session that reported it; zero for decisions of the hub.
    pub session: SessionId,
    /// The member's number; zero for decisions of the hub.
    pub member_sequence: u64,
    /// The fact.
    pub fact: DraftFact,
}

/// The fact of a draft.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftFact {
    /// Reported: it is stored as it was sent.
    Encoded(EncodedFact),
    /// Decided by the hub: the writer encodes it.
    Decided(Fact),
}

impl Draft {
    /// A decision of the hub about `cluster`.
    pub(super) fn decided(cluster: &ClusterId, fact: Fact) -> Self {
        Self {
            cluster: Some(cluster.clone()),
            session: SessionId::default(),
            member_sequence: 0,
            fact: DraftFact::Decided(fact),
        }
    }

    /// A decision on the whole log.
    pub(super) fn of_the_log(fact: Fact) -> Self {
        Self {
            cluster: None,
            session: SessionId::default(),
            member_sequence: 0,
            fact: DraftFact::Decided(fact),
        }
    }

    /// The event that this draft becomes when it follows `state` at `now`. `fact` is the draft's fact with
    /// its bytes. A join is its own incarnation.
    pub fn event(&self, state: &State, fact: EncodedFact, now: UnixMillis) -> Event {
        let revision = state.revision().next();
        let incarnation = match (&fact.fact, &self.cluster) {
            (Fact::MemberJoined { .. }, _) => revision,
            (_, Some(cluster)) => state.incarnation(cluster),
            (_, None) => Revision::default(),
        };
        Event {
            revision,
            recorded_at: now.max(state.recorded_at()),
            cluster: self.cluster.clone(),
            incarnation,
            session: self.session,
            member_sequence: self.member_sequence,
            fact,
            changed_by: None,
        }
    }
}

/// Why a command was not carried out. Its `Display` says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// One item is refused; the session continues.
    Refused {
        /// The kind of reason.
        reason: RefusalReason,
        /// Problem and next step, as a message.
        message: Arc<str>,
    },
    /// A Hello is not taken.
    AdmissionRefused {
        /// The kind of reason.
        reason: AdmissionRefusal,
        /// Problem and next step, as a message.
        message: Arc<str>,
    },
    /// The cluster is no current member: its facts count for nothing.
    NotAMember {
        /// The cluster.
        cluster: ClusterId,
    },
    /// An operator's decision makes no sense as things stand.
    OperatorRefused {
        /// Problem and next step, as a message.
        message: Arc<str>,
    },
}

/// Why a Hello was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionRefusal {
    /// The id belongs to a member with another key.
    UnknownKey,
    /// The id belongs to a member with another kube-system UID.
    ClusterFingerprintChanged,
    /// The key belongs to a membership that ended, and the cluster has no other: it is no member.
    MembershipEnded,
    /// The key belongs to an earlier membership of a cluster that is a member again, or of an id that is used up.
    KeyOfFormerMember,
    /// An operator ended the last membership, and has not admitted this key since.
    Evicted,
    /// The key is refused for ever.
    RevokedKey,
    /// The key came for the member beside another one.
    ContestedKey,
    /// The certificate had ended when the last event was recorded.
    ExpiredCertificate,
    /// The clusterset is full.
    TooManyMembers,
}

impl AdmissionRefusal {
    /// The word that metrics and logs use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownKey => "unknown_key",
            Self::ClusterFingerprintChanged => "cluster_fingerprint_changed",
            Self::MembershipEnded => "membership_ended",
            Self::KeyOfFormerMember => "key_of_former_member",
            Self::Evicted => "evicted",
            Self::RevokedKey => "revoked_key",
            Self::ContestedKey => "contested_key",
            Self::ExpiredCertificate => "expired_certificate",
            Self::TooManyMembers => "too_many_members",
        }
    }
}

impl Rejection {
    pub(super) fn refused(reason: RefusalReason, message: String) -> Self {
        Self::Refused {
            reason,
            message: message.into(),
        }
    }

    pub(super) fn admission(reason: AdmissionRefusal, message: String) -> Self {
        Self::AdmissionRefused {
            reason,
            message: message.into(),
        }
    }

    pub(super) fn operator(message: String) -> Self {
        Self::OperatorRefused {
            message: message.into(),
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. }
            | Self::AdmissionRefused { message, .. }
            | Self::OperatorRefused { message } => f.write_str(message),
            Self::NotAMember { cluster } => write!(
                f,
                "cluster {cluster} is not a member of this clusterset; `{}` shows who is",
                advice::member_list()
            ),
        }
    }
}

impl std::error::Error for Rejection {}
