//! The members that the policy keeps an import from, and the rules that do so.

use model::{ClusterId, Policy, ServiceKey};

use super::State;

/// Most members that an answer names; the others are counted.
const NAMED_MAX: usize = 20;

/// The members that the policy keeps an import from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Withheld {
    /// The first of them by name, and why.
    pub named: Vec<(ClusterId, String)>,
    /// Number of further ones.
    pub more: usize,
}

impl Withheld {
    /// One sentence for an explanation; empty: it is kept from nobody.
    pub fn summary(&self) -> String {
        match (self.named.as_slice(), self.more) {
            ([], _) => String::new(),
            ([(cluster, _)], 0) => format!("The policy does not let {cluster} take it."),
            (named, more) => format!(
                "The policy does not let {} members take it, of which {} is one.",
                named.len() + more,
                named[0].0
            ),
        }
    }
}

impl State {
    /// The members that the policy does not let take this import: all, or whether this one is among them.
    pub fn withheld(&self, service: &ServiceKey, only: Option<&ClusterId>) -> Withheld {
        let Some(applied) = &self.policy else {
            return Withheld::default();
        };
        let policy: &Policy = &applied.policy;
        let members = self.members.iter().filter(|(_, member)| member.is_current());
        let asked = members.filter(|(cluster, _)| only.is_none_or(|only| only == *cluster));
        let mut withheld = Withheld::default();
        for (cluster, _) in asked.filter(|(cluster, _)| !policy.imports_of(cluster).allow(service)) {
            if withheld.named.len() < NAMED_MAX {
                let why = policy.denies_import(cluster, service);
                withheld.named.push((cluster.clone(), why.unwrap_or_default()));
            } else {
                withheld.more += 1;
            }
        }
        withheld
    }
}
