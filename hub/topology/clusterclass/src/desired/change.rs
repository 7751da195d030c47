//! Owns: what is planned for one cluster, as values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use super::progress::Progress;
use crate::{model::Finding, patch::apply::Step};

/// What becomes of an object.
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
    /// What it is called.
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

    /// Whether something is written.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Wait | Self::Keep)
    }
}

/// A field that is another one than it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its path.
    pub field: String,
    /// What it is, if it is there.
    pub old: Option<Value>,
    /// What it should be, if it should be there.
    pub new: Option<Value>,
}

/// What becomes of one object, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its place in the cluster, as `machine-deployment/md-0/bootstrap`.
    pub place: String,
    /// What becomes of it.
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
    /// How many machines it replaces, at most.
    pub machines: u64,
}

/// What the objects of a cluster are made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sources {
    /// Values of variables by their names: the Cluster's, and the defaults of its class.
    pub variables: BTreeMap<String, Value>,
    /// What patches of the class did to the template of each place, in their order.
    pub patches: BTreeMap<String, Vec<Step>>,
}

/// A list of variables of a Cluster, with what its class has defaults for. It is written into the Cluster once, and stays
/// there: another default of the class changes no Cluster that has a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Defaulted {
    /// Where the list is in the Cluster, a JSON pointer.
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

/// What becomes of a cluster.
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
    /// What goes on with versions, and what has to be waited for; empty if everything has the one that is wanted.
    pub upgrade: Vec<String>,
    /// The same as values.
    pub progress: Progress,
    /// What the objects are made of.
    pub sources: Sources,
    /// Defaults that the Cluster is yet to be given; none of one that was not read from a server.
    pub defaults: Vec<Defaulted>,
    /// The same as fields of the Cluster. They are no change: the objects are made with these values already.
    pub given: Vec<Difference>,
    /// What is wrong. Nothing of the plan is for use then.
    pub findings: Vec<Finding>,
}

/// What a preview comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Nothing would be written.
    Nothing,
    /// Something would.
    Something,
}

impl Plan {
    /// Whether something would be written.
    pub fn writes(&self) -> bool {
        self.changes.iter().any(|change| change.action.writes())
    }

    /// The objects as they should be, in the order in which they are written.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.changes.iter().filter_map(|change| change.object.as_ref())
    }
}
