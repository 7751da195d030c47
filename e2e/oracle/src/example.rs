//! A clusterset in which everything is right, written down by hand, for tests of those who judge.

use std::sync::Arc;

use model::derived_name::{derived_service_name, imported_slice_name};
use serde_json::{Value, json};

use super::Picture;

/// The namespace of everything.
pub const NAMESPACE: &str = "shop";

/// Clusters and their objects.
pub struct Example {
    clusters: Vec<(String, Vec<Value>)>,
}

impl Example {
    /// Clusters that have the namespace and nothing in it.
    pub fn new(names: &[&str]) -> Self {
        let namespace = json!({"kind": "Namespace", "metadata": {"name": NAMESPACE, "uid": "n"}});
        let cluster = |name: &&str| ((*name).to_owned(), vec![namespace.clone()]);
        Self {
            clusters: names.iter().map(cluster).collect(),
        }
    }

    /// The state of their API servers.
    pub fn pictures(&self) -> Vec<Picture> {
        let picture = |(name, objects): &(String, Vec<Value>)| {
            Picture::of(name, |kind| {
                let of_kind = objects.iter().filter(|object| object["kind"] == kind);
                of_kind.cloned().map(Arc::new).collect()
            })
        };
        self.clusters.iter().map(picture).collect()
    }

    /// Puts an object into a cluster, in the place of one of its kind and name.
    pub fn put(&mut self, cluster: &str, kind: &str, name: &str, mut object: Value) {
        self.remove(cluster, kind, name);
        object["kind"] = kind.into();
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = NAMESPACE.into();
        self.objects(cluster).push(object);
    }

    /// Takes an object away.
    pub fn remove(&mut self, cluster: &str, kind: &str, name: &str) {
        let gone = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects(cluster).retain(|object| !gone(object));
    }

    /// Changes an object that is there.
    pub fn change(&mut self, cluster: &str, kind: &str, name: &str, change: impl Fn(&mut Value)) {
        let wanted = |object: &&mut Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let found = self.objects(cluster).iter_mut().find(wanted);
        change(found.expect("it is there"));
    }

    fn objects(&mut self, cluster: &str) -> &mut Vec<Value> {
        let found = self.clusters.iter_mut().find(|(name, _)| name == cluster);
        &mut found.expect("a cluster of the example").1
    }

    /// A plain Service, one slice with one address behind it, and its export with what is said of it.
    pub fn export(&mut self, cluster: &str, name: &str) {
        let ports = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
        self.export_ports(cluster, name, &ports);
    }

    /// The same with other ports; pods listen on the same numbers.
    pub fn export_ports(&mut self, cluster: &str, name: &str, ports: &Value) {
        let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "None",
            "ipFamilies": ["IPv4"], "ports": ports});
        self.put(cluster, "Service", name, json!({"spec": spec}));
        let slice = json!({"metadata": {"labels": {"kubernetes.io/service-name": name}}, "addressType": "IPv4",
            "ports": ports, "endpoints": [{"addresses": [Self::address(cluster)]}]});
        self.put(cluster, "EndpointSlice", &format!("{name}-1"), slice);
        let said = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "observedGeneration": 1});
        let conditions = [
            said("Valid", "True", "Valid"),
            said("Ready", "True", "Exported"),
            said("Conflict", "False", "NoConflicts"),
        ];
        let metadata = json!({"uid": format!("{cluster}-{name}"), "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"});
        let export = json!({"metadata": metadata, "status": {"conditions": conditions}});
        self.put(cluster, "ServiceExport", name, export);
    }

    /// The address behind an export of a cluster.
    pub fn address(cluster: &str) -> String {
        format!("10.1.0.{}", cluster.len())
    }

    fn ours(labels: &Value) -> Value {
        let mut labels = labels.clone();
        labels["app.kubernetes.io/managed-by"] = "tributary-agent".into();
        json!({"labels": labels, "managedFields": [{"manager": "tributary-agent"}]})
    }

    /// The objects that Tributary makes of plain exports of this name, in every cluster.
    pub fn import_everywhere(&mut self, name: &str) {
        let exporting = |(_, objects): &&(String, Vec<Value>)| {
            let mut objects = objects.iter();
            objects.any(|object| object["kind"] == "ServiceExport" && object["metadata"]["name"] == name)
        };
        let exporting = self.clusters.iter().filter(exporting);
        let sources: Vec<String> = exporting.map(|(cluster, _)| cluster.clone()).collect();
        let names: Vec<String> = self.clusters.iter().map(|(cluster, _)| cluster.clone()).collect();
        for cluster in names {
            self.import(&cluster, name, &sources);
        }
    }

    fn import(&mut self, cluster: &str, name: &str, sources: &[String]) {
        let derived = derived_service_name(NAMESPACE, name);
        let ports = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
        let label = json!({"multicluster.kubernetes.io/service-name": name});
        let mut metadata = Self::ours(&json!({}));
        metadata["annotations"] = json!({"multicluster.kubernetes.io/derived-service": derived});
        let clusters: Vec<Value> = sources.iter().map(|source| json!({"cluster": source})).collect();
        let spec = json!({"type": "ClusterSetIP", "sessionAffinity": "None", "ports": ports,
            "ips": ["10.96.0.7"], "ipFamilies": ["IPv4"]});
        let status = json!({"clusters": clusters, "conditions": [{"type": "Ready", "status": "True"}]});
        let import = json!({"metadata": metadata, "spec": spec, "status": status});
        self.put(cluster, "ServiceImport", name, import);
        let spec = json!({"sessionAffinity": "None", "ports": ports, "clusterIPs": ["10.96.0.7"],
            "ipFamilies": ["IPv4"]});
        let service = json!({"metadata": Self::ours(&label), "spec": spec});
        self.put(cluster, "Service", &derived, service);
        for source in sources {
            let mut labels = label.clone();
            labels["multicluster.kubernetes.io/source-cluster"] = source.as_str().into();
            labels["kubernetes.io/service-name"] = derived.as_str().into();
            let slice = json!({"metadata": Self::ours(&labels), "addressType": "IPv4", "ports": ports,
                "endpoints": [{"addresses": [Self::address(source)]}]});
            let imported = imported_slice_name(NAMESPACE, name, source, &format!("{name}-1"));
            self.put(cluster, "EndpointSlice", &imported, slice);
        }
    }

    /// Another address in the first imported slice of a cluster.
    pub fn import_address(&mut self, cluster: &str, name: &str, address: &str) {
        let of_service = |object: &&mut Value| {
            object["kind"] == "EndpointSlice"
                && object["metadata"]["labels"]["multicluster.kubernetes.io/service-name"] == name
        };
        let slice = self.objects(cluster).iter_mut().find(of_service);
        let slice = slice.expect("something was imported");
        let endpoints = slice["endpoints"].as_array_mut().expect("endpoints are a list");
        endpoints.push(json!({"addresses": [address]}));
    }
}
