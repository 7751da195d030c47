//! Bytes and numbers that must never change: one example of each kind of fact, event and derived object, and
//! every field of the contract. A failing test here means that old logs or agents can no longer be read.

use std::{fmt::Write as _, net::IpAddr, sync::Arc};

use data_encoding::HEXLOWER;
use prost::Message as _;
use prost_types::{FileDescriptorSet, field_descriptor_proto::Type};

use super::*;
use model::{
    ApiServer, ApiServerState, ChangedBy, ClusterId, ClusterProperty, Conflict, ConflictReason, ControlPlane,
    ControlPlaneReason, ControlPlaneVerdict, Denial, DenialReason, Endpoint, EndpointPort, EndpointSlice,
    Event, Export, ExportStatus, Fact, Health, ImportedSlice, ImportedSliceKey, IpFamily, JoinToken,
    KeyAcceptance, KeyFingerprint, KeyTerms, ListingGroup, Metadata, NodesHealth, PrecedenceClaim,
    PropertyValue, Protocol, Revision, ServiceImport, ServiceKey, ServicePolicies, ServicePort, ServiceType,
    SessionAffinity, SessionId, SliceKey, TokenHash, UnixMillis,
    sync::{DesiredChange, DesiredItem, DesiredKey},
};

pub(super) fn service_key() -> ServiceKey {
    ServiceKey::new("shop", "cart").unwrap()
}

pub(super) fn export() -> Export {
    let port = |name: &str, protocol, port, app_protocol: Option<&str>| ServicePort {
        name: name.into(),
        protocol,
        port,
        app_protocol: app_protocol.map(Box::from),
    };
    Export {
        service: service_key(),
        created_at: UnixMillis(1_767_323_045_000),
        uid: "5d1c6c4e-6a52-4a0f-9d0a-0b8f8b9a2c11".into(),
        generation: 3,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![
            port("http", Protocol::Tcp, 80, Some("kubernetes.io/h2c")),
            port("dns", Protocol::Udp, 53, None),
        ],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::ClientIp,
            session_affinity_timeout_seconds: Some(10_800),
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: Some("PreferClose".into()),
        },
        ip_families: vec![IpFamily::V4, IpFamily::V6],
        labels: Metadata::from([
            ("example.org/tier".into(), "web".into()),
            ("team".into(), "a".into()),
        ]),
        annotations: Metadata::from([("example.org/note".into(), "for people".into())]),
    }
}

fn judged_health() -> Health {
    let server = |host: &str, state, restarts| ApiServer {
        host: host.into(),
        state,
        restarts,
        restarts_inferred: restarts > 0,
        shared: restarts > 0,
    };
    Health {
        kubernetes_version: "v1.36.3".into(),
        control_plane: ControlPlane::Ready,
        failed_checks: Vec::new(),
        verdict: Some(ControlPlaneVerdict {
            reason: ControlPlaneReason::ApiServersDegraded,
            api_servers_fresh: 2,
            api_servers_expected: 3,
            api_servers: vec![
                server("master-1", ApiServerState::Fresh, 0),
                server("master-2", ApiServerState::Dead, 1),
            ],
        }),
        nodes: Some(NodesHealth::Counted {
            total: 9,
            not_ready: 1,
            named: vec!["worker-3".into()],
        }),
    }
}

pub(super) fn endpoint_slice() -> EndpointSlice {
    EndpointSlice {
        key: SliceKey {
            service: service_key(),
            name: "cart-x7k2p".into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: Some("kubernetes.io/h2c".into()),
        }],
        endpoints: [Endpoint {
            addresses: vec![IpAddr::from([10, 1, 0, 7])],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: Some("cart-0".into()),
            zone: Some("zone-1".into()),
        }]
        .into(),
    }
}

fn property(value: PropertyValue) -> Fact {
    Fact::ClusterPropertyUpserted(Arc::new(ClusterProperty {
        name: "cluster.clusterset.k8s.io".into(),
        value,
    }))
}

fn facts() -> Vec<Fact> {
    let key = KeyFingerprint(std::array::from_fn(|index| index as u8));
    let mut facts = vec![
        Fact::ExportUpserted(Arc::new(export())),
        Fact::ExportRemoved(service_key()),
        Fact::EndpointSliceUpserted(Arc::new(endpoint_slice())),
        Fact::EndpointSliceRemoved(endpoint_slice().key),
        property(PropertyValue::Text("east".into())),
        property(PropertyValue::Oversize {
            characters: 2_000,
            digest: [7; 16],
        }),
        Fact::ClusterPropertyRemoved("clusterset.k8s.io".into()),
        Fact::HealthReported(Arc::new(Health {
            kubernetes_version: "v1.36.3".into(),
            control_plane: ControlPlane::NotReady,
            failed_checks: vec!["etcd".into()],
            verdict: None,
            nodes: None,
        })),
        Fact::HealthReported(Arc::new(judged_health())),
        Fact::ListingCompleted(ListingGroup::Properties),
        Fact::MemberJoined {
            key,
            cluster_fingerprint: "uid-of-kube-system".into(),
            terms: KeyTerms::default(),
        },
        Fact::MemberLeft,
        Fact::MemberEvicted {
            operator: "ada".into(),
        },
        Fact::MemberRekeyed {
            operator: "ada".into(),
            key: Some(key),
            cluster_fingerprint: Some("uid".into()),
            terms: KeyTerms::default(),
        },
        Fact::MemberForgotten {
            operator: "ada".into(),
        },
        Fact::MemberLive,
        Fact::MemberSuspect,
        Fact::MemberLost,
        Fact::FoldVersionChanged { from: 1, to: 2 },
        Fact::TombstonesBounded { max: 3 },
        Fact::LeaderChanged {
            term: 3,
            replica: "hub-1".into(),
        },
        Fact::MemberJoined {
            key,
            cluster_fingerprint: "uid-of-kube-system".into(),
            terms: terms(KeyAcceptance::Pinned),
        },
        Fact::MemberRekeyed {
            operator: "".into(),
            key: Some(key),
            cluster_fingerprint: None,
            terms: terms(KeyAcceptance::Renewed),
        },
    ];
    facts.extend(decisions(key));
    facts
}

/// Operators' decisions, and their consequences.
fn decisions(key: KeyFingerprint) -> Vec<Fact> {
    vec![
        Fact::MemberKeyRevoked {
            operator: "ada".into(),
            key,
        },
        Fact::OperatorKeyRevoked {
            operator: "ada".into(),
            name: "bob".into(),
            reader: false,
            key,
        },
        Fact::MemberKeyContested {
            key,
            kept: KeyFingerprint([7; 32]),
        },
        Fact::MemberKeyCertified {
            key,
            by: KeyFingerprint([7; 32]),
            issuer: "CN=issuer".into(),
            not_after: UnixMillis(1_767_323_045_000),
        },
        Fact::PolicyApplied {
            operator: "ada".into(),
            policy: Arc::new(read_policy(DEFAULT_POLICY).unwrap()),
        },
        Fact::PrecedenceContested {
            service: service_key(),
            standing: claim("east", 1_767_323_045_000),
            challenger: claim("west", 0),
            held: true,
        },
        Fact::PrecedenceReleased {
            operator: "ada".into(),
            service: service_key(),
        },
        Fact::JoinTokenCreated {
            operator: "ada".into(),
            token: JoinToken {
                hash: TokenHash([6; 32]),
                scope: "prod-*".parse().unwrap(),
                uses: 50,
                expires_at: UnixMillis(1_767_323_045_000),
            },
        },
        Fact::JoinTokenUsed {
            token: TokenHash([6; 32]),
            cluster: ClusterId::new("prod-1").unwrap(),
            key,
            certificate: "PEM".into(),
        },
        Fact::JoinTokenRevoked {
            operator: "ada".into(),
            token: TokenHash([6; 32]),
        },
        Fact::SelfPreservationLeft { operator: "".into() },
        Fact::SelfPreservationLeft {
            operator: "ada".into(),
        },
        Fact::BrakeEngaged {
            removed: 5,
            exports: 8,
        },
        Fact::MemberLeaving {
            operator: "ada".into(),
            until: UnixMillis(1_767_323_045_000),
            evicts: true,
        },
        Fact::MemberStays {
            operator: "ada".into(),
        },
        Fact::BrakeReleased { operator: "".into() },
        Fact::BrakeReleased {
            operator: "ada".into(),
        },
    ]
}

fn claim(cluster: &str, created_at: u64) -> PrecedenceClaim {
    PrecedenceClaim {
        cluster: ClusterId::new(cluster).unwrap(),
        uid: "uid".into(),
        created_at: UnixMillis(created_at),
    }
}

fn terms(accepted: KeyAcceptance) -> KeyTerms {
    KeyTerms {
        issuer: Some("CN=issuer".into()),
        not_after: Some(UnixMillis(1_767_323_045_000)),
        accepted: Some(accepted),
    }
}

fn desired() -> Vec<(&'static str, DesiredChange)> {
    let (export, slice) = (export(), endpoint_slice());
    let cluster = ClusterId::new("east").unwrap();
    let key = ImportedSliceKey {
        service: service_key(),
        source_cluster: cluster.clone(),
        source_slice: slice.key.name.clone(),
    };
    let import = ServiceImport {
        service: export.service,
        service_type: export.service_type,
        ports: export.ports,
        policies: export.policies,
        ip_families: export.ip_families,
        labels: export.labels,
        annotations: export.annotations,
        clusters: [(cluster, vec![0, 1])].into(),
    };
    let imported = ImportedSlice {
        key: key.clone(),
        address_type: slice.address_type,
        ports: slice.ports,
        endpoints: slice.endpoints,
        import_revision: Revision(41),
    };
    let status = ExportStatus {
        service: service_key(),
        uid: export.uid,
        generation: 3,
        conflicts: vec![Conflict {
            reason: ConflictReason::Type,
            message: "Conflicting type.".into(),
        }],
        exporters: 2,
        denial: None,
        left_out: "".into(),
    };
    let denied = ExportStatus {
        conflicts: Vec::new(),
        exporters: 1,
        denial: Some(Denial {
            reason: DenialReason::Policy,
            message: "Not allowed.".into(),
        }),
        left_out: "One endpoint.".into(),
        ..status.clone()
    };
    vec![
        ("service_import", DesiredChange::Import(Arc::new(import))),
        (
            "service_import_removed",
            DesiredChange::Removed(DesiredKey::Import(service_key())),
        ),
        ("imported_slice", DesiredChange::Slice(Arc::new(imported))),
        (
            "imported_slice_removed",
            DesiredChange::Removed(DesiredKey::Slice(key)),
        ),
        ("export_status", DesiredChange::ExportStatus(Arc::new(status))),
        (
            "export_status of one that is not taken",
            DesiredChange::ExportStatus(Arc::new(denied)),
        ),
        (
            "export_status_removed",
            DesiredChange::Removed(DesiredKey::ExportStatus(service_key())),
        ),
    ]
}

/// An event whose fact is stored as the difference to [`endpoint_slice`], with its endpoint not ready any more. zstd's
/// output may change; it must stay readable.
const STORED_DIFFERENCE: &str = "0885a7a6e5b73312046561737418072009280b3a1328b52ffd206255000008000200408b9668000240294a100842bb3aee3bf0eb798a755524abf163";

#[test]
fn a_stored_difference_is_read_for_ever() {
    let base = encode_fact(&Fact::EndpointSliceUpserted(endpoint_slice().into()));
    let mut changed = endpoint_slice();
    let mut endpoint = changed.endpoints.to_vec().remove(0);
    endpoint.ready = Some(false);
    changed.endpoints = [endpoint].into();
    let event = Event {
        fact: encode_fact(&Fact::EndpointSliceUpserted(changed.into())),
        ..event()
    };
    let stored = HEXLOWER.decode(STORED_DIFFERENCE.as_bytes()).unwrap();
    let recorded = parse_event(event.revision, stored.into()).unwrap();
    assert_eq!(recorded.fact(), StoredFact::Over(Revision(41)));
    let fact = recorded.restore(&base.bytes).unwrap();
    assert_eq!(recorded.into_event(fact), Ok(event));
}

fn event() -> Event {
    Event {
        revision: Revision(42),
        recorded_at: UnixMillis(1_767_323_046_789),
        cluster: Some(ClusterId::new("east").unwrap()),
        incarnation: Revision(7),
        session: SessionId(9),
        member_sequence: 11,
        fact: encode_fact(&Fact::ExportRemoved(service_key())),
        changed_by: None,
    }
}

#[test]
fn encoded_bytes_are_frozen() {
    let mut text = String::new();
    for fact in facts() {
        let encoded = encode_fact(&fact);
        writeln!(
            text,
            "{} {} {:?}",
            fact.kind(),
            HEXLOWER.encode(&encoded.bytes),
            encoded.hash
        )
        .unwrap();
    }
    writeln!(text, "event {}", HEXLOWER.encode(&encode_event(&event()))).unwrap();
    let changed = Event {
        changed_by: ChangedBy::new("kubectl-edit", UnixMillis(1_767_323_045_000)),
        ..event()
    };
    let changed = HEXLOWER.encode(&encode_event(&changed));
    writeln!(text, "event with who changed the object {changed}").unwrap();
    for (kind, change) in desired() {
        let bytes = encode_desired(&DesiredItem {
            revision: Revision(42),
            change,
        });
        writeln!(text, "{kind} {}", HEXLOWER.encode(&bytes)).unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn field_numbers_are_frozen() {
    let descriptors = FileDescriptorSet::decode(proto::FILE_DESCRIPTOR_SET).unwrap();
    let mut lines = Vec::new();
    for file in descriptors
        .file
        .iter()
        .filter(|file| file.package() == "tributary.v1")
    {
        for message in &file.message_type {
            for field in &message.field {
                let (name, label) = (format!("{}.{}", message.name(), field.name()), label(field));
                lines.push(format!("{name} = {} {label}{}", field.number(), type_name(field)));
            }
        }
        for (name, values) in file.enum_type.iter().map(|one| (one.name(), &one.value)) {
            lines.extend(
                values
                    .iter()
                    .map(|value| format!("{name}.{} = {}", value.name(), value.number())),
            );
        }
        for service in &file.service {
            for method in &service.method {
                let stream = |yes| if yes { "stream " } else { "" };
                let input = format!("{}{}", stream(method.client_streaming()), method.input_type());
                let output = format!("{}{}", stream(method.server_streaming()), method.output_type());
                lines.push(format!(
                    "{}/{} ({input}) ({output})",
                    service.name(),
                    method.name()
                ));
            }
        }
    }
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"));
}

fn label(field: &prost_types::FieldDescriptorProto) -> &'static str {
    use prost_types::field_descriptor_proto::Label;
    match field.label() {
        Label::Repeated => "repeated ",
        Label::Optional if field.proto3_optional() => "optional ",
        Label::Optional | Label::Required => "",
    }
}

fn type_name(field: &prost_types::FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => field.type_name().to_owned(),
        plain => plain.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

#[test]
fn no_message_of_the_contract_has_a_map() {
    let descriptors = FileDescriptorSet::decode(proto::FILE_DESCRIPTOR_SET).unwrap();
    let ours = descriptors
        .file
        .iter()
        .filter(|file| file.package() == "tributary.v1");
    // A map is a nested message in the descriptor, and the contract nests nothing.
    let nested: Vec<_> = ours
        .flat_map(|file| &file.message_type)
        .filter(|one| !one.nested_type.is_empty())
        .collect();
    assert!(nested.is_empty(), "{nested:?}");
}
