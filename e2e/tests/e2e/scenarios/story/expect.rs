//! The laws of every import, whatever the story, and of exports and their conditions.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use shared::model::ServiceKey;

use super::seen::{Seen, condition, label};

/// The import with everything that belongs to it: what the oracle demands beside it, and what it does not judge.
pub(crate) fn complete<'a>(seen: &'a Seen, name: &str) -> anyhow::Result<&'a Value> {
    let import = seen.import(name)?;
    let (spec, status) = (&import["spec"], &import["status"]);
    oracle::whole(&seen.picture(), &ServiceKey::new(&seen.namespace, name)?)
        .with_context(|| format!("the import {name} in {}", seen.cluster))?;
    has_condition(import, "Ready", "True", "Ready")?;
    same(
        &status["endpointSliceObjects"],
        &json!("Present"),
        "endpointSliceObjects",
    )?;
    if spec["type"] == "Headless" {
        ensure!(spec.get("ips").is_none(), "a headless import has IPs: {spec}");
    } else {
        let derived = seen.derived(name)?;
        not_owned(derived)?;
        ensure!(
            derived["spec"].get("selector").is_none(),
            "a derived Service has a selector: {derived}"
        );
    }
    for slice in seen.imported(name) {
        slice_is_marked(slice)?;
    }
    Ok(import)
}

/// An imported slice bears the marks that controllers go by, beside those that the oracle judges.
fn slice_is_marked(slice: &Value) -> anyhow::Result<()> {
    let manager = label(slice, "endpointslice.kubernetes.io/managed-by");
    ensure!(
        manager == "tributary-agent.tributary.dev",
        "managed by {manager:?}"
    );
    let source = label(slice, "multicluster.kubernetes.io/source-cluster");
    ensure!(!source.is_empty(), "a slice of no cluster: {slice}");
    not_owned(slice)?;
    let families = slice["endpoints"].as_array().into_iter().flatten();
    for address in families.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten()) {
        let is_ipv6 = address.as_str().is_some_and(|text| text.contains(':'));
        ensure!(
            is_ipv6 == (slice["addressType"] == "IPv6"),
            "{address} in a slice of {}",
            slice["addressType"]
        );
    }
    Ok(())
}

fn not_owned(object: &Value) -> anyhow::Result<()> {
    let owners = &object["metadata"]["ownerReferences"];
    ensure!(owners.is_null(), "garbage collection would follow {owners}");
    Ok(())
}

/// Nothing of an import is left.
pub(crate) fn gone(seen: &Seen, name: &str) -> anyhow::Result<()> {
    let cluster = &seen.cluster;
    ensure!(
        seen.import(name).is_err(),
        "the import {name} is still in {cluster}"
    );
    ensure!(
        seen.derived(name).is_err(),
        "the derived Service of {name} is still in {cluster}"
    );
    let left: Vec<&Value> = seen.imported(name).collect();
    ensure!(
        left.is_empty(),
        "slices of {name} are still in {cluster}: {left:?}"
    );
    Ok(())
}

/// The import comes from exactly these clusters.
pub(crate) fn from_clusters(import: &Value, wanted: &[&str]) -> anyhow::Result<()> {
    let listed = import["status"]["clusters"].as_array();
    let names: BTreeSet<&str> = listed
        .into_iter()
        .flatten()
        .filter_map(|one| one["cluster"].as_str())
        .collect();
    ensure!(
        names == wanted.iter().copied().collect(),
        "imported from {names:?}, not from {wanted:?}"
    );
    Ok(())
}

/// The spec of the import, but for its IPs.
pub(crate) fn spec_is(import: &Value, wanted: &Value) -> anyhow::Result<()> {
    let mut spec = import["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("ips");
    }
    same(&spec, wanted, "the import's spec")
}

/// The addresses behind the import, by cluster.
pub(crate) fn backends_are(seen: &Seen, name: &str, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    let wanted: BTreeSet<(String, String)> = wanted
        .iter()
        .map(|(cluster, address)| ((*cluster).to_owned(), (*address).to_owned()))
        .collect();
    let found = seen.backends(name);
    ensure!(found == wanted, "behind {name} stand {found:?}, not {wanted:?}");
    Ok(())
}

/// An object has a condition with this status and reason.
pub(crate) fn has_condition(object: &Value, kind: &str, status: &str, reason: &str) -> anyhow::Result<()> {
    let found = condition(object, kind)?;
    ensure!(
        found["status"] == status && found["reason"] == reason,
        "wanted {kind} {status}/{reason}, found {found}"
    );
    Ok(())
}

/// The export was accepted, and the hub found these conflicts; none if `reason` is empty.
pub(crate) fn exported(seen: &Seen, name: &str, reason: &str) -> anyhow::Result<()> {
    let export = seen.export(name)?;
    let judged = || -> anyhow::Result<()> {
        has_condition(export, "Valid", "True", "Valid")?;
        has_condition(export, "Ready", "True", "Exported")?;
        match reason {
            "" => has_condition(export, "Conflict", "False", "NoConflicts")?,
            reason => has_condition(export, "Conflict", "True", reason)?,
        }
        for kind in ["Valid", "Ready", "Conflict"] {
            same(
                &condition(export, kind)?["observedGeneration"],
                &export["metadata"]["generation"],
                kind,
            )?;
        }
        Ok(())
    };
    judged().with_context(|| format!("the export {name} in {}", seen.cluster))
}

/// The message of the export's condition Valid holds these words.
pub(crate) fn valid_says(seen: &Seen, name: &str, words: &str) -> anyhow::Result<()> {
    let valid = condition(seen.export(name)?, "Valid")?;
    let message = valid["message"].as_str().unwrap_or_default();
    ensure!(message.contains(words), "Valid says {message:?}, not {words:?}");
    Ok(())
}

/// The export was refused for this reason.
pub(crate) fn refused(seen: &Seen, name: &str, reason: &str) -> anyhow::Result<()> {
    let export = seen.export(name)?;
    has_condition(export, "Valid", "False", reason)?;
    has_condition(export, "Ready", "False", "Pending")?;
    ensure!(
        condition(export, "Conflict").is_err(),
        "a refused export has no conflict"
    );
    let message = condition(export, "Valid")?["message"]
        .as_str()
        .unwrap_or_default();
    ensure!(!message.is_empty(), "a refusal says what to do");
    Ok(())
}

/// Two values are the same.
pub(crate) fn same(found: &Value, wanted: &Value, what: &str) -> anyhow::Result<()> {
    ensure!(found == wanted, "{what} is {found}, not {wanted}");
    Ok(())
}
