//! Owns: dry runs of plans: every object that would be written is applied with `dryRun=All`, so that a value that the server
//! normalises is no change, and what it refuses is seen.
//! Never: writes anything.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use clusterclass::{
    desired::{
        change::{Action, Change, Plan},
        compare::{MANAGER, UPSTREAM_MANAGER},
        dry::{answered, asked, says_immutable},
        objects::{Objects, text},
    },
    model::Finding,
};
use futures::{StreamExt, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::{GroupVersionKind, Status, response::reason},
    discovery,
};
use serde_json::Value;
use tokio::sync::Mutex;

/// The rule of what the server refuses.
pub(crate) const DRY_RUN: &str = "dry-run";
/// Clusters that are asked about at once.
const AT_ONCE: usize = 8;

/// The outcome of dry runs.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Objects that the server refuses.
    pub(crate) findings: Vec<Finding>,
    /// Kinds that the kubeconfig has no right to apply; their objects are compared as they are planned.
    pub(crate) no_right: BTreeSet<String>,
}

/// Asks the server of everything that plans would write. `there` is what it has.
pub(crate) async fn dry_run(client: Client, there: &Objects<'_>, plans: &mut [Plan]) -> Told {
    let server = Server {
        client,
        kinds: Mutex::default(),
    };
    let asked = plans.iter_mut().map(|plan| server.plan(there, plan));
    let all: Vec<Told> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let mut told = Told::default();
    for one in all {
        told.findings.extend(one.findings);
        told.no_right.extend(one.no_right);
    }
    told
}

struct Server {
    client: Client,
    /// Kinds that were asked for, by version and kind.
    kinds: Mutex<BTreeMap<(String, String), ApiResource>>,
}

/// The reason for which an object is not taken.
enum Refused {
    /// The kubeconfig may not ask.
    NoRight,
    /// Content that may not change: another template takes its place.
    Immutable,
    /// Anything else.
    Said(String),
}

impl Server {
    async fn plan(&self, there: &Objects<'_>, plan: &mut Plan) -> Told {
        let mut told = Told::default();
        for at in 0..plan.changes.len() {
            let (kind, place) = (plan.changes[at].kind.clone(), plan.changes[at].place.clone());
            match self.change(there, plan, at).await {
                Ok(()) => {}
                Err(Refused::NoRight) => drop(told.no_right.insert(kind)),
                Err(refused) => told.findings.push(Finding {
                    origin: "server".to_owned(),
                    object: format!("Cluster {}/{}", plan.namespace, plan.name),
                    field: place,
                    rule: DRY_RUN,
                    message: format!("{kind} {}: {}", plan.changes[at].name, refused.words()),
                }),
            }
        }
        told
    }

    async fn change(&self, there: &Objects<'_>, plan: &mut Plan, at: usize) -> Result<(), Refused> {
        let change = &plan.changes[at];
        let Some(content) = change.object.clone().filter(|_| change.action.writes()) else {
            return Ok(());
        };
        let known = found(there, change, &content);
        match (change.action, known) {
            // A new Cluster is in no file as it would be written: its references alone are refused.
            (Action::Update, None) => Ok(()),
            (Action::Update, Some(known)) => {
                let answer = self.apply(&content, &change.name, known).await?;
                answered(plan, at, known, &answer);
                Ok(())
            }
            (Action::Rotate, Some(known)) => {
                let before = change.before.clone().unwrap_or_default();
                match self.apply(&asked(&content, &before), &before, known).await {
                    Ok(answer) => answered(plan, at, known, &answer),
                    Err(Refused::Immutable) => {}
                    Err(refused) => return Err(refused),
                }
                let change = &plan.changes[at];
                if change.action == Action::Rotate {
                    self.apply(&content, &change.name, &Value::Null).await?;
                }
                Ok(())
            }
            _ => self.apply(&content, &change.name, &Value::Null).await.map(drop),
        }
    }

    /// Returns the object as the server would store it. The manager is the one of the fields that are there.
    async fn apply(&self, content: &Value, name: &str, known: &Value) -> Result<Value, Refused> {
        let of = |place: &str| text(content, place).unwrap_or_default();
        let resource = self.resource(of("/apiVersion"), of("/kind")).await;
        let resource = resource.map_err(|error| Refused::Said(format!("{error:#}")))?;
        let namespace = of("/metadata/namespace");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let mut parameters = PatchParams::apply(manager(known)).force();
        parameters.dry_run = true;
        match api.patch(name, &parameters, &Patch::Apply(content)).await {
            Ok(answer) => serde_json::to_value(answer).map_err(|error| Refused::Said(error.to_string())),
            Err(kube::Error::Api(status)) => Err(Refused::of(&status)),
            Err(error) => Err(Refused::Said(format!("it cannot be dry-run: {error}"))),
        }
    }

    async fn resource(&self, api_version: &str, kind: &str) -> anyhow::Result<ApiResource> {
        let key = (api_version.to_owned(), kind.to_owned());
        let mut kinds = self.kinds.lock().await;
        if let Some(known) = kinds.get(&key) {
            return Ok(known.clone());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = discovery::pinned_kind(&self.client, &GroupVersionKind::gvk(group, version, kind)).await;
        let (resource, _) =
            found.with_context(|| format!("the cluster serves no {kind} of {api_version}"))?;
        kinds.insert(key, resource.clone());
        Ok(resource)
    }
}

impl Refused {
    fn of(status: &Status) -> Self {
        let message = &status.message;
        let may_not = ["cannot patch resource", "cannot create resource"];
        if status.code == 403 && may_not.iter().any(|words| message.contains(words)) {
            return Self::NoRight;
        }
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let mut causes = causes.map(|cause| (cause.field.as_str(), cause.message.as_str()));
        if status.code == 422
            && status.reason == reason::INVALID
            && causes.any(|(field, message)| says_immutable(field, message))
        {
            return Self::Immutable;
        }
        Self::Said(format!("{message} (HTTP {})", status.code))
    }

    fn words(&self) -> &str {
        match self {
            Self::NoRight => "no right to apply it",
            Self::Immutable => "its content may not change",
            Self::Said(words) => words,
        }
    }
}

/// Finds the object of a change on the server, or the template that it takes the place of.
fn found<'a>(there: &Objects<'a>, change: &Change, content: &Value) -> Option<&'a Value> {
    let of = |place: &str| text(content, place).unwrap_or_default();
    let name = change.before.as_deref().unwrap_or(&change.name);
    let (version, namespace) = (of("/apiVersion"), of("/metadata/namespace"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let in_version = there.get_in(version, &change.kind, namespace, name);
    in_version.or_else(|| there.get(group, &change.kind, namespace, name))
}

/// The manager that applies an object: the controller that did before, or else Cluster API's.
fn manager(known: &Value) -> &'static str {
    let entries = known.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut entries = entries.into_iter().flatten();
    if entries.any(|entry| entry["manager"] == MANAGER) {
        MANAGER
    } else {
        UPSTREAM_MANAGER
    }
}

#[cfg(test)]
mod tests;
