//! Tests of the steps from wanted and existing objects: writes, urgency, deletion, and above all nothing.

use std::sync::Arc;

use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use shared::{
    api::cluster_profile::ClusterProfile,
    model::{ClusterProperty, PropertyValue},
};

use super::{MANAGER, cluster, heading, lost, profile, property, written};
use crate::{
    fold::{Profile, Properties},
    profile::{
        AccessProviders, MILLIS_PER_WRITE, Urgency,
        inventory::{ACTIONS_MAX, Action, Due, Inventory, Outcome},
        object::{Difference, Heading, difference, metadata_body, status},
        wanted::{Wanted, with_properties},
    },
};

fn wanted(profiles: impl IntoIterator<Item = Profile>) -> Wanted {
    profiles
        .into_iter()
        .map(|profile| (profile.cluster.clone(), Some(Arc::new(profile))))
        .collect()
}

/// An inventory in which these objects are there.
fn listed(objects: impl IntoIterator<Item = ClusterProfile>) -> Inventory {
    let mut inventory = Inventory::new(Default::default(), MANAGER.to_owned());
    inventory.observe(Event::Init);
    objects
        .into_iter()
        .for_each(|object| inventory.observe(Event::InitApply(object)));
    inventory.observe(Event::InitDone);
    inventory
}

fn differs(object: &ClusterProfile, wanted: &Profile) -> Option<(bool, Option<Urgency>)> {
    match difference(object, wanted, &[]) {
        Difference::Write { metadata, status } => Some((metadata, status)),
        Difference::None => None,
        Difference::NotOurs => panic!("ours"),
    }
}

fn edited(more: Value) -> ClusterProfile {
    written(&profile("east"), more)
}

#[test]
fn nothing_is_written_when_nothing_changed() {
    let mut inventory = listed([edited(json!({}))]);
    inventory.want(wanted([profile("east")]));
    assert_eq!(inventory.due(0), Due::default());
    // A restarted hub that derives another time for the same status writes nothing either.
    let mut later = profile("east");
    later.conditions[0].last_transition.0 += 5_000;
    inventory.want(wanted([later]));
    assert_eq!(inventory.due(0), Due::default());
}

#[test]
fn nothing_is_written_before_it_is_known_what_is_there() {
    let mut inventory = Inventory::new(Default::default(), MANAGER.to_owned());
    inventory.want(wanted([profile("east")]));
    inventory.observe(Event::Init);
    inventory.observe(Event::InitApply(edited(json!({}))));
    assert_eq!(inventory.due(0), Due::default());
    inventory.observe(Event::InitDone);
    assert_eq!(inventory.due(0), Due::default(), "it is as wanted");
}

#[test]
fn a_listing_that_is_cut_off_leaves_the_last_one_in_force() {
    let mut inventory = listed([edited(json!({}))]);
    inventory.want(wanted([profile("east")]));
    inventory.observe(Event::Init);
    inventory.observe(Event::Init);
    assert_eq!(inventory.due(0), Due::default());
    inventory.observe(Event::InitDone);
    assert_eq!(inventory.due(0).actions.len(), 1, "now it is known to be missing");
}

#[test]
fn a_new_member_gets_its_profile_with_every_label_once() {
    let mut inventory = listed([]);
    inventory.want(wanted([profile("east")]));
    let due = inventory.due(0);
    let create = Action::Apply {
        profile: Arc::new(profile("east")),
        access: Arc::default(),
        uid: None,
        heading: Some(heading("east")),
        status: true,
    };
    assert_eq!(due.actions, [create]);
    assert_eq!(inventory.due(0), Due::default(), "it is under way");
    inventory.done(&cluster("east"), Outcome::Written(Box::new(edited(json!({})))), 5);
    assert_eq!(inventory.due(5), Due::default());
    let labels = edited(json!({})).metadata.labels.expect("labels");
    let labels: Vec<_> = labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        labels,
        [
            ("app.kubernetes.io/managed-by", "tributary-hub"),
            ("multicluster.x-k8s.io/inventory-member-id", "east"),
            ("x-k8s.io/cluster-manager", "tributary-default"),
        ]
    );
}

#[test]
fn only_a_status_that_flips_is_urgent() {
    let object = edited(json!({}));
    assert_eq!(
        differs(&object, &lost("east")),
        Some((false, Some(Urgency::Flip)))
    );
    let mut version = profile("east");
    version.kubernetes_version = "v1.34.0".into();
    assert_eq!(differs(&object, &version), Some((false, Some(Urgency::Ordinary))));
    let mut message = profile("east");
    message.conditions[1].message = "Another.".into();
    assert_eq!(differs(&object, &message), Some((false, Some(Urgency::Ordinary))));
    let fresh = edited(json!({ "status": null }));
    assert_eq!(
        differs(&fresh, &profile("east")),
        Some((false, Some(Urgency::Flip)))
    );
}

#[test]
fn what_others_changed_in_our_fields_is_restored_and_their_own_fields_stay() {
    let label = edited(json!({ "metadata": { "labels": { "x-k8s.io/cluster-manager": "other" } } }));
    assert_eq!(differs(&label, &profile("east")), Some((true, None)));
    let added = edited(json!({
        "metadata": { "labels": { "team": "blue" }, "annotations": { "note": "theirs" } },
        "status": { "properties": [{ "name": "location", "value": "apac" }, { "name": "theirs", "value": "1" }] },
    }));
    assert_eq!(differs(&added, &profile("east")), None);
}

#[test]
fn a_property_that_ended_is_removed_when_we_wrote_it() {
    let mut without = profile("east");
    without.properties = [property("zone", "a")].into_iter().collect();
    assert_eq!(
        differs(&edited(json!({})), &without),
        Some((false, Some(Urgency::Ordinary)))
    );
    without.properties = Properties::default();
    assert_eq!(
        differs(&edited(json!({})), &without),
        Some((false, Some(Urgency::Ordinary)))
    );
}

#[test]
fn an_oversize_property_is_left_out_and_no_time_is_invented() {
    let mut oversize = profile("east");
    let value = PropertyValue::Oversize {
        characters: 5_000,
        digest: [0; 16],
    };
    let long = Arc::new(ClusterProperty {
        name: "long".into(),
        value,
    });
    oversize.properties.change("long", Some(&long));
    let status = status(&oversize, &[]);
    assert_eq!(status.properties.len(), 1);
    assert_eq!(status.properties[0].last_observed_time, None);
    let time = serde_json::to_value(&status.conditions[0].last_transition_time).expect("a time");
    assert_eq!(time, json!("2023-11-14T22:13:20Z"));
}

#[test]
fn ways_to_reach_a_member_are_written_once_and_what_others_add_is_theirs() {
    let file = |server: &str| {
        let cluster = json!({"server": server});
        let provider = json!({"name": "plain", "cluster": cluster});
        let groups = json!({"clusters": [{"ids": ["east"], "accessProviders": [provider]}]});
        AccessProviders::parse(&groups.to_string()).expect("a document")
    };
    let access = file("https://east.example.org").of(&cluster("east"));
    let with = |status: &Profile| difference(&edited(json!({})), status, &access);
    assert_eq!(
        with(&profile("east")),
        Difference::Write {
            metadata: false,
            status: Some(Urgency::Ordinary)
        }
    );
    let shown = |providers: Value| edited(json!({"status": {"accessProviders": providers}}));
    let there = json!([
        {"name": "plain", "cluster": {"server": "https://east.example.org", "tls-server-name": "theirs"}},
        {"name": "theirs", "cluster": {"server": "https://other.example.org"}},
    ]);
    let object = shown(there);
    assert_eq!(difference(&object, &profile("east"), &access), Difference::None);
    let moved = file("https://moved.example.org").of(&cluster("east"));
    assert_ne!(difference(&object, &profile("east"), &moved), Difference::None);
    // One that the file named before, and does not any more.
    let mut ours = object;
    let fields = json!({"f:status": {"f:accessProviders": {"k:{\"name\":\"plain\"}": {}}}});
    ours.metadata
        .managed_fields
        .iter_mut()
        .flatten()
        .for_each(|entry| {
            if entry.subresource.is_some() {
                entry.fields_v1 = serde_json::from_value(fields.clone()).ok();
            }
        });
    assert_ne!(difference(&ours, &profile("east"), &[]), Difference::None);
}

#[test]
fn a_strangers_object_is_reported_and_neither_written_nor_deleted() {
    let unlabelled =
        edited(json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "someone" } } }));
    let unmanaged = edited(json!({ "metadata": { "managedFields": [{ "manager": "kubectl" }] } }));
    for stranger in [unlabelled, unmanaged] {
        let mut inventory = listed([stranger]);
        inventory.want(wanted([lost("east")]));
        assert_eq!(inventory.due(0), Due::default());
        assert!(inventory.not_ours().contains(&cluster("east")));
        inventory.want(Wanted::from([(cluster("east"), None)]));
        assert_eq!(inventory.due(0), Due::default());
        assert!(inventory.not_ours().is_empty());
    }
}

#[test]
fn the_profile_of_a_former_member_is_deleted_and_of_an_unknown_cluster_is_not() {
    let mut inventory = listed([edited(json!({})), written(&profile("unknown"), json!({}))]);
    inventory.want(Wanted::from([(cluster("east"), None)]));
    let delete = Action::Delete {
        cluster: cluster("east"),
        uid: "uid-1".to_owned(),
    };
    assert_eq!(inventory.due(0).actions, [delete]);
    inventory.done(&cluster("east"), Outcome::Deleted, 0);
    assert_eq!(inventory.due(0), Due::default());
}

#[test]
fn ordinary_changes_keep_to_the_budget_and_flips_do_not_wait() {
    let mut inventory = listed([edited(json!({}))]);
    let mut object = edited(json!({}));
    let mut writes = 0;
    for round in 0..15 {
        let mut changed = profile("east");
        changed.kubernetes_version = format!("v1.{round}").into();
        inventory.want(wanted([changed.clone()]));
        let due = inventory.due(1_000);
        if due.actions.is_empty() {
            assert_eq!((due.waiting, due.wake_at), (1, Some(1_000 + MILLIS_PER_WRITE)));
            continue;
        }
        writes += 1;
        let version = (11 + round).to_string();
        object = written(&changed, json!({ "metadata": { "resourceVersion": version } }));
        inventory.done(
            &cluster("east"),
            Outcome::Written(Box::new(object.clone())),
            1_000,
        );
    }
    assert_eq!(writes, 10);
    inventory.want(wanted([lost("east")]));
    assert_eq!(inventory.due(1_000).actions.len(), 1, "a flip goes at once");
    assert!(object.status.is_some());
}

#[test]
fn a_failed_write_is_tried_again_later_and_not_before() {
    let mut inventory = listed([]);
    inventory.want(wanted([profile("east")]));
    assert_eq!(inventory.due(0).actions.len(), 1);
    inventory.done(&cluster("east"), Outcome::Failed { random: 0 }, 0);
    let due = inventory.due(0);
    assert_eq!((due.actions.len(), due.waiting, due.wake_at), (0, 1, Some(500)));
    assert_eq!(inventory.due(500).actions.len(), 1);
}

#[test]
fn a_watch_event_older_than_the_answer_to_a_write_changes_nothing() {
    let mut inventory = listed([written(&lost("east"), json!({}))]);
    inventory.want(wanted([profile("east")]));
    assert_eq!(inventory.due(0).actions.len(), 1);
    let newer = written(
        &profile("east"),
        json!({ "metadata": { "resourceVersion": "12" } }),
    );
    inventory.done(&cluster("east"), Outcome::Written(Box::new(newer)), 0);
    let between = written(&lost("east"), json!({ "metadata": { "resourceVersion": "11" } }));
    inventory.observe(Event::Apply(between));
    assert_eq!(inventory.due(0), Due::default());
    inventory.observe(Event::Delete(written(
        &profile("east"),
        json!({ "metadata": { "uid": "uid-1" } }),
    )));
    assert_eq!(
        inventory.due(0).actions.len(),
        1,
        "what was deleted is made again"
    );
}

#[test]
fn many_members_are_handed_out_in_bounded_parts() {
    let mut inventory = listed([]);
    let members = (0..ACTIONS_MAX + 10).map(|number| profile(&format!("c{number}")));
    inventory.want(wanted(members));
    let first = inventory.due(0);
    assert_eq!(
        (first.actions.len(), first.waiting, first.wake_at),
        (ACTIONS_MAX, 10, Some(0))
    );
    assert_eq!(inventory.due(0).actions.len(), 10);
}

/// Properties of the member east by the last part of their names.
fn stamped(told: &[(&str, &str)]) -> Profile {
    let mut stamped = Arc::new(profile("east"));
    let told = told
        .iter()
        .map(|(name, value)| (format!("topology.tributary.dev/{name}"), (*value).to_owned()));
    with_properties(&mut stamped, told);
    Arc::unwrap_or_clone(stamped)
}

#[test]
fn what_is_said_of_topologies_stays_until_it_is_known_and_goes_when_nobody_asks() {
    let before = stamped(&[("class", "edge"), ("reconciled", "True")]);
    let mut inventory = listed([written(&before, json!({}))]);
    inventory.topologies_unknown(true);
    inventory.want(wanted([profile("east")]));
    assert_eq!(inventory.due(0), Due::default());
    // Another change is written with the earlier content.
    let mut newer = profile("east");
    newer.kubernetes_version = "v1.34.0".into();
    inventory.want(wanted([newer.clone()]));
    let due = inventory.due(0);
    let [
        Action::Apply {
            profile: written_now, ..
        },
    ] = &due.actions[..]
    else {
        panic!("{due:?}")
    };
    assert_eq!(written_now.properties, before.properties);
    assert_eq!(written_now.kubernetes_version, newer.kubernetes_version);
    let object = written(written_now, json!({ "metadata": { "resourceVersion": "11" } }));
    inventory.done(&cluster("east"), Outcome::Written(Box::new(object)), 0);
    assert_eq!(inventory.due(0), Due::default());
    inventory.topologies_unknown(false);
    let due = inventory.due(0);
    let [
        Action::Apply {
            profile: written_now, ..
        },
    ] = &due.actions[..]
    else {
        panic!("{due:?}")
    };
    assert_eq!(**written_now, newer);
}

#[test]
fn what_somebody_else_says_of_a_topology_is_not_kept_as_ours() {
    let object = edited(json!({ "status": { "properties": [
        { "name": "location", "value": "apac" }, { "name": "topology.tributary.dev/class", "value": "theirs" },
    ] } }));
    let mut inventory = listed([object]);
    inventory.topologies_unknown(true);
    inventory.want(wanted([lost("east")]));
    let due = inventory.due(0);
    let [Action::Apply { profile, .. }] = &due.actions[..] else {
        panic!("{due:?}")
    };
    assert_eq!(**profile, lost("east"));
}

#[test]
fn a_flip_of_reconciled_is_urgent_and_its_reason_is_not() {
    let there = |told: &[(&str, &str)]| written(&stamped(told), json!({}));
    let urgency = |before: &[(&str, &str)], now: &[(&str, &str)]| {
        differs(&there(before), &stamped(now)).and_then(|(_, status)| status)
    };
    let upgrading = [("reconciled", "False/ClusterUpgrading")];
    let failed = [("reconciled", "False/ReconcileFailed")];
    assert_eq!(urgency(&[("reconciled", "True")], &failed), Some(Urgency::Flip));
    assert_eq!(urgency(&upgrading, &failed), Some(Urgency::Ordinary));
    assert_eq!(urgency(&upgrading, &[]), Some(Urgency::Ordinary));
    assert_eq!(urgency(&[], &failed), Some(Urgency::Ordinary));
    assert_eq!(
        urgency(&[("version", "v1")], &[("version", "v2")]),
        Some(Urgency::Ordinary)
    );
    assert_eq!(urgency(&failed, &failed), None);
}

#[test]
fn api_servers_are_a_property_unless_the_member_has_one_of_that_name() {
    let shown = |profile: &Profile| {
        let properties = status(profile, &[]).properties.into_iter();
        properties
            .filter(|shown| shown.name == "apiservers.tributary.dev")
            .map(|shown| shown.value)
            .collect::<Vec<_>>()
    };
    let mut counted = profile("east");
    assert!(shown(&counted).is_empty());
    counted.api_servers = Some((2, 3));
    assert_eq!(shown(&counted), ["2/3"]);
    counted.properties = [property("apiservers.tributary.dev", "mine")]
        .into_iter()
        .collect();
    assert_eq!(shown(&counted), ["mine"]);
}

/// The display name is theirs: it is stated once, and a user who sets another one keeps it.
#[test]
fn a_name_that_somebody_sets_stays() {
    let renamed = edited(
        json!({ "spec": { "displayName": "The shop in Lyon" }, "metadata": { "managedFields": [
        { "manager": "tributary-hub", "operation": "Apply", "fieldsV1": { "f:spec": { "f:clusterManager": {} } } },
        { "manager": "kubectl-edit", "operation": "Update", "fieldsV1": { "f:spec": { "f:displayName": {} } } },
    ] } }),
    );
    assert_eq!(
        differs(&renamed, &profile("east")).map(|(metadata, _)| metadata),
        None
    );
    let body = metadata_body(&profile("east"), &Heading::of(&renamed), None);
    assert_eq!(body["spec"].get("displayName"), None, "it is not ours to state");
    let ours = edited(json!({ "metadata": { "managedFields": [
        { "manager": "tributary-hub", "operation": "Apply", "fieldsV1": { "f:spec": { "f:displayName": {} } } },
    ] } }));
    let body = metadata_body(&profile("east"), &Heading::of(&ours), None);
    assert_eq!(
        body["spec"]["displayName"], "east",
        "leaving it out would take it away"
    );
}

/// The definition lets nobody change it, so that an object of an earlier release keeps the one that it has.
#[test]
fn a_profile_keeps_its_cluster_manager() {
    let earlier = edited(json!({ "spec": { "clusterManager": { "name": "tributary" } },
        "metadata": { "labels": { "x-k8s.io/cluster-manager": "tributary" } } }));
    assert_eq!(differs(&earlier, &profile("east")), None);
    assert_eq!(Heading::of(&earlier).manager, "tributary");
}
