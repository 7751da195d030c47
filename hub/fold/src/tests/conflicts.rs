//! All nine conflicts: raised on every export, in the fixed order, in words that a person understands.

use model::{ConflictReason, Export, IpFamily, ServicePolicies, ServiceType, SessionAffinity};

use crate::{Command, FIRST_FOLD_VERSION};

use super::given::{Folded, cluster, export, exported, given_members, metadata, port, service};

fn two(oldest: Export, younger: Export) -> Folded {
    given_members(&["east", "west"])
        .and(
            "east",
            exported(Export {
                uid: "e".into(),
                created_at: export(1).created_at,
                ..oldest
            }),
        )
        .and(
            "west",
            exported(Export {
                uid: "w".into(),
                created_at: export(2).created_at,
                ..younger
            }),
        )
}

fn with_policies(change: impl FnOnce(&mut ServicePolicies)) -> Export {
    let mut export = export(0);
    change(&mut export.policies);
    export
}

/// The younger export's difference, the reason, and the words.
fn table() -> Vec<(Export, ConflictReason, &'static str)> {
    let plain = || export(0);
    vec![
        (
            Export {
                ports: vec![port("http", 8080)],
                ..plain()
            },
            ConflictReason::Port,
            r#"Conflicting ports. Using "http 80/TCP" from oldest service export in "east". 1/2 clusters disagree. "west" has "http 8080/TCP". No traffic reaches "west" for "http 8080/TCP"."#,
        ),
        (
            Export {
                service_type: ServiceType::Headless,
                ..plain()
            },
            ConflictReason::Type,
            r#"Conflicting type. Using "ClusterSetIP" from oldest service export in "east". 1/2 clusters disagree. "west" has "Headless"."#,
        ),
        (
            with_policies(|policies| policies.session_affinity = SessionAffinity::ClientIp),
            ConflictReason::SessionAffinity,
            r#"Conflicting session affinity. Using "None" from oldest service export in "east". 1/2 clusters disagree. "west" has "ClientIP"."#,
        ),
        (
            with_policies(|policies| policies.session_affinity_timeout_seconds = Some(60)),
            ConflictReason::SessionAffinityConfig,
            r#"Conflicting session affinity configuration. Using "unset" from oldest service export in "east". 1/2 clusters disagree. "west" has "clientIP.timeoutSeconds=60"."#,
        ),
        (
            Export {
                labels: metadata(&[("team", "web"), ("tier", "1")]),
                ..plain()
            },
            ConflictReason::Labels,
            r#"Conflicting exported labels. Using "none" from oldest service export in "east". 1/2 clusters disagree. "west" has "team=web, tier=1"."#,
        ),
        (
            Export {
                annotations: metadata(&[("note", "x")]),
                ..plain()
            },
            ConflictReason::Annotations,
            r#"Conflicting exported annotations. Using "none" from oldest service export in "east". 1/2 clusters disagree. "west" has "note=x"."#,
        ),
        (
            with_policies(|policies| policies.internal_traffic_policy = Some("Local".into())),
            ConflictReason::InternalTrafficPolicy,
            r#"Conflicting internal traffic policy. Using "Cluster" from oldest service export in "east". 1/2 clusters disagree. "west" has "Local"."#,
        ),
        (
            with_policies(|policies| policies.traffic_distribution = Some("PreferClose".into())),
            ConflictReason::TrafficDistribution,
            r#"Conflicting traffic distribution. Using "unset" from oldest service export in "east". 1/2 clusters disagree. "west" has "PreferClose"."#,
        ),
        (
            Export {
                ip_families: vec![IpFamily::V6, IpFamily::V4],
                ..plain()
            },
            ConflictReason::IpFamily,
            r#"Conflicting IP families. Using "IPv4" from oldest service export in "east". 1/2 clusters disagree. "west" has "IPv6, IPv4"."#,
        ),
    ]
}

#[test]
fn each_property_has_its_conflict_on_every_export() {
    let table = table();
    assert_eq!(
        table.iter().map(|(_, reason, _)| *reason).collect::<Vec<_>>(),
        ConflictReason::ALL
    );
    for (younger, reason, message) in table {
        let folded = two(export(0), younger);
        for name in ["east", "west"] {
            let status = folded
                .state
                .export_status(&cluster(name), &service("shop/cart"))
                .unwrap();
            assert_eq!(
                status.conflicts.iter().map(|c| c.reason).collect::<Vec<_>>(),
                [reason],
                "{name}"
            );
            assert_eq!(folded.conflicts(name), [message], "{name}");
        }
        let winner = folded.import().unwrap();
        assert_eq!(winner.service_type, ServiceType::ClusterSetIp);
        assert_eq!(winner.policies, export(0).policies);
        assert_eq!(winner.ip_families, export(0).ip_families);
        assert!(winner.labels.is_empty() && winner.annotations.is_empty());
    }
}

#[test]
fn what_means_the_same_is_no_conflict() {
    let same = [
        with_policies(|policies| policies.internal_traffic_policy = None),
        Export {
            ports: vec![port("dns", 53), port("http", 80)],
            ..export(0)
        },
        Export {
            ip_families: vec![IpFamily::V6, IpFamily::V4],
            ..export(0)
        },
    ];
    let oldest = [
        export(0),
        Export {
            ports: vec![port("http", 80), port("dns", 53)],
            ..export(0)
        },
        Export {
            ip_families: vec![IpFamily::V4, IpFamily::V6],
            ..export(0)
        },
    ];
    for (oldest, younger) in oldest.into_iter().zip(same) {
        let folded = two(oldest, younger.clone());
        assert_eq!(folded.conflicts("east"), [] as [String; 0], "{younger:?}");
    }
}

#[test]
fn a_superset_and_another_app_protocol_are_port_conflicts() {
    let folded = two(
        export(0),
        Export {
            ports: vec![port("http", 80), port("metrics", 9090)],
            ..export(0)
        },
    );
    assert_eq!(
        folded.conflicts("east"),
        [
            r#"Conflicting ports. Using "http 80/TCP" from oldest service export in "east" and "metrics 9090/TCP" from younger ones. 1/2 clusters disagree. "west" has "http 80/TCP, metrics 9090/TCP"."#
        ]
    );
    let mut h2c = port("http", 80);
    h2c.app_protocol = Some("kubernetes.io/h2c".into());
    let folded = two(
        export(0),
        Export {
            ports: vec![h2c],
            ..export(0)
        },
    );
    assert_eq!(
        folded.conflicts("west"),
        [
            r#"Conflicting ports. Using "http 80/TCP" from oldest service export in "east". 1/2 clusters disagree. "west" has "http 80/TCP (kubernetes.io/h2c)"."#
        ]
    );
    let eligible: Vec<_> = folded
        .import()
        .unwrap()
        .eligible_ports(&cluster("west"))
        .collect();
    assert_eq!(eligible.len(), 1);
}

#[test]
fn five_losers_are_named_and_the_others_counted() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut folded = given_members(&names);
    for (seconds, name) in (1..).zip(names) {
        let service_type = if seconds > 1 {
            ServiceType::Headless
        } else {
            ServiceType::ClusterSetIp
        };
        folded = folded.and(
            name,
            exported(Export {
                service_type,
                ..export(seconds)
            }),
        );
    }
    let message = &folded.conflicts("h")[0];
    assert!(message.contains("7/8 clusters disagree."), "{message}");
    assert!(
        message.ends_with(r#""f" has "Headless", and 2 more."#),
        "{message}"
    );
}

#[test]
fn long_values_are_cut_where_the_reader_sees_it_and_nine_messages_fit_a_condition() {
    let names: Vec<String> = (0..8).map(|n| format!("{}{n}", "c".repeat(62))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut folded = given_members(&names);
    for (seconds, name) in (1..).zip(&names) {
        let long = format!("{seconds}{}", "v".repeat(10_000));
        let mut worst = Export {
            labels: metadata(&[("k", &long)]),
            annotations: metadata(&[("k", &long)]),
            ports: (0..200)
                .map(|n| port(&format!("port-{seconds}-{n}"), 1 + n))
                .collect(),
            ip_families: vec![if seconds == 1 { IpFamily::V4 } else { IpFamily::V6 }],
            service_type: if seconds == 1 {
                ServiceType::Headless
            } else {
                ServiceType::ClusterSetIp
            },
            ..export(seconds)
        };
        worst.policies = ServicePolicies {
            session_affinity: if seconds == 1 {
                SessionAffinity::None
            } else {
                SessionAffinity::ClientIp
            },
            session_affinity_timeout_seconds: Some(seconds as i32),
            internal_traffic_policy: Some(long.clone().into()),
            traffic_distribution: Some(long.into()),
        };
        folded = folded.and(name, exported(worst));
    }
    let messages = folded.conflicts(names[0]);
    assert_eq!(messages.len(), 9);
    let joined = messages.join(" ");
    assert!(joined.chars().count() < 32_768, "{}", joined.chars().count());
    assert!(joined.contains("… (10003 characters)"), "{joined}");
}

/// Annotations are any text, and conditions stand in other clusters.
#[test]
fn what_cannot_be_seen_is_escaped_in_messages_of_other_clusters() {
    let annotated = |value| Export {
        annotations: metadata(&[("note", value)]),
        ..export(0)
    };
    let folded = two(annotated("a\u{1b}[31mred\nb"), annotated("\u{202e}(c)"));
    let messages = folded.conflicts("east");
    assert_eq!(
        messages,
        [
            r#"Conflicting exported annotations. Using "note=a\u{1b}[31mred\nb" from oldest service export in "east". 1/2 clusters disagree. "west" has "note=\u{202e}(c)"."#
        ]
    );
}

#[test]
fn equal_timestamps_are_decided_by_the_cluster_id() {
    let headless = |uid: &str| Export {
        service_type: ServiceType::Headless,
        uid: uid.into(),
        ..export(1)
    };
    let folded = given_members(&["west", "east"])
        .and("west", exported(headless("w")))
        .and("east", exported(export(1)));
    assert_eq!(folded.import().unwrap().service_type, ServiceType::ClusterSetIp);
    assert!(folded.conflicts("west")[0].contains(r#"oldest service export in "east""#));
}

#[test]
fn a_conflict_ends_with_its_cause_and_the_next_oldest_wins() {
    let headless = Export {
        service_type: ServiceType::Headless,
        ..export(2)
    };
    let folded = given_members(&["east", "west"])
        .and("east", exported(export(1)))
        .and("west", exported(headless))
        .and("east", model::Fact::ExportRemoved(service("shop/cart")));
    assert_eq!(folded.import().unwrap().service_type, ServiceType::Headless);
    assert_eq!(folded.conflicts("west"), [] as [String; 0]);
    let status = folded
        .state
        .export_status(&cluster("west"), &service("shop/cart"))
        .unwrap();
    assert_eq!((status.exporters, &*status.uid), (1, "uid-2"));
    assert!(
        folded
            .state
            .export_status(&cluster("east"), &service("shop/cart"))
            .is_none()
    );
}

/// Clusters are upgraded one after the other, and the newer Kubernetes writes the newer name.
#[test]
fn two_names_of_one_traffic_distribution_are_no_conflict() {
    let named = |seconds, name: &str| {
        let mut export = export(seconds);
        export.policies.traffic_distribution = Some(name.into());
        exported(export)
    };
    let by_present_rules = given_members(&["east", "west"]).after(Command::AdoptFoldVersion {
        from: FIRST_FOLD_VERSION,
    });
    let folded = by_present_rules
        .and("east", named(1, "PreferClose"))
        .and("west", named(2, "PreferSameZone"));
    assert_eq!(folded.conflicts("west"), [] as [String; 0]);
    let folded = folded.and("west", named(2, "PreferSameNode"));
    assert_eq!(folded.conflicts("west").len(), 1);
}
