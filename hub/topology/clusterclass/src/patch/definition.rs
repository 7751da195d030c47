//! Owns: inline patches of a class, as values.
//! Never: something that cannot be meant, as an operation with two values; `read` refuses that.

use serde_json::Value;

use crate::model::WorkerKind;

/// A patch: definitions that apply under one condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Index in the class, from 0.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its purpose, in its author's words; may be empty.
    pub description: String,
    /// A template whose result must be `true`; empty if there is no condition.
    pub enabled_if: String,
    /// Its definitions, in this order.
    pub definitions: Vec<Definition>,
    /// True if an extension makes it; it has no definitions then.
    pub external: bool,
    /// True if all of it could be read. Unreadable parts are checked as far as possible, and not applied.
    pub whole: bool,
}

/// Operations for the templates that a selector matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Definition {
    /// The templates.
    pub selector: Selector,
    /// The operations, in this order.
    pub operations: Vec<Operation>,
}

/// Selects the templates of this type in one of these places.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selector {
    /// The template's, exactly.
    pub api_version: String,
    /// The template's, exactly.
    pub kind: String,
    /// The control plane, and its machines.
    pub control_plane: bool,
    /// The cluster's infrastructure.
    pub infrastructure_cluster: bool,
    /// Classes of machine deployments by name; `*` matches anything, at the start or at the end.
    pub machine_deployment_classes: Vec<String>,
    /// Classes of machine pools, the same.
    pub machine_pool_classes: Vec<String>,
}

impl Selector {
    /// Names of classes of a kind of workers.
    pub fn classes(&self, kind: WorkerKind) -> &[String] {
        match kind {
            WorkerKind::MachineDeployment => &self.machine_deployment_classes,
            WorkerKind::MachinePool => &self.machine_pool_classes,
        }
    }
}

/// One step of a definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Index in the definition, from 0.
    pub index: usize,
    /// JSON pointer from the template's root.
    pub path: String,
    /// The change.
    pub change: Change,
}

/// A change at a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A field is set, or an element put into a list.
    Add(Source),
    /// Replaces the value.
    Replace(Source),
    /// Removes the value.
    Remove,
}

impl Change {
    /// The operation as the class spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add",
            Self::Replace(_) => "replace",
            Self::Remove => "remove",
        }
    }

    /// The source of its value.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Self::Add(source) | Self::Replace(source) => Some(source),
            Self::Remove => None,
        }
    }
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The value is in the class.
    Value(Value),
    /// A variable, or a part of one: `a.b[0].c`.
    Variable(String),
    /// A template, whose text is read as YAML.
    Template(String),
}
