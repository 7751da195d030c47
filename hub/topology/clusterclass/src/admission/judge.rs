//! Owns: the judgement: the rules are asked, and of what they find some refuses and some only warns.
//! Never: has a rule of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    review::{Act, Review, Subject},
    verdict::{Refusal, Verdict},
};
use crate::{
    model::{Class, Estate, Finding, Key, Report},
    validation::{of_class, of_cluster, of_deleted_class},
    variables::Variables,
};

/// The rule that a class in use is not deleted.
const CLASS_IN_USE: &str = "class-in-use";
/// The rule that the class exists.
const CLASS_EXISTS: &str = "class-exists";
/// The proposal's rule, which Cluster API's own admission has dropped.
const VARIABLE_IN_USE: &str = "variable-in-use";

/// The objects that the API server has beside the one to judge.
#[derive(Debug, Default)]
pub struct Beside {
    estate: Estate,
    /// True if Cluster API's own controller is alive: then the rule that its admission has dropped only warns.
    pub cluster_api_alive: bool,
}

impl Beside {
    /// Adds a class. Its own faults are not the question.
    pub fn add_class(&mut self, class: &Value) {
        self.estate.add_objects([("server", class)]);
    }

    /// Adds a Cluster if it is of this class; says whether it is.
    pub fn add_user(&mut self, of: &Key, cluster: &Value) -> bool {
        let mut read = Estate::default();
        read.add_objects([("server", cluster)]);
        let is_user = read.users(of).next().is_some();
        if is_user {
            self.estate.clusters.extend(read.clusters);
        }
        is_user
    }
}

/// Findings that the object had before the change.
type Known = BTreeSet<(String, &'static str, String)>;

impl Review {
    /// Answers, with what was [needed](Self::needs) beside the question.
    pub fn judge(&self, beside: &Beside) -> Verdict {
        if self.passes() {
            return Verdict::allowed(&self.uid, Vec::new());
        }
        let now = &beside.estate;
        let (found, known) = match (self.subject, self.act) {
            (Subject::Class, Act::Delete) => {
                let class = self.old.classes.values();
                let found = class.flat_map(|class| of_deleted_class(class, now)).collect();
                (found, Known::new())
            }
            (Subject::Class, _) => self.class(now),
            _ => self.cluster(now),
        };
        let (warns, refuses): (Vec<Finding>, Vec<Finding>) = found
            .into_iter()
            .partition(|finding| self.only_warns(finding, &known, beside.cluster_api_alive));
        let warnings = warns.iter().map(Finding::of_field).collect();
        match refuses.first() {
            None => Verdict::allowed(&self.uid, warnings),
            Some(first) => {
                let refusal = if first.rule == CLASS_IN_USE {
                    Refusal::Forbidden
                } else {
                    Refusal::Invalid
                };
                Verdict::refused(&self.uid, refusal, &refuses, warnings)
            }
        }
    }

    /// The answer where what is needed cannot be read.
    pub fn unread(&self, reason: &str) -> Verdict {
        Verdict::unread(&self.uid, reason)
    }

    /// Findings about a class, and those it had before.
    fn class(&self, clusters: &Estate) -> (Vec<Finding>, Known) {
        let before = self.old.classes.values().next();
        let mut found = self.new.findings.clone();
        for class in self.new.classes.values() {
            found.extend(of_class(class, before, clusters).0);
        }
        let mut was = self.old.findings.clone();
        if let Some(class) = before {
            was.extend(of_class(class, None, clusters).0);
        }
        (found, known(was))
    }

    /// Findings about a Cluster, and those it had before with the present classes.
    fn cluster(&self, classes: &Estate) -> (Vec<Finding>, Known) {
        let read = |class: &Class| Variables::read(class, &mut Report::new("server", ""));
        let all = classes.classes.iter();
        let all: BTreeMap<&Key, Variables> = all.map(|(key, class)| (key, read(class))).collect();
        let variables = |class: &Class| all.get(&(class.namespace.clone(), class.name.clone()));
        let before = self.old.clusters.values().next();
        let mut found = self.new.findings.clone();
        for cluster in self.new.clusters.values() {
            let before = before.map(|before| (before, classes));
            found.extend(of_cluster(cluster, before, classes, variables));
        }
        for finding in found.iter_mut().filter(|finding| finding.rule == CLASS_EXISTS) {
            finding.message = "there is no such class: make it first, nothing is held to it yet".to_owned();
        }
        let mut was = self.old.findings.clone();
        if let Some(cluster) = before {
            was.extend(of_cluster(cluster, None, classes, variables));
        }
        (found, known(was))
    }

    /// Returns true for a finding that does not refuse the change: the object had it before, or it is that a Cluster's
    /// class is missing, since a Cluster may come before its class.
    fn only_warns(&self, finding: &Finding, known: &Known, cluster_api_alive: bool) -> bool {
        match finding.rule {
            CLASS_EXISTS => self.act == Act::Create || self.topology_stays(),
            VARIABLE_IN_USE => cluster_api_alive,
            rule => known.contains(&(finding.field.clone(), rule, finding.message.clone())),
        }
    }

    fn topology_stays(&self) -> bool {
        let topology = |estate: &Estate| {
            let cluster = estate.clusters.values().next();
            cluster.and_then(|cluster| cluster.topology.clone())
        };
        topology(&self.new) == topology(&self.old)
    }
}

fn known(findings: Vec<Finding>) -> Known {
    let key = |finding: Finding| (finding.field, finding.rule, finding.message);
    findings.into_iter().map(key).collect()
}
