//! Requests of the conformance test: ServiceImports.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    (
        "an import without its required fields",
        "POST",
        "{imports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"cart"},"spec":{"ports":[]}}"#,
    ),
    (
        "an import of an unknown type",
        "POST",
        "{imports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"cart"},"spec":{"type":"Magic","ports":[],"ips":["1","2","3"]}}"#,
    ),
    (
        "apply an import",
        "APPLY",
        "{imports}/cart?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"cart"},"spec":{"type":"ClusterSetIP","ports":[{"port":80,"protocol":"TCP"}]}}"#,
    ),
    (
        "apply its clusters",
        "APPLY",
        "{imports}/cart/status?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"cart"},"status":{"clusters":[{"cluster":"east"},{"cluster":"west"}]}}"#,
    ),
    (
        "one cluster leaves",
        "APPLY",
        "{imports}/cart/status?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"cart"},"status":{"clusters":[{"cluster":"west"}]}}"#,
    ),
];
