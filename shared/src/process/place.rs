//! Owns: where this process runs, by the host's own word and the pod's.
//! Never: asks a cluster.

use crate::api::names::TRIBUTARY_NAMESPACE;

/// The file with a pod's own namespace.
const POD_NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Linux's file with the host name.
const HOST_NAME_FILE: &str = "/proc/sys/kernel/hostname";

/// The name of the host that this process runs on; in a pod the pod's name.
pub fn host_name() -> String {
    said(HOST_NAME_FILE).unwrap_or_else(|| "unknown-host".to_owned())
}

/// The namespace that this process keeps its own Leases in: its pod's, else the one of the manifests.
pub fn own_namespace() -> String {
    said(POD_NAMESPACE_FILE).unwrap_or_else(|| TRIBUTARY_NAMESPACE.to_owned())
}

fn said(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
