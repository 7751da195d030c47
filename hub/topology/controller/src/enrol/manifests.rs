//! Owns: what is installed into a Cluster so that it joins: the objects of the agent as an operator rendered them, and the
//! Secret with the join string, under the name by which the agent's Deployment knows it.
//! Never: renders the chart, asks a cluster.

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::model::ClusterId;

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 512 * 1024;
/// Most objects of it.
const OBJECTS_MAX: usize = 200;
/// The volume of the agent's pods that has the join string.
const JOIN_VOLUME: &str = "join";
/// The command that renders the file.
const RENDER: &str = "render it with the agent's chart and --set join.secretName=tributary-agent-join";

/// The objects of an agent, for any cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentManifests {
    /// In the order in which they are applied.
    objects: Vec<Value>,
    namespace: String,
    secret: String,
}

impl AgentManifests {
    /// Reads documents of YAML.
    ///
    /// # Errors
    ///
    /// A document is no object, or no Deployment among them waits for a join string; what to do.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        ensure!(
            text.len() <= FILE_BYTES_MAX,
            "it is longer than {FILE_BYTES_MAX} bytes"
        );
        let mut objects = Vec::new();
        for (place, document) in serde_norway::Deserializer::from_str(text).enumerate() {
            let object = Value::deserialize(document).with_context(|| format!("document {}", place + 1))?;
            if object.is_null() {
                continue;
            }
            let named = ["/apiVersion", "/kind", "/metadata/name"];
            let missing = named
                .iter()
                .find(|field| object.pointer(field).and_then(Value::as_str).is_none());
            if let Some(field) = missing {
                bail!("document {} has no {field}", place + 1);
            }
            objects.push(object);
            ensure!(
                objects.len() <= OBJECTS_MAX,
                "it has more than {OBJECTS_MAX} objects"
            );
        }
        // Objects that others need come first; the sort keeps the order of the rest.
        objects.sort_by_key(|object| match object["kind"].as_str() {
            Some("Namespace" | "CustomResourceDefinition") => 0,
            Some("Deployment") => 2,
            _ => 1,
        });
        let mut waiting = objects.iter().filter_map(waits);
        let (Some((namespace, secret)), None) = (waiting.next(), waiting.next()) else {
            bail!("it has not one Deployment with a volume {JOIN_VOLUME} of a Secret: {RENDER}");
        };
        Ok(Self {
            namespace,
            secret,
            objects,
        })
    }

    /// The objects that exist before the join string.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The Secret with the join string, and the id for which it is good.
    pub fn secret(&self, id: &ClusterId, join: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": self.secret,
                "namespace": self.namespace,
                "labels": {"app.kubernetes.io/part-of": "tributary"},
            },
            "type": "Opaque",
            "stringData": {"join": join, "clusterId": id.as_str()},
        })
    }

    /// All of it as documents of YAML.
    ///
    /// # Errors
    ///
    /// It cannot be written as YAML.
    pub fn bundle(&self, id: &ClusterId, join: &str) -> anyhow::Result<String> {
        let mut text = String::new();
        for object in self.objects.iter().chain([&self.secret(id, join)]) {
            text.push_str("---\n");
            text.push_str(&serde_norway::to_string(object)?);
        }
        Ok(text)
    }
}

/// The namespace of a Deployment and the Secret with the join string that its pods wait for.
fn waits(object: &Value) -> Option<(String, String)> {
    if object["kind"] != "Deployment" {
        return None;
    }
    let volumes = object.pointer("/spec/template/spec/volumes")?.as_array()?;
    let volume = volumes.iter().find(|volume| volume["name"] == JOIN_VOLUME)?;
    let secret = volume["secret"]["secretName"].as_str()?;
    let namespace = object["metadata"]["namespace"].as_str()?;
    Some((namespace.to_owned(), secret.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: there}
spec: {template: {spec: {volumes: [{name: join, secret: {secretName: the-string}}]}}}
---
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: there}
---
apiVersion: v1
kind: Namespace
metadata: {name: there}
";

    #[test]
    fn the_secret_is_the_one_that_the_deployment_waits_for() {
        let manifests = AgentManifests::read(AGENT).unwrap();
        let kinds: Vec<&str> = manifests
            .objects()
            .iter()
            .filter_map(|one| one["kind"].as_str())
            .collect();
        assert_eq!(kinds, ["Namespace", "ServiceAccount", "Deployment"]);
        let id = ClusterId::new("east").unwrap();
        let secret = manifests.secret(&id, "tributary-join-1-x");
        assert_eq!(
            (&secret["metadata"]["name"], &secret["metadata"]["namespace"]),
            (&json!("the-string"), &json!("there"))
        );
        let bundle = manifests.bundle(&id, "tributary-join-1-x").unwrap();
        assert_eq!(bundle.matches("---\n").count(), 4);
        assert_eq!(AgentManifests::read(&bundle).unwrap().objects().len(), 4);
    }

    #[test]
    fn a_file_that_makes_no_agent_says_what_to_do() {
        let other = AGENT.replace("name: join", "name: other");
        for (text, said) in [
            ("", "join.secretName"),
            (other.as_str(), "join.secretName"),
            ("kind: Secret", "document 1 has no /apiVersion"),
            ("a: [", "document 1"),
            (&format!("{AGENT}---\n{AGENT}"), "not one Deployment"),
            (&" ".repeat(FILE_BYTES_MAX + 1), "longer than"),
        ] {
            let error = format!("{:#}", AgentManifests::read(text).unwrap_err());
            assert!(error.contains(said), "{said}: {error}");
        }
    }
}
