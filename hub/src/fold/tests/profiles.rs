//! Profiles: conditions, versions, properties, and times that move only on flips.

use std::sync::Arc;

use shared::model::{ClusterProperty, ControlPlane, Fact, Health, PropertyValue, UnixMillis};

use super::given::{Folded, cluster, given_members};
use crate::fold::{Command, ConditionStatus, ConditionType, Connectivity, DerivedKey};

fn health(control_plane: ControlPlane, failed_checks: &[&str]) -> Fact {
    Fact::HealthReported(Arc::new(Health {
        kubernetes_version: "v1.36.3".into(),
        control_plane,
        failed_checks: failed_checks.iter().map(|check| (*check).into()).collect(),
        verdict: None,
        nodes: None,
    }))
}

fn heard(to: Connectivity) -> Command {
    Command::Connectivity {
        cluster: cluster("east"),
        to,
    }
}

fn healthy(folded: &Folded) -> (ConditionStatus, &'static str, UnixMillis) {
    let condition = &folded.profile("east").unwrap().conditions[0];
    assert_eq!(condition.condition_type, ConditionType::ControlPlaneHealthy);
    (condition.status, condition.reason, condition.last_transition)
}

#[test]
fn health_becomes_a_condition_and_silence_is_unknown_never_false() {
    let joined = given_members(&["east"]);
    assert_eq!(
        healthy(&joined),
        (ConditionStatus::Unknown, "HealthNotReported", UnixMillis(1_000))
    );
    let ready = joined.and("east", health(ControlPlane::Ready, &[]));
    assert_eq!(
        healthy(&ready),
        (ConditionStatus::True, "Healthy", UnixMillis(2_000))
    );
    let sick = ready.and("east", health(ControlPlane::NotReady, &["etcd", "ping"]));
    assert_eq!(
        healthy(&sick),
        (ConditionStatus::False, "APIServerNotReady", UnixMillis(3_000))
    );
    let message = sick.profile("east").unwrap().conditions[0].message.clone();
    assert!(message.ends_with("failed checks: etcd, ping."), "{message}");

    let suspect = sick.after(heard(Connectivity::Suspect));
    assert_eq!(
        healthy(&suspect).0,
        ConditionStatus::False,
        "suspicion says nothing of health"
    );
    let lost = suspect.after(heard(Connectivity::Lost));
    assert_eq!(
        healthy(&lost),
        (ConditionStatus::Unknown, "AgentLost", UnixMillis(5_000))
    );
    let back = lost.after(heard(Connectivity::Live));
    assert_eq!(
        healthy(&back),
        (ConditionStatus::False, "APIServerNotReady", UnixMillis(6_000))
    );
    let unreachable = back.and("east", health(ControlPlane::Unreachable, &[]));
    assert_eq!(
        healthy(&unreachable),
        (
            ConditionStatus::Unknown,
            "APIServerUnreachable",
            UnixMillis(7_000)
        )
    );
}

#[test]
fn a_transition_time_moves_only_when_the_status_flips() {
    let one = given_members(&["east"]).and("east", health(ControlPlane::NotReady, &["etcd"]));
    let other = one.clone().and("east", health(ControlPlane::NotReady, &["ping"]));
    assert_eq!(healthy(&one), healthy(&other));
    assert_ne!(one.profile("east"), other.profile("east"));
    let joined = &other.profile("east").unwrap().conditions[1];
    assert_eq!(
        (joined.status, joined.reason),
        (ConditionStatus::True, "ClusterRegistered")
    );
    assert_eq!(joined.last_transition, UnixMillis(1_000));
}

#[test]
fn properties_are_shown_as_they_are_and_oversize_ones_are_named() {
    let property = |name: &str, value| {
        Fact::ClusterPropertyUpserted(Arc::new(ClusterProperty {
            name: name.into(),
            value,
        }))
    };
    let oversize = PropertyValue::Oversize {
        characters: 100_000,
        digest: [7; 16],
    };
    let folded = given_members(&["east"])
        .and("east", property("big.example.com", oversize))
        .and(
            "east",
            property("cluster.clusterset.k8s.io", PropertyValue::Text("east".into())),
        )
        .and("east", health(ControlPlane::Ready, &[]));
    let profile = folded.profile("east").unwrap();
    let names: Vec<_> = profile
        .properties
        .iter()
        .map(|property| &*property.name)
        .collect();
    assert_eq!(names, ["big.example.com", "cluster.clusterset.k8s.io"]);
    assert_eq!(&*profile.kubernetes_version, "v1.36.3");
    let message = &profile.conditions[1].message;
    assert!(
        message.contains("big.example.com (100000 characters)"),
        "{message}"
    );

    let short = property("big.example.com", PropertyValue::Text("short".into()));
    let folded = folded.and("east", short);
    let profile = folded.profile("east").unwrap();
    assert!(!profile.conditions[1].message.contains("left out"));
    let before = folded.state.revision();
    let folded = folded.and("east", Fact::ClusterPropertyRemoved("big.example.com".into()));
    let profile = folded.profile("east").unwrap();
    assert_eq!(profile.properties.len(), 1);
    let changed = folded.state.derived(&DerivedKey::Profile(cluster("east")));
    assert!(changed.is_some_and(|changed| changed.revision > before));
}
