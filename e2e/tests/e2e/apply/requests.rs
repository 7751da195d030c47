//! Tests of the requests of an import, and of changes between a look and the write after it.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use serde_json::{Value, json};
use shared::model::{ExportStatus, sync::DesiredChange};
use sim::{Entry, SimCluster};

use super::{cluster::*, driver::*};

/// Requests about the one service, by verb and resource.
fn about_cart(cluster: &SimCluster) -> BTreeMap<String, usize> {
    let derived = derived();
    let about = |entry: &&Entry| {
        let other = entry.resource == "services" && entry.name != derived;
        !entry.name.is_empty() && entry.namespace == "shop" && entry.name != "zz-probe" && !other
    };
    let mut counts = BTreeMap::new();
    for entry in cluster.requests().all().iter().filter(about) {
        let status = if entry.status { "/status" } else { "" };
        let what = format!("{} {}{status}", entry.verb, entry.resource);
        *counts.entry(what).or_default() += 1;
    }
    counts
}

fn expected(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts
        .iter()
        .map(|(what, count)| ((*what).to_owned(), *count))
        .collect()
}

/// One request for each object, and one for the import's status: nothing is asked for that the watches have shown.
pub(super) async fn an_import_costs_a_request_for_each_object() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let agent = settled(&cluster).await?;
    looked_at_everything(&cluster, &agent, 1).await?;
    let cost = [
        ("patch services", 1),
        ("patch serviceimports", 1),
        ("patch endpointslices", 2),
        ("patch serviceimports/status", 1),
    ];
    assert_eq!(about_cart(&cluster), expected(&cost));
    agent.stop().await
}

/// An export's status that the hub sends within its time is written once, with the rest. The clock moves when nobody
/// has anything to do: the machine's speed does not matter.
pub(super) fn an_export_costs_one_write_of_its_status() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(an_export_that_the_hub_answers())
}

async fn an_export_that_the_hub_answers() -> anyhow::Result<()> {
    let cluster = cluster()?;
    cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}")?;
    cluster.apply_yaml(EXPORT)?;
    let agent = Agent::start(&cluster);
    agent.told(1, &all_listed(), Vec::new());
    looked_at_everything(&cluster, &agent, 1).await?;
    let export = cluster.get("ServiceExport", "shop", "cart").unwrap_or_default();
    let status = ExportStatus {
        service: key(),
        uid: export["metadata"]["uid"].as_str().unwrap_or_default().into(),
        generation: 1,
        conflicts: Vec::new(),
        exporters: 1,
        denial: None,
        left_out: "".into(),
    };
    agent.told(
        2,
        &all_listed(),
        vec![DesiredChange::ExportStatus(Arc::new(status))],
    );
    until("its conditions", || {
        let export = cluster.get("ServiceExport", "shop", "cart").unwrap_or_default();
        export["status"]["conditions"][1]["reason"] == json!("Exported")
    })
    .await?;
    assert_eq!(
        about_cart(&cluster),
        expected(&[("patch serviceexports/status", 1)])
    );
    agent.stop().await
}

/// Somebody else creates the object after the agent's last look, whatever that look was.
pub(super) async fn a_name_taken_at_the_last_moment_stays_the_strangers() -> anyhow::Result<()> {
    for kind in ["Service", "ServiceImport", "EndpointSlice"] {
        let cluster = cluster()?;
        let agent = Agent::start_on(client_that_comes_second(&cluster, kind), "shop");
        agent.told(1, &all_listed(), wishes());
        let taken = || cluster.list(kind).into_iter().find(is_strangers);
        until("the stranger", || taken().is_some()).await?;
        until("an Event", || !cluster.list("Event").is_empty()).await?;
        let object = taken().unwrap_or_default();
        assert_eq!(
            object["metadata"]["labels"],
            json!({"made-by": "stranger"}),
            "{kind}"
        );
        let managers = object["metadata"]["managedFields"].as_array().map(Vec::len);
        assert_eq!(managers, Some(1), "{kind}: nobody else wrote it: {object:#}");
        agent.stop().await?;
    }
    Ok(())
}

fn is_strangers(object: &Value) -> bool {
    object["metadata"]["labels"]["made-by"] == json!("stranger")
}

/// A client whose first write of this kind is overtaken by a stranger's, of another content.
fn client_that_comes_second(cluster: &SimCluster, kind: &'static str) -> kube::Client {
    let cluster = cluster.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let cluster = cluster.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
            let written: Value = serde_json::from_slice(&body).unwrap_or_default();
            let first = !cluster.list(kind).iter().any(is_strangers);
            if parts.method == Method::PATCH && written["kind"] == json!(kind) && first {
                let created = cluster.apply(strangers(&written));
                created.unwrap_or_else(|error| panic!("a stranger's {kind}: {error}"));
            }
            cluster.respond(http::Request::from_parts(parts, body)).await
        }
    });
    kube::Client::new(service, "default")
}

/// An object of the same name that disagrees about its content.
fn strangers(written: &Value) -> Value {
    let mut object = written.clone();
    let metadata = &written["metadata"];
    object["metadata"] = json!({
        "name": metadata["name"], "namespace": metadata["namespace"], "labels": {"made-by": "stranger"},
    });
    let ports = json!([{"name": "other", "port": 9}]);
    match object.get_mut("spec") {
        Some(spec) => spec["ports"] = ports,
        None => object["ports"] = ports,
    }
    object
}
