//! Owns: the plans of all clusters of some files, from what is there or from what other files would have made.
//! Never: reads a file; the command line does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    blueprint::Blueprint,
    change::{Action, Change, Plan},
    compare::Seen,
    current::{Current, group_of_cluster},
    extended, kinds,
    objects::{Listed, Objects, Unread},
    overlay::over,
    plan::plan,
    variables,
};
use crate::{
    model::{Cluster, Estate, Finding, Key, Report, WorkerKind},
    patch::{
        document::{self, Read},
        external::{Extensions, Hook, answer, request},
    },
    validation::validate,
};

/// The plans and the findings.
#[derive(Debug, Default)]
pub struct Planned {
    /// Clusters of classes, by namespace and name.
    pub plans: Vec<Plan>,
    /// What is wrong. A Cluster with something wrong in it, in its class or its templates has no plan.
    pub findings: Vec<Finding>,
}

/// Files, each a name and its bytes.
pub type Files = [(String, Vec<u8>)];

/// Plans the clusters of files: from the objects that are among them, or, if there are `old` files, from what those would
/// have made, all of it taken for done. A cluster of `old` files alone is taken as deleted.
///
/// # Errors
///
/// One line: which file cannot be read, and why.
pub fn plans(files: &Files, old: Option<&Files>) -> Result<Planned, String> {
    planned_from(files, old, None)
}

/// Plans as a preview shows them: also of classes that need extensions, and these are asked where that is possible.
/// Everybody else refuses such classes.
#[derive(Debug, Clone, Copy)]
pub struct Preview<'e>(pub &'e dyn Extensions);

impl Preview<'_> {
    /// The same as [`plans`].
    ///
    /// # Errors
    ///
    /// The same.
    pub fn plans(self, files: &Files, old: Option<&Files>) -> Result<Planned, String> {
        planned_from(files, old, Some(self.0))
    }

    /// The same as [`plans_of_server`].
    ///
    /// # Errors
    ///
    /// The same.
    pub fn plans_of_server(self, live: Listed, files: &Files) -> Result<Planned, String> {
        Ok(after(live, &document::objects(files)?, Some(self.0)))
    }
}

fn planned_from(
    files: &Files,
    old: Option<&Files>,
    extensions: Option<&dyn Extensions>,
) -> Result<Planned, String> {
    let read = document::objects(files)?;
    let mut new = Gathered::of(named(&read), &Unread::new(), extensions);
    let Some(old) = old else {
        let findings = validate(&new.estate, None);
        return Ok(new.plans(findings, |_| Basis::Objects));
    };
    let read = document::objects(old)?;
    let old = Gathered::of(named(&read), &Unread::new(), extensions);
    let before = old.plans(validate(&old.estate, None), |_| Basis::Nothing);
    if !before.findings.is_empty() {
        return Ok(Planned {
            findings: before.findings,
            ..Planned::default()
        });
    }
    variables::keep(&mut new.estate, &old.estate, &before.plans);
    let made: BTreeMap<Key, Vec<&Value>> = before
        .plans
        .iter()
        .map(|plan| {
            (
                (plan.namespace.clone(), plan.name.clone()),
                plan.objects().collect(),
            )
        })
        .collect();
    let mut all = new.plans(validate(&new.estate, Some(&old.estate)), |key| {
        made.get(key)
            .map_or(Basis::New, |objects| Basis::Planned(objects))
    });
    let known: BTreeSet<Key> = new.estate.clusters.keys().cloned().collect();
    let gone = before.plans.into_iter();
    let gone = gone.filter(|plan| !known.contains(&(plan.namespace.clone(), plan.name.clone())));
    all.plans.extend(gone.map(deleted));
    Ok(all)
}

/// Plans the clusters of a server as they would be after an edit: the objects of `files` over those that it has.
///
/// # Errors
///
/// One line: which file cannot be read, and why.
pub fn plans_of_server(live: Listed, files: &Files) -> Result<Planned, String> {
    Ok(after(live, &document::objects(files)?, None))
}

/// The same with objects for edits.
pub fn plans_of_edits(live: Listed, edits: Vec<Value>) -> Planned {
    let edits: Vec<Read<'_>> = edits.into_iter().map(|object| (SERVER, object)).collect();
    after(live, &edits, None)
}

fn after(live: Listed, edits: &[Read<'_>], extensions: Option<&dyn Extensions>) -> Planned {
    let Listed { objects, unread } = live;
    let live: Vec<Read<'_>> = objects.into_iter().map(|object| (SERVER, object)).collect();
    let after = over(&live, edits);
    let before = Gathered::of(named(&live), &unread, extensions);
    let new = Gathered::of(named(&after), &unread, extensions);
    let findings = validate(&new.estate, (!edits.is_empty()).then_some(&before.estate));
    new.plans(findings, |_| Basis::Objects)
}

/// Plans the clusters of a server as it has them.
pub fn plans_of_live(live: &Listed) -> Planned {
    let objects = live.objects.iter().map(|object| (SERVER, object));
    let new = Gathered::of(objects, &live.unread, None);
    let findings = validate(&new.estate, None);
    new.plans(findings, |_| Basis::Objects)
}

/// Stands for the file name of an object from a server.
const SERVER: &str = "server";

fn named<'a>(read: &'a [Read<'a>]) -> impl Iterator<Item = (&'a str, &'a Value)> + Clone {
    read.iter().map(|(file, object)| (*file, object))
}

/// The starting point of a plan.
enum Basis<'b> {
    /// The objects among the files.
    Objects,
    /// An earlier plan.
    Planned(&'b [&'b Value]),
    /// The cluster is new.
    New,
    /// Nothing: no existing objects were given.
    Nothing,
}

/// Files that were read together.
struct Gathered<'a> {
    objects: Objects<'a>,
    estate: Estate,
    extensions: Option<&'a dyn Extensions>,
}

impl<'a> Gathered<'a> {
    fn of(
        read: impl Iterator<Item = (&'a str, &'a Value)> + Clone,
        unread: &Unread,
        extensions: Option<&'a dyn Extensions>,
    ) -> Self {
        let mut estate = Estate {
            takes_extensions: extensions.is_some(),
            ..Estate::default()
        };
        estate.add_objects(read.clone());
        let objects = Objects::of(read.map(|(_, object)| object)).without(unread.clone());
        if let Some(extensions) = extensions {
            discover(&mut estate, &objects, extensions);
        }
        Self {
            objects,
            estate,
            extensions,
        }
    }

    /// The plans of its clusters. Clusters with findings in them or in their classes are left out.
    fn plans<'b>(&self, mut findings: Vec<Finding>, basis: impl Fn(&Key) -> Basis<'b>) -> Planned {
        let mut wrong: BTreeSet<String> = findings.iter().map(|finding| finding.object.clone()).collect();
        let mut blueprints = BTreeMap::new();
        for (key, class) in &self.estate.classes {
            let named = format!("ClusterClass {}/{}", key.0, key.1);
            let used = self.estate.users(key).next().is_some();
            if used && !wrong.contains(&named) {
                let mut report = Report::new(&class.origin, &named);
                let pools = self.pools(key);
                let blueprint = Blueprint::read(class, &pools, &self.objects, self.extensions, &mut report);
                if report.count() == 0 {
                    blueprints.insert(key.clone(), blueprint);
                } else {
                    wrong.insert(named);
                    findings.extend(report.into_findings());
                }
            }
        }
        let mut plans = Vec::new();
        for (key, cluster) in &self.estate.clusters {
            let Some(topology) = &cluster.topology else {
                continue;
            };
            let class = (topology.class_namespace.clone(), topology.class.value.clone());
            let Some(blueprint) = blueprints.get(&class) else {
                continue;
            };
            if wrong.contains(&format!("Cluster {}/{}", key.0, key.1)) {
                continue;
            }
            let made = self.planned(blueprint, (key, cluster), &basis(key));
            findings.extend(made.findings.iter().cloned());
            if made.findings.is_empty() {
                plans.push(made);
            }
        }
        Planned { plans, findings }
    }

    /// Classes of machine pools that Clusters of a class use.
    fn pools(&self, class: &Key) -> BTreeSet<&str> {
        let workers = self
            .estate
            .users(class)
            .flat_map(|(_, topology)| &topology.workers);
        let pools = workers.filter(|one| one.kind == WorkerKind::MachinePool);
        pools.map(|one| one.class.as_str()).collect()
    }

    fn planned(
        &self,
        blueprint: &Blueprint<'_>,
        (key, cluster): (&Key, &Cluster),
        basis: &Basis<'_>,
    ) -> Plan {
        let mut made = Objects::default();
        let (objects, seen) = match basis {
            Basis::Objects => (&self.objects, Seen::OnServer),
            Basis::Nothing => (&self.objects, Seen::Unseen),
            Basis::New => (&made, Seen::Unseen),
            Basis::Planned(planned) => {
                made = Objects::of(planned.iter().copied());
                (&made, Seen::AsPlanned)
            }
        };
        let none = Value::Null;
        let document = objects
            .get(group_of_cluster(), "Cluster", &key.0, &key.1)
            .unwrap_or(&none);
        let mut report = Report::new(&cluster.origin, &format!("Cluster {}/{}", key.0, key.1));
        if seen != Seen::Unseen {
            kinds::references(blueprint.class, document, &mut report);
        }
        if report.count() > 0 {
            return Plan {
                findings: report.into_findings(),
                ..Plan::default()
            };
        }
        let current = Current::read(document, (cluster, blueprint.class), objects, seen, &mut report);
        if report.count() > 0 {
            return Plan {
                findings: report.into_findings(),
                ..Plan::default()
            };
        }
        match &cluster.topology {
            Some(topology) => plan(blueprint, cluster, topology, &current),
            None => Plan::default(),
        }
    }
}

/// Asks the extensions of the classes in use which variables they define.
fn discover(estate: &mut Estate, objects: &Objects<'_>, extensions: &dyn Extensions) {
    let used = |estate: &Estate, key: &Key| estate.users(key).next().is_some();
    let keys: Vec<Key> = estate
        .classes
        .keys()
        .filter(|key| used(estate, key))
        .cloned()
        .collect();
    for key in keys {
        let Some(class) = estate.classes.get_mut(&key) else {
            continue;
        };
        let mut report = Report::new(&class.origin, &format!("ClusterClass {}/{}", key.0, key.1));
        for at in 0..class.external.len() {
            let external = &class.external[at];
            let named = external.discover.clone();
            if named.is_empty() {
                continue;
            }
            let request = request::of_variables(&extended::settings(objects, &named, external));
            let Some(said) = extensions.ask(Hook::DiscoverVariables, &named, &request) else {
                continue;
            };
            match said
                .and_then(|answer| answer::success(&answer).map(|answer| answer.get("variables").cloned()))
            {
                Ok(variables) => class.discover(at, variables.as_ref(), &mut report),
                Err(why) => report.say(
                    "extension",
                    external.field.clone(),
                    format!("extension {named}: {why}"),
                ),
            }
        }
        estate.findings.extend(report.into_findings());
    }
}

/// The plan of a cluster that goes, from the one that made it.
fn deleted(before: Plan) -> Plan {
    let changes = before.changes.into_iter().rev().map(|change| Change {
        action: Action::Delete,
        fields: Vec::new(),
        object: None,
        ..change
    });
    Plan {
        changes: changes.collect(),
        ..before
    }
}

#[cfg(test)]
mod tests;
