//! Owns: what is asked of API servers so that Clusters join and leave: of the management cluster's, and once of a new
//! Cluster's own.
//! Never: decides what is asked, keeps a kubeconfig, or says anything of one in an error.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config, Resource,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    config::KubeConfigOptions,
    core::{GroupVersionKind, Request},
};
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::Value;
use shared::api_client::{AnswerBounds, ApiMetrics, api_client_within};
use tokio::time::timeout;

use super::{kubeconfig, manifests::AgentManifests, objects};
use crate::{model::Key, watch::served};

/// The manager of the fields that we write.
const MANAGER: &str = "tributary-enrolment";
/// Longest time for one request.
const REQUEST_WAIT: Duration = Duration::from_secs(20);
/// Most bytes of one answer of a Cluster's own API server, whose owner may want to fill our memory: lists of kinds, and
/// the objects that we applied. One delivery asks one thing at a time, so all that run hold `AT_ONCE` times as much.
pub(super) const ANSWER_BYTES_MAX: u64 = 1024 * 1024;
const _: () = assert!(ANSWER_BYTES_MAX * super::AT_ONCE as u64 <= 8 * 1024 * 1024);
/// The key of the kubeconfig in its Secret.
const KUBECONFIG_KEY: &str = "value";

/// The API server of the management cluster.
#[derive(Clone)]
pub(super) struct Management {
    client: Client,
}

impl Management {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The version of Clusters that is served.
    pub(super) async fn api_version(&self) -> anyhow::Result<String> {
        let (cluster, _) = served::kinds(&self.client).await.map_err(anyhow::Error::msg)?;
        Ok(cluster.api_version)
    }

    /// Says of a Cluster what we say. One that is gone, or has changed, is left alone.
    pub(super) async fn say(&self, object: &Value) -> anyhow::Result<()> {
        match apply(&self.client, object).await {
            Err(Failed::Api(status)) if status.code == 404 || is_another(&status) => Ok(()),
            said => said.map_err(|failed| failed.told("the Cluster cannot be written")),
        }
    }

    /// Writes the Secret with what has a Cluster join.
    pub(super) async fn write_secret(&self, object: &Value) -> anyhow::Result<()> {
        let written = apply(&self.client, object).await;
        written.map_err(|failed| failed.told("the Secret with what has it join cannot be written"))
    }

    /// The API server of a Cluster, by its kubeconfig, which is forgotten with it.
    pub(super) async fn of_cluster(&self, (namespace, name): &Key) -> anyhow::Result<Installing> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let called = objects::kubeconfig_secret(name);
        let asked = within(secrets.get_opt(&called)).await;
        let secret = asked.map_err(|failed| failed.told(&format!("the Secret {called} cannot be read")))?;
        let secret = secret.with_context(|| format!("there is no Secret {called} yet"))?;
        let value = secret.data.and_then(|mut data| data.remove(KUBECONFIG_KEY));
        let value = value.with_context(|| format!("the Secret {called} has no {KUBECONFIG_KEY}"))?;
        let about = || format!("the kubeconfig in the Secret {called} is not taken");
        let config = kubeconfig::read(&value.0).with_context(about)?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(config, &options).await;
        // The error may contain a value of it.
        let config = config
            .map_err(|_| anyhow!("its current context cannot be used"))
            .with_context(about)?;
        Installing::by(config).with_context(about)
    }
}

/// The API server of a Cluster into which an agent is installed.
pub(super) struct Installing {
    client: Client,
}

impl Installing {
    pub(super) fn by(config: Config) -> anyhow::Result<Self> {
        let metrics = ApiMetrics::register(&mut Registry::default());
        let client = api_client_within(config, metrics, AnswerBounds::single(ANSWER_BYTES_MAX));
        let client = client.map_err(|_| anyhow!("its credentials cannot be used"))?;
        Ok(Self { client })
    }

    /// Applies everything but the join string.
    pub(super) async fn install(&self, manifests: &Arc<AgentManifests>) -> anyhow::Result<()> {
        for object in manifests.objects() {
            self.apply(object).await?;
        }
        Ok(())
    }

    /// Applies one object.
    pub(super) async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let named = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
        let about = || {
            format!(
                "{} {} cannot be applied to it",
                named("/kind"),
                named("/metadata/name")
            )
        };
        let applied = apply(&self.client, object).await;
        applied.map_err(|failed| failed.told(&about()))
    }
}

/// Why a request failed.
enum Failed {
    /// The server said no.
    Api(Box<kube::core::Status>),
    /// It did not say.
    Other(anyhow::Error),
}

impl Failed {
    /// For people: what failed, and what the server says of it.
    fn told(self, what: &str) -> anyhow::Error {
        match self {
            Self::Api(status) if status.code == 403 => anyhow!(
                "{what}: {} (HTTP 403): give the hub its rights, --set topologyEnrolment.mode of its chart",
                status.message
            ),
            Self::Api(status) => anyhow!("{what}: {} (HTTP {})", status.message, status.code),
            Self::Other(error) => error.context(what.to_owned()),
        }
    }
}

/// Another object may have the name by now, or none: the apply names the one that was read.
fn is_another(status: &kube::core::Status) -> bool {
    status.code == 409 && status.message.to_lowercase().contains("uid")
}

/// Server-side apply under our manager. The answer is not parsed: a short text can become many values in memory.
async fn apply(client: &Client, object: &Value) -> Result<(), Failed> {
    let named = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = named("/apiVersion")
        .split_once('/')
        .unwrap_or(("", named("/apiVersion")));
    let kind = GroupVersionKind::gvk(group, version, named("/kind"));
    let served = served(client, &kind).await?;
    let resource = ApiResource::from_gvk_with_plural(&kind, &served.name);
    let namespace = served.namespaced.then(|| named("/metadata/namespace"));
    let path = DynamicObject::url_path(&resource, namespace);
    let parameters = PatchParams::apply(MANAGER).force();
    let patch = Request::new(path).patch(named("/metadata/name"), &parameters, &Patch::Apply(object));
    let patch = patch.map_err(|error| Failed::Other(error.into()))?;
    within(client.request_text(patch)).await.map(drop)
}

/// Kinds that an API server serves in one version of a group. Every field must be there, so that an entry costs us no
/// more than its text.
#[derive(Deserialize)]
struct Kinds {
    resources: Vec<ServedKind>,
}

/// One of them, or a subresource.
#[derive(Deserialize)]
struct ServedKind {
    name: String,
    kind: String,
    namespaced: bool,
}

/// The name and scope under which a kind is served.
async fn served(client: &Client, kind: &GroupVersionKind) -> Result<ServedKind, Failed> {
    let GroupVersionKind { group, version, .. } = kind;
    let path = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| Failed::Other(error.into()))?;
    let text = within(client.request_text(request)).await?;
    let kinds: Kinds = serde_json::from_str(&text).map_err(|_| {
        Failed::Other(anyhow!(
            "its answer is no list of kinds of {}",
            kind.api_version()
        ))
    })?;
    let mut kinds = kinds.resources.into_iter();
    let found = kinds.find(|served| served.kind == kind.kind && !served.name.contains('/'));
    found.ok_or_else(|| {
        let version = kind.api_version();
        Failed::Other(anyhow!("its API server serves no {} of {version}", kind.kind))
    })
}

async fn within<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
    match timeout(REQUEST_WAIT, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Failed::Api(status)),
        Ok(Err(error)) => Err(Failed::Other(error.into())),
        Err(_) => Err(Failed::Other(anyhow!(
            "the API server does not answer within {} s",
            REQUEST_WAIT.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests;
