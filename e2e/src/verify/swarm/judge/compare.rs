//! One cluster beside what it must hold: the first difference, in words.

use std::collections::BTreeSet;

use serde_json::Value;
use shared::model::{ServiceKey, derived_name::derived_service_name};

use super::{
    Shown,
    expected::{Expected, Port, Slice, ports_of, slice_of},
    text,
};
use crate::verify::swarm::site::Site;

/// Compares the objects of one service.
pub(super) fn compare(
    cluster: &Shown,
    site: &Site,
    service: &ServiceKey,
    expected: Option<&Expected>,
) -> Result<(), String> {
    let key = (service.namespace.to_string(), service.name.to_string());
    for ((kind, of), made) in &site.strangers {
        if of == service {
            let found = site
                .cluster
                .get(kind, &service.namespace, &text(&made["metadata"]["name"]));
            // A type that changes and the like is nobody's business; what its maker wrote is.
            if found.is_none_or(|found| found["spec"] != made["spec"]) {
                return Err(format!("a stranger's {kind} was touched"));
            }
        }
    }
    let stranger = |kind: &str| site.strangers.contains_key(&(kind.to_owned(), service.clone()));
    let (taken, derived_taken) = (stranger("ServiceImport"), stranger("Service"));
    let here = cluster.namespaces.contains(&*service.namespace);
    let expected = expected.filter(|_| here);
    let import = cluster.imports.get(&key).filter(|_| !taken);
    let derived_name = derived_service_name(&service.namespace, &service.name);
    let derived = cluster
        .services
        .get(&(key.0.clone(), derived_name))
        .filter(|_| !derived_taken);
    if let Some(export) = cluster.exports.get(&key) {
        compare_export(cluster, export, &key, expected)?;
    }
    if taken {
        return Ok(());
    }
    let mut slices: Vec<Slice> = cluster
        .slices_of("multicluster.kubernetes.io/service-name", service)
        .map(|slice| {
            slice_of(
                &text(&slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"]),
                slice,
                |_| true,
            )
        })
        .collect();
    slices.sort();
    let Some(expected) = expected else {
        return match (import, derived, slices.is_empty()) {
            (None, None, true) => Ok(()),
            _ => Err(format!(
                "nobody exports it, and there is import {:?} derived {:?} slices {slices:?}",
                import.is_some(),
                derived.is_some()
            )),
        };
    };
    let import = import.ok_or("the import is missing")?;
    compare_import(import, expected)?;
    if derived_taken {
        return Ok(());
    }
    if slices != expected.slices {
        return Err(format!(
            "slices are {slices:?}, they should be {:?}",
            expected.slices
        ));
    }
    match (derived, expected.headless) {
        (None, true) => Ok(()),
        (Some(derived), false) => compare_derived(derived, import, expected),
        (found, _) => Err(format!(
            "derived Service: {}",
            if found.is_some() {
                "there, and headless"
            } else {
                "missing"
            }
        )),
    }
}

fn compare_import(import: &Value, expected: &Expected) -> Result<(), String> {
    let spec = &import["spec"];
    let headless = spec["type"] == "Headless";
    if headless != expected.headless {
        return Err(format!("the import's type is {}", spec["type"]));
    }
    let ports: BTreeSet<Port> = ports_of(&spec["ports"]).into_iter().collect();
    if ports != expected.ports {
        return Err(format!(
            "the import's ports are {ports:?}, they should be {:?}",
            expected.ports
        ));
    }
    if !headless && text(&spec["sessionAffinity"]) != expected.affinity {
        return Err(format!(
            "the import's sessionAffinity is {}",
            spec["sessionAffinity"]
        ));
    }
    let clusters = import["status"]["clusters"].as_array().into_iter().flatten();
    let clusters: BTreeSet<String> = clusters.map(|cluster| text(&cluster["cluster"])).collect();
    if clusters != expected.clusters {
        return Err(format!(
            "status.clusters is {clusters:?}, it should be {:?}",
            expected.clusters
        ));
    }
    Ok(())
}

fn compare_derived(derived: &Value, import: &Value, expected: &Expected) -> Result<(), String> {
    let ports: BTreeSet<Port> = ports_of(&derived["spec"]["ports"]).into_iter().collect();
    if ports != expected.ports {
        return Err(format!(
            "the derived Service's ports are {ports:?}, they should be {:?}",
            expected.ports
        ));
    }
    if derived["spec"]["clusterIPs"] != import["spec"]["ips"] {
        return Err(format!(
            "ips are {}, the derived Service has {}",
            import["spec"]["ips"], derived["spec"]["clusterIPs"]
        ));
    }
    if derived["spec"]["ipFamilies"] != import["spec"]["ipFamilies"] {
        return Err("ipFamilies are not the derived Service's".into());
    }
    if derived["spec"]["sessionAffinity"] != expected.affinity.as_str() {
        return Err(format!(
            "the derived Service's sessionAffinity is {}",
            derived["spec"]["sessionAffinity"]
        ));
    }
    Ok(())
}

fn compare_export(
    cluster: &Shown,
    export: &Value,
    key: &(String, String),
    expected: Option<&Expected>,
) -> Result<(), String> {
    let condition = |kind: &str| {
        let all = export["status"]["conditions"].as_array().into_iter().flatten();
        let found = all.into_iter().find(|condition| condition["type"] == kind);
        found.map(|condition| (text(&condition["status"]), text(&condition["reason"])))
    };
    let valid = match cluster.services.get(key) {
        None => ("False", "NoService"),
        Some(service) if service["spec"]["type"] == "ExternalName" => ("False", "InvalidServiceType"),
        Some(_) => ("True", "Valid"),
    };
    if condition("Valid") != Some((valid.0.into(), valid.1.into())) {
        return Err(format!(
            "Valid is {:?}, it should be {valid:?}",
            condition("Valid")
        ));
    }
    let conflict = expected
        .filter(|_| valid.0 == "True")
        .map(|expected| expected.conflict);
    let found = condition("Conflict").map(|(status, _)| status == "True");
    if conflict != found {
        return Err(format!("Conflict is {found:?}, it should be {conflict:?}"));
    }
    Ok(())
}
