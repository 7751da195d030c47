//! Fixed requests whose normalised answers must be the same from a simulated cluster and from a real API server.
//! The snapshot is the simulation's transcript; a real server's transcript is compared with it line by line.
//! The requests stand beside this file, by what they are about.

mod imports;
mod names;
mod owners;
mod pages;
mod preconditions;
mod services;
mod slices;
mod status;
mod verdicts;

use std::{future::Future, sync::Arc};

use anyhow::ensure;
use bytes::Bytes;
use cluster::{deploy, real::Fleet};
use http::{Request, header};
use http_body_util::BodyExt;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use sim::{SimCluster, SimConfig};
use tributary_e2e::suite::{real_test, sim_test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::conformance::answers_as_recorded", answers_as_recorded),
        real_test(
            "real::conformance::answers_as_the_simulation",
            real_answers_as_the_simulation,
        ),
        sim_test("sim::conformance::verdicts_as_recorded", verdicts::as_recorded),
        real_test(
            "real::conformance::verdicts_as_the_simulation",
            verdicts::as_a_real_server,
        ),
    ]
}

/// One request: what it shows, method, path, body ("" for none).
/// `<uid>` and `<rv>` stand for those of the last object that was answered, `<continue>` for the last token of a page.
type Step = (&'static str, &'static str, &'static str, &'static str);

const SHOP: &str = "/api/v1/namespaces/conformance";
const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/conformance/serviceexports";
const IMPORTS: &str = "/apis/multicluster.x-k8s.io/v1beta1/namespaces/conformance/serviceimports";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/conformance/endpointslices";

/// The methods beside the HTTP ones: the three patch kinds, a watch whose events are listed, a list, and one in pages.
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

/// Every request; what one part leaves behind, the next ones find.
const STEPS: [&[Step]; 8] = [
    names::STEPS,
    services::STEPS,
    owners::STEPS,
    status::STEPS,
    imports::STEPS,
    slices::STEPS,
    pages::STEPS,
    preconditions::STEPS,
];

/// Sends every step and returns their normalised answers.
async fn play<F, Answer>(send: F) -> anyhow::Result<Vec<String>>
where
    F: Fn(Request<Bytes>) -> Answer,
    Answer: Future<Output = anyhow::Result<(u16, Bytes)>>,
{
    let mut transcript = Vec::new();
    let (mut uid, mut revision, mut next) = (String::new(), String::new(), String::new());
    for (title, method, path, body) in STEPS.into_iter().flatten() {
        let path = path.replace("{shop}", SHOP).replace("{exports}", EXPORTS);
        let path = path.replace("{imports}", IMPORTS).replace("{slices}", SLICES);
        let path = path.replace("<continue>", &next);
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
            "LIST" => items(&single),
            "PAGE" => {
                let (token, remaining) = (text("continue"), &single["metadata"]["remainingItemCount"]);
                let more = if token.is_empty() {
                    "the last page"
                } else {
                    "more follow"
                };
                next = if token.is_empty() { next } else { token };
                [items(&single), vec![format!("{more}, remaining: {remaining}")]].concat()
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

/// The names of what a list holds.
fn items(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].to_string()).collect()
}

/// The relevant part of an answer: of a Status its reason and causes, of an object all but the values that differ on
/// every run.
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

fn cluster() -> anyhow::Result<SimCluster> {
    SimCluster::new(SimConfig {
        service_cidrs: vec!["10.96.0.0/16".into(), "fd00:10::/108".into()],
        ..SimConfig::default()
    })
}

/// Asks a simulated cluster.
async fn respond(cluster: &SimCluster, request: Request<Bytes>) -> anyhow::Result<(u16, Bytes)> {
    let response = cluster.respond(request).await?;
    let code = response.status().as_u16();
    Ok((code, response.into_body().collect().await?.to_bytes()))
}

/// Asks a real one.
async fn ask(client: &kube::Client, request: Request<Bytes>) -> anyhow::Result<(u16, Bytes)> {
    let response = client.send(request.map(kube::client::Body::from)).await?;
    let code = response.status().as_u16();
    Ok((code, response.into_body().collect_bytes().await?))
}

async fn simulated() -> anyhow::Result<Vec<String>> {
    let cluster = cluster()?;
    // A real namespace controller takes seconds; here the namespace must stay Terminating for the last step.
    cluster.hold_controllers(true);
    play(|request| respond(&cluster, request)).await
}

/// Takes back what the last steps hold the namespace by, so that the next scenario finds none.
async fn release_namespace(client: &kube::Client) -> anyhow::Result<()> {
    let request = Request::patch(SHOP)
        .header(header::CONTENT_TYPE, "application/merge-patch+json")
        .body(Bytes::from_static(br#"{"metadata":{"finalizers":null}}"#))?;
    ask(client, request).await?;
    Ok(())
}

async fn answers_as_recorded() -> anyhow::Result<()> {
    insta::assert_snapshot!("conformance", simulated().await?.concat());
    Ok(())
}

async fn real_answers_as_the_simulation(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let client = fleet.clusters()[0].client().await?;
    deploy::install(&client, &["crds"]).await?;
    let simulated = simulated().await?;
    let real = play(|request| ask(&client, request)).await;
    release_namespace(&client).await?;
    let real = real?;
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
