//! The client over real sockets, and over API servers that do not answer.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use http::Response;
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ListParams, WatchParams},
    client::Body,
};
use socket2::SockRef;
use tokio::{net::TcpListener, time::Instant};
use tower::Service;

use super::*;
use shared::testing::api_server::RefusingServer;

fn config(uri: &str) -> Config {
    Config::new(uri.parse().expect("a URI"))
}

fn namespaces(client: Client) -> Api<Namespace> {
    Api::all(client)
}

#[tokio::test]
async fn nothing_is_asked_twice_behind_the_back_of_whoever_asked() {
    for code in [429, 503, 504] {
        let server = RefusingServer::start(code).await;
        let client = api_client(config(&server.uri), ApiMetrics::default()).expect("a client");
        namespaces(client).get("x").await.expect_err("refused");
        assert_eq!(server.asked(), 1, "{code}");
    }
}

#[tokio::test]
async fn a_silent_connection_is_asked_whether_the_other_side_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let uri = format!("http://{}", listener.local_addr().expect("an address"));
    let connecting = tcp_connector().call(uri.parse().expect("a URI"));
    let connection = connecting.await.expect("connected");
    let socket = SockRef::from(connection.inner());
    assert!(socket.keepalive().expect("SO_KEEPALIVE"));
    #[cfg(target_os = "linux")]
    assert_eq!(
        (
            socket.tcp_keepalive_time().expect("TCP_KEEPIDLE"),
            socket.tcp_keepalive_interval().expect("TCP_KEEPINTVL"),
            socket.tcp_keepalive_retries().expect("TCP_KEEPCNT"),
            socket.tcp_user_timeout().expect("TCP_USER_TIMEOUT"),
        ),
        (
            KEEPALIVE_AFTER,
            KEEPALIVE_INTERVAL,
            KEEPALIVE_QUESTIONS,
            Some(UNACKNOWLEDGED_WAIT)
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_never_answers_is_given_up_in_seconds() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let uri = format!("http://{}", listener.local_addr().expect("an address"));
    let client = api_client(config(&uri), ApiMetrics::default()).expect("a client");
    let clock = Instant::now();
    let error = namespaces(client).get("x").await.expect_err("no answer");
    assert!(clock.elapsed() <= ANSWER_WAIT + CONNECT_WAIT, "{error}");
}

/// An API server that sends the head of an answer, or not even that, and then nothing.
fn silent(sends_head: bool) -> Client {
    let service = tower::service_fn(move |_: http::Request<Body>| async move {
        if !sends_head {
            std::future::pending::<()>().await;
        }
        let nothing = futures::stream::pending::<Result<Frame<bytes::Bytes>, std::io::Error>>();
        Response::builder().body(StreamBody::new(nothing))
    });
    over(Client::new(service, "default"), ApiMetrics::default())
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_coming_is_given_up_and_a_watch_is_not() {
    for sends_head in [false, true] {
        let api = namespaces(silent(sends_head));
        let clock = Instant::now();
        let errors = [
            api.get("x").await.expect_err("get"),
            api.list(&ListParams::default()).await.expect_err("list"),
            api.delete("x", &Default::default()).await.expect_err("delete"),
        ];
        assert_eq!(clock.elapsed(), 3 * ANSWER_WAIT, "{errors:?}");
        let parameters = WatchParams::default();
        let watching = api.watch(&parameters, "1");
        let clock = Instant::now();
        match watching.await {
            Err(_) => assert!(!sends_head && clock.elapsed() <= Duration::from_secs(30)),
            Ok(events) => {
                let mut events = Box::pin(events);
                let event = futures::StreamExt::next(&mut events);
                let quiet = tokio::time::timeout(Duration::from_secs(280), event).await;
                assert!(sends_head && quiet.is_err(), "a watch may be silent");
            }
        }
    }
}

/// An API server whose answers are these bytes again and again, without an end, and how many were taken.
fn endless(part: &'static [u8]) -> (Client, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let counted = counted.clone();
        let parts = futures::stream::repeat_with(move || {
            counted.fetch_add(part.len() as u64, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Frame::data(bytes::Bytes::from_static(part)))
        });
        async move { Response::builder().body(StreamBody::new(parts)) }
    });
    (
        over(Client::new(service, "default"), ApiMetrics::default()),
        taken,
    )
}

static WHITE_SPACE: [u8; 1024 * 1024] = [b' '; 1024 * 1024];

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_on() {
    let (client, taken) = endless(&WHITE_SPACE);
    let error = namespaces(client)
        .list(&ListParams::default())
        .await
        .expect_err("endless");
    let chain = format!("{:#}", anyhow::Error::from(error));
    assert!(chain.contains("without an end"), "{chain}");
    assert!(taken.load(Ordering::Relaxed) <= ANSWER_BYTES_MAX + 2 * WHITE_SPACE.len() as u64);
}

#[tokio::test]
async fn an_event_without_an_end_is_not_read_on_and_events_without_end_are() {
    let (client, taken) = endless(&WHITE_SPACE);
    let parameters = WatchParams::default();
    let api = namespaces(client);
    let mut events = Box::pin(api.watch(&parameters, "1").await.expect("a watch"));
    while futures::StreamExt::next(&mut events)
        .await
        .expect("not the end")
        .is_ok()
    {}
    assert!(taken.load(Ordering::Relaxed) <= EVENT_BYTES_MAX + 2 * WHITE_SPACE.len() as u64);

    let long = "x".repeat(512 * 1024);
    let object = format!("{{\"metadata\":{{\"name\":\"x\",\"annotations\":{{\"a\":\"{long}\"}}}}}}");
    let event = format!("{{\"type\":\"DELETED\",\"object\":{object}}}\n");
    let event: &'static str = Box::leak(event.into_boxed_str());
    let (client, taken) = endless(event.as_bytes());
    let api = namespaces(client);
    let mut events = Box::pin(api.watch(&parameters, "1").await.expect("a watch"));
    while taken.load(Ordering::Relaxed) <= 2 * EVENT_BYTES_MAX {
        futures::StreamExt::next(&mut events)
            .await
            .expect("not the end")
            .expect("an event");
    }
}

#[tokio::test]
async fn a_proxy_is_refused_with_advice() {
    let mut config = config("https://10.0.0.1");
    config.proxy_url = Some("http://proxy:3128".parse().expect("a URI"));
    let error = api_client(config, ApiMetrics::default()).err().expect("refused");
    assert!(error.to_string().contains("proxy-url"), "{error}");
}

#[test]
fn a_proxy_of_the_environment_is_for_what_no_proxy_does_not_name() {
    let proxied = |no_proxy: &'static str, of_kubeconfig: bool| {
        let mut config = config("https://api.example.org:6443");
        config.proxy_url = Some("http://proxy.example.org:3128".parse().expect("a URI"));
        heed_no_proxy(&mut config, |name| match name {
            "https_proxy" if !of_kubeconfig => Some("http://proxy.example.org:3128".to_owned()),
            "NO_PROXY" => Some(no_proxy.to_owned()),
            _ => None,
        });
        config
    };
    assert!(proxied("localhost,.example.org", false).proxy_url.is_none());
    assert!(
        proxied("*", true).proxy_url.is_some(),
        "a kubeconfig's proxy-url stays"
    );
    let refused = api_client(proxied("localhost", false), ApiMetrics::default());
    let told = refused.err().expect("refused").to_string();
    assert!(
        told.contains("https://api.example.org:6443") && told.contains("NO_PROXY"),
        "{told}"
    );
}
