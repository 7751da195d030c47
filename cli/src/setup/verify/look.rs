//! Reads the objects of the services and of the agent in a cluster.

use std::{collections::BTreeMap, net::IpAddr};

use anyhow::Context;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace, discovery::v1::EndpointSlice};
use kube::{Api, api::ListParams};
use shared::{
    api::{ServiceImport, ServiceImportType, names},
    model::ServiceKey,
};

use super::{
    super::cluster::Cluster,
    pod::Template,
    seen::{Endpoint, Found, Import},
};

/// The agent of a cluster.
const AGENT: &str = "tributary-agent";
/// EndpointSlices of one import that are read.
const SLICES_MAX: u32 = 500;

/// The objects of a service in the cluster.
pub(super) async fn found(cluster: &Cluster, service: &ServiceKey) -> anyhow::Result<Found> {
    let (namespace, name) = (&*service.namespace, &*service.name);
    let failed = |error| cluster.failed(error);
    let imports = Api::<ServiceImport>::namespaced(cluster.client.clone(), namespace);
    let Some(import) = imports.get_opt(name).await.map_err(failed)? else {
        let namespaces = Api::<Namespace>::all(cluster.client.clone());
        let there = namespaces.get_opt(namespace).await.map_err(failed)?;
        return Ok(match there {
            Some(_) => Found::NoImport,
            None => Found::NoNamespace,
        });
    };
    let slices = Api::<EndpointSlice>::namespaced(cluster.client.clone(), namespace);
    let of_import = format!("{}={name}", names::LABEL_SERVICE_NAME);
    let params = ListParams::default().labels(&of_import).limit(SLICES_MAX);
    let slices = slices.list(&params).await.map_err(failed)?;
    Ok(Found::Import(read(&import, &slices.items)))
}

/// The settings that the pods of the cluster take from its agent.
pub(super) async fn template(cluster: &Cluster) -> anyhow::Result<Template> {
    let deployments = Api::<Deployment>::namespaced(cluster.client.clone(), cluster.namespace());
    let agent = deployments
        .get_opt(AGENT)
        .await
        .map_err(|error| cluster.failed(error))?;
    agent.as_ref().and_then(Template::of).with_context(|| {
        format!(
            "namespace {} has no Deployment {AGENT}, whose image the pods take",
            cluster.namespace()
        )
    })
}

/// An import and its slices as plain values.
fn read(import: &ServiceImport, slices: &[EndpointSlice]) -> Import {
    let spec = &import.spec;
    let is_tcp = |protocol: Option<&str>| protocol.is_none_or(|protocol| protocol == "TCP");
    let port = |port: i32| u16::try_from(port).ok();
    let mut endpoints: BTreeMap<String, Vec<Endpoint>> = BTreeMap::new();
    for slice in slices {
        let labels = slice.metadata.labels.as_ref();
        let Some(source) = labels.and_then(|labels| labels.get(names::LABEL_SOURCE_CLUSTER)) else {
            continue;
        };
        let ports = slice.ports.iter().flatten();
        let ports = ports.filter(|port| is_tcp(port.protocol.as_deref()));
        let ports: Vec<u16> = ports.filter_map(|one| one.port.and_then(port)).collect();
        for endpoint in &slice.endpoints {
            let conditions = endpoint.conditions.as_ref();
            let ready = conditions.and_then(|conditions| conditions.ready).unwrap_or(true);
            let addresses = endpoint
                .addresses
                .iter()
                .filter_map(|address| address.parse().ok());
            let read = addresses.map(|address: IpAddr| Endpoint {
                address,
                ports: ports.clone(),
                ready,
            });
            endpoints.entry(source.clone()).or_default().extend(read);
        }
    }
    let tcp = spec.ports.iter().filter(|port| is_tcp(port.protocol.as_deref()));
    Import {
        headless: spec.type_ == ServiceImportType::Headless,
        ips: spec.ips.iter().filter_map(|ip| ip.parse().ok()).collect(),
        ports: tcp.filter_map(|one| port(one.port)).collect(),
        endpoints,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_belong_to_their_source_and_only_tcp_is_dialled() {
        let import: ServiceImport = serde_json::from_value(json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": {"name": "cart"},
            "spec": {"type": "ClusterSetIP", "ips": ["10.96.0.1"], "ports": [
                {"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"},
            ]},
        }))
        .expect("an import");
        let slice = |source: &str, address: &str, ready: bool| -> EndpointSlice {
            serde_json::from_value(json!({
                "metadata": {"labels": {"multicluster.kubernetes.io/source-cluster": source}},
                "addressType": "IPv4",
                "ports": [{"port": 8080}, {"port": 53, "protocol": "UDP"}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
            }))
            .expect("a slice")
        };
        let read = read(
            &import,
            &[slice("east", "10.0.0.1", true), slice("west", "10.1.0.1", false)],
        );
        assert_eq!((read.headless, &read.ports[..]), (false, &[80][..]));
        let east = Endpoint {
            address: [10, 0, 0, 1].into(),
            ports: vec![8080],
            ready: true,
        };
        assert_eq!(read.endpoints["east"], [east]);
        assert!(!read.endpoints["west"][0].ready);
    }
}
