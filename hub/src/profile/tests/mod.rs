//! Tests of the profile writer: what it decides, and what it asks of an API server.

mod client;
mod inventory;
mod requests;

use std::sync::Arc;

use serde_json::{Value, json};
use shared::{
    api::cluster_profile::ClusterProfile,
    model::{ClusterId, ClusterProperty, PropertyValue, UnixMillis},
};

use super::object;
use crate::fold::{ConditionStatus, ConditionType, Profile, ProfileCondition};

fn cluster(id: &str) -> ClusterId {
    ClusterId::new(id).expect("valid")
}

fn condition(
    condition_type: ConditionType,
    status: ConditionStatus,
    reason: &'static str,
) -> ProfileCondition {
    ProfileCondition {
        condition_type,
        status,
        reason,
        message: "A message.".into(),
        last_transition: UnixMillis(1_700_000_000_123),
    }
}

/// A healthy member with one property.
fn profile(id: &str) -> Profile {
    Profile {
        cluster: cluster(id),
        kubernetes_version: "v1.33.1".into(),
        conditions: vec![
            condition(
                ConditionType::ControlPlaneHealthy,
                ConditionStatus::True,
                "Healthy",
            ),
            condition(ConditionType::Joined, ConditionStatus::True, "ClusterRegistered"),
        ],
        properties: [property("location", "apac")].into_iter().collect(),
        api_servers: None,
    }
}

fn lost(id: &str) -> Profile {
    let mut lost = profile(id);
    lost.conditions[0] = condition(
        ConditionType::ControlPlaneHealthy,
        ConditionStatus::Unknown,
        "AgentLost",
    );
    lost
}

fn property(name: &str, value: &str) -> Arc<ClusterProperty> {
    Arc::new(ClusterProperty {
        name: name.into(),
        value: PropertyValue::Text(value.into()),
    })
}

const MANAGER: &str = "tributary-default";

fn heading(cluster: &str) -> object::Heading {
    object::Heading {
        manager: MANAGER.to_owned(),
        display_name: Some(cluster.to_owned()),
    }
}

/// The object as an API server shows it after we applied a profile, with `more` merged into it.
fn written(profile: &Profile, more: Value) -> ClusterProfile {
    let mut object = object::metadata_body(profile, &heading(profile.cluster.as_str()), None);
    object["status"] = object::status_body(profile, &[], None)["status"].clone();
    let properties: serde_json::Map<String, Value> = profile
        .properties
        .iter()
        .map(|property| (format!("k:{}", json!({ "name": &*property.name })), json!({})))
        .collect();
    object["metadata"]["uid"] = "uid-1".into();
    object["metadata"]["resourceVersion"] = "10".into();
    object["metadata"]["managedFields"] = json!([
        { "manager": "tributary-hub", "operation": "Apply", "fieldsV1": { "f:spec": {} } },
        { "manager": "tributary-hub", "operation": "Apply", "subresource": "status",
          "fieldsV1": { "f:status": { "f:properties": properties } } },
    ]);
    merge(&mut object, more);
    serde_json::from_value(object).expect("a ClusterProfile")
}

/// A JSON merge patch (RFC 7386).
fn merge(into: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in fields {
        match value {
            Value::Null => drop(into.as_object_mut().map(|object| object.remove(&key))),
            value => merge(&mut into[&key], value),
        }
    }
}
