//! Generators of facts and events, of every kind.

use std::sync::Arc;

use proptest::{
    collection::{btree_map, btree_set},
    option,
    prelude::*,
    sample::select,
};

use super::{
    cluster_id, dns_label, dns_subdomain, identity,
    service::{endpoint_slice, export, slice_key},
    service_key,
};
use crate::{POLICY_API_VERSION, POLICY_KIND, encode_fact, read_policy};
use model::{
    ApiServer, ApiServerState, ChangedBy, ClusterProperty, ControlPlane, ControlPlaneReason,
    ControlPlaneVerdict, Event, Fact, Health, JoinToken, KeyAcceptance, KeyFingerprint, KeyTerms,
    ListingGroup, NodesHealth, Policy, PrecedenceClaim, PropertyValue, Revision, SessionId, TokenHash,
    TokenScope, UnixMillis, changed_by::MANAGER_BYTES_MAX, fact::PROPERTY_VALUE_CHARACTERS_MAX,
    position::CREATED_AT_SECONDS_MAX,
};

/// Midnight after the last day that a timestamp has text for.
const YEAR_9999_MILLIS: u64 = 253_402_300_799_000;

/// A group of kinds.
pub fn listing_group() -> impl Strategy<Value = ListingGroup> {
    select(vec![ListingGroup::Exports, ListingGroup::Properties])
}

/// A cluster property, short or stated.
pub fn cluster_property() -> impl Strategy<Value = ClusterProperty> {
    let text = ".{1,20}".prop_map(|text| PropertyValue::Text(text.into()));
    let oversize = (PROPERTY_VALUE_CHARACTERS_MAX as u64 + 1.., any::<[u8; 16]>())
        .prop_map(|(characters, digest)| PropertyValue::Oversize { characters, digest });
    (dns_subdomain(), prop_oneof![3 => text, 1 => oversize])
        .prop_map(|(name, value)| ClusterProperty { name, value })
}

/// An agent's report of its cluster's health, of this release or an older one.
pub fn health() -> impl Strategy<Value = Health> {
    let state = select(vec![
        ControlPlane::Ready,
        ControlPlane::NotReady,
        ControlPlane::Unreachable,
    ]);
    let version = prop_oneof![Just(Box::from("")), identity()];
    let judged = (option::of(verdict()), option::of(nodes_health()));
    (version, state, btree_set(identity(), 0..4), judged).prop_map(
        |(kubernetes_version, control_plane, checks, (verdict, nodes))| Health {
            kubernetes_version,
            control_plane,
            failed_checks: checks.into_iter().collect(),
            verdict,
            nodes,
        },
    )
}

fn verdict() -> impl Strategy<Value = ControlPlaneVerdict> {
    let state = select(vec![
        ApiServerState::Unknown,
        ApiServerState::Fresh,
        ApiServerState::Late,
        ApiServerState::Dead,
    ]);
    let server = (state, 0..5_u32, any::<bool>(), any::<bool>());
    let servers = btree_map(identity(), server, 0..4);
    (
        select(ControlPlaneReason::ALL.to_vec()),
        0..9_u32,
        0..9_u32,
        servers,
    )
        .prop_map(
            |(reason, api_servers_fresh, api_servers_expected, servers)| ControlPlaneVerdict {
                reason,
                api_servers_fresh,
                api_servers_expected,
                api_servers: servers
                    .into_iter()
                    .map(|(host, (state, restarts, restarts_inferred, shared))| ApiServer {
                        host,
                        state,
                        restarts,
                        restarts_inferred,
                        shared,
                    })
                    .collect(),
            },
        )
}

fn nodes_health() -> impl Strategy<Value = NodesHealth> {
    let counted = (btree_set(identity(), 0..4), 4..90_u32).prop_map(|(named, total)| NodesHealth::Counted {
        total,
        not_ready: u32::try_from(named.len()).unwrap_or(u32::MAX),
        named: named.into_iter().collect(),
    });
    prop_oneof![1 => Just(NodesHealth::NotReadable), 1 => Just(NodesHealth::Starting), 3 => counted]
}

/// A fact of the seven kinds that members report one by one.
pub fn member_fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        4 => export().prop_map(|value| Fact::ExportUpserted(Arc::new(value))),
        1 => service_key().prop_map(Fact::ExportRemoved),
        4 => endpoint_slice().prop_map(|slice| Fact::EndpointSliceUpserted(Arc::new(slice))),
        1 => slice_key().prop_map(Fact::EndpointSliceRemoved),
        2 => cluster_property().prop_map(|property| Fact::ClusterPropertyUpserted(Arc::new(property))),
        1 => dns_subdomain().prop_map(Fact::ClusterPropertyRemoved),
        2 => health().prop_map(|value| Fact::HealthReported(Arc::new(value))),
    ]
}

/// The terms of a key.
pub fn key_terms() -> impl Strategy<Value = KeyTerms> {
    let accepted = prop_oneof![
        Just(KeyAcceptance::Pinned),
        Just(KeyAcceptance::ByOperator),
        Just(KeyAcceptance::Renewed),
        Just(KeyAcceptance::Certified),
    ];
    (
        option::of(identity()),
        option::of(0..YEAR_9999_MILLIS),
        option::of(accepted),
    )
        .prop_map(|(issuer, not_after, accepted)| KeyTerms {
            issuer,
            not_after: not_after.map(UnixMillis),
            accepted,
        })
}

/// A fact of the kinds that the hub decides, completed listings included.
pub fn hub_fact() -> impl Strategy<Value = Fact> {
    let key = || any::<[u8; 32]>().prop_map(KeyFingerprint);
    prop_oneof![
        listing_group().prop_map(Fact::ListingCompleted),
        (key(), identity(), key_terms()).prop_map(|(key, cluster_fingerprint, terms)| Fact::MemberJoined {
            key,
            cluster_fingerprint,
            terms
        }),
        Just(Fact::MemberLeft),
        (dns_label(), 0..YEAR_9999_MILLIS, any::<bool>()).prop_map(|(operator, until, evicts)| {
            Fact::MemberLeaving {
                operator,
                until: UnixMillis(until),
                evicts,
            }
        }),
        dns_label().prop_map(|operator| Fact::MemberStays { operator }),
        dns_label().prop_map(|operator| Fact::MemberEvicted { operator }),
        (
            dns_label(),
            option::of(key()),
            option::of(identity()),
            key_terms()
        )
            .prop_map(|(operator, key, cluster_fingerprint, terms)| {
                Fact::MemberRekeyed {
                    operator,
                    key,
                    cluster_fingerprint,
                    terms,
                }
            }),
        (dns_label(), key()).prop_map(|(operator, key)| Fact::MemberKeyRevoked { operator, key }),
        (dns_label(), dns_label(), any::<bool>(), key()).prop_map(|(operator, name, reader, key)| {
            Fact::OperatorKeyRevoked {
                operator,
                name,
                reader,
                key,
            }
        }),
        (key(), key()).prop_map(|(key, kept)| Fact::MemberKeyContested { key, kept }),
        (key(), key(), identity(), 0..YEAR_9999_MILLIS).prop_map(|(key, by, issuer, not_after)| {
            Fact::MemberKeyCertified {
                key,
                by,
                issuer,
                not_after: UnixMillis(not_after),
            }
        }),
        dns_label().prop_map(|operator| Fact::MemberForgotten { operator }),
        Just(Fact::MemberLive),
        Just(Fact::MemberSuspect),
        Just(Fact::MemberLost),
        Just(Fact::MemberWithdrawn),
        any::<(u32, u32)>().prop_map(|(lost, members)| Fact::SelfPreservationEntered { lost, members }),
        prop_oneof![Just(Box::from("")), dns_label()]
            .prop_map(|operator| Fact::SelfPreservationLeft { operator }),
        any::<(u32, u32)>().prop_map(|(removed, exports)| Fact::BrakeEngaged { removed, exports }),
        prop_oneof![Just(Box::from("")), dns_label()].prop_map(|operator| Fact::BrakeReleased { operator }),
        any::<(u32, u32)>().prop_map(|(from, to)| Fact::FoldVersionChanged { from, to }),
        (any::<u64>(), dns_label()).prop_map(|(term, replica)| Fact::LeaderChanged { term, replica }),
        any::<u32>().prop_map(|max| Fact::TombstonesBounded { max }),
        (dns_label(), policy()).prop_map(|(operator, policy)| Fact::PolicyApplied { operator, policy }),
        (
            service_key(),
            precedence_claim(),
            precedence_claim(),
            any::<bool>()
        )
            .prop_map(
                |(service, standing, challenger, held)| Fact::PrecedenceContested {
                    service,
                    standing,
                    challenger,
                    held
                }
            ),
        (dns_label(), service_key())
            .prop_map(|(operator, service)| Fact::PrecedenceReleased { operator, service }),
        (dns_label(), join_token()).prop_map(|(operator, token)| Fact::JoinTokenCreated { operator, token }),
        (any::<[u8; 32]>(), cluster_id(), key(), identity()).prop_map(
            |(token, cluster, key, certificate)| {
                Fact::JoinTokenUsed {
                    token: TokenHash(token),
                    cluster,
                    key,
                    certificate: String::from(certificate).into(),
                }
            }
        ),
        (dns_label(), any::<[u8; 32]>()).prop_map(|(operator, token)| Fact::JoinTokenRevoked {
            operator,
            token: TokenHash(token)
        }),
    ]
}

/// A token for one id, or for those that begin with a label.
pub fn join_token() -> impl Strategy<Value = JoinToken> {
    let parts = (
        any::<[u8; 32]>(),
        cluster_id(),
        any::<bool>(),
        any::<u32>(),
        any::<u64>(),
    );
    parts.prop_map(|(hash, id, alone, uses, at)| JoinToken {
        hash: TokenHash(hash),
        scope: if alone || id.as_str().len() >= 60 {
            TokenScope::Id(id)
        } else {
            format!("{id}-*").parse().expect("a pattern of ids")
        },
        uses,
        expires_at: UnixMillis(at),
    })
}

/// A policy of one rule, or of none.
pub fn policy() -> impl Strategy<Value = Arc<Policy>> {
    let rule = (dns_label(), dns_label(), any::<u8>()).prop_map(|(member, namespace, octet)| {
        format!(
            "spec:\n  precedence: incumbent\n  members:\n  - name: one\n    members: [\"{member}*\"]\n    exports:\n    - \
             namespaces: [\"{namespace}\"]\n    endpoints: [10.{octet}.0.0/16]\n"
        )
    });
    prop_oneof![Just(String::from("spec: {}\n")), rule].prop_map(|spec| {
        let document = format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\n{spec}");
        Arc::new(read_policy(&document).expect("a policy"))
    })
}

/// An export's claim to stand first.
pub fn precedence_claim() -> impl Strategy<Value = PrecedenceClaim> {
    let at = (0..=CREATED_AT_SECONDS_MAX as u64).prop_map(|seconds| UnixMillis(seconds * 1_000));
    (cluster_id(), identity(), at).prop_map(|(cluster, uid, created_at)| PrecedenceClaim {
        cluster,
        uid,
        created_at,
    })
}

/// A fact of any kind.
pub fn any_fact() -> impl Strategy<Value = Fact> {
    prop_oneof![member_fact(), hub_fact()]
}

/// An event of any kind.
pub fn event() -> impl Strategy<Value = Event> {
    let place = (any::<[u64; 5]>(), option::of(cluster_id()));
    (place, any_fact(), option::of(changed_by())).prop_map(
        |(([revision, at, incarnation, session, member_sequence], cluster), fact, changed_by)| Event {
            revision: Revision(revision),
            recorded_at: UnixMillis(at),
            cluster,
            incarnation: Revision(incarnation),
            session: SessionId(session),
            member_sequence,
            fact: encode_fact(&fact),
            changed_by,
        },
    )
}

/// The last writer of an object.
pub fn changed_by() -> impl Strategy<Value = ChangedBy> {
    let at = (0..=CREATED_AT_SECONDS_MAX as u64).prop_map(|seconds| UnixMillis(seconds * 1_000));
    let manager = format!("[ -~]{{1,{MANAGER_BYTES_MAX}}}");
    let manager = proptest::string::string_regex(&manager).expect("a pattern");
    (manager, at).prop_map(|(manager, at)| ChangedBy::new(&manager, at).expect("within its bounds"))
}
