//! Requests of the conformance test: updates and deletes with preconditions.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    ("read the export", "GET", "{exports}/cart", ""),
    (
        "put without a resourceVersion",
        "PUT",
        "{exports}/cart?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"}}"#,
    ),
    (
        "put with an old resourceVersion",
        "PUT",
        "{exports}/cart?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","resourceVersion":"1"}}"#,
    ),
    (
        "put",
        "PUT",
        "{exports}/cart?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","resourceVersion":"<rv>"},"spec":{"exportedLabels":{"tier":"bronze"}}}"#,
    ),
    (
        "delete another one's uid",
        "DELETE",
        "{exports}/cart",
        r#"{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"wrong"}}"#,
    ),
    (
        "delete by uid",
        "DELETE",
        "{exports}/cart",
        r#"{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"<uid>"}}"#,
    ),
    ("delete what is gone", "DELETE", "{exports}/cart", ""),
    // Else a namespace that holds little may be gone before the last step.
    (
        "hold the namespace",
        "MERGE",
        "{shop}?fieldManager=user",
        r#"{"metadata":{"finalizers":["e2e.tributary.test/hold"]}}"#,
    ),
    ("delete the namespace", "DELETE", "{shop}", ""),
    (
        "create in a terminating namespace",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"late"}}"#,
    ),
];
