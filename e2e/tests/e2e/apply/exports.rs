//! The conditions of exports.

use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};
use shared::model::{Conflict, ConflictReason, ExportStatus, sync::DesiredChange};
use tributary_e2e::sim::SimCluster;

use super::{cluster::*, driver::*};

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

pub(super) async fn exports_get_their_conditions() -> anyhow::Result<()> {
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
