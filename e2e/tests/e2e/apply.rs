//! The agent's driver against a simulated cluster: what arrives, what is restored, what is never touched, and
//! that it stops writing when all is as it should be.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use agent::{
    apply::{ApplyMetrics, Driver, DriverConfig, Handle},
    watch::Watches,
};
use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use shared::{
    api::convert::NamespaceDenyList,
    model::{
        ChainHash, ClusterId, Conflict, ConflictReason, Cursor, Endpoint, EndpointPort, Epoch, ExportStatus,
        ImportedSlice, ImportedSliceKey, IpFamily, Metadata, Protocol, Revision, ServiceImport, ServiceKey,
        ServicePolicies, ServicePort, ServiceType, SessionAffinity, SessionId, UnixMillis,
        derived_name::{derived_service_name, imported_slice_name},
        sync::{
            DesiredChange, DesiredItem, Interest, Namespaces, PROTOCOL_VERSION, Source, SourceState, UpTo,
            Welcome,
        },
    },
};
use tokio_util::sync::CancellationToken;
use tributary_e2e::{
    sim::{Fault, SimCluster, SimConfig, older_crds},
    suite::sim_test,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "apply::an_import_arrives_and_a_restart_writes_nothing",
            an_import_arrives_and_a_restart_writes_nothing,
        ),
        sim_test(
            "apply::a_strangers_object_is_never_touched",
            a_strangers_object_is_never_touched,
        ),
        sim_test(
            "apply::what_somebody_changes_is_restored",
            what_somebody_changes_is_restored,
        ),
        sim_test(
            "apply::a_deleted_service_comes_back_with_its_ip",
            a_deleted_service_comes_back_with_its_ip,
        ),
        sim_test(
            "apply::an_empty_hub_deletes_nothing_until_the_sources_list",
            an_empty_hub_deletes_nothing_until_the_sources_list,
        ),
        sim_test(
            "apply::an_older_schema_gets_no_fields_it_lacks",
            an_older_schema_gets_no_fields_it_lacks,
        ),
        sim_test(
            "apply::a_faulty_api_server_is_outlasted",
            a_faulty_api_server_is_outlasted,
        ),
        sim_test(
            "apply::another_type_replaces_everything",
            another_type_replaces_everything,
        ),
        sim_test(
            "apply::exports_get_their_conditions",
            exports_get_their_conditions,
        ),
        sim_test(
            "apply::a_crd_that_goes_and_comes_is_followed",
            a_crd_that_goes_and_comes_is_followed,
        ),
        sim_test(
            "apply::families_are_taken_as_far_as_the_cluster_has_them",
            families_are_taken_as_far_as_the_cluster_has_them,
        ),
        sim_test("apply::own_slices_keep_their_nodes", own_slices_keep_their_nodes),
    ]
}

const WAIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

fn id(name: &str) -> ClusterId {
    ClusterId::new(name).expect("a cluster id")
}

fn key() -> ServiceKey {
    ServiceKey::new("shop", "cart").expect("a key")
}

fn derived() -> String {
    derived_service_name("shop", "cart")
}

pub(crate) fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: number,
        app_protocol: None,
    }
}

pub(crate) fn import(ports: &[ServicePort], clusters: &[&str]) -> ServiceImport {
    let all: Vec<u16> = (0..).take(ports.len()).collect();
    ServiceImport {
        service: key(),
        service_type: ServiceType::ClusterSetIp,
        ports: ports.to_vec(),
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::from([("tier".into(), "web".into())]),
        annotations: Metadata::from([("example.org/note".into(), "x".into())]),
        clusters: clusters.iter().map(|name| (id(name), all.clone())).collect(),
    }
}

fn slice(source: &str, address: &str) -> ImportedSlice {
    ImportedSlice {
        key: ImportedSliceKey {
            service: key(),
            source_cluster: id(source),
            source_slice: "cart-abc".into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: Arc::new([Endpoint {
            addresses: vec![address.parse().expect("an address")],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: Some("cart-0".into()),
            zone: Some("a".into()),
        }]),
        import_revision: Revision(0),
    }
}

fn source(name: &str, listed: bool) -> Source {
    Source {
        cluster: id(name),
        state: SourceState::Live,
        listed,
    }
}

/// Two clusters that export http, one slice each.
pub(crate) fn wishes() -> Vec<DesiredChange> {
    let mut all = vec![DesiredChange::Import(Arc::new(import(
        &[port("http", 80)],
        &["east", "west"],
    )))];
    for (cluster, address) in [("east", "10.1.0.1"), ("west", "10.2.0.1")] {
        all.push(DesiredChange::Slice(Arc::new(slice(cluster, address))));
    }
    all
}

pub(crate) fn all_listed() -> [Source; 3] {
    [source("east", true), source("west", true), source("north", true)]
}

fn welcome(epoch: Epoch) -> Welcome {
    Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "test".into(),
        hub: "hub".into(),
        epoch,
        resume: false,
        list_exports: true,
        list_properties: true,
        session: SessionId(1),
        incarnation: Revision(1),
        heartbeat_interval_millis: 1_000,
        silence_max_millis: 3_000,
        unacknowledged_max: 100,
    }
}

/// The driver of one agent.
pub(crate) struct Agent {
    pub(crate) handle: Handle,
    drain: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<anyhow::Result<()>>>,
}

impl Agent {
    fn start(cluster: &SimCluster) -> Self {
        Self::start_on(cluster.client_named("agent"), "shop")
    }

    /// An agent that is interested in one namespace.
    pub(crate) fn start_on(client: kube::Client, namespace: &str) -> Self {
        let (watches, drain) = (Watches::default(), CancellationToken::new());
        let config = DriverConfig {
            cluster: id("north"),
            deny: NamespaceDenyList::default(),
        };
        let (driver, handle) = Driver::new(client.clone(), watches.clone(), config, ApplyMetrics::default());
        let tasks = vec![
            tokio::spawn(watches.run(client, drain.clone())),
            tokio::spawn(driver.run(drain.clone())),
        ];
        handle.feed(|desired| {
            desired.interest(&Interest {
                generation: 1,
                namespaces: Namespaces::Only(BTreeSet::from([namespace.into()])),
            })
        });
        Self { handle, drain, tasks }
    }

    /// A whole session: snapshot, then the sources.
    pub(crate) fn told(&self, created_at: u64, sources: &[Source], changes: Vec<DesiredChange>) {
        let epoch = Epoch {
            created_at: UnixMillis(created_at),
            random: 1,
        };
        let cursor = Cursor {
            epoch,
            revision: Revision(5),
            hash: ChainHash([0; 16]),
        };
        self.handle.feed(|desired| {
            desired.welcome(&welcome(epoch));
            desired.snapshot_begin(epoch);
            let items = changes.into_iter().map(|change| DesiredItem {
                revision: Revision(5),
                change,
            });
            desired.items(1, items);
            desired.snapshot_complete(&UpTo {
                interest_generation: 1,
                cursor,
            })
        });
        self.handle.feed(|desired| desired.sources_changed(sources));
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.drain.cancel();
        for task in self.tasks {
            task.await??;
        }
        Ok(())
    }
}

fn cluster_with(config: SimConfig) -> anyhow::Result<SimCluster> {
    let cluster = SimCluster::new(config)?;
    cluster.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")?;
    Ok(cluster)
}

fn cluster() -> anyhow::Result<SimCluster> {
    cluster_with(SimConfig::default())
}

async fn until(what: &str, holds: impl Fn() -> bool) -> anyhow::Result<()> {
    let waited = async {
        while !holds() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(WAIT, waited)
        .await
        .with_context(|| format!("waited in vain: {what}"))
}

fn the_import(cluster: &SimCluster) -> Value {
    cluster.get("ServiceImport", "shop", "cart").unwrap_or_default()
}

fn ready(cluster: &SimCluster) -> bool {
    the_import(cluster)["status"]["conditions"][0]["status"] == json!("True")
}

/// Addresses of the imported slices.
fn addresses(cluster: &SimCluster) -> Vec<String> {
    let imported =
        |slice: &&Value| !slice["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"].is_null();
    let mut all: Vec<String> = cluster
        .list("EndpointSlice")
        .iter()
        .filter(imported)
        .map(|slice| {
            slice["endpoints"][0]["addresses"][0]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    all.sort();
    all
}

async fn arrived(cluster: &SimCluster, count: usize) -> anyhow::Result<()> {
    let waited = until("import and slices", || {
        ready(cluster) && addresses(cluster).len() == count
    })
    .await;
    waited.with_context(|| format!("import {:#}", the_import(cluster)))
}

/// A started agent whose cluster holds everything.
async fn settled(cluster: &SimCluster) -> anyhow::Result<Agent> {
    let agent = Agent::start(cluster);
    agent.told(1, &all_listed(), wishes());
    arrived(cluster, 2).await?;
    Ok(agent)
}

/// Everything the agent had to look at has been looked at: a change made afterwards has been applied.
async fn looked_at_everything(cluster: &SimCluster, agent: &Agent, created_at: u64) -> anyhow::Result<()> {
    let other = ServiceKey::new("shop", "zz-probe")?;
    let mut probe = import(&[port("http", 80)], &["north"]);
    probe.service = other;
    agent.handle.feed(|desired| {
        let change = DesiredChange::Import(Arc::new(probe));
        desired.items(
            1,
            [DesiredItem {
                revision: Revision(100 + created_at),
                change,
            }],
        )
    });
    until("the probe", || {
        cluster.get("ServiceImport", "shop", "zz-probe").is_some()
    })
    .await
}

async fn an_import_arrives_and_a_restart_writes_nothing() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let import = the_import(&cluster);
    let service = cluster
        .get("Service", "shop", &derived())
        .context("a derived Service")?;
    assert_eq!(import["spec"]["ips"], service["spec"]["clusterIPs"]);
    assert_eq!(import["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(import["metadata"]["labels"]["tier"], json!("web"));
    assert_eq!(
        import["status"]["clusters"],
        json!([{"cluster": "east"}, {"cluster": "west"}])
    );
    assert_eq!(import["status"]["endpointSliceObjects"], json!("Present"));
    assert_eq!(service["spec"]["selector"], Value::Null);
    assert_eq!(service["metadata"]["ownerReferences"], Value::Null);
    let name = imported_slice_name("shop", "cart", "east", "cart-abc");
    let slice = cluster.get("EndpointSlice", "shop", &name).context("a slice")?;
    let labels = &slice["metadata"]["labels"];
    assert_eq!(labels["kubernetes.io/service-name"], json!(derived()));
    assert_eq!(
        labels["endpointslice.kubernetes.io/managed-by"],
        json!("tributary-agent.tributary.dev")
    );
    assert_eq!(slice["endpoints"][0]["hostname"], json!("cart-0"));
    agent.stop().await?;

    cluster.requests().clear();
    let before = cluster.revision();
    let agent = Agent::start(&cluster);
    until("the held sources", || agent.handle.sources_known()).await?;
    assert_eq!(
        agent.handle.sources_held(),
        BTreeSet::from([id("east"), id("west")])
    );
    agent.told(1, &all_listed(), wishes());
    looked_at_everything(&cluster, &agent, 1).await?;
    let about_cart = |entry: &&tributary_e2e::sim::Entry| {
        entry.name != "zz-probe" && !entry.name.starts_with(&derived_service_name("shop", "zz-probe"))
    };
    let writes: Vec<_> = cluster.requests().writes();
    let writes: Vec<_> = writes.iter().filter(about_cart).collect();
    ensure!(writes.is_empty(), "{writes:?}");
    assert!(cluster.revision() > before, "the probe was written");
    agent.stop().await
}

async fn a_strangers_object_is_never_touched() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let stranger = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": derived(), "namespace": "shop"},
        "spec": {"ports": [{"port": 9}]}});
    let before = cluster.apply(stranger)?;
    let agent = Agent::start(&cluster);
    agent.told(1, &all_listed(), wishes());
    until("the import's word", || {
        let message = &the_import(&cluster)["status"]["conditions"][0]["message"];
        message
            .as_str()
            .is_some_and(|message| message.contains("not Tributary's"))
    })
    .await?;
    assert!(!ready(&cluster));
    until("an Event", || !cluster.list("Event").is_empty()).await?;
    assert_eq!(cluster.get("Service", "shop", &derived()), Some(before));
    // the stranger goes while nothing else happens: the name is free
    looked_at_everything(&cluster, &agent, 1).await?;
    cluster.delete("Service", "shop", &derived())?;
    arrived(&cluster, 2).await?;
    agent.stop().await
}

async fn what_somebody_changes_is_restored() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    cluster.apply(
        json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "cart", "namespace": "shop", "labels": {"tier": "stolen"}},
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 1}]}}),
    )?;
    until("the import", || {
        let import = the_import(&cluster);
        import["spec"]["ports"][0]["port"] == json!(80)
            && import["metadata"]["labels"]["tier"] == json!("web")
    })
    .await?;
    let name = imported_slice_name("shop", "cart", "west", "cart-abc");
    cluster.apply(
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": "shop"}, "endpoints": [{"addresses": ["10.9.9.9"]}]}),
    )?;
    until("the slice", || addresses(&cluster) == ["10.1.0.1", "10.2.0.1"]).await?;
    cluster.delete("EndpointSlice", "shop", &name)?;
    until("the slice again", || {
        addresses(&cluster) == ["10.1.0.1", "10.2.0.1"]
    })
    .await?;
    agent.stop().await
}

async fn a_deleted_service_comes_back_with_its_ip() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let uid = |service: &Value| service["metadata"]["uid"].clone();
    let service = || cluster.get("Service", "shop", &derived()).unwrap_or_default();
    let before = service();
    cluster.delete("Service", "shop", &derived())?;
    until("another Service", || {
        !service().is_null() && uid(&service()) != uid(&before)
    })
    .await?;
    assert_eq!(service()["spec"]["clusterIPs"], before["spec"]["clusterIPs"]);
    // and keeps it when its ports change
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(import(
        &[port("http", 80), port("grpc", 90)],
        &["east", "west"],
    )));
    agent.told(2, &all_listed(), changes);
    until("two ports", || {
        service()["spec"]["ports"]
            .as_array()
            .is_some_and(|ports| ports.len() == 2)
    })
    .await?;
    assert_eq!(service()["spec"]["clusterIPs"], before["spec"]["clusterIPs"]);
    agent.stop().await
}

async fn an_empty_hub_deletes_nothing_until_the_sources_list() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    agent.told(2, &[source("north", true)], Vec::new());
    looked_at_everything(&cluster, &agent, 2).await?;
    assert_eq!(addresses(&cluster).len(), 2);
    assert!(ready(&cluster));
    agent
        .handle
        .feed(|desired| desired.sources_changed(&[source("east", true)]));
    until("the slice of east to go", || addresses(&cluster) == ["10.2.0.1"]).await?;
    assert!(ready(&cluster));
    agent
        .handle
        .feed(|desired| desired.sources_changed(&[source("west", true)]));
    until("everything to go", || {
        the_import(&cluster).is_null()
            && cluster.get("Service", "shop", &derived()).is_none()
            && addresses(&cluster).is_empty()
    })
    .await?;
    agent.stop().await
}

async fn an_older_schema_gets_no_fields_it_lacks() -> anyhow::Result<()> {
    let cluster = cluster_with(SimConfig {
        crds: older_crds(),
        ..SimConfig::default()
    })?;
    let agent = settled(&cluster).await?;
    assert_eq!(
        the_import(&cluster)["status"]["endpointSliceObjects"],
        Value::Null
    );
    let refused = cluster
        .requests()
        .writes()
        .iter()
        .filter(|entry| entry.code >= 500)
        .count();
    assert_eq!(refused, 0);
    agent.stop().await
}

async fn a_faulty_api_server_is_outlasted() -> anyhow::Result<()> {
    let cluster = cluster()?;
    for fault in [Fault::Conflict, Fault::InternalError, Fault::AnswerLost] {
        cluster.faults().rate(fault, 150, "");
    }
    let agent = Agent::start(&cluster);
    agent.told(1, &all_listed(), wishes());
    arrived(&cluster, 2).await?;
    cluster.faults().clear();
    agent.told(2, &all_listed(), Vec::new());
    until("everything to go", || {
        the_import(&cluster).is_null()
            && cluster.get("Service", "shop", &derived()).is_none()
            && addresses(&cluster).is_empty()
    })
    .await?;
    agent.stop().await
}

async fn another_type_replaces_everything() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let mut headless = import(&[port("http", 80)], &["east", "west"]);
    headless.service_type = ServiceType::Headless;
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(headless));
    agent.told(2, &all_listed(), changes);
    until("a headless import", || {
        the_import(&cluster)["spec"]["type"] == json!("Headless") && ready(&cluster)
    })
    .await?;
    assert!(cluster.get("Service", "shop", &derived()).is_none());
    assert_eq!(the_import(&cluster)["spec"]["ips"], Value::Null);
    let label = "kubernetes.io/service-name";
    until("no slice for kube-proxy", || {
        cluster
            .list("EndpointSlice")
            .iter()
            .all(|slice| slice["metadata"]["labels"][label].is_null())
    })
    .await?;
    assert_eq!(addresses(&cluster).len(), 2);
    agent.stop().await
}

fn condition(cluster: &SimCluster, kind: &str) -> Value {
    let export = cluster.get("ServiceExport", "shop", "cart").unwrap_or_default();
    let conditions = export["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    conditions
        .into_iter()
        .find(|one| one["type"] == json!(kind))
        .unwrap_or_default()
}

const EXPORT: &str = "{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {name: cart, namespace: shop}}";

async fn exports_get_their_conditions() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    cluster.apply_yaml(EXPORT)?;
    until("NoService", || {
        condition(&cluster, "Valid")["reason"] == json!("NoService")
    })
    .await?;
    assert_eq!(condition(&cluster, "Ready")["status"], json!("False"));
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}")?;
    until("Valid", || {
        condition(&cluster, "Valid")["status"] == json!("True")
    })
    .await?;
    until("Pending", || {
        condition(&cluster, "Ready")["status"] == json!("Unknown")
    })
    .await?;
    let export = cluster
        .get("ServiceExport", "shop", "cart")
        .context("the export")?;
    let status = ExportStatus {
        service: key(),
        uid: export["metadata"]["uid"].as_str().context("a uid")?.into(),
        generation: 1,
        conflicts: vec![Conflict {
            reason: ConflictReason::Port,
            message: "Ports differ.".into(),
        }],
        exporters: 2,
    };
    agent.told(
        1,
        &all_listed(),
        vec![DesiredChange::ExportStatus(Arc::new(status))],
    );
    until("Exported", || {
        condition(&cluster, "Ready")["reason"] == json!("Exported")
    })
    .await?;
    assert_eq!(condition(&cluster, "Conflict")["reason"], json!("PortConflict"));
    until("an Event", || {
        cluster
            .list("Event")
            .iter()
            .any(|event| event["reason"] == json!("PortConflict"))
    })
    .await?;
    agent
        .handle
        .export_refused(&key(), Some("the hub says no: rename a label"));
    until("InvalidExport", || {
        condition(&cluster, "Valid")["reason"] == json!("InvalidExport")
    })
    .await?;
    assert_eq!(condition(&cluster, "Conflict"), Value::Null);
    agent.stop().await
}

async fn a_crd_that_goes_and_comes_is_followed() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    let name = "serviceimports.multicluster.x-k8s.io";
    cluster.remove_crd(name)?;
    cluster.faults().drop_watches();
    let definition = tributary_e2e::sim::current_crds()
        .into_iter()
        .find(|definition| definition["metadata"]["name"] == json!(name))
        .context("the CRD")?;
    cluster.install_crd(&definition)?;
    arrived(&cluster, 2).await?;
    agent.stop().await
}

async fn families_are_taken_as_far_as_the_cluster_has_them() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = Agent::start(&cluster);
    let mut dual = import(&[port("http", 80)], &["east", "west"]);
    dual.ip_families = vec![IpFamily::V6, IpFamily::V4];
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(dual.clone()));
    agent.told(1, &all_listed(), changes.clone());
    arrived(&cluster, 2).await?;
    assert_eq!(the_import(&cluster)["spec"]["ipFamilies"], json!(["IPv4"]));
    agent.told(2, &all_listed(), Vec::new());
    until("everything to go", || {
        cluster.get("Service", "shop", &derived()).is_none()
    })
    .await?;
    dual.ip_families = vec![IpFamily::V6];
    changes[0] = DesiredChange::Import(Arc::new(dual));
    agent.told(3, &all_listed(), changes);
    until("the reason", || {
        the_import(&cluster)["status"]["conditions"][0]["reason"] == json!("IPFamilyNotSupported")
    })
    .await?;
    agent.stop().await
}

async fn own_slices_keep_their_nodes() -> anyhow::Result<()> {
    let cluster = cluster()?;
    cluster.apply_yaml(EXPORT)?;
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}, {name: admin, port: 81}]}}")?;
    let local = |address: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "cart-x1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "admin", "port": 8081, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "nodeName": "node-1", "conditions": {"ready": true},
                "targetRef": {"kind": "Pod", "namespace": "shop", "name": "cart-0", "uid": "p"}}]})
    };
    cluster.apply(local("10.0.0.1"))?;
    let agent = Agent::start(&cluster);
    let wanted = import(&[port("http", 80)], &["north"]);
    agent.told(1, &all_listed(), vec![DesiredChange::Import(Arc::new(wanted))]);
    arrived(&cluster, 1).await?;
    let name = imported_slice_name("shop", "cart", "north", "cart-x1");
    let slice = cluster
        .get("EndpointSlice", "shop", &name)
        .context("the own slice")?;
    assert_eq!(slice["endpoints"][0]["nodeName"], json!("node-1"));
    assert_eq!(slice["endpoints"][0]["targetRef"]["name"], json!("cart-0"));
    assert_eq!(slice["ports"].as_array().map(Vec::len), Some(1));
    agent.stop().await?;
    // without a hub
    let agent = Agent::start(&cluster);
    cluster.apply(local("10.0.0.2"))?;
    until("the new address", || addresses(&cluster) == ["10.0.0.2"]).await?;
    cluster.delete("ServiceExport", "shop", "cart")?;
    until("the own slice to go", || addresses(&cluster).is_empty()).await?;
    assert!(ready(&cluster), "the import waits for the hub");
    agent.stop().await
}
