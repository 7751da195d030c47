//! The words for each fault, and the next step. Pure.

use std::{collections::BTreeSet, net::SocketAddr};

use agent::probe::TIMED_OUT;
use shared::model::{ServiceKey, advice};

use super::seen::{Family, Unseen};

/// The fault, and the next step.
type Told = (String, String);

/// The target of a connection.
pub(super) struct Between<'a> {
    pub(super) service: &'a ServiceKey,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// The context of `to`, if it is known.
    pub(super) to_context: Option<&'a str>,
}

fn kubectl(context: Option<&str>, words: &str) -> String {
    let context = advice::quoted(context.unwrap_or("CONTEXT"));
    format!("`kubectl --context {context} {words}`")
}

pub(super) fn nothing_exported() -> Told {
    (
        "no service is exported".to_owned(),
        format!("export one: `{}`", advice::export("CONTEXT")),
    )
}

pub(super) fn exported_nowhere(service: &ServiceKey) -> Told {
    (
        "no cluster exports it, or --to leaves none".to_owned(),
        format!("export it: `{}`", advice::export_service(service, "CONTEXT")),
    )
}

pub(super) fn not_exported(service: &ServiceKey, to: &str, context: Option<&str>) -> Told {
    let export = advice::export_service(service, context.unwrap_or("CONTEXT"));
    (
        format!("{to} does not export it"),
        format!("export it there: `{export}`"),
    )
}

pub(super) fn denied(service: &ServiceKey, to: &str, denial: &str) -> Told {
    (
        format!("the hub does not take the export of {to}: {denial}"),
        format!("`{}` says which rule refuses it", advice::explain(service)),
    )
}

pub(super) fn without_endpoints(service: &ServiceKey, to: &str, context: Option<&str>) -> Told {
    let (namespace, name) = (&service.namespace, &service.name);
    (
        format!("{to} exports it without an endpoint, so nobody answers there"),
        format!(
            "compare the selector of the Service with the labels of its pods: {}",
            kubectl(
                context,
                &format!("-n {namespace} get service/{name} pods -o wide --show-labels")
            )
        ),
    )
}

pub(super) fn none_ready(service: &ServiceKey, to: &str, context: Option<&str>) -> Told {
    (
        format!("no endpoint of {to} is ready"),
        format!(
            "see why its pods are not: {}",
            kubectl(context, &format!("-n {} get pods", service.namespace))
        ),
    )
}

pub(super) fn endpoints_missing(service: &ServiceKey, to: &str, from: &str) -> Told {
    (
        format!("the hub has endpoints of {to}, and {from} has none of them"),
        format!("`{}` says how far they came", advice::explain_in(service, from)),
    )
}

pub(super) fn without_namespace(service: &ServiceKey, from: &str, context: &str) -> Told {
    let namespace = &service.namespace;
    (
        format!("{from} has no namespace {namespace}, so it imports nothing"),
        format!(
            "make it, if pods of {from} shall use the service: {}",
            kubectl(Some(context), &format!("create namespace {namespace}"))
        ),
    )
}

pub(super) fn not_imported(service: &ServiceKey, from: &str) -> Told {
    (
        format!("{from} has no ServiceImport {service}"),
        format!("`{}` says why", advice::explain_in(service, from)),
    )
}

pub(super) fn no_common_family(
    to: &str,
    theirs: &BTreeSet<Family>,
    from: &str,
    own: &BTreeSet<Family>,
) -> Told {
    let names = |families: &BTreeSet<Family>| {
        let names: Vec<&str> = families.iter().map(|family| family.name()).collect();
        names.join(" and ")
    };
    (
        format!(
            "endpoints of {to} are {}, and the service in {from} is {}",
            names(theirs),
            names(own)
        ),
        "clusters that share a service need an IP family in common: make the cluster or the Service dual-stack".to_owned(),
    )
}

pub(super) fn no_tcp_port(service: &ServiceKey, to: &str) -> Told {
    (
        format!("{service} of {to} has no TCP port, and verify opens TCP connections only"),
        "ask it with a client of its own protocol, from a pod".to_owned(),
    )
}

pub(super) fn unresolved(name: &str, why: &str, from: &str, context: &str) -> Told {
    let next = if why == TIMED_OUT {
        format!(
            "DNS does not answer pods there: see if CoreDNS runs ({}), and if a NetworkPolicy keeps pods from it",
            kubectl(Some(context), "-n kube-system get pods")
        )
    } else {
        format!(
            "let CoreDNS answer clusterset.local: `{}` (docs/guides/dns.md); a new name may take 30 s, for which CoreDNS \
             keeps that there was none",
            advice::join_dns(from, context)
        )
    };
    (format!("{name} does not resolve in {from}: {why}"), next)
}

pub(super) fn other_answer(name: &str, found: &[String], from: &str, context: &str) -> Told {
    let what = if found.is_empty() {
        format!("{name} has no address of this family in {from}, though the ServiceImport has one")
    } else {
        format!(
            "{name} resolves to {} in {from}, and the ServiceImport has other addresses",
            found.join(", ")
        )
    };
    let next = format!(
        "run verify again after 30 s, for which CoreDNS keeps answers; then see its log: {}",
        kubectl(Some(context), "-n kube-system logs deployment/coredns")
    );
    (what, next)
}

pub(super) fn front_closed(at: SocketAddr, timed_out: bool, from: &str, context: &str) -> Told {
    let how = if timed_out {
        "does not answer"
    } else {
        "refuses connections"
    };
    (
        format!("the clusterset IP {at} {how} in {from}, and the pods behind it answer"),
        format!(
            "see if kube-proxy, or what takes its place, runs on the nodes of {from}: {}",
            kubectl(Some(context), "-n kube-system get pods -o wide")
        ),
    )
}

pub(super) fn no_context(id: &str) -> Unseen {
    Unseen {
        why: "it did not join from this machine, so its context is not known".to_owned(),
        next: format!("name it: --cluster {id}=CONTEXT"),
    }
}

pub(super) fn unreachable(id: &str, error: &anyhow::Error) -> Unseen {
    Unseen {
        why: format!("{error:#}"),
        next: format!(
            "correct the context of {id} with --cluster {id}=CONTEXT; --image names an image if the agent's is not found"
        ),
    }
}

pub(super) fn no_pod(id: &str, namespace: &str, error: &anyhow::Error) -> Unseen {
    Unseen {
        why: format!("no pod could look from namespace {namespace}: {error:#}"),
        next: format!(
            "use a context of {id} that may create, get and delete pods there, or another --namespace; if the image is \
             missing or older, name one with --image"
        ),
    }
}

impl Between<'_> {
    /// An endpoint to which no connection opens.
    pub(super) fn closed(&self, at: SocketAddr, why: &str) -> Told {
        let Self {
            service, from, to, ..
        } = self;
        let (namespace, port) = (&service.namespace, at.port());
        if why == "Connection refused" {
            let next = format!(
                "the way is open: see if the pod listens at port {port} and if targetPort of the Service is right ({}); some \
                 firewalls refuse too",
                kubectl(self.to_context, &format!("-n {namespace} get pods -o wide"))
            );
            return (format!("{at} refuses connections"), next);
        }
        let next = if from == to {
            format!(
                "look at the pod network of {to}, and at NetworkPolicies of namespace {namespace}: {}",
                kubectl(self.to_context, &format!("-n {namespace} get networkpolicies"))
            )
        } else {
            format!(
                "route between the pods of {from} and those of {to}, both ways, and let TCP port {port} through: firewalls, \
                 security groups, NetworkPolicies of namespace {namespace} ({}); Tributary carries no traffic",
                kubectl(self.to_context, &format!("-n {namespace} get networkpolicies"))
            )
        };
        (format!("{at} does not answer: {why}"), next)
    }
}
