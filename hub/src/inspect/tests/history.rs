//! `EventLog`: pages that join without a gap, filters, and watches that see everything once and in order.

use std::pin::Pin;

use futures::{FutureExt, StreamExt};
use prost::Message as _;
use proto::v1::{self, event_log_server::EventLog, membership_server::Membership};
use shared::{model::KeyFingerprint, tls::ConnectionEnd};
use tokio_stream::Stream;
use tonic::{Code, Status};

use super::inspected_hub::{InspectedHub, by, by_alice, by_dashboard, by_east, export, peer, slice};
use crate::inspect::{OPERATOR_WATCHES_MAX, event_log::LIST_EVENTS_MAX, filter::KINDS};

type Events = Pin<Box<dyn Stream<Item = Result<v1::WatchEventsResponse, Status>> + Send>>;

fn filter(cluster: &str, kind: &str, namespace: &str) -> Option<v1::EventFilter> {
    Some(v1::EventFilter {
        cluster: cluster.into(),
        kind: kind.into(),
        namespace: namespace.into(),
    })
}

async fn list(
    inspected: &InspectedHub,
    from: u64,
    limit: u32,
    filter: Option<v1::EventFilter>,
) -> v1::ListEventsResponse {
    let request = v1::ListEventsRequest {
        from_revision: from,
        limit,
        filter,
        ..Default::default()
    };
    let answer = EventLog::list(&inspected.inspection, by_alice(request)).await;
    answer.expect("answered").into_inner()
}

async fn watch(
    inspected: &InspectedHub,
    from: Option<u64>,
    filter: Option<v1::EventFilter>,
) -> Result<Events, Status> {
    let request = v1::WatchEventsRequest {
        from_revision: from,
        filter,
        ..Default::default()
    };
    inspected
        .inspection
        .watch(by_alice(request))
        .await
        .map(tonic::Response::into_inner)
}

async fn next(events: &mut Events) -> v1::Event {
    let response = events.next().await.expect("open").expect("an event");
    response.event.expect("set")
}

#[test]
fn the_kinds_of_the_filter_are_the_kinds_of_the_contract() {
    let set = prost_types::FileDescriptorSet::decode(proto::FILE_DESCRIPTOR_SET).expect("a descriptor");
    let messages = set.file.iter().flat_map(|file| &file.message_type);
    let fact = messages
        .into_iter()
        .find(|message| message.name() == "Fact")
        .expect("there");
    let fields: Vec<&str> = fact.field.iter().map(|field| field.name()).collect();
    assert_eq!(fields, KINDS);
}

#[tokio::test]
async fn pages_join_without_a_gap_and_read_as_people_read() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let all = list(&inspected, 0, 0, None).await;
    let revisions: Vec<u64> = all.events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, (1..=inspected.head()).collect::<Vec<_>>());
    assert_eq!((all.next_revision, all.head_revision), (0, inspected.head()));

    let mut paged = Vec::new();
    let mut from = 1;
    while from != 0 {
        let page = list(&inspected, from, 2, None).await;
        assert!(page.events.len() <= 2);
        paged.extend(page.events);
        from = page.next_revision;
    }
    assert_eq!(paged, all.events);

    // The first event says which rules fold the log.
    assert_eq!(all.events[0].kind, "fold_version_changed");
    let joined = &all.events[1];
    assert_eq!(
        (joined.kind.as_str(), joined.cluster.as_str(), joined.incarnation),
        ("member_joined", "east", 2)
    );
    assert_eq!(joined.hash.len(), 32);
    assert!(joined.recorded_at.is_some() && joined.fact.is_some());
}

#[tokio::test]
async fn a_filter_shows_what_matches_in_every_part() {
    let (inspected, mut east, _) = InspectedHub::with_two_members().await;
    east.report(vec![export("stock", "list", 100, 80)]).await;
    let shown = async |filter| {
        let page = list(&inspected, 0, 0, filter).await;
        assert_eq!(page.next_revision, 0, "the whole log was looked at");
        page.events
            .into_iter()
            .map(|event| (event.cluster, event.kind))
            .collect::<Vec<_>>()
    };
    let pair = |cluster: &str, kind: &str| (cluster.to_owned(), kind.to_owned());
    let joins = shown(filter("", "member_joined", "")).await;
    assert_eq!(
        joins,
        [pair("east", "member_joined"), pair("west", "member_joined")]
    );
    let west = shown(filter("west", "", "shop")).await;
    assert_eq!(
        west,
        [
            pair("west", "export_upserted"),
            pair("west", "endpoint_slice_upserted")
        ]
    );
    assert_eq!(
        shown(filter("", "export_upserted", "stock")).await,
        [pair("east", "export_upserted")]
    );
    assert_eq!(shown(filter("west", "", "stock")).await, []);
}

#[tokio::test]
async fn what_could_never_match_is_refused_with_advice() {
    let inspected = InspectedHub::new();
    let refused = async |request: v1::ListEventsRequest| {
        let status = EventLog::list(&inspected.inspection, by_alice(request))
            .await
            .expect_err("refused");
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    };
    let filtered = |filter| v1::ListEventsRequest {
        filter,
        ..Default::default()
    };
    assert!(
        refused(filtered(filter("", "export_upsert", "")))
            .await
            .contains("export_upserted")
    );
    assert!(
        refused(filtered(filter("East", "", "")))
            .await
            .contains("RFC 1123")
    );
    assert!(
        refused(filtered(filter("", "", "a/b")))
            .await
            .contains("RFC 1123")
    );
    let limit = LIST_EVENTS_MAX as u32 + 1;
    assert!(
        refused(v1::ListEventsRequest {
            limit,
            ..Default::default()
        })
        .await
        .contains("next_revision")
    );
}

#[tokio::test]
async fn a_watch_sees_history_and_what_comes_once_and_in_order() {
    let (inspected, mut east, _) = InspectedHub::with_two_members().await;
    let before = inspected.head();
    let mut all = watch(&inspected, Some(0), None).await.expect("begun");
    let mut new = watch(&inspected, None, None).await.expect("begun");
    let mut slices = watch(&inspected, Some(0), filter("east", "endpoint_slice_upserted", ""))
        .await
        .expect("begun");
    for revision in 1..=before {
        assert_eq!(next(&mut all).await.revision, revision);
    }
    assert!(all.next().now_or_never().is_none(), "nothing has happened since");
    assert!(new.next().now_or_never().is_none());

    for round in 0..300_u64 {
        let address = format!("10.9.{}.{}", round / 200, 1 + round % 200);
        east.report(vec![slice("shop", "cart", "cart-1", &[&address])])
            .await;
    }
    for revision in before + 1..=before + 300 {
        assert_eq!(next(&mut new).await.revision, revision);
        assert_eq!(next(&mut all).await.revision, revision);
    }
    assert_eq!(next(&mut slices).await.revision, 5);
    assert_eq!(next(&mut slices).await.revision, before + 1);
    assert_eq!(list(&inspected, 0, 1_000, None).await.head_revision, before + 300);
}

#[tokio::test]
async fn a_watch_resumes_behind_the_last_event_seen_and_not_beyond_the_head() {
    let (inspected, mut east, _) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let mut resumed = watch(&inspected, Some(head + 1), None).await.expect("begun");
    east.report(vec![export("shop", "more", 100, 80)]).await;
    assert_eq!(next(&mut resumed).await.revision, head + 1);
    let status = watch(&inspected, Some(head + 3), None)
        .await
        .err()
        .expect("refused");
    assert_eq!(status.code(), Code::OutOfRange);
    assert!(status.message().contains(&format!("is {}", head + 1)), "{status}");
}

#[tokio::test]
async fn a_drain_ends_watches_and_says_where_to_go_on() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let mut events = watch(&inspected, None, None).await.expect("begun");
    assert!(events.next().now_or_never().is_none());
    inspected.drain.cancel();
    let status = events.next().await.expect("a last word").expect_err("the end");
    assert_eq!(status.code(), Code::Unavailable);
    assert!(
        status
            .message()
            .contains(&format!("revision {}", inspected.head() + 1)),
        "{status}"
    );
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_members_watch_ends_with_its_membership() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let request = v1::WatchEventsRequest::default();
    let mut events = inspected
        .inspection
        .watch(by_east(request))
        .await
        .expect("begun")
        .into_inner();
    let evict = v1::EvictMemberRequest {
        cluster: "east".into(),
        confirm: true,
        ..Default::default()
    };
    inspected
        .membership
        .evict(by_alice(evict))
        .await
        .expect("evicted");
    assert_eq!(next(&mut events).await.kind, "member_evicted");
    let status = events.next().await.expect("a last word").expect_err("the end");
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn watches_are_bounded_and_members_do_not_take_the_operators_places() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let mut open = Vec::new();
    for _ in 0..OPERATOR_WATCHES_MAX {
        open.push(watch(&inspected, None, None).await.expect("begun"));
    }
    let status = watch(&inspected, None, None).await.err().expect("refused");
    assert_eq!(status.code(), Code::ResourceExhausted);
    let member = inspected
        .inspection
        .watch(by_east(v1::WatchEventsRequest::default()))
        .await;
    assert!(member.is_ok());
    let reader = inspected
        .inspection
        .watch(by_dashboard(v1::WatchEventsRequest::default()))
        .await;
    assert!(reader.is_ok(), "readers have places of their own");
    open.pop();
    assert!(
        watch(&inspected, None, None).await.is_ok(),
        "a place that became free is given again"
    );
}

async fn since(
    inspected: &InspectedHub,
    request: v1::ListEventsRequest,
) -> Result<v1::ListEventsResponse, Status> {
    let answer = EventLog::list(&inspected.inspection, by_alice(request)).await;
    answer.map(tonic::Response::into_inner)
}

fn at(time: Option<prost_types::Timestamp>) -> v1::ListEventsRequest {
    v1::ListEventsRequest {
        since: time,
        ..Default::default()
    }
}

#[tokio::test]
async fn a_page_begins_at_the_first_event_that_was_recorded_since_a_time() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let all = list(&inspected, 0, 0, None).await.events;
    for event in &all {
        let page = since(&inspected, at(event.recorded_at)).await.expect("answered");
        let first = all.iter().find(|other| other.recorded_at == event.recorded_at);
        assert_eq!(page.from_revision, first.expect("itself").revision);
        assert_eq!(
            page.events.len() as u64,
            inspected.head() + 1 - page.from_revision
        );
        assert_eq!(page.events[0], *first.expect("itself"));
    }
    let later = Some(prost_types::Timestamp {
        seconds: 253_402_300_799,
        nanos: 999_999_999,
    });
    let page = since(&inspected, at(later)).await.expect("answered");
    assert_eq!(
        (page.from_revision, page.next_revision),
        (inspected.head() + 1, 0)
    );
    assert!(page.events.is_empty());
    let before = Some(prost_types::Timestamp {
        seconds: -9,
        nanos: 0,
    });
    assert_eq!(
        since(&inspected, at(before))
            .await
            .expect("answered")
            .from_revision,
        1
    );
    let hour = v1::ListEventsRequest {
        since_millis_ago: 3_600_000,
        ..Default::default()
    };
    let page = since(&inspected, hour).await.expect("answered");
    assert_eq!(
        (page.from_revision, page.events.len() as u64),
        (1, inspected.head())
    );
}

#[tokio::test]
async fn a_page_begins_in_one_way_only_and_at_a_time_that_is_one() {
    let inspected = InspectedHub::new();
    let moment = Some(prost_types::Timestamp::default());
    let mut twice = at(moment);
    twice.from_revision = 7;
    let mut thrice = at(moment);
    thrice.since_millis_ago = 7;
    let nanos = at(Some(prost_types::Timestamp {
        seconds: 0,
        nanos: -1,
    }));
    for (request, words) in [(twice, "give one"), (thrice, "give one"), (nanos, "-1 nanos")] {
        let refused = since(&inspected, request).await.expect_err(words);
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(words), "{refused}");
    }
}

#[tokio::test]
async fn a_backup_ends_with_the_key_of_who_asked_for_it() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let carol = [0xca; 32];
    let uri = "spiffe://example.org/clusterset/default/operator/carol";
    let asked = by(v1::BackupRequest::default(), peer(uri, KeyFingerprint(carol)));
    let begun = inspected.inspection.backup(asked).await.expect("begun");
    let mut parts = begun.into_inner();
    assert!(
        parts.next().await.expect("open").is_ok(),
        "the first part is there"
    );

    let revoke = v1::RevokeOperatorRequest {
        name: "carol".into(),
        key_fingerprint: KeyFingerprint(carol).to_string(),
        confirm: true,
        ..Default::default()
    };
    let revoked = inspected.membership.revoke_operator(by_alice(revoke)).await;
    assert!(revoked.expect("decided").into_inner().done);

    let mut rest: Vec<_> = parts.collect().await;
    let end = rest
        .pop()
        .expect("a last word")
        .expect_err("no end of a whole copy");
    assert_eq!(end.code(), Code::PermissionDenied);
    assert!(end.message().contains("was revoked"), "{end}");
    let rows = rest
        .into_iter()
        .filter_map(Result::ok)
        .filter_map(|part| part.part);
    let rows = rows.filter(|part| matches!(part, v1::backup_part::Part::Rows(_)));
    assert_eq!(rows.count(), 0, "nothing of the log is read after it");
    let again = by(v1::BackupRequest::default(), peer(uri, KeyFingerprint(carol)));
    let status = inspected.inspection.backup(again).await.err().expect("refused");
    assert_eq!(status.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn a_backup_ends_with_the_connection() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let uri = "spiffe://example.org/clusterset/default/operator/carol";
    let carol = peer(uri, KeyFingerprint([0xca; 32]));
    let lifetime = carol.lifetime.clone();
    let asked = by(v1::BackupRequest::default(), carol);
    let mut parts = inspected
        .inspection
        .backup(asked)
        .await
        .expect("begun")
        .into_inner();
    assert!(parts.next().await.expect("open").is_ok());
    lifetime.end(ConnectionEnd::Expired);
    let end = parts.next().await.expect("a last word").expect_err("the end");
    assert_eq!(end.code(), Code::Unauthenticated);
    assert!(parts.next().await.is_none());
}
