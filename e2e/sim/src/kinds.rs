//! The kinds that a simulated cluster serves: the built-in ones as a table, the custom ones from their CRDs.
//! Owns names, scopes and schemas; never holds an object.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, LazyLock},
};

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};

/// One served kind in one group.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    /// `plural.group`, the name under which the store keeps the objects; both groups of Event are one.
    key: String,
    /// Changes with the definition.
    pub(crate) digest: u64,
    pub(crate) group: String,
    /// Served versions, the preferred one first.
    pub(crate) versions: Vec<String>,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) has_status: bool,
    /// Has the scale subresource: `spec.replicas` can be set through it.
    pub(crate) has_scale: bool,
    pub(crate) has_generation: bool,
    /// The schema comes from a CRD: undeclared fields are pruned or refused.
    pub(crate) custom: bool,
    /// OpenAPI schema per version; a built-in kind's states what is checked or merged by.
    pub(crate) schemas: BTreeMap<String, Arc<Value>>,
    /// The columns that a CRD names for `kubectl get`, per version.
    columns: BTreeMap<String, Vec<Value>>,
    /// An object of this kind before anything was set in it (decides which maps get an owner).
    pub(crate) blank: Value,
}

impl Kind {
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn qualified(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    pub(crate) fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() {
            version.into()
        } else {
            format!("{}/{version}", self.group)
        }
    }

    pub(crate) fn schema(&self, version: &str) -> Arc<Value> {
        self.schemas.get(version).cloned().unwrap_or_default()
    }

    /// The columns of a custom kind behind its name.
    pub(crate) fn printer_columns(&self, version: &str) -> &[Value] {
        self.columns.get(version).map_or(&[], Vec::as_slice)
    }

    /// Reads a CustomResourceDefinition.
    fn custom(definition: &Value) -> anyhow::Result<Self> {
        let text = |pointer: &str| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let texts = |pointer: &str| -> Vec<String> {
            let list = definition
                .pointer(pointer)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            list.iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        };
        let need = |pointer: &str| text(pointer).ok_or_else(|| anyhow::anyhow!("the CRD has no {pointer}"));
        let (mut versions, mut schemas, mut columns) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (mut has_status, mut has_scale) = (false, false);
        for version in definition
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if version["served"] == json!(true) {
                let name = version["name"].as_str().unwrap_or_default().to_owned();
                let mut schema = version["schema"]["openAPIV3Schema"].clone();
                schema["properties"]["metadata"] = metadata_schema();
                schemas.insert(name.clone(), Arc::new(schema));
                columns.insert(name.clone(), printer_columns(version));
                has_status |= version.pointer("/subresources/status").is_some();
                has_scale |= version.pointer("/subresources/scale").is_some();
                // The stored version is the preferred one, as long as it is the newest.
                versions.insert(
                    if version["storage"] == json!(true) {
                        0
                    } else {
                        versions.len()
                    },
                    name,
                );
            }
        }
        let (group, kind, plural) = (
            need("/spec/group")?,
            need("/spec/names/kind")?,
            need("/spec/names/plural")?,
        );
        let mut hasher = DefaultHasher::new();
        definition.to_string().hash(&mut hasher);
        Ok(Self {
            key: match kind.as_str() {
                "Event" => "events".into(),
                _ => qualified(&plural, &group),
            },
            digest: hasher.finish(),
            group,
            kind,
            plural,
            singular: text("/spec/names/singular").unwrap_or_default(),
            short_names: texts("/spec/names/shortNames"),
            categories: texts("/spec/names/categories"),
            namespaced: need("/spec/scope")? == "Namespaced",
            has_generation: true,
            custom: true,
            blank: json!({}),
            versions,
            schemas,
            columns,
            has_status,
            has_scale,
        })
    }
}

fn printer_columns(version: &Value) -> Vec<Value> {
    let stated = version["additionalPrinterColumns"].as_array().cloned();
    stated.unwrap_or_else(|| {
        vec![json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})]
    })
}

fn qualified(plural: &str, group: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}

/// A CustomResourceDefinition, read once for all clusters that have it.
#[derive(Debug, Clone)]
pub struct Crd {
    definition: Arc<Value>,
    kind: Arc<Kind>,
}

impl Crd {
    /// Reads a definition.
    pub fn read(definition: Value) -> anyhow::Result<Self> {
        let kind = Kind::custom(&definition).context("not a CustomResourceDefinition")?;
        Ok(Self {
            kind: Arc::new(kind),
            definition: Arc::new(definition),
        })
    }

    /// Its `metadata.name`.
    pub fn name(&self) -> &str {
        self.kind.key()
    }

    /// The definition itself.
    pub fn definition(&self) -> &Value {
        &self.definition
    }
}

/// Every served kind, in a fixed order.
#[derive(Debug, Clone)]
pub(crate) struct Kinds(Vec<Arc<Kind>>);

impl Kinds {
    pub(crate) fn new(crds: &[Crd]) -> Self {
        let mut kinds = Self(BUILT_IN.clone());
        crds.iter().for_each(|crd| kinds.install(crd));
        kinds
    }

    /// Serves the CRD's kind from now on; one of the same name is replaced.
    pub(crate) fn install(&mut self, crd: &Crd) {
        self.remove(crd.name());
        self.0.push(crd.kind.clone());
    }

    pub(crate) fn remove(&mut self, qualified: &str) -> Option<Arc<Kind>> {
        let at = self
            .0
            .iter()
            .position(|kind| kind.custom && kind.key() == qualified)?;
        Some(self.0.remove(at))
    }

    pub(crate) fn all(&self) -> &[Arc<Kind>] {
        &self.0
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let serves = |kind: &Kind| {
            kind.group == group && kind.plural == plural && kind.versions.iter().any(|v| v == version)
        };
        self.0.iter().find(|kind| serves(kind)).cloned()
    }

    /// Finds a kind by the name people use: `ServiceImport`.
    pub(crate) fn named(&self, kind: &str) -> Option<Arc<Kind>> {
        self.0.iter().find(|candidate| candidate.kind == kind).cloned()
    }

    pub(crate) fn by_key(&self, key: &str) -> Option<Arc<Kind>> {
        self.0.iter().find(|kind| kind.key() == key).cloned()
    }
}

fn metadata_schema() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "ownerReferences": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                            "items": {"x-kubernetes-map-type": "atomic"}},
        "finalizers": {"x-kubernetes-list-type": "set"},
    }})
}

static BUILT_IN: LazyLock<Vec<Arc<Kind>>> =
    LazyLock::new(|| built_in().expect("built_in.yaml is tested by every cluster"));

/// The kinds of `built_in.yaml`: read as CRDs, but undeclared fields of them are kept.
fn built_in() -> anyhow::Result<Vec<Arc<Kind>>> {
    let mut kinds = Vec::new();
    for document in serde_norway::Deserializer::from_str(include_str!("built_in.yaml")) {
        let definition = Value::deserialize(document)?;
        let kind = Kind::custom(&definition)?;
        kinds.push(Arc::new(Kind {
            has_generation: matches!(kind.kind.as_str(), "Deployment" | "EndpointSlice"),
            custom: false,
            blank: definition["blank"].clone(),
            ..kind
        }));
    }
    Ok(kinds)
}
