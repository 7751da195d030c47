//! The version in which a cluster serves ServiceExport, ServiceImport, ClusterProfile and ClusterProperty: the newest that it has and that
//! is known. Everybody else names one version of a kind only; here a request goes where the kind is served, under the
//! name of the version there.
//! It never says what an older schema lacks, and changes no definition (ADR 0036).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, request::Parts};
use kube::{Client, client::Body};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};
use serde_json::Value;
use tracing::{info, warn};

use crate::api::names::{ABOUT_GROUP, MULTICLUSTER_GROUP};

/// A kind that follows here.
struct FollowedKind {
    group: &'static str,
    plural: &'static str,
    /// As people say it.
    name: &'static str,
    /// The version that everybody else names.
    named: &'static str,
    /// The versions that can be spoken, the newest first. Their schemas are one, but for fields that older ones lack or
    /// that newer ones refuse, and nobody writes; the API server keeps one object for all of them.
    versions: [&'static str; 2],
    /// True if a cluster with the older version lacks fields because of it.
    older_lacks_fields: bool,
}

const KINDS: [FollowedKind; 4] = [
    FollowedKind {
        group: MULTICLUSTER_GROUP,
        plural: "serviceexports",
        name: "ServiceExport",
        named: "v1beta1",
        versions: ["v1beta1", "v1alpha1"],
        older_lacks_fields: true,
    },
    FollowedKind {
        group: MULTICLUSTER_GROUP,
        plural: "serviceimports",
        name: "ServiceImport",
        named: "v1beta1",
        versions: ["v1beta1", "v1alpha1"],
        older_lacks_fields: true,
    },
    // A write satisfies both: v1alpha1 is what every release stores.
    FollowedKind {
        group: MULTICLUSTER_GROUP,
        plural: "clusterprofiles",
        name: "ClusterProfile",
        named: "v1alpha1",
        versions: ["v1alpha2", "v1alpha1"],
        older_lacks_fields: false,
    },
    FollowedKind {
        group: ABOUT_GROUP,
        plural: "clusterproperties",
        name: "ClusterProperty",
        named: "v1beta1",
        versions: ["v1beta1", "v1alpha1"],
        older_lacks_fields: false,
    },
];

/// In which version each kind was served last. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct ServedVersions {
    /// For each of [`KINDS`] its place in its versions.
    served: Arc<[AtomicUsize; KINDS.len()]>,
    shown: Family<KindVersion, Gauge>,
}

/// A version of a kind, as a metric names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindVersion {
    kind: &'static str,
    version: &'static str,
}

/// A request about one of [`KINDS`].
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    kind: usize,
    /// It begins a listing or a watch.
    begins: bool,
}

impl ServedVersions {
    /// 1 for the version in which a kind is served; nothing is shown of a kind that never was.
    pub fn shown(&self) -> Family<KindVersion, Gauge> {
        self.shown.clone()
    }

    /// Asks in the version that is served. A listing and a watch ask for the newest first, whatever was served before:
    /// so a definition that gained a version is followed without anything that watches it, at the price of one answer
    /// 404 each few minutes where it has not.
    pub(super) async fn ask(
        &self,
        client: &Client,
        request: Request<Body>,
    ) -> Result<Response<Body>, kube::Error> {
        match Asked::of(request.method(), request.uri().path()) {
            Some(asked) => self.send(client, &asked, request).await,
            None => client.send(request).await,
        }
    }

    async fn send(
        &self,
        client: &Client,
        asked: &Asked,
        request: Request<Body>,
    ) -> Result<Response<Body>, kube::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let mut unserved = None;
        for version in self.in_order(asked) {
            let kind = &KINDS[asked.kind];
            let renamed = renamed(&parts, &body, kind, kind.versions[version]);
            let answer = client.send(renamed).await?;
            if is_no_path(&answer) {
                unserved.get_or_insert(answer);
                continue;
            }
            if answer.status().is_success() {
                self.learn(asked.kind, version);
            }
            return Ok(answer);
        }
        // The result for the version that was asked for first: there is one.
        unserved.ok_or_else(|| kube::Error::Service("no version was asked for".into()))
    }

    fn in_order(&self, asked: &Asked) -> impl Iterator<Item = usize> {
        let known = self.served[asked.kind].load(Ordering::Relaxed);
        let first = if asked.begins { 0 } else { known };
        let others = (0..KINDS[asked.kind].versions.len()).filter(move |version| *version != first);
        std::iter::once(first).chain(others)
    }

    fn learn(&self, kind: usize, version: usize) {
        let before = self.served[kind].swap(version, Ordering::Relaxed);
        let FollowedKind { name, versions, .. } = KINDS[kind];
        let (newest, served) = (versions[0], versions[version]);
        for (place, version_name) in versions.iter().enumerate() {
            let labels = KindVersion {
                kind: name,
                version: version_name,
            };
            self.shown.get_or_create(&labels).set((place == version).into());
        }
        if version == before {
            return;
        }
        if version == 0 || !KINDS[kind].older_lacks_fields {
            info!(
                kind = name,
                "the kind is served in {served} now: it is read and written in it"
            );
        } else {
            warn!(
                kind = name,
                "the kind is served in {served} and not in {newest}: its definition is of an older mcs-api, and is left \
                 as it is. The kind is read and written in {served}, without fields that it lacks; to have them, put \
                 the definition of deploy/manifests/crds in its place"
            );
        }
    }
}

impl Asked {
    /// Nothing for what is about other kinds, or names a version by itself.
    fn of(method: &Method, path: &str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let [root, group, version] = [parts.next()?, parts.next()?, parts.next()?];
        if root != "apis" {
            return None;
        }
        let first = parts.next()?;
        let plural = if first == "namespaces" {
            parts.nth(1)?
        } else {
            first
        };
        Some(Self {
            kind: KINDS
                .iter()
                .position(|kind| kind.group == group && kind.plural == plural && kind.named == version)?,
            begins: method == Method::GET && parts.next().is_none(),
        })
    }
}

/// No path leads there: a version that is not served. A missing object is reported in JSON.
fn is_no_path(answer: &Response<Body>) -> bool {
    let plain = |value: &HeaderValue| value.as_bytes().starts_with(b"text/plain");
    answer.status() == StatusCode::NOT_FOUND && answer.headers().get(header::CONTENT_TYPE).is_some_and(plain)
}

/// The request in another version: its path, and every `apiVersion` in its body.
fn renamed(parts: &Parts, body: &[u8], kind: &FollowedKind, version: &str) -> Request<Body> {
    let api_version = |version: &str| format!("{}/{version}", kind.group);
    let (preferred, wanted) = (api_version(kind.named), api_version(version));
    let mut parts = parts.clone();
    let mut body = body.to_vec();
    if preferred != wanted {
        let uri = parts.uri.to_string().replacen(&preferred, &wanted, 1);
        if let Ok(uri) = uri.parse::<Uri>() {
            parts.uri = uri;
        }
        if let Ok(mut json) = serde_json::from_slice::<Value>(&body) {
            rename(&mut json, &preferred, &wanted);
            body = json.to_string().into_bytes();
        }
    }
    Request::from_parts(parts, Body::from(body))
}

fn rename(json: &mut Value, from: &str, to: &str) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "apiVersion" && text == from => to.clone_into(text),
                    value => rename(value, from, to),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
