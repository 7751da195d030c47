//! Clients' first requests: versions, groups, resources, OpenAPI, health. Describes the served kinds; never touches
//! objects.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use serde_json::{Value, json};

use super::kinds::{Kind, Kinds};

/// The version that a simulated cluster reports.
pub const GIT_VERSION: &str = "v1.36.3+simulated";

/// The named checks of `/readyz?verbose`.
const CHECKS: &[&str] = &["ping", "log", "etcd", "informer-sync", "shutdown"];

/// The answer to a discovery request; nothing if the path is another one.
pub(crate) fn answer(kinds: &Kinds, path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Some(
            json!({"major": "1", "minor": "36", "gitVersion": GIT_VERSION, "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "simulated"}),
        ),
        ["readyz" | "livez" | "healthz"] => {
            let lines: Vec<String> = CHECKS.iter().map(|check| format!("[+]{check} ok")).collect();
            Some(json!(format!(
                "{}\n{} check passed\n",
                lines.join("\n"),
                parts[0]
            )))
        }
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(kinds)})),
        ["apis", group] => groups(kinds)
            .into_iter()
            .find(|found| found["name"] == json!(group)),
        ["api", version] => resources(kinds, "", version),
        ["apis", group, version] => resources(kinds, group, version),
        _ => None,
    }
}

/// OpenAPI documents that are kept, those of all clusters of this process together: a swarm starts thousands of
/// agents that ask for the same few.
const DOCUMENTS_MAX: usize = 256;

/// Cached documents: by the digests of the served kinds, and the path.
static DOCUMENTS: Mutex<BTreeMap<(u64, String), Bytes>> = Mutex::new(BTreeMap::new());

/// The path of the second version of OpenAPI, which kubectl before 1.27 reads before it applies.
const OPENAPI_V2: &str = "/openapi/v2";

/// An OpenAPI v2 document without definitions, in the protobuf that such a kubectl asks for: the texts `2.0`,
/// `Kubernetes` and `v1`, and no paths. What it does not find described it leaves to the server to judge.
const OPENAPI_V2_EMPTY: &[u8] = b"\n\x032.0\x12\x10\n\nKubernetes\x12\x02v1B\0";

/// The OpenAPI document under a path, as it is sent; nothing if the path is another one.
pub(crate) fn document(kinds: &Kinds, path: &str) -> Option<Bytes> {
    if path == OPENAPI_V2 {
        return Some(Bytes::from_static(OPENAPI_V2_EMPTY));
    }
    if !path.starts_with("/openapi/v3") {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    kinds.all().iter().for_each(|kind| kind.digest.hash(&mut hasher));
    let key = (hasher.finish(), path.to_owned());
    let mut documents = DOCUMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = documents.get(&key) {
        return Some(known.clone());
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let document = match parts.as_slice() {
        ["openapi", "v3"] => openapi_index(kinds),
        ["openapi", "v3", "api", version] => openapi(kinds, "", version)?,
        ["openapi", "v3", "apis", group, version] => openapi(kinds, group, version)?,
        _ => return None,
    };
    if documents.len() >= DOCUMENTS_MAX {
        documents.clear();
    }
    let text = Bytes::from(document.to_string());
    documents.insert(key, text.clone());
    Some(text)
}

fn groups(kinds: &Kinds) -> Vec<Value> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds.all().iter().filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(&kind.group).or_default();
        let new = kind
            .versions
            .iter()
            .map(String::as_str)
            .filter(|version| !versions.contains(version));
        let new: Vec<&str> = new.collect();
        versions.extend(new);
    }
    let group = |(name, mut versions): (&str, Vec<&str>)| {
        // A beta is preferred to an alpha, and any to none.
        versions.sort_by_key(|version| (version.contains("alpha"), version.contains("beta")));
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
            .collect();
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0]})
    };
    groups.into_iter().map(group).collect()
}

fn served<'a>(kinds: &'a Kinds, group: &str, version: &str) -> Vec<&'a Kind> {
    let serves = |kind: &&Kind| kind.group == group && kind.versions.iter().any(|served| served == version);
    kinds.all().iter().map(AsRef::as_ref).filter(serves).collect()
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for kind in served(kinds, group, version) {
        resources.push(json!({"name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
            "shortNames": kind.short_names, "categories": kind.categories}));
        if kind.has_status {
            resources.push(json!({"name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "kind": kind.kind, "verbs": ["get", "patch", "update"]}));
        }
        if kind.has_scale {
            resources.push(json!({"name": format!("{}/scale", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]}));
        }
    }
    let name = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!resources.is_empty())
        .then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}))
}

fn openapi_index(kinds: &Kinds) -> Value {
    let mut paths = serde_json::Map::new();
    for kind in kinds.all() {
        for version in &kind.versions {
            let root = if kind.group.is_empty() { "api" } else { "apis" };
            let path = format!("{root}/{}", kind.api_version(version));
            // The hash changes with the document, so that a client that caches sees a changed CRD.
            let mut hasher = DefaultHasher::new();
            let described = served(kinds, &kind.group, version);
            described.iter().for_each(|kind| kind.digest.hash(&mut hasher));
            let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// One group's document: that PATCH takes fieldValidation (kubectl insists), and every custom kind's schema.
fn openapi(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let (mut paths, mut schemas) = (serde_json::Map::new(), serde_json::Map::new());
    for kind in served(kinds, group, version) {
        let which = json!({"group": group, "version": version, "kind": kind.kind});
        let scope = if kind.namespaced {
            "namespaces/{namespace}/"
        } else {
            ""
        };
        let root = if group.is_empty() { "api" } else { "apis" };
        let path = format!(
            "/{root}/{}/{scope}{}/{{name}}",
            kind.api_version(version),
            kind.plural
        );
        let patch = json!({"x-kubernetes-group-version-kind": which, "x-kubernetes-action": "patch", "responses": {},
            "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]});
        paths.insert(path, json!({"patch": patch}));
        let mut schema = if kind.custom {
            Value::clone(&kind.schema(version))
        } else {
            json!({"type": "object"})
        };
        schema["x-kubernetes-group-version-kind"] = json!([which]);
        let reversed: Vec<&str> = group.split('.').rev().filter(|part| !part.is_empty()).collect();
        schemas.insert(
            format!("{}.{version}.{}", reversed.join("."), kind.kind)
                .trim_start_matches('.')
                .into(),
            schema,
        );
    }
    let info = json!({"title": "Kubernetes", "version": GIT_VERSION});
    (!paths.is_empty()).then(
        || json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}),
    )
}
