//! The derived Service of an import: whose ClusterIP becomes the clusterset IP.
//! Widens before the slices change, narrows after them; its IPs are read off the cluster, never guessed.

use std::{collections::BTreeSet, net::IpAddr};

use model::{IpFamily, ServicePort, SessionAffinity};

use super::{
    action::{Action, Kind},
    content::{DerivedContent, FamilyPolicy, Policies},
    port_names::derived_port_name,
    target::{Families, Standing, union},
    view::{Found, FoundDerived, Ours, Refusals, ServiceView},
};

/// The work to do on the derived Service, and its problem for the import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DerivedStep {
    /// To do before the slices.
    pub(super) before: Option<Action>,
    /// To do after the slices.
    pub(super) after: Option<Action>,
    /// The IPs it has, with their families.
    pub(super) ips: Vec<IpAddr>,
    /// The reason why the derived Service is not as it should be, for the import's Ready.
    pub(super) problem: Option<Problem>,
    /// Values that this cluster refuses and that were left out.
    pub(super) left_out: Vec<String>,
    /// It is wanted and has no IPs yet: the next observation continues from here.
    pub(super) waiting: bool,
    /// Something that is not Tributary's has its name.
    pub(super) stranger: bool,
}

/// Why an import cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// There is no port to offer.
    NoPorts,
    /// This cluster does not offer the families.
    Families(String),
    /// Anything else, in words.
    Pending(String),
}

/// Plans the derived Service called `name`.
pub(super) fn plan_derived(standing: &Standing, view: &ServiceView, name: &str) -> DerivedStep {
    if !standing.wants_derived() {
        return unwanted(standing, view, name);
    }
    match &view.derived {
        Found::Stranger => DerivedStep {
            problem: Some(Problem::Pending(format!(
                "the Service {name} exists and is not Tributary's: delete or rename it"
            ))),
            stranger: true,
            ..DerivedStep::default()
        },
        Found::Absent => missing(standing, view, name),
        Found::Ours(ours) if ours.deleting => DerivedStep {
            waiting: true,
            ..DerivedStep::default()
        },
        Found::Ours(ours) => standing_derived(standing, ours, &view.refusals, name),
    }
}

/// Headless, or without ports.
fn unwanted(standing: &Standing, view: &ServiceView, name: &str) -> DerivedStep {
    let no_ports = standing.ports.is_empty() && standing.service_type == model::ServiceType::ClusterSetIp;
    let leftover = view
        .derived
        .ours()
        .filter(|ours| standing.may_narrow && !ours.deleting);
    DerivedStep {
        after: leftover.map(|ours| Action::Delete {
            kind: Kind::Derived,
            name: name.into(),
            uid: ours.uid.clone(),
        }),
        problem: no_ports.then_some(Problem::NoPorts),
        ..DerivedStep::default()
    }
}

/// It is to be created, with the IPs that the import had.
fn missing(standing: &Standing, view: &ServiceView, name: &str) -> DerivedStep {
    let refusals = &view.refusals;
    let refused = refusals.derived.as_deref().map(|words| {
        Problem::Pending(format!(
            "this cluster refuses the derived Service {name}: {words}"
        ))
    });
    let unwritten = view
        .unwritten
        .as_ref()
        .filter(|unwritten| unwritten.kind == Some(Kind::Derived));
    let mut step = DerivedStep {
        waiting: true,
        problem: refused.or_else(|| unwritten.map(|unwritten| Problem::Pending(unwritten.to_string()))),
        ..DerivedStep::default()
    };
    let Some((family_policy, ip_families)) = families_of_new(&standing.families, refusals) else {
        step.problem = Some(family_problem(&standing.families));
        return step;
    };
    let previous = view.import.ours().filter(|_| !refusals.cluster_ips);
    let previous_ips = previous.map(|ours| ours.content.content.ips.clone());
    let cluster_ips = previous_ips.unwrap_or_default();
    let asked_families = cluster_ips.iter().all(|ip| ip_families.contains(&family_of(ip)));
    let policies = taken(&standing.policies, refusals, &mut step.left_out);
    step.before = Some(Action::ApplyDerived {
        name: name.into(),
        uid: None,
        content: DerivedContent {
            ports: derived_ports(&standing.ports),
            policies,
            family_policy,
            ip_families,
            sources: standing.clusters.clone(),
            labels: standing.labels.clone(),
            annotations: standing.annotations.clone(),
        },
        cluster_ips: if asked_families { cluster_ips } else { Vec::new() },
    });
    step
}

/// It is there.
fn standing_derived(
    standing: &Standing,
    ours: &Ours<FoundDerived>,
    refusals: &Refusals,
    name: &str,
) -> DerivedStep {
    let found = &ours.content;
    let mut step = DerivedStep {
        ips: found.cluster_ips.clone(),
        waiting: found.cluster_ips.is_empty(),
        ..DerivedStep::default()
    };
    let (family_policy, ip_families) =
        match families_of_standing(&standing.families, &found.content, refusals) {
            Some(families) => families,
            None => {
                step.problem = Some(family_problem(&standing.families));
                (found.content.family_policy, found.content.ip_families.clone())
            }
        };
    let wanted = derived_ports(&standing.ports);
    let both: BTreeSet<ServicePort> = {
        let wanted: Vec<_> = wanted.iter().cloned().collect();
        let found: Vec<_> = found.content.ports.iter().cloned().collect();
        union(&wanted, &found).into_iter().collect()
    };
    let content = DerivedContent {
        ports: if standing.may_narrow { wanted } else { both.clone() },
        policies: taken(&standing.policies, refusals, &mut step.left_out),
        family_policy,
        ip_families,
        sources: standing.clusters.clone(),
        labels: standing.labels.clone(),
        annotations: standing.annotations.clone(),
    };
    let apply = |content: DerivedContent| Action::ApplyDerived {
        name: name.into(),
        uid: Some(ours.uid.clone()),
        content,
        cluster_ips: Vec::new(),
    };
    let widened = DerivedContent {
        ports: both,
        ..content.clone()
    };
    if widened != found.content || !ours.intact {
        step.before = Some(apply(widened.clone()));
    }
    if content != widened {
        step.after = Some(apply(content));
    }
    if let Some(words) = &refusals.derived
        && (step.before.is_some() || step.after.is_some())
    {
        step.problem = Some(Problem::Pending(format!(
            "this cluster refuses a change of the derived Service {name}: {words}"
        )));
    }
    step
}

fn derived_ports(ports: &[ServicePort]) -> BTreeSet<ServicePort> {
    let named = |port: &ServicePort| ServicePort {
        name: derived_port_name(ports, port),
        ..port.clone()
    };
    ports.iter().map(named).collect()
}

/// The policies without the values that this cluster refused; those are named in `left_out`.
fn taken(policies: &Policies, refusals: &Refusals, left_out: &mut Vec<String>) -> Policies {
    let mut taken = policies.clone();
    if taken.session_affinity != Some(SessionAffinity::ClientIp) {
        taken.session_affinity_timeout_seconds = None;
    }
    if let Some(value) = taken
        .traffic_distribution
        .take_if(|value| refusals.traffic_distribution.as_ref() == Some(value))
    {
        left_out.push(format!("trafficDistribution {value}"));
    }
    if let Some(value) = taken
        .internal_traffic_policy
        .take_if(|value| refusals.internal_traffic_policy.as_ref() == Some(value))
    {
        left_out.push(format!("internalTrafficPolicy {value}"));
    }
    if let Some(value) = taken
        .session_affinity_timeout_seconds
        .take_if(|value| refusals.session_affinity_timeout_seconds == Some(*value))
    {
        left_out.push(format!("sessionAffinityConfig.clientIP.timeoutSeconds {value}"));
    }
    taken
}

type AskedFamilies = (Option<FamilyPolicy>, Vec<IpFamily>);

/// Families to request for a new derived Service: one alone, or two as far as the cluster has them.
fn families_of_new(families: &Families, refusals: &Refusals) -> Option<AskedFamilies> {
    let list = families.list();
    match list {
        [] => Some((None, Vec::new())),
        [one] => offered(refusals, vec![*one]).map(|list| (Some(FamilyPolicy::SingleStack), list)),
        [first, second, ..] => offered(refusals, vec![*first, *second])
            .or_else(|| offered(refusals, vec![*first]))
            .or_else(|| offered(refusals, vec![*second]))
            .map(|list| (Some(FamilyPolicy::PreferDualStack), list)),
    }
}

/// Families to request for an existing derived Service. Its first family cannot change; a second one can come and go.
fn families_of_standing(
    families: &Families,
    found: &DerivedContent,
    refusals: &Refusals,
) -> Option<AskedFamilies> {
    let kept = (found.family_policy, found.ip_families.clone());
    let Families::Wanted(wanted) = families else {
        return Some(kept);
    };
    let (Some(&primary), Some(&first)) = (found.ip_families.first(), wanted.first()) else {
        return Some(kept);
    };
    if wanted[..] == [primary] {
        return Some((Some(FamilyPolicy::SingleStack), vec![primary]));
    }
    let serves_one = wanted.iter().any(|family| found.ip_families.contains(family));
    if found.family_policy == Some(FamilyPolicy::PreferDualStack) {
        return serves_one.then_some(kept);
    }
    let second = if first == primary { wanted[1] } else { first };
    offered(refusals, vec![primary, second])
        .or_else(|| serves_one.then(|| vec![primary]))
        .map(|list| (Some(FamilyPolicy::PreferDualStack), list))
}

fn offered(refusals: &Refusals, families: Vec<IpFamily>) -> Option<Vec<IpFamily>> {
    (!refusals.families.contains(&families)).then_some(families)
}

fn family_problem(families: &Families) -> Problem {
    let words: Vec<&str> = families
        .list()
        .iter()
        .map(|&family| family_word(family))
        .collect();
    Problem::Families(format!(
        "this cluster does not offer {} to Services",
        words.join(",")
    ))
}

fn family_word(family: IpFamily) -> &'static str {
    match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    }
}

/// The family of an address.
pub(super) fn family_of(ip: &IpAddr) -> IpFamily {
    match ip {
        IpAddr::V4(_) => IpFamily::V4,
        IpAddr::V6(_) => IpFamily::V6,
    }
}
