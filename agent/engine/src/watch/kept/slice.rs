//! An EndpointSlice: an imported one as the plan reads it, or one of a local Service as facts and the cluster's own
//! import read it.

use std::sync::Arc;

use api::{
    convert::{SliceProblem, service_of_slice, slice_from},
    names::{LABEL_KUBERNETES_SERVICE_NAME, LABEL_SERVICE_NAME, LABEL_SOURCE_CLUSTER},
};
use k8s_openapi::api::discovery::v1::EndpointSlice as KubernetesSlice;
use model::{ChangedBy, ClusterId, EndpointSlice, ServiceKey};

use super::{Head, Kept};
use crate::{
    convert::changed_by::changed_by,
    convert::slice::{Place, content_of, own_from, places_of},
    plan::{Found, Ours, content::SliceContent, view::OwnSlice},
};

/// The kept part of an EndpointSlice.
#[derive(Debug)]
pub struct KeptSlice {
    head: Head,
    /// The multi-cluster service that it names, else the Service.
    service: Option<Box<str>>,
    /// It names a multi-cluster service.
    is_imported: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Ours {
        found: Ours<SliceContent>,
        /// The cluster that it names, whoever wrote it.
        source: Option<ClusterId>,
    },
    Local {
        service: ServiceKey,
        slice: Result<Arc<EndpointSlice>, Box<SliceProblem>>,
        /// The value of each endpoint, in their order.
        places: Box<[Place]>,
        changed_by: Option<ChangedBy>,
    },
    /// Another writer's import, or a slice of no Service.
    Foreign(Box<SliceProblem>),
}

impl Kept for KeptSlice {
    type Object = KubernetesSlice;

    fn keep(object: KubernetesSlice) -> Self {
        let label = |name: &str| Some(object.metadata.labels.as_ref()?.get(name)?.as_str());
        let head = Head::of(&object.metadata);
        let named = |name: &str| label(name).filter(|name| head.service_named(name).is_some());
        let imported_for = named(LABEL_SERVICE_NAME);
        let service = imported_for.or_else(|| named(LABEL_KUBERNETES_SERVICE_NAME));
        Self {
            service: service.map(Into::into),
            is_imported: imported_for.is_some(),
            what: match (content_of(&object), service_of_slice(&object)) {
                (Found::Ours(found), _) => What::Ours {
                    found,
                    source: label(LABEL_SOURCE_CLUSTER).and_then(|name| ClusterId::new(name).ok()),
                },
                (_, Ok(service)) => {
                    let slice = slice_from(&object, &service);
                    What::Local {
                        places: slice.as_ref().map(|_| places_of(&object)).unwrap_or_default(),
                        slice: slice.map(Arc::new).map_err(Box::new),
                        service,
                        changed_by: changed_by(&object.metadata),
                    }
                }
                (_, Err(problem)) => What::Foreign(Box::new(problem)),
            },
            head,
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

impl KeptSlice {
    /// The object under its name, as a plan sees it.
    pub fn found(&self) -> Found<SliceContent> {
        match &self.what {
            What::Ours { found, .. } => Found::Ours(found.clone()),
            What::Local { .. } | What::Foreign(_) => Found::Stranger,
        }
    }

    /// Returns true if it is the agent's.
    pub fn is_ours(&self) -> bool {
        matches!(self.what, What::Ours { .. })
    }

    /// The cluster that it names as its source, if it is the agent's.
    pub fn source(&self) -> Option<&ClusterId> {
        match &self.what {
            What::Ours { source, .. } => source.as_ref(),
            What::Local { .. } | What::Foreign(_) => None,
        }
    }

    /// The slice as a fact of the local Service, or why it is none.
    pub fn exported(&self, of: &ServiceKey) -> Result<Arc<EndpointSlice>, SliceProblem> {
        match &self.what {
            What::Local { service, .. } if service != of => Err(SliceProblem::OfNoService),
            What::Local { slice, .. } => slice.clone().map_err(|problem| *problem),
            What::Ours { .. } => Err(SliceProblem::Imported),
            What::Foreign(problem) => Err((**problem).clone()),
        }
    }

    /// The last writer of the slice of a local Service.
    pub fn changed_by(&self) -> Option<&ChangedBy> {
        match &self.what {
            What::Local { changed_by, .. } => changed_by.as_ref(),
            What::Ours { .. } | What::Foreign(_) => None,
        }
    }

    /// The slice of the local Service as its own cluster imports it, or why it is none.
    pub fn own(&self, of: &ServiceKey) -> Result<OwnSlice, SliceProblem> {
        let places = match &self.what {
            What::Local { places, .. } => &places[..],
            What::Ours { .. } | What::Foreign(_) => &[],
        };
        Ok(own_from(&*self.exported(of)?, places))
    }

    /// The service that its labels name.
    pub fn service(&self) -> Option<ServiceKey> {
        self.head.service_named(self.service.as_deref()?)
    }

    /// The service that it is imported for, if it is the agent's.
    pub fn labelled_service(&self) -> Option<ServiceKey> {
        self.service().filter(|_| self.is_imported && self.is_ours())
    }

    /// The service that it is imported for, or whose own it is.
    pub fn imported_or_own(&self) -> Option<ServiceKey> {
        let own = match &self.what {
            What::Local { service, .. } => Some(service.clone()),
            What::Ours { .. } | What::Foreign(_) => None,
        };
        self.labelled_service().or(own)
    }
}
