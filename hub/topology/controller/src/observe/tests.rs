//! Tests of the facts published about members: by annotation or uid, never by name, and only listed variables.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::model::ClusterId;

use super::*;
use crate::model::Key;

const UID: &str = "0b5e1c9c-1f43-4d6a-8f53-0a3c0d7d2a11";

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}

fn id(member: &str) -> ClusterId {
    ClusterId::new(member).expect("valid")
}

/// A Cluster of the class `fleet/edge`; `annotations` and `status` as given.
fn cluster(name: &str, annotations: Value, status: Value) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": "shop", "uid": UID, "annotations": annotations},
        "spec": {"topology": {
            "classRef": {"name": "edge", "namespace": "fleet"},
            "version": "v1.31.2",
            "variables": [
                {"name": "region", "value": "apac"},
                {"name": "sizes", "value": {"b": [1], "a": true}},
                {"name": "empty", "value": ""},
                {"name": "password", "value": "hidden"},
            ],
        }},
        "status": status,
    })
}

fn class(watched: &mut Watched, annotation: &str) -> bool {
    watched.see_class(Seen::ListingBegins);
    let published = PublishedVariables::read(annotation);
    watched.see_class(Seen::Listed(key("fleet", "edge"), published));
    watched.see_class(Seen::ListingEnds)
}

fn list(watched: &mut Watched, documents: &[Value]) {
    watched.see_cluster(Seen::ListingBegins);
    for document in documents {
        let (key, facts) = cluster_facts(document, |class| watched.published(class)).expect("a Cluster");
        watched.see_cluster(Seen::Listed(key, facts));
    }
    watched.see_cluster(Seen::ListingEnds);
}

/// Both kinds, listed to the end.
fn watched(annotation: &str, documents: &[Value]) -> Watched {
    let mut watched = Watched::default();
    class(&mut watched, annotation);
    list(&mut watched, documents);
    watched
}

/// The facts published about a member of this version, without the common prefix of their names.
fn told(watched: &Watched, member: &str, version: &str) -> BTreeMap<String, String> {
    let properties = watched
        .observation()
        .expect("all was listed")
        .properties(&id(member), version);
    properties
        .into_iter()
        .map(|(name, value)| {
            let name = name.strip_prefix("topology.tributary.dev/").expect("our domain");
            (name.to_owned(), value)
        })
        .collect()
}

fn names(told: &BTreeMap<String, String>) -> Vec<&str> {
    told.keys().map(String::as_str).collect()
}

#[test]
fn a_member_carries_what_its_cluster_says_and_its_class_lists() {
    let annotations = json!({
        "tributary.dev/member-id": "east",
        "topology.internal.cluster.x-k8s.io/upgrade-step": "v1.30.9",
    });
    let status = json!({"conditions": [
        {"type": "Available", "status": "True", "reason": "Available"},
        {"type": "TopologyReconciled", "status": "False", "reason": "ClusterUpgrading"},
    ]});
    let watched = watched(
        " region ,sizes,, empty,absent",
        &[cluster("foo", annotations, status)],
    );
    let expected = [
        ("class", "edge"),
        ("class-namespace", "fleet"),
        ("drift", "wants v1.31.2, runs v1.30.9"),
        ("reconciled", "False/ClusterUpgrading"),
        ("upgrade-step", "v1.30.9"),
        ("variables.region", "apac"),
        ("variables.sizes", r#"{"a":true,"b":[1]}"#),
        ("version", "v1.31.2"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(told(&watched, "east", "v1.30.9"), BTreeMap::from(expected));
    assert_eq!(told(&watched, "foo", "v1.30.9"), BTreeMap::new(), "its name");
    assert_eq!(
        told(&watched, UID, "v1.30.9"),
        BTreeMap::new(),
        "an annotation decides"
    );
}

#[test]
fn without_an_annotation_the_uid_is_the_id_and_one_that_is_none_names_nobody() {
    let bare = cluster("foo", json!({}), json!({}));
    let by_uid = told(&watched("", &[bare]), UID, "v1.31.2");
    assert_eq!(names(&by_uid), ["class", "class-namespace", "version"]);
    for named in ["", "No Id"] {
        let named = cluster("foo", json!({"tributary.dev/member-id": named}), json!({}));
        assert_eq!(told(&watched("", &[named]), UID, ""), BTreeMap::new());
    }
}

#[test]
fn both_spellings_are_told_alike() {
    let mut older = cluster("foo", json!({}), json!({}));
    older["apiVersion"] = "cluster.x-k8s.io/v1beta1".into();
    let topology = older.pointer_mut("/spec/topology").and_then(Value::as_object_mut);
    let topology = topology.expect("a topology");
    topology.remove("classRef");
    topology.insert("class".to_owned(), "edge".into());
    topology.insert("classNamespace".to_owned(), "fleet".into());
    let newer = watched("region", &[cluster("foo", json!({}), json!({}))]);
    let older = watched("region", &[older]);
    assert_eq!(told(&older, UID, ""), told(&newer, UID, ""));
    assert!(told(&older, UID, "").contains_key("variables.region"));
}

#[test]
fn of_two_clusters_that_name_one_member_none_counts() {
    let plain = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "plain", "namespace": "shop", "annotations": {"tributary.dev/member-id": UID}},
        "spec": {},
    });
    let by_uid = cluster("foo", json!({}), json!({}));
    let mut watched = watched("", &[by_uid, plain]);
    let observation = watched.observation().expect("listed");
    assert_eq!(observation.ambiguous().iter().collect::<Vec<_>>(), [&id(UID)]);
    assert_eq!(observation.clusters(), 2);
    assert_eq!(told(&watched, UID, ""), BTreeMap::new());
    watched.see_cluster(Seen::Gone(key("shop", "plain")));
    assert!(told(&watched, UID, "").contains_key("class"));
    assert!(watched.observation().expect("listed").ambiguous().is_empty());
}

#[test]
fn whether_it_is_reconciled_is_a_status_with_its_reason() {
    for (conditions, expected) in [
        (
            json!([{"type": "TopologyReconciled", "status": "True", "reason": "x"}]),
            Some("True"),
        ),
        (
            json!([{"type": "TopologyReconciled", "status": "Unknown"}]),
            Some("Unknown"),
        ),
        (json!([{"type": "TopologyReconciled"}]), None),
        (json!([{"type": "Ready", "status": "True"}, 7]), None),
        (json!("none"), None),
    ] {
        let read = watched(
            "",
            &[cluster("foo", json!({}), json!({"conditions": conditions}))],
        );
        let told = told(&read, UID, "");
        assert_eq!(told.get("reconciled").map(String::as_str), expected);
    }
}

#[test]
fn nothing_is_known_before_both_kinds_were_listed_to_the_end() {
    let document = cluster("foo", json!({}), json!({}));
    let (key, facts) = cluster_facts(&document, |_| None).expect("a Cluster");
    let mut fresh = Watched::default();
    assert_eq!(fresh.observation(), None);
    list(&mut fresh, &[]);
    assert_eq!(fresh.observation(), None);
    assert!(!fresh.see_class(Seen::ListingEnds), "none had begun");
    assert_eq!(fresh.observation(), None);
    class(&mut fresh, "");
    assert_eq!(fresh.observation().map(|seen| seen.clusters()), Some(0));
    fresh.see_cluster(Seen::Listed(key.clone(), facts.clone()));
    assert_eq!(fresh.observation().map(|seen| seen.clusters()), Some(0));
    fresh.see_cluster(Seen::Changed(key, facts));
    // A listing that is cut off leaves what was known in force.
    fresh.see_cluster(Seen::ListingBegins);
    assert_eq!(fresh.observation().map(|seen| seen.clusters()), Some(1));
    fresh.see_cluster(Seen::ListingEnds);
    assert_eq!(fresh.observation().map(|seen| seen.clusters()), Some(0));
}

#[test]
fn a_list_that_grows_asks_for_the_clusters_and_one_that_shrinks_counts_at_once() {
    let document = cluster("foo", json!({}), json!({}));
    let edge = || key("fleet", "edge");
    let change = |list: &str| Seen::Changed(edge(), PublishedVariables::read(list));
    let mut watched = watched("region", std::slice::from_ref(&document));
    assert!(!class(&mut watched, "region"));
    assert!(!watched.see_class(change("region")));
    assert!(watched.see_class(change("region,password")));
    let before = told(&watched, UID, "");
    assert!(!before.contains_key("variables.password"), "it was not read");
    list(&mut watched, std::slice::from_ref(&document));
    assert_eq!(told(&watched, UID, "")["variables.password"], "hidden");
    assert!(!watched.see_class(change("region")));
    assert_eq!(told(&watched, UID, ""), before);
    assert!(!watched.see_class(change("")));
    assert!(!told(&watched, UID, "").contains_key("variables.region"));
    assert!(watched.see_class(change("region")));
    assert!(!watched.see_class(Seen::Gone(edge())));
    assert!(!told(&watched, UID, "").contains_key("variables.region"));
    assert!(class(&mut watched, "region"));
}

#[test]
fn a_class_lists_so_many_variables_and_no_more() {
    let many: Vec<String> = (0..PUBLISHED_VARIABLES_MAX + 1)
        .map(|number| format!("v{number:03}"))
        .collect();
    let mut document = cluster("foo", json!({}), json!({}));
    let variables = many.iter().map(|name| json!({"name": name, "value": 1}));
    document["spec"]["topology"]["variables"] = variables.collect();
    let told = told(&watched(&many.join(","), &[document]), UID, "");
    let variables = names(&told)
        .into_iter()
        .filter(|name| name.starts_with("variables."))
        .count();
    assert_eq!(variables, PUBLISHED_VARIABLES_MAX);
    assert!(!told.contains_key(&format!("variables.v{PUBLISHED_VARIABLES_MAX:03}")));
}

#[test]
fn a_variable_whose_property_would_have_too_long_a_name_is_left_out() {
    let long = "x".repeat(240);
    let mut document = cluster("foo", json!({}), json!({}));
    document["spec"]["topology"]["variables"] =
        json!([{"name": &long, "value": 1}, {"name": "y", "value": 2}]);
    let told = told(&watched(&format!("{long},y"), &[document]), UID, "");
    assert_eq!(
        names(&told),
        ["class", "class-namespace", "variables.y", "version"]
    );
}

#[test]
fn beyond_the_bound_nothing_comes_and_what_is_known_changes() {
    let document = cluster("foo", json!({}), json!({}));
    let (_, facts) = cluster_facts(&document, |_| None).expect("a Cluster");
    let nobody = ClusterFacts {
        member: None,
        stamped: None,
        life: std::sync::Arc::default(),
    };
    let mut watched = watched("", &[]);
    for number in 0..CLUSTERS_MAX {
        assert!(!watched.is_full());
        watched.see_cluster(Seen::Changed(key("many", &number.to_string()), nobody.clone()));
    }
    assert!(watched.is_full());
    watched.see_cluster(Seen::Changed(key("shop", "foo"), facts.clone()));
    assert_eq!(told(&watched, UID, ""), BTreeMap::new());
    watched.see_cluster(Seen::Changed(key("many", "7"), facts));
    assert!(told(&watched, UID, "").contains_key("class"));
    assert_eq!(
        watched.observation().map(|seen| seen.clusters()),
        Some(CLUSTERS_MAX)
    );
}

#[test]
fn what_is_no_cluster_is_none() {
    for other in [
        json!(null),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine"}),
    ] {
        assert_eq!(cluster_facts(&other, |_| None), None);
    }
}
