//! Requests of the conformance test: namespaces and names.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    (
        "create in a namespace that is not there",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"}}"#,
    ),
    (
        "create the namespace",
        "POST",
        "/api/v1/namespaces?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"conformance"}}"#,
    ),
    (
        "create it again",
        "POST",
        "/api/v1/namespaces?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"conformance"}}"#,
    ),
    (
        "a name that is no name",
        "POST",
        "/api/v1/namespaces?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"Shop_1"}}"#,
    ),
    (
        "no name at all",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{}}"#,
    ),
    (
        "a bad label value",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","labels":{"a":"b c"}}}"#,
    ),
    (
        "a path that serves nothing",
        "GET",
        "/apis/multicluster.x-k8s.io/v1beta1/namespaces/conformance/nothings",
        "",
    ),
    ("an object that is not there", "GET", "{exports}/cart", ""),
];
