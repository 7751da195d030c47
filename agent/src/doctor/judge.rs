//! Owns: what is wrong in a member's cluster, from what was seen there: definitions, the cluster's id, the agent's Lease,
//! CoreDNS. Pure.
//! Never: asks a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use shared::{
    api::names::{
        ABOUT_GROUP, AGENT_LEASE, AGENT_MANAGER, ANNOTATION_ACCEPT_WITHDRAWALS, MULTICLUSTER_GROUP,
        PROPERTY_CLUSTER_ID,
    },
    doctor::{own::lasting, report::Check},
    model::{UnixMillis, advice, derived_name::identity_lease_suffix},
};

use crate::corefile::edit::{Wanted, Zone, decide};

/// Time beyond its duration for which a Lease may go without renewal before it counts as abandoned: two machines'
/// clocks differ.
const LEASE_GRACE: Duration = Duration::from_secs(30);

/// Exports and imports that are named as unusable, at most.
const UNUSABLE_NAMED_MAX: usize = 5;
/// Most imports that are named beside the first one.
const IMPORTS_NAMED_MAX: usize = 5;

/// A kind that an agent needs, and the versions that it speaks.
struct Needed {
    group: &'static str,
    plural: &'static str,
    versions: &'static [&'static str],
}

const NEEDED: [Needed; 3] = [
    Needed {
        group: MULTICLUSTER_GROUP,
        plural: "serviceexports",
        versions: &["v1beta1", "v1alpha1"],
    },
    Needed {
        group: MULTICLUSTER_GROUP,
        plural: "serviceimports",
        versions: &["v1beta1", "v1alpha1"],
    },
    Needed {
        group: ABOUT_GROUP,
        plural: "clusterproperties",
        versions: &["v1beta1", "v1alpha1"],
    },
];

/// The agent's Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSeen {
    /// Its holder; empty: nobody.
    pub holder: String,
    /// Time at which it was renewed.
    pub renewed: Option<UnixMillis>,
    /// Its duration.
    pub duration: Duration,
}

/// The Corefile of CoreDNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorefileSeen {
    /// It may not be read.
    Forbidden,
    /// There is no such ConfigMap, or it has no such key.
    Missing,
    /// It could not be read.
    Unread(String),
    /// Its text.
    Text(String),
}

/// The admission policies of the agent's chart; a binding of each has its name.
pub const POLICIES: [&str; 3] = [
    "tributary-only-the-agent-writes",
    "tributary-agent-writes-only-its-own",
    "tributary-membership-is-immutable",
];

/// The admission policies of the agent's chart, as they were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoliciesSeen {
    /// They may not be read.
    Forbidden,
    /// They could not be read.
    Unread(String),
    /// These, or their bindings, are not there.
    Missing(Vec<&'static str>),
}

/// A ServiceImport whose condition Ready is False.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// `NAMESPACE/NAME`.
    pub import: String,
    /// The condition's reason.
    pub reason: String,
    /// The condition's message.
    pub message: String,
}

/// A name of the clusterset, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameSeen {
    /// The name.
    pub name: String,
    /// The address that its import has.
    pub wanted: String,
    /// The answer.
    pub answer: Result<Vec<String>, String>,
}

/// Checks the served definitions; plural names by `GROUP/VERSION`.
pub fn definitions(served: &Result<BTreeMap<String, BTreeSet<String>>, String>) -> Vec<Check> {
    let name = "definitions";
    let served = match served {
        Ok(served) => served,
        Err(why) => {
            return vec![Check::unseen(
                name,
                why.clone(),
                "see that the API server answers /apis for this account",
            )];
        }
    };
    let install = "kubectl apply --server-side -f deploy/manifests/crds (or the chart tributary-crds)";
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for Needed {
        group,
        plural,
        versions,
    } in NEEDED
    {
        let has = |version: &String| served.get(version).is_some_and(|kinds| kinds.contains(plural));
        let spoken = versions
            .iter()
            .map(|version| format!("{group}/{version}"))
            .find(has);
        let prefix = format!("{group}/");
        let others: Vec<&str> = served
            .keys()
            .filter(|version| version.starts_with(&prefix) && has(version))
            .map(String::as_str)
            .collect();
        match spoken {
            Some(version) => found.push(format!("{plural} in {version}")),
            None if others.is_empty() => faults.push(Check::fault(
                name,
                format!("there is no definition of {plural}.{group}"),
                format!("install it: {install}"),
            )),
            None => faults.push(Check::fault(
                name,
                format!(
                    "{plural}.{group} is served in {} only, and {} is spoken",
                    others.join(", "),
                    versions.join(" or ")
                ),
                format!(
                    "have one of these versions served (spec.versions[].served), or install ours: {install}"
                ),
            )),
        }
    }
    if faults.is_empty() {
        faults.push(Check::fine(name, found.join(", ")));
    }
    faults
}

/// Judges the id that the cluster states; `cluster`: the certificate's, or why it names none.
pub fn property(stated: &Result<Option<String>, String>, cluster: Result<&str, &String>) -> Check {
    let name = "cluster-id";
    let cluster = match cluster {
        Ok(cluster) => cluster,
        Err(why) => return Check::skipped(name, format!("not looked at: {why}")),
    };
    match stated {
        Ok(None) => Check::skipped(
            name,
            "the cluster does not say its id yet: an agent writes it when it runs",
        ),
        Ok(Some(stated)) if stated == cluster => Check::fine(name, format!("the cluster says {stated}")),
        Ok(Some(stated)) => Check::fault(
            name,
            format!(
                "the ClusterProperty {PROPERTY_CLUSTER_ID} says {stated}, and the certificate is of {cluster}"
            ),
            format!(
                "use the certificate of {stated}, or the kubeconfig of {cluster}. A cluster's id does not change while it is \
                 a member: one that is to be {cluster} leaves first"
            ),
        ),
        Err(why) => Check::unseen(
            name,
            why.clone(),
            "see that this account may get clusterproperties",
        ),
    }
}

/// Judges the admission policies. Traffic does not need them, and a cluster may be too old for them.
pub fn policies(seen: &PoliciesSeen) -> Check {
    let name = "admission-policies";
    let fix = "render the agent's chart with policies.enabled=true and apply it (Kubernetes 1.30 or later)";
    match seen {
        PoliciesSeen::Missing(missing) if missing.is_empty() => {
            Check::fine(name, format!("all {} are bound", POLICIES.len()))
        }
        PoliciesSeen::Missing(missing) if missing.len() == POLICIES.len() => Check::note(
            name,
            format!(
                "there are none, so whoever may write Services can change what the agent wrote. To have them, {fix}"
            ),
        ),
        PoliciesSeen::Missing(missing) => Check::note(
            name,
            format!(
                "these are not there, or not bound: {}. To have them, {fix}",
                missing.join(", ")
            ),
        ),
        PoliciesSeen::Forbidden => Check::skipped(
            name,
            "this account may not read admission policies: look with --kubeconfig of somebody who may",
        ),
        PoliciesSeen::Unread(why) => Check::unseen(
            name,
            why.clone(),
            "see that the API server answers for validatingadmissionpolicies",
        ),
    }
}

/// Exports and imports that the agent cannot take as they are.
pub fn unusable(seen: &Result<Vec<String>, String>) -> Check {
    let name = "exports-and-imports";
    match seen {
        Ok(unusable) if unusable.is_empty() => Check::fine(name, "every one of them can be read"),
        Ok(unusable) => {
            let named: Vec<&str> = unusable
                .iter()
                .take(UNUSABLE_NAMED_MAX)
                .map(String::as_str)
                .collect();
            let more = unusable.len().saturating_sub(UNUSABLE_NAMED_MAX);
            let more = if more > 0 {
                format!("; and {more} more")
            } else {
                String::new()
            };
            Check::fault(
                name,
                format!("{}{more}", named.join("; ")),
                "correct or delete these objects; the agent goes on with all others",
            )
        }
        Err(why) => Check::unseen(
            name,
            why.clone(),
            "see that this account may list serviceexports and serviceimports",
        ),
    }
}

/// The reason of an import that no port is exported for: nothing is wrong in this cluster.
const REASON_NO_PORTS: &str = "NoPorts";
/// The reason of an import on hold, as the plan has it.
pub const REASON_WITHDRAWAL_HELD: &str = "WithdrawalHeld";

/// Judges imports. Faults are writes that the API server refuses, or that have failed for longer than a minute.
pub fn imports(seen: &Result<Vec<NotReady>, String>) -> Check {
    let name = "imports";
    let all = match seen {
        Ok(all) => all,
        Err(why) => {
            return Check::unseen(name, why.clone(), "see that this account may list serviceimports");
        }
    };
    let is_wrong = |one: &&NotReady| one.reason != REASON_NO_PORTS && one.reason != REASON_WITHDRAWAL_HELD;
    let wrong: Vec<&NotReady> = all.iter().filter(is_wrong).collect();
    let Some(first) = wrong.first() else {
        return Check::fine(name, "no ServiceImport says that it is not ready");
    };
    let more: Vec<&str> = wrong
        .iter()
        .skip(1)
        .take(IMPORTS_NAMED_MAX)
        .map(|one| &*one.import)
        .collect();
    let others = match wrong.len() - 1 {
        0 => String::new(),
        others => format!("; {others} more are not ready: {}", more.join(", ")),
    };
    Check::fault(
        name,
        format!(
            "{} is not ready ({}): {}{others}",
            first.import, first.reason, first.message
        ),
        "do what the message says: a quota, an admission policy or webhook, or a full range of addresses stands in the way; \
         the agent goes on trying",
    )
}

/// Checks the agent's Lease; `agents` are the Leases of the agents that run.
pub fn lease(
    seen: &Result<Option<LeaseSeen>, String>,
    agents: &BTreeSet<String>,
    namespace: &str,
    now: UnixMillis,
) -> Check {
    let name = "agent-lease";
    let at = format!("the Lease {namespace}/{AGENT_MANAGER}");
    let lease = match seen {
        Ok(Some(lease)) if !lease.holder.is_empty() => lease,
        Ok(_) => return Check::skipped(name, format!("nobody holds {at}: no agent runs in this cluster")),
        Err(why) => return Check::unseen(name, why.clone(), "see that this account may get leases there"),
    };
    let holder = &lease.holder;
    let age = lease
        .renewed
        .map_or(u64::MAX, |renewed| now.0.saturating_sub(renewed.0));
    let most = u64::try_from((lease.duration + LEASE_GRACE).as_millis()).unwrap_or(u64::MAX);
    if age > most {
        return Check::fault(
            name,
            format!("{at} is held by {holder}, which does not renew it: no agent works in this cluster"),
            format!(
                "see whether an agent runs: kubectl -n {namespace} get pods; another one takes over by itself"
            ),
        );
    }
    let own = format!("{AGENT_MANAGER}-{}", identity_lease_suffix(holder, AGENT_MANAGER));
    if !agents.is_empty() && !agents.contains(&own) {
        return Check::fault(
            name,
            format!("{at} is held by {holder}, which is none of the agents that run in this namespace"),
            format!(
                "find who renews it (kubectl -n {namespace} get lease {AGENT_MANAGER} -o yaml --show-managed-fields) and \
                 stop it: an agent elsewhere has a kubeconfig of this cluster"
            ),
        );
    }
    Check::fine(name, format!("held by {holder}, renewed {} ago", lasting(age)))
}

/// Checks the Corefile.
pub fn corefile(seen: &CorefileSeen, zone: &Zone) -> Check {
    let name = "coredns-corefile";
    match seen {
        CorefileSeen::Forbidden => Check::skipped(
            name,
            "this account may not read the Corefile (an agent's may not, and need not); run doctor with your own \
             --kubeconfig",
        ),
        CorefileSeen::Missing => {
            Check::skipped(name, "there is no ConfigMap kube-system/coredns with a Corefile")
        }
        CorefileSeen::Unread(why) => Check::unseen(name, why.clone(), "see that the API server answers"),
        CorefileSeen::Text(text) => match decide(text, Wanted::Zone, zone) {
            Ok(decision) if decision.text.is_none() => {
                Check::fine(name, format!("CoreDNS serves {}", zone.as_str()))
            }
            Ok(_) => Check::fault(
                name,
                format!("the Corefile does not name the zone {}", zone.as_str()),
                advice::agent_corefile_add(&[]),
            ),
            Err(refusal) => Check::unseen(
                name,
                format!("the Corefile is not understood: {refusal}"),
                format!(
                    "see in a pod of this cluster whether CoreDNS answers names of {}",
                    zone.as_str()
                ),
            ),
        },
    }
}

/// Imports that the hub took away too many of at once; the agent's Lease is in `namespace`.
pub fn withdrawals(seen: &Result<Vec<NotReady>, String>, namespace: &str) -> Check {
    let name = "withdrawals";
    let all = match seen {
        Ok(all) => all,
        Err(why) => {
            return Check::unseen(name, why.clone(), "see that this account may list serviceimports");
        }
    };
    let held = all.iter().filter(|one| one.reason == REASON_WITHDRAWAL_HELD);
    let held: Vec<&str> = held.map(|one| &*one.import).collect();
    let Some(first) = held.first() else {
        return Check::fine(name, "no ServiceImport is on hold");
    };
    let others = match held.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    Check::fault(
        name,
        format!("the hub took away most imports of this cluster at once: {first}{others} are on hold"),
        format!(
            "see that the hub and its data are the right ones, and bring the exports back; if they are meant to be gone: {}",
            advice::kubectl_accept_withdrawals(namespace, AGENT_LEASE, ANNOTATION_ACCEPT_WITHDRAWALS)
        ),
    )
}

/// Checks CoreDNS's answer; nothing was asked if there is no import, or not from here.
pub fn answered(seen: Option<&NameSeen>) -> Check {
    let name = "coredns-answer";
    let Some(NameSeen {
        name: asked,
        wanted,
        answer,
    }) = seen
    else {
        return Check::skipped(
            name,
            "asked in a pod of a cluster that has imports, and not from here",
        );
    };
    let fix = format!(
        "{}; CoreDNS must be 1.12.2 or later and may list ServiceImports (deploy/coredns)",
        advice::agent_corefile_add(&[])
    );
    match answer {
        Ok(addresses) if addresses.contains(wanted) => Check::fine(name, format!("{asked} is {wanted}")),
        Ok(addresses) => Check::fault(
            name,
            format!(
                "{asked} is {} in DNS, and its ServiceImport has {wanted}",
                addresses.join(", ")
            ),
            fix,
        ),
        Err(why) => Check::fault(name, format!("DNS does not answer {asked}: {why}"), fix),
    }
}

#[cfg(test)]
mod tests;
