//! A cluster, with the rights of a person: its kubeconfig, namespace, Secrets, and what its pods wait for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use anyhow::{Context, anyhow, bail};
use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
        core::v1::{Namespace, PersistentVolumeClaim, Pod, Secret},
    },
};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::api_client::{ApiMetrics, ServedVersions, api_client, in_served_version, kubeconfig};

use super::args::ClusterArgs;

/// The name under which this client writes.
pub(super) const FIELD_MANAGER: &str = "tributary-client";
/// Marks what this client made.
const MADE_BY: (&str, &str) = ("app.kubernetes.io/managed-by", FIELD_MANAGER);

/// A cluster.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) args: ClusterArgs,
    /// The address of its API server.
    pub(super) address: String,
}

/// A right: API group, resource, verb, and the namespace, or none for the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Right<'a>(
    pub(super) &'a str,
    pub(super) &'a str,
    pub(super) &'a str,
    pub(super) Option<&'a str>,
);

impl Cluster {
    /// The cluster of a kubeconfig's context.
    pub(super) async fn connect(args: &ClusterArgs) -> anyhow::Result<Self> {
        let file = match &args.kubeconfig {
            Some(path) => kubeconfig("--kubeconfig", path)?,
            None => Kubeconfig::read().context("there is no kubeconfig: name one with --kubeconfig")?,
        };
        let names: Vec<&str> = file
            .contexts
            .iter()
            .map(|context| context.name.as_str())
            .collect();
        if !names.contains(&args.context.as_str()) {
            bail!(
                "the kubeconfig has no context {}; it has: {}",
                args.context,
                names.join(", ")
            );
        }
        let options = KubeConfigOptions {
            context: Some(args.context.clone()),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(file, &options).await;
        let config = config.with_context(|| format!("the context {} cannot be used", args.context))?;
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = api_client(config, ApiMetrics::default())?;
        Ok(Self {
            client: in_served_version(client, ServedVersions::default()),
            args: args.clone(),
            address,
        })
    }

    /// The namespace for Tributary.
    pub(super) fn namespace(&self) -> &str {
        &self.args.namespace
    }

    /// The UID of kube-system, by which the hub knows the cluster.
    pub(super) async fn fingerprint(&self) -> anyhow::Result<String> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let found = namespaces
            .get("kube-system")
            .await
            .map_err(|error| self.failed(error))?;
        found.metadata.uid.context("the namespace kube-system has no uid")
    }

    /// The rights of these that the user does not have, in words.
    pub(super) async fn missing_rights(&self, needed: &[Right<'_>]) -> anyhow::Result<Vec<String>> {
        let reviews = Api::<SelfSubjectAccessReview>::all(self.client.clone());
        let mut missing = Vec::new();
        for Right(group, resource, verb, namespace) in needed {
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(ResourceAttributes {
                        group: Some((*group).to_owned()),
                        resource: Some((*resource).to_owned()),
                        verb: Some((*verb).to_owned()),
                        namespace: namespace.map(str::to_owned),
                        ..ResourceAttributes::default()
                    }),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let answer = reviews.create(&PostParams::default(), &review).await;
            let answer = answer.map_err(|error| self.failed(error))?;
            if !answer.status.is_some_and(|status| status.allowed) {
                let place = namespace
                    .map(|namespace| format!(" in {namespace}"))
                    .unwrap_or_default();
                missing.push(format!("{verb} {resource}{place}"));
            }
        }
        Ok(missing)
    }

    /// Fails unless the user has all these rights.
    pub(super) async fn require(&self, needed: &[Right<'_>]) -> anyhow::Result<()> {
        let missing = self.missing_rights(needed).await?;
        if missing.is_empty() {
            return Ok(());
        }
        bail!(
            "nothing was changed: the user of the context {} may not {}. Use a context of the cluster's administrator",
            self.args.context,
            missing.join(", ")
        )
    }

    /// True if the namespace is there.
    pub(super) async fn has_namespace(&self) -> anyhow::Result<bool> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let found = namespaces.get_opt(self.namespace()).await;
        Ok(found.map_err(|error| self.failed(error))?.is_some())
    }

    /// Makes the namespace.
    pub(super) async fn make_namespace(&self) -> anyhow::Result<()> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let object = namespace(self.namespace());
        let made = namespaces
            .patch(self.namespace(), &ours(), &Patch::Apply(&object))
            .await;
        made.map(drop).map_err(|error| self.failed(error))
    }

    /// Deletes the namespace, if this client made it and nothing of others is left there.
    pub(super) async fn delete_namespace(&self) -> anyhow::Result<Deletion> {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let found = namespaces
            .get_opt(self.namespace())
            .await
            .map_err(|error| self.failed(error))?;
        let label = |found: Namespace| {
            found
                .metadata
                .labels?
                .get(MADE_BY.0)
                .map(|made| made == MADE_BY.1)
        };
        if found.and_then(label) != Some(true) {
            return Ok(Deletion::NotOurs);
        }
        if let Some(left) = self.left_in_namespace().await? {
            return Ok(Deletion::Has(left));
        }
        let gone = namespaces
            .delete(self.namespace(), &DeleteParams::default())
            .await;
        gone.map(|_| Deletion::Done).map_err(|error| self.failed(error))
    }

    /// Programs, volumes and Helm releases in the namespace, by kind; `None`: there are none.
    async fn left_in_namespace(&self) -> anyhow::Result<Option<String>> {
        let all = ListParams::default();
        let releases = ListParams::default().fields("type=helm.sh/release.v1");
        Ok(left(&[
            (
                "Helm release",
                releases_of(&self.objects::<Secret>(&releases).await?),
            ),
            (
                "PersistentVolumeClaim",
                staying(&self.objects::<PersistentVolumeClaim>(&all).await?),
            ),
            ("StatefulSet", staying(&self.objects::<StatefulSet>(&all).await?)),
            ("Deployment", staying(&self.objects::<Deployment>(&all).await?)),
        ]))
    }

    async fn objects<K>(&self, wanted: &ListParams) -> anyhow::Result<Vec<ObjectMeta>>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let objects = Api::<K>::namespaced(self.client.clone(), self.namespace());
        let found = objects.list_metadata(wanted).await;
        let found = found.map_err(|error| self.failed(error))?.items;
        Ok(found.into_iter().map(|object| object.metadata).collect())
    }

    /// The texts of a Secret; `None` if it is not there.
    pub(super) async fn secret(&self, name: &str) -> anyhow::Result<Option<BTreeMap<String, String>>> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), self.namespace());
        let found = secrets.get_opt(name).await.map_err(|error| self.failed(error))?;
        Ok(found.map(|secret| {
            let data = secret.data.unwrap_or_default().into_iter();
            data.map(|(key, ByteString(bytes))| (key, String::from_utf8_lossy(&bytes).into_owned()))
                .collect()
        }))
    }

    /// Makes a Secret, or gives it these texts.
    pub(super) async fn put_secret(&self, name: &str, texts: &[(&str, &str)]) -> anyhow::Result<()> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), self.namespace());
        let object = secret(self.namespace(), name, texts);
        let put = secrets.patch(name, &ours(), &Patch::Apply(&object)).await;
        put.map(drop).map_err(|error| self.failed(error))
    }

    /// Deletes a Secret; true if it was there.
    pub(super) async fn delete_secret(&self, name: &str) -> anyhow::Result<bool> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), self.namespace());
        match secrets.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The reason why the pods of a program do not run yet; `None` if all are ready.
    pub(super) async fn pods_wait_for(&self, program: &str) -> anyhow::Result<Option<String>> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), self.namespace());
        let labels = ListParams::default().labels(&format!("app.kubernetes.io/name={program}"));
        let pods = pods
            .list(&labels)
            .await
            .map_err(|error| self.failed(error))?
            .items;
        if pods.is_empty() {
            return Ok(Some(format!("no pod of {program} was made yet")));
        }
        Ok(pods.iter().find_map(pod_waits_for))
    }

    /// An error of this cluster's API server, with the cluster.
    pub(super) fn failed(&self, error: kube::Error) -> anyhow::Error {
        let context = &self.args.context;
        match error {
            kube::Error::Api(status) if status.code == 401 => anyhow!(
                "the API server of context {context} does not accept the credentials of the kubeconfig: {}",
                status.message
            ),
            kube::Error::Api(status) => {
                anyhow!("the API server of context {context} refuses: {}", status.message)
            }
            error => anyhow::Error::new(error).context(format!(
                "the API server of context {context} ({}) cannot be reached",
                self.address
            )),
        }
    }
}

/// The result of a deletion of the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deletion {
    /// It is being deleted.
    Done,
    /// It is not there, or this client did not make it.
    NotOurs,
    /// It stays, because it has these objects.
    Has(String),
}

/// Names of objects that are not being deleted.
fn staying(objects: &[ObjectMeta]) -> BTreeSet<&str> {
    let stays = objects
        .iter()
        .filter(|object| object.deletion_timestamp.is_none());
    stays.filter_map(|object| object.name.as_deref()).collect()
}

/// Names of the releases in Helm's Secrets; the history of one that was uninstalled is none.
fn releases_of(secrets: &[ObjectMeta]) -> BTreeSet<&str> {
    let stays = secrets
        .iter()
        .filter(|secret| secret.deletion_timestamp.is_none());
    let labels = stays.filter_map(|secret| secret.labels.as_ref());
    let installed = labels.filter(|labels| labels.get("status").is_none_or(|status| status != "uninstalled"));
    installed
        .filter_map(|labels| labels.get("name").map(String::as_str))
        .collect()
}

/// Objects by kind, in words; `None`: there are none.
fn left(found: &[(&str, BTreeSet<&str>)]) -> Option<String> {
    let words = found.iter().filter(|(_, names)| !names.is_empty());
    let words: Vec<String> = words
        .map(|(kind, names)| format!("{kind} {}", names.iter().copied().collect::<Vec<_>>().join(", ")))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// A forced server-side apply by this client.
pub(super) fn ours() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

/// The namespace of Tributary, with its security standard.
pub(super) fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {MADE_BY.0: MADE_BY.1, "pod-security.kubernetes.io/enforce": "restricted"},
        },
    })
}

/// A Secret.
pub(super) fn secret(namespace: &str, name: &str, texts: &[(&str, &str)]) -> Value {
    let data: BTreeMap<&str, &str> = texts.iter().copied().collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {MADE_BY.0: MADE_BY.1}},
        "type": "Opaque",
        "stringData": data,
    })
}

/// The reason why a pod does not run; `None`: it is ready.
pub(super) fn pod_waits_for(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let condition = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
    if condition("Ready").is_some_and(|ready| ready.status == "True") {
        return None;
    }
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let waiting = containers.iter().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref().unwrap_or("waiting");
        let message = waiting.message.as_deref().unwrap_or_default();
        Some(format!("{reason} {message}").trim_end().to_owned())
    });
    let unscheduled = condition("PodScheduled").filter(|scheduled| scheduled.status == "False");
    let unscheduled = unscheduled.and_then(|scheduled| scheduled.message.clone());
    let reason = waiting
        .or(unscheduled)
        .unwrap_or_else(|| "it is not ready yet".to_owned());
    Some(format!("pod {name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_volumes_and_releases_keep_a_namespace() {
        let object = |name: &str, more: Value| {
            let mut object = json!({"name": name});
            for (key, value) in more.as_object().into_iter().flatten() {
                object[key] = value.clone();
            }
            serde_json::from_value::<ObjectMeta>(object).expect("metadata")
        };
        let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let claims = [object("data-a", json!({})), object("data-b", going.clone())];
        let of_helm = |name: &str, status: &str| {
            let labels = json!({"labels": {"owner": "helm", "name": name, "status": status}});
            object(&format!("sh.helm.release.v1.{name}.v1"), labels)
        };
        let releases = [
            of_helm("web", "superseded"),
            of_helm("web", "deployed"),
            of_helm("old", "uninstalled"),
        ];
        assert_eq!(
            left(&[
                ("Helm release", releases_of(&releases)),
                ("PersistentVolumeClaim", staying(&claims)),
                ("Deployment", BTreeSet::new()),
            ]),
            Some("Helm release web; PersistentVolumeClaim data-a".to_owned())
        );
        let gone = [object("data-b", going)];
        assert_eq!(
            left(&[
                ("Helm release", releases_of(&releases[2..])),
                ("Deployment", staying(&gone)),
            ]),
            None
        );
    }
}
