//! Agents and one API server that knows nothing but their Lease.

use http::{Method, Request, Response, StatusCode};
use kube::{ResourceExt, client::Body};
use serde_json::json;
use shared::model::UnixMillis;

use super::*;

/// The Lease as the API server has it.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<(Option<Lease>, u64)>>);

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.expect("a body");
                let (code, answer) = server.answer(&parts.method, &body);
                let body = Body::from(answer.to_string().into_bytes());
                Response::builder().status(code).body(body)
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (StatusCode, serde_json::Value) {
        let mut stored = self.0.lock().expect("not poisoned");
        let (lease, version) = &mut *stored;
        let refused = |code: StatusCode| {
            let (number, message) = (code.as_u16(), code.canonical_reason());
            let reason = message.unwrap_or_default().replace(' ', "");
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                "reason": reason, "code": number});
            (code, status)
        };
        if *method == Method::GET {
            return match lease {
                Some(lease) => (StatusCode::OK, json!(lease)),
                None => refused(StatusCode::NOT_FOUND),
            };
        }
        let mut written: Lease = serde_json::from_slice(body).expect("a Lease");
        match (method, &*lease) {
            (&Method::POST, Some(_)) => return refused(StatusCode::CONFLICT),
            (&Method::PUT, None) => return refused(StatusCode::NOT_FOUND),
            (&Method::PUT, Some(stands)) if stands.resource_version() != written.resource_version() => {
                return refused(StatusCode::CONFLICT);
            }
            _ => {}
        }
        *version += 1;
        written.metadata.resource_version = Some(version.to_string());
        *lease = Some(written.clone());
        (StatusCode::OK, json!(written))
    }

    fn lease(&self) -> Option<Lease> {
        self.0.lock().expect("not poisoned").0.clone()
    }

    fn delete(&self) {
        self.0.lock().expect("not poisoned").0 = None;
    }

    fn record(&self) -> machine::Record {
        object::record(&self.lease().expect("it stands"))
    }

    async fn take(&self, holder: &str) -> AgentLease {
        let metrics = LeaseMetrics::default();
        let taken = AgentLease::take(self.client(), "x", holder, &metrics, || {});
        taken.await.expect("taken")
    }
}

fn epoch(millis: u64) -> Epoch {
    Epoch::default().next(UnixMillis(millis), 7)
}

#[tokio::test(start_paused = true)]
async fn the_same_pod_takes_over_at_once_and_counts_its_starts() {
    let (server, clock) = (Server::default(), Instant::now());
    let first = server.take("pod-a").await;
    first.remember(epoch(9)).await.expect("remembered");
    let second = server.take("pod-a").await;
    assert_eq!(clock.elapsed(), Duration::ZERO);
    assert_eq!((first.transitions(), second.transitions()), (1, 2));
    assert!(
        server.record().given_back,
        "so that the next one knows what to expect"
    );
    assert_eq!(second.epoch(), Some(epoch(9)));
    let error = first.renew().await.expect_err("a newer start has it");
    assert!(error.is::<AnotherHolder>(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn another_pod_waits_for_one_that_renews_and_takes_over_from_one_that_does_not() {
    let (server, drain) = (Server::default(), CancellationToken::new());
    let keeping = tokio::spawn(server.take("pod-a").await.keep(drain.clone()));
    let waits = std::sync::atomic::AtomicUsize::new(0);
    let client = server.client();
    let metrics = LeaseMetrics::default();
    let mut taking = Box::pin(AgentLease::take(client, "x", "pod-b", &metrics, || {
        waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }));
    let hour = tokio::time::timeout(Duration::from_secs(3_600), &mut taking);
    assert!(hour.await.is_err(), "it is renewed");
    assert_eq!(metrics.held.get(), 0);
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
    let (clock, duration) = (Instant::now(), machine::DURATION_DEFAULT);
    let lease = taking.await.expect("taken");
    let waited = clock.elapsed();
    assert!(
        waited > duration - RENEW_INTERVAL - LOOK_INTERVAL && waited <= duration + LOOK_INTERVAL,
        "{waited:?}"
    );
    assert_eq!(
        (lease.transitions(), metrics.held.get(), waits.into_inner()),
        (2, 1, 1)
    );
    assert_eq!(&*server.record().holder, "pod-b");
}

#[tokio::test(start_paused = true)]
async fn a_clean_end_lets_the_next_one_in() {
    let server = Server::default();
    let first = server.take("pod-a").await;
    let taking = tokio::spawn({
        let server = server.clone();
        async move { server.take("pod-b").await }
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!taking.is_finished());
    let clock = Instant::now();
    first.release().await;
    assert_eq!(taking.await.expect("no panic").transitions(), 2);
    assert!(clock.elapsed() <= LOOK_INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_while_the_agent_runs_comes_back_with_the_epoch() {
    let (server, drain) = (Server::default(), CancellationToken::new());
    let lease = server.take("pod-a").await;
    lease.remember(epoch(9)).await.expect("remembered");
    let before = server.record();
    let keeping = tokio::spawn(lease.keep(drain.clone()));
    tokio::time::sleep(RENEW_INTERVAL / 2).await;
    server.delete();
    tokio::time::sleep(RENEW_INTERVAL).await;
    let after = server.record();
    assert_eq!(
        (after.holder, after.transitions, after.epoch),
        (before.holder, before.transitions, before.epoch)
    );
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
}

#[tokio::test(start_paused = true)]
async fn an_epoch_in_the_lease_never_falls() {
    let server = Server::default();
    let lease = server.take("pod-a").await;
    for (said, known) in [(5, 5), (9, 9), (7, 9)] {
        lease.remember(epoch(said)).await.expect("remembered");
        assert_eq!(server.record().epoch, Some(epoch(known)));
    }
    lease.release().await;
    assert_eq!(
        (server.record().epoch, &*server.record().holder),
        (Some(epoch(9)), "")
    );
}

#[test]
fn the_holder_is_the_pod_and_outside_pods_the_process() {
    assert_eq!(holder(Some("1b2c ")), "1b2c");
    let outside = holder(Some(""));
    assert!(
        outside.ends_with(&format!("_{}", std::process::id())),
        "{outside}"
    );
    assert_eq!(outside, holder(None));
}
