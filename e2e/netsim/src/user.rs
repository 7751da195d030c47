//! Users' actions in the simulated clusters: a handful of services in one namespace, declared, changed, moved and
//! deleted. The objects go into the store as `kubectl apply` would put them; nothing here waits for anything.

use serde_json::{Value, json};
use shared::api::names::{LABEL_ENDPOINT_SLICE_MANAGED_BY, LABEL_KUBERNETES_SERVICE_NAME};

use sim::SimCluster;

/// The namespace that everything happens in.
pub(super) const NAMESPACE: &str = "shop";
/// Services that users know.
pub(super) const SERVICES: [&str; 3] = ["cart", "price", "stock"];
/// Most pods behind a Service in one cluster.
pub(super) const PODS_MAX: u8 = 3;
/// Pods listen this much higher than their Service.
const TARGET_PORT_OFFSET: u16 = 8_000;

/// A form of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    TwoPorts,
    OtherPort,
    Headless,
}

/// All forms, the usual one several times.
pub(super) const SHAPES: [Shape; 6] = [
    Shape::Plain,
    Shape::Plain,
    Shape::Plain,
    Shape::TwoPorts,
    Shape::OtherPort,
    Shape::Headless,
];

/// One thing that a user does in one cluster.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    /// The Service, its pods and its export, in this form; a Service of another form is made anew.
    Export {
        service: usize,
        shape: Shape,
        pods: u8,
        generation: u8,
    },
    /// The export goes, the Service stays.
    Unexport { service: usize },
    /// The Service and its pods go, the export stays.
    Withdraw { service: usize },
    /// Other pods behind the Service, if there is one.
    Scale {
        service: usize,
        pods: u8,
        generation: u8,
    },
    /// The namespace goes with all that is in it.
    DropNamespace,
    /// The namespace is there (again).
    MakeNamespace,
}

impl Deed {
    /// Its class, for the histogram.
    pub(super) fn class(&self) -> &'static str {
        match self {
            Self::Export { .. } => "a service was exported",
            Self::Unexport { .. } => "an export was deleted",
            Self::Withdraw { .. } => "an exported Service was deleted",
            Self::Scale { .. } => "pods were replaced",
            Self::DropNamespace => "a namespace was deleted",
            Self::MakeNamespace => "a namespace was made",
        }
    }
}

/// Does it. What is impossible (nothing to delete, no namespace) is left undone, and is an error.
pub(super) fn act(cluster: &SimCluster, number: usize, deed: Deed) -> anyhow::Result<()> {
    match deed {
        Deed::MakeNamespace => {
            cluster
                .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))?;
        }
        Deed::DropNamespace => cluster.delete("Namespace", "", NAMESPACE)?,
        Deed::Export {
            service,
            shape,
            pods,
            generation,
        } => {
            let name = SERVICES[service];
            let found = cluster.get("Service", NAMESPACE, name);
            let other_type = found
                .is_some_and(|found| (found["spec"]["clusterIP"] == "None") != (shape == Shape::Headless));
            if other_type {
                cluster.delete("Service", NAMESPACE, name)?;
            }
            cluster.apply(service_object(name, shape))?;
            cluster.apply(slice(name, number, shape, pods, generation))?;
            cluster.apply(json!({
                "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
                "metadata": {"namespace": NAMESPACE, "name": name},
            }))?;
        }
        Deed::Unexport { service } => cluster.delete("ServiceExport", NAMESPACE, SERVICES[service])?,
        Deed::Withdraw { service } => {
            cluster.delete("Service", NAMESPACE, SERVICES[service])?;
            cluster.delete("EndpointSlice", NAMESPACE, &slice_name(SERVICES[service]))?;
        }
        Deed::Scale {
            service,
            pods,
            generation,
        } => {
            let name = SERVICES[service];
            if let Some(found) = cluster.get("Service", NAMESPACE, name) {
                cluster.apply(slice(name, number, shape_of(&found), pods, generation))?;
            }
        }
    }
    Ok(())
}

fn ports_of(shape: Shape) -> Vec<(&'static str, u16)> {
    match shape {
        Shape::Plain | Shape::Headless => vec![("http", 80)],
        Shape::TwoPorts => vec![("http", 80), ("metrics", 9_090)],
        Shape::OtherPort => vec![("http", 8_080)],
    }
}

fn shape_of(service: &Value) -> Shape {
    let ports = service["spec"]["ports"].as_array().map_or(0, Vec::len);
    match (service["spec"]["clusterIP"] == "None", ports) {
        (true, _) => Shape::Headless,
        (false, 2) => Shape::TwoPorts,
        (false, _) if service["spec"]["ports"][0]["port"] == 8_080 => Shape::OtherPort,
        (false, _) => Shape::Plain,
    }
}

fn service_object(name: &str, shape: Shape) -> Value {
    let ports = ports_of(shape).into_iter();
    let ports: Vec<Value> = ports
        .map(|(name, port)| json!({"name": name, "port": port}))
        .collect();
    // Stated, for a headless Service without a selector would be of both families by default.
    let mut spec = json!({"ports": ports, "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]});
    if shape == Shape::Headless {
        spec["clusterIP"] = json!("None");
    }
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": NAMESPACE, "name": name}, "spec": spec,
    })
}

fn slice_name(service: &str) -> String {
    format!("{service}-pods")
}

fn slice(name: &str, cluster: usize, shape: Shape, pods: u8, generation: u8) -> Value {
    let address = |pod: u8| format!("10.{}.{generation}.{}", cluster + 1, pod + 1);
    let endpoints = (0..pods).map(|pod| json!({"addresses": [address(pod)], "conditions": {"ready": true}}));
    let ports = ports_of(shape).into_iter();
    let ports =
        ports.map(|(name, port)| json!({"name": name, "port": port + TARGET_PORT_OFFSET, "protocol": "TCP"}));
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "namespace": NAMESPACE, "name": slice_name(name),
            "labels": {
                LABEL_KUBERNETES_SERVICE_NAME: name,
                LABEL_ENDPOINT_SLICE_MANAGED_BY: "endpointslice-controller.k8s.io",
            },
        },
        "addressType": "IPv4",
        "ports": ports.collect::<Vec<_>>(),
        "endpoints": endpoints.collect::<Vec<_>>(),
    })
}
