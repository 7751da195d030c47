//! One store per kind for the whole process, which somebody feeds from a watch: observe and apply read the same stores.
//! Keeps of each object what is read of it; what that means is for the readers.

mod denials;
mod dirty;
mod event;
mod guarded;
mod kept;
mod metrics;
mod store;
mod unreadable;

use std::collections::BTreeSet;

use model::ServiceKey;

pub use denials::{DENIAL_PATIENCE, Denials, Failure};
pub use dirty::{Dirty, Queue};
pub use event::Event;
pub use guarded::{Guarded, Read, Unreadable};
pub use kept::{Head, Kept, KeptExport, KeptImport, KeptNamespace, KeptService, KeptSlice, ObjectKey, Whole};
pub use metrics::WatchMetrics;
pub use store::{Index, Watched, WriteTicket};

/// The kinds that observe and apply share.
#[derive(Clone)]
pub struct Watches {
    /// Namespaces.
    pub namespaces: Watched<KeptNamespace>,
    /// Services; a derived one belongs to the service it is derived for.
    pub services: Watched<KeptService>,
    /// EndpointSlices: those of local Services and the imported ones, each by the service it belongs to.
    pub slices: Watched<KeptSlice>,
    /// ServiceExports.
    pub exports: Watched<KeptExport>,
    /// ServiceImports.
    pub imports: Watched<KeptImport>,
}

impl std::fmt::Debug for Watches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watches")
    }
}

impl Default for Watches {
    fn default() -> Self {
        Self {
            namespaces: Watched::new(|_| None),
            services: Watched::new(KeptService::service),
            slices: Watched::new(KeptSlice::service),
            // One that no Service can be called by is looked at too: its conditions say what is wrong with it.
            exports: Watched::new(|export| {
                let head = export.head();
                Some(ServiceKey::as_called(&head.namespace, &head.name))
            }),
            imports: Watched::new(|import| import.head().service()),
        }
    }
}

impl Watches {
    /// From now on marks the namespaces in which an object that plans and facts are made from begins or ceases to be one
    /// that cannot be decoded.
    pub fn mark_unreadable(&self, dirty: &Dirty<Box<str>>) {
        self.services.mark_unreadable(dirty);
        self.slices.mark_unreadable(dirty);
        self.exports.mark_unreadable(dirty);
        self.imports.mark_unreadable(dirty);
    }

    /// Returns true if every kind that an export is joined from is known.
    pub fn exports_known(&self) -> bool {
        self.namespaces.is_listed()
            && self.services.is_listed()
            && self.slices.is_listed()
            && self.exports.is_listed()
    }

    /// Returns true if nothing that an export is joined from is unknown because it cannot be decoded. While something is, what is
    /// not stated is not known to be gone.
    pub fn exports_whole(&self) -> bool {
        let (services, slices) = (self.services.unknown(), self.slices.unknown());
        let exported = |(namespace, name): &ObjectKey| self.exports.get(namespace, name).is_some();
        let mut exporting = BTreeSet::new();
        if !slices.is_empty() {
            exporting.extend(
                self.exports
                    .all()
                    .iter()
                    .map(|export| export.head().namespace.clone()),
            );
        }
        self.exports.unknown().is_empty()
            && !services.iter().any(exported)
            && !slices.iter().any(|(namespace, _)| exporting.contains(namespace))
    }
}
