//! A ServiceExport and its Service → an export, or the reason why `Valid` is False.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Service, ServicePort as KubernetesPort, ServiceSpec};

use crate::{
    ServiceExport,
    conditions::service_export::{
        REASON_INVALID_EXPORT, REASON_INVALID_SERVICE_TYPE, REASON_NAMESPACE_DENIED, REASON_NO_SERVICE,
    },
    names::{AGENT_MANAGER, CLUSTER_IP_NONE, LABEL_MANAGED_BY},
};
use model::{
    Export, IpFamily, Metadata, ServiceKey, ServicePolicies, ServicePort, ServiceType, SessionAffinity,
    UnixMillis,
    derived_name::{DERIVED_SERVICE_HASH_CHARS, DERIVED_SERVICE_PREFIX},
    policy::special,
    validate::{self, InvalidValue},
};

/// Labels and annotations that a message names as left out, at most; it counts the others.
const LEFT_OUT_NAMED_MAX: usize = 5;

/// Why a ServiceExport is not exported. Its text is the condition's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportProblem {
    /// There is no Service of that name.
    #[error("There is no Service {0}; create it, or delete this ServiceExport.")]
    NoService(ServiceKey),
    /// The Service is of a kind that is not exported.
    #[error("{0}")]
    InvalidServiceType(String),
    /// ServiceExport or Service break a rule.
    #[error("{0}")]
    InvalidExport(InvalidValue),
    /// Kubernetes keeps the namespace for itself.
    #[error(
        "Nothing is exported from namespace {0}, which Kubernetes keeps for itself. Move the Service to another namespace."
    )]
    NamespaceReserved(Box<str>),
    /// The agent's deny list names the namespace.
    #[error(
        "Nothing is exported from namespace {0}: the agent's --deny-namespaces names it. Move the Service to another \
         namespace, or take this one off the list."
    )]
    NamespaceDenied(Box<str>),
}

impl ExportProblem {
    /// The reason of the condition `Valid`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoService(_) => REASON_NO_SERVICE,
            Self::InvalidServiceType(_) => REASON_INVALID_SERVICE_TYPE,
            Self::InvalidExport(_) => REASON_INVALID_EXPORT,
            Self::NamespaceReserved(_) | Self::NamespaceDenied(_) => REASON_NAMESPACE_DENIED,
        }
    }
}

impl From<InvalidValue> for ExportProblem {
    fn from(problem: InvalidValue) -> Self {
        Self::InvalidExport(problem)
    }
}

/// Namespaces from which nothing is exported, besides those that Kubernetes keeps for itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceDenyList(BTreeSet<Box<str>>);

impl NamespaceDenyList {
    /// Denies these namespaces.
    pub fn new(namespaces: impl IntoIterator<Item = impl Into<Box<str>>>) -> Self {
        Self(namespaces.into_iter().map(Into::into).collect())
    }

    /// The problem of an export of `namespace`, if it is denied.
    fn problem(&self, namespace: &str) -> Option<ExportProblem> {
        if special::is_reserved_namespace(namespace) {
            return Some(ExportProblem::NamespaceReserved(namespace.into()));
        }
        let is_listed = self.0.contains(namespace);
        is_listed.then(|| ExportProblem::NamespaceDenied(namespace.into()))
    }
}

/// An export, and what its owner is to know about it though it is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The export.
    pub export: Export,
    /// Names the exported labels and annotations that do not reach imports, and says why. Empty when all do.
    pub metadata_left_out: String,
}

/// Joins a ServiceExport with its Service, values verbatim. `service` is `None` only when it is known that
/// there is none. A label or annotation that cannot be exported is left out: metadata never makes an export invalid.
pub fn export_from(
    service_export: &ServiceExport,
    service: Option<&Service>,
    deny: &NamespaceDenyList,
) -> Result<Exported, ExportProblem> {
    let meta = &service_export.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    if let Some(problem) = deny.problem(namespace) {
        return Err(problem);
    }
    let key = ServiceKey::new(namespace, meta.name.as_deref().unwrap_or_default())
        .map_err(|error| InvalidValue::new("metadata.name", format!("{error}, so that no Service has it; delete this ServiceExport, and make one of the Service's name")))?;
    let Some(service) = service else {
        return Err(ExportProblem::NoService(key));
    };
    let service_type = service_type(service)?;
    let spec = service.spec.as_ref().unwrap_or(&EMPTY_SPEC);
    let mut labels = metadata(service_export.spec.exported_labels.as_ref());
    let mut annotations = metadata(service_export.spec.exported_annotations.as_ref());
    let left_out = validate::leave_out_metadata(&mut labels, &mut annotations);
    let metadata_left_out = metadata_left_out(&left_out, &labels, &annotations);
    let export = Export {
        service: key,
        created_at: created_at(service_export)?,
        uid: meta.uid.as_deref().unwrap_or_default().into(),
        generation: meta.generation.unwrap_or_default(),
        service_type,
        ports: ports(spec.ports.as_deref().unwrap_or_default())?,
        policies: policies(spec)?,
        ip_families: ip_families(spec)?,
        labels,
        annotations,
    };
    validate::export(&export)?;
    Ok(Exported {
        export,
        metadata_left_out,
    })
}

/// Names the keys that are left out here, and those that importing clusters leave out by default.
fn metadata_left_out(left_out: &[InvalidValue], labels: &Metadata, annotations: &Metadata) -> String {
    let here = left_out.iter().map(ToString::to_string).collect();
    let there = [("exportedLabels", labels), ("exportedAnnotations", annotations)]
        .into_iter()
        .flat_map(|(field, map)| map.keys().map(move |key| (field, key)))
        .filter(|(_, key)| validate::is_another_controllers_key(key))
        .map(|(field, key)| format!("{field}[{}]", validate::shown(key)))
        .collect();
    let sentences = [
        named("Left out of the export", here),
        named(
            "Importing clusters leave out what another controller acts on, unless their --import-metadata names its domain",
            there,
        ),
    ];
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    sentences.join(". ")
}

/// `what: one; another; and N more`.
fn named(what: &str, keys: Vec<String>) -> Option<String> {
    let more = keys.len().saturating_sub(LEFT_OUT_NAMED_MAX);
    let mut words: Vec<String> = keys.into_iter().take(LEFT_OUT_NAMED_MAX).collect();
    if words.is_empty() {
        return None;
    }
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    Some(format!("{what}: {}", words.join("; ")))
}

fn created_at(service_export: &ServiceExport) -> Result<UnixMillis, InvalidValue> {
    let seconds = service_export
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0.as_second());
    match seconds.map(u64::try_from) {
        Some(Ok(seconds)) => Ok(UnixMillis(seconds.saturating_mul(1_000))),
        _ => Err(InvalidValue::new(
            "metadata.creationTimestamp",
            "is missing or before 1970; delete the ServiceExport and create it anew",
        )),
    }
}

fn service_type(service: &Service) -> Result<ServiceType, ExportProblem> {
    if is_made_by_tributary(service) {
        let message = "The Service is a derived one, made from a ServiceImport; export the Service it stands for, \
                       in the cluster where that runs.";
        return Err(ExportProblem::InvalidServiceType(message.into()));
    }
    let spec = service.spec.as_ref().unwrap_or(&EMPTY_SPEC);
    match spec.type_.as_deref().unwrap_or("ClusterIP") {
        "ClusterIP" | "NodePort" | "LoadBalancer" => Ok(if is_headless(spec) {
            ServiceType::Headless
        } else {
            ServiceType::ClusterSetIp
        }),
        other => Err(ExportProblem::InvalidServiceType(format!(
            "The Service is of type {}, which cannot be exported; use ClusterIP, NodePort, LoadBalancer or headless.",
            validate::shown(other)
        ))),
    }
}

/// By its label; or, should someone have taken that away, by the form of its name and the lack of a selector,
/// which also finds the derived Services of other implementations.
fn is_made_by_tributary(service: &Service) -> bool {
    let labels = service.metadata.labels.as_ref();
    let labelled = labels
        .and_then(|labels| labels.get(LABEL_MANAGED_BY))
        .is_some_and(|by| by == AGENT_MANAGER);
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let named = name.strip_prefix(DERIVED_SERVICE_PREFIX).is_some_and(|hash| {
        hash.len() == DERIVED_SERVICE_HASH_CHARS
            && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'v'))
    });
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    labelled || (named && selector.is_none_or(BTreeMap::is_empty))
}

fn is_headless(spec: &ServiceSpec) -> bool {
    let first = spec.cluster_ips.as_ref().and_then(|ips| ips.first());
    spec.cluster_ip
        .as_ref()
        .or(first)
        .is_some_and(|ip| ip == CLUSTER_IP_NONE)
}

fn ports(ports: &[KubernetesPort]) -> Result<Vec<ServicePort>, InvalidValue> {
    let one = |(index, port): (usize, &KubernetesPort)| {
        Ok(ServicePort {
            name: port.name.as_deref().unwrap_or_default().into(),
            protocol: super::protocol(&format!("ports[{index}].protocol"), port.protocol.as_deref())?,
            port: super::port_number(&format!("ports[{index}].port"), port.port)?,
            app_protocol: super::text(port.app_protocol.as_ref()),
        })
    };
    ports.iter().enumerate().map(one).collect()
}

fn policies(spec: &ServiceSpec) -> Result<ServicePolicies, InvalidValue> {
    let session_affinity = match spec.session_affinity.as_deref() {
        None | Some("" | "None") => SessionAffinity::None,
        Some("ClientIP") => SessionAffinity::ClientIp,
        Some(_) => {
            return Err(InvalidValue::new(
                "sessionAffinity",
                "is neither None nor ClientIP; use one of them",
            ));
        }
    };
    let client_ip = spec
        .session_affinity_config
        .as_ref()
        .and_then(|config| config.client_ip.as_ref());
    Ok(ServicePolicies {
        session_affinity,
        session_affinity_timeout_seconds: client_ip.and_then(|config| config.timeout_seconds),
        internal_traffic_policy: super::text(spec.internal_traffic_policy.as_ref()),
        traffic_distribution: super::text(spec.traffic_distribution.as_ref()),
    })
}

fn ip_families(spec: &ServiceSpec) -> Result<Vec<IpFamily>, InvalidValue> {
    let families = spec.ip_families.as_deref().unwrap_or_default();
    let one = |family: &String| match family.as_str() {
        "IPv4" => Ok(IpFamily::V4),
        "IPv6" => Ok(IpFamily::V6),
        _ => Err(InvalidValue::new(
            "ipFamilies",
            "has a value that is neither IPv4 nor IPv6; remove it",
        )),
    };
    families.iter().map(one).collect()
}

fn metadata(map: Option<&BTreeMap<String, String>>) -> Metadata {
    let entries = map.into_iter().flatten();
    entries
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect()
}

/// Replaces the spec of a Service that has none.
static EMPTY_SPEC: std::sync::LazyLock<ServiceSpec> = std::sync::LazyLock::new(ServiceSpec::default);

#[cfg(test)]
mod tests;
