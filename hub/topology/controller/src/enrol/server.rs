//! Owns: what is asked of API servers so that Clusters join and leave: of the management cluster's, and once of a new
//! Cluster's own.
//! Never: decides what is asked, keeps a kubeconfig, or says anything of one in an error.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    config::KubeConfigOptions,
    core::GroupVersionKind,
    discovery::{self, Scope},
};
use prometheus_client::registry::Registry;
use serde_json::Value;
use shared::api_client::{ApiMetrics, api_client};
use tokio::time::timeout;

use super::{kubeconfig, manifests::AgentManifests, objects};
use crate::{model::Key, watch::served};

/// The manager of the fields that we write.
const MANAGER: &str = "tributary-enrolment";
/// Longest time for one request.
const REQUEST_WAIT: Duration = Duration::from_secs(20);
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
        let metrics = ApiMetrics::register(&mut Registry::default());
        let client = api_client(config, metrics).map_err(|_| anyhow!("its credentials cannot be used"));
        Ok(Installing {
            client: client.with_context(about)?,
        })
    }
}

/// The API server of a Cluster into which an agent is installed.
pub(super) struct Installing {
    client: Client,
}

impl Installing {
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

/// Server-side apply under our manager.
async fn apply(client: &Client, object: &Value) -> Result<(), Failed> {
    let named = |field: &str| object.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = named("/apiVersion")
        .split_once('/')
        .unwrap_or(("", named("/apiVersion")));
    let kind = GroupVersionKind::gvk(group, version, named("/kind"));
    let (resource, capabilities) = within(discovery::pinned_kind(client, &kind)).await?;
    let api = api(
        client,
        &resource,
        &capabilities.scope,
        named("/metadata/namespace"),
    );
    let parameters = PatchParams::apply(MANAGER).force();
    let patch = Patch::Apply(object);
    within(api.patch(named("/metadata/name"), &parameters, &patch))
        .await
        .map(drop)
}

fn api(client: &Client, resource: &ApiResource, scope: &Scope, namespace: &str) -> Api<DynamicObject> {
    match scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, resource),
    }
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
