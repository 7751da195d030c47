//! A Service: the derived one of an import as the plan reads it, or a local one as an export reads it.

use std::{collections::BTreeMap, sync::LazyLock};

use api::names::{AGENT_MANAGER, LABEL_MANAGED_BY, LABEL_SERVICE_NAME};
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use kube_core::ObjectMeta;
use model::{ChangedBy, ClusterId, ServiceKey};

use super::{Head, Kept};
use crate::convert::{
    ANNOTATION_SOURCE_CLUSTERS,
    changed_by::changed_by,
    derived::{Derived, derived_of},
    sources_from,
};

/// The kept part of a Service.
#[derive(Debug)]
pub struct KeptService {
    head: Head,
    /// The service that it says it is derived for, with our label.
    derived_for: Option<Box<str>>,
    what: What,
}

#[derive(Debug)]
enum What {
    Ours {
        derived: Box<Derived>,
        /// The clusters that it names, whoever wrote them.
        sources: Box<[ClusterId]>,
    },
    Local {
        service: Box<Service>,
        changed_by: Option<ChangedBy>,
    },
}

impl Kept for KeptService {
    type Object = Service;

    fn keep(object: Service) -> Self {
        let meta = &object.metadata;
        let label = |name: &str| Some(meta.labels.as_ref()?.get(name)?.as_str());
        let labelled_ours = label(LABEL_MANAGED_BY) == Some(AGENT_MANAGER);
        let derived_for = label(LABEL_SERVICE_NAME).filter(|_| labelled_ours);
        Self {
            head: Head::of(meta),
            derived_for: derived_for.map(Into::into),
            what: match derived_of(&object) {
                Some(derived) => {
                    let annotations = meta.annotations.as_ref();
                    let text = annotations.and_then(|all| all.get(ANNOTATION_SOURCE_CLUSTERS));
                    What::Ours {
                        derived: Box::new(derived),
                        sources: sources_from(text.map(String::as_str)).into_iter().collect(),
                    }
                }
                None => What::Local {
                    changed_by: changed_by(meta),
                    service: Box::new(stripped(object)),
                },
            },
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }
}

impl KeptService {
    /// The derived Service, if it is the agent's.
    pub(crate) fn derived(&self) -> Option<&Derived> {
        match &self.what {
            What::Ours { derived, .. } => Some(derived),
            What::Local { .. } => None,
        }
    }

    /// The clusters that it names as its sources, if it is the agent's.
    pub fn sources(&self) -> &[ClusterId] {
        match &self.what {
            What::Ours { sources, .. } => sources,
            What::Local { .. } => &[],
        }
    }

    /// The part that an export reads. Of a derived Service it only says that it is derived.
    pub fn exported(&self) -> &Service {
        match &self.what {
            What::Ours { .. } => &MADE_BY_TRIBUTARY,
            What::Local { service, .. } => service,
        }
    }

    /// The last writer, its status left out; `None` for a derived Service.
    pub fn changed_by(&self) -> Option<&ChangedBy> {
        match &self.what {
            What::Ours { .. } => None,
            What::Local { changed_by, .. } => changed_by.as_ref(),
        }
    }

    /// The service that it is derived for, as its label says, or else is.
    pub fn service(&self) -> Option<ServiceKey> {
        let derived_for = self.derived_for.as_deref();
        derived_for
            .and_then(|name| self.head.service_named(name))
            .or_else(|| self.head.service())
    }

    /// The service that it is derived for, if it is the agent's.
    pub fn labelled_service(&self) -> Option<ServiceKey> {
        let name = self.derived_for.as_deref().filter(|_| self.derived().is_some())?;
        self.head.service_named(name)
    }
}

/// Represents every Service of the agent's when an export is judged.
static MADE_BY_TRIBUTARY: LazyLock<Service> = LazyLock::new(|| Service {
    metadata: ObjectMeta {
        labels: Some(BTreeMap::from([(LABEL_MANAGED_BY.into(), AGENT_MANAGER.into())])),
        ..ObjectMeta::default()
    },
    ..Service::default()
});

/// Reduces a Service to the fields that an export reads.
fn stripped(service: Service) -> Service {
    let meta = service.metadata;
    let labels = meta.labels.map(|mut labels| {
        labels.retain(|label, _| label == LABEL_MANAGED_BY);
        labels
    });
    let spec = service.spec.map(|spec| ServiceSpec {
        type_: spec.type_,
        cluster_ip: spec.cluster_ip,
        cluster_ips: spec.cluster_ips,
        ports: spec.ports,
        session_affinity: spec.session_affinity,
        session_affinity_config: spec.session_affinity_config,
        internal_traffic_policy: spec.internal_traffic_policy,
        traffic_distribution: spec.traffic_distribution,
        ip_families: spec.ip_families,
        // whether there is one
        selector: spec.selector.map(|all| all.into_iter().take(1).collect()),
        ..ServiceSpec::default()
    });
    Service {
        metadata: ObjectMeta {
            namespace: meta.namespace,
            name: meta.name,
            labels: labels.filter(|labels| !labels.is_empty()),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    }
}
