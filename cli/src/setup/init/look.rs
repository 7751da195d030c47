//! Looks at this machine and the cluster for `init`.

use anyhow::anyhow;
use k8s_openapi::api::core::v1::{Node, NodeAddress, Service, ServicePort};
use kube::{Api, api::ListParams};

use super::{
    HUB, Shell, chart_values,
    decide::{NodeSeen, Seen, ServiceSeen, Step, Wish, plan},
};
use crate::setup::{
    args::{InitArgs, ServiceType},
    cluster::Cluster,
    helm::{Charts, Definitions, Helm},
    home::Home,
    plan::Planned,
    values::{HUB_JOINING, HUB_TLS, release_needs},
};

/// Looks, and plans.
pub(super) async fn look<'a>(
    (args, wish): (&'a InitArgs, Wish),
    home: &'a Home,
    (cluster, helm, charts): (Cluster, Helm, Charts),
) -> anyhow::Result<(Shell<'a>, Vec<Planned<Step>>)> {
    let values = chart_values(args, &wish);
    let definitions = Definitions::look(&cluster, &helm, &charts).await?;
    let release = charts.release((&cluster, &helm), HUB).await?;
    let secret = |name: &'static str| cluster.secret(name);
    let seen = Seen {
        namespace: cluster.has_namespace().await?,
        secret_ca: secret(HUB_TLS)
            .await?
            .map(|mut texts| texts.remove("ca.crt").unwrap_or_default()),
        secret_joining: secret(HUB_JOINING)
            .await?
            .map(|mut texts| texts.remove("tls.crt").unwrap_or_default()),
        definitions: definitions.needs(),
        release: release_needs(release.as_ref(), &values, charts.given()),
        ..local(&wish.operator, home)?
    };
    let planned = plan(&seen, cluster.namespace(), &home.directory.display().to_string());
    let planned = planned.map_err(|why| anyhow!(why))?;
    let shell = Shell {
        args,
        wish,
        home,
        cluster,
        helm,
        charts,
        definitions,
        release,
        values,
    };
    Ok((shell, planned))
}

/// What is on this machine, and a cluster that has nothing.
pub(super) fn local(operator: &str, home: &Home) -> anyhow::Result<Seen> {
    Ok(Seen {
        authority: home.pair("ca")?,
        joining: home.pair("joining.ca")?,
        hub: home.pair("hub")?,
        operator: home.pair(operator)?,
        ca: home.text("ca.crt")?,
        joining_certificate: home.text("joining.ca.crt")?,
        namespace: false,
        secret_ca: None,
        secret_joining: None,
        definitions: None,
        release: None,
    })
}

/// The hub's Service, and the nodes if members reach it there.
pub(super) async fn places(
    cluster: &Cluster,
    kind: ServiceType,
) -> anyhow::Result<(ServiceSeen, Vec<NodeSeen>)> {
    let services = Api::<Service>::namespaced(cluster.client.clone(), cluster.namespace());
    let found = services.get(HUB).await.map_err(|error| cluster.failed(error))?;
    let service = service_seen(&found);
    if kind != ServiceType::NodePort {
        return Ok((service, Vec::new()));
    }
    let nodes = Api::<Node>::all(cluster.client.clone());
    let nodes = nodes
        .list(&ListParams::default())
        .await
        .map_err(|error| cluster.failed(error))?;
    Ok((service, nodes.items.iter().map(node_seen).collect()))
}

fn service_seen(service: &Service) -> ServiceSeen {
    let ports = service
        .spec
        .as_ref()
        .and_then(|spec| spec.ports.as_deref())
        .unwrap_or_default();
    let port = |name: &str| ports.iter().find(|port| port.name.as_deref() == Some(name));
    let number = |number: i32| u16::try_from(number).unwrap_or_default();
    let numbers = |port: Option<&ServicePort>, else_: u16| match port {
        Some(port) => (number(port.port), port.node_port.map(number)),
        None => (else_, None),
    };
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    ServiceSeen {
        hosts: ingress
            .iter()
            .filter_map(|one| one.hostname.clone().or(one.ip.clone()))
            .collect(),
        sync: numbers(port("sync"), 8443),
        join: numbers(port("join"), 8444),
    }
}

fn node_seen(node: &Node) -> NodeSeen {
    let status = node.status.as_ref();
    let conditions = status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let addresses: &[NodeAddress] = status
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default();
    let address = |kind: &str| {
        let found = addresses.iter().find(|address| address.type_ == kind);
        found.map(|address| address.address.clone())
    };
    NodeSeen {
        ready: conditions
            .iter()
            .any(|one| one.type_ == "Ready" && one.status == "True"),
        external: address("ExternalIP"),
        internal: address("InternalIP"),
    }
}
