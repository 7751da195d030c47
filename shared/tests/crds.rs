//! The CRDs in `deploy/charts/crds/files`: fresh from the types, and equal to upstream's field by field; the types keep
//! every field. `ALLOWED` names the differences from upstream; any other, and an allowance nobody needs, fails.

mod support {
    pub(crate) mod flat;
}

use std::{collections::BTreeSet, fs, path::PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use support::flat::{differences, flatten};
use tributary_shared::api::{
    ClusterProfile, ClusterProperty, ServiceExport, ServiceImport, ServiceImportSpec, crd,
};

/// A difference from upstream that is meant: (CRD, how its path begins, why).
const ALLOWED: [(&str, &str, &str); 10] = [
    (
        "serviceexports",
        "categories",
        "mcs-api has it since v0.5.1; the copy is v0.5.0",
    ),
    (
        "serviceimports",
        "categories",
        "mcs-api has it since v0.5.1; the copy is v0.5.0",
    ),
    (
        "serviceexports",
        "labels.multicluster.x-k8s.io/release-version",
        "ours follows v0.5.2",
    ),
    (
        "serviceimports",
        "labels.multicluster.x-k8s.io/release-version",
        "ours follows v0.5.2",
    ),
    (
        "serviceimports",
        "v1alpha1.schema.status.endpointSliceObjects",
        "mcs-api has it since v0.5.1",
    ),
    (
        "serviceimports",
        "v1beta1.schema.status.endpointSliceObjects",
        "mcs-api has it since v0.5.1",
    ),
    (
        "serviceexports",
        "v1alpha1.additionalPrinterColumns",
        "ours show the conditions and where the export arrived",
    ),
    (
        "serviceexports",
        "v1beta1.additionalPrinterColumns",
        "ours show the conditions and where the export arrived",
    ),
    (
        "clusterproperties",
        "annotations.controller-gen",
        "names upstream's generator",
    ),
    (
        "clusterprofiles",
        "annotations.controller-gen",
        "names upstream's generator",
    ),
];

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read_yaml(path: &str) -> Value {
    let text = fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_norway::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Upstream's CRD for one of ours, with the annotation patch that about-api needs.
fn upstream(crd: &CustomResourceDefinition) -> Value {
    let directory = match crd.spec.names.plural.as_str() {
        "clusterproperties" => "about-api",
        "clusterprofiles" => "cluster-inventory-api",
        _ => "mcs-api",
    };
    let mut value = read_yaml(&format!(
        "e2e/fixtures/upstream/{directory}/{}",
        crd::file_name(crd)
    ));
    if directory == "about-api" {
        let patch = read_yaml("e2e/fixtures/upstream/about-api/annotation_for_clusterproperties.yaml");
        let annotations = patch["metadata"]["annotations"]
            .as_object()
            .expect("the patch sets annotations");
        for (key, approved) in annotations {
            value["metadata"]["annotations"][key] = approved.clone();
        }
    }
    value
}

#[test]
fn files_are_what_the_types_say() {
    let directory = repository().join("deploy/charts/crds/files");
    let mut expected = BTreeSet::new();
    for crd in crd::all() {
        let name = crd::file_name(&crd);
        let file = fs::read_to_string(directory.join(&name)).unwrap_or_default();
        let fresh = crd::file_text(&crd).expect("a CRD is valid YAML");
        assert!(
            file == fresh,
            "deploy/charts/crds/files/{name} is stale: run `cargo crdgen` and commit the result"
        );
        expected.insert(name);
    }
    let present: BTreeSet<String> = fs::read_dir(&directory)
        .expect("deploy/charts/crds/files exists")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(
        present, expected,
        "deploy/charts/crds/files holds exactly the generated files"
    );
}

#[test]
fn every_field_equals_upstreams() {
    let mut unused: BTreeSet<usize> = (0..ALLOWED.len()).collect();
    let mut unexpected = Vec::new();
    for crd in crd::all() {
        let plural = crd.spec.names.plural.clone();
        let ours = flatten(&serde_json::to_value(&crd).expect("a CRD is JSON"));
        let theirs = flatten(&upstream(&crd));
        assert!(
            ours.len() > 30,
            "{plural}: only {} properties were compared",
            ours.len()
        );
        for (path, difference) in differences(&ours, &theirs) {
            let allowance = ALLOWED
                .iter()
                .position(|(crd, prefix, _)| *crd == plural && path.starts_with(prefix));
            match allowance {
                Some(index) => drop(unused.remove(&index)),
                None => unexpected.push(format!("{plural} {path}: {difference}")),
            }
        }
    }
    assert!(
        unexpected.is_empty(),
        "ours differ from upstream's:\n{}",
        unexpected.join("\n")
    );
    let unused: Vec<_> = unused.into_iter().map(|index| ALLOWED[index]).collect();
    assert!(
        unused.is_empty(),
        "allowed differences that do not exist (any more): {unused:?}"
    );
}

#[test]
fn the_comparison_sees_every_kind_of_difference() {
    let ours = serde_json::to_value(crd::service_imports()).expect("a CRD is JSON");
    let spec = "/spec/versions/1/schema/openAPIV3Schema/properties/spec";
    let conditions = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions";
    let profile = serde_json::to_value(crd::cluster_profiles()).expect("a CRD is JSON");
    let manager = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/clusterManager/x-kubernetes-validations";
    for (base, pointer, key, changed) in [
        (
            &ours,
            format!("{spec}/properties/ips"),
            "maxItems",
            Some(Value::from(1)),
        ),
        (
            &ours,
            format!("{spec}/properties/type"),
            "enum",
            Some(Value::from(vec!["Headless"])),
        ),
        (
            &ours,
            format!("{spec}/properties/ports"),
            "x-kubernetes-list-type",
            None,
        ),
        (
            &ours,
            spec.to_owned(),
            "required",
            Some(Value::from(vec!["type"])),
        ),
        (
            &ours,
            format!("{spec}/properties/ports/items/properties/port"),
            "type",
            Some(Value::from("string")),
        ),
        (
            &ours,
            format!("{spec}/properties/sessionAffinity"),
            "default",
            Some(Value::from("None")),
        ),
        (
            &ours,
            conditions.to_owned(),
            "x-kubernetes-list-map-keys",
            Some(Value::from(vec!["reason"])),
        ),
        (
            &ours,
            format!("{conditions}/items/properties/reason"),
            "pattern",
            None,
        ),
        (
            &ours,
            "/spec/versions/0".to_owned(),
            "served",
            Some(Value::from(false)),
        ),
        (&ours, "/spec/versions/1".to_owned(), "subresources", None),
        (&ours, "/spec".to_owned(), "scope", Some(Value::from("Cluster"))),
        (
            &profile,
            format!("{manager}/0"),
            "rule",
            Some(Value::from("true")),
        ),
    ] {
        let mut other = base.clone();
        let target = other
            .pointer_mut(&pointer)
            .and_then(Value::as_object_mut)
            .expect(&pointer);
        match changed {
            Some(value) => drop(target.insert(key.to_owned(), value)),
            None => drop(target.remove(key).expect(key)),
        }
        let found = differences(&flatten(base), &flatten(&other));
        assert!(!found.is_empty(), "changing {key} at {pointer} goes unnoticed");
    }
}

#[test]
fn the_types_lose_nothing_of_a_sample() {
    let mut kinds = BTreeSet::new();
    for entry in fs::read_dir(repository().join("e2e/fixtures/samples/good")).expect("samples exist") {
        let path = entry.expect("readable").path();
        let text = fs::read_to_string(&path).expect("readable");
        for document in serde_norway::Deserializer::from_str(&text) {
            let sample = Value::deserialize(document).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let kind = sample["kind"].as_str().expect("a kind").to_owned();
            let kept = match kind.as_str() {
                "ServiceExport" => round_trip::<ServiceExport>(&sample),
                "ServiceImport" => round_trip::<ServiceImport>(&sample),
                "ClusterProperty" => round_trip::<ClusterProperty>(&sample),
                "ClusterProfile" => round_trip::<ClusterProfile>(&sample),
                _ => continue, // Kubernetes' own kinds
            };
            for part in ["spec", "status"] {
                let empty = part == "spec" && sample.get(part).is_none();
                let want = if empty {
                    serde_json::json!({})
                } else {
                    sample[part].clone()
                };
                assert_eq!(kept[part], want, "{part} of a {kind} in {path:?}");
            }
            kinds.insert(kind);
        }
    }
    assert_eq!(kinds.len(), 4, "samples of {kinds:?} only");
}

/// Reads a sample as its type and writes it again. An older version has the same form.
fn round_trip<K: DeserializeOwned + Serialize>(sample: &Value) -> Value {
    let object: K =
        serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{sample}: {error}"));
    serde_json::to_value(&object).expect("an object is JSON")
}

#[test]
fn an_import_without_ports_says_so_with_an_empty_list() {
    let import = ServiceImport::new("cart", ServiceImportSpec::default());
    let value = serde_json::to_value(&import).expect("an object is JSON");
    assert_eq!(value["apiVersion"], "multicluster.x-k8s.io/v1beta1");
    assert_eq!(
        value["spec"],
        serde_json::json!({"type": "ClusterSetIP", "ports": []})
    );
}
