//! An EndpointSlice of Kubernetes → a slice of the model. Node names, target references and hints stay behind:
//! they mean nothing in another cluster.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use k8s_openapi::api::discovery::v1::{
    Endpoint as KubernetesEndpoint, EndpointPort as KubernetesPort, EndpointSlice as KubernetesSlice,
};

use crate::names::{
    AGENT_MANAGER, ENDPOINT_SLICE_MANAGER, LABEL_ENDPOINT_SLICE_MANAGED_BY, LABEL_KUBERNETES_SERVICE_NAME,
    LABEL_MANAGED_BY, LABEL_SOURCE_CLUSTER,
};
use model::{
    Endpoint, EndpointPort, EndpointSlice, IpFamily, ServiceKey, SliceKey,
    endpoint::SLICE_ENDPOINTS_MAX,
    validate::{self, InvalidValue},
};

/// Why a slice is not reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SliceProblem {
    /// An imported slice: its endpoints run in another cluster, which reports them itself. Nothing to tell.
    #[error("the slice was imported from another cluster")]
    Imported,
    /// It does not belong to the Service. Nothing to tell.
    #[error("the slice does not belong to the Service: its label kubernetes.io/service-name says otherwise")]
    OfNoService,
    /// It is being deleted, as good as gone. Nothing to tell.
    #[error("the slice is being deleted")]
    Deleting,
    /// Its endpoints are names, not addresses.
    #[error("the slice has addressType FQDN, which cannot be imported; use IPv4 or IPv6")]
    NoAddresses,
    /// It breaks a rule.
    #[error("{0}")]
    Invalid(InvalidValue),
}

impl SliceProblem {
    /// True when the slice is none of our business, rather than bad.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Imported | Self::OfNoService | Self::Deleting)
    }
}

impl From<InvalidValue> for SliceProblem {
    fn from(problem: InvalidValue) -> Self {
        Self::Invalid(problem)
    }
}

/// The Service that a slice belongs to, by its label; imported slices belong to none of this cluster.
pub fn service_of_slice(slice: &KubernetesSlice) -> Result<ServiceKey, SliceProblem> {
    let label = |name: &str| slice.metadata.labels.as_ref()?.get(name).map(String::as_str);
    let imported = label(LABEL_ENDPOINT_SLICE_MANAGED_BY) == Some(ENDPOINT_SLICE_MANAGER)
        || label(LABEL_MANAGED_BY) == Some(AGENT_MANAGER)
        || label(LABEL_SOURCE_CLUSTER).is_some();
    if imported {
        return Err(SliceProblem::Imported);
    }
    let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
    let service = label(LABEL_KUBERNETES_SERVICE_NAME).ok_or(SliceProblem::OfNoService)?;
    ServiceKey::new(namespace, service).map_err(|_| SliceProblem::OfNoService)
}

/// Takes a slice of `service`, every endpoint detail that has a meaning elsewhere included.
pub fn slice_from(slice: &KubernetesSlice, service: &ServiceKey) -> Result<EndpointSlice, SliceProblem> {
    if service_of_slice(slice)? != *service {
        return Err(SliceProblem::OfNoService);
    }
    if slice.metadata.deletion_timestamp.is_some() {
        return Err(SliceProblem::Deleting);
    }
    let address_type = match slice.address_type.as_str() {
        "IPv4" => IpFamily::V4,
        "IPv6" => IpFamily::V6,
        _ => return Err(SliceProblem::NoAddresses),
    };
    let count = slice.endpoints.len();
    if count > SLICE_ENDPOINTS_MAX {
        let problem = format!("are {count}; at most {SLICE_ENDPOINTS_MAX} are taken: split the slice");
        return Err(InvalidValue::new("endpoints", problem).into());
    }
    let ports = slice.ports.as_deref().unwrap_or_default().iter().enumerate();
    let endpoints = slice.endpoints.iter().enumerate();
    let taken = EndpointSlice {
        key: SliceKey {
            service: service.clone(),
            name: slice.metadata.name.as_deref().unwrap_or_default().into(),
        },
        address_type,
        ports: ports
            .map(|(index, one)| port(index, one))
            .collect::<Result<_, _>>()?,
        endpoints: endpoints
            .map(|(index, one)| endpoint(index, one, address_type))
            .collect::<Result<_, _>>()?,
    };
    validate::endpoint_slice(&taken)?;
    Ok(taken)
}

fn port(index: usize, port: &KubernetesPort) -> Result<EndpointPort, InvalidValue> {
    let number = port
        .port
        .map(|number| super::port_number(&format!("ports[{index}].port"), number));
    Ok(EndpointPort {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: super::protocol(&format!("ports[{index}].protocol"), port.protocol.as_deref())?,
        port: number.transpose()?,
        app_protocol: super::text(port.app_protocol.as_ref()),
    })
}

fn endpoint(index: usize, endpoint: &KubernetesEndpoint, family: IpFamily) -> Result<Endpoint, InvalidValue> {
    let addresses = endpoint.addresses.iter().enumerate().map(|(place, text)| {
        address(text, family).ok_or_else(|| {
            let field = format!("endpoints[{index}].addresses[{place}]");
            InvalidValue::new(
                field,
                format!("{} is no address of the slice's type", validate::shown(text)),
            )
        })
    });
    let conditions = endpoint.conditions.as_ref();
    Ok(Endpoint {
        addresses: addresses.collect::<Result<_, _>>()?,
        ready: conditions.and_then(|conditions| conditions.ready),
        serving: conditions.and_then(|conditions| conditions.serving),
        terminating: conditions.and_then(|conditions| conditions.terminating),
        hostname: super::text(endpoint.hostname.as_ref()),
        zone: super::text(endpoint.zone.as_ref()),
    })
}

fn address(text: &str, family: IpFamily) -> Option<IpAddr> {
    match family {
        IpFamily::V4 => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        IpFamily::V6 => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn convert(change: impl FnOnce(&mut Value)) -> Result<EndpointSlice, SliceProblem> {
        let mut object = json!({
            "metadata": {
                "namespace": "shop", "name": "cart-x1.y",
                "labels": {
                    "kubernetes.io/service-name": "cart",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [{
                "addresses": ["10.1.0.7"], "conditions": {"ready": true, "serving": true, "terminating": false},
                "hostname": "cart-0", "nodeName": "node-a", "zone": "zone-1", "hints": {"forZones": [{"name": "z"}]},
                "targetRef": {"kind": "Pod", "name": "cart-0", "namespace": "shop"},
            }],
        });
        change(&mut object);
        slice_from(
            &serde_json::from_value(object).unwrap(),
            &ServiceKey::new("shop", "cart").unwrap(),
        )
    }

    #[test]
    fn a_slice_keeps_every_detail_that_means_something_elsewhere() {
        let slice = convert(|_| {}).unwrap();
        assert_eq!(
            (&*slice.key.name, slice.address_type),
            ("cart-x1.y", IpFamily::V4)
        );
        assert_eq!((&*slice.ports[0].name, slice.ports[0].port), ("http", Some(8080)));
        let want = Endpoint {
            addresses: vec![IpAddr::from([10, 1, 0, 7])],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: Some("cart-0".into()),
            zone: Some("zone-1".into()),
        };
        assert_eq!(slice.endpoints.to_vec(), [want]);
    }

    #[test]
    fn absent_stays_absent() {
        let slice = convert(|slice| {
            slice["ports"] = json!([{}]);
            slice["endpoints"] = json!([{"addresses": ["10.1.0.7"]}]);
        })
        .unwrap();
        assert_eq!((&*slice.ports[0].name, slice.ports[0].port), ("", None));
        let endpoint = slice.endpoints.to_vec().remove(0);
        assert_eq!((endpoint.ready, endpoint.hostname), (None, None));
        assert!(
            convert(|slice| slice["ports"] = Value::Null)
                .unwrap()
                .ports
                .is_empty()
        );
    }

    #[test]
    fn two_ports_of_a_service_may_share_a_target() {
        let ports = json!([{"name": "http", "port": 8080}, {"name": "web", "port": 8080}]);
        assert_eq!(convert(|slice| slice["ports"] = ports).unwrap().ports.len(), 2);
    }

    #[test]
    fn slices_made_by_an_importer_or_of_other_services_are_foreign() {
        for (label, value) in [
            (
                "endpointslice.kubernetes.io/managed-by",
                json!("tributary-agent.tributary.dev"),
            ),
            ("app.kubernetes.io/managed-by", json!("tributary-agent")),
            ("multicluster.kubernetes.io/source-cluster", json!("west")),
        ] {
            let problem = convert(|slice| slice["metadata"]["labels"][label] = value).unwrap_err();
            assert_eq!(problem, SliceProblem::Imported, "{label}");
        }
        let other = convert(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] = json!("x"));
        assert_eq!(other.unwrap_err(), SliceProblem::OfNoService);
        let none = convert(|slice| slice["metadata"]["labels"] = Value::Null).unwrap_err();
        assert!(none.is_foreign());
    }

    #[test]
    fn a_slice_that_is_being_deleted_is_gone_for_everybody() {
        let deleting = |slice: &mut Value| {
            slice["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            slice["metadata"]["finalizers"] = json!(["example.org/waits"]);
        };
        let problem = convert(deleting).unwrap_err();
        assert!(problem.is_foreign(), "{problem}: neither told nor complained of");
    }

    #[test]
    fn bad_slices_are_refused_with_the_place() {
        let endpoint = |addresses: Value| json!([{"addresses": addresses}]);
        let many: Vec<Value> = (0..1_001).map(|_| json!({"addresses": ["10.0.0.1"]})).collect();
        for (field, value, words) in [
            ("addressType", json!("FQDN"), "FQDN"),
            ("addressType", json!("IPv6"), "endpoints[0].addresses[0]"),
            ("endpoints", json!(many), "at most 1000"),
            ("endpoints", endpoint(json!([])), "1 to 100"),
            ("endpoints", endpoint(json!(["10.01.0.1"])), "no address"),
            ("endpoints", endpoint(json!(["127.0.0.1"])), "loopback"),
            (
                "endpoints",
                endpoint(json!(["10.0.0.1", "0.0.0.0"])),
                "endpoints[0].addresses[1]",
            ),
            ("endpoints", endpoint(json!(["169.254.1.1"])), "link-local"),
            ("endpoints", endpoint(json!(["224.0.0.1"])), "multicast"),
            (
                "endpoints",
                json!([{"addresses": ["10.0.0.1"], "hostname": "A"}]),
                "endpoints[0].hostname",
            ),
            (
                "endpoints",
                json!([{"addresses": ["10.0.0.1"], "zone": "z".repeat(64)}]),
                "endpoints[0].zone",
            ),
            ("ports", json!([{"port": 70_000}]), "ports[0].port"),
            ("ports", json!([{"name": "a"}, {"name": "a"}]), "ports[1].name"),
        ] {
            let shown = value.to_string();
            let problem = convert(|slice| slice[field] = value).expect_err(&shown);
            assert!(
                !problem.is_foreign() && problem.to_string().contains(words),
                "{problem} does not say {words}"
            );
        }
    }
}
