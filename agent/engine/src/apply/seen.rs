//! Owns: the versions of one service's objects when its plan was made, and the versions after its own writes. A write
//! states it, so that nothing that was written meanwhile is written over: by another agent that leads by now, or by
//! people.
//! Never: decides what to write.

use std::collections::BTreeMap;

use kube_core::Resource;
use serde_json::Value;

use crate::{plan::Kind, watch::Head};

/// Versions of objects; zero is one that is not known, and is not stated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) import: u64,
    pub(super) derived: u64,
    pub(super) export: u64,
    pub(super) slices: BTreeMap<Box<str>, u64>,
}

impl Seen {
    /// The slot for the version of the object of this kind and name.
    pub(super) fn of(&mut self, kind: Kind, name: &str) -> &mut u64 {
        match kind {
            Kind::Import => &mut self.import,
            Kind::Derived => &mut self.derived,
            Kind::Slice => self.slices.entry(name.into()).or_default(),
        }
    }
}

/// The version in which an answer shows an object.
pub(super) fn version_of<K: Resource>(object: &K) -> u64 {
    Head::of(object.meta()).version
}

/// Lets a write state the version that it is made for: an API server answers another version with a conflict.
pub(super) fn state(body: &mut Value, version: u64) {
    if version > 0 {
        body["metadata"]["resourceVersion"] = version.to_string().into();
    }
}
