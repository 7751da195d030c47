//! Output of `get` and `events`: the clusters' objects through the kubeconfig, the hub's log over gRPC. It reads as any
//! user would; it writes nothing but text.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, ResourceExt, api::ListParams};
use proto::v1::{Event, EventFilter, ListEventsRequest, WatchEventsRequest, fact::Fact};
use shared::{
    api::{ServiceExport, ServiceImport, ServiceImportType, conditions, names},
    columns::columns,
    tls::TlsFiles,
};

use super::{control::HUB, directory::DemoDirectory, picture::condition};
use advice::demo_start;
use cluster::clusterset::Inspection;

/// Events in one page of the log.
const EVENTS_PAGE: u32 = 1000;

/// The kinds to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// ServiceImports: what each cluster can use
    Imports,
    /// ServiceExports with their conditions
    Exports,
    /// Imported EndpointSlices
    Slices,
}

/// Objects of a kind in these clusters, as lines.
pub(super) async fn get(clients: &BTreeMap<String, Client>, kind: Kind) -> anyhow::Result<Vec<String>> {
    let header: &[&str] = match kind {
        Kind::Imports => &["CLUSTER", "NAME", "TYPE", "IPS", "PORTS", "FROM", "READY"],
        Kind::Exports => &["CLUSTER", "NAME", "VALID", "READY", "CONFLICT"],
        Kind::Slices => &["CLUSTER", "NAME", "SERVICE", "FROM", "ADDRESSES"],
    };
    let mut rows = vec![header.iter().map(|&cell| cell.to_owned()).collect()];
    for (cluster, client) in clients {
        let found = match kind {
            Kind::Imports => imports(client).await,
            Kind::Exports => exports(client).await,
            Kind::Slices => slices(client).await,
        };
        for mut row in found.with_context(|| format!("cannot read from {cluster}"))? {
            row.insert(0, cluster.clone());
            rows.push(row);
        }
    }
    Ok(columns(&rows))
}

async fn imports(client: &Client) -> anyhow::Result<Vec<Vec<String>>> {
    let imports = Api::<ServiceImport>::all(client.clone())
        .list(&ListParams::default())
        .await?;
    let row = |import: &ServiceImport| {
        let ports = import.spec.ports.iter().map(|port| {
            let name = port
                .name
                .iter()
                .filter(|name| !name.is_empty())
                .map(|name| format!("{name} "));
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            format!("{}{}/{protocol}", name.collect::<String>(), port.port)
        });
        let status = import.status.as_ref();
        let clusters = status.into_iter().flat_map(|status| &status.clusters);
        let ready = status.into_iter().flat_map(|status| &status.conditions);
        let ready = ready.filter(|condition| condition.type_ == conditions::service_import::READY);
        vec![
            full_name(import),
            match import.spec.type_ {
                ServiceImportType::ClusterSetIp => "ClusterSetIP".to_owned(),
                ServiceImportType::Headless => "Headless".to_owned(),
            },
            import.spec.ips.join(","),
            ports.collect::<Vec<_>>().join(", "),
            clusters
                .map(|status| status.cluster.as_str())
                .collect::<Vec<_>>()
                .join(","),
            ready.map(|condition| condition.status.as_str()).collect(),
        ]
    };
    Ok(imports.iter().map(row).collect())
}

async fn exports(client: &Client) -> anyhow::Result<Vec<Vec<String>>> {
    let exports = Api::<ServiceExport>::all(client.clone())
        .list(&ListParams::default())
        .await?;
    let row = |export: &ServiceExport| {
        let cell = |kind: &str| {
            let found = condition(export, kind);
            found.map_or_else(String::new, |found| {
                format!("{} ({})", found.status, found.reason)
            })
        };
        vec![
            full_name(export),
            cell(conditions::service_export::VALID),
            cell(conditions::service_export::READY),
            cell(conditions::service_export::CONFLICT),
        ]
    };
    Ok(exports.iter().map(row).collect())
}

async fn slices(client: &Client) -> anyhow::Result<Vec<Vec<String>>> {
    let imported = ListParams::default().labels(names::LABEL_SERVICE_NAME);
    let slices = Api::<EndpointSlice>::all(client.clone()).list(&imported).await?;
    let row = |slice: &EndpointSlice| {
        let label = |key: &str| slice.labels().get(key).cloned().unwrap_or_default();
        let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        vec![
            full_name(slice),
            label(names::LABEL_SERVICE_NAME),
            label(names::LABEL_SOURCE_CLUSTER),
            addresses.cloned().collect::<Vec<_>>().join(","),
        ]
    };
    Ok(slices.iter().map(row).collect())
}

fn full_name(object: &impl ResourceExt) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// The hub's inspection services, with the operator's certificate of the demo.
async fn hub(place: &DemoDirectory) -> anyhow::Result<Inspection> {
    let address = std::fs::read_to_string(place.file("hub.addr")).context("no demo runs here")?;
    let files = TlsFiles {
        cert: place.file("operator.crt"),
        key: place.file("operator.key"),
        ca: place.file("ca.crt"),
    };
    let connected = Inspection::at(address.trim(), &files).await;
    connected.map_err(|error| {
        let reason = error.root_cause();
        let start = demo_start(HUB);
        anyhow!("the hub does not answer ({reason}); was it killed? `{start}` starts it")
    })
}

/// Prints the hub's log, and goes on with what is added to it if asked to.
pub(super) async fn events(place: &DemoDirectory, follow: bool) -> anyhow::Result<()> {
    let mut hub = hub(place).await?;
    let mut from_revision = 1;
    let mut rows = vec![
        ["REVISION", "RECORDED", "CLUSTER", "EVENT", "ABOUT"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut head = 0;
    while from_revision != 0 {
        let request = ListEventsRequest {
            from_revision,
            limit: EVENTS_PAGE,
            filter: Some(EventFilter::default()),
            ..ListEventsRequest::default()
        };
        let page = hub
            .log
            .list(request)
            .await
            .map_err(|status| anyhow!("{}", status.message()))?;
        let page = page.into_inner();
        rows.extend(page.events.iter().map(event));
        (from_revision, head) = (page.next_revision, page.head_revision);
    }
    for line in columns(&rows) {
        println!("{line}");
    }
    if !follow {
        return Ok(());
    }
    let request = WatchEventsRequest {
        from_revision: Some(head + 1),
        ..WatchEventsRequest::default()
    };
    let watch = hub
        .log
        .watch(request)
        .await
        .map_err(|status| anyhow!("{}", status.message()))?;
    let mut watch = watch.into_inner();
    while let Some(response) = watch.message().await? {
        if let Some(recorded) = response.event {
            println!("{}", event(&recorded).join("  "));
        }
    }
    bail!("the hub has ended the watch")
}

fn event(event: &Event) -> Vec<String> {
    let recorded = event.recorded_at.as_ref().and_then(|at| {
        let nanoseconds = at.nanos;
        jiff::Timestamp::new(at.seconds, nanoseconds).ok()
    });
    vec![
        event.revision.to_string(),
        recorded.map_or_else(String::new, |at| at.strftime("%H:%M:%S.%3f").to_string()),
        event.cluster.clone(),
        event.kind.clone(),
        about(event).unwrap_or_default(),
    ]
}

/// The subject of an event, as far as a name tells it.
fn about(event: &Event) -> Option<String> {
    let service = |key: &proto::v1::ServiceKey| format!("{}/{}", key.namespace, key.name);
    let slice = |key: &proto::v1::EndpointSliceKey| {
        let owner = key.service.as_ref().map(service).unwrap_or_default();
        format!("{owner} {}", key.name)
    };
    match event.fact.as_ref()?.fact.as_ref()? {
        Fact::ExportUpserted(export) => export.service.as_ref().map(service),
        Fact::ExportRemoved(key) => Some(service(key)),
        Fact::EndpointSliceUpserted(found) => found.key.as_ref().map(slice),
        Fact::EndpointSliceRemoved(key) => Some(slice(key)),
        Fact::ClusterPropertyUpserted(property) => Some(property.name.clone()),
        Fact::ClusterPropertyRemoved(key) => Some(key.name.clone()),
        _ => None,
    }
}
