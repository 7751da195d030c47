//! The demo played unattended: every step is asserted through the clusters' APIs, and timed.
//! It looks at no log, no data directory and no program's own account of itself.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Client, Resource, ResourceExt};
use shared::{
    api::{ServiceImport, conditions, names},
    process::Shutdown,
};

use super::{
    directory::{Claimed, DemoDirectory},
    kept::Name,
    objects,
    picture::{ClusterPicture, Picture, condition},
    screen::Screen,
    setting::{Running, Setting},
    stage::Stage,
    story::{self, cart, client, invoice},
    table::duration,
};
use cluster::clusterset::LocalClusterset;

/// The value of managed-by on Tributary's slices.
const MANAGED_BY: &str = "tributary-agent.tributary.dev";
/// Prefix of the names of derived Services.
const DERIVED_PREFIX: &str = "derived-";
/// West's slice of shop/cart with one endpoint more.
const WEST_GROWN: &str = r#"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints:
  - {addresses: ["10.12.0.11"], conditions: {ready: true, serving: true, terminating: false}}
  - {addresses: ["10.12.0.12"], conditions: {ready: true, serving: true, terminating: false}}
  - {addresses: ["10.12.0.13"], conditions: {ready: true, serving: true, terminating: false}}
"#;

/// Plays the demo in a fresh directory; an error says which step failed and what the clusters showed.
pub(super) async fn run(setting: Setting, shutdown: &Shutdown) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("tributary-demo-").tempdir()?;
    let place = DemoDirectory::new(directory.path().to_owned());
    let checked = shutdown.drain().run_until_cancelled(check(setting, place)).await;
    match checked.unwrap_or_else(|| Err(anyhow::anyhow!("stopped by a signal"))) {
        Ok(()) => Ok(()),
        Err(error) => {
            let kept = directory.keep();
            Err(error.context(format!(
                "the check failed; logs are in {}",
                kept.join("clusterset").display()
            )))
        }
    }
}

async fn check(setting: Setting, place: DemoDirectory) -> anyhow::Result<()> {
    let began = Instant::now();
    let claimed = Claimed::claim(place)?;
    let Running {
        clusterset,
        clients,
        kind,
        backend,
    } = setting.start(&claimed.place).await.context("the start")?;
    let mut check = Check {
        stage: Stage::new(&clients, Screen::silent()),
        clusterset,
        clients,
        began,
        step: began,
    };
    check.passed(&format!("three clusters, {kind}, a hub and three agents run"));
    check.play().await?;
    let Check {
        clusterset, stage, ..
    } = check;
    drop(stage);
    clusterset.end().await.context("the end")?;
    println!(
        "[{:>8}] agents and hub drained; all checks passed",
        duration(began.elapsed())
    );
    drop(backend);
    Ok(())
}

/// A check under way.
struct Check {
    stage: Stage,
    clusterset: LocalClusterset,
    clients: BTreeMap<String, Client>,
    began: Instant,
    step: Instant,
}

impl Check {
    fn passed(&mut self, what: &str) {
        let (total, step) = (self.began.elapsed(), self.step.elapsed());
        println!("[{:>8}] {what} ({})", duration(total), duration(step));
        self.step = Instant::now();
    }

    async fn play(&mut self) -> anyhow::Result<()> {
        self.stage.complete().await?;
        self.exports_arrive().await?;
        self.namespaces_decide().await?;
        self.the_oldest_wins().await?;
        self.an_agent_restarts().await?;
        self.the_hub_restarts().await?;
        self.the_last_export_takes_the_import_along().await
    }

    async fn exports_arrive(&mut self) -> anyhow::Result<()> {
        story::first_exports(&mut self.stage, &self.clients).await?;
        let arrived = self
            .stage
            .until("west's shop/cart is complete in every cluster", |picture| {
                everywhere(picture, |cluster| {
                    is_ready(picture, cluster, &cart())
                        && ports(picture, cluster) == ["http 80"]
                        && affinity(picture, cluster) == Some("ClientIP")
                        && addresses(picture, cluster, "west") == ["10.12.0.11", "10.12.0.12"]
                        && slices_are_labelled(picture, cluster)
                })
            });
        arrived.await?;
        self.passed(
            "west's shop/cart is imported in every cluster, with a clusterset IP and labelled slices",
        );
        Ok(())
    }

    async fn namespaces_decide(&mut self) -> anyhow::Result<()> {
        let uninvited = self.stage.picture.import("north", &invoice()).is_some();
        ensure!(!uninvited, "north has no namespace billing, yet an import in it");
        let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: billing}}";
        objects::apply(client(&self.clients, "north")?, namespace).await?;
        let arrived = self.stage.until("billing/invoice is in north", |picture| {
            picture.sources("north", &invoice()).contains("west") && picture.is_everywhere("west", &invoice())
        });
        arrived.await?;
        self.passed("billing/invoice reached north once north had the namespace, and not before");
        Ok(())
    }

    async fn the_oldest_wins(&mut self) -> anyhow::Result<()> {
        story::conflict(&mut self.stage, &self.clients).await?;
        let merged = self.stage.until("shop/cart is merged, and west wins", |picture| {
            let told = ["east", "west"].iter().all(|exporter| {
                picture
                    .rows()
                    .iter()
                    .filter(|row| row.service == cart() && row.source == **exporter)
                    .filter_map(|row| row.conflict.as_ref())
                    .any(|conflict| {
                        conflict.winner == "west"
                            && conflict.reason
                                == "PortConflict,SessionAffinityConflict,SessionAffinityConfigConflict"
                    })
            });
            told && everywhere(picture, |cluster| {
                picture.sources(cluster, &cart()).into_iter().eq(["east", "west"])
                    && ports(picture, cluster) == ["http 80", "metrics 9090"]
                    && affinity(picture, cluster) == Some("ClientIP")
                    && slice_ports(picture, cluster, "west") == ["http"]
                    && slice_ports(picture, cluster, "east") == ["http", "metrics"]
                    && slices_are_labelled(picture, cluster)
            })
        });
        merged.await?;
        self.passed(
            "east's younger shop/cart conflicts: both are told, west's settings hold, ports are merged",
        );
        Ok(())
    }

    async fn an_agent_restarts(&mut self) -> anyhow::Result<()> {
        let before = StoodThen::of(&self.stage.picture);
        self.clusterset.kill_agent("west").await?;
        let greeter = Name::new("shop", "greeter");
        objects::apply(client(&self.clients, "east")?, objects::GREETER).await?;
        let others = self.stage.until("shop/greeter is in east and north", |picture| {
            ["east", "north"]
                .iter()
                .all(|cluster| picture.sources(cluster, &greeter).contains("east"))
        });
        others.await?;
        before
            .holds(&self.stage.picture)
            .context("while west's agent was dead")?;
        self.clusterset.start_agent("west").await?;
        let arrived = self.stage.until(
            "shop/greeter is in west, where the agent was started again",
            |picture| picture.is_everywhere("east", &greeter),
        );
        arrived.await?;
        before
            .holds(&self.stage.picture)
            .context("after west's agent was started again")?;
        self.passed("west's agent was killed and started: nothing vanished, nothing old was written");
        Ok(())
    }

    async fn the_hub_restarts(&mut self) -> anyhow::Result<()> {
        let before = StoodThen::of(&self.stage.picture);
        self.clusterset.kill_hub().await?;
        objects::apply(client(&self.clients, "west")?, WEST_GROWN).await?;
        let grown = |picture: &Picture, cluster: &str| addresses(picture, cluster, "west").len() == 3;
        let own = self
            .stage
            .until("west's own new endpoint is in west, without a hub", |picture| {
                grown(picture, "west")
            });
        own.await?;
        before
            .nothing_vanished(&self.stage.picture)
            .context("while the hub was dead")?;
        self.clusterset.start_hub().await?;
        let arrived = self.stage.until("west's new endpoint is everywhere", |picture| {
            everywhere(picture, |cluster| grown(picture, cluster))
        });
        arrived.await?;
        before
            .nothing_vanished(&self.stage.picture)
            .context("after the hub was started again")?;
        self.passed("the hub was killed and started: nothing vanished, what happened meanwhile arrived");
        Ok(())
    }

    async fn the_last_export_takes_the_import_along(&mut self) -> anyhow::Result<()> {
        objects::unexport(client(&self.clients, "west")?, &cart()).await?;
        let alone = self.stage.until("east alone exports shop/cart", |picture| {
            let conflict = picture
                .export("east", &cart())
                .and_then(|export| condition(export, conditions::service_export::CONFLICT));
            conflict.is_some_and(|conflict| conflict.status == conditions::STATUS_FALSE)
                && everywhere(picture, |cluster| {
                    picture.sources(cluster, &cart()).into_iter().eq(["east"])
                        && affinity(picture, cluster) == Some("None")
                        && picture.imported(cluster, &cart(), Some("west")).next().is_none()
                })
        });
        alone.await?;
        self.passed("west took its export back: east's settings hold, west's slices are gone");
        let derived = derived_services(&self.stage.picture, &cart());
        ensure!(
            derived.len() == self.clients.len(),
            "not every import names its derived Service: only those in {}",
            derived.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
        );
        objects::unexport(client(&self.clients, "east")?, &cart()).await?;
        let gone = self.stage.until("shop/cart is gone everywhere", |picture| {
            everywhere(picture, |cluster| {
                picture.import(cluster, &cart()).is_none()
                    && picture.imported(cluster, &cart(), None).next().is_none()
            }) && derived.iter().all(|(cluster, service)| {
                picture
                    .view(cluster)
                    .is_some_and(|view| view.services.get(service).is_none())
            })
        });
        gone.await?;
        self.passed("the last export took import, slices and derived Service along, in every cluster");
        Ok(())
    }
}

fn everywhere(picture: &Picture, holds: impl Fn(&str) -> bool) -> bool {
    picture.clusters().all(|cluster| holds(cluster))
}

fn is_ready(picture: &Picture, cluster: &str, service: &Name) -> bool {
    let Some(import) = picture.import(cluster, service) else {
        return false;
    };
    let status = import.status.iter().flat_map(|status| &status.conditions);
    let ready = status.into_iter().any(|condition| {
        condition.type_ == conditions::service_import::READY && condition.status == conditions::STATUS_TRUE
    });
    ready && import.spec.ips.len() == 1
}

/// Name and number of each port of shop/cart, sorted.
fn ports(picture: &Picture, cluster: &str) -> Vec<String> {
    let import = picture.import(cluster, &cart());
    let ports = import.into_iter().flat_map(|import| &import.spec.ports);
    let mut ports: Vec<String> = ports
        .map(|port| format!("{} {}", port.name.as_deref().unwrap_or_default(), port.port))
        .collect();
    ports.sort();
    ports
}

fn affinity<'a>(picture: &'a Picture, cluster: &str) -> Option<&'a str> {
    picture.import(cluster, &cart())?.spec.session_affinity.as_deref()
}

/// The addresses of shop/cart from one source, sorted.
fn addresses(picture: &Picture, cluster: &str, source: &str) -> Vec<String> {
    let service = cart();
    let slices = picture.imported(cluster, &service, Some(source));
    let endpoints = slices.flat_map(|(_, slice)| &slice.endpoints);
    let mut addresses: Vec<String> = endpoints
        .flat_map(|endpoint| endpoint.addresses.clone())
        .collect();
    addresses.sort();
    addresses
}

/// The names of the ports of shop/cart's slices from one source, sorted.
fn slice_ports(picture: &Picture, cluster: &str, source: &str) -> Vec<String> {
    let service = cart();
    let slices = picture.imported(cluster, &service, Some(source));
    let ports = slices.flat_map(|(_, slice)| slice.ports.iter().flatten());
    let mut names: Vec<String> = ports.map(|port| port.name.clone().unwrap_or_default()).collect();
    names.sort();
    names
}

/// Every imported slice of shop/cart says whose it is, and is programmed in the derived Service's name.
fn slices_are_labelled(picture: &Picture, cluster: &str) -> bool {
    let service = cart();
    let Some(derived) = picture.import(cluster, &service).and_then(derived_service) else {
        return false;
    };
    let labelled = |slice: &EndpointSlice| {
        let label = |key: &str| slice.labels().get(key).map(String::as_str);
        label(names::LABEL_ENDPOINT_SLICE_MANAGED_BY) == Some(MANAGED_BY)
            && label(names::LABEL_KUBERNETES_SERVICE_NAME) == Some(derived)
            && derived.starts_with(DERIVED_PREFIX)
            && label(names::LABEL_SOURCE_CLUSTER).is_some()
    };
    let mut slices = picture.imported(cluster, &service, None).peekable();
    slices.peek().is_some() && slices.all(|(_, slice)| labelled(slice))
}

fn derived_service(import: &ServiceImport) -> Option<&str> {
    let annotation = import.annotations().get(names::ANNOTATION_DERIVED_SERVICE)?;
    Some(annotation)
}

/// The derived Service of a service in each cluster.
fn derived_services(picture: &Picture, service: &Name) -> BTreeMap<String, Name> {
    let derived = picture.clusters().filter_map(|cluster| {
        let name = derived_service(picture.import(cluster, service)?)?;
        Some((cluster.clone(), Name::new(&service.namespace, name)))
    });
    derived.collect()
}

/// Everything Tributary made, as it stood at one moment.
struct StoodThen {
    versions: BTreeMap<(String, &'static str, Name), String>,
    removals: BTreeMap<(String, &'static str, Name), u64>,
}

impl StoodThen {
    fn of(picture: &Picture) -> Self {
        Self {
            versions: versions(picture),
            removals: removals(picture),
        }
    }

    /// Nothing of it has gone, not for a moment.
    fn nothing_vanished(&self, picture: &Picture) -> anyhow::Result<()> {
        let now = removals(picture);
        let removed = now
            .iter()
            .find(|(key, count)| self.removals.get(key) != Some(*count));
        let versions = versions(picture);
        let lost = self.versions.keys().find(|key| !versions.contains_key(*key));
        match removed.map(|(key, _)| key).or(lost) {
            Some((cluster, kind, name)) => bail!("something vanished: the {kind} {name} in {cluster}"),
            None => Ok(()),
        }
    }

    /// The same, and nothing of it was written.
    fn holds(&self, picture: &Picture) -> anyhow::Result<()> {
        self.nothing_vanished(picture)?;
        let now = versions(picture);
        for (key, version) in &self.versions {
            let (cluster, kind, name) = key;
            ensure!(
                now.get(key) == Some(version),
                "the {kind} {name} in {cluster} was written without need"
            );
        }
        Ok(())
    }
}

/// The resourceVersion of every import, imported slice and derived Service.
fn versions(picture: &Picture) -> BTreeMap<(String, &'static str, Name), String> {
    let mut versions = BTreeMap::new();
    each_view(picture, |cluster, view| {
        let mut note = |kind, name: &Name, version: Option<String>| {
            versions.insert(
                (cluster.to_owned(), kind, name.clone()),
                version.unwrap_or_default(),
            );
        };
        view.imports
            .iter()
            .for_each(|(name, import)| note("ServiceImport", name, import.resource_version()));
        for (name, slice) in view.slices.iter() {
            if slice.labels().contains_key(names::LABEL_SERVICE_NAME) {
                note("EndpointSlice", name, slice.meta().resource_version.clone());
            }
        }
        for (name, service) in view.services.iter() {
            if name.name.starts_with(DERIVED_PREFIX) {
                note("Service", name, service.resource_version());
            }
        }
    });
    versions
}

/// Number of removals of each object of the kinds that Tributary makes.
fn removals(picture: &Picture) -> BTreeMap<(String, &'static str, Name), u64> {
    let mut removals = BTreeMap::new();
    each_view(picture, |cluster, view| {
        let kinds = [
            ("ServiceImport", view.imports.removals()),
            ("EndpointSlice", view.slices.removals()),
            ("Service", view.services.removals()),
        ];
        for (kind, removed) in kinds {
            let counted = removed
                .iter()
                .map(|(name, count)| ((cluster.to_owned(), kind, name.clone()), *count));
            removals.extend(counted);
        }
    });
    removals
}

fn each_view(picture: &Picture, mut look: impl FnMut(&str, &ClusterPicture)) {
    for cluster in picture.clusters() {
        if let Some(view) = picture.view(cluster) {
            look(cluster, view);
        }
    }
}
