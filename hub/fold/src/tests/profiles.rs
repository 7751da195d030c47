//! Profiles: conditions, versions, properties, and times that move only on flips.

use std::sync::Arc;

use model::{
    ApiServer, ApiServerState, ClusterProperty, ControlPlane, ControlPlaneReason as Reason,
    ControlPlaneVerdict, Fact, Health, NodesHealth, PropertyValue, UnixMillis,
};

use super::given::{Folded, cluster, given_members};
use crate::{Command, ConditionStatus, ConditionType, Connectivity, DerivedKey};

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

fn judged(reason: Reason, checks: &[&str], nodes: NodesHealth) -> Fact {
    let server = |host: &str, state, restarts| ApiServer {
        host: host.into(),
        state,
        restarts,
        restarts_inferred: restarts > 0,
        shared: restarts > 0,
    };
    Fact::HealthReported(Arc::new(Health {
        kubernetes_version: "v1.36.3".into(),
        control_plane: ControlPlane::Ready,
        failed_checks: checks.iter().map(|check| (*check).into()).collect(),
        verdict: Some(ControlPlaneVerdict {
            reason,
            api_servers_fresh: 2,
            api_servers_expected: 3,
            api_servers: vec![
                server("m1", ApiServerState::Fresh, 4),
                server("m2", ApiServerState::Dead, 0),
            ],
        }),
        nodes: Some(nodes),
    }))
}

fn counted(total: u32, not_ready: u32, named: &[&str]) -> NodesHealth {
    NodesHealth::Counted {
        total,
        not_ready,
        named: named.iter().map(|name| (*name).into()).collect(),
    }
}

/// Status and reason of a condition, and its message.
fn said(folded: &Folded, condition_type: ConditionType) -> (ConditionStatus, &'static str, String) {
    let profile = folded.profile("east").unwrap();
    let mut conditions = profile.conditions.iter();
    let condition = conditions
        .find(|one| one.condition_type == condition_type)
        .unwrap();
    (condition.status, condition.reason, condition.message.to_string())
}

#[test]
fn every_reason_of_an_agent_stands_in_the_condition_with_its_status_and_what_is_wrong() {
    let joined = given_members(&["east"]);
    for reason in Reason::ALL {
        let status = match reason.is_healthy() {
            Some(true) => ConditionStatus::True,
            Some(false) => ConditionStatus::False,
            None => ConditionStatus::Unknown,
        };
        let folded = joined
            .clone()
            .and("east", judged(reason, &["etcd", "ping"], counted(1, 0, &[])));
        let (said_status, said_reason, message) = said(&folded, ConditionType::ControlPlaneHealthy);
        assert_eq!((said_status, said_reason), (status, reason.as_str()));
        let part = match reason {
            Reason::Healthy | Reason::IdentityLeasesStale | Reason::ApiServerUnreachable => {
                "2 of 3 API servers renew their identity Lease."
            }
            Reason::ApiServersDegraded => "2 of 3 API servers renew their identity Lease; not: m2 (dead).",
            Reason::ApiServerFlapping => "m1 (4 times, inferred).",
            Reason::SharedIdentity => "one host name: m1.",
            Reason::ApiServerNotReady | Reason::EtcdUnhealthy => "failed checks: etcd, ping.",
            _ => ".",
        };
        assert!(message.ends_with(part), "{message}");
    }
}

#[test]
fn nodes_that_are_not_ready_are_counted_and_named() {
    let joined = given_members(&["east"]);
    let of = |nodes| {
        said(
            &joined.clone().and("east", judged(Reason::Healthy, &[], nodes)),
            ConditionType::AllNodesHealthy,
        )
    };
    let want = |status, reason, message: &str| (status, reason, message.to_owned());
    assert_eq!(
        of(counted(3, 0, &[])),
        want(ConditionStatus::True, "NodesReady", "3 of 3 nodes are ready.")
    );
    assert_eq!(
        of(counted(0, 0, &[])),
        want(ConditionStatus::True, "NoNodes", "The cluster has no nodes.")
    );
    assert_eq!(
        of(counted(9, 7, &["a", "b"])),
        want(
            ConditionStatus::False,
            "NodesNotReady",
            "2 of 9 nodes are ready; not: a, b, and 5 more."
        )
    );
    let unreadable = of(NodesHealth::NotReadable);
    assert_eq!(
        (unreadable.0, unreadable.1),
        (ConditionStatus::Unknown, "NodesNotReadable")
    );
}

/// An agent of a release that counted none says nothing of nodes; one that is lost says nothing at all.
#[test]
fn nodes_are_unknown_when_the_member_is_lost_and_absent_when_its_agent_counts_none() {
    let old = given_members(&["east"]).and("east", health(ControlPlane::Ready, &[]));
    assert_eq!(old.profile("east").unwrap().conditions.len(), 2);
    assert_eq!(old.profile("east").unwrap().api_servers, None);
    let counts = old.and("east", judged(Reason::EtcdUnhealthy, &[], counted(3, 1, &["a"])));
    assert_eq!(counts.profile("east").unwrap().api_servers, Some((2, 3)));
    let lost = counts
        .after(heard(Connectivity::Suspect))
        .after(heard(Connectivity::Lost));
    for condition_type in [ConditionType::ControlPlaneHealthy, ConditionType::AllNodesHealthy] {
        let (status, reason, _) = said(&lost, condition_type);
        assert_eq!((status, reason), (ConditionStatus::Unknown, "AgentLost"));
    }
}
