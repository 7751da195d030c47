//! Requests of the conformance test: status and conditions.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    (
        "apply a condition",
        "APPLY",
        "{exports}/cart/status?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"},"status":{"conditions":[{"type":"Valid","status":"True","reason":"Valid","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
    ),
    (
        "another manager's condition stays beside it",
        "APPLY",
        "{exports}/cart/status?fieldManager=hub&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Exported","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
    ),
    (
        "a condition that is applied no more goes",
        "APPLY",
        "{exports}/cart/status?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"}}"#,
    ),
    (
        "a reason that is no reason",
        "APPLY",
        "{exports}/cart/status?fieldManager=hub&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Not a reason!","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
    ),
    (
        "the main resource does not touch the status",
        "MERGE",
        "{exports}/cart?fieldManager=user",
        r#"{"status":{"conditions":null}}"#,
    ),
    (
        "the other version is the same object",
        "GET",
        "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/conformance/serviceexports/cart",
        "",
    ),
];
