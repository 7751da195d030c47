//! Owns: the namespaces that Kubernetes keeps for itself.
//! Never: judges anything.

/// These namespaces export nothing.
pub(super) const RESERVED: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];
