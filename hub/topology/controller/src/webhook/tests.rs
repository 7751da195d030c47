//! Requests at the port: what is answered to reviews and to what is none, within the bounds of size, time and number.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode},
};
use futures::future::join_all;
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use shared::process::encode_metrics;
use tower::ServiceExt;

use super::{
    door::{Objects, REQUEST_BYTES_MAX, REVIEWS_MAX, TIMES, Times, router},
    metrics::WebhookMetrics,
};
use crate::admission::{Beside, Needs, Review};

/// Longer than anything here takes, and too short for a silent peer.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// The behaviour of the server that is asked for the objects.
#[derive(Clone)]
enum There {
    Nothing,
    Refuses,
    IsSilent,
    /// Counts how many ask at the same time, and the most that did.
    Counts(Arc<[AtomicUsize; 2]>),
}

impl Objects for There {
    async fn read(&self, review: &Review) -> Result<Beside, String> {
        assert_ne!(review.needs(), Needs::Nothing);
        match self {
            Self::Nothing => Ok(Beside::default()),
            Self::Refuses => Err("clusterclasses is forbidden (HTTP 403)".to_owned()),
            Self::IsSilent => pending().await,
            Self::Counts(counts) => {
                let [now, most] = &**counts;
                let asking = now.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(asking, Ordering::SeqCst);
                // Everybody else who may come comes.
                for _ in 0..10 * REVIEWS_MAX {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(Beside::default())
            }
        }
    }
}

fn asking(there: There) -> Router {
    router(there, TIMES, WebhookMetrics::default())
}

fn review() -> Value {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a", "namespace": "b"},
        "spec": {"topology": {"classRef": {"name": "c"}, "version": "v1.30.1"}},
    });
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "object": cluster, "oldObject": null,
            "kind": {"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": "Cluster"},
        },
    })
}

async fn post(router: &Router, body: impl Into<Body>) -> Response<Body> {
    let request = Request::post("/validate?timeout=10s").body(body.into());
    let answered = router.clone().oneshot(request.expect("a request"));
    answered.await.expect("an answer")
}

async fn text(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8(body.to_bytes().into()).expect("text")
}

async fn answered(there: There, body: impl Into<Body>) -> (StatusCode, String) {
    let response = post(&asking(there), body).await;
    (response.status(), text(response).await)
}

#[tokio::test]
async fn a_review_is_answered_by_the_rules() {
    let response = post(&asking(There::Nothing), review().to_string()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/json");
    let said: Value = serde_json::from_str(&text(response).await).expect("JSON");
    assert_eq!(
        (&said["kind"], &said["response"]["uid"]),
        (&json!("AdmissionReview"), &json!("u"))
    );
    assert_eq!(said["response"]["allowed"], true);
    let warning = said["response"]["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("class-exists"), "{warning}");
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_the_reason() {
    let (code, said) = answered(There::Refuses, review().to_string()).await;
    assert_eq!(code, StatusCode::OK);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["response"]["allowed"], false);
    assert_eq!(
        said["response"]["status"]["message"],
        "cannot be judged now: clusterclasses is forbidden (HTTP 403)"
    );
}

#[tokio::test]
async fn a_silent_server_is_waited_for_so_long() {
    let answered = async |read, whole| {
        let times = Times { read, whole };
        let router = router(There::IsSilent, times, WebhookMetrics::default());
        let response = post(&router, review().to_string()).await;
        (response.status(), text(response).await)
    };
    let (code, said) = answered(SHORT, LONG).await;
    assert_eq!(code, StatusCode::OK);
    assert!(
        said.contains("cannot be judged now: what it needs cannot be read within 0.02 s"),
        "{said}"
    );
    let (code, said) = answered(LONG, SHORT).await;
    assert_eq!(code, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(said, "no answer within 0.02 s: try again");
    assert!(TIMES.read < TIMES.whole && TIMES.whole < Duration::from_secs(10));
}

#[tokio::test]
async fn what_is_no_review_is_refused_before_anything_is_read() {
    let (code, said) = answered(There::Refuses, "{}").await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert!(said.starts_with("the body is no AdmissionReview"), "{said}");
    let most = " ".repeat(REQUEST_BYTES_MAX);
    assert_eq!(
        answered(There::Refuses, most.clone()).await.0,
        StatusCode::BAD_REQUEST
    );
    let (code, said) = answered(There::Refuses, most + " ").await;
    assert_eq!(code, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(said.contains("3145728 bytes"), "{said}");
}

#[tokio::test]
async fn nothing_else_is_answered() {
    let router = asking(There::Refuses);
    for (method, path, code) in [
        ("GET", "/validate", StatusCode::METHOD_NOT_ALLOWED),
        ("POST", "/", StatusCode::NOT_FOUND),
        ("GET", "/metrics", StatusCode::NOT_FOUND),
    ] {
        let request = Request::builder().method(method).uri(path).body(Body::empty());
        let answered = router.clone().oneshot(request.expect("a request")).await;
        assert_eq!(answered.expect("an answer").status(), code, "{method} {path}");
    }
}

#[tokio::test]
async fn so_many_reviews_are_judged_at_once_and_others_wait() {
    let (mut registry, metrics) = (Registry::default(), WebhookMetrics::default());
    metrics.register_answers(&mut registry);
    let counts = Arc::<[AtomicUsize; 2]>::default();
    let router = router(There::Counts(counts.clone()), TIMES, metrics);
    let asked = (0..3 * REVIEWS_MAX).map(|_| post(&router, review().to_string()));
    for response in join_all(asked).await {
        assert_eq!(response.status(), StatusCode::OK);
    }
    let [now, most] = &*counts;
    assert_eq!(
        (now.load(Ordering::SeqCst), most.load(Ordering::SeqCst)),
        (0, REVIEWS_MAX)
    );
    let shown = encode_metrics(&registry).expect("text");
    for (answer, count) in [("warned", 3 * REVIEWS_MAX), ("allowed", 0), ("overdue", 0)] {
        let line = format!("topology_webhook_reviews_total{{answer=\"{answer}\"}} {count}");
        assert!(shown.contains(&line), "{shown}");
    }
}
