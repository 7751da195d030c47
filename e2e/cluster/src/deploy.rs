//! Owns: Kubernetes manifests as objects: reading those in `deploy/` and `fixtures/`, applying them to a cluster.
//! Never: knows what is in them.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::GroupVersionKind;
use serde::Deserialize;

use crate::{charts, definitions};

/// The directories of plain manifests in the order in which a member that also runs the hub installs them.
pub const DIRECTORIES: [&str; 4] = ["crds", "hub", "agent", "coredns"];
/// The admission policy that keeps everybody but the agent away from what carries its label.
pub const ONLY_THE_AGENT_WRITES: &str = "tributary-only-the-agent-writes";
/// The admission policy that keeps everybody but the agent away from what a member's cluster says of itself.
pub const MEMBERSHIP_IS_IMMUTABLE: &str = "tributary-membership-is-immutable";
/// Kind that puts an admission policy into force.
pub const POLICY_BINDING: &str = "ValidatingAdmissionPolicyBinding";
/// The field manager of whoever installs: not one of the programs under test.
const INSTALLER: &str = "tributary-installer";

/// The directory of plain manifests of this name in this repository: rendered ones lie in `deploy/manifests`, what no
/// chart has in `deploy`.
pub fn directory(directory: &str) -> PathBuf {
    let deploy = charts::root().join("deploy");
    if charts::CHARTS.contains(&directory) {
        return deploy.join("manifests").join(directory);
    }
    deploy.join(directory)
}

/// `e2e/fixtures/<path>` of this repository.
pub fn fixture(path: &str) -> PathBuf {
    charts::root().join("e2e/fixtures").join(path)
}

/// Every object in the YAML files of a directory, by file name and then by place.
pub fn read_directory(directory: &Path) -> anyhow::Result<Vec<DynamicObject>> {
    let mut objects = Vec::new();
    for path in yaml_files(directory)? {
        objects.extend(read_file(&path)?);
    }
    Ok(objects)
}

/// The YAML files of a directory, by name.
pub fn yaml_files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
    ensure!(!paths.is_empty(), "{} holds no YAML file", directory.display());
    paths.sort();
    Ok(paths)
}

/// Every object in a YAML file.
pub fn read_file(path: &Path) -> anyhow::Result<Vec<DynamicObject>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let objects: Result<Vec<_>, _> = serde_norway::Deserializer::from_str(&text)
        .map(DynamicObject::deserialize)
        .collect();
    objects.with_context(|| format!("{} holds something that is no object", path.display()))
}

/// The objects that tests install from a directory of this name.
///
/// Left out is what would keep a test from playing everybody: the rules that only the agent writes what carries its
/// label, and what a member's cluster says of itself. The rule about what the agent writes is there, so that every scenario on a real cluster keeps it.
pub fn installed(directory_name: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let mut objects = read_directory(&directory(directory_name))?;
    let left_out = [ONLY_THE_AGENT_WRITES, MEMBERSHIP_IS_IMMUTABLE];
    objects.retain(|object| kind(object) != POLICY_BINDING || !left_out.contains(&name(object)));
    Ok(objects)
}

/// Installs whole directories of manifests, as `kubectl apply --server-side -f DIRECTORY …` would: in the order of the
/// directories, of the files' names, and of the objects in them. Twice is as good as once.
pub async fn install(client: &Client, directories: &[&str]) -> anyhow::Result<()> {
    let mut objects = Vec::new();
    for directory in directories {
        objects.extend(installed(directory)?);
    }
    install_objects(client, &objects).await
}

/// Installs these objects in their order, and waits until the definitions among them are served.
pub async fn install_objects(client: &Client, objects: &[DynamicObject]) -> anyhow::Result<()> {
    for object in objects {
        apply(client, object).await?;
    }
    for object in objects
        .iter()
        .filter(|object| kind(object) == "CustomResourceDefinition")
    {
        definitions::served(client, name(object)).await?;
    }
    Ok(())
}

/// Applies one object, and its status where it has one. A field that the cluster does not know is an error.
pub async fn apply(client: &Client, object: &DynamicObject) -> anyhow::Result<DynamicObject> {
    let api = api(client, object)?;
    let mut parameters = PatchParams::apply(INSTALLER).force();
    parameters.field_validation = Some(ValidationDirective::Strict);
    let shown = || format!("apply {} {}", kind(object), name(object));
    let mut applied = api
        .patch(name(object), &parameters, &Patch::Apply(object))
        .await
        .with_context(shown)?;
    if object.data.get("status").is_some() {
        let status = api
            .patch_status(name(object), &parameters, &Patch::Apply(object))
            .await;
        applied = status.with_context(|| format!("{}'s status", shown()))?;
    }
    Ok(applied)
}

/// The API for objects of this one's kind, in its namespace if it has one.
pub fn api(client: &Client, object: &DynamicObject) -> anyhow::Result<Api<DynamicObject>> {
    let types = object
        .types
        .as_ref()
        .context("an object names its apiVersion and kind")?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    Ok(match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

/// The object's kind; empty if it names none.
pub fn kind(object: &DynamicObject) -> &str {
    object.types.as_ref().map_or("", |types| types.kind.as_str())
}

/// The object's name; empty if it has none.
pub fn name(object: &DynamicObject) -> &str {
    object.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shared::process::DRAIN_TIMEOUT;

    use super::*;

    /// `kubectl apply -f` on a fresh cluster refuses an object whose namespace comes later.
    #[test]
    fn every_directory_makes_a_namespace_before_what_goes_into_it() {
        for name in DIRECTORIES {
            let mut made = BTreeSet::from(["kube-system".to_owned()]);
            let objects = read_directory(&directory(name)).expect("manifests");
            for object in &objects {
                if kind(object) == "Namespace" {
                    made.insert(super::name(object).to_owned());
                }
                let namespace = object.metadata.namespace.as_ref();
                let shown = format!("deploy/{name}: {} {}", kind(object), super::name(object));
                assert!(
                    namespace.is_none_or(|namespace| made.contains(namespace)),
                    "{shown}"
                );
            }
        }
    }

    /// A pod that is killed while it drains says no goodbye and keeps its Lease.
    #[test]
    fn pods_are_given_longer_than_they_need_to_end_in_good_order() {
        let mut workloads = 0;
        for name in ["hub", "agent"] {
            for object in read_directory(&directory(name)).expect("manifests") {
                let Some(template) = object.data.pointer("/spec/template/spec") else {
                    continue;
                };
                let grace = template["terminationGracePeriodSeconds"]
                    .as_u64()
                    .expect("stated");
                let needed = match name {
                    "agent" => DRAIN_TIMEOUT + agent::lease::RELEASE_WAIT,
                    _ => DRAIN_TIMEOUT,
                };
                assert!(
                    grace > needed.as_secs(),
                    "deploy/{name}: {grace} s are not more than {needed:?}"
                );
                workloads += 1;
            }
        }
        assert_eq!(workloads, 2);
    }
}
