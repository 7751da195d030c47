//! Tests of single actions' requests, and of an API server's unkind answers. Other tests follow profiles on whole API
//! servers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use shared::model::Clusterset;

use super::{cluster, heading, profile, written};
use crate::profile::{
    api::Performer,
    inventory::{Action, Outcome},
};

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// An API server that gives these answers, in order, and keeps what it was asked.
fn performer(answers: impl IntoIterator<Item = (u16, Value)>) -> (Performer, Asked) {
    let asked = Asked::default();
    let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
    let keep = asked.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (keep, answers) = (keep.clone(), answers.clone());
        async move {
            let line = format!("{} {}", request.method(), request.uri());
            let body = request.into_body().collect().await?.to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            keep.lock().expect("not poisoned").push((line, body));
            let (code, answer) = answers
                .lock()
                .expect("not poisoned")
                .pop_front()
                .expect("an answer is left");
            let response = http::Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, tower::BoxError>(response.expect("a response"))
        }
    });
    let client = kube::Client::new(service, "default");
    let clusterset = Clusterset::new("example.org", "default").expect("valid");
    (
        Performer::new(client, "tributary-default".to_owned(), clusterset),
        asked,
    )
}

fn lines(asked: &Asked) -> Vec<String> {
    asked
        .lock()
        .expect("not poisoned")
        .iter()
        .map(|(line, _)| line.clone())
        .collect()
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": format!("{reason} it is"),
    });
    (code, status)
}

fn object(more: Value) -> (u16, Value) {
    (
        200,
        serde_json::to_value(written(&profile("east"), more)).expect("JSON"),
    )
}

fn create() -> Action {
    Action::Apply {
        profile: Arc::new(profile("east")),
        access: Arc::default(),
        uid: None,
        heading: Some(heading("east")),
        status: true,
    }
}

const PROFILE: &str =
    "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/tributary-default/clusterprofiles/east";
const BY_US: &str = "force=true&fieldManager=tributary-hub";

#[tokio::test]
async fn a_profile_is_made_by_two_applies_of_one_manager() {
    let (performer, asked) = performer([object(json!({ "status": null })), object(json!({}))]);
    let (outcome, reason) = performer.perform(&create()).await;
    assert_eq!(reason, None);
    assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    let apply = |path: &str| format!("PATCH {PROFILE}{path}?&{BY_US}");
    assert_eq!(lines(&asked), [apply(""), apply("/status")]);
    let asked = asked.lock().expect("not poisoned");
    assert_eq!(asked[0].1["metadata"].get("uid"), None);
    assert_eq!(
        asked[1].1["metadata"]["uid"], "uid-1",
        "the status is for the object that was made"
    );
    assert_eq!(asked[1].1.get("spec"), None);
}

#[tokio::test]
async fn fields_are_taken_back_from_an_object_that_somebody_made_at_the_same_moment() {
    let both =
        json!({ "metadata": { "managedFields": [{ "manager": "tributary-hub" }, { "manager": "other" }] } });
    let theirs = json!({ "metadata": { "managedFields": [{ "manager": "other" }], "labels": null } });
    let (performer, asked) = performer([object(both), object(theirs)]);
    let (outcome, reason) = performer.perform(&create()).await;
    assert_eq!(reason, None);
    assert!(matches!(outcome, Outcome::NotOurs(_)), "{outcome:?}");
    let asked = asked.lock().expect("not poisoned");
    assert_eq!(asked.len(), 2, "no status is written");
    assert_eq!(asked[1].1["metadata"], json!({ "name": "east", "uid": "uid-1" }));
    assert_eq!(asked[1].1.get("spec"), None);
}

#[tokio::test]
async fn a_deletion_names_the_object_it_means_and_a_missing_one_is_deleted() {
    let delete = Action::Delete {
        cluster: cluster("east"),
        uid: "uid-1".to_owned(),
    };
    let (performer, asked) = performer([failure(404, "NotFound"), failure(409, "Conflict")]);
    assert_eq!(performer.perform(&delete).await, (Outcome::Deleted, None));
    let (outcome, reason) = performer.perform(&delete).await;
    assert!(matches!(outcome, Outcome::Failed { .. }));
    assert!(reason.expect("a reason").contains("tributary-default/east"));
    assert_eq!(
        asked.lock().expect("not poisoned")[0].1["preconditions"]["uid"],
        "uid-1"
    );
}

#[tokio::test]
async fn a_missing_namespace_is_made_with_its_label_or_the_command_is_told() {
    let made = json!({ "metadata": { "name": "tributary-default" } });
    let (performer_that_may, asked) = performer([failure(404, "NotFound"), (201, made)]);
    assert_eq!(performer_that_may.ensure_namespace().await, Ok(()));
    let labels = asked.lock().expect("not poisoned")[1].1["metadata"]["labels"].clone();
    assert_eq!(labels, json!({ "multicluster.x-k8s.io/clusterset": "default" }));

    let (may_not, _) = performer([failure(404, "NotFound"), failure(403, "Forbidden")]);
    let advice = may_not.ensure_namespace().await.expect_err("no namespace");
    assert!(
        advice.contains("kubectl create namespace tributary-default"),
        "{advice}"
    );
    assert!(
        advice.contains("multicluster.x-k8s.io/clusterset=default"),
        "{advice}"
    );
    assert!(!advice.contains("Status {"), "a Rust value: {advice}");
}

#[tokio::test]
async fn a_namespace_that_may_not_be_looked_at_is_taken_to_be_there_until_a_write_shows() {
    let (performer, asked) = performer([
        failure(403, "Forbidden"),
        failure(404, "NotFound"),
        failure(403, "Forbidden"),
    ]);
    assert_eq!(performer.ensure_namespace().await, Ok(()));
    let (outcome, reason) = performer.perform(&create()).await;
    assert!(matches!(outcome, Outcome::Failed { .. }));
    assert!(
        reason
            .expect("a reason")
            .contains("kubectl create namespace tributary-default")
    );
    assert_eq!(
        lines(&asked)[2].split_once('?').map(|(line, _)| line),
        Some("POST /api/v1/namespaces")
    );
}
