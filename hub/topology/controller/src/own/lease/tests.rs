//! Two hubs and the Lease of one management cluster.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use shared::testing::api_server::{Asked, ScriptedServer};

use super::*;

/// One Lease, as an API server keeps it.
#[derive(Default)]
struct Kept {
    lease: Option<Value>,
    version: u64,
    /// True if every answer is an error.
    fails: bool,
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
    });
    (code, status)
}

fn answer(kept: &mut Kept, asked: &Asked) -> (u16, Value) {
    if kept.fails {
        return status(500, "InternalError");
    }
    let there = kept.lease.clone();
    match (asked.method.as_str(), there) {
        ("GET", Some(lease)) => return (200, lease),
        ("GET", None) => return status(404, "NotFound"),
        ("POST", Some(_)) => return status(409, "AlreadyExists"),
        ("PUT", there) => {
            let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
            if there.as_ref().map(version) != Some(version(&asked.body)) {
                return status(409, "Conflict");
            }
        }
        _ => {}
    }
    kept.version += 1;
    let mut lease = asked.body.clone();
    lease["metadata"]["resourceVersion"] = json!(kept.version.to_string());
    kept.lease = Some(lease.clone());
    (200, lease)
}

/// A management cluster, and the time of all.
struct Place {
    kept: Arc<Mutex<Kept>>,
    client: Client,
    millis: Arc<AtomicU64>,
}

impl Place {
    async fn new() -> Self {
        let _ = shared::tls::install_crypto_provider();
        let kept = Arc::new(Mutex::new(Kept::default()));
        let answering = kept.clone();
        let server =
            ScriptedServer::start(move |asked| answer(&mut answering.lock().expect("one at a time"), asked))
                .await;
        let config = kube::Config::new(server.uri.parse().expect("a URI"));
        Self {
            kept,
            client: Client::try_from(config).expect("a client"),
            millis: Arc::default(),
        }
    }

    fn hub(&self, name: &str) -> WriterLease {
        let millis = self.millis.clone();
        let clock: Monotonic = Arc::new(move || Duration::from_millis(millis.load(Ordering::SeqCst)));
        WriterLease::new(self.client.clone(), name, clock)
    }

    fn pass(&self, seconds: u64) {
        self.millis.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_second_hub_is_refused_as_long_as_the_first_renews() {
    let place = Place::new().await;
    let (mut first, mut second) = (place.hub("a"), place.hub("b"));
    assert_eq!(first.turn().await.expect("answered"), None);
    for _ in 0..10 {
        assert_eq!(
            second.turn().await.expect("answered").as_deref(),
            Some(first.candidate.holder())
        );
        place.pass(30);
        assert_eq!(first.turn().await.expect("answered"), None);
    }
    assert_eq!(
        second.turn().await.expect("answered").as_deref(),
        Some(first.candidate.holder())
    );
    place.pass(DURATION.as_secs());
    assert_eq!(second.turn().await.expect("answered"), None, "it stood still");
    assert_eq!(
        first.turn().await.expect("answered").as_deref(),
        Some(second.candidate.holder())
    );
}

#[tokio::test]
async fn a_lease_that_is_given_back_is_taken_at_once() {
    let place = Place::new().await;
    let (mut first, mut second) = (place.hub("a"), place.hub("b"));
    assert_eq!(first.turn().await.expect("answered"), None);
    assert!(second.turn().await.expect("answered").is_some());
    first.release().await;
    assert_eq!(second.turn().await.expect("answered"), None);
    place.hub("c").release().await;
    assert!(
        place.hub("c").turn().await.expect("answered").is_some(),
        "it was not its own"
    );
    // The same hub after a crash.
    assert_eq!(place.hub("b").turn().await.expect("answered"), None);
}

#[tokio::test]
async fn of_two_hubs_with_copies_of_one_log_one_writes() {
    let place = Place::new().await;
    let (mut first, mut second) = (place.hub("a"), place.hub("a"));
    assert_eq!(first.turn().await.expect("answered"), None);
    assert_eq!(second.turn().await.expect("answered"), None, "as after a restart");
    for _ in 0..3 {
        assert_eq!(
            first.turn().await.expect("answered").as_deref(),
            Some(second.candidate.holder())
        );
        place.pass(30);
        assert_eq!(second.turn().await.expect("answered"), None);
    }
}

#[tokio::test]
async fn who_cannot_renew_ends_writing_and_who_can_goes_on() {
    let place = Place::new().await;
    let mut hub = place.hub("a");
    assert_eq!(hub.turn().await.expect("answered"), None);
    let (ended, lost) = (CancellationToken::new(), CancellationToken::new());
    place.kept.lock().expect("one at a time").fails = true;
    let (millis, begun) = (place.millis.clone(), lost.clone());
    let time = async move {
        // The renewals ask this clock; it runs until one of them gives up.
        while !begun.is_cancelled() {
            millis.fetch_add(1_000, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(hub.keep(&ended, &lost), time);
    assert!(lost.is_cancelled());
    place.kept.lock().expect("one at a time").fails = false;
    let (ended, lost) = (CancellationToken::new(), CancellationToken::new());
    ended.cancel();
    hub.keep(&ended, &lost).await;
    assert!(!lost.is_cancelled());
}

#[tokio::test]
async fn a_hub_that_finds_another_one_in_its_place_ends_writing() {
    let place = Place::new().await;
    let (mut first, mut second) = (place.hub("a"), place.hub("b"));
    assert_eq!(first.turn().await.expect("answered"), None);
    assert!(second.turn().await.expect("answered").is_some());
    place.pass(DURATION.as_secs());
    assert_eq!(second.turn().await.expect("answered"), None);
    let (ended, lost) = (CancellationToken::new(), CancellationToken::new());
    first.keep(&ended, &lost).await;
    assert!(lost.is_cancelled());
}

#[tokio::test]
async fn who_waits_says_so_and_ends_with_the_drain() {
    let place = Place::new().await;
    let (mut first, mut second) = (place.hub("a"), place.hub("b"));
    assert_eq!(first.turn().await.expect("answered"), None);
    let drain = CancellationToken::new();
    let metrics = OwnMetrics::default();
    let ends = async {
        while !metrics.is_refused() {
            tokio::task::yield_now().await;
        }
        drain.cancel();
        std::future::pending::<()>().await;
    };
    let won = tokio::select! {
        won = second.won(&drain, &metrics) => won,
        () = ends => unreachable!("it waits for ever"),
    };
    assert!(!won);
}
