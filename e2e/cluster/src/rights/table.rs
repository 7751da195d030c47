//! Owns: the table of rights: reading it, and the single rights that its lines stand for.
//! Never: asks a cluster.

use std::fmt;

use anyhow::Context;
use serde::Deserialize;
use shared::api::names::TRIBUTARY_NAMESPACE;

use crate::{
    deploy,
    real::{Cluster, User},
};

/// Its file, below `e2e/fixtures`.
const FILE: &str = "permissions.yaml";

/// The account of a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Account {
    /// The agent's.
    Agent,
    /// The hub's.
    Hub,
}

impl Account {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Hub];

    /// The directory of manifests, and the chart, that makes it.
    pub fn chart(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Hub => "hub",
        }
    }

    /// The name of its service account and of its roles.
    pub fn name(self) -> String {
        format!("tributary-{}", self.chart())
    }

    /// The name of the account in an API server and its audit log.
    pub fn user(self) -> String {
        format!("system:serviceaccount:{TRIBUTARY_NAMESPACE}:{}", self.name())
    }

    /// It, as a user of a cluster.
    pub fn in_cluster(self, cluster: &Cluster) -> anyhow::Result<User> {
        Ok(cluster.service_account(TRIBUTARY_NAMESPACE, &self.name())?)
    }
}

/// One verb on one thing: the least that can be granted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The account.
    pub account: Account,
    /// The namespace; empty: everywhere.
    pub namespace: String,
    /// Empty for the core group.
    pub group: String,
    /// With a slash and the subresource if it is one; empty for a path.
    pub resource: String,
    /// Of this object only; empty: of any.
    pub name: String,
    /// Beside resources.
    pub path: String,
    /// The verb.
    pub verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} ", self.account.chart(), self.verb)?;
        if !self.path.is_empty() {
            return out.write_str(&self.path);
        }
        out.write_str(&self.resource)?;
        let parts = [(".", &self.group), ("/", &self.name), (" in ", &self.namespace)];
        for (before, part) in parts.into_iter().filter(|(_, part)| !part.is_empty()) {
            write!(out, "{before}{part}")?;
        }
        Ok(())
    }
}

/// A line of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    account: Account,
    verbs: Vec<String>,
    #[serde(default)]
    group: String,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    path: String,
    /// Why it is needed; empty where it must not be.
    #[serde(default)]
    pub why: String,
    /// The scenario that fails without it; empty where it must not be.
    #[serde(default)]
    pub red: String,
}

impl Line {
    /// Its rights, one for each verb.
    pub fn rights(&self) -> impl Iterator<Item = Right> + '_ {
        self.verbs.iter().map(|verb| Right {
            account: self.account,
            namespace: self.namespace.clone(),
            group: self.group.clone(),
            resource: self.resource.clone(),
            name: self.name.clone(),
            path: self.path.clone(),
            verb: verb.clone(),
        })
    }
}

/// The whole table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The accounts' rights, which are all that the charts grant.
    pub may: Vec<Line>,
    /// Rights that they must not have.
    pub may_not: Vec<Line>,
}

impl Table {
    /// Reads it.
    pub fn read() -> anyhow::Result<Self> {
        let path = deploy::fixture(FILE);
        let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        serde_norway::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Every single right of an account, each with its line.
    pub fn rights(&self, account: Account) -> impl Iterator<Item = (Right, &Line)> {
        let lines = self.may.iter().filter(move |line| line.account == account);
        lines.flat_map(|line| line.rights().map(move |right| (right, line)))
    }

    /// Rights that an account must not have.
    pub fn denials(&self, account: Account) -> impl Iterator<Item = Right> {
        let lines = self.may_not.iter().filter(move |line| line.account == account);
        lines.flat_map(Line::rights)
    }
}
