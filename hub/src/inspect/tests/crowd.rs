//! Readers and members that ask as much as they may, beside an operator.

use std::sync::mpsc;

use proto::v1::{self, event_log_server::EventLog};
use shared::model::{Epoch, UnixMillis};
use tokio::task::{JoinSet, yield_now};
use tonic::{Code, Request, Status};

use super::inspected_hub::{InspectedHub, by_alice, by_member, by_reader, clusterset};
use crate::{
    doors::{MEMBER_CALLS_MAX, READER_CALLS_MAX},
    inspect::{READER_WATCHES_MAX, WATCHES_OF_ONE_MAX},
    log,
};

/// Lets everything proceed that can.
async fn settle() {
    for _ in 0..1_000 {
        yield_now().await;
    }
}

/// Two readers and six members have all their calls open, half of them lists and half of them watches of the oldest epoch,
/// while the log's reader is busy: they filled its queue, and the operator was refused.
#[tokio::test]
async fn readers_and_members_that_ask_all_they_may_keep_no_operator_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    let log = log::open(directory.path(), &clusterset(), epoch).expect("opened");
    let inspected = InspectedHub::over(log);
    let (release, busy) = mpsc::channel::<()>();
    let reader = inspected.inspection.reader.clone();
    let jam = tokio::spawn(async move {
        let jammed = reader.ask(move |_| {
            let _ = busy.recv();
            Ok(())
        });
        jammed.await
    });
    settle().await;
    let mut crowd = JoinSet::new();
    let mut asks = |list: Request<v1::ListEventsRequest>, watch: Request<v1::WatchEventsRequest>| {
        let (one, other) = (inspected.inspection.clone(), inspected.inspection.clone());
        crowd.spawn(async move { one.list(list).await.map(drop) });
        crowd.spawn(async move { other.watch(watch).await.map(drop) });
    };
    let list = v1::ListEventsRequest::default;
    let watch = || v1::WatchEventsRequest {
        epoch: "oldest".to_owned(),
        ..Default::default()
    };
    for _ in 0..READER_CALLS_MAX / 2 {
        (1..=2).for_each(|number| asks(by_reader(list(), number), by_reader(watch(), number)));
    }
    for _ in 0..MEMBER_CALLS_MAX / 2 {
        (1..=6).for_each(|number| asks(by_member(list(), number), by_member(watch(), number)));
    }
    settle().await;
    let inspection = inspected.inspection.clone();
    let operator = tokio::spawn(async move { inspection.list(by_alice(list())).await });
    settle().await;
    assert!(
        !operator.is_finished(),
        "it waits for the log's reader, and is not refused"
    );
    release.send(()).expect("it waits");
    operator.await.expect("no panic").expect("an answer");
    jam.await.expect("no panic").expect("an answer");
    let ended: Vec<Result<(), Status>> = crowd.join_all().await;
    // Watches beyond the share of one, or of all members, are refused, and nothing else is.
    let mut refused = ended.iter().filter_map(|ended| ended.as_ref().err());
    assert!(refused.all(|why| why.message().contains("watches")), "{ended:?}");
}

#[tokio::test]
async fn one_reader_does_not_take_the_watches_of_others() {
    let inspected = InspectedHub::new();
    let mut open = Vec::new();
    for number in 1..=2 {
        for _ in 0..WATCHES_OF_ONE_MAX {
            let watch = by_reader(v1::WatchEventsRequest::default(), number);
            open.push(inspected.inspection.watch(watch).await.expect("a share"));
        }
        let more = by_reader(v1::WatchEventsRequest::default(), number);
        let refused = inspected
            .inspection
            .watch(more)
            .await
            .err()
            .expect("its share is used");
        assert_eq!(refused.code(), Code::ResourceExhausted);
    }
    assert!(open.len() < READER_WATCHES_MAX);
    open.pop();
    let again = by_reader(v1::WatchEventsRequest::default(), 2);
    assert!(
        inspected.inspection.watch(again).await.is_ok(),
        "a place that became free"
    );
}
