//! The importing cluster's own rules: what it takes of what a hub tells, whatever the hub says. So a hostile or faulty
//! hub does no more here than this cluster's owner allows. Pure; rejected objects are reported once, in words.

use std::{collections::BTreeSet, net::IpAddr};

use model::{
    Endpoint, ImportedSlice, Metadata, ServiceImport,
    policy::{Pattern, special},
    validate,
};

/// Default bound of held imports. Each with a clusterset IP takes an address of the cluster's Service range. A `/18`
/// has 16,384; a smaller range needs a smaller bound.
pub const IMPORTS_MAX: usize = 12_000;
/// Most namespaces and clusters for which a rejection is remembered. With more, all are forgotten, and may be told of
/// once more.
const TOLD_MAX: usize = 1_000;

/// The imports that this cluster accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRules {
    /// Namespaces into which it imports; `None`: every one that Kubernetes does not keep for itself.
    pub namespaces: Option<Vec<Pattern>>,
    /// Domains of exported labels and annotations that imports carry; `None`: all but those by which other controllers
    /// act. Keys without a domain they always do.
    pub metadata: Option<Vec<Pattern>>,
    /// Most imports that it holds.
    pub imports_max: usize,
    /// Labels of every object that is made here for an import: what this cluster's policies demand. They win over
    /// exported ones.
    pub object_labels: Metadata,
}

impl Default for ImportRules {
    fn default() -> Self {
        Self {
            namespaces: None,
            metadata: None,
            imports_max: IMPORTS_MAX,
            object_labels: Metadata::new(),
        }
    }
}

impl ImportRules {
    /// Returns true if anything is imported into a namespace.
    pub fn admits(&self, namespace: &str) -> bool {
        let listed = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.matches(namespace));
        !special::is_reserved_namespace(namespace) && self.namespaces.as_ref().is_none_or(listed)
    }

    /// Returns the labels and annotations that the import carries here: of the exported ones those that this cluster takes,
    /// within the syntax and the size that an export has, whatever the hub says; and the labels of every object.
    pub(super) fn carried(&self, import: &ServiceImport) -> (Metadata, Metadata) {
        let taken = |metadata: &Metadata| -> Metadata {
            let taken = metadata.iter().filter(|(key, _)| self.carry(key));
            taken.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let (mut labels, mut annotations) = (taken(&import.labels), taken(&import.annotations));
        validate::leave_out_metadata(&mut labels, &mut annotations);
        labels.extend(self.object_labels.clone());
        (labels, annotations)
    }

    /// Returns true if imports carry an exported label or annotation. Reserved keys they never do, whatever the hub says.
    pub(super) fn carry(&self, key: &str) -> bool {
        if validate::is_reserved_key(key) {
            return false;
        }
        let Some((domain, _)) = key.split_once('/') else {
            return true;
        };
        let domain = domain.to_ascii_lowercase();
        match &self.metadata {
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(&domain)),
            None => !validate::is_another_controllers_key(key),
        }
    }
}

/// Returns true if an endpoint of another cluster may stand here: none of its addresses leads elsewhere in every
/// network.
pub(super) fn may_stand(endpoint: &Endpoint) -> bool {
    !endpoint.addresses.iter().any(is_special)
}

fn is_special(address: &IpAddr) -> bool {
    special::special(*address).is_some()
}

/// The objects rejected since the last report, and the complaints already made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TurnedAway {
    count: u64,
    words: Vec<String>,
    told: BTreeSet<Box<str>>,
}

impl TurnedAway {
    /// An object of a namespace into which nothing is imported.
    pub(super) fn namespace(&mut self, namespace: &str) {
        self.note(namespace, || {
            format!(
                "the hub sends imports for namespace {namespace}, into which this cluster imports nothing (Kubernetes' own, or not \
                 among --import-namespaces): they are not taken"
            )
        });
    }

    /// An import above the bound.
    pub(super) fn import(&mut self, most: usize) {
        self.note("", || {
            format!(
                "the hub sends more than the {most} imports that this cluster takes (--imports-max): no further ones are \
                 taken, and nothing that stands is removed for the hub's silence, until a session tells fewer"
            )
        });
    }

    /// An import with labels and annotations that no export can have.
    pub(super) fn metadata(&mut self, import: &ServiceImport) {
        let Err(problem) = validate::metadata(&import.labels, &import.annotations) else {
            return;
        };
        let service = &import.service;
        self.note(&format!("/{service}"), || {
            format!("the hub sends labels or annotations of {service} that no export can have, and they are left out: {problem}")
        });
    }

    /// A slice with endpoints left out.
    pub(super) fn slice(&mut self, slice: &ImportedSlice) {
        let special = slice
            .endpoints
            .values()
            .filter(|endpoint| !may_stand(endpoint))
            .count();
        if special == 0 {
            return;
        }
        let cluster = &slice.key.source_cluster;
        self.note(&format!("/{cluster}"), || {
            format!(
                "the hub sends endpoints of {cluster} whose addresses are none of a cluster's (metadata services, reserved \
                 or translated addresses), such as in {}: they are left out",
                slice.key.service
            )
        });
    }

    fn note(&mut self, about: &str, words: impl FnOnce() -> String) {
        self.count += 1;
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(about.into()) {
            self.words.push(words());
        }
    }

    /// Number of rejected objects, and the complaints to log once.
    pub(super) fn take(&mut self) -> (u64, Vec<String>) {
        (std::mem::take(&mut self.count), std::mem::take(&mut self.words))
    }
}
