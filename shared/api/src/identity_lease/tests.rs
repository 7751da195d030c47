//! The Lease of a replica against an API server that holds one Lease.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::{Value, json};

use super::*;
use crate::names::{AGENT_MANAGER, HUB_MANAGER};
use crate::server::NoAnswer;

/// Requests that an API server was asked, one Lease that it holds, and how many deletions meet another version of it.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Held>>);

/// Requests, the Lease, and deletions that are yet to meet another version.
type Held = (Vec<String>, Option<Value>, u32);

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        Client::new(move |request: Request<Bytes>| {
            let answer = server.answer(request.method(), request.uri().path(), request.body());
            async move { Ok::<_, NoAnswer>(answer) }
        })
    }

    fn answer(&self, method: &Method, path: &str, body: &[u8]) -> Response<Bytes> {
        let mut state = self.0.lock().expect("one at a time");
        let name = path.rsplit('/').next().unwrap_or_default();
        state.0.push(format!("{method} {name}"));
        let not_found = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "NotFound", "code": 404});
        let (code, answer) = match *method {
            Method::GET if name == "leases" => {
                let items: Vec<Value> = state.1.iter().cloned().collect();
                (
                    200,
                    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList", "metadata": {}, "items": items}),
                )
            }
            Method::GET => state.1.clone().map_or((404, not_found), |lease| (200, lease)),
            Method::DELETE if state.2 > 0 => {
                state.2 -= 1;
                let conflict = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "",
                    "reason": "Conflict", "code": 409});
                (409, conflict)
            }
            Method::DELETE => (200, state.1.take().unwrap_or_default()),
            _ => {
                let mut lease: Value = serde_json::from_slice(body).expect("a Lease");
                lease["metadata"]["uid"] = json!("uid");
                let before = state
                    .1
                    .as_ref()
                    .and_then(|lease| lease["metadata"]["resourceVersion"].as_str());
                let version = before.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) + 1;
                lease["metadata"]["resourceVersion"] = json!(version.to_string());
                state.1 = Some(lease.clone());
                (200, lease)
            }
        };
        Response::builder()
            .status(code)
            .body(Bytes::from(answer.to_string()))
            .expect("an answer")
    }

    fn lease(&self) -> Value {
        self.0.lock().expect("one at a time").1.clone().expect("a Lease")
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("one at a time").0)
    }
}

fn of(program: &'static str, host: &str) -> Replica {
    Replica {
        program,
        namespace: "tributary-system".to_owned(),
        place: "pod-uid".to_owned(),
        host: host.to_owned(),
        duration_seconds: 40,
    }
}

fn replica(server: &Server, host: &str) -> IdentityLease {
    let clock: Monotonic = Arc::new(Duration::default);
    let metrics = IdentityLeaseMetrics::default();
    IdentityLease::new(server.client(), of(AGENT_MANAGER, host), clock, || true, metrics)
}

#[tokio::test]
async fn each_start_takes_its_replicas_lease_over_and_says_so() {
    let server = Server::default();
    let mut first = replica(&server, "node-1");
    first.turn().await.expect("answered");
    first.turn().await.expect("answered");
    let lease = server.lease();
    assert_eq!(lease["metadata"]["labels"][LABEL_IDENTITY], AGENT_MANAGER);
    assert_eq!(lease["metadata"]["labels"][LABEL_HOSTNAME], "node-1");
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
    let name = lease["metadata"]["name"].as_str().expect("a name").to_owned();
    assert!(
        name.starts_with("tributary-agent-") && name.len() == "tributary-agent-".len() + 26,
        "{name}"
    );
    let mut second = replica(&server, "node-1");
    second.turn().await.expect("answered");
    let after = server.lease();
    assert_eq!(after["metadata"]["name"], name.as_str());
    assert_eq!(after["spec"]["leaseTransitions"], 1);
    assert_ne!(after["spec"]["holderIdentity"], lease["spec"]["holderIdentity"]);
}

#[tokio::test]
async fn a_host_name_that_is_no_label_is_left_out() {
    let server = Server::default();
    replica(&server, &"x".repeat(64)).turn().await.expect("answered");
    assert_eq!(server.lease()["metadata"]["labels"][LABEL_HOSTNAME], Value::Null);
}

#[tokio::test]
async fn a_clean_end_takes_it_away() {
    let server = Server::default();
    let drain = CancellationToken::new();
    let replica = replica(&server, "node-1");
    let name = replica.name.clone();
    let running = tokio::spawn(replica.run(drain.clone()));
    while !server.asked().iter().any(|asked| asked.starts_with("POST")) {
        tokio::task::yield_now().await;
    }
    drain.cancel();
    running.await.expect("no panic").expect("a clean end");
    assert!(
        server.asked().contains(&format!("DELETE {name}")),
        "it is given up"
    );
}

/// A proof that this process can write may ask for a renewal of the same Lease at any moment.
#[tokio::test]
async fn nobody_makes_it_again_that_was_given_up() {
    let server = Server::default();
    let mut replica = replica(&server, "node-1");
    replica.turn().await.expect("answered");
    let own = replica.own();
    own.give_up().await.expect("answered");
    assert!(own.proven_since(Duration::from_secs(1)).await.is_err());
    assert!(own.renew().await.is_err());
    assert!(server.0.lock().expect("one at a time").1.is_none(), "it is gone");
}

/// A renewal whose answer nobody waited for lands between the look and the deletion.
#[tokio::test]
async fn a_renewal_that_lands_late_does_not_save_it() {
    let server = Server::default();
    let mut replica = replica(&server, "node-1");
    replica.turn().await.expect("answered");
    server.0.lock().expect("one at a time").2 = 1;
    replica.own().give_up().await.expect("answered");
    assert!(server.0.lock().expect("one at a time").1.is_none(), "it is gone");
}

/// Hours of a process that looks at what another one left, by a clock that the test moves.
async fn looked_at(server: &Server, may_collect: bool) -> IdentityLeaseMetrics {
    let hour = Arc::new(Mutex::new(0));
    let clock: Monotonic = Arc::new({
        let hour = hour.clone();
        move || Duration::from_secs(3_600 * *hour.lock().expect("one at a time"))
    });
    let metrics = IdentityLeaseMetrics::default();
    let hub = of(HUB_MANAGER, "hub-0");
    let mut looking = IdentityLease::new(server.client(), hub, clock, move || may_collect, metrics.clone());
    for _ in 0..3 {
        looking.collect_if_due().await.expect("answered");
        *hour.lock().expect("one at a time") += 1;
    }
    metrics
}

fn left_over(name: &str, renewed: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "uid": "u", "resourceVersion": "7"},
        "spec": {"renewTime": renewed, "leaseDurationSeconds": 3_600}})
}

#[tokio::test]
async fn what_a_process_left_that_is_long_gone_is_deleted_and_nothing_else() {
    let long_ago = "2020-01-01T00:00:00.000000Z";
    let server = Server::default();
    server.0.lock().expect("one at a time").1 = Some(left_over("tributary-hub-x", long_ago));
    let metrics = looked_at(&server, true).await;
    assert_eq!(metrics.collected.get(), 1);
    assert!(server.asked().contains(&"DELETE tributary-hub-x".to_owned()));

    let now = Timestamp::now().to_string();
    let own = format!("tributary-hub-{}", identity_lease_suffix("pod-uid", HUB_MANAGER));
    for (name, renewed, may_collect) in [
        ("tributary-hub-x", &*now, true),
        (&*own, long_ago, true),
        ("tributary-hub-x", long_ago, false),
    ] {
        server.0.lock().expect("one at a time").1 = Some(left_over(name, renewed));
        let metrics = looked_at(&server, may_collect).await;
        assert_eq!(metrics.collected.get(), 0, "{name} {renewed}");
        assert!(
            !server.asked().iter().any(|asked| asked.starts_with("DELETE")),
            "{name} {renewed}"
        );
    }
}

#[tokio::test]
async fn people_hear_of_a_failure_that_lasts_and_of_its_end() {
    let mut replica = replica(&Server::default(), "node-1");
    replica.tell(Err(anyhow::anyhow!("no answer")));
    assert_eq!((replica.metrics.failing.get(), replica.failures), (1, 1));
    replica.tell(Ok(()));
    assert_eq!((replica.metrics.failing.get(), replica.failures), (0, 0));
}
