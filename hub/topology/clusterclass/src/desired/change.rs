//! Owns: what is planned for one cluster, as values.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::progress::{Progress, WorkersProgress};
use crate::{
    model::Finding,
    patch::{apply::Step, external::parts},
};

/// The action on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is made.
    Create,
    /// It is changed where it is.
    Update,
    /// Another one takes the place of a template, and what refers to it is pointed there.
    Rotate,
    /// It goes.
    Delete,
    /// It is left alone until an upgrade is further.
    Wait,
    /// It is as it should be.
    Keep,
}

impl Action {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Rotate => "rotate",
            Self::Delete => "delete",
            Self::Wait => "wait",
            Self::Keep => "keep",
        }
    }

    /// Returns true if something is written.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Wait | Self::Keep)
    }
}

/// A field with a wrong value.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its path.
    pub field: String,
    /// The existing object, if there is one.
    pub old: Option<Value>,
    /// The wanted object, if there should be one.
    pub new: Option<Value>,
}

/// The change of one object, and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the cluster, as `machine-deployment/md-0/bootstrap`.
    pub place: String,
    /// The action.
    pub action: Action,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The template that it takes the place of.
    pub before: Option<String>,
    /// Why.
    pub fields: Vec<Difference>,
    /// Why, in words; may be empty.
    pub note: String,
    /// The object as it should be; none for one that goes or waits.
    pub object: Option<Value>,
    /// Number of machines that it replaces, at most.
    pub machines: u64,
}

/// The sources of a cluster's objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sources {
    /// Values of variables by their names: the Cluster's, and the defaults of its class.
    pub variables: BTreeMap<String, Value>,
    /// The steps that patches of the class made on the template of each place, in their order.
    pub patches: BTreeMap<String, Vec<Step>>,
}

/// A list of variables of a Cluster, with what its class has defaults for. It is written into the Cluster once, and stays
/// there: another default of the class changes no Cluster that has a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Defaulted {
    /// JSON pointer to the list in the Cluster.
    pub pointer: String,
    /// All of the list.
    pub values: Value,
}

impl Defaulted {
    /// Writes the list into a Cluster.
    pub fn write(&self, cluster: &mut Value) {
        let Some((holder, name)) = self.pointer.rsplit_once('/') else {
            return;
        };
        if let Some(holder) = cluster.pointer_mut(holder).and_then(Value::as_object_mut) {
            holder.insert(name.to_owned(), self.values.clone());
        }
    }
}

/// A part of a class that a plan lacks, since an extension was not asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The extension whose address would have helped; none if nothing does.
    pub extension: Option<String>,
    what: String,
}

impl LeftOut {
    /// The missing work of a handler, called as in a class.
    pub(super) fn of_extension(named: &str, what: String) -> Self {
        let (_, extension) = parts(named);
        Self {
            extension: Some(extension.to_owned()),
            what,
        }
    }

    /// Work that no plan does.
    pub(super) fn never(what: String) -> Self {
        Self {
            extension: None,
            what,
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.what)?;
        match &self.extension {
            Some(extension) => write!(to, "; give --extension {extension}=URL"),
            None => Ok(()),
        }
    }
}

/// The plan of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// The version that it is to have.
    pub version: String,
    /// Each object, in the order in which it is written.
    pub changes: Vec<Change>,
    /// Steps of the upgrade under way, and what they wait for; empty if everything has the wanted version.
    pub upgrade: Vec<String>,
    /// The same as values.
    pub progress: Progress,
    /// The sources of the objects.
    pub sources: Sources,
    /// Defaults that the Cluster is yet to be given; none of one that was not read from a server.
    pub defaults: Vec<Defaulted>,
    /// The same as fields of the Cluster. They are no change: the objects are made with these values already.
    pub given: Vec<Difference>,
    /// Parts of the class that it lacks.
    pub left_out: Vec<LeftOut>,
    /// Findings. With any, the plan must not be used.
    pub findings: Vec<Finding>,
}

/// The sum of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Nothing would be written.
    Nothing,
    /// Something would.
    Something,
}

impl Plan {
    /// Returns true if something would be written.
    pub fn writes(&self) -> bool {
        self.changes.iter().any(|change| change.action.writes())
    }

    /// The objects as they should be, in the order in which they are written.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.changes.iter().filter_map(|change| change.object.as_ref())
    }
}
