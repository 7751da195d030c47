//! Requests of the conformance test: lists in pages.

use super::Step;

/// The requests, in order. `<continue>` stands for the token of the last page that had one.
pub(super) const STEPS: &[Step] = &[
    (
        "an export for a page of its own",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"page-a","labels":{"paged":"yes"}}}"#,
    ),
    (
        "another one",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"page-b","labels":{"paged":"yes"}}}"#,
    ),
    ("all of them, in no page", "PAGE", "{exports}", ""),
    ("a page that is large enough", "PAGE", "{exports}?limit=500", ""),
    (
        "of what a selector finds nobody says how much remains",
        "PAGE",
        "{exports}?limit=1&labelSelector=paged%3Dyes",
        "",
    ),
    (
        "what the selector finds besides",
        "PAGE",
        "{exports}?limit=1&labelSelector=paged%3Dyes&continue=<continue>",
        "",
    ),
    ("the first page", "PAGE", "{exports}?limit=1", ""),
    ("the next", "PAGE", "{exports}?limit=1&continue=<continue>", ""),
    (
        "a page that was begun shows nothing newer",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"page-z"}}"#,
    ),
    ("the rest", "PAGE", "{exports}?continue=<continue>", ""),
    (
        "a token that is none",
        "GET",
        "{exports}?limit=1&continue=nonsense",
        "",
    ),
    (
        "a token and a revision",
        "GET",
        "{exports}?limit=1&continue=<continue>&resourceVersion=5",
        "",
    ),
    (
        "a token and a match",
        "GET",
        "{exports}?limit=1&continue=<continue>&resourceVersionMatch=Exact",
        "",
    ),
    ("a limit that is no number", "GET", "{exports}?limit=many", ""),
];
