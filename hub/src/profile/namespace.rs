//! The inventory namespace: made with its label if it is missing and we may, else said what to do.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde_json::json;
use shared::{
    api::names::{HUB_MANAGER, LABEL_CLUSTERSET},
    model::Clusterset,
};
use tracing::{info, warn};

/// Why there is no namespace to write to.
#[derive(Debug, thiserror::Error)]
#[error(
    "the inventory namespace {namespace} is missing and cannot be made ({reason}): kubectl create namespace \
     {namespace} && kubectl label namespace {namespace} {LABEL_CLUSTERSET}={clusterset}"
)]
pub(super) struct NoNamespace {
    namespace: String,
    clusterset: String,
    reason: String,
}

/// Sees to it that the namespace is there. A namespace that may not be looked at is taken to be there: the first
/// write shows.
pub(super) async fn ensure(client: &Client, name: &str, clusterset: &Clusterset) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.get_opt(name).await {
        Ok(Some(namespace)) => {
            if namespace.labels().get(LABEL_CLUSTERSET).map(String::as_str) != Some(clusterset.name()) {
                warn!(
                    "namespace {name} lacks the label that makes it the inventory of a clusterset: kubectl label \
                     namespace {name} {LABEL_CLUSTERSET}={}",
                    clusterset.name()
                );
            }
            Ok(())
        }
        Ok(None) => create(&namespaces, name, clusterset).await,
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the namespace.
pub(super) async fn create(
    namespaces: &Api<Namespace>,
    name: &str,
    clusterset: &Clusterset,
) -> Result<(), kube::Error> {
    let namespace = json!({
        "metadata": { "name": name, "labels": { LABEL_CLUSTERSET: clusterset.name() } },
    });
    let namespace: Namespace = serde_json::from_value(namespace).map_err(kube::Error::SerdeError)?;
    let made = PostParams {
        field_manager: Some(HUB_MANAGER.to_owned()),
        ..PostParams::default()
    };
    match namespaces.create(&made, &namespace).await {
        Ok(_) => {
            info!("made the inventory namespace {name}");
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}

impl NoNamespace {
    pub(super) fn new(namespace: &str, clusterset: &Clusterset, reason: &kube::Error) -> Self {
        Self {
            namespace: namespace.to_owned(),
            clusterset: clusterset.name().to_owned(),
            reason: super::told(reason),
        }
    }
}
