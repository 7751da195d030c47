//! The steps of `init`, from what was seen, and the addresses of the hub. Pure.

use std::net::IpAddr;

use shared::tls::HubAddress;

use super::super::{
    args::{InitArgs, ServiceType},
    home::{HubPlace, Pair},
    plan::Planned,
    values::{HUB_JOINING, HUB_TLS},
};

/// The operator unless another name is given.
const OPERATOR: &str = "admin";
/// Addresses of nodes in a join string, at most.
const NODES_MAX: usize = 3;

/// Where the hub is to be, and for whom.
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

/// What is on this machine and in the cluster.
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
                "the hub in this cluster (Secret {namespace}/{HUB_TLS}) is of another authority than the one in {directory}. \
                 Name another clusterset with --clusterset, or another cluster with --context"
            ));
        }
    }
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
    Ok(vec![
        Planned::if_missing(Step::Authority, missing(seen.authority)),
        Planned::if_missing(Step::Joining, missing(seen.joining)),
        Planned::if_missing(Step::HubCertificate, missing(seen.hub)),
        Planned::if_missing(Step::OperatorCertificate, missing(seen.operator)),
        Planned::if_missing(Step::Namespace, !seen.namespace),
        Planned::because(Step::Definitions, seen.definitions.clone()),
        Planned::if_missing(Step::HubSecret, seen.secret_ca.is_none()),
        Planned::if_missing(Step::JoiningSecret, joining_differs),
        Planned::because(Step::Hub, seen.release.clone()),
    ])
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

/// What the addresses are, or what is waited for.
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
mod tests {
    use clap::Parser;

    use super::*;
    use crate::{
        command::{Cli, Command},
        setup,
    };

    fn nothing() -> Seen {
        Seen {
            authority: Pair::Missing,
            joining: Pair::Missing,
            hub: Pair::Missing,
            operator: Pair::Missing,
            ca: None,
            joining_certificate: None,
            namespace: false,
            secret_ca: None,
            secret_joining: None,
            definitions: Some("definitions are missing".to_owned()),
            release: Some("it is not installed".to_owned()),
        }
    }

    fn everything() -> Seen {
        Seen {
            authority: Pair::Whole,
            joining: Pair::Whole,
            hub: Pair::Whole,
            operator: Pair::Whole,
            ca: Some("CA\n".to_owned()),
            joining_certificate: Some("JOINING\n".to_owned()),
            namespace: true,
            secret_ca: Some("CA\n".to_owned()),
            secret_joining: Some("JOINING\n".to_owned()),
            definitions: None,
            release: None,
        }
    }

    /// Carries a step out, as the shell would.
    fn carried_out(seen: &mut Seen, step: Step) {
        let all = everything();
        match step {
            Step::Authority => (seen.authority, seen.ca) = (all.authority, all.ca),
            Step::Joining => {
                (seen.joining, seen.joining_certificate) = (all.joining, all.joining_certificate)
            }
            Step::HubCertificate => seen.hub = all.hub,
            Step::OperatorCertificate => seen.operator = all.operator,
            Step::Namespace => seen.namespace = all.namespace,
            Step::Definitions => seen.definitions = all.definitions,
            Step::HubSecret => seen.secret_ca = all.secret_ca,
            Step::JoiningSecret => seen.secret_joining = all.secret_joining,
            Step::Hub => seen.release = all.release,
        }
    }

    fn todo(seen: &Seen) -> Vec<Step> {
        let steps = plan(seen, "ns", "dir").expect("a plan").into_iter();
        steps
            .filter(|step| step.todo.is_some())
            .map(|step| step.step)
            .collect()
    }

    /// Killed after any number of steps, the next run has exactly those to do that are left.
    #[test]
    fn each_half_done_state_continues() {
        let whole = todo(&nothing());
        assert_eq!(whole.len(), 9);
        for stop in 0..=whole.len() {
            let mut seen = nothing();
            for step in &whole[..stop] {
                carried_out(&mut seen, *step);
            }
            assert_eq!(todo(&seen), whole[stop..], "after {stop} steps");
        }
    }

    #[test]
    fn an_authority_is_never_replaced() {
        let refused = |change: fn(&mut Seen)| {
            let mut seen = everything();
            change(&mut seen);
            plan(&seen, "ns", "dir").expect_err("refused")
        };
        assert!(refused(|seen| seen.authority = Pair::Missing).contains("Copy that directory"));
        assert!(refused(|seen| seen.secret_ca = Some("OTHER".to_owned())).contains("another authority"));
        assert!(refused(|seen| seen.authority = Pair::WithoutKey).contains("ca.key"));
        assert!(refused(|seen| seen.joining = Pair::Missing).contains("with which clusters join"));
        assert!(refused(|seen| seen.joining = Pair::WithoutKey).contains("joining.ca.key"));
        // A successor of the joining authority that was made here goes into the cluster.
        let mut seen = everything();
        seen.joining_certificate = Some("NEXT".to_owned());
        assert_eq!(todo(&seen), [Step::JoiningSecret]);
    }

    #[test]
    fn a_second_run_needs_no_flags() {
        let args = |line: &str| {
            let typed = Cli::try_parse_from(line.split(' ')).expect("understood");
            match typed.command {
                Command::Setup(setup::Command::Init(args)) => args,
                other => panic!("{other:?}"),
            }
        };
        let first = "tributary init --context hub --service-type ClusterIP --address hub.example.org:443 --operator alice";
        let first = wish(&args(first), None);
        let before = HubPlace {
            hubs: Vec::new(),
            joins: Vec::new(),
            operator: first.operator.clone(),
            service_type: first.kind,
            given: first.address.as_ref().map(ToString::to_string),
            given_join: None,
        };
        assert_eq!(wish(&args("tributary init --context hub"), Some(&before)), first);
        let other = wish(
            &args("tributary init --context hub --service-type NodePort"),
            Some(&before),
        );
        assert_eq!((other.kind, other.address), (ServiceType::NodePort, None));
        let plain = wish(&args("tributary init --context hub"), None);
        assert_eq!(
            (plain.kind, plain.operator.as_str()),
            (ServiceType::LoadBalancer, "admin")
        );
    }

    #[test]
    fn addresses_come_from_the_service() {
        let mut service = ServiceSeen {
            sync: (8443, None),
            join: (8444, None),
            ..ServiceSeen::default()
        };
        let none = (None, None);
        let known = |found: Addresses| match found {
            Addresses::Known { hubs, joins } => {
                let texts = |all: Vec<HubAddress>| all.iter().map(ToString::to_string).collect::<Vec<_>>();
                (texts(hubs), texts(joins))
            }
            Addresses::Waiting(why) => panic!("{why}"),
        };
        let waits = |found: Addresses| matches!(found, Addresses::Waiting(_));
        assert!(waits(addresses(ServiceType::LoadBalancer, &service, &[], none)));
        service.hosts = vec!["192.0.2.1".to_owned()];
        assert_eq!(
            known(addresses(ServiceType::LoadBalancer, &service, &[], none)),
            (
                vec!["https://192.0.2.1:8443".to_owned()],
                vec!["https://192.0.2.1:8444".to_owned()]
            )
        );
        let given = "https://hub.example.org:443".parse().expect("an address");
        assert_eq!(
            known(addresses(
                ServiceType::ClusterIp,
                &service,
                &[],
                (Some(&given), None)
            )),
            (
                vec!["https://hub.example.org:443".to_owned()],
                vec!["https://hub.example.org:8444".to_owned()]
            )
        );
        assert!(waits(addresses(ServiceType::ClusterIp, &service, &[], none)));
    }

    #[test]
    fn node_ports_are_at_the_nodes_that_are_ready() {
        let service = ServiceSeen {
            sync: (8443, Some(30_843)),
            join: (8444, Some(30_844)),
            ..ServiceSeen::default()
        };
        let node = |ready, last: u8| NodeSeen {
            ready,
            external: None,
            internal: Some(format!("192.0.2.{last}")),
        };
        let nodes = [node(false, 1), node(true, 2), node(true, 3)];
        let found = addresses(ServiceType::NodePort, &service, &nodes, (None, None));
        let Addresses::Known { hubs, joins } = found else {
            panic!("{found:?}")
        };
        assert_eq!(
            (hubs.len(), hubs[0].to_string()),
            (2, "https://192.0.2.2:30843".to_owned())
        );
        assert_eq!(joins[1].to_string(), "https://192.0.2.3:30844");
        let waits = addresses(ServiceType::NodePort, &service, &[node(false, 1)], (None, None));
        assert!(matches!(waits, Addresses::Waiting(_)));
    }
}
