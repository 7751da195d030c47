//! The CustomResourceDefinitions as files: derived schema, made structural as upstream's are, in every served version.
//! The Rust types are the source; this adds what a derive cannot say and never invents a field.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_core::CustomResourceExt;

use super::{
    cluster_profile::ClusterProfile,
    cluster_property::ClusterProperty,
    names::{LABEL_CRD_RELEASE_VERSION, LABEL_CRD_SCHEMA_REVISION},
    service_export::ServiceExport,
    service_import::ServiceImport,
};

/// The older version that is served beside the stored one; CoreDNS reads ServiceImports in it.
const OLDER_VERSION: &str = "v1alpha1";
/// The mcs-api release whose schema ours equals; only the category `multicluster` is added.
const MCS_API_RELEASE: &str = "v0.5.2";
/// Number of changes of our copy of that schema.
const MCS_API_SCHEMA_REVISION: &str = "0";

/// Every CRD that Tributary reads or writes objects of, in the order in which they are installed.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        service_exports(),
        service_imports(),
        cluster_properties(),
        cluster_profiles(),
    ]
}

/// `serviceexports.multicluster.x-k8s.io`.
pub fn service_exports() -> CustomResourceDefinition {
    with_mcs_labels(with_older_version(structural(ServiceExport::crd())))
}

/// `serviceimports.multicluster.x-k8s.io`.
pub fn service_imports() -> CustomResourceDefinition {
    with_mcs_labels(with_older_version(structural(ServiceImport::crd())))
}

/// `clusterproperties.about.k8s.io`.
pub fn cluster_properties() -> CustomResourceDefinition {
    with_older_version(structural(ClusterProperty::crd()))
}

/// `clusterprofiles.multicluster.x-k8s.io`.
pub fn cluster_profiles() -> CustomResourceDefinition {
    structural(ClusterProfile::crd())
}

/// The name of the file a CRD is kept in: group, underscore, plural, as upstream names its own.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// The whole text of that file.
pub fn file_text(crd: &CustomResourceDefinition) -> Result<String, serde_norway::Error> {
    let mut text =
        String::from("# Generated from the Rust types by `cargo crdgen`. Do not edit: change the types.\n");
    let yaml = serde_norway::to_string(crd)?;
    write!(text, "{yaml}").expect("a String takes any text");
    Ok(text)
}

/// Serves the one schema under the older version too. The two are identical, so nothing is converted.
fn with_older_version(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut older = crd.spec.versions[0].clone();
    older.name = OLDER_VERSION.to_owned();
    older.storage = false;
    crd.spec.versions.insert(0, older);
    crd
}

/// Adds the labels that tools compare before they replace an installed mcs-api CRD.
fn with_mcs_labels(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let labels = crd.metadata.labels.get_or_insert_default();
    labels.insert(LABEL_CRD_RELEASE_VERSION.to_owned(), MCS_API_RELEASE.to_owned());
    labels.insert(
        LABEL_CRD_SCHEMA_REVISION.to_owned(),
        MCS_API_SCHEMA_REVISION.to_owned(),
    );
    crd
}

/// Turns derived schemas into upstream's form: the three standard fields declared, nothing nullable, no defaults.
fn structural(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        let validation = version.schema.as_mut();
        let Some(root) = validation.and_then(|validation| validation.open_api_v3_schema.as_mut()) else {
            continue;
        };
        root.title = None;
        strip_derived(root);
        let properties = root.properties.get_or_insert_default();
        for (name, type_) in [
            ("apiVersion", "string"),
            ("kind", "string"),
            ("metadata", "object"),
        ] {
            let declared = JSONSchemaProps {
                type_: Some(type_.to_owned()),
                ..Default::default()
            };
            properties.insert(name.to_owned(), declared);
        }
    }
    crd
}

/// Removes `nullable`, a null among enum values and `default`, which the derives add for `Option` and
/// `serde(default)`: how Rust reads an absent field is no part of the contract.
fn strip_derived(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.default = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        strip_derived(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => strip_derived(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(strip_derived),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        strip_derived(value);
    }
}
