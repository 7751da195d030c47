//! Owns: a hub's answers to people about topologies: the explanation of a Cluster's, as the API server has it now.
//! Never: shows the value of a variable that its class does not publish, or anything that a rule says of a value.

use std::collections::BTreeSet;

use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use serde_json::Value;
use shared::api::names::ANNOTATION_PUBLISHED_VARIABLES;
use tokio::task::spawn_blocking;

use super::{
    desired::{
        change::{Change, Plan},
        offline::{Planned, plans_of_live},
    },
    live,
    model::class_of,
    observe::PublishedVariables,
};
use crate::explains::{ExplainsTopologies, NotExplained, ObjectExplained, TopologyExplained};

/// Longest value of a variable that is shown, characters.
const VALUE_SHOWN_MAX: usize = 200;

/// Answers from the API server of a client.
pub struct TopologyAnswers {
    client: Client,
}

impl TopologyAnswers {
    /// From this one.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn explained(&self, namespace: String, name: String) -> Result<TopologyExplained, NotExplained> {
        let unread = |error: anyhow::Error| NotExplained::Unread(format!("{error:#}"));
        let cluster = live::cluster(&self.client, &namespace, &name)
            .await
            .map_err(unread)?;
        let cluster = cluster.ok_or(NotExplained::NoTopology)?;
        // A class may be in another namespace, and its templates are there, too.
        let (within, _) = class_of(&cluster["spec"]["topology"], &namespace);
        let namespaces = BTreeSet::from([&*namespace, &*within]);
        let namespaces: Vec<&str> = namespaces.into_iter().collect();
        let objects = live::read(self.client.clone(), &namespaces)
            .await
            .map_err(unread)?;
        let explained = spawn_blocking(move || {
            let planned = plans_of_live(&objects);
            of(&objects.objects, &planned, &namespace, &name)
        });
        let explained = explained.await.map_err(|error| unread(error.into()))?;
        explained.ok_or(NotExplained::NoTopology)
    }
}

impl ExplainsTopologies for TopologyAnswers {
    fn explain(
        &self,
        namespace: String,
        name: String,
    ) -> BoxFuture<'_, Result<TopologyExplained, NotExplained>> {
        self.explained(namespace, name).boxed()
    }
}

/// Explains one Cluster; none, if it has no topology.
fn of(objects: &[Value], planned: &Planned, namespace: &str, name: &str) -> Option<TopologyExplained> {
    let is = |object: &&Value, kind: &str, namespace: &str, name: &str| {
        let metadata = &object["metadata"];
        object["kind"] == kind && metadata["namespace"] == namespace && metadata["name"] == name
    };
    let cluster = objects.iter().find(|one| is(one, "Cluster", namespace, name))?;
    let topology = Some(&cluster["spec"]["topology"]).filter(|topology| topology.is_object())?;
    let (within, class) = class_of(topology, namespace);
    let found = objects
        .iter()
        .find(|one| is(one, "ClusterClass", &within, &class));
    let published = found
        .and_then(|class| class["metadata"]["annotations"][ANNOTATION_PUBLISHED_VARIABLES].as_str())
        .map(PublishedVariables::read)
        .unwrap_or_default();
    let mut explained = TopologyExplained {
        class: format!("{within}/{class}"),
        version: topology["version"].as_str().unwrap_or_default().to_owned(),
        ..TopologyExplained::default()
    };
    let mut plans = planned.plans.iter();
    if let Some(plan) = plans.find(|plan| plan.namespace == namespace && plan.name == name) {
        explained.upgrade.clone_from(&plan.upgrade);
        explained.variables = variables(plan, &published);
        explained.objects = plan.changes.iter().map(|change| object(plan, change)).collect();
        return Some(explained);
    }
    let concerned = [
        format!("Cluster {namespace}/{name}"),
        format!("ClusterClass {within}/{class}"),
    ];
    let findings = planned.findings.iter();
    // A message may repeat a value.
    let findings = findings
        .filter(|finding| concerned.contains(&finding.object))
        .map(|finding| format!("{}: {}: {}", finding.object, finding.field, finding.rule));
    explained.findings = findings.collect();
    if explained.findings.is_empty() {
        explained.findings = vec![format!("{}: it cannot be planned", concerned[0])];
    }
    Some(explained)
}

fn variables(plan: &Plan, published: &PublishedVariables) -> Vec<(String, Option<String>)> {
    let variables = plan.sources.variables.iter();
    let shown = |value: &Value| value.to_string().chars().take(VALUE_SHOWN_MAX).collect();
    variables
        .map(|(name, value)| (name.clone(), published.contains(name).then(|| shown(value))))
        .collect()
}

fn object(plan: &Plan, change: &Change) -> ObjectExplained {
    let steps = plan.sources.patches.get(&change.place);
    let steps = steps.into_iter().flatten();
    ObjectExplained {
        place: change.place.clone(),
        kind: change.kind.clone(),
        name: change.name.clone(),
        action: change.action.name(),
        patches: steps
            .map(|step| (step.name.clone(), step.definition, step.changed))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    const ESTATE: &str = include_str!("../../../../e2e/fixtures/cluster-api/estate.yaml");

    fn estate(change: impl Fn(&str) -> String) -> Vec<Value> {
        let text = change(ESTATE);
        let documents = serde_norway::Deserializer::from_str(&text);
        documents.map(|one| Value::deserialize(one).unwrap()).collect()
    }

    fn explained(objects: &[Value], name: &str) -> Option<TopologyExplained> {
        of(objects, &plans_of_live(&objects.to_vec().into()), "default", name)
    }

    #[test]
    fn a_topology_is_its_class_its_variables_and_its_patches() {
        let eu = explained(&estate(str::to_owned), "eu").unwrap();
        assert_eq!((&*eu.class, &*eu.version), ("default/edge", "v1.34.1"));
        assert_eq!(eu.variables, [("region".into(), Some("\"eu-central\"".into()))]);
        let plane = eu.objects.iter().find(|one| one.kind == "HostTemplate").unwrap();
        assert_eq!(plane.patches, [("image".to_owned(), 0, true)], "{eu:?}");
        assert!(eu.findings.is_empty() && eu.objects.len() > 5);
        assert_eq!(explained(&estate(str::to_owned), "asia"), None);
    }

    #[test]
    fn what_the_class_does_not_publish_has_no_value_and_neither_has_a_finding() {
        let quiet = |text: &str| text.replace("published-variables: region", "published-variables: other");
        let eu = explained(&estate(quiet), "eu").unwrap();
        assert_eq!(eu.variables, [("region".into(), None)]);
        let wrong = |text: &str| text.replace("value: eu-central", "value: {secret: hunter2}");
        let eu = explained(&estate(wrong), "eu").unwrap();
        assert!(!eu.findings.is_empty() && eu.objects.is_empty(), "{eu:?}");
        assert!(!format!("{eu:?}").contains("hunter2"), "{eu:?}");
    }
}
