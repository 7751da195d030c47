//! Requests of the conformance test: server-side apply and its owners.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    (
        "apply creates",
        "APPLY",
        "{exports}/cart?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","labels":{"a":"1","b":"2"}},"spec":{"exportedLabels":{"tier":"gold"}}}"#,
    ),
    (
        "apply of the same changes nothing",
        "APPLY",
        "{exports}/cart?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","labels":{"a":"1","b":"2"}},"spec":{"exportedLabels":{"tier":"gold"}}}"#,
    ),
    (
        "apply without a manager",
        "APPLY",
        "{exports}/cart",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"}}"#,
    ),
    (
        "another manager merges in silently",
        "APPLY",
        "{exports}/cart?fieldManager=other",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","labels":{"a":"1","c":"3"}}}"#,
    ),
    (
        "a conflict is refused",
        "APPLY",
        "{exports}/cart?fieldManager=other",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","labels":{"b":"9"}}}"#,
    ),
    (
        "what is applied no more goes, unless another owns it",
        "APPLY",
        "{exports}/cart?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"},"spec":{"exportedLabels":{"tier":"gold"}}}"#,
    ),
    (
        "an update takes what it changes",
        "MERGE",
        "{exports}/cart?fieldManager=user",
        r#"{"metadata":{"labels":{"c":"4"}},"spec":{"exportedLabels":{"tier":"silver"}}}"#,
    ),
    (
        "an empty apply takes the fields back",
        "APPLY",
        "{exports}/cart?fieldManager=other&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"}}"#,
    ),
    (
        "apply with a wrong uid",
        "APPLY",
        "{exports}/cart?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart","uid":"wrong"}}"#,
    ),
    (
        "apply with a uid to an absent object",
        "APPLY",
        "{exports}/absent?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"absent","uid":"wrong"}}"#,
    ),
    (
        "apply of an undeclared field",
        "APPLY",
        "{exports}/cart?fieldManager=agent&force=true",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"},"spec":{"nothing":1}}"#,
    ),
    (
        "the same where warnings are not asked for",
        "APPLY",
        "{exports}/cart?fieldManager=agent&force=true&fieldValidation=Ignore",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"cart"},"spec":{"nothing":1}}"#,
    ),
    (
        "a merge patch prunes it",
        "MERGE",
        "{exports}/cart?fieldManager=user",
        r#"{"spec":{"nothing":1}}"#,
    ),
];
