//! Tests of the retry interval for a kind that cannot be followed, and of its reports.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{Request, Response};
use kube::{Client, client::Body};
use serde_json::json;
use shared::api::ServiceExport;

use super::*;
use crate::watch::KeptExport;

const FIVE_MINUTES: Duration = Duration::from_secs(300);
/// Requests of five minutes: some at first, then one every five to ten seconds.
const REQUESTS_MAX: usize = 80;

/// An API server that answers lists and watches with these HTTP codes; 200 is an empty list.
async fn lists_and_watches(list: u16, watch: u16) -> (usize, usize) {
    let (lists, watches) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (lists.clone(), watches.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let (count, code) = if is_watch {
            (&counted.1, watch)
        } else {
            (&counted.0, list)
        };
        count.fetch_add(1, Ordering::Relaxed);
        let answer = match code {
            200 => json!({"kind": "ServiceExportList", "apiVersion": "multicluster.x-k8s.io/v1beta1",
                "metadata": {"resourceVersion": "7"}, "items": []}),
            _ => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": "no", "message": "no"}),
        };
        let answer = Response::builder()
            .status(code)
            .body(Body::from(answer.to_string().into_bytes()));
        async move { answer }
    });
    let api = Api::<ServiceExport>::all(Client::new(service, "default"));
    let (store, drain) = (Watched::<KeptExport>::new(|_| None), CancellationToken::new());
    let five_minutes = tokio::time::timeout(FIVE_MINUTES, follow(api, &store, &drain));
    assert!(five_minutes.await.is_err(), "it never gives up");
    assert!(!store.is_listed() || list == 200);
    (lists.load(Ordering::Relaxed), watches.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_is_asked_for_less_and_less() {
    for code in [401, 403, 404, 410, 429, 500, 503] {
        let (lists, _) = lists_and_watches(code, 200).await;
        assert!((30..=REQUESTS_MAX).contains(&lists), "{code}: {lists} lists");
    }
}

/// An API server with one export that refuses every list and watch from `refusing.0` to `refusing.1`, and ends each watch
/// after a second.
fn with_refusals(begun: Instant, refusing: (u64, u64)) -> Api<ServiceExport> {
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let is_refused = (refusing.0..refusing.1).contains(&begun.elapsed().as_secs());
        let (code, answer) = if is_refused {
            let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "no role lets you read it"});
            (403, refusal.to_string())
        } else if is_watch {
            (200, String::new())
        } else {
            let list = json!({"kind": "ServiceExportList", "apiVersion": "multicluster.x-k8s.io/v1beta1",
                "metadata": {"resourceVersion": "7"}, "items": [export_json("cart", json!({}))]});
            (200, list.to_string())
        };
        let answer = Response::builder()
            .status(code)
            .body(Body::from(answer.into_bytes()));
        async move {
            if is_watch {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            answer
        }
    });
    Api::all(Client::new(service, "default"))
}

/// Follows for five minutes an API server that refuses so; tells whether the kind became unknown, whether its watch was
/// shown as failing, and whether it still is at the end.
async fn followed_with_refusals(refusing: (u64, u64)) -> (bool, bool, bool) {
    let (store, drain) = (Watched::<KeptExport>::new(|_| None), CancellationToken::new());
    let mut listed = store.listed();
    let api = with_refusals(Instant::now(), refusing);
    let (mut was_unknown, mut was_failing) = (false, false);
    let look = async {
        listed
            .wait_for(|listed| *listed)
            .await
            .expect("the store is kept");
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            was_unknown |= !store.is_listed();
            was_failing |= store.is_followed_badly();
            assert!(store.get("shop", "cart").is_some(), "what is known of it stays");
        }
    };
    let both = futures::future::join(follow(api, &store, &drain), look);
    let over = tokio::time::timeout(FIVE_MINUTES, both).await;
    assert!(over.is_err(), "it never gives up");
    (was_unknown, was_failing, store.is_followed_badly())
}

#[tokio::test(start_paused = true)]
async fn a_kind_stays_known_over_refusals_that_pass_and_lasting_ones_are_told() {
    assert_eq!(followed_with_refusals((20, 22)).await, (false, false, false));
    assert_eq!(followed_with_refusals((20, 70)).await, (false, true, false));
    assert_eq!(followed_with_refusals((20, 150)).await, (true, true, false));
    assert_eq!(followed_with_refusals((20, 900)).await, (true, true, true));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_can_be_listed_and_not_watched_is_asked_for_less_and_less() {
    for code in [403, 500] {
        let (lists, watches) = lists_and_watches(200, code).await;
        assert!(lists <= REQUESTS_MAX, "{code}: {lists} lists");
        assert!(
            (30..=REQUESTS_MAX).contains(&watches),
            "{code}: {watches} watches"
        );
    }
}

fn init() -> Event<ServiceExport> {
    Event::Init
}

#[test]
fn people_are_told_of_changes_and_not_of_retries() {
    let mut course = Course::default();
    let now = Instant::now();
    let retry = |course: &mut Course, failure| {
        assert_eq!(course.told(&init(), now), None);
        course.failed(failure, now, 0)
    };
    let (_, notice) = retry(&mut course, Failure::NotServed);
    assert_eq!(notice, Some(Notice::Failing(Failure::NotServed)));
    for _ in 0..10 {
        assert_eq!(retry(&mut course, Failure::NotServed).1, None);
        assert_eq!(retry(&mut course, Failure::Interrupted).1, None);
    }
    assert_eq!(retry(&mut course, Failure::NotServed).0, RETRY_LONGEST / 2);
    // It is listed: whether it can be watched too shows in a moment.
    assert_eq!(course.told(&Event::<ServiceExport>::InitDone, now), None);
    assert_eq!(course.good_at(), Some(now + GOOD_WATCH));
    assert_eq!(course.good(), Some(Notice::Recovered));
    assert_eq!((course.good(), course.good_at()), (None, None));
    assert_eq!(retry(&mut course, Failure::Interrupted), (RETRY_FIRST / 2, None));
}

#[test]
fn an_api_server_that_starts_again_is_not_worth_a_warning() {
    let mut course = Course::default();
    let notices: Vec<_> = (0..10)
        .filter_map(|_| course.failed(Failure::Interrupted, Instant::now(), 0).1)
        .collect();
    assert_eq!(notices, [Notice::Failing(Failure::Interrupted)]);
    let mut course = Course::default();
    let few = (1..FAILURES_TOLD).all(|_| course.failed(Failure::Interrupted, Instant::now(), 0).1.is_none());
    assert!(few && course.good().is_none());
}

fn export_json(name: &str, labels: serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "5"},
        "spec": {"exportedLabels": labels}})
}

/// An API server whose first list is good, whose watch then tells of an export that cannot be decoded, and which lists it
/// from then on. The second watch tells of it too, and later ones of nothing.
fn with_one_that_cannot_be_decoded() -> Api<ServiceExport> {
    let (lists, watches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let is_quiet = is_watch && watches.fetch_add(1, Ordering::Relaxed) >= 2;
        let broken = export_json("broken", json!({"team": 7}));
        let answer = if is_watch {
            json!({"type": "MODIFIED", "object": broken}).to_string() + "\n"
        } else {
            let known = lists.fetch_add(1, Ordering::Relaxed) == 0;
            let first = export_json(
                "broken",
                json!({"team": if known { json!("a") } else { json!(7) }}),
            );
            json!({"kind": "ServiceExportList", "apiVersion": "multicluster.x-k8s.io/v1beta1",
                "metadata": {"resourceVersion": "7"}, "items": [first, export_json("good", json!({}))]})
            .to_string()
        };
        let answer = Response::builder().body(Body::from(answer.into_bytes()));
        async move {
            if is_quiet {
                std::future::pending::<()>().await;
            }
            answer
        }
    });
    Api::all(Client::new(service, "default"))
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_unknown_and_the_others_are_read() {
    let (store, drain) = (Watched::<KeptExport>::new(|_| None), CancellationToken::new());
    let api = with_one_that_cannot_be_decoded();
    let a_minute = tokio::time::timeout(Duration::from_secs(60), follow(api, &store, &drain));
    assert!(a_minute.await.is_err(), "it goes on");
    assert!(store.is_listed());
    assert!(store.get("shop", "good").is_some());
    assert!(store.get("shop", "broken").is_some(), "it is as it was known");
    assert_eq!(store.unreadable_count(), 1);
    assert!(store.is_unreadable("shop", "broken"));
    assert!(store.unknown().is_empty(), "something is known of it");
}
