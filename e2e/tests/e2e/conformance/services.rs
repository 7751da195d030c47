//! Requests of the conformance test: Services: defaults, addresses, validations.

use super::Step;

/// The requests, in order.
pub(super) const STEPS: &[Step] = &[
    (
        "create a Service",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"cart","labels":{"app":"cart"}},"spec":{"ports":[{"port":80}]}}"#,
    ),
    (
        "two ports, one without a name",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"ports":[{"port":80},{"name":"b","port":81}]}}"#,
    ),
    (
        "the same port twice",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":80}]}}"#,
    ),
    (
        "the same port name twice",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"ports":[{"name":"a","port":80},{"name":"a","port":81}]}}"#,
    ),
    (
        "an unknown trafficDistribution",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"trafficDistribution":"Nearby","ports":[{"port":80}]}}"#,
    ),
    (
        "a clusterIP outside of the range",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"two"},"spec":{"clusterIP":"192.0.2.1","ports":[{"port":80}]}}"#,
    ),
    (
        "a headless Service",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"headless"},"spec":{"clusterIP":"None","ports":[{"name":"db","port":5432,"protocol":"TCP"}]}}"#,
    ),
    (
        "a clusterIP cannot become None",
        "MERGE",
        "{shop}/services/cart?fieldManager=user",
        r#"{"spec":{"clusterIP":"None","clusterIPs":["None"]}}"#,
    ),
    (
        "a merge patch that changes nothing",
        "MERGE",
        "{shop}/services/cart?fieldManager=user",
        r#"{"metadata":{"labels":{"app":"cart"}}}"#,
    ),
    (
        "a strategic patch adds a port by its key",
        "STRATEGIC",
        "{shop}/services/cart?fieldManager=user",
        r#"{"spec":{"$setElementOrder/ports":[{"port":80},{"port":81}],"ports":[{"name":"web","port":80},{"name":"more","port":81}]}}"#,
    ),
    (
        "a strategic patch removes one",
        "STRATEGIC",
        "{shop}/services/cart?fieldManager=user",
        r#"{"spec":{"ports":[{"$patch":"delete","port":81}]}}"#,
    ),
    (
        "a dual-stack Service",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"dual"},"spec":{"ipFamilyPolicy":"PreferDualStack","ports":[{"port":80}]}}"#,
    ),
    (
        "a primary family cannot change",
        "MERGE",
        "{shop}/services/dual?fieldManager=user",
        r#"{"spec":{"ipFamilies":["IPv6","IPv4"]}}"#,
    ),
    (
        "a headless Service of one family",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"headless-6"},"spec":{"clusterIP":"None","ipFamilies":["IPv6"],"ports":[{"port":80}]}}"#,
    ),
    (
        "a headless Service with a selector",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"headless-pods"},"spec":{"clusterIP":"None","selector":{"app":"db"},"sessionAffinity":"ClientIP"}}"#,
    ),
    (
        "an ExternalName Service",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"external"},"spec":{"type":"ExternalName","externalName":"example.com"}}"#,
    ),
    (
        "a NodePort Service",
        "POST",
        "{shop}/services?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"node"},"spec":{"type":"NodePort","ports":[{"name":"web","port":80,"targetPort":"http","appProtocol":"h2c"}]}}"#,
    ),
    (
        "apply a derived Service",
        "APPLY",
        "{shop}/services/derived?fieldManager=agent&force=true",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived","labels":{"a":"1"}},"spec":{"type":"ClusterIP","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"web","port":80,"protocol":"TCP"},{"name":"more","port":81,"protocol":"TCP"}]}}"#,
    ),
    (
        "apply the same again",
        "APPLY",
        "{shop}/services/derived?fieldManager=agent&force=true",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived","labels":{"a":"1"}},"spec":{"type":"ClusterIP","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"web","port":80,"protocol":"TCP"},{"name":"more","port":81,"protocol":"TCP"}]}}"#,
    ),
    (
        "apply one port less and another first",
        "APPLY",
        "{shop}/services/derived?fieldManager=agent&force=true",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived"},"spec":{"type":"ClusterIP","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"dns","port":53,"protocol":"UDP"},{"name":"more","port":81,"protocol":"TCP"}]}}"#,
    ),
    (
        "a stranger's apply conflicts on a default",
        "APPLY",
        "{shop}/services/derived?fieldManager=stranger",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived"},"spec":{"ports":[{"name":"odd","port":99}],"sessionAffinity":"ClientIP"}}"#,
    ),
    (
        "and takes it back",
        "APPLY",
        "{shop}/services/derived?fieldManager=stranger",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived"}}"#,
    ),
    (
        "a Service's status",
        "APPLY",
        "{shop}/services/derived/status?fieldManager=cloud&force=true",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived"},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#,
    ),
    (
        "put a Service without its addresses",
        "PUT",
        "{shop}/services/derived?fieldManager=user",
        r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"derived"},"spec":{"ports":[{"port":80}]}}"#,
    ),
];
