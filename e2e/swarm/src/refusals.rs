//! Owns: the laws on what is refused: it is nowhere, it comes back with the rule, no address leads elsewhere, and nobody is
//! in session in the name of another.
//! Never: says what there should be.

use std::collections::BTreeSet;

use api::names::LABEL_SOURCE_CLUSTER;
use fold::{DerivedContent, DerivedKey};
use model::{ClusterId, EndpointSlice, Policy, ServiceKey};

use oracle::{
    is_ours,
    laws::{Guarded, Law},
};

use super::{
    hostile::{self, SPECIAL},
    hub::Hub,
    reserved::RESERVED,
    site::Site,
};

/// **What is refused is nowhere**: of a member whose exports the policy refuses, nothing is in the hub's derivation nor
/// in any cluster, its own included.
pub(super) fn refused_is_nowhere(hub: &Hub, sites: &[Site], guarded: &mut Guarded) -> Result<(), String> {
    for (cluster, member) in hub
        .state()
        .members()
        .iter()
        .filter(|(cluster, _)| is_refused(hub, cluster))
    {
        let exports = member.exports().count() as u64;
        guarded.count(Law::Refused, exports * sites.len() as u64);
        let derived = hub
            .state()
            .all_derived()
            .any(|(key, derived)| match (key, &derived.content) {
                (DerivedKey::Slice(slice), _) => slice.source_cluster == *cluster,
                (_, DerivedContent::Import(import)) => import.clusters.contains_key(cluster),
                _ => false,
            });
        if derived {
            return Err(Law::Refused.broken(format!("the hub derives something from {cluster}")));
        }
        for site in sites {
            if let Some(what) = trace_of(site, cluster) {
                let name = &site.name;
                return Err(Law::Refused.broken(format!("{what} in {name} comes from {cluster}")));
            }
        }
    }
    Ok(())
}

/// Returns true if a rule of the policy in force speaks of a cluster's exports: those of the swarm allow none.
pub(super) fn is_refused(hub: &Hub, cluster: &ClusterId) -> bool {
    is_refused_by(hub.policy(), cluster)
}

/// Returns true if nothing is derived from an export under this policy. Kubernetes keeps some namespaces for itself: an export
/// from one of them is recorded, and denied whatever the policy says.
pub(super) fn is_denied(policy: Option<&Policy>, cluster: &ClusterId, service: &ServiceKey) -> bool {
    RESERVED.contains(&&*service.namespace) || is_refused_by(policy, cluster)
}

fn is_refused_by(policy: Option<&Policy>, cluster: &ClusterId) -> bool {
    let rules = policy.into_iter().flat_map(|policy| &policy.rules);
    let rules = rules.filter(|rule| rule.exports.is_some());
    let mut patterns = rules.flat_map(|rule| &rule.members);
    patterns.any(|pattern| pattern.to_string() == cluster.as_str())
}

/// The exports that the policy in force refuses.
pub(super) fn refused(hub: &Hub) -> BTreeSet<(String, ServiceKey)> {
    let members = hub.state().members().iter();
    let refused = members.filter(|(cluster, member)| member.is_current() && is_refused(hub, cluster));
    let exports = refused.flat_map(|(cluster, member)| {
        member
            .exports()
            .map(move |(_, export)| (cluster.to_string(), export.service.clone()))
    });
    exports.collect()
}

/// **A loosened rule restores**: how many of these exports are derived again. Every cluster was compared before.
pub(super) fn restored(hub: &Hub, refused: &BTreeSet<(String, ServiceKey)>) -> u64 {
    let derived = refused.iter().filter(|(cluster, service)| {
        let import = hub.state().derived(&DerivedKey::Import(service.clone()));
        let clusters = import.and_then(|derived| match &derived.content {
            DerivedContent::Import(import) => Some(&import.clusters),
            _ => None,
        });
        clusters.is_some_and(|clusters| clusters.keys().any(|one| one.as_str() == cluster))
    });
    derived.count() as u64
}

/// **No address leads elsewhere**: whatever was recorded, and at whatever moment, no slice that is derived or stands in a
/// cluster has one of the addresses that lead elsewhere in every network, and nothing comes to a namespace of Kubernetes.
pub(super) fn nothing_leads_elsewhere(
    hub: &Hub,
    sites: &[Site],
    guarded: &mut Guarded,
) -> Result<(), String> {
    let special = |address: &str| SPECIAL.contains(&address);
    let states = |slice: &EndpointSlice| {
        let mut addresses = slice.endpoints.iter().flat_map(|endpoint| endpoint.addresses());
        addresses.any(|address| special(&address.to_string()))
    };
    let member = hub.state().current_member(&hostile::name());
    let slices = member.into_iter().flat_map(|member| member.facts().values());
    let stated = slices
        .filter_map(|fact| fact.endpoint_slice())
        .filter(|slice| states(slice))
        .count();
    guarded.count(Law::Elsewhere, stated as u64);
    for (_, derived) in hub.state().all_derived() {
        if let DerivedContent::Slice(slice) = &derived.content
            && slice
                .endpoints
                .iter()
                .flat_map(|endpoint| endpoint.addresses())
                .any(|one| special(&one.to_string()))
        {
            let service = &slice.key.service;
            return Err(Law::Elsewhere.broken(format!("the hub derives a slice of {service} that does")));
        }
    }
    for site in sites {
        let slices = site.cluster.objects("EndpointSlice");
        let ours = slices.iter().filter(|slice| is_ours(slice));
        for slice in ours {
            let endpoints = slice["endpoints"].as_array().into_iter().flatten();
            let mut addresses =
                endpoints.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
            let namespace = slice["metadata"]["namespace"].as_str().unwrap_or_default();
            if RESERVED.contains(&namespace) || addresses.any(|one| one.as_str().is_some_and(special)) {
                let name = &slice["metadata"]["name"];
                return Err(Law::Elsewhere.broken(format!("{namespace}/{name} in {} does", site.name)));
            }
        }
    }
    Ok(())
}

/// **One id, one holder**: once everything is at rest, nobody is in session in the name of a cluster but itself.
pub(super) fn one_holder(hub: &Hub, sites: &[Site]) -> Result<(), String> {
    let has = |cluster: &ClusterId, key| {
        let site = sites.iter().find(|site| site.name == *cluster);
        site.is_none_or(|site| site.had(key))
    };
    match hub.held_by_a_stranger(has) {
        Some(cluster) => {
            Err(Law::Holders.broken(format!("another one is in session in the name of {cluster}")))
        }
        None => Ok(()),
    }
}

/// An object that an agent made of what came from a cluster.
fn trace_of(site: &Site, cluster: &ClusterId) -> Option<String> {
    let name =
        |object: &serde_json::Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let imports = site.cluster.objects("ServiceImport");
    let import = imports.iter().filter(|object| is_ours(object)).find(|object| {
        let mut clusters = object["status"]["clusters"].as_array().into_iter().flatten();
        clusters.any(|one| one["cluster"] == cluster.as_str())
    });
    let slices = site.cluster.objects("EndpointSlice");
    let slice = slices
        .iter()
        .filter(|object| is_ours(object))
        .find(|object| object["metadata"]["labels"][LABEL_SOURCE_CLUSTER] == cluster.as_str());
    let import = import.map(|object| format!("ServiceImport {}", name(object)));
    import.or_else(|| slice.map(|object| format!("EndpointSlice {}", name(object))))
}

#[cfg(test)]
mod tests {
    use wire::{POLICY_API_VERSION, POLICY_KIND, read_policy};

    use super::*;

    #[test]
    fn an_export_is_denied_by_a_rule_or_by_its_namespace() {
        let document = format!(
            "apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  members:\n  - name: none\n    \
             members: [east]\n    exports: []\n"
        );
        let policy = read_policy(&document).expect("a policy");
        let cluster = |name: &str| ClusterId::new(name).expect("valid");
        let service = |namespace: &str| ServiceKey::new(namespace, "cart").expect("valid");
        assert!(is_denied(Some(&policy), &cluster("east"), &service("shop")));
        assert!(!is_denied(Some(&policy), &cluster("west"), &service("shop")));
        assert!(!is_denied(None, &cluster("east"), &service("shop")));
        assert!(is_denied(None, &cluster("west"), &service("kube-system")));
    }
}
