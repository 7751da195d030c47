//! `State`: what is shown, filters, bounds, and explanations that name recorded events.

use proto::v1::{self, StatePart, event_log_server::EventLog, state_server::State as StateService};
use shared::model::Fact;
use tonic::Code;

use super::inspected_hub::{InspectedHub, by_alice, cluster, export, service, slice};
use crate::inspect::{AT_LEAST_WAITING_MAX, Caller, seek::EVENTS_SHOWN_MAX};

fn alice() -> Caller {
    Caller::Operator("alice".into())
}

async fn get(inspected: &InspectedHub, request: v1::GetStateRequest) -> v1::GetStateResponse {
    inspected
        .inspection
        .get(by_alice(request))
        .await
        .expect("answered")
        .into_inner()
}

#[tokio::test]
async fn everything_is_shown_at_one_revision() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let state = get(&inspected, v1::GetStateRequest::default()).await;
    assert_eq!(
        (state.clusterset.as_str(), state.revision),
        ("example.org/default", inspected.head())
    );
    let members: Vec<_> = state
        .members
        .iter()
        .map(|m| (m.cluster.as_str(), m.exports, m.endpoint_slices))
        .collect();
    assert_eq!(members, [("east", 2, 1), ("west", 1, 1)]);
    assert!(
        state
            .members
            .iter()
            .all(|m| m.connected && !m.listed && m.state() == v1::SourceState::SourceLive)
    );
    assert_eq!(state.members[0].key_fingerprints, ["ea".repeat(32)]);
    let exports: Vec<_> = state
        .exports
        .iter()
        .map(|e| (e.cluster.as_str(), e.endpoints, e.conflicts.len()))
        .collect();
    assert_eq!(exports, [("east", 2, 1), ("east", 0, 0), ("west", 1, 1)]);
    let imports: Vec<_> = state
        .imports
        .iter()
        .map(|i| (i.endpoint_slices, i.endpoints))
        .collect();
    assert_eq!(
        imports,
        [(1, 2), (0, 0)],
        "west's port is not the merged one: its slice is not eligible"
    );
    let profiles: Vec<_> = state
        .profiles
        .iter()
        .map(|p| (p.cluster.as_str(), p.conditions.len()))
        .collect();
    assert_eq!(profiles, [("east", 2), ("west", 2)]);
}

#[tokio::test]
async fn cluster_namespace_and_parts_narrow_the_answer() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let west = get(
        &inspected,
        v1::GetStateRequest {
            cluster: "west".into(),
            ..Default::default()
        },
    )
    .await;
    assert_eq!(
        (
            west.members.len(),
            west.exports.len(),
            west.imports.len(),
            west.profiles.len()
        ),
        (1, 1, 1, 1)
    );
    let other = get(
        &inspected,
        v1::GetStateRequest {
            namespace: "other".into(),
            ..Default::default()
        },
    )
    .await;
    assert_eq!(
        (other.members.len(), other.exports.len(), other.imports.len()),
        (2, 0, 0)
    );
    let parts = vec![StatePart::Imports.into()];
    let imports = get(
        &inspected,
        v1::GetStateRequest {
            parts,
            ..Default::default()
        },
    )
    .await;
    assert_eq!(
        (
            imports.members.len(),
            imports.exports.len(),
            imports.imports.len()
        ),
        (0, 0, 2)
    );
    let unknown = v1::GetStateRequest {
        parts: vec![99],
        ..Default::default()
    };
    let status = inspected
        .inspection
        .get(by_alice(unknown))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("STATE_EXPORTS"), "{status}");
}

#[tokio::test]
async fn an_explanation_names_revisions_that_the_log_lists() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let request = v1::ExplainRequest {
        namespace: "shop".into(),
        name: "cart".into(),
        ..Default::default()
    };
    let explained = inspected
        .inspection
        .explain(by_alice(request))
        .await
        .expect("answered")
        .into_inner();
    assert_eq!(explained.revision, inspected.head());
    let order: Vec<_> = explained
        .candidates
        .iter()
        .map(|c| (c.cluster.as_str(), c.precedence))
        .collect();
    assert_eq!(order, [("east", 1), ("west", 2)]);
    assert!(
        explained
            .decisions
            .iter()
            .all(|decision| decision.winner == "east")
    );
    assert_eq!(explained.conflicts.len(), 1);
    assert_eq!(explained.import.expect("imported").endpoints, 2);

    let listed = EventLog::list(&inspected.inspection, by_alice(v1::ListEventsRequest::default())).await;
    let listed = listed.expect("answered").into_inner();
    assert_eq!(listed.epoch, explained.epoch);
    for candidate in &explained.candidates {
        let export = &listed.events[candidate.revision as usize - 1];
        assert_eq!(
            (export.kind.as_str(), &export.cluster),
            ("export_upserted", &candidate.cluster)
        );
        let slice = &listed.events[candidate.slices[0].revision as usize - 1];
        assert_eq!(
            (slice.kind.as_str(), &slice.cluster),
            ("endpoint_slice_upserted", &candidate.cluster)
        );
    }
}

#[tokio::test]
async fn why_there_is_no_import_is_answered_and_a_bad_name_refused() {
    let (inspected, east, _) = InspectedHub::with_two_members().await;
    assert_eq!(east.cluster, cluster("east"));
    let ask = |name: &str| v1::ExplainRequest {
        namespace: "shop".into(),
        name: name.into(),
        ..Default::default()
    };
    let nothing = inspected
        .inspection
        .explain(by_alice(ask("nothing")))
        .await
        .expect("answered")
        .into_inner();
    assert!(nothing.import.is_none() && nothing.candidates.is_empty());
    assert!(
        nothing.summary.contains("shop/nothing is not imported"),
        "{}",
        nothing.summary
    );
    let status = inspected
        .inspection
        .explain(by_alice(ask("Bad")))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn exports_in_conflict_are_counted_until_it_is_settled() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let counted = |count: u64| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &inspected.metrics).expect("encoded");
        let line = format!("exports_in_conflict{{reason=\"PortConflict\"}} {count}");
        text.lines().any(|said| said == line)
    };
    assert!(counted(2), "shop/cart has other ports in west");
    let evict = proto::v1::EvictMemberRequest {
        cluster: "west".into(),
        confirm: true,
        ..Default::default()
    };
    proto::v1::membership_server::Membership::evict(&inspected.membership, by_alice(evict))
        .await
        .expect("evicted");
    assert!(counted(0));
}

async fn explain(inspected: &InspectedHub, name: &str) -> v1::ExplainResponse {
    let request = v1::ExplainRequest {
        namespace: "shop".into(),
        name: name.into(),
        ..Default::default()
    };
    let explained = inspected.inspection.explain(by_alice(request)).await;
    explained.expect("explained").into_inner()
}

#[tokio::test]
async fn an_explanation_shows_the_events_behind_it_once_and_in_order() {
    let (inspected, mut east, _west) = InspectedHub::with_two_members().await;
    let explained = explain(&inspected, "cart").await;
    let exports = explained.candidates.iter().map(|candidate| candidate.revision);
    let slices = explained
        .candidates
        .iter()
        .flat_map(|candidate| &candidate.slices);
    let import = explained.import.iter().map(|import| import.revision);
    let named = exports.chain(slices.map(|slice| slice.revision)).chain(import);
    let named: std::collections::BTreeSet<u64> = named.collect();
    let shown: Vec<u64> = explained.events.iter().map(|event| event.revision).collect();
    assert_eq!(shown, Vec::from_iter(named));
    assert_eq!((explained.events_left_out, explained.events_out_of_reach), (0, 0));
    let first = &explained.events[0];
    assert_eq!(
        (first.cluster.as_str(), first.kind.as_str()),
        ("east", "export_upserted")
    );
    assert!(first.recorded_at.is_some() && first.fact.is_some());

    east.report(vec![Fact::ExportRemoved(service("shop", "web"))])
        .await;
    let explained = explain(&inspected, "web").await;
    assert!(explained.import.is_none());
    let kinds: Vec<&str> = explained.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["export_removed"], "what ended it");
}

#[tokio::test]
async fn an_explanation_says_how_many_events_it_has_no_room_for() {
    let (inspected, mut east, _west) = InspectedHub::with_two_members().await;
    let address = ["10.0.0.9"];
    let slices = (0..EVENTS_SHOWN_MAX).map(|number| slice("shop", "web", &format!("web-{number}"), &address));
    east.report(slices.collect()).await;
    let explained = explain(&inspected, "web").await;
    assert_eq!(explained.events.len(), EVENTS_SHOWN_MAX);
    assert!(explained.events_left_out > 0);
    let kinds = explained
        .events
        .iter()
        .filter(|event| event.kind == "export_upserted");
    assert_eq!(kinds.count(), 1, "exports come first");
}

#[tokio::test]
async fn every_answer_says_who_gave_it_and_as_of_when() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let state = get(&inspected, v1::GetStateRequest::default()).await;
    let listed = v1::ListEventsRequest::default();
    let listed = inspected.inspection.list(by_alice(listed)).await.expect("listed");
    let members = inspected
        .inspection
        .list_members(&v1::ListMembersRequest::default(), &alice())
        .await
        .expect("listed");
    let explained = explain(&inspected, "cart").await;
    let answers = [
        state.answered_by,
        listed.into_inner().answered_by,
        members.answered_by,
        explained.answered_by,
    ];
    for answer in answers {
        let expected = v1::AnsweredBy {
            hub: "hub".into(),
            hub_version: "test".into(),
            term: 1,
            revision: inspected.head(),
            age_millis: 0,
        };
        assert_eq!(answer, Some(expected));
    }
}

#[tokio::test]
async fn an_answer_waits_for_the_revision_that_was_asked_for() {
    let (inspected, mut east, _west) = InspectedHub::with_two_members().await;
    let asked = inspected.head() + 1;
    let request = v1::GetStateRequest {
        at_least_revision: asked,
        ..Default::default()
    };
    let waiting = tokio::spawn({
        let inspection = inspected.inspection.clone();
        async move { inspection.get(by_alice(request)).await }
    });
    east.report(vec![export("shop", "late", 100, 80)]).await;
    let state = waiting.await.expect("no panic").expect("answered").into_inner();
    assert!(state.revision >= asked);
    assert!(state.answered_by.is_some_and(|by| by.revision >= asked));
}

#[tokio::test]
async fn a_revision_that_does_not_come_is_refused_by_what_the_hub_has() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let (head, never) = (inspected.head(), inspected.head() + 99);
    let ask = || {
        let inspection = inspected.inspection.clone();
        tokio::spawn(async move {
            let request = v1::ListMembersRequest {
                at_least_revision: never,
                ..Default::default()
            };
            inspection.list_members(&request, &alice()).await
        })
    };
    let waiting: Vec<_> = (0..AT_LEAST_WAITING_MAX).map(|_| ask()).collect();
    let one_more = loop {
        let asked = ask();
        tokio::task::yield_now().await;
        if asked.is_finished() {
            break asked.await.expect("no panic").expect_err("too many");
        }
        asked.abort();
    };
    assert_eq!(one_more.code(), Code::ResourceExhausted, "{one_more}");
    inspected.drain.cancel();
    for waiting in waiting {
        let refused = waiting.await.expect("no panic").expect_err("it never came");
        assert_eq!(refused.code(), Code::Unavailable);
        let words = [
            format!("revision {never}"),
            format!("hub hub has revision {head} of epoch"),
        ];
        assert!(
            words.iter().all(|words| refused.message().contains(words)),
            "{refused}"
        );
    }
}
