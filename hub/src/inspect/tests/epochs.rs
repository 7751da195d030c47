//! The history of an epoch is read after another one began: nobody's word about epochs takes the audit trail away.

use futures::StreamExt;
use proto::v1::{self, event_log_server::EventLog};
use tonic::Code;

use super::inspected_hub::{InspectedHub, by_alice};

async fn list(
    inspected: &InspectedHub,
    epoch: &str,
    from: u64,
    limit: u32,
) -> Result<v1::ListEventsResponse, tonic::Status> {
    let request = v1::ListEventsRequest {
        epoch: epoch.into(),
        from_revision: from,
        limit,
        ..Default::default()
    };
    let listed = EventLog::list(&inspected.inspection, by_alice(request)).await;
    listed.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn what_was_recorded_before_an_epoch_began_is_read_by_its_name_in_pages_and_by_a_watch() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let before = list(&inspected, "", 0, 0).await.expect("answered");
    assert!(before.events.len() > 3 && before.epochs.is_empty());
    inspected.begin_epoch().await;

    let now = list(&inspected, "", 0, 0).await.expect("answered");
    assert_ne!(now.epoch, before.epoch);
    assert!(now.events.len() < before.events.len());
    let oldest = list(&inspected, "oldest", 0, 0).await.expect("answered");
    assert_eq!(oldest.epochs, [before.epoch.clone(), now.epoch.clone()]);
    assert_eq!(
        (
            oldest.epoch,
            oldest.events,
            oldest.next_revision,
            oldest.head_revision
        ),
        (
            before.epoch.clone(),
            before.events.clone(),
            0,
            before.head_revision
        )
    );
    let (mut paged, mut from) = (Vec::new(), 1);
    while from != 0 {
        let page = list(&inspected, &before.epoch, from, 2).await.expect("answered");
        assert!(page.events.len() <= 2);
        paged.extend(page.events);
        from = page.next_revision;
    }
    assert_eq!(paged, before.events);
    for unknown in ["12-ab", "nonsense", ""] {
        let listed = list(&inspected, unknown, 0, 0).await;
        match listed {
            Ok(listed) => assert!(unknown.is_empty() && listed.epoch == now.epoch),
            Err(status) => assert_eq!(status.code(), Code::NotFound, "{status}"),
        }
    }

    let request = v1::WatchEventsRequest {
        epoch: before.epoch.clone(),
        ..Default::default()
    };
    let watched = inspected.inspection.watch(by_alice(request)).await;
    let mut watched = watched.expect("begun").into_inner();
    for event in before.events {
        let next = watched.next().await.expect("open").expect("an event");
        assert_eq!(next.event, Some(event));
    }
    let end = watched.next().await.expect("a last word").expect_err("the end");
    assert_eq!(end.code(), Code::Aborted, "{end}");
}

#[tokio::test]
async fn a_time_is_found_in_an_earlier_epoch() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let before = list(&inspected, "", 0, 0).await.expect("answered");
    inspected.begin_epoch().await;
    let since = async |since: Option<prost_types::Timestamp>, since_millis_ago| {
        let request = v1::ListEventsRequest {
            epoch: before.epoch.clone(),
            since,
            since_millis_ago,
            ..Default::default()
        };
        let listed = EventLog::list(&inspected.inspection, by_alice(request)).await;
        listed.expect("answered").into_inner().events
    };
    assert_eq!(since(None, 3_600_000).await, before.events);
    let later = prost_types::Timestamp {
        seconds: i64::from(u32::MAX),
        nanos: 0,
    };
    assert_eq!(since(Some(later), 0).await, []);
}
