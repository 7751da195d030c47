//! Owns: the requests of a plan, in order, from earlier writes and existing objects.
//! Never: makes one.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::api::names::CLUSTER_API_GROUP;

use super::{
    event::{ClusterName, Event, Intent, ObjectName},
    ledger::Kept,
    seen::orphans,
};
use crate::desired::{
    change::{Action, Change, Plan},
    objects::{Objects, text},
    table::reasons,
};

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The object's place in the Cluster.
    pub place: String,
    /// The action.
    pub intent: Intent,
    /// The object.
    pub object: ObjectName,
    /// In which version of its API.
    pub api_version: String,
    /// The template that it takes the place of.
    pub before: Option<String>,
    /// Why.
    pub reasons: Vec<String>,
    /// The content written; none for a deletion.
    pub content: Option<Value>,
    /// The identity of what is there and known to be the Cluster's.
    pub uid: Option<String>,
}

impl Step {
    /// The event to record before it.
    pub fn intended(&self, cluster: &ClusterName, uid: &str) -> Event {
        Event::Intended {
            cluster: cluster.clone(),
            uid: uid.to_owned(),
            object: self.object.clone(),
            place: self.place.clone(),
            action: self.intent,
            before: self.before.clone(),
            reasons: self.reasons.clone(),
            content: self.content.clone(),
        }
    }
}

/// The requests of a plan.
pub fn steps(plan: &Plan, kept: Option<&Kept>, objects: &Objects<'_>) -> Vec<Step> {
    let changes = plan.changes.iter();
    changes
        .filter_map(|change| step(plan, change, kept, objects))
        .collect()
}

fn step(plan: &Plan, change: &Change, kept: Option<&Kept>, objects: &Objects<'_>) -> Option<Step> {
    let Some(content) = &change.object else {
        // A template goes once nothing refers to it.
        let goes = change.action == Action::Delete && !change.kind.ends_with("Template");
        let there = goes.then(|| objects.get(CLUSTER_API_GROUP, &change.kind, &plan.namespace, &change.name));
        return there.flatten().map(|there| delete(&change.place, there));
    };
    let object = ObjectName::of(content);
    let there = objects.get(&object.group, &object.kind, &plan.namespace, &object.name);
    let is_known = kept.is_some_and(|kept| kept.objects.get(&object) == Some(content));
    if change.action == Action::Wait || (change.action == Action::Keep && is_known) {
        return None;
    }
    let makes = matches!(change.action, Action::Create | Action::Rotate);
    let intent = match Intent::of(change.action) {
        Intent::Create if there.is_some() => Intent::Claim,
        intent => intent,
    };
    Some(Step {
        place: change.place.clone(),
        intent,
        api_version: text(content, "/apiVersion").unwrap_or_default().to_owned(),
        before: change.before.clone(),
        reasons: reasons(change),
        content: Some(content.clone()),
        // An object unknown to the plan may be anybody's.
        uid: there.filter(|_| !makes).and_then(uid),
        object,
    })
}

fn uid(object: &Value) -> Option<String> {
    text(object, "/metadata/uid").map(str::to_owned)
}

fn delete(place: &str, there: &Value) -> Step {
    Step {
        place: place.to_owned(),
        intent: Intent::Delete,
        object: ObjectName::of(there),
        api_version: text(there, "/apiVersion").unwrap_or_default().to_owned(),
        before: None,
        reasons: Vec::new(),
        content: None,
        uid: uid(there),
    }
}

/// The cleanup after a plan that has nothing left to write: templates without references.
pub fn sweep(plan: &Plan, cluster: &ClusterName, cluster_uid: &str, objects: &Objects<'_>) -> Vec<Step> {
    let wanted: BTreeSet<ObjectName> = plan.objects().map(ObjectName::of).collect();
    let left = orphans(objects, cluster, cluster_uid, &wanted);
    left.into_iter()
        .map(|object| Step {
            reasons: vec!["nothing refers to it".to_owned()],
            ..delete("unreferred", object)
        })
        .collect()
}

/// Objects that were written, and are neither there nor planned.
pub fn lost(plan: &Plan, kept: &Kept, objects: &Objects<'_>) -> Vec<ObjectName> {
    let wanted: BTreeSet<ObjectName> = plan.objects().map(ObjectName::of).collect();
    let names = kept.objects.keys();
    names
        .filter(|name| {
            let there = objects.get(&name.group, &name.kind, &plan.namespace, &name.name);
            there.is_none() && !wanted.contains(name)
        })
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests;
