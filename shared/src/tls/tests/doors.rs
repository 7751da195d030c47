//! Tests of the connection limits of the port, and of the order of eviction.

use std::{sync::Arc, time::Duration};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    ends::{Hub, dialled, in_time},
    pki::{Authority, EAST, HUB},
};
use crate::tls::{
    BoxedIo, ConnectionEnd, Dial, DoorBounds, HTTP2_KEEPALIVE_INTERVAL, HTTP2_KEEPALIVE_TIMEOUT, Handshake,
    LiveCredentials,
};

const ALICE: &str = "spiffe://example.org/clusterset/default/operator/alice";
const DASHBOARD: &str = "spiffe://example.org/clusterset/default/reader/dashboard";
const WEST: &str = "spiffe://example.org/clusterset/default/cluster/west";
/// The first byte of a TLS record with a handshake in it.
const HANDSHAKE_RECORD: &[u8] = &[0x16];

async fn socket(hub: &Hub) -> BoxedIo {
    let address = "https://hub:7443".parse().expect("address");
    let dialled = in_time("the hub takes a socket", hub.pipes.dial(address));
    dialled.await.expect("pipe")
}

async fn closed(socket: &mut BoxedIo) {
    let mut heard = [0; 1];
    let read = in_time("the hub closes a socket", socket.read(&mut heard)).await;
    assert_eq!(read.expect("closed by the hub"), 0);
}

/// The refusal to a client for which the hub has no place.
async fn refused(hub: &Hub, credentials: Arc<LiveCredentials>) -> String {
    let mut connector = hub.connector(credentials, &["https://hub:7443"]);
    let mut refused = dialled(&mut connector).await.expect("the handshake succeeds");
    let mut said = Vec::new();
    let refusal = in_time("the hub refuses a connection", refused.read_to_end(&mut said));
    refusal.await.expect("closed");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(start_paused = true)]
async fn silent_clients_hold_nobody_up_and_are_let_go() {
    let ca = Authority::new("ca");
    let mut hub = Hub::within(DoorBounds::default(), ca.live(HUB));
    let began = tokio::time::Instant::now();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(socket(&hub).await);
    }
    hub.join(&ca.live(EAST)).await.works().await;
    assert_eq!(hub.metrics.handshakes(Handshake::TimedOut), 0);
    for socket in &mut silent {
        closed(socket).await;
    }
    assert_eq!(hub.metrics.handshakes(Handshake::TimedOut), 20);
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}: silence ends after two seconds",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_speaks_slowly_has_longer_but_not_for_ever() {
    let ca = Authority::new("ca");
    let hub = Hub::within(DoorBounds::default(), ca.live(HUB));
    let began = tokio::time::Instant::now();
    let mut slow = socket(&hub).await;
    // A record that promises 256 bytes, which come one by one.
    slow.write_all(&[0x16, 3, 1, 1, 0]).await.expect("sent");
    let mut answered = [0; 1];
    loop {
        match tokio::time::timeout(Duration::from_millis(1_500), slow.read(&mut answered)).await {
            Ok(ended) => break assert_eq!(ended.unwrap_or_default(), 0, "closed"),
            Err(_) => slow.write_all(&[1]).await.expect("sent"),
        }
    }
    assert!(began.elapsed() >= Duration::from_secs(9), "{:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(13), "{:?}", began.elapsed());
    assert_eq!(hub.metrics.handshakes(Handshake::TimedOut), 1);
}

#[tokio::test(start_paused = true)]
async fn under_pressure_the_oldest_silent_socket_goes_for_the_newest() {
    let ca = Authority::new("ca");
    let few = DoorBounds {
        handshakes: 3,
        ..DoorBounds::default()
    };
    let mut hub = Hub::within(few, ca.live(HUB));
    let mut speaks = socket(&hub).await;
    speaks.write_all(HANDSHAKE_RECORD).await.expect("sent");
    let (mut oldest, mut newest) = (socket(&hub).await, socket(&hub).await);
    closed(&mut oldest).await;
    assert_eq!(
        hub.metrics.handshakes(Handshake::Displaced),
        1,
        "not the one that spoke"
    );
    hub.join(&ca.live(EAST)).await.works().await;
    closed(&mut newest).await;
    assert_eq!(
        hub.metrics.handshakes(Handshake::Displaced),
        2,
        "the last place is kept free"
    );
    closed(&mut speaks).await;
    assert_eq!(
        hub.metrics.handshakes(Handshake::TimedOut),
        1,
        "the one that spoke"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_spoke_and_is_stalled_goes_when_nobody_is_silent() {
    let ca = Authority::new("ca");
    let few = DoorBounds {
        handshakes: 2,
        ..DoorBounds::default()
    };
    let mut hub = Hub::within(few, ca.live(HUB));
    let mut speakers = Vec::new();
    for _ in 0..5 {
        let mut speaker = socket(&hub).await;
        speaker.write_all(HANDSHAKE_RECORD).await.expect("sent");
        speakers.push(speaker);
    }
    let began = tokio::time::Instant::now();
    hub.join(&ca.live(EAST)).await.works().await;
    assert!(
        began.elapsed() < Duration::from_millis(1_500),
        "{:?}: nobody waits until those end who say no more",
        began.elapsed()
    );
    closed(&mut speakers[0]).await;
    assert!(hub.metrics.handshakes(Handshake::Displaced) >= 4);
}

#[tokio::test]
async fn who_has_too_many_connections_loses_the_one_that_is_idle_for_longest() {
    let ca = Authority::new("ca");
    let two = DoorBounds {
        of_member: 2,
        ..DoorBounds::default()
    };
    let mut hub = Hub::within(two, ca.live(HUB));
    let east = ca.live(EAST);
    let mut first = hub.join(&east).await;
    first.works().await;
    let mut second = hub.join(&east).await;
    second.works().await;
    let call = first.server.peer().calls.begin(1).expect("the first");
    let mut third = hub.join(&east).await;
    assert_eq!(
        second.server.peer().lifetime.why(),
        Some(&ConnectionEnd::Displaced),
        "over the first a call is open"
    );
    let mut heard = [0; 1];
    let cut = in_time("the hub cuts the idle one", second.server.read(&mut heard)).await;
    assert_eq!(cut.expect("cut"), 0);
    assert!(first.server.peer().lifetime.why().is_none());
    first.works().await;
    third.works().await;
    hub.join(&ca.live(WEST)).await.works().await;
    drop(call);
}

#[tokio::test]
async fn who_has_too_many_connections_in_use_is_told_so() {
    let ca = Authority::new("ca");
    let one = DoorBounds {
        of_member: 1,
        ..DoorBounds::default()
    };
    let mut hub = Hub::within(one, ca.live(HUB));
    let east = ca.live(EAST);
    let first = hub.join(&east).await;
    let call = first.server.peer().calls.begin(1).expect("the first");
    let said = refused(&hub, east.clone()).await;
    assert!(said.contains("as many connections as it may have (1)"), "{said}");
    assert_eq!(hub.metrics.handshakes(Handshake::Crowded), 1);
    assert!(first.server.peer().calls.begin(1).is_none(), "one call at a time");
    drop(call);
    hub.join(&east).await.works().await;
}

#[tokio::test(start_paused = true)]
async fn dead_connections_lock_nobody_out() {
    let ca = Authority::new("ca");
    let one = DoorBounds {
        of_member: 1,
        ..DoorBounds::default()
    };
    let mut hub = Hub::within(one, ca.live(HUB));
    let east = ca.live(EAST);
    let mut dead = hub.join(&east).await;
    dead.works().await;
    let _call = dead.server.peer().calls.begin(1).expect("the first");
    let probed = HTTP2_KEEPALIVE_INTERVAL + HTTP2_KEEPALIVE_TIMEOUT;
    assert!(
        one.connection_silence >= probed,
        "who lives answers a probe before that"
    );
    tokio::time::advance(one.connection_silence + Duration::from_secs(1)).await;
    hub.join(&east).await.works().await;
    assert_eq!(dead.server.peer().lifetime.why(), Some(&ConnectionEnd::Displaced));
}

#[tokio::test]
async fn the_last_places_are_for_operators() {
    let ca = Authority::new("ca");
    let two = DoorBounds {
        connections: 2,
        reserve: 1,
        ..DoorBounds::default()
    };
    let mut hub = Hub::within(two, ca.live(HUB));
    let _east = hub.join(&ca.live(EAST)).await;
    let said = refused(&hub, ca.live(WEST)).await;
    assert!(said.contains("file descriptors"), "{said}");
    assert_eq!(hub.metrics.handshakes(Handshake::Full), 1);
    let said = refused(&hub, ca.live(DASHBOARD)).await;
    assert!(
        said.contains("file descriptors"),
        "a reader is no operator: {said}"
    );
    let alice = hub.join(&ca.live(ALICE)).await;
    drop(alice);
    hub.join(&ca.live(ALICE)).await.works().await;
}

#[tokio::test(start_paused = true)]
async fn who_floods_with_control_frames_loses_the_connection_and_nobody_else_does() {
    let ca = Authority::new("ca");
    let mut hub = Hub::within(DoorBounds::default(), ca.live(HUB));
    let (mut flooding, mut other) = (hub.join(&ca.live(EAST)).await, hub.join(&ca.live(WEST)).await);
    let flood = async {
        let said = flooding
            .client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await;
        said.expect("the preface is taken");
        let window_update = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1].repeat(100);
        while flooding.client.write_all(&window_update).await.is_ok() {}
    };
    let mut heard = Vec::new();
    let reading = async {
        let read = flooding.server.read_to_end(&mut heard).await;
        read.expect("the end is as that of a client that goes")
    };
    let read = tokio::select! {
        () = flood => panic!("nobody reads on"),
        read = in_time("the hub stops to read", reading) => read,
    };
    assert!((26_000..100_000).contains(&read), "{read} bytes of frames");
    assert_eq!(hub.metrics.connections_flooded(), 1);
    other.works().await;
}
