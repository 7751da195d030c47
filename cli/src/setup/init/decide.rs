//! The steps of `init`, from what was seen, and the addresses of the hub. Pure.

use std::net::IpAddr;

use shared::tls::HubAddress;

use super::super::{
    args::{InitArgs, ServiceType},
    home::{HubPlace, Pair},
    plan::Planned,
    values::{AGENT_TLS, HUB_JOINING, HUB_TLS},
};

/// The operator unless another name is given.
const OPERATOR: &str = "admin";
/// Port of the Service at which clusters join.
pub(in crate::setup) const JOIN_PORT: u16 = 8444;
/// Addresses of nodes in a join string, at most.
const NODES_MAX: usize = 3;

/// The requested place and owner of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) kind: ServiceType,
    pub(super) address: Option<HubAddress>,
    pub(super) join_address: Option<HubAddress>,
    pub(super) operator: String,
}

/// The flags of this run, and where they say nothing those of the run before; an address belongs to its Service's type.
pub(super) fn wish(args: &InitArgs, before: Option<&HubPlace>) -> Wish {
    let kind = args.service_type.or(before.map(|before| before.service_type));
    let kind = kind.unwrap_or_default();
    let same = before.filter(|before| before.service_type == kind);
    let address = |given: &Option<HubAddress>, before: Option<&String>| {
        given
            .clone()
            .or_else(|| before.and_then(|text| text.parse().ok()))
    };
    let operator = args
        .operator
        .clone()
        .or_else(|| before.map(|before| before.operator.clone()));
    Wish {
        kind,
        address: address(&args.address, same.and_then(|before| before.given.as_ref())),
        join_address: address(
            &args.join_address,
            same.and_then(|before| before.given_join.as_ref()),
        ),
        operator: operator.unwrap_or_else(|| OPERATOR.to_owned()),
    }
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The authority, on this machine.
    Authority,
    /// The authority with which clusters join.
    Joining,
    /// The hub's certificate.
    HubCertificate,
    /// The operator's certificate.
    OperatorCertificate,
    /// The namespace.
    Namespace,
    /// The definitions.
    Definitions,
    /// The Secret with the hub's certificate.
    HubSecret,
    /// The Secret with the authority with which clusters join.
    JoiningSecret,
    /// The hub, by Helm.
    Hub,
}

/// The state of this machine and the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) authority: Pair,
    pub(super) joining: Pair,
    pub(super) hub: Pair,
    pub(super) operator: Pair,
    /// The authority's certificate on this machine.
    pub(super) ca: Option<String>,
    /// The joining authority's certificate on this machine.
    pub(super) joining_certificate: Option<String>,
    /// The hub's certificate on this machine was issued after the one in the hub's Secret.
    pub(super) hub_is_newer: bool,
    pub(super) namespace: bool,
    /// `ca.crt` of the hub's Secret; `None`: there is no such Secret.
    pub(super) secret_ca: Option<String>,
    /// `tls.crt` of the Secret with the joining authority.
    pub(super) secret_joining: Option<String>,
    /// The reason to install definitions.
    pub(super) definitions: Option<String>,
    /// The reason to call Helm for the hub.
    pub(super) release: Option<String>,
}

/// The steps in their order.
///
/// # Errors
///
/// Nothing may be changed: why, and what to do.
pub(super) fn plan(seen: &Seen, namespace: &str, directory: &str) -> Result<Vec<Planned<Step>>, String> {
    let same = |here: Option<&String>, there: &str| here.is_some_and(|here| there.contains(here.trim()));
    if let Some(there) = &seen.secret_ca {
        if seen.authority == Pair::Missing {
            return Err(format!(
                "the cluster has a hub already (Secret {namespace}/{HUB_TLS}), and its authority is not in {directory}. Copy \
                 that directory from the machine where the hub was made; an authority is never replaced"
            ));
        }
        if !same(seen.ca.as_ref(), there) {
            return Err(format!(
                "the hub in this cluster (Secret {namespace}/{HUB_TLS}) was made with another authority than \
                 {directory}/ca.crt. Name another clusterset with --clusterset, another cluster with --context, or another \
                 namespace with --namespace"
            ));
        }
    }
    authority_is_lost(seen, directory).map_or(Ok(()), Err)?;
    for (pair, name) in [(seen.authority, "ca.key"), (seen.joining, "joining.ca.key")] {
        if pair == Pair::WithoutKey {
            return Err(format!(
                "{directory}/{name} is missing, and its certificate is there. Put it back from a copy; a key that was used \
                 is never replaced"
            ));
        }
    }
    let missing = |pair: Pair| pair != Pair::Whole;
    if seen.secret_joining.is_some() && missing(seen.joining) {
        return Err(format!(
            "the cluster has the authority with which clusters join (Secret {namespace}/{HUB_JOINING}), and it is not in \
             {directory}. Copy that directory from the machine where the hub was made"
        ));
    }
    let joining_differs = match &seen.secret_joining {
        Some(there) => !same(seen.joining_certificate.as_ref(), there),
        None => true,
    };
    let hub_differs = missing(seen.hub) || seen.secret_ca.is_none() || seen.hub_is_newer;
    Ok(vec![
        Planned::if_missing(Step::Authority, missing(seen.authority)),
        Planned::if_missing(Step::Joining, missing(seen.joining)),
        Planned::if_missing(Step::HubCertificate, missing(seen.hub)),
        Planned::if_missing(Step::OperatorCertificate, missing(seen.operator)),
        Planned::if_missing(Step::Namespace, !seen.namespace),
        Planned::because(Step::Definitions, seen.definitions.clone()),
        Planned::if_missing(Step::HubSecret, hub_differs),
        Planned::if_missing(Step::JoiningSecret, joining_differs),
        Planned::because(Step::Hub, seen.release.clone()),
    ])
}

/// The reason why no authority may be made although `ca.crt` is missing: there was one.
fn authority_is_lost(seen: &Seen, directory: &str) -> Option<String> {
    let there = |pair: Pair| pair != Pair::Missing;
    match seen.authority {
        Pair::WithoutCertificate => Some(format!(
            "{directory}/ca.crt is missing, and its key is there. Put it back: it is ca.crt in the Secret {HUB_TLS} of the \
             hub, and in {AGENT_TLS} of every member"
        )),
        Pair::Missing if there(seen.joining) || there(seen.hub) => Some(format!(
            "{directory} has certificates, and ca.crt and ca.key of their authority are missing. Put both back from a copy"
        )),
        _ => None,
    }
}

/// The place of a hub that others install from files.
///
/// # Errors
///
/// A flag is missing: there is no Service to ask.
pub(super) fn printed_place(wish: &Wish, before: Option<&HubPlace>) -> Result<HubPlace, String> {
    let Some(hub) = &wish.address else {
        return Err("--print needs --address HOST:PORT: the join strings carry it".to_owned());
    };
    let join = match (&wish.join_address, wish.kind) {
        (Some(join), _) => join.clone(),
        (None, ServiceType::NodePort) => {
            return Err(
                "--print with --service-type NodePort needs --join-address HOST:PORT too: the node port is not known yet"
                    .to_owned(),
            );
        }
        (None, ServiceType::LoadBalancer | ServiceType::ClusterIp) => HubAddress {
            port: JOIN_PORT,
            ..hub.clone()
        },
    };
    Ok(HubPlace {
        hubs: vec![hub.to_string()],
        joins: vec![join.to_string()],
        operator: wish.operator.clone(),
        service_type: wish.kind,
        given: wish.address.as_ref().map(ToString::to_string),
        given_join: wish.join_address.as_ref().map(ToString::to_string),
        ..before.cloned().unwrap_or_default()
    })
}

/// The hub's Service, as far as it says where the hub is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServiceSeen {
    /// Hosts of its load balancer.
    pub(super) hosts: Vec<String>,
    /// Port and node port of the hub.
    pub(super) sync: (u16, Option<u16>),
    /// Port and node port at which clusters join.
    pub(super) join: (u16, Option<u16>),
}

/// A node's addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeSeen {
    pub(super) ready: bool,
    pub(super) external: Option<String>,
    pub(super) internal: Option<String>,
}

/// The hub's addresses, or the wait for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addresses {
    /// The hub's, and those where clusters join.
    Known {
        hubs: Vec<HubAddress>,
        joins: Vec<HubAddress>,
    },
    /// They are not known yet.
    Waiting(String),
}

/// The addresses of the hub.
pub(super) fn addresses(
    kind: ServiceType,
    service: &ServiceSeen,
    nodes: &[NodeSeen],
    (given, given_join): (Option<&HubAddress>, Option<&HubAddress>),
) -> Addresses {
    let at = |hosts: &[String], port: u16| -> Vec<HubAddress> {
        let address = |host: &String| HubAddress {
            host: host.as_str().into(),
            port,
        };
        hosts.iter().map(address).collect()
    };
    let join_port = match kind {
        ServiceType::NodePort => service.join.1,
        ServiceType::LoadBalancer | ServiceType::ClusterIp => Some(service.join.0),
    };
    let known = |hubs: Vec<HubAddress>, port: u16| {
        let joins = match given_join {
            Some(given) => vec![given.clone()],
            None => hubs
                .iter()
                .map(|hub| HubAddress { port, ..hub.clone() })
                .collect(),
        };
        Addresses::Known { hubs, joins }
    };
    let waiting = |reason: &str| Addresses::Waiting(reason.to_owned());
    let Some(join_port) = join_port else {
        return waiting("the Service tributary-hub has no node port yet");
    };
    if let Some(given) = given {
        return known(vec![given.clone()], join_port);
    }
    match (kind, service.sync.1) {
        (ServiceType::LoadBalancer, _) if service.hosts.is_empty() => waiting(
            "the load balancer of the Service tributary-hub has no address yet (a cluster without load balancers needs \
             --service-type NodePort, or --address HOST:PORT)",
        ),
        (ServiceType::LoadBalancer, _) => known(at(&service.hosts, service.sync.0), join_port),
        (ServiceType::NodePort, Some(port)) => {
            let hosts = node_hosts(nodes);
            if hosts.is_empty() {
                return waiting("no node is ready and has an address");
            }
            known(at(&hosts, port), join_port)
        }
        (ServiceType::NodePort, None) => waiting("the Service tributary-hub has no node port yet"),
        (ServiceType::ClusterIp, _) => waiting("--service-type ClusterIP needs --address HOST:PORT"),
    }
}

/// External addresses if all nodes that are ready have one, else internal ones.
fn node_hosts(nodes: &[NodeSeen]) -> Vec<String> {
    let ready: Vec<&NodeSeen> = nodes.iter().filter(|node| node.ready).collect();
    let external: Vec<String> = ready.iter().filter_map(|node| node.external.clone()).collect();
    let mut hosts = if external.is_empty() {
        ready.iter().filter_map(|node| node.internal.clone()).collect()
    } else {
        external
    };
    hosts.truncate(NODES_MAX);
    hosts
}

/// Names and addresses for the hub's certificate, which tools such as grpcurl check.
pub(super) fn names(namespace: &str, given: Option<&HubAddress>) -> (Vec<String>, Vec<IpAddr>) {
    let mut names = vec!["localhost".to_owned(), format!("tributary-hub.{namespace}.svc")];
    let mut ips = Vec::new();
    match given.map(|given| (given.host.parse::<IpAddr>(), given.host.to_lowercase())) {
        Some((Ok(ip), _)) => ips.push(ip),
        Some((Err(_), name)) => names.push(name),
        None => {}
    }
    (names, ips)
}

#[cfg(test)]
mod tests;
