//! Facts: the closed set of things that can happen in a clusterset, and the events that record them.
//! A fact is built from named fields only, never from status, resourceVersion or managedFields.

use std::{fmt, str::FromStr, sync::Arc};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{
    ChangedBy, ClusterId, EndpointSlice, Export, Health, JoinToken, Policy, Revision, ServiceKey, SliceKey,
    TokenHash, UnixMillis,
};

/// Largest encoded fact, in bytes.
pub const FACT_BYTES_MAX: usize = 1024 * 1024;
/// Longest value of a ClusterProperty that travels as it is, in characters (ClusterProfile's own bound).
pub const PROPERTY_VALUE_CHARACTERS_MAX: usize = 1_024;
/// Longest uid, fingerprint or version string, in bytes.
pub const IDENTITY_STRING_BYTES_MAX: usize = 128;
/// Longest name of a certificate's issuer that is recorded, in bytes; of a longer one its sha256 is.
pub const ISSUER_BYTES_MAX: usize = 256;
/// Most facts that one member may have at a time.
pub const MEMBER_FACTS_MAX: usize = 200_000;

/// First 16 bytes of the blake3 hash of an encoded fact, as it was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FactHash(pub [u8; 16]);

impl FactHash {
    /// Hashes encoded bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(super::bytes::first_16(blake3::hash(bytes).as_bytes()))
    }
}

impl fmt::Debug for FactHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// sha256 of a certificate's SubjectPublicKeyInfo.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyFingerprint(pub [u8; 32]);

impl KeyFingerprint {
    /// The fingerprint of a SubjectPublicKeyInfo (DER).
    pub fn of(public_key_info: &[u8]) -> Self {
        Self(Sha256::digest(public_key_info).into())
    }

    /// Reads a fingerprint as openssl or we print it: with colons or without, in either case.
    pub fn read(text: &str) -> Result<Self, String> {
        let digits = text.chars().filter(|character| *character != ':');
        let digits: String = digits.map(|digit| digit.to_ascii_lowercase()).collect();
        digits.parse().map_err(|_| {
            "a key fingerprint is the sha256 of the public key (SubjectPublicKeyInfo), 64 hexadecimal digits; the \
             hub's refusal of the session names it"
                .to_owned()
        })
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A text that is no key fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no key fingerprint; write the sha256 of the public key as 64 lower-case hexadecimal digits")]
pub struct InvalidKeyFingerprint;

impl FromStr for KeyFingerprint {
    type Err = InvalidKeyFingerprint;

    /// Reads what is printed, and nothing else.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        super::bytes::from_hex(text)
            .map(Self)
            .ok_or(InvalidKeyFingerprint)
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The terms of an admitted key. Empty if it was recorded by an older release.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyTerms {
    /// Issuer of its certificate, as the certificate names it: at most [`ISSUER_BYTES_MAX`] bytes.
    pub issuer: Option<Box<str>>,
    /// Time at which its certificate ends.
    pub not_after: Option<UnixMillis>,
    /// The way in which it was admitted.
    pub accepted: Option<KeyAcceptance>,
}

/// The way in which a member's key was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyAcceptance {
    /// With the Hello that began the membership.
    Pinned,
    /// An operator said so.
    ByOperator,
    /// Its certificate is of an issuer that is trusted for renewal, and nobody answered under another key.
    Renewed,
    /// The hub certified it over a session of a key that was admitted.
    Certified,
}

/// The kinds whose listings complete together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListingGroup {
    /// Namespace, Service, ServiceExport, EndpointSlice.
    Exports,
    /// ClusterProperty and health.
    Properties,
}

/// The subject of a member's fact: at most one fact per key and member is current. The order is the order of digests:
/// frozen within a protocol version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKey {
    /// A ServiceExport with its Service.
    Export(ServiceKey),
    /// An EndpointSlice of an exported Service.
    EndpointSlice(SliceKey),
    /// A ClusterProperty, by name.
    ClusterProperty(Box<str>),
    /// The control plane's health.
    Health,
}

impl FactKey {
    /// The group whose listing it belongs to.
    pub fn group(&self) -> ListingGroup {
        match self {
            Self::Export(_) | Self::EndpointSlice(_) => ListingGroup::Exports,
            Self::ClusterProperty(_) | Self::Health => ListingGroup::Properties,
        }
    }
}

/// The subject, as people name it.
impl fmt::Display for FactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Export(service) => write!(f, "ServiceExport {service}"),
            Self::EndpointSlice(slice) => {
                write!(f, "EndpointSlice {}/{}", slice.service.namespace, slice.name)
            }
            Self::ClusterProperty(name) => write!(f, "ClusterProperty {name}"),
            Self::Health => f.write_str("the control plane's health"),
        }
    }
}

/// A ClusterProperty (KEP-2149).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterProperty {
    /// The property's name, a DNS subdomain.
    pub name: Box<str>,
    /// Its value.
    pub value: PropertyValue,
}

/// The value of a property. A long one is never cut: it is stated as size and digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PropertyValue {
    /// 1 to [`PROPERTY_VALUE_CHARACTERS_MAX`] characters.
    Text(Box<str>),
    /// A longer one.
    Oversize {
        /// Its length in characters.
        characters: u64,
        /// First 16 bytes of its blake3 hash.
        digest: [u8; 16],
    },
}

/// One thing that happened. The first eight kinds are reported by members, the others decided by the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// An export appeared or changed.
    ExportUpserted(Arc<Export>),
    /// An export ended.
    ExportRemoved(ServiceKey),
    /// A slice appeared or changed.
    EndpointSliceUpserted(Arc<EndpointSlice>),
    /// A slice ended.
    EndpointSliceRemoved(SliceKey),
    /// A property appeared or changed.
    ClusterPropertyUpserted(Arc<ClusterProperty>),
    /// A property ended.
    ClusterPropertyRemoved(Box<str>),
    /// The control plane's health changed.
    HealthReported(Arc<Health>),
    /// Everything of the group has been sent.
    ListingCompleted(ListingGroup),
    /// A cluster became a member or began a new incarnation; the event's revision is the incarnation.
    MemberJoined {
        /// The admitted key.
        key: KeyFingerprint,
        /// UID of kube-system.
        cluster_fingerprint: Box<str>,
        /// The terms of the key.
        terms: KeyTerms,
    },
    /// A membership ended in good order: its own agent said so, or an operator had it leave.
    MemberLeft,
    /// An operator had the member leave: its endpoints go where others have ready ones, the membership ends later.
    MemberLeaving {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// Time at which the membership ends, by the hub's clock.
        until: UnixMillis,
        /// It ends as an eviction.
        evicts: bool,
    },
    /// A member that was to leave stays.
    MemberStays {
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// An operator ended the membership.
    MemberEvicted {
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// Another key or cluster fingerprint was admitted, or a certificate was seen for an admitted key.
    MemberRekeyed {
        /// Name in the operator's certificate; empty: nobody's decision.
        operator: Box<str>,
        /// The key admitted besides the known ones.
        key: Option<KeyFingerprint>,
        /// The cluster fingerprint that the next Hello may state.
        cluster_fingerprint: Option<Box<str>>,
        /// The terms of the key.
        terms: KeyTerms,
    },
    /// An operator refused a key of a cluster for ever.
    MemberKeyRevoked {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The key.
        key: KeyFingerprint,
    },
    /// An operator refused the key of an operator's or a reader's certificate for ever.
    OperatorKeyRevoked {
        /// Name in the certificate of who decided.
        operator: Box<str>,
        /// Name in the certificate whose key it is.
        name: Box<str>,
        /// The certificate is a reader's.
        reader: bool,
        /// The key.
        key: KeyFingerprint,
    },
    /// Two keys came for one member beside each other or in turn.
    MemberKeyContested {
        /// The one that needs an operator's word.
        key: KeyFingerprint,
        /// The one that stays admitted.
        kept: KeyFingerprint,
    },
    /// The hub certified another key over a session of an admitted one.
    MemberKeyCertified {
        /// The key that is admitted.
        key: KeyFingerprint,
        /// The key of the session.
        by: KeyFingerprint,
        /// Issuer of the certificate, as the certificate names it.
        issuer: Box<str>,
        /// Time at which the certificate ends.
        not_after: UnixMillis,
    },
    /// An operator stated that nothing of this cluster is to be waited for.
    MemberForgotten {
        /// Name in the operator's certificate.
        operator: Box<str>,
    },
    /// The member is connected (again).
    MemberLive,
    /// Silent for longer than the suspicion time.
    MemberSuspect,
    /// Silent for longer than the loss time.
    MemberLost,
    /// The member is withdrawn: lost for so long that its endpoints do not count any more, as the policy says, until it
    /// comes back.
    MemberWithdrawn,
    /// So many members are lost at once that the hub itself is the likelier fault: nothing is withdrawn.
    SelfPreservationEntered {
        /// Members that were lost, and not withdrawn.
        lost: u32,
        /// Members in all.
        members: u32,
    },
    /// Members that stay lost are withdrawn again.
    SelfPreservationLeft {
        /// Name in the operator's certificate; empty: nobody's decision.
        operator: Box<str>,
    },
    /// The member withdrew most of its exports at once: its withdrawals are put on hold.
    BrakeEngaged {
        /// Exports that it withdrew, or was about to.
        removed: u32,
        /// Number of its exports before.
        exports: u32,
    },
    /// The member's withdrawals are accepted.
    BrakeReleased {
        /// Name in the operator's certificate; empty: nobody's decision.
        operator: Box<str>,
    },
    /// The fold's rules changed here.
    FoldVersionChanged {
        /// The version that folded the events before.
        from: u32,
        /// The version that folds this and the following.
        to: u32,
    },
    /// Another hub leads from here on.
    LeaderChanged {
        /// Its term.
        term: u64,
        /// Its name.
        replica: Box<str>,
    },
    /// From here on at most so many removals of derived objects are remembered.
    TombstonesBounded {
        /// The bound.
        max: u32,
    },
    /// An operator gave the clusterset a policy.
    PolicyApplied {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The policy.
        policy: Arc<Policy>,
    },
    /// An export came that is older than the first one.
    PrecedenceContested {
        /// The service that both export.
        service: ServiceKey,
        /// The first export until then.
        standing: PrecedenceClaim,
        /// The one that states to be older.
        challenger: PrecedenceClaim,
        /// The former keeps its place until an operator lets it go.
        held: bool,
    },
    /// An operator let the oldest export of a service stand first again.
    PrecedenceReleased {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The service.
        service: ServiceKey,
    },
    /// An operator made a token with which clusters join.
    JoinTokenCreated {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The token to record.
        token: JoinToken,
    },
    /// A cluster was given a certificate for a token.
    JoinTokenUsed {
        /// The token's hash.
        token: TokenHash,
        /// The id in the certificate.
        cluster: ClusterId,
        /// The key in the certificate.
        key: KeyFingerprint,
        /// The certificate and what it leads over, PEM.
        certificate: Arc<str>,
    },
    /// An operator took a token back.
    JoinTokenRevoked {
        /// Name in the operator's certificate.
        operator: Box<str>,
        /// The token's hash.
        token: TokenHash,
    },
}

/// An export's claim to stand first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrecedenceClaim {
    /// The place of the endpoints.
    pub cluster: ClusterId,
    /// uid of the ServiceExport.
    pub uid: Box<str>,
    /// Its creationTimestamp, as its cluster states it.
    pub created_at: UnixMillis,
}

impl Fact {
    /// The subject of the fact, for the kinds that members report one by one.
    pub fn key(&self) -> Option<FactKey> {
        match self {
            Self::ExportUpserted(export) => Some(FactKey::Export(export.service.clone())),
            Self::ExportRemoved(service) => Some(FactKey::Export(service.clone())),
            Self::EndpointSliceUpserted(slice) => Some(FactKey::EndpointSlice(slice.key.clone())),
            Self::EndpointSliceRemoved(key) => Some(FactKey::EndpointSlice(key.clone())),
            Self::ClusterPropertyUpserted(property) => Some(FactKey::ClusterProperty(property.name.clone())),
            Self::ClusterPropertyRemoved(name) => Some(FactKey::ClusterProperty(name.clone())),
            Self::HealthReported(_) => Some(FactKey::Health),
            Self::ListingCompleted(_)
            | Self::MemberJoined { .. }
            | Self::MemberLeft
            | Self::MemberLeaving { .. }
            | Self::MemberStays { .. }
            | Self::MemberEvicted { .. }
            | Self::MemberRekeyed { .. }
            | Self::MemberForgotten { .. }
            | Self::MemberKeyRevoked { .. }
            | Self::OperatorKeyRevoked { .. }
            | Self::MemberKeyContested { .. }
            | Self::MemberKeyCertified { .. }
            | Self::MemberLive
            | Self::MemberSuspect
            | Self::MemberLost
            | Self::MemberWithdrawn
            | Self::SelfPreservationEntered { .. }
            | Self::SelfPreservationLeft { .. }
            | Self::BrakeEngaged { .. }
            | Self::BrakeReleased { .. }
            | Self::FoldVersionChanged { .. }
            | Self::LeaderChanged { .. }
            | Self::TombstonesBounded { .. }
            | Self::PolicyApplied { .. }
            | Self::PrecedenceContested { .. }
            | Self::PrecedenceReleased { .. }
            | Self::JoinTokenCreated { .. }
            | Self::JoinTokenUsed { .. }
            | Self::JoinTokenRevoked { .. } => None,
        }
    }

    /// True for the kinds that end what their key names.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::ExportRemoved(_) | Self::EndpointSliceRemoved(_) | Self::ClusterPropertyRemoved(_)
        )
    }

    /// The operator whose decision it is, by the name in the certificate; `None`: nobody's decision.
    pub fn operator(&self) -> Option<&str> {
        let operator = match self {
            Self::MemberEvicted { operator }
            | Self::MemberLeaving { operator, .. }
            | Self::MemberStays { operator }
            | Self::MemberRekeyed { operator, .. }
            | Self::MemberForgotten { operator }
            | Self::MemberKeyRevoked { operator, .. }
            | Self::OperatorKeyRevoked { operator, .. }
            | Self::PolicyApplied { operator, .. }
            | Self::PrecedenceReleased { operator, .. }
            | Self::JoinTokenCreated { operator, .. }
            | Self::JoinTokenRevoked { operator, .. }
            | Self::SelfPreservationLeft { operator }
            | Self::BrakeReleased { operator } => operator,
            Self::ExportUpserted(_)
            | Self::ExportRemoved(_)
            | Self::EndpointSliceUpserted(_)
            | Self::EndpointSliceRemoved(_)
            | Self::ClusterPropertyUpserted(_)
            | Self::ClusterPropertyRemoved(_)
            | Self::HealthReported(_)
            | Self::ListingCompleted(_)
            | Self::MemberJoined { .. }
            | Self::MemberLeft
            | Self::MemberKeyContested { .. }
            | Self::MemberKeyCertified { .. }
            | Self::MemberLive
            | Self::MemberSuspect
            | Self::MemberLost
            | Self::MemberWithdrawn
            | Self::SelfPreservationEntered { .. }
            | Self::BrakeEngaged { .. }
            | Self::FoldVersionChanged { .. }
            | Self::LeaderChanged { .. }
            | Self::TombstonesBounded { .. }
            | Self::PrecedenceContested { .. }
            | Self::JoinTokenUsed { .. } => return None,
        };
        // A renewal is recorded as a rekey by nobody.
        (!operator.is_empty()).then_some(&**operator)
    }

    /// The kind in one word: the field's name in the wire contract, as filters and metrics use it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ExportUpserted(_) => "export_upserted",
            Self::ExportRemoved(_) => "export_removed",
            Self::EndpointSliceUpserted(_) => "endpoint_slice_upserted",
            Self::EndpointSliceRemoved(_) => "endpoint_slice_removed",
            Self::ClusterPropertyUpserted(_) => "cluster_property_upserted",
            Self::ClusterPropertyRemoved(_) => "cluster_property_removed",
            Self::HealthReported(_) => "health_reported",
            Self::ListingCompleted(_) => "listing_completed",
            Self::MemberJoined { .. } => "member_joined",
            Self::MemberLeft => "member_left",
            Self::MemberLeaving { .. } => "member_leaving",
            Self::MemberStays { .. } => "member_stays",
            Self::MemberEvicted { .. } => "member_evicted",
            Self::MemberRekeyed { .. } => "member_rekeyed",
            Self::MemberForgotten { .. } => "member_forgotten",
            Self::MemberKeyRevoked { .. } => "member_key_revoked",
            Self::OperatorKeyRevoked { .. } => "operator_key_revoked",
            Self::MemberKeyContested { .. } => "member_key_contested",
            Self::MemberKeyCertified { .. } => "member_key_certified",
            Self::MemberLive => "member_live",
            Self::MemberSuspect => "member_suspect",
            Self::MemberLost => "member_lost",
            Self::MemberWithdrawn => "member_withdrawn",
            Self::SelfPreservationEntered { .. } => "self_preservation_entered",
            Self::SelfPreservationLeft { .. } => "self_preservation_left",
            Self::BrakeEngaged { .. } => "brake_engaged",
            Self::BrakeReleased { .. } => "brake_released",
            Self::FoldVersionChanged { .. } => "fold_version_changed",
            Self::LeaderChanged { .. } => "leader_changed",
            Self::TombstonesBounded { .. } => "tombstones_bounded",
            Self::PolicyApplied { .. } => "policy_applied",
            Self::PrecedenceContested { .. } => "precedence_contested",
            Self::PrecedenceReleased { .. } => "precedence_released",
            Self::JoinTokenCreated { .. } => "join_token_created",
            Self::JoinTokenUsed { .. } => "join_token_used",
            Self::JoinTokenRevoked { .. } => "join_token_revoked",
        }
    }
}

/// A fact together with its encoded bytes, which are what is hashed, sent and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedFact {
    /// The fact.
    pub fact: Fact,
    /// Its bytes, as they were or will be sent.
    pub bytes: Bytes,
    /// Their hash.
    pub hash: FactHash,
}

/// The number of a session, unique within an epoch. Zero: no session, the hub's own decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SessionId(pub u64);

/// A recorded fact: one entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number, gapless within the epoch.
    pub revision: Revision,
    /// max(the hub's clock, the previous event's).
    pub recorded_at: UnixMillis,
    /// The member it is about. For decisions on the whole log there is none.
    pub cluster: Option<ClusterId>,
    /// Revision of the member's join; zero before any.
    pub incarnation: Revision,
    /// The session that reported it.
    pub session: SessionId,
    /// The member's sequence number in that session.
    pub member_sequence: u64,
    /// The fact.
    pub fact: EncodedFact,
    /// The last writer of the object that the fact was read from, by the member's report. No decision depends on it.
    pub changed_by: Option<ChangedBy>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_people_name_the_object() {
        let service = ServiceKey::new("shop", "cart").expect("valid");
        let slice = SliceKey {
            service: service.clone(),
            name: "cart-x7".into(),
        };
        for (key, name) in [
            (FactKey::Export(service), "ServiceExport shop/cart"),
            (FactKey::EndpointSlice(slice), "EndpointSlice shop/cart-x7"),
            (
                FactKey::ClusterProperty("region".into()),
                "ClusterProperty region",
            ),
            (FactKey::Health, "the control plane's health"),
        ] {
            assert_eq!(key.to_string(), name);
        }
    }
}
