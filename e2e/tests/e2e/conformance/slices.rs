//! Requests of the conformance test: EndpointSlices.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    (
        "apply a slice",
        "APPLY",
        "{slices}/cart-1?fieldManager=agent&force=true",
        r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"cart-1","labels":{"multicluster.kubernetes.io/service-name":"cart"}},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}}],"ports":[{"name":"","port":8080,"protocol":"TCP"}]}"#,
    ),
    (
        "an addressType is immutable",
        "MERGE",
        "{slices}/cart-1?fieldManager=user",
        r#"{"addressType":"IPv6","endpoints":[{"addresses":["fd00::1"]}]}"#,
    ),
    (
        "a loopback endpoint",
        "MERGE",
        "{slices}/cart-1?fieldManager=user",
        r#"{"endpoints":[{"addresses":["127.0.0.1"]}]}"#,
    ),
    (
        "a link-local endpoint",
        "MERGE",
        "{slices}/cart-1?fieldManager=user",
        r#"{"endpoints":[{"addresses":["169.254.0.1"]}]}"#,
    ),
    (
        "an endpoint with leading zeros",
        "MERGE",
        "{slices}/cart-1?fieldManager=user",
        r#"{"endpoints":[{"addresses":["010.0.0.1"]}]}"#,
    ),
    (
        "list by label",
        "LIST",
        "{slices}?labelSelector=multicluster.kubernetes.io/service-name+in+(cart,other)",
        "",
    ),
    (
        "list by an absent label",
        "LIST",
        "{slices}?labelSelector=!multicluster.kubernetes.io/service-name,!kubernetes.io/service-name",
        "",
    ),
    (
        "list by name",
        "LIST",
        "{exports}?fieldSelector=metadata.name%3Dcart",
        "",
    ),
    (
        "watch from nothing tells what is there",
        "WATCH",
        "{exports}?watch=true&timeoutSeconds=1",
        "",
    ),
    (
        "a streaming list ends with a bookmark",
        "WATCH",
        "{exports}?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
        "",
    ),
    (
        "a property without a value",
        "POST",
        "/apis/about.k8s.io/v1beta1/clusterproperties?fieldManager=user",
        r#"{"apiVersion":"about.k8s.io/v1beta1","kind":"ClusterProperty","metadata":{"name":"conformance.example.com"},"spec":{"value":""}}"#,
    ),
    (
        "a property",
        "POST",
        "/apis/about.k8s.io/v1beta1/clusterproperties?fieldManager=user",
        r#"{"apiVersion":"about.k8s.io/v1beta1","kind":"ClusterProperty","metadata":{"name":"conformance.example.com"},"spec":{"value":"1"}}"#,
    ),
    (
        "delete the property",
        "DELETE",
        "/apis/about.k8s.io/v1beta1/clusterproperties/conformance.example.com",
        "",
    ),
    (
        "a profile",
        "APPLY",
        "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/conformance/clusterprofiles/east?fieldManager=hub",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ClusterProfile","metadata":{"name":"east"},"spec":{"clusterManager":{"name":"tributary"}}}"#,
    ),
    (
        "its manager is immutable",
        "MERGE",
        "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/conformance/clusterprofiles/east?fieldManager=hub",
        r#"{"spec":{"clusterManager":{"name":"another"}}}"#,
    ),
    (
        "its properties",
        "APPLY",
        "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/conformance/clusterprofiles/east/status?fieldManager=hub",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ClusterProfile","metadata":{"name":"east"},"status":{"version":{"kubernetes":"v1.36.3"},"properties":[{"name":"a","value":"1"}]}}"#,
    ),
    (
        "a Lease",
        "APPLY",
        "/apis/coordination.k8s.io/v1/namespaces/conformance/leases/agent?fieldManager=agent",
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"agent"},"spec":{"holderIdentity":"one","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.000000Z","leaseTransitions":1}}"#,
    ),
    (
        "a Lease is not put without a resourceVersion",
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/conformance/leases/agent?fieldManager=agent",
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"agent"},"spec":{"holderIdentity":"two"}}"#,
    ),
    (
        "an Event",
        "POST",
        "/apis/events.k8s.io/v1/namespaces/conformance/events?fieldManager=agent",
        r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"conflict.1"},"type":"Warning","reason":"Conflict","action":"Resolve","note":"ports differ","reportingController":"tributary.dev/agent","reportingInstance":"agent-0","eventTime":"2026-01-01T00:00:00.000000Z","regarding":{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","name":"cart","namespace":"conformance"}}"#,
    ),
    (
        // Of one reason: a busy controller tells its own of the same object.
        "list the Events of an object",
        "LIST",
        "/api/v1/namespaces/conformance/events?fieldSelector=involvedObject.name%3Dcart%2Creason%3DConflict",
        "",
    ),
    (
        "label the namespace strategically",
        "STRATEGIC",
        "{shop}?fieldManager=user",
        r#"{"metadata":{"labels":{"team":"a"},"annotations":{"note":"b"}}}"#,
    ),
    (
        "an owner without a uid",
        "MERGE",
        "{slices}/cart-1?fieldManager=user",
        r#"{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"cart","uid":""}]}}"#,
    ),
    (
        "a merge patch labels a slice",
        "MERGE",
        "{slices}/cart-1?fieldManager=user",
        r#"{"metadata":{"labels":{"more":"yes"}}}"#,
    ),
];
