//! Owns: what the audit logs of clusters say was denied to the accounts of the charts, and out of how many requests.
//! Never: judges what a denial led to.

use anyhow::ensure;

use super::{Account, Right};
use crate::real::{AuditLog, Fleet, Mark, Request};

/// The audit logs of a fleet from a moment on.
pub struct Watched {
    logs: Vec<(AuditLog, Mark)>,
}

/// The accounts' requests since then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Requests that were looked at; questions about rights do not count.
    pub requests: u64,
    /// Those that were answered with 403.
    pub denied: Vec<Request>,
}

impl Watched {
    /// From now on.
    pub async fn begin(fleet: &Fleet) -> anyhow::Result<Self> {
        let mut logs = Vec::new();
        for cluster in fleet.clusters() {
            let log = cluster.audit_log();
            let mark = log.settle(&cluster.client().await?).await?;
            logs.push((log, mark));
        }
        Ok(Self { logs })
    }

    /// Every request until now, of whomever.
    pub async fn requests(&self, fleet: &Fleet) -> anyhow::Result<Vec<Request>> {
        let mut requests = Vec::new();
        for (cluster, (log, mark)) in fleet.clusters().iter().zip(&self.logs) {
            log.settle(&cluster.client().await?).await?;
            requests.extend(log.since(*mark)?);
        }
        Ok(requests)
    }

    /// The accounts' requests until now.
    pub async fn asked(&self, fleet: &Fleet) -> anyhow::Result<Asked> {
        Ok(Asked::of(&self.requests(fleet).await?))
    }
}

impl Asked {
    /// The accounts' requests among these.
    pub fn of(requests: &[Request]) -> Self {
        let users = Account::ALL.map(Account::user);
        let of_theirs = |request: &&Request| users.contains(&request.user) && !request.is_review();
        let theirs: Vec<&Request> = requests.iter().filter(of_theirs).collect();
        let denied = theirs.iter().filter(|request| request.is_denied());
        Self {
            requests: theirs.len() as u64,
            denied: denied.map(|request| (*request).clone()).collect(),
        }
    }

    /// An error that names every denial.
    pub fn nothing_denied(&self) -> anyhow::Result<()> {
        let words = |request: &Request| format!("{request} ({})", request.refusal);
        let mut shown: Vec<String> = self.denied.iter().map(words).collect();
        shown.sort();
        shown.dedup();
        ensure!(
            shown.is_empty(),
            "{} of {} requests of the charts' accounts were denied: {}; a right that is needed is a rule in \
             deploy/charts and a line in e2e/fixtures/permissions.yaml",
            self.denied.len(),
            self.requests,
            shown.join(", ")
        );
        Ok(())
    }

    /// The denials that come of a missing right.
    pub fn denied_for_want_of(&self, right: &Right) -> Vec<&Request> {
        let wanted = |request: &&Request| {
            let path = right.path.trim_end_matches('*');
            let of_it = if right.path.is_empty() {
                request.resource == right.resource && request.api_group == right.group
            } else {
                request.api_group.is_empty() && request.resource.starts_with(path)
            };
            request.user == right.account.user()
                && verb(request) == right.verb
                && of_it
                && (right.namespace.is_empty() || request.namespace == right.namespace)
                && (right.name.is_empty() || request.name.is_empty() || request.name == right.name)
        };
        self.denied.iter().filter(wanted).collect()
    }
}

/// The denied verb. An apply to an absent object is a patch to the audit log, and a create to the authorizer, whose
/// message says so; for mere metadata the log has no message.
fn verb(request: &Request) -> &str {
    let words = request.refusal.split_once(" cannot ").map(|(_, words)| words);
    words
        .and_then(|words| words.split(' ').next())
        .unwrap_or(&request.verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(verb: &str, resource: &str) -> Right {
        Right {
            account: Account::Agent,
            namespace: String::new(),
            group: String::new(),
            resource: resource.to_owned(),
            name: String::new(),
            path: String::new(),
            verb: verb.to_owned(),
        }
    }

    #[test]
    fn denials_of_the_accounts_count_and_are_named() {
        let agent = Account::Agent.user();
        let sample = |user: &str, verb: &str, denied: bool| {
            let mut request = Request::sample(user, verb, "services", "shop", "cart");
            if denied {
                request.code = 403;
                request.refusal = format!("{user} cannot {verb} resource");
            }
            request
        };
        let asked = Asked::of(&[
            sample(&agent, "patch", false),
            sample(&agent, "delete", true),
            sample("somebody", "delete", true),
        ]);
        assert_eq!((asked.requests, asked.denied.len()), (2, 1));
        let error = asked.nothing_denied().expect_err("one was denied").to_string();
        assert!(error.contains("1 of 2 requests"), "{error}");
        assert!(error.contains("delete services shop/cart"), "{error}");
        assert_eq!(asked.denied_for_want_of(&right("delete", "services")).len(), 1);
        for other in [right("patch", "services"), right("delete", "endpointslices")] {
            assert!(asked.denied_for_want_of(&other).is_empty(), "{other}");
        }
    }

    #[test]
    fn the_verb_is_the_one_that_was_denied() {
        let mut request = Request::sample("agent", "patch", "services", "shop", "cart");
        assert_eq!(verb(&request), "patch", "the log has no words");
        request.refusal = "services is forbidden: User agent cannot create resource".to_owned();
        assert_eq!(verb(&request), "create");
    }
}
