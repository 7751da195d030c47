//! The oracle's input, read through the clusters' APIs: simulated or real ones. It judges nothing.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use kube::{
    Client,
    api::{Api, ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use serde_json::Value;

use oracle::{KINDS, Picture};

/// The objects of one namespace of a cluster. A kind that is not served shows nothing.
pub async fn picture(client: &Client, cluster: &str, namespace: &str) -> anyhow::Result<Picture> {
    let mut objects: BTreeMap<&str, Vec<Arc<Value>>> = BTreeMap::new();
    for kind in KINDS {
        let found = list(client, kind, namespace).await;
        objects.insert(
            kind,
            found.with_context(|| format!("cannot list {kind} in {cluster}"))?,
        );
    }
    Ok(Picture::of(cluster, |kind| {
        objects.remove(kind).unwrap_or_default()
    }))
}

async fn list(client: &Client, kind: &str, namespace: &str) -> anyhow::Result<Vec<Arc<Value>>> {
    let (group, version) = match kind {
        "EndpointSlice" => ("discovery.k8s.io", "v1"),
        "ServiceExport" | "ServiceImport" => ("multicluster.x-k8s.io", "v1beta1"),
        _ => ("", "v1"),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let (api, only): (Api<DynamicObject>, _) = match kind {
        "Namespace" => {
            let named = ListParams::default().fields(&format!("metadata.name={namespace}"));
            (Api::all_with(client.clone(), &resource), named)
        }
        _ => (
            Api::namespaced_with(client.clone(), namespace, &resource),
            ListParams::default(),
        ),
    };
    let listed = match api.list(&only).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        listed => listed?,
    };
    let values = listed.items.into_iter().map(|object| {
        let value = serde_json::to_value(object)?;
        Ok(Arc::new(value))
    });
    values.collect()
}
