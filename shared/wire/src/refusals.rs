//! Every rule of a member's facts, broken once: the refusal says what, where and what to do.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use prost::Message as _;
use proto::v1::{self, agent_message::Message, fact::Fact as ProtoFact};

use super::*;
use model::{
    ClusterProperty, ControlPlane, Endpoint, EndpointPort, EndpointSlice, Export, Fact, Health, IpFamily,
    PropertyValue, Protocol, ServicePort, SliceKey, UnixMillis,
    fact::FACT_BYTES_MAX,
    sync::{AgentMessage, ObservedItem, RefusalReason},
};

#[track_caller]
fn refused(fact: &Fact, words: &str) {
    let error = decode_member_fact(encode_fact(fact).bytes).expect_err(words);
    assert_eq!(error.reason, RefusalReason::Invalid, "{error}");
    assert!(
        error.message.contains(words),
        "{:?} does not say {words:?}",
        error.message
    );
    // Values recorded under older rules are still read back, unless their shape is broken.
    assert!(decode_recorded_fact(encode_fact(fact).bytes).is_ok(), "{words}");
}

#[track_caller]
fn export(words: &str, change: impl FnOnce(&mut Export)) {
    let mut export = frozen::export();
    change(&mut export);
    refused(&Fact::ExportUpserted(Arc::new(export)), words);
}

#[track_caller]
fn slice(words: &str, change: impl FnOnce(&mut EndpointSlice)) {
    let mut slice = frozen::endpoint_slice();
    change(&mut slice);
    refused(&Fact::EndpointSliceUpserted(Arc::new(slice)), words);
}

#[track_caller]
fn endpoint(words: &str, change: impl FnOnce(&mut Endpoint)) {
    slice(words, |slice| {
        let mut endpoints = slice.endpoints.to_vec();
        change(&mut endpoints[0]);
        slice.endpoints = endpoints.into();
    });
}

#[track_caller]
fn address(words: &str, text: &str) {
    let address: IpAddr = text.parse().unwrap();
    slice(words, |slice| {
        if address.is_ipv6() {
            slice.address_type = IpFamily::V6;
        }
        slice.endpoints = [Endpoint {
            addresses: vec![address],
            ..slice.endpoints.to_vec().remove(0)
        }]
        .into();
    });
}

fn service_port(name: &str, port: u16) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port,
        app_protocol: None,
    }
}

#[test]
fn bad_exports_are_refused() {
    export("export shop/cart: ports[0].port: is 0", |e| e.ports[0].port = 0);
    export("ports[0].name: \"Web\" is not a DNS label", |e| {
        e.ports[0].name = "Web".into()
    });
    export("ports[2].name: \"a\" is taken", |e| {
        e.ports = vec![service_port("", 1), service_port("a", 2), service_port("a", 3)];
    });
    export("ports[1].name: \"\" is taken", |e| {
        e.ports = vec![service_port("", 1), service_port("", 2)]
    });
    export("ports[1].port: 80 is there twice", |e| {
        e.ports = vec![service_port("a", 80), service_port("b", 80)]
    });
    export("ports: are 1001; at most 1000", |e| {
        e.ports = (1..=1_001).map(|n| service_port(&format!("p{n}"), n)).collect();
    });
    export("ports[0].appProtocol", |e| {
        e.ports[0].app_protocol = Some("a b".into())
    });
    export("uid: is empty", |e| e.uid = "".into());
    export("uid: has 129 bytes", |e| e.uid = "u".repeat(129).into());
    export("generation: is -1", |e| e.generation = -1);
    export("ipFamilies", |e| e.ip_families = vec![]);
    export("ipFamilies", |e| e.ip_families = vec![IpFamily::V4, IpFamily::V4]);
    export("timeoutSeconds: is 0; use 1 to 86400", |e| {
        e.policies.session_affinity_timeout_seconds = Some(0)
    });
    export("timeoutSeconds", |e| {
        e.policies.session_affinity_timeout_seconds = Some(86_401)
    });
    export("internalTrafficPolicy: is empty", |e| {
        e.policies.internal_traffic_policy = Some("".into())
    });
    export("trafficDistribution: has 257 bytes", |e| {
        e.policies.traffic_distribution = Some("x".repeat(257).into());
    });
    export("exportedLabels[\"kubernetes.io/hostname\"]: is reserved", |e| {
        e.labels.insert("kubernetes.io/hostname".into(), "x".into());
    });
    export("exportedLabels[\"a b\"]: is no key", |e| {
        e.labels.insert("a b".into(), "x".into());
    });
    export("exportedLabels[\"a\"]: \"x y\" is no label value", |e| {
        e.labels.insert("a".into(), "x y".into());
    });
    export(
        "exportedAnnotations[\"multicluster.kubernetes.io/derived-service\"]: is reserved",
        |e| {
            e.annotations
                .insert("multicluster.kubernetes.io/derived-service".into(), "x".into());
        },
    );
    export("at most 32768", |e| {
        e.annotations.insert("big".into(), "x".repeat(32 * 1024).into());
    });
}

#[test]
fn bad_slices_are_refused() {
    slice(
        "endpoint slice \"A\" of shop/cart: name: \"A\" is not a DNS subdomain",
        |s| s.key.name = "A".into(),
    );
    slice(
        "endpoints: are 1001; at most 1000 are taken: split the slice",
        |s| {
            s.endpoints = vec![s.endpoints.to_vec().remove(0); 1_001].into();
        },
    );
    slice("ports[0].port: is 0", |s| s.ports[0].port = Some(0));
    slice("ports[0].name", |s| s.ports[0].name = "-".into());
    slice("ports[1].name: \"http\" is taken", |s| {
        s.ports.push(s.ports[0].clone())
    });
    slice("ports: are 1001", |s| {
        let port = |n| EndpointPort {
            name: format!("p{n}").into(),
            ..s.ports[0].clone()
        };
        s.ports = (0..1_001).map(port).collect();
    });
    slice(
        "endpoints[0].addresses[0]: 10.1.0.7 is IPv4 in a slice of IPv6",
        |s| s.address_type = IpFamily::V6,
    );
    endpoint("endpoints[0].addresses: are 0", |e| e.addresses.clear());
    endpoint("endpoints[0].addresses: are 101", |e| {
        e.addresses = vec![e.addresses[0]; 101]
    });
    endpoint("endpoints[0].hostname", |e| e.hostname = Some("A".into()));
    endpoint("endpoints[0].zone: has 64 bytes", |e| {
        e.zone = Some("z".repeat(64).into())
    });
    for (text, kind) in [
        ("0.0.0.0", "unspecified"),
        ("127.0.0.9", "loopback"),
        ("169.254.0.1", "link-local"),
        ("224.0.0.5", "multicast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("ff02::1", "multicast"),
        ("::ffff:10.0.0.1", "IPv4 address in IPv6 form"),
    ] {
        address(kind, text);
    }
    let key = SliceKey {
        service: frozen::service_key(),
        name: "".into(),
    };
    refused(&Fact::EndpointSliceRemoved(key), "is not a DNS subdomain");
}

#[test]
fn bad_properties_and_healths_are_refused() {
    let property = |name: &str, value: PropertyValue| {
        Fact::ClusterPropertyUpserted(Arc::new(ClusterProperty {
            name: name.into(),
            value,
        }))
    };
    refused(
        &property("A", PropertyValue::Text("x".into())),
        "cluster property \"A\": name",
    );
    refused(&property("a", PropertyValue::Text("".into())), "has 0 characters");
    refused(
        &property("a", PropertyValue::Text("x".repeat(1_025).into())),
        "has 1025 characters",
    );
    let short = PropertyValue::Oversize {
        characters: 1_024,
        digest: [0; 16],
    };
    refused(&property("a", short), "send the value itself");
    refused(
        &Fact::ClusterPropertyRemoved("_".into()),
        "cluster property \"_\"",
    );
    let health = |version: &str, checks: Vec<Box<str>>| {
        Fact::HealthReported(Arc::new(Health {
            kubernetes_version: version.into(),
            control_plane: ControlPlane::NotReady,
            failed_checks: checks,
            verdict: None,
            nodes: None,
        }))
    };
    refused(
        &health(&"v".repeat(129), vec![]),
        "kubernetesVersion: has 129 bytes",
    );
    refused(&health("", vec!["b".into(), "a".into()]), "are not sorted");
    refused(&health("", vec!["a".into(), "a".into()]), "are not sorted");
    refused(&health("", vec!["".into()]), "failedChecks[0]: is empty");
    refused(
        &health("", (100..165).map(|n| n.to_string().into()).collect()),
        "failedChecks: are 65",
    );
}

#[track_caller]
fn misshapen(fact: ProtoFact, words: &str) {
    let bytes = Bytes::from(v1::Fact { fact: Some(fact) }.encode_to_vec());
    let error = decode_member_fact(bytes.clone()).expect_err(words);
    assert_eq!(error.reason, RefusalReason::Invalid);
    assert!(
        error.message.contains(words),
        "{:?} does not say {words:?}",
        error.message
    );
    assert!(decode_recorded_fact(bytes).is_err(), "{words}");
}

/// A decision of the hub with a broken shape: the log is not read on with it, and of a member it is not read at all.
#[track_caller]
fn misshapen_decision(fact: ProtoFact, words: &str) {
    let bytes = Bytes::from(v1::Fact { fact: Some(fact) }.encode_to_vec());
    let error = decode_recorded_fact(bytes.clone()).expect_err(words);
    assert!(
        error.message.contains(words),
        "{:?} does not say {words:?}",
        error.message
    );
    let error = decode_member_fact(bytes).expect_err(words);
    assert_eq!(error.reason, RefusalReason::NotAMembersFact);
}

#[test]
fn a_broken_shape_is_refused_from_members_and_from_the_log() {
    let export = |change: fn(&mut v1::Export)| {
        let mut export = view::export(&frozen::export());
        change(&mut export);
        ProtoFact::ExportUpserted(export)
    };
    misshapen(
        export(|e| e.service = None),
        "export_upserted: service: is missing",
    );
    misshapen(
        export(|e| e.service.as_mut().unwrap().name = "x".repeat(64)),
        "service name",
    );
    misshapen(
        export(|e| e.created_at = None),
        "creationTimestamp: is missing; the sender must set it",
    );
    misshapen(
        export(|e| e.created_at.as_mut().unwrap().seconds = -1),
        "creationTimestamp: is -1 seconds",
    );
    misshapen(
        export(|e| e.created_at.as_mut().unwrap().seconds = 253_402_300_800),
        "1970 to 9999",
    );
    for nanos in [1, -1] {
        let mut precise = view::export(&frozen::export());
        precise.created_at.as_mut().unwrap().nanos = nanos;
        misshapen(
            ProtoFact::ExportUpserted(precise),
            &format!("creationTimestamp: has {nanos} nanoseconds; send whole seconds"),
        );
    }
    misshapen(export(|e| e.r#type = 0), "type: is 0");
    misshapen(export(|e| e.r#type = 99), "type: is 99");
    misshapen(export(|e| e.ports[0].protocol = 0), "ports[0].protocol: is 0");
    misshapen(
        export(|e| e.ports[0].port = 65_536),
        "ports[0].port: is 65536; use 1 to 65535",
    );
    misshapen(
        export(|e| e.session_affinity = "Cookie".into()),
        "sessionAffinity",
    );
    misshapen(export(|e| e.ip_families = vec![3]), "ipFamilies: is 3");
    misshapen(
        export(|e| e.exported_labels.reverse()),
        "exportedLabels: are not sorted",
    );
    let key = v1::EndpointSliceKey {
        service: Some(v1::ServiceKey {
            namespace: "a".into(),
            name: "b".into(),
        }),
        name: "c".into(),
    };
    for (text, words) in [
        (
            "10.1.0.07",
            "endpoints[0].addresses[1]: \"10.1.0.07\" is no address",
        ),
        ("FD00::7", "\"FD00::7\" is not its canonical text; send fd00::7"),
    ] {
        let bad_address = v1::Endpoint {
            addresses: vec!["10.1.0.6".into(), text.into()],
            ..Default::default()
        };
        let slice = v1::EndpointSlice {
            key: Some(key.clone()),
            address_type: 1,
            ports: vec![],
            endpoints: vec![bad_address],
        };
        misshapen(ProtoFact::EndpointSliceUpserted(slice), words);
    }
    let nothing = v1::ClusterProperty {
        name: "a".into(),
        content: None,
    };
    misshapen(ProtoFact::ClusterPropertyUpserted(nothing), "content: is missing");
    let oversize = v1::ClusterProperty {
        name: "a".into(),
        content: Some(v1::cluster_property::Content::Oversize(v1::OversizeValue {
            characters: 2_000,
            digest: "AB".repeat(16),
        })),
    };
    misshapen(
        ProtoFact::ClusterPropertyUpserted(oversize),
        "write 32 lower-case hexadecimal digits",
    );
    misshapen(
        ProtoFact::HealthReported(v1::Health::default()),
        "controlPlane: is 0",
    );
}

#[test]
fn a_decision_with_a_broken_fingerprint_is_not_read_back() {
    for text in ["", "ab", &"AB".repeat(32), &"g".repeat(64), &"ab".repeat(33)] {
        let joined = v1::MemberJoined {
            key_fingerprint: text.into(),
            cluster_fingerprint: "uid".into(),
            ..Default::default()
        };
        misshapen_decision(
            ProtoFact::MemberJoined(joined),
            "member_joined: keyFingerprint: is no key fingerprint; write the sha256",
        );
        let rekeyed = v1::MemberRekeyed {
            operator: "ada".into(),
            key_fingerprint: text.into(),
            cluster_fingerprint: "uid".into(),
            ..Default::default()
        };
        if text.is_empty() {
            // Empty means "unchanged" here.
            let bytes = v1::Fact {
                fact: Some(ProtoFact::MemberRekeyed(rekeyed)),
            };
            assert!(decode_recorded_fact(bytes.encode_to_vec().into()).is_ok());
        } else {
            misshapen_decision(
                ProtoFact::MemberRekeyed(rekeyed),
                "member_rekeyed: keyFingerprint",
            );
        }
    }
}

#[test]
fn unknown_foreign_and_oversized_facts_have_their_own_reasons() {
    let reason = |bytes: Vec<u8>| decode_member_fact(bytes.into()).unwrap_err().reason;
    assert_eq!(reason(vec![]), RefusalReason::UnknownKind);
    // Field 100, which no version has yet.
    assert_eq!(reason(vec![0xa2, 0x06, 0x00]), RefusalReason::UnknownKind);
    assert_eq!(
        reason(encode_fact(&Fact::MemberLost).bytes.to_vec()),
        RefusalReason::NotAMembersFact
    );
    assert_eq!(reason(vec![0xff; 9]), RefusalReason::Invalid);
    let error = decode_member_fact(vec![0; FACT_BYTES_MAX + 1].into()).unwrap_err();
    assert!(error.message.contains("at most 1048576"), "{error}");
}

#[test]
fn a_slice_of_full_size_passes() {
    let mut slice = frozen::endpoint_slice();
    slice.endpoints = vec![slice.endpoints.to_vec().remove(0); 1_000].into();
    assert!(decode_member_fact(encode_fact(&Fact::EndpointSliceUpserted(Arc::new(slice))).bytes).is_ok());
}

#[test]
fn a_bad_observation_is_an_item_to_refuse_and_its_neighbours_pass() {
    let observe = |sequence, observation| v1::Observation {
        sequence,
        observation,
        changed_by: None,
    };
    let good = encode_fact(&Fact::ExportRemoved(frozen::service_key())).bytes;
    let observations = vec![
        observe(
            1,
            Some(v1::observation::Observation::Fact(Bytes::from_static(&[0xff]))),
        ),
        observe(2, Some(v1::observation::Observation::Fact(good))),
        observe(3, Some(v1::observation::Observation::ListingCompleted(77))),
        observe(4, None),
    ];
    let message = v1::AgentMessage {
        message: Some(Message::Observations(v1::Observations { observations })),
    };
    let Ok(AgentMessage::Observations(taken)) = agent_message_from_proto(message) else {
        panic!("a bad fact must not end the session");
    };
    let reasons: Vec<_> = taken
        .iter()
        .map(|observation| match &observation.item {
            ObservedItem::Invalid(refused) => {
                assert_eq!(refused.sequence, observation.sequence);
                Some(refused.reason)
            }
            ObservedItem::Fact(_) | ObservedItem::ListingCompleted(_) => None,
        })
        .collect();
    let unknown = Some(RefusalReason::UnknownKind);
    assert_eq!(reasons, [Some(RefusalReason::Invalid), None, unknown, unknown]);
}

fn hello(change: fn(&mut v1::Hello)) -> Result<AgentMessage, InvalidMessage> {
    let mut hello = v1::Hello {
        protocol_version: 1,
        agent_version: "1".into(),
        cluster_fingerprint: "f".into(),
        instance: "i".into(),
        interest: Some(v1::Interest::default()),
        ..Default::default()
    };
    change(&mut hello);
    agent_message_from_proto(v1::AgentMessage {
        message: Some(Message::Hello(hello)),
    })
}

#[track_caller]
pub(super) fn broken(message: Result<impl std::fmt::Debug, InvalidMessage>, words: &str) {
    let error = message.expect_err(words).to_string();
    assert!(error.contains(words), "{error} does not say {words}");
}

#[test]
fn a_hello_that_breaks_the_protocol_ends_the_session_with_its_place() {
    assert!(hello(|_| {}).is_ok());
    broken(
        agent_message_from_proto(v1::AgentMessage { message: None }),
        "message: is missing",
    );
    broken(hello(|h| h.interest = None), "hello.interest: is missing");
    broken(
        hello(|h| h.cluster_fingerprint.clear()),
        "hello.clusterFingerprint: is empty",
    );
    broken(hello(|h| h.instance = "x".repeat(129)), "hello.instance");
    broken(
        hello(|h| h.exports_digest = Some(vec![0; 15])),
        "hello.exportsDigest: has 15 bytes",
    );
    broken(
        hello(|h| h.cursor = Some(v1::Cursor::default())),
        "cursor.epoch: is missing",
    );
    broken(hello(|h| h.sources_held = vec!["A".into()]), "hello.sourcesHeld");
    broken(
        hello(|h| h.sources_held = vec!["a".into(); 5_001]),
        "are 5001; at most 5000",
    );
    broken(
        hello(|h| h.interest.as_mut().unwrap().namespaces = vec!["A".into()]),
        "interest.namespaces",
    );
    broken(
        hello(|h| h.interest.as_mut().unwrap().namespaces = vec!["a".into(); 20_001]),
        "at most 20000",
    );
}

#[test]
fn a_hubs_message_that_breaks_the_protocol_ends_the_session_with_its_place() {
    use v1::hub_message::Message;
    let from = |message| hub_message_from_proto(v1::HubMessage { message });
    broken(from(None), "message: is missing");
    let cursor = Some(v1::Cursor {
        epoch: Some(v1::Epoch::default()),
        revision: 1,
        hash: vec![0; 15],
    });
    let up_to = v1::UpTo {
        interest_generation: 1,
        cursor,
    };
    broken(
        from(Some(Message::UpTo(up_to))),
        "cursor.hash: has 15 bytes; it must have 16",
    );
    broken(
        from(Some(Message::Welcome(v1::Welcome::default()))),
        "welcome.epoch: is missing",
    );
    // A state that this agent does not know might mean "gone": it must not be guessed.
    let sources = vec![v1::Source {
        cluster: "east".into(),
        state: 99,
        listed: true,
        ended: false,
        on_loss: 0,
    }];
    broken(
        from(Some(Message::SourcesChanged(v1::SourcesChanged { sources }))),
        "sources[0].state: is 99",
    );
}

#[test]
fn the_last_second_of_the_year_9999_is_still_a_creation_time() {
    let mut export = frozen::export();
    export.created_at = UnixMillis(253_402_300_799_000);
    assert!(decode_member_fact(encode_fact(&Fact::ExportUpserted(Arc::new(export))).bytes).is_ok());
}
