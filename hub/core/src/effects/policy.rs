//! Effects of a policy, in sentences for people, computed from the state on which it is decided. Pure.

use model::{ClusterId, Policy, Precedence, ServiceKey};
use std::{collections::BTreeMap, sync::Arc};

use super::{loss, sentences::named};
use fold::{PolicyOutcome, SomeServices, State};

/// Effects of putting the policy in force.
pub(super) fn of(state: &State, policy: &Arc<Policy>) -> Vec<String> {
    let outcome = state.outcome(policy);
    let mut effects = vec![format!(
        "the policy has {}; first among the exports of a service is {}",
        match policy.rules.len() {
            1 => "1 rule".to_owned(),
            rules => format!("{rules} rules"),
        },
        match policy.precedence {
            Precedence::Oldest => "the oldest one",
            Precedence::Incumbent => "the one that was first before, until an operator releases it",
        }
    )];
    effects.extend(exports(&outcome));
    effects.extend(imports(&outcome));
    effects.extend(endpoints("would be left out", &outcome.endpoints_left_out));
    effects.extend(endpoints("come back", &outcome.endpoints_restored));
    effects.extend(taken("no longer accept", &outcome.imports_gone));
    effects.extend(taken("newly accept", &outcome.imports_come));
    effects.extend(loss::of(&outcome));
    let over = named(&outcome.over_budget, |(cluster, limit, used, most)| {
        let what = limit.what();
        format!(
            "{cluster} has {used} {what} and may have {most}: nothing is removed, and nothing more is accepted"
        )
    });
    effects.extend(over);
    if effects.len() == 1 {
        effects.push("no export, import or endpoint changes by it now".to_owned());
    }
    let unmatched = named(&outcome.unmatched, |(rule, pattern)| {
        format!(
            "warning: \"{pattern}\" in rule \"{rule}\" matches no member now: compare it with the ids that `member list` shows"
        )
    });
    effects.extend(unmatched);
    effects
}

fn exports(outcome: &PolicyOutcome) -> Vec<String> {
    let refused = named(&outcome.refused, |(service, cluster, denial)| {
        let reason = denial.reason.as_str();
        format!(
            "export {service} of {cluster} is refused ({reason}): {}",
            denial.message
        )
    });
    let restored = named(&outcome.restored, |(service, cluster)| {
        format!("export {service} of {cluster} is accepted again")
    });
    refused.into_iter().chain(restored).collect()
}

fn imports(outcome: &PolicyOutcome) -> Vec<String> {
    let ending = named(&outcome.ending, |service: &ServiceKey| {
        format!("import {service} goes in every cluster: no export of it is left")
    });
    let beginning = named(&outcome.beginning, |service: &ServiceKey| {
        format!("import {service} comes, in every cluster that has the namespace")
    });
    let first = named(&outcome.first, |(service, now, then)| {
        format!("import {service} follows {then} instead of {now}")
    });
    let held = named(&outcome.held, |(service, standing, challenger)| {
        format!(
            "import {service} still follows {standing}, although {challenger}'s export is older: `policy release` ends that"
        )
    });
    ending
        .into_iter()
        .chain(beginning)
        .chain(first)
        .chain(held)
        .collect()
}

fn endpoints(what: &str, counts: &BTreeMap<ClusterId, usize>) -> Vec<String> {
    let counts: Vec<(&ClusterId, &usize)> = counts.iter().collect();
    named(&counts, |(cluster, count)| {
        let endpoints = if **count == 1 { "endpoint" } else { "endpoints" };
        format!("{count} {endpoints} of {cluster} {what}")
    })
}

fn taken(what: &str, changed: &BTreeMap<ClusterId, SomeServices>) -> Vec<String> {
    let changed: Vec<(&ClusterId, &SomeServices)> = changed.iter().collect();
    named(&changed, |(cluster, services)| {
        let names: Vec<String> = services.named.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        match services.more {
            0 => format!("{cluster} would {what} {names}"),
            more => format!("{cluster} would {what} {names} and {more} more"),
        }
    })
}
