//! Calls and first bytes, without a network.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use shared::model::KeyFingerprint;
use tower::ServiceExt;

use super::*;
use crate::inspect::tests::inspected_hub;

const EAST: &str = "spiffe://example.org/clusterset/default/cluster/east";
const ALICE: &str = "spiffe://example.org/clusterset/default/operator/alice";
const DASHBOARD: &str = "spiffe://example.org/clusterset/default/reader/dashboard";

fn peer(uri: &str) -> Arc<PeerIdentity> {
    Arc::new(inspected_hub::peer(uri, KeyFingerprint([1; 32])))
}

fn request(peer: &Arc<PeerIdentity>, path: &str, bytes: usize) -> http::Request<Body> {
    let body = Body::new(Full::new(Bytes::from(vec![0; bytes])));
    let mut request = http::Request::post(path).body(body).expect("a request");
    request.extensions_mut().insert(peer.clone());
    request
}

/// A service that reads the whole request, or says what stopped it, and keeps its answer open.
async fn ask(metrics: &DoorMetrics, request: http::Request<Body>) -> http::Response<Body> {
    let read = |request: http::Request<Body>| async move {
        let introduction = request.extensions().get::<Introduction>().cloned();
        let read = request.into_body().collect().await;
        let answer = match read {
            Ok(_) => http::Response::new(Body::new(Full::new(Bytes::from_static(b"answer")))),
            Err(status) => status.into_http(),
        };
        drop(introduction);
        Ok::<_, Infallible>(answer)
    };
    let keeper = Doors(metrics.clone()).layer(tower::service_fn(read));
    keeper.oneshot(request).await.expect("infallible")
}

fn refused(answer: &http::Response<Body>) -> bool {
    Status::from_header_map(answer.headers())
        .is_some_and(|status| status.code() == tonic::Code::ResourceExhausted)
}

#[tokio::test]
async fn calls_of_one_identity_are_bounded_and_end_with_their_answers() {
    let (metrics, east) = (DoorMetrics::default(), peer(EAST));
    let mut open = Vec::new();
    for _ in 0..MEMBER_CALLS_MAX {
        let answer = ask(&metrics, request(&east, "/a", 1)).await;
        assert!(!refused(&answer));
        open.push(answer);
    }
    assert!(refused(&ask(&metrics, request(&east, "/a", 1)).await));
    assert_eq!(metrics.count("calls"), 1);
    assert!(!refused(&ask(&metrics, request(&peer(ALICE), "/a", 1)).await));
    let dashboard = peer(DASHBOARD);
    let mut read = Vec::new();
    for _ in 0..READER_CALLS_MAX {
        read.push(ask(&metrics, request(&dashboard, "/a", 1)).await);
    }
    assert!(!read.iter().any(refused));
    assert!(refused(&ask(&metrics, request(&dashboard, "/a", 1)).await));
    open.pop();
    assert!(!refused(&ask(&metrics, request(&east, "/a", 1)).await));
}

#[tokio::test]
async fn a_member_says_little_before_it_has_introduced_itself() {
    let (metrics, east) = (DoorMetrics::default(), peer(EAST));
    let (little, much) = (HELLO_BYTES_MAX, HELLO_BYTES_MAX + 1);
    assert!(!refused(&ask(&metrics, request(&east, "/a", little)).await));
    assert!(refused(&ask(&metrics, request(&east, "/a", much)).await));
    assert!(!refused(&ask(&metrics, request(&peer(ALICE), "/a", much)).await));
    assert!(refused(
        &ask(&metrics, request(&peer(DASHBOARD), "/a", much)).await
    ));
    let stream = "/tributary.v1.Sync/Stream";
    assert!(
        !refused(&ask(&metrics, request(&east, stream, much)).await),
        "one at a time"
    );
    let another = east.calls.introduce_at_length().expect("the first has ended");
    assert!(refused(&ask(&metrics, request(&east, stream, much)).await));
    assert_eq!(metrics.count("before_hello"), 3);
    drop(another);
    assert!(!refused(&ask(&metrics, request(&east, stream, much)).await));
}

#[tokio::test]
async fn after_its_hello_a_stream_is_bounded_by_flow_control_alone() {
    let (metrics, east) = (DoorMetrics::default(), peer(EAST));
    let stream = request(&east, "/tributary.v1.Sync/Stream", HELLO_BYTES_MAX + 1);
    let _another = east.calls.introduce_at_length().expect("the first");
    let stream = hello::bounded(stream, &east, &metrics);
    let introduction = stream.extensions().get::<Introduction>().cloned();
    introduction.expect("streams introduce themselves").said();
    let read = stream.into_body().collect().await;
    assert_eq!(read.expect("all of it").to_bytes().len(), HELLO_BYTES_MAX + 1);
}
