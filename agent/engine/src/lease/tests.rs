//! Agents and one API server that knows nothing but their Lease.

use api::server::NoAnswer;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kube_core::ResourceExt;
use model::UnixMillis;
use serde_json::json;

use super::{machine::DURATION, *};

/// The Lease as the API server has it.
#[derive(Clone, Default)]
struct Server {
    stored: Arc<Mutex<(Option<Lease>, u64)>>,
    /// It answers nothing at all.
    silent: Arc<std::sync::atomic::AtomicBool>,
    /// So long it takes for each answer, in milliseconds.
    takes: Arc<std::sync::atomic::AtomicU64>,
    asked: Arc<std::sync::atomic::AtomicUsize>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        Client::new(move |request: Request<Bytes>| {
            let server = server.clone();
            async move {
                server.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if server.silent.load(std::sync::atomic::Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                let (code, answer) = server.answer(request.method(), request.body());
                // The request is carried out, whether anybody waits for the answer or not.
                let takes = server.takes.load(std::sync::atomic::Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(takes)).await;
                let body = Bytes::from(answer.to_string());
                Ok::<_, NoAnswer>(Response::builder().status(code).body(body)?)
            }
        })
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (StatusCode, serde_json::Value) {
        let mut stored = self.stored.lock().expect("not poisoned");
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
        self.stored.lock().expect("not poisoned").0.clone()
    }

    fn delete(&self) {
        self.stored.lock().expect("not poisoned").0 = None;
    }

    fn record(&self) -> machine::Record {
        object::record(&self.lease().expect("it stands"))
    }

    fn silence(&self, silent: bool) {
        self.silent.store(silent, std::sync::atomic::Ordering::Relaxed);
    }

    fn asked(&self) -> usize {
        self.asked.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn election(&self, holder: &str, permit: &WritePermit) -> Election {
        let clock_and_permit = (monotonic(), permit.clone());
        Election::new(
            self.client(),
            "x",
            holder,
            clock_and_permit,
            LeaseMetrics::default(),
        )
    }

    async fn take(&self, holder: &str) -> AgentLease {
        let mut election = self.election(holder, &WritePermit::default());
        election.won(|| {}).await.expect("taken")
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
async fn the_end_of_the_membership_outlives_the_agent_until_a_hub_admits_the_cluster() {
    let server = Server::default();
    let (first, key) = (server.take("pod-a").await, KeyFingerprint([7; 32]));
    assert_eq!(first.ended(), None);
    first.remember_end(Some(key)).await.expect("remembered");
    let second = server.take("pod-a").await;
    assert_eq!(second.ended(), Some(key));
    let before = server.asked();
    second.remember_end(Some(key)).await.expect("known");
    assert_eq!(server.asked(), before, "nothing is written that is known");
    second.remember_end(None).await.expect("remembered");
    assert_eq!(server.take("pod-a").await.ended(), None);
}

#[tokio::test(start_paused = true)]
async fn another_pod_waits_for_one_that_renews_and_takes_over_from_one_that_does_not() {
    let (server, drain) = (Server::default(), CancellationToken::new());
    let keeping = tokio::spawn(server.take("pod-a").await.keep(drain.clone()));
    let waits = std::sync::atomic::AtomicUsize::new(0);
    let permit = WritePermit::default();
    let mut election = server.election("pod-b", &permit);
    let metrics = election.metrics.clone();
    let mut taking = Box::pin(election.won(|| {
        waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }));
    let hour = tokio::time::timeout(Duration::from_secs(3_600), &mut taking);
    assert!(hour.await.is_err(), "it is renewed");
    assert_eq!((metrics.held.get(), permit.holds()), (0, false));
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
    let clock = Instant::now();
    let lease = taking.await.expect("taken");
    let waited = clock.elapsed();
    assert!(
        waited > DURATION - 2 * RETRY_PERIOD && waited <= DURATION + RETRY_PERIOD,
        "{waited:?}"
    );
    assert_eq!(
        (
            lease.transitions(),
            metrics.held.get(),
            waits.into_inner(),
            permit.holds()
        ),
        (2, 1, 1, true)
    );
    assert_eq!(&*server.record().holder, "pod-b");
    assert_eq!(server.record().duration, DURATION);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_request() {
    let (server, drain) = (Server::default(), CancellationToken::new());
    let keeping = tokio::spawn(server.take("pod-a").await.keep(drain.clone()));
    tokio::time::sleep(RETRY_PERIOD / 2).await;
    let before = server.asked();
    tokio::time::sleep(60 * RETRY_PERIOD).await;
    assert_eq!(server.asked() - before, 60);
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_cut_off_stops_writing_and_goes_on_when_it_is_not() {
    let (server, drain, permit) = (
        Server::default(),
        CancellationToken::new(),
        WritePermit::default(),
    );
    let lease = server.election("pod-a", &permit).won(|| {}).await.expect("taken");
    let metrics = lease.metrics.clone();
    let keeping = tokio::spawn(lease.keep(drain.clone()));
    tokio::time::sleep(10 * RETRY_PERIOD + RETRY_PERIOD / 2).await;
    assert!(permit.holds());
    server.silence(true);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(permit.holds(), "renewed half a second before");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!permit.holds(), "not renewed for more than four seconds");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!permit.holds() && !keeping.is_finished(), "it keeps what it has");
    assert_eq!(metrics.suspended.get(), 1);
    server.silence(false);
    let since = Instant::now();
    permit.given().await;
    assert!(
        since.elapsed() <= RENEW_WAIT + RETRY_PERIOD,
        "{:?}",
        since.elapsed()
    );
    tokio::time::sleep(RETRY_PERIOD).await;
    assert_eq!(metrics.suspended.get(), 0);
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
}

#[tokio::test(start_paused = true)]
async fn one_that_was_replaced_may_write_nothing_any_more() {
    let (server, permit) = (Server::default(), WritePermit::default());
    let lease = server.election("pod-a", &permit).won(|| {}).await.expect("taken");
    // A newer start in the same pod takes it at once.
    server.take("pod-a").await;
    assert!(permit.holds(), "it does not know yet");
    let error = lease.renew().await.expect_err("lost");
    assert!(error.is::<AnotherHolder>() && !permit.holds(), "{error}");
    assert!(lease.remember(epoch(1)).await.is_err());
    assert!(!permit.holds());
}

#[tokio::test(start_paused = true)]
async fn a_clean_end_lets_the_next_one_in() {
    let server = Server::default();
    let first = server.take("pod-a").await;
    let taking = tokio::spawn({
        let server = server.clone();
        async move { server.take("pod-b").await }
    });
    tokio::time::sleep(DURATION / 2).await;
    assert!(!taking.is_finished());
    let clock = Instant::now();
    first.release().await;
    assert_eq!(taking.await.expect("no panic").transitions(), 2);
    assert!(clock.elapsed() <= RETRY_PERIOD);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_deleted_while_the_agent_runs_comes_back_with_the_epoch() {
    let (server, drain) = (Server::default(), CancellationToken::new());
    let lease = server.take("pod-a").await;
    lease.remember(epoch(9)).await.expect("remembered");
    let before = server.record();
    let keeping = tokio::spawn(lease.keep(drain.clone()));
    tokio::time::sleep(RETRY_PERIOD / 2).await;
    server.delete();
    tokio::time::sleep(RETRY_PERIOD).await;
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

/// Each request is answered in time. A moment in which none was does not make the next renewals longer.
#[tokio::test(start_paused = true)]
async fn a_slow_api_server_that_was_slower_for_a_moment_does_not_end_writing_for_ever() {
    for usual in [1_700, 2_500, 3_500, 3_800] {
        let (server, drain, permit) = (
            Server::default(),
            CancellationToken::new(),
            WritePermit::default(),
        );
        let lease = server.election("pod-a", &permit).won(|| {}).await.expect("taken");
        let keeping = tokio::spawn(lease.keep(drain.clone()));
        let takes = |millis| server.takes.store(millis, std::sync::atomic::Ordering::Relaxed);
        for slower in [4_000, 9_000, 30_000] {
            takes(usual);
            tokio::time::sleep(Duration::from_secs(60)).await;
            takes(slower);
            tokio::time::sleep(Duration::from_secs(6)).await;
        }
        takes(usual);
        tokio::time::sleep(Duration::from_secs(60)).await;
        for _ in 0..60 {
            let given = tokio::time::timeout(Duration::from_secs(5), permit.given()).await;
            assert!(given.is_ok(), "{usual} ms for an answer, and never renewed again");
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        drain.cancel();
        keeping.await.expect("no panic").expect("drained");
    }
}

/// A connection that swallowed one request costs another request, and no leader.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_never_answered_suspends_nothing() {
    let (server, drain, permit) = (
        Server::default(),
        CancellationToken::new(),
        WritePermit::default(),
    );
    let lease = server.election("pod-a", &permit).won(|| {}).await.expect("taken");
    let keeping = tokio::spawn(lease.keep(drain.clone()));
    tokio::time::sleep(10 * RETRY_PERIOD + RETRY_PERIOD / 2).await;
    server.silence(true);
    tokio::time::sleep(RETRY_PERIOD).await;
    server.silence(false);
    for _ in 0..100 {
        tokio::time::sleep(RETRY_PERIOD / 10).await;
        assert!(permit.holds());
    }
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
}

#[tokio::test(start_paused = true)]
async fn one_that_stands_by_takes_over_from_a_dead_leader_though_each_look_takes_seconds() {
    for takes in [2_100, 3_000, 4_000] {
        let server = Server::default();
        drop(server.take("pod-a").await); // and it is killed
        server.takes.store(takes, std::sync::atomic::Ordering::Relaxed);
        let clock = Instant::now();
        server.take("pod-b").await;
        assert!(
            clock.elapsed() < Duration::from_secs(30),
            "{takes} ms: {:?}",
            clock.elapsed()
        );
    }
}

#[test]
fn the_holder_is_the_pod_and_outside_pods_the_process() {
    assert_eq!(holder(Some("1b2c "), "host"), "1b2c");
    let outside = holder(Some(""), "host");
    assert!(
        outside.ends_with(&format!("_{}", std::process::id())),
        "{outside}"
    );
    assert_eq!(outside, holder(None, "host"));
}

/// An operator annotates the Lease: it is heeded once, and taken off.
#[tokio::test(start_paused = true)]
async fn a_confirmation_on_the_lease_is_heeded_once() {
    let (server, drain) = (Server::default(), CancellationToken::new());
    let lease = server.take("pod-a").await;
    let mut confirmed = lease.confirmations();
    let keeping = tokio::spawn(lease.keep(drain.clone()));
    tokio::time::sleep(10 * RETRY_PERIOD).await;
    assert!(!confirmed.has_changed().expect("it is kept"));
    {
        let mut stored = server.stored.lock().expect("not poisoned");
        let (lease, version) = &mut *stored;
        let lease = lease.as_mut().expect("it stands");
        *version += 1;
        lease.metadata.resource_version = Some(version.to_string());
        let annotations = lease.annotations_mut();
        annotations.insert(names::ANNOTATION_ACCEPT_WITHDRAWALS.into(), "true".into());
    }
    confirmed.changed().await.expect("it is kept");
    tokio::time::sleep(10 * RETRY_PERIOD).await;
    assert_eq!(*confirmed.borrow_and_update(), 1);
    assert!(!object::accepts_withdrawals(&server.lease().expect("it stands")));
    drain.cancel();
    keeping.await.expect("no panic").expect("drained");
}
