//! The policy of a clusterset: what each member may export, with which addresses, what it imports, and which export
//! comes first. Values and verdicts only: how a document becomes a policy is the business of `wire`, what follows from
//! a verdict the fold's.
//!
//! A rule names members, and allows. A member without a rule on exports may export everything, and the same holds for
//! addresses and imports: without a policy all is as KEP-1645 has it. Rules that name the same member add up.

mod brake;
mod budget;
mod imports;
mod loss;
mod pattern;
mod range;
pub mod special;

use std::{net::IpAddr, sync::Arc};

use super::{ClusterId, ServiceKey, fact::FACT_BYTES_MAX};

pub use brake::{BRAKE_LONGEST_MILLIS, BRAKE_WITHIN_MILLIS_MAX, Brake};
pub use budget::{Budget, BudgetRule, Limit, Usage};
pub use imports::Imports;
pub use loss::{LOSS_DETECTED_MILLIS, LOSS_MILLIS_MAX, Loss, LossAction, SELF_PRESERVATION_LOST_MIN};
pub use pattern::{InvalidPattern, PATTERN_BYTES_MAX, Pattern};
pub use range::{AddressRange, InvalidRange};

/// Largest document that is taken, in bytes.
pub const POLICY_BYTES_MAX: usize = 64 * 1024;
/// Largest document that a log of an earlier release has, in bytes.
pub const RECORDED_POLICY_BYTES_MAX: usize = FACT_BYTES_MAX - 4 * 1024;
/// Most `[` and `{` of one document, wherever they stand: so deep can its lists be nested at most. A reader of YAML
/// takes a time for each token that grows with the depth.
pub const POLICY_BRACKETS_MAX: usize = 1_024;
/// Most rules of one policy: all of them are looked at for each export.
pub const RULES_MAX: usize = 256;
/// Most entries of one list in a rule.
pub const ENTRIES_MAX: usize = 1_024;
/// Most rules, and most entries of one, that a message names; the others are counted.
const NAMED_MAX: usize = 5;

/// A policy, and the document that says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The document as it was given: what is recorded, and shown again.
    pub document: Box<str>,
    /// The order of a service's exports.
    pub precedence: Precedence,
    /// The policy on lost members.
    pub loss: Loss,
    /// The policy on mass withdrawals: a member that withdraws most of its exports at once is put on hold.
    pub brake: Brake,
    /// Rules for members. Names are unique.
    pub rules: Vec<MemberRule>,
}

/// The order of a service's exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Precedence {
    /// The oldest one, as KEP-1645 says.
    #[default]
    Oldest,
    /// The export that was first already, until an operator releases it.
    Incumbent,
}

/// A rule for some members. A missing part is left to other rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRule {
    /// Its name in messages.
    pub name: Box<str>,
    /// The members it is about.
    pub members: Vec<Pattern>,
    /// The services that they may export; `None`: it has no rule on exports.
    pub exports: Option<Vec<ServiceRule>>,
    /// Ranges in which their endpoints' addresses may lie; `None`: it does not speak of addresses.
    pub endpoints: Option<Vec<AddressRange>>,
    /// The imports that they take; `None`: it does not speak of imports. Every session of such a member shares it.
    pub imports: Option<Arc<[ServiceRule]>>,
    /// Their budget.
    pub budget: BudgetRule,
}

/// Services, by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRule {
    /// Namespaces.
    pub namespaces: Vec<Pattern>,
    /// Names in them.
    pub services: Vec<Pattern>,
}

impl MemberRule {
    /// Returns true if it is about this member.
    pub fn names(&self, cluster: &ClusterId) -> bool {
        self.members
            .iter()
            .any(|pattern| pattern.matches(cluster.as_str()))
    }
}

impl ServiceRule {
    /// Returns true if the service is among these.
    pub fn matches(&self, service: &ServiceKey) -> bool {
        let any = |patterns: &[Pattern], name: &str| patterns.iter().any(|pattern| pattern.matches(name));
        any(&self.namespaces, &service.namespace) && any(&self.services, &service.name)
    }

    /// Number of words in it.
    fn word_count(&self) -> usize {
        self.namespaces.len() * self.services.len()
    }

    /// Each namespace with each name.
    fn words(&self) -> impl Iterator<Item = String> + '_ {
        let namespaces = self.namespaces.iter();
        namespaces.flat_map(|namespace| {
            let services = self.services.iter();
            services.map(move |service| format!("{namespace}/{service}"))
        })
    }
}

impl Policy {
    /// The rules about a member.
    pub fn rules_of<'a>(&'a self, cluster: &'a ClusterId) -> impl Iterator<Item = &'a MemberRule> + 'a {
        self.rules.iter().filter(|rule| rule.names(cluster))
    }

    /// Why a member may not export a service: the rules that would have to allow it. `None`: it may.
    pub fn denies_export(&self, cluster: &ClusterId, service: &ServiceKey) -> Option<String> {
        let rules = self.denied_by(cluster, service, |rule| rule.exports.as_deref())?;
        Some(format!(
            "The policy of the clusterset does not allow {cluster} to export {service}: {rules}. An operator decides on the policy."
        ))
    }

    /// Why a member does not take an import: the rules that would have to allow it. `None`: it does.
    pub fn denies_import(&self, cluster: &ClusterId, service: &ServiceKey) -> Option<String> {
        let rules = self.denied_by(cluster, service, |rule| rule.imports.as_deref())?;
        Some(format!(
            "The policy of the clusterset does not let {cluster} take {service}: {rules}. An operator decides on the policy."
        ))
    }

    /// The patterns allowed by a member's rules on such things, if there are rules and none allows this one.
    fn denied_by<'a>(
        &'a self,
        cluster: &'a ClusterId,
        service: &ServiceKey,
        list: impl Fn(&'a MemberRule) -> Option<&'a [ServiceRule]> + Copy,
    ) -> Option<String> {
        let speaking = || {
            let rules = self.rules_of(cluster);
            rules.filter_map(move |rule| list(rule).map(|list| (rule, list)))
        };
        let allows = |list: &[ServiceRule]| list.iter().any(|one| one.matches(service));
        if speaking().next().is_none() || speaking().any(|(_, list)| allows(list)) {
            return None;
        }
        let rules = speaking().take(NAMED_MAX).map(|(rule, list)| said_by(rule, list));
        Some(listed(rules.collect(), speaking().count(), "; ", "rules"))
    }

    /// The imports that a member takes.
    pub fn imports_of(&self, cluster: &ClusterId) -> Imports {
        let rules = self.rules_of(cluster);
        Imports::of(rules.filter_map(|rule| rule.imports.clone()))
    }

    /// Returns true if another policy has the same rules on imports, whatever else it has.
    pub fn agrees_on_imports(&self, other: &Self) -> bool {
        fn speaking(policy: &Policy) -> impl Iterator<Item = (&[Pattern], &[ServiceRule])> {
            let rules = policy.rules.iter();
            rules.filter_map(|rule| Some((&*rule.members, rule.imports.as_deref()?)))
        }
        speaking(self).eq(speaking(other))
    }

    /// The budget of a member.
    pub fn budget_of(&self, cluster: &ClusterId) -> Budget {
        Budget::of(self.rules_of(cluster).map(|rule| &rule.budget))
    }

    /// The ranges in which a member's addresses must lie; `None`: there is no rule on them.
    pub fn ranges_of(&self, cluster: &ClusterId) -> Option<Vec<AddressRange>> {
        let speaking = self.rules_of(cluster).filter_map(|rule| rule.endpoints.as_ref());
        let lists: Vec<&Vec<AddressRange>> = speaking.collect();
        (!lists.is_empty()).then(|| lists.into_iter().flatten().copied().collect())
    }

    /// The names of the rules that speak of a member's addresses, as a message names them.
    pub fn rules_on_addresses_of(&self, cluster: &ClusterId) -> String {
        let speaking = self.rules_of(cluster).filter(|rule| rule.endpoints.is_some());
        let names: Vec<String> = speaking.map(|rule| format!("\"{}\"", rule.name)).collect();
        let all = names.len();
        listed(names, all, ", ", "rules")
    }

    /// The patterns of members that match nobody among these, each with its rule: most likely a typing error.
    pub fn unmatched<'a>(&'a self, members: &[&ClusterId]) -> Vec<(&'a str, &'a Pattern)> {
        let matches = |pattern: &Pattern| members.iter().any(|member| pattern.matches(member.as_str()));
        let patterns = self
            .rules
            .iter()
            .flat_map(|rule| rule.members.iter().map(|pattern| (&*rule.name, pattern)));
        patterns.filter(|(_, pattern)| !matches(pattern)).collect()
    }
}

/// Returns true if an address lies in one of these ranges.
pub fn lies_in(ranges: &[AddressRange], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(address))
}

/// The first patterns of a list, because a list may be many times longer than a message.
fn said_by(rule: &MemberRule, list: &[ServiceRule]) -> String {
    let allowed: usize = list.iter().map(ServiceRule::word_count).sum();
    if allowed == 0 {
        return format!("rule \"{}\" allows nothing", rule.name);
    }
    let words = list.iter().flat_map(ServiceRule::words).take(NAMED_MAX);
    format!(
        "rule \"{}\" allows {}",
        rule.name,
        listed(words.collect(), allowed, ", ", "patterns")
    )
}

/// The first of some words, and how many more there are of `all`.
fn listed(mut words: Vec<String>, all: usize, between: &str, what: &str) -> String {
    words.truncate(NAMED_MAX);
    let more = all.saturating_sub(words.len());
    let mut text = words.join(between);
    if more > 0 {
        text.push_str(&format!("{between}and {more} more {what}"));
    }
    text
}

#[cfg(test)]
mod tests;
