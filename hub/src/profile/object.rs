//! A profile as a Kubernetes object: what is written, whose an object is, and how it differs from what is wanted.
//! Pure; it knows the fields of managedFields, and it never looks at what others own.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time},
    jiff::Timestamp,
};
use kube::ResourceExt;
use serde_json::{Value, json};
use shared::{
    api::{
        cluster_profile::{AccessProvider, ClusterProfile, ClusterProfileStatus, ClusterVersion, Property},
        conditions::{Condition, MESSAGE_CHARS_MAX},
        names::{
            HUB_MANAGER, LABEL_CLUSTER_MANAGER, LABEL_INVENTORY_MEMBER_ID, LABEL_MANAGED_BY,
            MULTICLUSTER_GROUP, PROPERTY_API_SERVERS, PROPERTY_TOPOLOGY_PREFIX, PROPERTY_TOPOLOGY_RECONCILED,
        },
    },
    model::{ClusterProperty, PropertyValue, UnixMillis},
};

use super::budget::Urgency;
use crate::fold::{Profile, ProfileCondition};

/// The difference between an existing object and the wanted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// Not at all, as far as it is ours.
    None,
    /// It has to be written.
    Write {
        /// Labels differ.
        metadata: bool,
        /// The status differs; how urgent that is.
        status: Option<Urgency>,
    },
    /// Somebody else made it.
    NotOurs,
}

/// The written parts of an object besides its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    /// The cluster manager: the definition lets an object keep the first one only.
    pub(super) manager: String,
    /// The name for people, while it is ours to state: the first one that a profile has. A user who sets another one
    /// owns it.
    pub(super) display_name: Option<String>,
}

impl Heading {
    /// The fields of an object that is created.
    pub(super) fn new(profile: &Profile, manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            display_name: Some(profile.cluster.to_string()),
        }
    }

    /// The fields of an existing one: its manager and its name stay what they are.
    pub(super) fn of(object: &ClusterProfile) -> Self {
        let spec = &object.spec;
        Self {
            manager: spec.cluster_manager.name.clone(),
            display_name: spec.display_name.clone().filter(|_| owns_display_name(object)),
        }
    }
}

/// Returns true if nobody took the name for people over.
fn owns_display_name(object: &ClusterProfile) -> bool {
    let mut ours = object.managed_fields().iter().filter(|entry| is_our_entry(entry));
    ours.any(|entry| {
        let spec = entry.fields_v1.as_ref().and_then(|fields| fields.0.get("f:spec"));
        spec.is_some_and(|spec| spec.get("f:displayName").is_some())
    })
}

/// The labels that our objects have.
pub(super) fn labels(profile: &Profile, manager: &str) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        (LABEL_MANAGED_BY, HUB_MANAGER.to_owned()),
        (LABEL_CLUSTER_MANAGER, manager.to_owned()),
        (LABEL_INVENTORY_MEMBER_ID, profile.cluster.to_string()),
    ])
}

/// The body that applies labels and spec.
pub(super) fn metadata_body(profile: &Profile, heading: &Heading, uid: Option<&str>) -> Value {
    let mut body = empty_body(profile.cluster.as_str(), uid);
    body["metadata"]["labels"] = json!(labels(profile, &heading.manager));
    body["spec"] = json!({ "clusterManager": { "name": heading.manager } });
    if let Some(name) = &heading.display_name {
        body["spec"]["displayName"] = json!(name);
    }
    body
}

/// The body that applies the status.
pub(super) fn status_body(profile: &Profile, access: &[AccessProvider], uid: Option<&str>) -> Value {
    let mut body = empty_body(profile.cluster.as_str(), uid);
    body["status"] = json!(status(profile, access));
    body
}

/// The body that applies nothing: whatever we own goes.
pub(super) fn empty_body(name: &str, uid: Option<&str>) -> Value {
    let mut metadata = json!({ "name": name });
    if let Some(uid) = uid {
        metadata["uid"] = uid.into();
    }
    json!({ "apiVersion": format!("{MULTICLUSTER_GROUP}/v1alpha1"), "kind": "ClusterProfile", "metadata": metadata })
}

/// The status that says what the profile says, and by which ways the cluster is reached.
pub(super) fn status(profile: &Profile, access: &[AccessProvider]) -> ClusterProfileStatus {
    let version = &profile.kubernetes_version;
    ClusterProfileStatus {
        conditions: profile.conditions.iter().map(condition).collect(),
        version: (!version.is_empty()).then(|| ClusterVersion {
            kubernetes: Some(version.to_string()),
        }),
        properties: profile
            .properties
            .iter()
            .filter_map(|listed| property(listed))
            .chain(api_servers(profile))
            .collect(),
        access_providers: access.to_vec(),
        ..ClusterProfileStatus::default()
    }
}

fn condition(shown: &ProfileCondition) -> Condition {
    Condition {
        type_: shown.condition_type.as_str().to_owned(),
        status: shown.status.as_str().to_owned(),
        reason: shown.reason.to_owned(),
        message: shown.message.chars().take(MESSAGE_CHARS_MAX).collect(),
        last_transition_time: time(shown.last_transition),
        observed_generation: None,
    }
}

/// Whole seconds, as the API server itself writes them.
fn time(at: UnixMillis) -> Time {
    let seconds = i64::try_from(at.0 / 1_000).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// Number of the member's API servers that are well, unless the member has a property of that name.
fn api_servers(profile: &Profile) -> Option<Property> {
    let (fresh, expected) = profile.api_servers?;
    let mut named = profile.properties.iter();
    if named.any(|property| &*property.name == PROPERTY_API_SERVERS) {
        return None;
    }
    Some(Property {
        name: PROPERTY_API_SERVERS.to_owned(),
        value: format!("{fresh}/{expected}"),
        last_observed_time: None,
    })
}

/// An oversize value is left out, never cut; the condition Joined names it. When the value was last seen in the
/// cluster is not known to the hub.
fn property(listed: &ClusterProperty) -> Option<Property> {
    match &listed.value {
        PropertyValue::Text(value) => Some(Property {
            name: listed.name.to_string(),
            value: value.to_string(),
            last_observed_time: None,
        }),
        PropertyValue::Oversize { .. } => None,
    }
}

/// Ours: our label, and our name among the field managers.
pub(super) fn is_ours(object: &ClusterProfile) -> bool {
    let labelled = object
        .labels()
        .get(LABEL_MANAGED_BY)
        .is_some_and(|manager| manager == HUB_MANAGER);
    labelled && object.managed_fields().iter().any(is_our_entry)
}

/// Returns true if somebody else has written fields of it.
pub(super) fn has_other_managers(object: &ClusterProfile) -> bool {
    object.managed_fields().iter().any(|entry| !is_our_entry(entry))
}

fn is_our_entry(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(HUB_MANAGER)
}

/// Compares an object with what is wanted. The time of a condition is no content.
pub(super) fn difference(object: &ClusterProfile, wanted: &Profile, access: &[AccessProvider]) -> Difference {
    if !is_ours(object) {
        return Difference::NotOurs;
    }
    let metadata = labels(wanted, &object.spec.cluster_manager.name)
        .iter()
        .any(|(label, value)| object.labels().get(*label) != Some(value));
    let status = status_difference(object, &status(wanted, access));
    if metadata || status.is_some() {
        Difference::Write { metadata, status }
    } else {
        Difference::None
    }
}

fn status_difference(object: &ClusterProfile, wanted: &ClusterProfileStatus) -> Option<Urgency> {
    let nothing = ClusterProfileStatus::default();
    let there = object.status.as_ref().unwrap_or(&nothing);
    let (mut flips, mut differs) = (false, there.version != wanted.version);
    for condition in &wanted.conditions {
        let known = there
            .conditions
            .iter()
            .find(|known| known.type_ == condition.type_);
        flips |= known.is_none_or(|known| known.status != condition.status);
        differs |=
            known.is_none_or(|known| known.reason != condition.reason || known.message != condition.message);
    }
    let (known, named) = (by_name(&there.properties), by_name(&wanted.properties));
    differs |= named.iter().any(|(name, value)| known.get(name) != Some(value));
    flips |= reconciled(&known)
        .zip(reconciled(&named))
        .is_some_and(|(one, other)| one != other);
    differs |= owned(object, "f:properties", "name")
        .iter()
        .any(|name| !named.contains_key(&**name));
    differs |= !wanted
        .access_providers
        .iter()
        .all(|wanted| is_there(wanted, &there.access_providers));
    differs |= owned(object, "f:accessProviders", "name")
        .iter()
        .any(|name| wanted.access_providers.iter().all(|wanted| wanted.name != *name));
    differs |= owned(object, "f:conditions", "type")
        .iter()
        .any(|name| wanted.conditions.iter().all(|condition| condition.type_ != *name));
    match (flips, differs) {
        (true, _) => Some(Urgency::Flip),
        (false, true) => Some(Urgency::Ordinary),
        (false, false) => None,
    }
}

/// Values by the names of their properties.
fn by_name(properties: &[Property]) -> BTreeMap<&str, &str> {
    let named = properties.iter();
    named
        .map(|property| (&*property.name, &*property.value))
        .collect()
}

/// The status of the condition that a topology is reconciled, as the properties show it: a flip of it is one.
fn reconciled<'a>(properties: &BTreeMap<&str, &'a str>) -> Option<&'a str> {
    let shown = properties.get(PROPERTY_TOPOLOGY_RECONCILED)?;
    shown.split('/').next()
}

/// The properties of the member's topology in an object, as we wrote them.
pub(super) fn told_of_topology(object: &ClusterProfile) -> Vec<(String, String)> {
    let ours = owned(object, "f:properties", "name");
    let properties = object.status.iter().flat_map(|status| &status.properties);
    properties
        .filter(|property| property.name.starts_with(PROPERTY_TOPOLOGY_PREFIX))
        .filter(|property| ours.contains(&property.name))
        .map(|property| (property.name.clone(), property.value.clone()))
        .collect()
}

/// A provider of this name says all that it should; what somebody else added to it is theirs.
fn is_there(wanted: &AccessProvider, there: &[AccessProvider]) -> bool {
    let mut named = there.iter().filter(|known| known.name == wanted.name);
    named.any(|known| covers(&json!(known), &json!(wanted)))
}

fn covers(known: &Value, wanted: &Value) -> bool {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| known.get(name).is_some_and(|known| covers(known, value))),
        (known, wanted) => known == wanted,
    }
}

/// The items of a list in the status that we own, by the value of their key.
fn owned(object: &ClusterProfile, list: &str, key: &str) -> BTreeSet<String> {
    let ours = object.managed_fields().iter().filter(|entry| is_our_entry(entry));
    let items = ours.filter_map(|entry| {
        entry
            .fields_v1
            .as_ref()?
            .0
            .get("f:status")?
            .get(list)?
            .as_object()
    });
    let keys = items.flat_map(|items| items.keys()).filter_map(|item| {
        let item: Value = serde_json::from_str(item.strip_prefix("k:")?).ok()?;
        Some(item.get(key)?.as_str()?.to_owned())
    });
    keys.collect()
}
