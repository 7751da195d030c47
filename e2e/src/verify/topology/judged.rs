//! Owns: whether what the manager did is what was planned, and how often each action was seen.
//! Never: asks a cluster.

use std::collections::BTreeMap;

use anyhow::ensure;
use hub::topology::desired::change::{Action, Plan};
use serde_json::Value;

use super::Export;

/// Checks the objects against the plan: the same names where they stay, others where a template was replaced.
pub(super) fn judge(planned: &Plan, after: &Plan) -> anyhow::Result<()> {
    let named = after.changes.iter();
    let names: BTreeMap<&str, &str> = named
        .map(|change| (change.place.as_str(), change.name.as_str()))
        .collect();
    for change in &planned.changes {
        let now = names.get(change.place.as_str()).copied();
        let right = match change.action {
            Action::Keep | Action::Update => now == Some(change.name.as_str()),
            // One that is made later has no name yet; templates of what waits are not in a plan.
            Action::Wait | Action::Create => now.is_some(),
            Action::Rotate => now.is_none_or(|now| Some(now) != change.before.as_deref()),
            Action::Delete => now.is_none(),
        };
        // Behind what waits, a plan has no templates.
        let hidden = now.is_none() && waits(after, &change.place);
        ensure!(
            right || hidden,
            "{} of {} was planned, and it is {} where it was {}; {}",
            change.action.name(),
            change.place,
            now.unwrap_or("nowhere"),
            change.before.as_deref().unwrap_or(&change.name),
            shown(planned)
        );
    }
    Ok(())
}

fn waits(plan: &Plan, place: &str) -> bool {
    let mut waiting = plan.changes.iter().filter(|change| change.action == Action::Wait);
    waiting.any(|change| place.starts_with(change.place.as_str()))
}

/// Checks that planned objects to keep were not touched, and those to change were.
pub(super) fn kept(planned: &Plan, before: &Export, after: &Export) -> anyhow::Result<()> {
    for change in &planned.changes {
        let key = (
            planned.namespace.clone(),
            change.kind.clone(),
            change.name.clone(),
        );
        let object = format!("{} {}", change.kind, change.name);
        let generation = |export: &Export| export.get(&key).map(|one| one["metadata"]["generation"].clone());
        let (was, is) = (generation(before), generation(after));
        let of_spec = change.fields.iter().any(|one| one.field.starts_with("spec"));
        match change.action {
            Action::Keep => {
                let spec = |export: &Export| export.get(&key).map(|one| one["spec"].to_string());
                ensure!(
                    was == is,
                    "{object} was to be kept, and was changed from {} to {}",
                    spec(before).unwrap_or_default(),
                    spec(after).unwrap_or_default()
                );
            }
            Action::Update if of_spec && change.kind != "Cluster" => {
                ensure!(was != is, "{object} was to be changed, and was kept");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Changes of a plan.
pub(super) fn shown(plan: &Plan) -> String {
    let changes = plan.changes.iter().filter(|change| change.action != Action::Keep);
    let said: Vec<String> = changes
        .map(|change| {
            let value = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
            let fields = change.fields.iter();
            let fields: Vec<String> = fields
                .map(|one| format!("{}: {} -> {}", one.field, value(&one.old), value(&one.new)))
                .collect();
            format!(
                "{} {} [{}]",
                change.action.name(),
                change.place,
                fields.join("; ")
            )
        })
        .collect();
    said.join(", ")
}

/// Number of times that each action was planned and seen.
#[derive(Debug, Default)]
pub(super) struct Guarded(BTreeMap<&'static str, usize>);

impl Guarded {
    pub(super) fn add(&mut self, plan: &Plan) {
        for change in &plan.changes {
            *self.0.entry(change.action.name()).or_default() += 1;
        }
    }

    pub(super) fn shown(&self) -> String {
        let all: Vec<String> = self
            .0
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        format!("planned and seen: {}", all.join(", "))
    }

    /// A comparison that never saw one of them says too little.
    pub(super) fn complete(&self) -> anyhow::Result<()> {
        for action in ["create", "update", "rotate", "delete", "wait", "keep"] {
            ensure!(
                self.0.contains_key(action),
                "no {action} was ever planned: play more edits"
            );
        }
        Ok(())
    }
}
