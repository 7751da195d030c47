//! Looks at this machine and the cluster for `init`.

use std::collections::BTreeMap;

use anyhow::anyhow;
use k8s_openapi::api::core::v1::{Node, NodeAddress, Service, ServicePort};
use kube::{Api, api::ListParams};
use shared::{identity::CertificateFacts, tls::certificates_in};

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
    let (hub, joining) = (cluster.secret(HUB_TLS).await?, cluster.secret(HUB_JOINING).await?);
    let of = |texts: &BTreeMap<String, String>, name: &str| texts.get(name).cloned().unwrap_or_default();
    let certificate = hub.as_ref().map(|texts| of(texts, "tls.crt"));
    let seen = Seen {
        hub_is_newer: is_newer(home.text("hub.crt")?.as_deref(), certificate.as_deref()),
        namespace: cluster.has_namespace().await?,
        secret_ca: hub.as_ref().map(|texts| of(texts, "ca.crt")),
        secret_joining: joining.as_ref().map(|texts| of(texts, "tls.crt")),
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

/// True if the certificate here was issued after the one there: an old copy of the directory does not replace a newer one.
fn is_newer(here: Option<&str>, there: Option<&str>) -> bool {
    let begins = |pem: &str| {
        let certificates = certificates_in("hub.crt", pem.as_bytes()).ok()?;
        let facts = CertificateFacts::read(certificates.first()?).ok()?;
        Some(facts.not_before)
    };
    match (here, there) {
        (Some(here), Some(there)) => begins(here) > begins(there),
        _ => false,
    }
}

/// The state of this machine, with an empty cluster.
pub(super) fn local(operator: &str, home: &Home) -> anyhow::Result<Seen> {
    Ok(Seen {
        authority: home.pair("ca")?,
        joining: home.pair("joining.ca")?,
        hub: home.pair("hub")?,
        operator: home.pair(operator)?,
        ca: home.text("ca.crt")?,
        joining_certificate: home.text("joining.ca.crt")?,
        hub_is_newer: false,
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

#[cfg(test)]
mod tests {
    use certs::{CertificateAuthority, Subject, Validity};
    use shared::model::{Clusterset, UnixMillis};

    use super::*;

    #[test]
    fn a_later_certificate_is_newer_and_an_earlier_one_is_not() {
        let clusterset = Clusterset::new("example.org", "default").expect("valid");
        let year = Validity::days_from_now(365);
        let authority = CertificateAuthority::generate(&clusterset, year).expect("made");
        let issued = |earlier: u64| {
            let subject = Subject::Hub {
                name: "hub".to_owned(),
                dns_names: Vec::new(),
                ips: Vec::new(),
            };
            let validity = Validity {
                not_before: UnixMillis(year.not_before.0 - earlier),
                ..year
            };
            authority
                .issue(&subject, validity)
                .expect("issued")
                .certificate_pem
        };
        let (old, new) = (issued(60_000), issued(0));
        for (here, there, newer) in [
            (Some(&new), Some(&old), true),
            (Some(&old), Some(&new), false),
            (Some(&new), Some(&new), false),
            (None, Some(&old), false),
            (Some(&new), None, false),
            (Some(&new), Some(&"no certificate".to_owned()), true),
        ] {
            let is = is_newer(here.map(String::as_str), there.map(String::as_str));
            assert_eq!(is, newer, "{here:?} {there:?}");
        }
    }
}
