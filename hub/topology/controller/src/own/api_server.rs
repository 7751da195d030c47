//! Owns: the requests to a real API server: server-side apply by one field manager, deletions of one identity.
//! Never: decides what is asked, or asks twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Context;
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::ObjectReference};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions},
    core::{GroupVersionKind, Status, response::reason},
    discovery,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use serde_json::{Value, json};
use shared::api::names::CLUSTER_API_GROUP;
use tokio::{sync::Notify, time::timeout};

use super::{
    rules::event::ObjectName,
    rules::rival::{Provider, Signs, UPSTREAM_LEASE, UpstreamLease},
    rules::told::{Reference, Told},
    server::{Failed, Server},
};
use crate::{
    desired::{
        change::Defaulted,
        compare::MANAGER,
        dry::says_immutable,
        objects::{Listed, text},
    },
    live,
    mirror::Mirror,
};

/// Longest time for one request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest time for an Event, which nothing depends on.
const EVENT_TIMEOUT: Duration = Duration::from_secs(2);
/// The reporter of the Events.
const REPORTER: &str = "tributary-hub";
/// Most Leases and Deployments that are looked at for signs of another controller.
const SIGNS_MAX: u32 = 100;

/// The API server behind a client.
pub struct ApiServer {
    client: Client,
    /// The objects as watches show them, for those that are read again and again.
    mirror: Option<Mirror>,
    events: Recorder,
    /// Kinds that were asked for, by version and kind. Names of kinds do not change while one exists.
    kinds: Mutex<BTreeMap<(String, String), ApiResource>>,
}

impl ApiServer {
    /// The same, read by watches.
    pub fn watched(client: Client) -> Self {
        Self {
            mirror: Some(Mirror::new(client.clone())),
            ..Self::new(client)
        }
    }

    /// Notified when something changed there, if it is watched.
    pub fn changed(&self) -> Arc<Notify> {
        self.mirror.as_ref().map(Mirror::changed).unwrap_or_default()
    }

    /// No look is older than this answer to a write.
    fn wrote(&self, written: &Value) {
        if let Some(mirror) = &self.mirror {
            mirror.wrote(written);
        }
    }

    /// The server of a client.
    pub fn new(client: Client) -> Self {
        let reporter = Reporter {
            controller: REPORTER.to_owned(),
            instance: None,
        };
        Self {
            events: Recorder::new(client.clone(), reporter),
            client,
            mirror: None,
            kinds: Mutex::default(),
        }
    }

    /// The objects of a kind in a namespace.
    pub(super) async fn api_of(
        &self,
        namespace: &str,
        api_version: &str,
        kind: &str,
    ) -> anyhow::Result<Api<DynamicObject>> {
        let api = self.api(namespace, api_version, kind).await;
        api.map_err(|failed| anyhow::Error::msg(failed.why()))
    }

    async fn api(
        &self,
        namespace: &str,
        api_version: &str,
        kind: &str,
    ) -> Result<Api<DynamicObject>, Failed> {
        let key = (api_version.to_owned(), kind.to_owned());
        let known = self.kinds.lock().ok().and_then(|kinds| kinds.get(&key).cloned());
        let resource = match known {
            Some(resource) => resource,
            None => {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                let kind = GroupVersionKind::gvk(group, version, kind);
                let asked = within(discovery::pinned_kind(&self.client, &kind)).await;
                let (resource, _) = asked?;
                if let Ok(mut kinds) = self.kinds.lock() {
                    kinds.insert(key, resource.clone());
                }
                resource
            }
        };
        Ok(Api::namespaced_with(self.client.clone(), namespace, &resource))
    }
}

fn upstream_lease(lease: Lease) -> UpstreamLease {
    let spec = lease.spec.unwrap_or_default();
    let renewed = spec.renew_time.map_or(0, |time| time.0.as_millisecond());
    UpstreamLease {
        namespace: lease.metadata.namespace.unwrap_or_default(),
        held: spec.holder_identity.is_some_and(|holder| !holder.is_empty()),
        renewed: u64::try_from(renewed).unwrap_or(0),
        lasts: u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0) * 1_000,
    }
}

fn reference(of: &Reference) -> ObjectReference {
    ObjectReference {
        api_version: Some(of.api_version.clone()),
        kind: Some(of.kind.clone()),
        namespace: Some(of.namespace.clone()),
        name: Some(of.name.clone()),
        uid: of.uid.clone(),
        ..ObjectReference::default()
    }
}

fn provider(deployment: Deployment) -> Provider {
    let spec = deployment.spec.and_then(|spec| spec.template.spec);
    let containers = spec.into_iter().flat_map(|spec| spec.containers);
    let words = containers.flat_map(|one| one.command.into_iter().chain(one.args).flatten());
    Provider {
        namespace: deployment.metadata.namespace.unwrap_or_default(),
        name: deployment.metadata.name.unwrap_or_default(),
        words: words.collect(),
    }
}

/// Waits for an answer, and says what a failure means.
async fn within<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
    match timeout(REQUEST_TIMEOUT, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(of_status(&status)),
        Ok(Err(error)) => Err(Failed::Unknown(error.to_string())),
        Err(_) => Err(Failed::Unknown(format!(
            "the API server does not answer within {} s",
            REQUEST_TIMEOUT.as_secs()
        ))),
    }
}

/// A server that is asked too much or does not know now may take it later. One that cannot read what is written says that as
/// an error of its own, and will again.
fn of_status(status: &Status) -> Failed {
    let said = format!("{} (HTTP {})", status.message, status.code);
    match status.code {
        409 | 429 | 502..=504 => Failed::Unknown(said),
        403 => Failed::Refused(format!(
            "{said}: give the hub its rights, --set topology=own and topologyProviders of its chart"
        )),
        422 if is_immutable(status) => Failed::Immutable(said),
        _ => Failed::Refused(said),
    }
}

/// Returns true if a server refuses a change because a field may not change. It names the field among the causes; a word in
/// the message alone proves nothing.
fn is_immutable(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut causes = causes.map(|cause| (cause.field.as_str(), cause.message.as_str()));
    status.reason == reason::INVALID && causes.any(|(field, message)| says_immutable(field, message))
}

impl Server for ApiServer {
    async fn read(&self) -> anyhow::Result<Listed> {
        match &self.mirror {
            Some(mirror) => mirror.look().await,
            None => live::read_for_writing(self.client.clone()).await,
        }
    }

    async fn signs(&self) -> anyhow::Result<Signs> {
        let leases: Api<Lease> = Api::all(self.client.clone());
        let named = ListParams::default()
            .fields(&format!("metadata.name={UPSTREAM_LEASE}"))
            .limit(SIGNS_MAX);
        let leases = leases
            .list(&named)
            .await
            .context("Leases cannot be listed")?
            .items;
        if leases.is_empty() {
            return Ok(Signs::default());
        }
        let deployments: Api<Deployment> = Api::all(self.client.clone());
        let providers = ListParams::default()
            .labels(&format!("{CLUSTER_API_GROUP}/provider"))
            .limit(SIGNS_MAX);
        // The Lease tells a hub that may not read them.
        let deployments = deployments.list(&providers).await.ok();
        let deployments = deployments.map(|list| list.items.into_iter().map(provider).collect());
        Ok(Signs {
            leases: leases.into_iter().map(upstream_lease).collect(),
            deployments,
        })
    }

    async fn apply(&self, namespace: &str, content: &Value, dry: bool) -> Result<Value, Failed> {
        let of = |place: &str| text(content, place).unwrap_or_default();
        let (api_version, kind, name) = (of("/apiVersion"), of("/kind"), of("/metadata/name"));
        let api = self.api(namespace, api_version, kind).await?;
        let mut parameters = PatchParams::apply(MANAGER).force();
        parameters.dry_run = dry;
        let applied = within(api.patch(name, &parameters, &Patch::Apply(content))).await?;
        let applied = serde_json::to_value(applied).map_err(|error| Failed::Unknown(error.to_string()))?;
        if !dry {
            self.wrote(&applied);
        }
        Ok(applied)
    }

    async fn get(
        &self,
        namespace: &str,
        object: &ObjectName,
        api_version: &str,
    ) -> Result<Option<Value>, Failed> {
        let api = self.api(namespace, api_version, &object.kind).await?;
        let found = within(api.get_opt(&object.name)).await?;
        let value = found.map(serde_json::to_value).transpose();
        value.map_err(|error| Failed::Unknown(error.to_string()))
    }

    async fn delete(
        &self,
        namespace: &str,
        object: &ObjectName,
        api_version: &str,
        uid: &str,
    ) -> Result<(), Failed> {
        let api = self.api(namespace, api_version, &object.kind).await?;
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        });
        let deleted = async {
            match api.delete(&object.name, &parameters).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                deleted => deleted.map(drop),
            }
        };
        within(deleted).await?;
        if let Some(mirror) = &self.mirror {
            let key = (namespace.to_owned(), object.name.clone());
            mirror.deleted((api_version, &object.kind), &key, uid);
        }
        Ok(())
    }

    async fn set_defaults(
        &self,
        namespace: &str,
        cluster: &str,
        (uid, generation): (&str, i64),
        defaults: &[Defaulted],
    ) -> Result<(), Failed> {
        let api_version = crate::desired::current::CORE;
        let api = self.api(namespace, api_version, "Cluster").await?;
        // A Cluster's spec was read; its status, which others write all the time, does not matter.
        let mut edits = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": uid}),
            json!({"op": "test", "path": "/metadata/generation", "value": generation}),
        ];
        edits.extend(
            defaults
                .iter()
                .map(|one| json!({"op": "add", "path": one.pointer, "value": one.values})),
        );
        let edits = serde_json::from_value(Value::Array(edits));
        let edits: Patch<DynamicObject> =
            Patch::Json(edits.map_err(|error| Failed::Refused(error.to_string()))?);
        let parameters = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let set = within(api.patch(cluster, &parameters, &edits)).await?;
        self.wrote(&serde_json::to_value(set).unwrap_or_default());
        Ok(())
    }

    async fn say(&self, namespace: &str, cluster: &str, condition: &Value) -> Result<(), Failed> {
        let api_version = crate::desired::current::CORE;
        let api = self.api(namespace, api_version, "Cluster").await?;
        let status = json!({
            "apiVersion": api_version,
            "kind": "Cluster",
            "metadata": {"name": cluster},
            "status": {"conditions": [condition]},
        });
        let parameters = PatchParams::apply(MANAGER).force();
        let said = within(api.patch_status(cluster, &parameters, &Patch::Apply(&status))).await?;
        self.wrote(&serde_json::to_value(said).unwrap_or_default());
        Ok(())
    }

    async fn tell(&self, told: &Told) {
        let event = Event {
            type_: EventType::Normal,
            reason: told.reason.to_owned(),
            note: Some(told.note.clone()),
            action: told.action.to_owned(),
            // Otherwise the Events of one object are counted with those of the one before.
            secondary: Some(reference(&told.related)),
        };
        let regarding = reference(&told.regarding);
        match timeout(EVENT_TIMEOUT, self.events.publish(&event, &regarding)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, note = told.note, "an Event is not written"),
            Err(_) => tracing::debug!(note = told.note, "an Event is not written in time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::testing::api_server::{Asked, ScriptedServer};

    fn status(code: u16, reason: &str, causes: &[(&str, &str)]) -> Status {
        let causes = causes.iter().map(
            |(field, message)| json!({"reason": "FieldValueInvalid", "field": field, "message": message}),
        );
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "HostTemplate is immutable",
            "reason": reason, "code": code, "details": {"causes": causes.collect::<Vec<_>>()},
        });
        serde_json::from_value(status).expect("a status")
    }

    /// A Cluster whose status was written since it was read.
    fn patched(asked: &Asked) -> (u16, Value) {
        if asked.method == "GET" {
            let clusters = json!({
                "name": "clusters", "singularName": "", "namespaced": true, "kind": "Cluster", "verbs": ["get", "patch"],
            });
            let resources = json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "cluster.x-k8s.io/v1beta2",
                "resources": [clusters],
            });
            return (200, resources);
        }
        let there = json!({"metadata": {"name": "c", "uid": "u", "generation": 3, "resourceVersion": "8"}});
        let holds = asked.body.as_array().into_iter().flatten().all(|edit| {
            let path = edit["path"].as_str().unwrap_or_default();
            let is_condition = edit["op"] == "test" || path == "/metadata/resourceVersion";
            !is_condition || there.pointer(path) == Some(&edit["value"])
        });
        let code = if holds { 200 } else { 422 };
        let answer = if holds {
            there
        } else {
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no"})
        };
        (code, answer)
    }

    #[tokio::test]
    async fn defaults_are_written_whatever_the_status_says_by_now() {
        let _ = shared::tls::install_crypto_provider();
        let server = ScriptedServer::start(patched).await;
        let config = kube::Config::new(server.uri.parse().expect("a URI"));
        let server = ApiServer::new(Client::try_from(config).expect("a client"));
        let defaults = [Defaulted {
            pointer: "/spec/topology/variables".to_owned(),
            values: json!([]),
        }];
        for (uid, generation, is_taken) in [("u", 3, true), ("u", 2, false), ("v", 3, false)] {
            let set = server.set_defaults("ns", "c", (uid, generation), &defaults).await;
            assert_eq!(set.is_ok(), is_taken, "{uid} {generation}: {set:?}");
        }
    }

    #[test]
    fn only_a_cause_proves_that_a_field_may_not_change() {
        let is = |status: &Status| matches!(of_status(status), Failed::Immutable(_));
        let proofs = [
            (
                "spec.template.spec",
                "Invalid value: {}: DockerMachineTemplate spec.template.spec field is immutable. Please create a new resource instead.",
            ),
            (
                "spec.template.spec",
                "Forbidden: VSphereMachineTemplate spec.template.spec field is immutable. Please create a new resource instead.",
            ),
            ("spec", "Invalid value: {}: AWSMachineTemplate.Spec is immutable"),
            (
                "spec.template.spec.image",
                "Invalid value: \"string\": Value is immutable",
            ),
            (
                "spec.template",
                "Invalid value: \"object\": failed rule: self == oldSelf",
            ),
        ];
        for proof in proofs {
            assert!(is(&status(422, "Invalid", &[proof])), "{proof:?}");
            for code in [400, 403, 409, 500, 503] {
                assert!(!is(&status(code, "Invalid", &[proof])), "{code} {proof:?}");
            }
            assert!(!is(&status(422, "Forbidden", &[proof])), "{proof:?}");
        }
        assert!(
            !is(&status(422, "Invalid", &[])),
            "the message alone proves nothing"
        );
        let others = [
            ("spec.template.spec.size", "Invalid value: 9: must be at most 4"),
            ("metadata.name", "Invalid value: \"a\": field is immutable"),
            (
                "spec.template.spec.size",
                "Invalid value: \"integer\": failed rule: self <= 4",
            ),
        ];
        for other in others {
            assert!(!is(&status(422, "Invalid", &[other])), "{other:?}");
        }
    }
}
