//! Fixed requests whose normalised answers must be the same from a simulated cluster and from a real API server.
//! The snapshot is the simulation's transcript; a real server's transcript is compared with it line by line.

use std::{future::Future, sync::Arc};

use anyhow::ensure;
use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tributary_e2e::{
    deploy,
    real::Fleet,
    sim::{SimCluster, SimConfig},
    suite::{real_test, sim_test},
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::conformance::answers_as_recorded", answers_as_recorded),
        real_test(
            "real::conformance::answers_as_the_simulation",
            real_answers_as_the_simulation,
        ),
    ]
}

/// One request: what it shows, method, path, body ("" for none).
/// `<uid>` and `<rv>` stand for those of the last object that was answered.
type Step = (&'static str, &'static str, &'static str, &'static str);

const SHOP: &str = "/api/v1/namespaces/conformance";
const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/conformance/serviceexports";
const IMPORTS: &str = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/conformance/serviceimports";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/conformance/endpointslices";

/// The methods beside the HTTP ones: the three patch kinds, and a watch whose events are listed.
fn content_type(method: &str) -> (&'static str, &'static str) {
    match method {
        "MERGE" => ("PATCH", "application/merge-patch+json"),
        "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
        "APPLY" => ("PATCH", "application/apply-patch+yaml"),
        "POST" => ("POST", "application/json"),
        "PUT" => ("PUT", "application/json"),
        "DELETE" => ("DELETE", "application/json"),
        _ => ("GET", "application/json"),
    }
}

const STEPS: &[Step] = &[
    // Namespaces and names.
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
    // Services: defaults, addresses, validations.
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
    // Server-side apply and its owners.
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
        "a merge patch prunes it",
        "MERGE",
        "{exports}/cart?fieldManager=user",
        r#"{"spec":{"nothing":1}}"#,
    ),
    // Status and conditions.
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
    // ServiceImports.
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
    // EndpointSlices.
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
        "list the Events of an object",
        "LIST",
        "/api/v1/namespaces/conformance/events?fieldSelector=involvedObject.name%3Dcart",
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
    // Updates and deletes with preconditions.
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
    ("delete the namespace", "DELETE", "{shop}", ""),
    (
        "create in a terminating namespace",
        "POST",
        "{exports}?fieldManager=user",
        r#"{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceExport","metadata":{"name":"late"}}"#,
    ),
];

/// Sends every step and returns their normalised answers.
async fn play<F, Answer>(send: F) -> anyhow::Result<Vec<String>>
where
    F: Fn(Request<Bytes>) -> Answer,
    Answer: Future<Output = anyhow::Result<(u16, Bytes)>>,
{
    let mut transcript = Vec::new();
    let (mut uid, mut revision) = (String::new(), String::new());
    for (title, method, path, body) in STEPS {
        let path = path.replace("{shop}", SHOP).replace("{exports}", EXPORTS);
        let path = path.replace("{imports}", IMPORTS).replace("{slices}", SLICES);
        let body = body.replace("<uid>", &uid).replace("<rv>", &revision);
        let (verb, content) = content_type(method);
        let request = Request::builder()
            .method(verb)
            .uri(path.as_str())
            .header(header::CONTENT_TYPE, content);
        let (code, answer) = send(request.body(Bytes::from(body))?).await?;
        let parsed: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(&answer)
            .into_iter()
            .collect();
        // A path that nothing serves is answered by plain text.
        let answer = parsed.unwrap_or_else(|_| vec![json!(String::from_utf8_lossy(&answer))]);
        let single = answer.first().cloned().unwrap_or_default();
        let text = |name: &str| single["metadata"][name].as_str().unwrap_or_default().to_owned();
        let unchanged = !uid.is_empty() && text("uid") == uid && text("resourceVersion") == revision;
        if single["kind"] != json!("Status") && !text("uid").is_empty() {
            (uid, revision) = (text("uid"), text("resourceVersion"));
        }
        let shown = match *method {
            "WATCH" => {
                let name =
                    |event: &Value| format!("{} {}", event["type"], event["object"]["metadata"]["name"]);
                answer.iter().map(name).collect()
            }
            "LIST" => {
                let items = single["items"].as_array().cloned().unwrap_or_default();
                items
                    .iter()
                    .map(|item| item["metadata"]["name"].to_string())
                    .collect()
            }
            _ => normalised(single),
        };
        let lines: String = shown.iter().map(|line| format!("  {line}\n")).collect();
        transcript.push(format!(
            "{title}\n  {code}{}\n{lines}",
            if unchanged { " unchanged" } else { "" }
        ));
    }
    Ok(transcript)
}

/// What counts of an answer: of a Status its reason and causes, of an object all but what differs on every run.
fn normalised(mut answer: Value) -> Vec<String> {
    if let Some(text) = answer.as_str() {
        return vec![text.trim().to_owned()];
    }
    if answer["kind"] == json!("Status") {
        let causes = answer["details"]["causes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut lines: Vec<String> = causes
            .iter()
            .map(|cause| format!("{} {}", cause["reason"], cause["field"]))
            .collect();
        // A real server states some causes twice, and in no fixed order.
        lines.sort();
        lines.dedup();
        lines.insert(0, format!("{} {}", answer["status"], answer["reason"]));
        return lines;
    }
    if let Some(map) = answer.as_object_mut() {
        // A typed server writes an Event's deprecated fields even when they hold nothing.
        map.retain(|name, _| !name.starts_with("deprecated"));
    }
    let metadata = &mut answer["metadata"];
    let managers = metadata["managedFields"].take();
    for volatile in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "deletionTimestamp",
    ] {
        metadata.as_object_mut().map(|metadata| metadata.remove(volatile));
    }
    if answer["spec"]["clusterIP"]
        .as_str()
        .is_some_and(|address| address != "None")
    {
        answer["spec"]["clusterIP"] = json!("an address");
        answer["spec"]["clusterIPs"] = json!(answer["spec"]["clusterIPs"].as_array().map(Vec::len));
    }
    for port in answer
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        // Node ports are not simulated: nothing of a clusterset depends on them.
        port.as_object_mut().map(|port| port.remove("nodePort"));
    }
    let mut lines: Vec<String> = managers
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let through = entry["subresource"].as_str().unwrap_or("main");
            format!(
                "{} {} {through} {}",
                entry["manager"], entry["operation"], entry["fieldsV1"]
            )
        })
        .collect();
    lines.sort();
    lines.insert(0, answer.to_string());
    lines
}

async fn simulated() -> anyhow::Result<Vec<String>> {
    let cluster = SimCluster::new(SimConfig {
        service_cidrs: vec!["10.96.0.0/16".into(), "fd00:10::/108".into()],
        ..SimConfig::default()
    })?;
    // A real namespace controller takes seconds; here the namespace must stay Terminating for the last step.
    cluster.hold_controllers(true);
    play(|request| async {
        let response = cluster.respond(request).await?;
        let code = response.status().as_u16();
        Ok((code, response.into_body().collect().await?.to_bytes()))
    })
    .await
}

async fn answers_as_recorded() -> anyhow::Result<()> {
    insta::assert_snapshot!("conformance", simulated().await?.concat());
    Ok(())
}

async fn real_answers_as_the_simulation(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let client = fleet.clusters()[0].client().await?;
    deploy::install(&client, &["crds"]).await?;
    let send = |request: Request<Bytes>| {
        let client = client.clone();
        async move {
            let response = client.send(request.map(kube::client::Body::from)).await?;
            let code = response.status().as_u16();
            Ok((code, response.into_body().collect_bytes().await?))
        }
    };
    let (simulated, real) = (simulated().await?, play(send).await?);
    let pairs = simulated
        .iter()
        .zip(&real)
        .filter(|(simulated, real)| simulated != real);
    let different: Vec<String> = pairs
        .map(|(simulated, real)| format!("simulated: {simulated}real: {real}"))
        .collect();
    ensure!(
        different.is_empty(),
        "{} steps differ:\n{}",
        different.len(),
        different.join("\n")
    );
    Ok(())
}
