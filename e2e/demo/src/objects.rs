//! Objects that a user brings: the demo's own examples and any YAML file, applied as kubectl would.
//! It acts as a user of the clusters and knows nothing of Tributary's programs.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, ValidationDirective},
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::api::{ServiceExport, names};

use super::kept::Name;
use advice::demo_apply;

/// The user's name at the API servers.
const FIELD_MANAGER: &str = "cargo-demo";
/// Namespace of objects without one.
const DEFAULT_NAMESPACE: &str = "default";
/// Largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// For every cluster.
pub(super) const EVERYWHERE: &str = include_str!("objects/everywhere.yaml");
/// For the first exporter of `shop/cart`.
pub(super) const WEST: &str = include_str!("objects/west.yaml");
/// For the second exporter of `shop/cart`.
pub(super) const EAST: &str = include_str!("objects/east.yaml");
/// For the exporter of `shop/search`.
pub(super) const NORTH: &str = include_str!("objects/north.yaml");
/// For the user to apply.
pub(super) const GREETER: &str = include_str!("objects/greeter.yaml");
/// Path of that in the repository.
pub(super) const GREETER_FILE: &str = "e2e/demo/src/objects/greeter.yaml";

/// Reads a file, or the standard input for `-`.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin()
            .take(FILE_BYTES_MAX + 1)
            .read_to_string(&mut text),
        _ => {
            std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        }
    };
    let bytes = read.with_context(|| format!("cannot read {}", path.display()))?;
    if bytes as u64 > FILE_BYTES_MAX {
        bail!("{} is larger than {FILE_BYTES_MAX} bytes", path.display());
    }
    Ok(text)
}

/// Applies every document of a YAML text; what was applied. A text that is wrong anywhere is not applied at all.
pub(super) async fn apply(client: &Client, text: &str) -> anyhow::Result<Vec<String>> {
    let objects = parsed(text)?;
    let mut applied = Vec::new();
    for object in objects {
        applied.push(apply_one(client, object).await?);
    }
    Ok(applied)
}

fn parsed(text: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let mut objects = Vec::new();
    for document in serde_norway::Deserializer::from_str(text) {
        let document = Value::deserialize(document).context("this is not YAML")?;
        if document.is_null() {
            continue;
        }
        let object = serde_json::from_value(document).context("this is no Kubernetes object")?;
        objects.push(object);
    }
    if objects.is_empty() {
        bail!("there is no object in it");
    }
    Ok(objects)
}

async fn apply_one(client: &Client, object: DynamicObject) -> anyhow::Result<String> {
    let types = object
        .types
        .as_ref()
        .context("an object names its apiVersion and kind")?;
    let kind = GroupVersionKind::try_from(types)?;
    let name = object.metadata.name.clone().context("an object has a name")?;
    let (resource, capabilities) = pinned_kind(client, &kind)
        .await
        .with_context(|| format!("the cluster does not serve {} {}", types.api_version, types.kind))?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.namespace().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
    };
    let mut parameters = PatchParams::apply(FIELD_MANAGER).force();
    parameters.field_validation = Some(ValidationDirective::Strict);
    let patched = api.patch(&name, &parameters, &Patch::Apply(&object)).await;
    let patched = patched.map_err(told);
    let patched = patched.with_context(|| format!("cannot apply {} {name}", kind.kind))?;
    let namespace = patched.namespace().map(|namespace| format!("{namespace}/"));
    Ok(format!("{} {}{name}", kind.kind, namespace.unwrap_or_default()))
}

/// Applies a ServiceExport and nothing else. Kubernetes takes one before its Service too; whoever types it here meant
/// a Service that is there.
pub(super) async fn export(client: &Client, cluster: &str, service: &Name) -> anyhow::Result<()> {
    let namespaces = Api::<Namespace>::all(client.clone());
    if namespaces
        .get_opt(&service.namespace)
        .await
        .map_err(told)?
        .is_none()
    {
        bail!("there is no namespace {} to export from", service.namespace);
    }
    let services = Api::<Service>::namespaced(client.clone(), &service.namespace);
    if services.get_opt(&service.name).await.map_err(told)?.is_none() {
        let apply = demo_apply(cluster);
        bail!("{cluster} has no Service {service}: nothing was exported; `{apply}` makes one");
    }
    let api = Api::<ServiceExport>::namespaced(client.clone(), &service.namespace);
    let object = json!({
        "apiVersion": names::MULTICLUSTER_API_VERSION,
        "kind": "ServiceExport",
        "metadata": {"name": service.name, "namespace": service.namespace},
    });
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api.patch(&service.name, &parameters, &Patch::Apply(object)).await;
    applied
        .map_err(told)
        .with_context(|| format!("cannot export {service}"))?;
    Ok(())
}

/// An API server's refusal in its own words: printed as it is, kube's error is a Rust value.
pub(super) fn told(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{}", status.message),
        other => other.into(),
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// Deletes a ServiceExport.
pub(super) async fn unexport(client: &Client, service: &Name) -> anyhow::Result<()> {
    let api = Api::<ServiceExport>::namespaced(client.clone(), &service.namespace);
    match api.delete(&service.name, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => bail!("{service} is not exported: there is nothing to take back"),
        Err(error) => Err(told(error)).with_context(|| format!("cannot delete the export of {service}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_example_is_valid_to_a_cluster() {
        shared::tls::install_crypto_provider().ok();
        let cluster = sim::SimCluster::new(sim::SimConfig::default()).expect("starts");
        let client = cluster.client();
        for text in [EVERYWHERE, WEST, NORTH, GREETER] {
            assert!(!apply(&client, text).await.expect("accepted").is_empty());
        }
        assert!(cluster.get("ServiceExport", "shop", "cart").is_some());
        let east = sim::SimCluster::new(sim::SimConfig::default()).expect("starts");
        apply(&east.client(), EVERYWHERE).await.expect("accepted");
        apply(&east.client(), EAST).await.expect("accepted");
        unexport(&east.client(), &Name::new("shop", "cart"))
            .await
            .expect("deleted");
        assert!(east.get("ServiceExport", "shop", "cart").is_none());
        export(&east.client(), "east", &Name::new("shop", "cart"))
            .await
            .expect("exported");
        assert!(east.get("ServiceExport", "shop", "cart").is_some());
    }

    /// No Rust value is shown to a user.
    #[tokio::test]
    async fn what_is_not_there_is_said_in_words() {
        shared::tls::install_crypto_provider().ok();
        let cluster = sim::SimCluster::new(sim::SimConfig::default()).expect("starts");
        apply(&cluster.client(), EVERYWHERE).await.expect("accepted");
        let name = Name::new("shop", "nothing");
        let missing = unexport(&cluster.client(), &name).await.expect_err("refused");
        let text = format!("{missing:#}");
        assert_eq!(
            text,
            "shop/nothing is not exported: there is nothing to take back"
        );
        let missing = export(&cluster.client(), "north", &name)
            .await
            .expect_err("refused");
        assert_eq!(
            format!("{missing:#}"),
            "north has no Service shop/nothing: nothing was exported; `cargo demo apply north FILE` makes one"
        );
        assert!(cluster.get("ServiceExport", "shop", "nothing").is_none());
        let name = Name::new("nowhere", "cart");
        let missing = export(&cluster.client(), "north", &name)
            .await
            .expect_err("refused");
        assert_eq!(
            format!("{missing:#}"),
            "there is no namespace nowhere to export from"
        );
        let invalid = "apiVersion: v1\nkind: Service\nmetadata: {name: Wrong_Name, namespace: shop}\nspec: {ports: [{port: 80}]}";
        let refused = apply(&cluster.client(), invalid).await.expect_err("refused");
        let text = format!("{refused:#}");
        assert!(
            !text.contains("ErrorResponse") && !text.contains("Some("),
            "{text}"
        );
    }

    #[tokio::test]
    async fn mistakes_in_a_file_are_named() {
        let cluster = sim::SimCluster::new(sim::SimConfig::default()).expect("starts");
        for (text, told) in [
            ("", "no object"),
            ("a: [", "not YAML"),
            ("kind: Service", "names its apiVersion"),
            (
                "apiVersion: x.example/v1\nkind: Thing\nmetadata: {name: a}",
                "does not serve x.example/v1 Thing",
            ),
        ] {
            let error = apply(&cluster.client(), text).await.expect_err(text);
            assert!(format!("{error:#}").contains(told), "{error:#}");
        }
    }
}
