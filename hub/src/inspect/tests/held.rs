//! Tests of the mass-withdrawal hold: shown by `State`, `Membership/List` and in explanations, and ended by one call.

use proto::v1::{
    self, event_log_server::EventLog, membership_server::Membership, state_server::State as StateService,
};
use shared::model::Fact;
use tonic::Code;

use super::inspected_hub::{
    InspectedHub, Member, by_alice, by_dashboard, by_east, by_west, export, service, slice,
};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// East exports five services and takes all of them back in one message; `a` comes back, with another port.
async fn held() -> (InspectedHub, Member, Member) {
    let (inspected, mut east, west) = InspectedHub::with_two_members().await;
    let mut exports: Vec<Fact> = NAMES.iter().map(|name| export("held", name, 100, 80)).collect();
    exports.push(slice("held", "c", "c-1", &["10.0.0.7", "10.0.0.8"]));
    east.report(exports).await;
    east.list().await;
    let mut removals: Vec<Fact> = NAMES
        .iter()
        .map(|name| Fact::ExportRemoved(service("held", name)))
        .collect();
    let gone = slice("held", "c", "c-1", &[]);
    if let Fact::EndpointSliceUpserted(gone) = gone {
        removals.push(Fact::EndpointSliceRemoved(gone.key.clone()));
    }
    east.report(removals).await;
    east.report(vec![export("held", "a", 100, 81)]).await;
    (inspected, east, west)
}

fn of_namespace(page_size: u32, page_token: String) -> v1::GetStateRequest {
    v1::GetStateRequest {
        namespace: "held".into(),
        parts: vec![v1::StatePart::StateExports.into()],
        page_size,
        page_token,
        ..Default::default()
    }
}

/// Every export of the namespace: its name, whether it is on hold, and its endpoints.
async fn exports(inspected: &InspectedHub, page_size: u32) -> Vec<(String, bool, u32)> {
    let (mut shown, mut token) = (Vec::new(), String::new());
    loop {
        let asked = by_alice(of_namespace(page_size, token));
        let page = inspected
            .inspection
            .get(asked)
            .await
            .expect("answered")
            .into_inner();
        shown.extend(page.exports.into_iter().map(|seen| {
            let service = seen
                .export
                .and_then(|export| export.service)
                .expect("of a service");
            (service.name, seen.held_since.is_some(), seen.endpoints)
        }));
        token = page.next_page_token;
        if token.is_empty() {
            return shown;
        }
    }
}

async fn listed(inspected: &InspectedHub) -> v1::MemberState {
    let list = by_alice(v1::ListMembersRequest::default());
    let listed = Membership::list(&inspected.membership, list)
        .await
        .expect("answered");
    listed.into_inner().members.remove(0)
}

fn release(cluster: &str, confirm: bool) -> v1::ReleaseMemberRequest {
    v1::ReleaseMemberRequest {
        cluster: cluster.into(),
        confirm,
        ..Default::default()
    }
}

#[tokio::test]
async fn held_exports_are_among_those_that_are_shown_in_order_and_on_every_page() {
    let (inspected, ..) = held().await;
    let of = |name: &str, is_held, endpoints| (name.to_owned(), is_held, endpoints);
    let expected = [
        of("a", false, 0),
        of("b", true, 0),
        of("c", true, 2),
        of("d", true, 0),
        of("e", true, 0),
    ];
    for page_size in [0, 1, 2] {
        assert_eq!(
            exports(&inspected, page_size).await,
            expected,
            "pages of {page_size}"
        );
    }
    let east = listed(&inspected).await;
    // Two of shop and the one that came back are reported.
    assert_eq!((&*east.cluster, east.exports, east.held_exports), ("east", 3, 4));
    assert!(east.brake_since.is_some());
}

#[tokio::test]
async fn a_member_is_shown_what_is_held_of_it_and_another_is_not() {
    let (inspected, ..) = held().await;
    let own = inspected.inspection.get(by_east(of_namespace(0, String::new())));
    assert_eq!(
        own.await.expect("answered").into_inner().exports.len(),
        NAMES.len()
    );
    let others = inspected.inspection.get(by_west(of_namespace(0, String::new())));
    assert_eq!(others.await.expect("answered").into_inner().exports, []);
}

#[tokio::test]
async fn an_explanation_says_whose_export_is_held() {
    let (inspected, ..) = held().await;
    let explain = v1::ExplainRequest {
        namespace: "held".into(),
        name: "c".into(),
        ..Default::default()
    };
    let explained = inspected.inspection.explain(by_alice(explain)).await;
    let explained = explained.expect("answered").into_inner();
    assert!(
        explained.summary.contains("east took its export back"),
        "{}",
        explained.summary
    );
    let candidate = &explained.candidates[0];
    assert!(candidate.held_since.is_some());
    assert_eq!(candidate.slices[0].endpoints, 2);
}

#[tokio::test]
async fn a_release_is_tried_then_done_and_recorded_and_nothing_is_held_any_more() {
    let (inspected, ..) = held().await;
    let head = inspected.head();
    let releases = |confirm| inspected.membership.release(by_alice(release("east", confirm)));
    let dry = releases(false).await.expect("tried").into_inner();
    assert_eq!((dry.done, inspected.head()), (false, head));
    let text = dry.effects.join("\n");
    for said in [
        "4 exports that east withdrew end",
        "nobody else exports them: held/b, held/c, held/d, held/e",
        "east stays a member",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    let done = releases(true).await.expect("done").into_inner();
    assert_eq!(
        (done.done, done.revision, &done.effects),
        (true, head + 1, &dry.effects)
    );
    let list = v1::ListEventsRequest {
        from_revision: head + 1,
        ..Default::default()
    };
    let events = EventLog::list(&inspected.inspection, by_alice(list)).await;
    let event = events.expect("answered").into_inner().events.remove(0);
    assert_eq!(
        (&*event.kind, &*event.cluster, &*event.decided_by),
        ("brake_released", "east", "alice")
    );
    assert_eq!(exports(&inspected, 0).await, [("a".to_owned(), false, 0)]);
    let east = listed(&inspected).await;
    assert_eq!((east.brake_since, east.held_exports), (None, 0));

    let again = releases(true).await.expect("answered").into_inner();
    assert!(again.nothing_to_do);
    assert!(
        again.effects[0].contains("no export of east is on hold"),
        "{:?}",
        again.effects
    );
    assert_eq!(inspected.head(), head + 1);
}

#[tokio::test]
async fn what_nobody_may_release_or_cannot_is_refused_and_stays_held() {
    let (inspected, ..) = held().await;
    let head = inspected.head();
    let membership = &inspected.membership;
    for (request, code) in [
        (by_alice(release("north", true)), Code::NotFound),
        (by_alice(release("", true)), Code::InvalidArgument),
        (by_alice(release("No Id", true)), Code::InvalidArgument),
        (by_dashboard(release("east", true)), Code::PermissionDenied),
        (by_dashboard(release("east", false)), Code::PermissionDenied),
        (by_east(release("east", true)), Code::PermissionDenied),
    ] {
        let refused = membership.release(request).await.expect_err("refused");
        assert_eq!(refused.code(), code, "{refused}");
        assert!(!refused.message().contains('\n'), "{refused}");
    }
    assert_eq!(inspected.head(), head);
    assert_eq!(listed(&inspected).await.held_exports, 4);
}
