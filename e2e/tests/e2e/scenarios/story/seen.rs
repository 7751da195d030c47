//! One cluster's API for the story's namespace, and the wait until it shows the right thing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::{Context, anyhow, ensure};
use cluster::clusterset::picture::picture;
use kube::api::ListParams;
use oracle::{self, Picture};
use serde_json::Value;
use shared::model::derived_name::derived_service_name;
use tokio::time::Instant;

use super::{CLUSTERS, EVENTUALLY_POLL, EVENTUALLY_WAIT, Kind, Story};

/// Everything in one namespace of one cluster, by name.
pub(crate) struct Seen {
    pub(crate) cluster: String,
    pub(crate) namespace: String,
    pub(crate) services: BTreeMap<String, Value>,
    pub(crate) slices: BTreeMap<String, Value>,
    pub(crate) exports: BTreeMap<String, Value>,
    pub(crate) imports: BTreeMap<String, Value>,
}

impl Story {
    /// A cluster's present objects. A kind that is not served has none.
    pub(crate) async fn look(&self, cluster: &str) -> anyhow::Result<Seen> {
        self.look_into(cluster, &self.namespace).await
    }

    /// The same for another namespace of the story.
    pub(crate) async fn look_into(&self, cluster: &str, namespace: &str) -> anyhow::Result<Seen> {
        let client = &self.clusterset.cluster(cluster)?.client;
        let list = async |kind: Kind| -> anyhow::Result<BTreeMap<String, Value>> {
            let all = ListParams::default();
            let mut listed = kind.api(client, namespace).list(&all).await;
            if is_not_served(&listed) && kind.has_older_version() {
                listed = kind.old_api(client, namespace).list(&all).await;
            }
            if is_not_served(&listed) {
                return Ok(BTreeMap::new());
            }
            let listed = listed.with_context(|| format!("cannot list {kind:?} in {cluster}"))?;
            let named = listed.items.into_iter().map(|object| {
                let name = object.metadata.name.clone().unwrap_or_default();
                Ok((name, serde_json::to_value(object)?))
            });
            named.collect()
        };
        Ok(Seen {
            cluster: cluster.to_owned(),
            namespace: namespace.to_owned(),
            // Imports first: what they promise has to be there afterwards.
            imports: list(Kind::ServiceImport).await?,
            exports: list(Kind::ServiceExport).await?,
            services: list(Kind::Service).await?,
            slices: list(Kind::EndpointSlice).await?,
        })
    }

    /// Waits until `holds` of what a cluster shows; the last reason why it did not is the error.
    pub(crate) async fn until<T>(
        &self,
        cluster: &str,
        holds: impl Fn(&Seen) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.until_in(cluster, &self.namespace, holds).await
    }

    /// The same for another namespace of the story.
    pub(crate) async fn until_in<T>(
        &self,
        cluster: &str,
        namespace: &str,
        holds: impl Fn(&Seen) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let deadline = Instant::now() + EVENTUALLY_WAIT;
        let mut poll = tokio::time::interval(EVENTUALLY_POLL);
        loop {
            poll.tick().await;
            let seen = self.look_into(cluster, namespace).await?;
            let error = match holds(&seen) {
                Ok(found) => return Ok(found),
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                let wait = EVENTUALLY_WAIT.as_secs();
                return Err(error.context(format!(
                    "after {wait} s in {cluster}, which shows {}",
                    seen.summary()
                )));
            }
        }
    }

    /// Waits for it in every cluster.
    pub(crate) async fn everywhere<T>(
        &self,
        holds: impl Fn(&Seen) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let mut found = Vec::new();
        for cluster in CLUSTERS {
            found.push(self.until(cluster, &holds).await?);
        }
        Ok(found)
    }

    /// Waits until the oracle finds nothing wrong in the story's namespace of any cluster.
    pub(crate) async fn all_is_right(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + EVENTUALLY_WAIT;
        let mut poll = tokio::time::interval(EVENTUALLY_POLL);
        loop {
            poll.tick().await;
            let mut pictures = Vec::new();
            for cluster in CLUSTERS {
                let client = &self.clusterset.cluster(cluster)?.client;
                pictures.push(picture(client, cluster, &self.namespace).await?);
            }
            let judgement = oracle::judge(&pictures);
            let wrong: Vec<String> = judgement.wrong().collect();
            if wrong.is_empty() && judgement.guarded > 0 {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "after {} s, of {} objects judged: {}",
                EVENTUALLY_WAIT.as_secs(),
                judgement.guarded,
                wrong.join("\n")
            );
        }
    }

    /// It holds in every cluster now, and still does after something later went all the way.
    pub(crate) async fn stays(&self, holds: impl Fn(&Seen) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for fence in CLUSTERS {
            for cluster in CLUSTERS {
                holds(&self.look(cluster).await?).context(cluster)?;
            }
            self.pass(fence).await?;
        }
        for cluster in CLUSTERS {
            holds(&self.look(cluster).await?).context(cluster)?;
        }
        Ok(())
    }
}

impl Seen {
    /// The same as the oracle reads it.
    pub(crate) fn picture(&self) -> Picture {
        let shown = |objects: &BTreeMap<String, Value>| -> Vec<Arc<Value>> {
            objects.values().cloned().map(Arc::new).collect()
        };
        Picture::of(&self.cluster, |kind| match kind {
            "Service" => shown(&self.services),
            "EndpointSlice" => shown(&self.slices),
            "ServiceExport" => shown(&self.exports),
            "ServiceImport" => shown(&self.imports),
            _ => Vec::new(),
        })
    }

    /// The import of a service.
    pub(crate) fn import(&self, name: &str) -> anyhow::Result<&Value> {
        let found = self.imports.get(name);
        found.with_context(|| format!("{} has no import {name}", self.cluster))
    }

    /// Every export that is ready says where it arrived.
    pub(crate) fn arrivals_are_said(&self) -> anyhow::Result<()> {
        let mut ready = self
            .exports
            .values()
            .filter(|export| condition(export, "Ready").is_ok_and(|ready| ready["status"] == "True"));
        ready.try_for_each(oracle::arrival_is_said)
    }

    /// The export of a service.
    pub(crate) fn export(&self, name: &str) -> anyhow::Result<&Value> {
        let found = self.exports.get(name);
        found.with_context(|| format!("{} has no export {name}", self.cluster))
    }

    /// The name of a service's derived Service.
    pub(crate) fn derived_name(&self, service: &str) -> String {
        derived_service_name(&self.namespace, service)
    }

    /// The derived Service of a service.
    pub(crate) fn derived(&self, service: &str) -> anyhow::Result<&Value> {
        let found = self.services.get(&self.derived_name(service));
        found.with_context(|| format!("{} has no derived Service of {service}", self.cluster))
    }

    /// The imported slices of a service.
    pub(crate) fn imported<'a>(&'a self, service: &'a str) -> impl Iterator<Item = &'a Value> {
        let of_service =
            move |slice: &&Value| label(slice, "multicluster.kubernetes.io/service-name") == service;
        self.slices.values().filter(of_service)
    }

    /// The imported slices of a service whose endpoints run in `source`.
    pub(crate) fn imported_from<'a>(&'a self, service: &'a str, source: &str) -> Vec<&'a Value> {
        let from = |slice: &&Value| label(slice, "multicluster.kubernetes.io/source-cluster") == source;
        self.imported(service).filter(from).collect()
    }

    /// Every address behind an import, with the cluster that it is in.
    pub(crate) fn backends(&self, service: &str) -> BTreeSet<(String, String)> {
        let mut backends = BTreeSet::new();
        for slice in self.imported(service) {
            let source = label(slice, "multicluster.kubernetes.io/source-cluster");
            for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
                for address in endpoint["addresses"].as_array().into_iter().flatten() {
                    let address = address.as_str().unwrap_or_default();
                    backends.insert((source.to_owned(), address.to_owned()));
                }
            }
        }
        backends
    }

    /// For people who read why a test failed.
    fn summary(&self) -> String {
        let shown = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
        let mut words = vec![String::new()];
        for (name, import) in &self.imports {
            words.push(format!(
                "import {name} {} {}",
                import["spec"],
                shown(import.get("status"))
            ));
        }
        for (name, export) in &self.exports {
            words.push(format!(
                "export {name} {} {}",
                export["spec"],
                shown(export.get("status"))
            ));
        }
        for (name, service) in &self.services {
            words.push(format!("service {name} {}", service["spec"]));
        }
        for (name, slice) in &self.slices {
            let labels = &slice["metadata"]["labels"];
            words.push(format!(
                "slice {name} {labels} {} {}",
                slice["ports"], slice["endpoints"]
            ));
        }
        words.join("\n  ")
    }
}

fn is_not_served<T>(answer: &Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 404)
}

/// A label, empty when it is not there.
pub(crate) fn label<'a>(object: &'a Value, name: &str) -> &'a str {
    object["metadata"]["labels"][name].as_str().unwrap_or_default()
}

/// A condition of an object.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> anyhow::Result<&'a Value> {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|one| one["type"] == kind);
    found.ok_or_else(|| anyhow!("{} has no condition {kind}", object["metadata"]["name"]))
}
