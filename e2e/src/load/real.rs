//! Owns: shape real: two real clusters, the programs between them, and how long a changed EndpointSlice takes from
//! the one API server to the other, beside a bare relay in the same run.
//! Never: is what fails when the clusters are too slow: late writes count, and the relay shows the floor.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use futures::TryStreamExt;
use hdrhistogram::Histogram;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Client,
    api::{Api, DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
    runtime::watcher::{self, watcher},
};
use serde_json::json;
use shared::api::names;
use tokio::{
    sync::{Notify, Semaphore},
    task::JoinSet,
};

use super::{
    args::Arguments,
    hub::Setup,
    probe::Usage,
    relay,
    report::{Aim, Section, latencies},
};
use crate::{
    clusterset::{Backend, LocalClusterset},
    real::{Counts, Fleet, Options, Request},
};

/// Where slices change, and where they are to arrive.
const CLUSTERS: [&str; 2] = ["east", "west"];
/// The namespace that Tributary carries, and the one that the relay carries.
const CARRIED: &str = "carried";
const FLOOR: &str = "floor";
/// Slices of each namespace, updated in turn.
const SLICES: usize = 200;
const ENDPOINTS: usize = 10;
/// Writes under way at a time; a pool of connections as a busy cluster has.
const WRITES_MAX: usize = 64;
/// Longest wait until the last update has arrived.
const ARRIVAL_WAIT: Duration = Duration::from_secs(120);
/// The namespace of the exports that come at once, and how many they are.
const BURST: &str = "burst";
const BURST_EXPORTS: u32 = 100;
const BURST_SECONDS_AIM: f64 = 1.0;
/// Writes in an importing cluster for a change: one, and a little for what the start left.
const WRITES_AIM: f64 = 1.05;
/// Times the floor that Tributary may take, p50 and p99.
const RATIO_AIM: f64 = 2.0;

/// Measures at every rate.
pub(super) async fn measure(
    setup: &Setup,
    arguments: &Arguments,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    eprintln!("starting two real clusters, a hub and two agents");
    let options = Options {
        sync_to_disk: true,
        ..Options::default()
    };
    let fleet = Arc::new(Fleet::start(&CLUSTERS, options).await?);
    let audit = fleet.clusters()[1].audit_log();
    let mut world =
        LocalClusterset::start(&setup.directory.join("real"), &Backend::Real(fleet), &CLUSTERS).await?;
    let [east, west] = CLUSTERS.map(|name| world.cluster(name).map(|cluster| cluster.client.clone()));
    let (east, west) = (east?, west?);
    for client in [&east, &west] {
        for namespace in [CARRIED, FLOOR, BURST] {
            create(
                client,
                None,
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            )
            .await?;
        }
    }
    sections.push(burst(&east, &west).await?);
    let mut carried = Way::open(CARRIED, &east, &west).await?;
    let mut floor = Way::open(FLOOR, &east, &west).await?;
    for &rate in &arguments.real_rates {
        let mut section = Section::begin(format!("real clusters, {rate} updates/s"));
        let lasting = Duration::from_secs(arguments.seconds);
        let bare = floor.wave(&east, rate, lasting).await?;
        let (mark, before) = (audit.settle(&west).await?, Spent::of(&mut world)?);
        let ours = carried.wave(&east, rate, lasting).await?;
        let after = Spent::of(&mut world)?;
        audit.settle(&west).await?;
        compare(&mut section, &bare, &ours);
        let requests = audit.since(mark)?;
        let carried_slice = |request: &Request| {
            request.namespace == CARRIED && request.resource.starts_with("endpointslices")
        };
        let writes = Counts::of(&requests, |request| request.is_write() && carried_slice(request)).total();
        let per_update = writes as f64 / ours.len().max(1) as f64;
        section.aimed(
            "writes in the importing cluster, an update applied",
            per_update,
            "",
            Aim::Below(WRITES_AIM),
        );
        let seconds = lasting.as_secs_f64();
        for (name, spent) in after.since(&before) {
            section.figure(format!("processor time, {name}"), spent / seconds, "cores");
        }
        section.note(
            "all processes share all cores: two API servers, one etcd, two controller managers, hub, agents",
        );
        sections.push(section);
    }
    world.end().await
}

/// Ours beside the floor, in microseconds both.
fn compare(section: &mut Section, bare: &Histogram<u64>, ours: &Histogram<u64>) {
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let millis = |latency: &Histogram<u64>| latency.value_at_quantile(quantile) as f64 / 1e3;
        section.figure(format!("bare relay: due to applied {name}"), millis(bare), "ms");
        section.figure(format!("Tributary: due to applied {name}"), millis(ours), "ms");
        section.aimed(
            format!("ratio {name}"),
            millis(ours) / millis(bare).max(0.001),
            "",
            Aim::Below(RATIO_AIM),
        );
    }
    section.figure("bare relay: max", bare.max() as f64 / 1e3, "ms");
    section.figure("Tributary: max", ours.max() as f64 / 1e3, "ms");
    section.figure("updates that arrived", ours.len() as f64, "");
}

/// Processor time of our programs so far.
struct Spent(Vec<(String, f64)>);

impl Spent {
    fn of(world: &mut LocalClusterset) -> anyhow::Result<Self> {
        let mut programs = vec![("hub".to_owned(), world.hub()?.id())];
        for name in CLUSTERS {
            programs.push((format!("agent of {name}"), world.agent(name)?.id()));
        }
        let spent = programs.into_iter().map(|(name, id)| {
            let id = id.with_context(|| format!("the {name} has ended"))?;
            Ok((name, Usage::of(id)?.cpu_seconds))
        });
        Ok(Self(spent.collect::<anyhow::Result<_>>()?))
    }

    fn since(&self, before: &Self) -> Vec<(String, f64)> {
        let both = self.0.iter().zip(&before.0);
        both.map(|((name, after), (_, before))| (name.clone(), after - before))
            .collect()
    }
}

/// Many services exported at one moment: until the last of them is imported, with its slice.
async fn burst(east: &Client, west: &Client) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!("real clusters, {BURST_EXPORTS} exports at once"));
    let arrivals = Arc::new(Arrivals::default());
    let mut watching = JoinSet::new();
    watching.spawn(watch(Api::namespaced(west.clone(), BURST), arrivals.clone()));
    let name = |index: u32| format!("cart-{index:03}");
    for index in 0..BURST_EXPORTS {
        create(east, Some(BURST), service(BURST, &name(index))).await?;
        create(east, Some(BURST), slice(BURST, &name(index), index)).await?;
    }
    let began = Instant::now();
    let creating = (0..BURST_EXPORTS).map(|index| create(east, Some(BURST), export(BURST, &name(index))));
    futures::future::try_join_all(creating).await?;
    let created = began.elapsed();
    let seen = arrivals.all(&(0..BURST_EXPORTS).collect()).await?;
    let last = seen
        .values()
        .max()
        .map_or(Duration::ZERO, |at| at.saturating_duration_since(began));
    section.figure("until all were created", created.as_secs_f64(), "s");
    let last = last.as_secs_f64();
    section.aimed(
        "until the last was imported, with its slice",
        last,
        "s",
        Aim::Below(BURST_SECONDS_AIM),
    );
    section
        .note("a slice is written after its derived Service and its import, so it is the last of its export");
    Ok(section)
}

/// One namespace whose slices are changed in the first cluster and watched in the second.
struct Way {
    namespace: &'static str,
    next: u32,
    arrivals: Arc<Arrivals>,
    watching: JoinSet<anyhow::Result<()>>,
}

/// What has been seen in the second cluster.
#[derive(Default)]
struct Arrivals {
    seen: Mutex<Seen>,
    changed: Notify,
}

#[derive(Default)]
struct Seen {
    at: BTreeMap<u32, Instant>,
}

impl Arrivals {
    fn note(&self, number: u32) {
        let mut seen = self
            .seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        seen.at.entry(number).or_insert_with(Instant::now);
        drop(seen);
        self.changed.notify_one();
    }

    /// What has arrived, once all of `awaited` has.
    async fn all(&self, awaited: &BTreeSet<u32>) -> anyhow::Result<BTreeMap<u32, Instant>> {
        let deadline = Instant::now() + ARRIVAL_WAIT;
        loop {
            let changed = self.changed.notified();
            let missing = {
                let mut seen = self
                    .seen
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                let missing = awaited
                    .iter()
                    .filter(|number| !seen.at.contains_key(number))
                    .count();
                if missing == 0 {
                    return Ok(std::mem::take(&mut seen.at));
                }
                missing
            };
            if tokio::time::timeout_at(deadline.into(), changed).await.is_err() {
                bail!(
                    "after {} s {missing} updates have not arrived",
                    ARRIVAL_WAIT.as_secs()
                );
            }
        }
    }
}

impl Way {
    /// Makes the slices and waits until all of them have arrived.
    async fn open(namespace: &'static str, east: &Client, west: &Client) -> anyhow::Result<Self> {
        let arrivals = Arc::new(Arrivals::default());
        let mut watching = JoinSet::new();
        watching.spawn(watch(Api::namespaced(west.clone(), namespace), arrivals.clone()));
        if namespace == FLOOR {
            watching.spawn(relay::relay(east.clone(), west.clone(), FLOOR));
        }
        for index in 0..SLICES {
            let name = format!("cart-{index:03}");
            if namespace == CARRIED {
                create(east, Some(namespace), service(namespace, &name)).await?;
                create(east, Some(namespace), export(namespace, &name)).await?;
            }
            create(east, Some(namespace), slice(namespace, &name, index as u32)).await?;
        }
        let first: BTreeSet<u32> = (0..SLICES as u32).collect();
        arrivals
            .all(&first)
            .await
            .with_context(|| format!("in namespace {namespace}"))?;
        Ok(Self {
            namespace,
            next: SLICES as u32,
            arrivals,
            watching,
        })
    }

    /// Changes slices at this rate for so long: microseconds from an update's due time until it was seen.
    async fn wave(&mut self, east: &Client, rate: u32, lasting: Duration) -> anyhow::Result<Histogram<u64>> {
        let count = rate * u32::try_from(lasting.as_secs())?;
        ensure!(count > 0, "a wave has at least one update");
        let first = self.next;
        self.next += count;
        let (start, interval) = (Instant::now() + interval_of(rate), interval_of(rate));
        let due = |number: u32| start + interval * (number - first);
        let api: Api<EndpointSlice> = Api::namespaced(east.clone(), self.namespace);
        let (mut writing, turn) = (JoinSet::new(), Arc::new(Semaphore::new(WRITES_MAX)));
        for number in first..first + count {
            tokio::time::sleep_until(due(number).into()).await;
            let turn = turn.clone().acquire_owned().await?;
            let api = api.clone();
            writing.spawn(async move {
                let _turn = turn;
                change(&api, number).await
            });
        }
        while let Some(written) = writing.join_next().await {
            written??;
        }
        let last = (first + count).saturating_sub(SLICES as u32).max(first);
        let awaited: BTreeSet<u32> = (last..first + count).collect();
        let seen = tokio::select! {
            seen = self.arrivals.all(&awaited) => seen?,
            Some(ended) = self.watching.join_next() => {
                ended??;
                bail!("the watch in the second cluster ended")
            }
        };
        let mut latency = latencies()?;
        for (number, at) in seen.into_iter().filter(|(number, _)| *number >= first) {
            latency.saturating_record(at.saturating_duration_since(due(number)).as_micros() as u64);
        }
        Ok(latency)
    }
}

fn interval_of(rate: u32) -> Duration {
    Duration::from_secs(1) / rate
}

/// Notes every number that appears.
async fn watch(api: Api<EndpointSlice>, arrivals: Arc<Arrivals>) -> anyhow::Result<()> {
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.try_next().await? {
        if let watcher::Event::Apply(slice) | watcher::Event::InitApply(slice) = event
            && let Some(number) = number_of(&slice)
        {
            arrivals.note(number);
        }
    }
    Ok(())
}

async fn change(api: &Api<EndpointSlice>, number: u32) -> anyhow::Result<()> {
    let name = format!("cart-{:03}", number as usize % SLICES);
    let patch = Patch::Merge(json!({"endpoints": endpoints(number)}));
    api.patch(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn create(client: &Client, namespace: Option<&str>, object: serde_json::Value) -> anyhow::Result<()> {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("apiVersion")),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, &version, &text("kind")));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let what = format!("cannot create {} {}", text("kind"), object["metadata"]["name"]);
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await
        .context(what)?;
    Ok(())
}

fn service(namespace: &str, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

fn export(namespace: &str, name: &str) -> serde_json::Value {
    json!({
        "apiVersion": names::MULTICLUSTER_API_VERSION, "kind": "ServiceExport",
        "metadata": {"name": name, "namespace": namespace},
    })
}

fn slice(namespace: &str, name: &str, number: u32) -> serde_json::Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {
                names::LABEL_KUBERNETES_SERVICE_NAME: name,
                names::LABEL_ENDPOINT_SLICE_MANAGED_BY: "load.tributary.dev",
            },
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints(number),
    })
}

/// The number is the first address.
fn endpoints(number: u32) -> serde_json::Value {
    let [_, a, b, c] = number.to_be_bytes();
    let address = |index: usize| match index {
        0 => format!("10.{a}.{b}.{c}"),
        _ => format!("172.16.0.{index}"),
    };
    let endpoint = |index| json!({"addresses": [address(index)], "conditions": {"ready": true}});
    (0..ENDPOINTS).map(endpoint).collect()
}

fn number_of(slice: &EndpointSlice) -> Option<u32> {
    let address = slice.endpoints.first()?.addresses.first()?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    match address.octets() {
        [10, a, b, c] => Some(u32::from_be_bytes([0, a, b, c])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_the_slice() {
        for number in [0, 255, 256, 1 << 20] {
            let object = slice("shop", "cart", number);
            let parsed: EndpointSlice = serde_json::from_value(object).expect("a slice");
            assert_eq!(number_of(&parsed), Some(number));
        }
    }
}
