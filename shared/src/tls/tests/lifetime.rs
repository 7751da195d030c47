//! Tests that no connection outlives its certificate or the maximum age, that its service learns the reason, and that
//! it is cut then.

use std::{collections::BTreeSet, time::Duration};

use tokio::{
    io::AsyncReadExt,
    task::JoinSet,
    time::{Instant, advance},
};
use tonic::{Code, Status};

use super::{
    ends::Hub,
    pki::{Authority, EAST, HUB, Wanted, live},
};
use crate::tls::CONNECTION_AGE_MAX;

const OPERATOR: &str = "spiffe://example.org/clusterset/default/operator/ann";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// The end of a connection whose certificate lasts for so long. It works until `works_until` at least, and is cut
/// before `over`, by the time of the test.
async fn ends(lasts: Duration, works_until: Duration, over: Duration) -> Status {
    let ca = Authority::new("ca");
    let member = live(&ca.issue(&Wanted {
        uris: &[EAST],
        lasts,
        ..Wanted::default()
    }));
    let mut hub = Hub::new(ca.live(HUB));
    let mut pair = hub.join(&member).await;
    pair.works().await;
    advance(works_until).await;
    pair.works().await;
    let lifetime = pair.server.peer().lifetime.clone();
    assert!(lifetime.why().is_none(), "{:?}", lifetime.why());
    let told = tokio::time::timeout(over - works_until, lifetime.ended()).await;
    let told = told.expect("nobody says that it is over");
    // Its server reads its end.
    assert_eq!(pair.server.read(&mut [0]).await.expect("an end"), 0);
    told
}

#[tokio::test(start_paused = true)]
async fn what_is_open_under_a_certificate_ends_with_it() {
    let told = ends(HOUR, HOUR - MINUTE, HOUR + MINUTE).await;
    assert_eq!(told.code(), Code::Unauthenticated);
    assert!(told.message().contains("has expired"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_is_as_old_as_connections_get_ends_and_not_all_at_once() {
    let (month, youngest) = (24 * 30 * HOUR, CONNECTION_AGE_MAX - 6 * HOUR);
    let told = ends(month, youngest - MINUTE, CONNECTION_AGE_MAX + MINUTE).await;
    assert_eq!(told.code(), Code::Unavailable);
    assert!(told.message().contains("connect again"), "{told}");
    // Connections that began together do not all end together.
    let ca = Authority::new("ca");
    let (mut hub, operator) = (Hub::new(ca.live(HUB)), ca.live(OPERATOR));
    let (mut open, mut ends) = (Vec::new(), BTreeSet::new());
    for _ in 0..4 {
        open.push(hub.join(&operator).await);
    }
    let began = Instant::now();
    // All are waited for at once: one after the other, whatever ended before the first would seem to end with it.
    let lifetimes = open.iter().map(|pair| pair.server.peer().lifetime.clone());
    let mut waiting: JoinSet<u64> = lifetimes
        .map(|lifetime| async move {
            lifetime.ended().await;
            began.elapsed().as_secs()
        })
        .collect();
    while let Some(seconds) = waiting.join_next().await {
        ends.insert(seconds.expect("a wait that ends"));
    }
    assert!(ends.len() > 1, "{ends:?}");
}
