//! Good and bad objects, each sent to a simulated and to a real API server: both must give the same verdict.
//! A verdict is the code, the reason, and the fields that are named; wording is the servers' own.

use std::{future::Future, sync::Arc};

use anyhow::{Context, ensure};
use bytes::Bytes;
use cluster::{
    clusterset::shop::{LABEL_STORY, RUNNING, unique_name},
    deploy,
    real::Fleet,
};
use http::{Request, header};
use serde_json::{Value, json};

use super::{normalised, respond};

/// A request: a title, a kind, its fields beside the name, and the merge patch that follows when one is given.
type Case = (&'static str, &'static str, &'static str, &'static str);

const SERVICE: &str = "services";
const SLICE: &str = "endpointslices";
const EXPORT: &str = "serviceexports";
const CONFIG: &str = "configmaps";
const DEPLOYMENT: &str = "deployments";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // The names of ports.
    ("two ports without names", SERVICE, r#"{"spec":{"ports":[{"port":80},{"port":81}]}}"#, ""),
    ("the second port has no name", SERVICE, r#"{"spec":{"ports":[{"name":"a","port":80},{"port":81}]}}"#, ""),
    ("the first port has an empty name", SERVICE, r#"{"spec":{"ports":[{"name":"","port":80},{"name":"b","port":81}]}}"#, ""),
    ("one port without a name", SERVICE, r#"{"spec":{"ports":[{"port":80}]}}"#, ""),
    ("two names", SERVICE, r#"{"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}}"#, ""),
    ("a second port comes without a name", SERVICE, r#"{"spec":{"ports":[{"port":80}]}}"#, r#"{"spec":{"ports":[{"port":80},{"port":81}]}}"#),
    ("one name twice", SERVICE, r#"{"spec":{"ports":[{"name":"a","port":80},{"name":"a","port":81}]}}"#, ""),
    ("a name in capitals", SERVICE, r#"{"spec":{"ports":[{"name":"Web","port":80}]}}"#, ""),
    ("a name with an underscore", SERVICE, r#"{"spec":{"ports":[{"name":"a_b","port":80}]}}"#, ""),
    ("a name with a dot", SERVICE, r#"{"spec":{"ports":[{"name":"a.b","port":80}]}}"#, ""),
    ("a name that ends with a hyphen", SERVICE, r#"{"spec":{"ports":[{"name":"a-","port":80}]}}"#, ""),
    ("a name of 63 letters", SERVICE, r#"{"spec":{"ports":[{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","port":80}]}}"#, ""),
    ("a name of 64 letters", SERVICE, r#"{"spec":{"ports":[{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","port":80}]}}"#, ""),
    ("a headless Service with two ports without names", SERVICE, r#"{"spec":{"clusterIP":"None","ports":[{"port":80},{"port":81}]}}"#, ""),
    ("an external name with two ports without names", SERVICE, r#"{"spec":{"type":"ExternalName","externalName":"a.example","ports":[{"port":80},{"port":81}]}}"#, ""),
    // The rest of a port.
    ("one protocol and port twice", SERVICE, r#"{"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":80}]}}"#, ""),
    ("one port of two protocols", SERVICE, r#"{"spec":{"ports":[{"name":"a","port":53},{"name":"b","port":53,"protocol":"UDP"}]}}"#, ""),
    ("port 0", SERVICE, r#"{"spec":{"ports":[{"port":0}]}}"#, ""),
    ("port 65536", SERVICE, r#"{"spec":{"ports":[{"port":65536}]}}"#, ""),
    ("an unknown protocol", SERVICE, r#"{"spec":{"ports":[{"port":80,"protocol":"ICMP"}]}}"#, ""),
    ("a target port by a bad name", SERVICE, r#"{"spec":{"ports":[{"port":80,"targetPort":"no--name"}]}}"#, ""),
    ("a target port beyond all", SERVICE, r#"{"spec":{"ports":[{"port":80,"targetPort":70000}]}}"#, ""),
    ("a bad appProtocol", SERVICE, r#"{"spec":{"ports":[{"port":80,"appProtocol":"a b"}]}}"#, ""),
    ("a good appProtocol", SERVICE, r#"{"spec":{"ports":[{"port":80,"appProtocol":"example.com/h2"}]}}"#, ""),
    ("a node port of a ClusterIP Service", SERVICE, r#"{"spec":{"ports":[{"port":80,"nodePort":30080}]}}"#, ""),
    ("no ports", SERVICE, r#"{"spec":{"ports":[]}}"#, ""),
    // The rest of a Service.
    ("a selector with a bad value", SERVICE, r#"{"spec":{"selector":{"a":"b c"},"ports":[{"port":80}]}}"#, ""),
    ("a selector with a bad key", SERVICE, r#"{"spec":{"selector":{"a b":"c"},"ports":[{"port":80}]}}"#, ""),
    ("affinity for longer than a day", SERVICE, r#"{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":86401}},"ports":[{"port":80}]}}"#, ""),
    ("an unknown affinity", SERVICE, r#"{"spec":{"sessionAffinity":"Cookie","ports":[{"port":80}]}}"#, ""),
    ("an unknown type", SERVICE, r#"{"spec":{"type":"Magic","ports":[{"port":80}]}}"#, ""),
    ("an external name that is none", SERVICE, r#"{"spec":{"type":"ExternalName","externalName":"A B"}}"#, ""),
    ("an external name that is missing", SERVICE, r#"{"spec":{"type":"ExternalName"}}"#, ""),
    ("an external name with an address", SERVICE, r#"{"spec":{"type":"ExternalName","externalName":"a.example","clusterIP":"10.96.0.77"}}"#, ""),
    ("a headless NodePort Service", SERVICE, r#"{"spec":{"type":"NodePort","clusterIP":"None","ports":[{"port":80}]}}"#, ""),
    ("an external address that is none", SERVICE, r#"{"spec":{"externalIPs":["1.2.3"],"ports":[{"port":80}]}}"#, ""),
    ("a loopback external address", SERVICE, r#"{"spec":{"externalIPs":["127.0.0.1"],"ports":[{"port":80}]}}"#, ""),
    ("a cluster address that is none", SERVICE, r#"{"spec":{"clusterIP":"here","ports":[{"port":80}]}}"#, ""),
    ("another cluster address later", SERVICE, r#"{"spec":{"ports":[{"port":80}]}}"#, r#"{"spec":{"clusterIP":"10.96.0.99","clusterIPs":["10.96.0.99"]}}"#),
    // Metadata, of a built-in kind and of a custom one.
    ("a label with a bad key", SERVICE, r#"{"metadata":{"labels":{"a/b/c":"d"}},"spec":{"ports":[{"port":80}]}}"#, ""),
    ("a label with an empty prefix", SERVICE, r#"{"metadata":{"labels":{"/b":"d"}},"spec":{"ports":[{"port":80}]}}"#, ""),
    ("a label of 64 letters", EXPORT, r#"{"metadata":{"labels":{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}}"#, ""),
    ("an annotation with a bad key", EXPORT, r#"{"metadata":{"annotations":{"a b":"c"}}}"#, ""),
    ("an annotation in capitals with any value", EXPORT, r#"{"metadata":{"annotations":{"Example.COM/Key":"any thing \u0001"}}}"#, ""),
    ("a bad finalizer", EXPORT, r#"{"metadata":{"finalizers":["a b"]}}"#, ""),
    ("an owner without a version", EXPORT, r#"{"metadata":{"ownerReferences":[{"apiVersion":"","kind":"Service","name":"a","uid":"b"}]}}"#, ""),
    // EndpointSlices.
    ("a good slice", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"]}],"ports":[{"port":80}]}"#, ""),
    ("ports without names in a slice", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"port":80},{"port":81}]}"#, ""),
    ("two names in a slice", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"","port":80},{"name":"b","port":81}]}"#, ""),
    ("one name twice in a slice", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"a","port":80},{"name":"a","port":81}]}"#, ""),
    ("one port under two names in a slice", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"a","port":80},{"name":"b","port":80}]}"#, ""),
    ("a name of a slice's port in capitals", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"Web","port":80}]}"#, ""),
    ("a name of a slice's port of 64 letters", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","port":80}]}"#, ""),
    ("an unknown protocol in a slice", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"a","port":80,"protocol":"ICMP"}]}"#, ""),
    ("a bad appProtocol in a slice", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"a","port":80,"appProtocol":"a b"}]}"#, ""),
    ("no number of a slice's port", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"a"}]}"#, ""),
    ("an impossible number of a slice's port", SLICE, r#"{"addressType":"IPv4","endpoints":[],"ports":[{"name":"a","port":70000}]}"#, ""),
    ("no addressType", SLICE, r#"{"endpoints":[]}"#, ""),
    ("an unknown addressType", SLICE, r#"{"addressType":"MAC","endpoints":[]}"#, ""),
    ("another addressType later", SLICE, r#"{"addressType":"IPv4","endpoints":[]}"#, r#"{"addressType":"IPv6"}"#),
    ("an IPv6 address in an IPv4 slice", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["fd00::1"]}]}"#, ""),
    ("an IPv4 address in an IPv6 slice", SLICE, r#"{"addressType":"IPv6","endpoints":[{"addresses":["10.1.0.1"]}]}"#, ""),
    ("an IPv6 address", SLICE, r#"{"addressType":"IPv6","endpoints":[{"addresses":["fd00::1"]}]}"#, ""),
    ("an IPv6 address written long", SLICE, r#"{"addressType":"IPv6","endpoints":[{"addresses":["FD00:0::1"]}]}"#, ""),
    ("an IPv4 address inside an IPv6 one", SLICE, r#"{"addressType":"IPv6","endpoints":[{"addresses":["::ffff:10.1.0.1"]}]}"#, ""),
    ("no address", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":[]}]}"#, ""),
    ("a text for an address", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["here"]}]}"#, ""),
    ("an unspecified address", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["0.0.0.0"]}]}"#, ""),
    ("a link-local multicast address", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["224.0.0.5"]}]}"#, ""),
    ("a domain", SLICE, r#"{"addressType":"FQDN","endpoints":[{"addresses":["a.example"]}]}"#, ""),
    ("a domain of one label", SLICE, r#"{"addressType":"FQDN","endpoints":[{"addresses":["a"]}]}"#, ""),
    ("a bad node name", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"],"nodeName":"a_b"}]}"#, ""),
    ("a bad host name", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"],"hostname":"a.b"}]}"#, ""),
    ("one zone twice in the hints", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"],"hints":{"forZones":[{"name":"a"},{"name":"a"}]}}]}"#, ""),
    ("a bad zone in the hints", SLICE, r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.1.0.1"],"hints":{"forZones":[{"name":"a b"}]}}]}"#, ""),
    // What is only kept.
    ("a bad key of a ConfigMap", CONFIG, r#"{"data":{"a b":"c"}}"#, ""),
    ("a ConfigMap", CONFIG, r#"{"data":{"a":"b"}}"#, ""),
    ("a Deployment", DEPLOYMENT, r#"{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}"#, ""),
    ("a Deployment without a selector", DEPLOYMENT, r#"{"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}"#, ""),
    ("a Deployment that does not select its pods", DEPLOYMENT, r#"{"spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}"#, ""),
    ("a Deployment without an image", DEPLOYMENT, r#"{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a"}]}}}}"#, ""),
    ("fewer than no replicas", DEPLOYMENT, r#"{"spec":{"replicas":-1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}"#, ""),
    ("another selector later", DEPLOYMENT, r#"{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b","c":"d"}},"spec":{"containers":[{"name":"a","image":"b"}]}}}}"#, r#"{"spec":{"selector":{"matchLabels":{"c":"d"}}}}"#),
];

fn place(plural: &str) -> (&'static str, &'static str) {
    match plural {
        SERVICE => ("v1", "Service"),
        CONFIG => ("v1", "ConfigMap"),
        SLICE => ("discovery.k8s.io/v1", "EndpointSlice"),
        DEPLOYMENT => ("apps/v1", "Deployment"),
        _ => ("multicluster.x-k8s.io/v1beta1", "ServiceExport"),
    }
}

/// Sends every case and returns a line a case: its title and the verdicts.
async fn verdicts<F, Answer>(namespace: &str, send: F) -> anyhow::Result<Vec<String>>
where
    F: Fn(Request<Bytes>) -> Answer,
    Answer: Future<Output = anyhow::Result<(u16, Bytes)>>,
{
    let json = |method: &str, path: &str, content: &str, body: String| {
        Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .body(Bytes::from(body))
    };
    // The exports that are taken must not be there for the agents of the next scenario: the suite empties what has the label.
    let labels = json!({ LABEL_STORY: RUNNING });
    let space = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": labels}});
    let (code, _) = send(json(
        "POST",
        "/api/v1/namespaces",
        "application/json",
        space.to_string(),
    )?)
    .await?;
    ensure!(code == 201, "the namespace was not made: {code}");
    let mut lines = Vec::new();
    for (at, (title, plural, fields, patch)) in CASES.iter().enumerate() {
        let (version, kind) = place(plural);
        let root = if version.contains('/') { "apis" } else { "api" };
        let path = format!("/{root}/{version}/namespaces/{namespace}/{plural}");
        let mut object: Value = serde_json::from_str(fields).context(*title)?;
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"]["name"] = json!(format!("case-{at}"));
        let (code, answer) = send(json("POST", &path, "application/json", object.to_string())?).await?;
        let mut line = format!("{title}: {}", verdict(code, &answer)?);
        if !patch.is_empty() {
            let path = format!("{path}/case-{at}");
            let merge = "application/merge-patch+json";
            let (code, answer) = send(json("PATCH", &path, merge, (*patch).to_owned())?).await?;
            line = format!("{line}, then {}", verdict(code, &answer)?);
        }
        lines.push(line);
    }
    Ok(lines)
}

fn verdict(code: u16, answer: &[u8]) -> anyhow::Result<String> {
    let answer: Value = serde_json::from_slice(answer)?;
    if answer["kind"] != json!("Status") {
        return Ok(code.to_string());
    }
    Ok(format!("{code} {}", normalised(answer).join(", ")))
}

async fn simulated() -> anyhow::Result<Vec<String>> {
    let cluster = super::cluster()?;
    verdicts("verdicts", |request| respond(&cluster, request)).await
}

/// The snapshot is the simulation's; the other test compares it with a real server's.
pub(super) async fn as_recorded() -> anyhow::Result<()> {
    let lines = simulated().await?;
    // A list of objects that are all taken, or all refused, would show nothing.
    let refused = lines.iter().filter(|line| line.contains("422")).count();
    ensure!(
        refused > 30 && lines.len() - refused > 10,
        "{refused} of {} are refused",
        lines.len()
    );
    insta::assert_snapshot!("verdicts", lines.join("\n"));
    Ok(())
}

pub(super) async fn as_a_real_server(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let client = fleet.clusters()[0].client().await?;
    deploy::install(&client, &["crds"]).await?;
    let real = verdicts(&unique_name("verdicts"), |request| super::ask(&client, request)).await?;
    let simulated = simulated().await?;
    let pairs = simulated
        .iter()
        .zip(&real)
        .filter(|(simulated, real)| simulated != real);
    let different: Vec<String> = pairs
        .map(|(simulated, real)| format!("simulated: {simulated}\n     real: {real}"))
        .collect();
    ensure!(
        different.is_empty(),
        "{} verdicts differ:\n{}",
        different.len(),
        different.join("\n")
    );
    Ok(())
}
