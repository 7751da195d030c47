//! `Membership`: a dry run changes nothing and says what the decision then does; each decision is one event.

mod key_families;

use proto::v1::{
    self, event_log_server::EventLog, join_tokens_server::JoinTokens, membership_server::Membership,
    policy_server::Policy, state_server::State as _,
};
use shared::{
    model::{KeyFingerprint, UnixMillis},
    wire,
};
use tonic::Code;

use super::{Joinable, PolicyService, TokenService};
use crate::{
    clock::Clock,
    inspect::tests::inspected_hub::{EAST_KEY, InspectedHub, by_alice, by_east, cluster, export},
};

fn evict(cluster: &str, confirm: bool) -> v1::EvictMemberRequest {
    v1::EvictMemberRequest {
        cluster: cluster.into(),
        confirm,
        ..Default::default()
    }
}

fn rekey(key: &str, fingerprint: &str, confirm: bool) -> v1::RekeyMemberRequest {
    v1::RekeyMemberRequest {
        cluster: "east".into(),
        key_fingerprint: key.into(),
        cluster_fingerprint: fingerprint.into(),
        confirm,
        ..Default::default()
    }
}

fn forget(cluster: &str, confirm: bool) -> v1::ForgetMemberRequest {
    v1::ForgetMemberRequest {
        cluster: cluster.into(),
        confirm,
        ..Default::default()
    }
}

async fn last_event(inspected: &InspectedHub) -> v1::Event {
    let from_revision = inspected.head();
    let list = v1::ListEventsRequest {
        from_revision,
        ..Default::default()
    };
    let page = EventLog::list(&inspected.inspection, by_alice(list))
        .await
        .expect("answered");
    page.into_inner().events.pop().expect("the last event")
}

#[tokio::test]
async fn an_eviction_is_tried_then_done_and_recorded_under_the_operators_name() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let dry = inspected
        .membership
        .evict(by_alice(evict("east", false)))
        .await
        .expect("tried")
        .into_inner();
    assert_eq!((dry.done, dry.revision, inspected.head()), (false, 0, head));
    let text = dry.effects.join("\n");
    for said in [
        &EAST_KEY.to_string(),
        "nobody else exports them: shop/web",
        "other exporters: shop/cart",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    let done = inspected
        .membership
        .evict(by_alice(evict("east", true)))
        .await
        .expect("done")
        .into_inner();
    assert_eq!(
        (done.done, done.revision, &done.effects),
        (true, head + 1, &dry.effects)
    );
    let event = last_event(&inspected).await;
    assert_eq!(
        (event.revision, event.kind.as_str(), event.cluster.as_str()),
        (head + 1, "member_evicted", "east")
    );
    let Some(v1::fact::Fact::MemberEvicted(evicted)) = event.fact.and_then(|fact| fact.fact) else {
        panic!("another fact");
    };
    assert_eq!(evicted.operator, "alice");

    let state = inspected
        .inspection
        .get(by_alice(v1::GetStateRequest::default()))
        .await
        .expect("answered")
        .into_inner();
    let east = state
        .members
        .iter()
        .find(|member| member.cluster == "east")
        .expect("still shown");
    assert_eq!(
        (east.state(), east.connected, east.exports),
        (v1::SourceState::SourceEvicted, false, 0)
    );
    assert_eq!(state.imports.len(), 1, "shop/web is gone, shop/cart is west's");

    let again = inspected
        .membership
        .evict(by_alice(evict("east", true)))
        .await
        .expect_err("refused");
    assert_eq!(again.code(), Code::NotFound);
}

/// Two operators decide at once: the second one is told the effects after the first decision.
#[tokio::test]
async fn the_effects_shown_are_those_of_the_decision_taken() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let (east, west) = tokio::join!(
        inspected.membership.evict(by_alice(evict("east", true))),
        inspected.membership.evict(by_alice(evict("west", true)))
    );
    let effects = |answer: Result<tonic::Response<v1::MemberDecisionResponse>, _>| {
        let answer = answer.map(tonic::Response::into_inner);
        let answer = answer.map_err(|status: tonic::Status| status.message().to_owned());
        answer.expect("done").effects.join("\n")
    };
    let (east, west) = (effects(east), effects(west));
    let later = |effects: &String| effects.contains("nobody else exports them: shop/cart");
    let (first, second): (Vec<String>, Vec<String>) =
        [east, west].into_iter().partition(|effects| !later(effects));
    assert_eq!((first.len(), second.len()), (1, 1), "{first:?}\n{second:?}");
    assert!(first[0].contains("other exporters: shop/cart"), "{}", first[0]);
}

#[tokio::test]
async fn a_rekey_admits_a_key_in_any_spelling_once() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let spelled = vec!["AB"; 32].join(":");
    let dry = inspected
        .membership
        .rekey(by_alice(rekey(&spelled, "", false)))
        .await
        .expect("tried")
        .into_inner();
    assert!(dry.effects[0].contains(&"ab".repeat(32)), "{:?}", dry.effects);
    assert_eq!(inspected.head(), head);
    let done = inspected
        .membership
        .rekey(by_alice(rekey(&spelled, "uid-new", true)))
        .await
        .expect("done")
        .into_inner();
    assert_eq!((done.revision, done.effects.len()), (head + 1, 2));
    assert_eq!(last_event(&inspected).await.kind, "member_rekeyed");
    let again = inspected
        .membership
        .rekey(by_alice(rekey(&spelled, "", true)))
        .await
        .expect("answered")
        .into_inner();
    assert_eq!((again.done, again.revision), (true, 0));
    assert!(again.effects[0].contains("nothing to do"), "{:?}", again.effects);
    let members = Membership::list(&inspected.membership, by_alice(v1::ListMembersRequest::default())).await;
    let members = members.expect("answered").into_inner().members;
    assert_eq!(members[0].key_fingerprints, ["ab".repeat(32), "ea".repeat(32)]);
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused_with_advice() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    for (request, code, said) in [
        (
            rekey("abc", "", true),
            Code::InvalidArgument,
            "64 hexadecimal digits",
        ),
        (rekey("", "two words", true), Code::InvalidArgument, "kube-system"),
        (
            rekey("", "", true),
            Code::FailedPrecondition,
            "name a key fingerprint",
        ),
    ] {
        let status = inspected
            .membership
            .rekey(by_alice(request))
            .await
            .expect_err("refused");
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(said), "{status}");
    }
    let status = inspected
        .membership
        .forget(by_alice(forget("east", true)))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("member evict east"), "{status}");
    let status = inspected
        .membership
        .evict(by_alice(evict("", true)))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(inspected.head(), head);
}

#[tokio::test]
async fn a_token_for_ids_that_nobody_or_everybody_has_is_a_line_and_changes_nothing() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let joinable = Joinable {
        pin: EAST_KEY,
        port: 8_444,
    };
    let clock = Clock::simulated(UnixMillis(1_000));
    let tokens = TokenService::new(inspected.membership.clone(), clock, Some(joinable));
    for (ids, said) in [
        ("prod.*", "matches no cluster id"),
        ("*", "matches every cluster id"),
        ("Prod", "is no cluster id"),
    ] {
        let create = v1::CreateJoinTokenRequest {
            token_hash: vec![1; 32],
            cluster_ids: ids.into(),
            uses: 1,
            valid_millis: 60_000,
            ..Default::default()
        };
        let status = tokens.create(by_alice(create)).await.expect_err(ids);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(said), "{ids}: {status}");
        assert!(!status.message().contains('\n'), "{ids}: {status}");
    }
    assert_eq!(inspected.head(), head);
}

#[tokio::test]
async fn a_cluster_that_never_was_can_be_forgotten_and_each_time_counts() {
    let inspected = InspectedHub::new();
    let dry = inspected
        .membership
        .forget(by_alice(forget("gone", false)))
        .await
        .expect("tried")
        .into_inner();
    assert!(
        dry.effects[0].contains("not known to this hub"),
        "{:?}",
        dry.effects
    );
    let done = inspected
        .membership
        .forget(by_alice(forget("gone", true)))
        .await
        .expect("done")
        .into_inner();
    // The first event says which rules fold the log.
    assert_eq!((done.done, done.revision), (true, 2));
    let again = inspected
        .membership
        .forget(by_alice(forget("gone", true)))
        .await
        .expect("answered")
        .into_inner();
    assert!(
        again.effects[0].contains("forgotten before"),
        "{:?}",
        again.effects
    );
    assert_eq!(again.revision, 3);
}

/// Each call that decides, once, and the kind of event that it leads to.
#[tokio::test]
async fn every_decision_is_recorded_under_the_name_in_the_certificate() {
    let (inspected, _east, mut west) = InspectedHub::with_two_members().await;
    let membership = &inspected.membership;
    let policy = PolicyService::new(membership.clone());
    let key = |byte: u8| KeyFingerprint([byte; 32]).to_string();
    macro_rules! decided {
        ($of:expr, $method:ident, $kind:literal, $message:expr) => {
            let done = $of.$method(by_alice($message)).await.expect($kind);
            assert!(done.get_ref().done && done.get_ref().revision > 0);
            let event = last_event(&inspected).await;
            assert_eq!((&*event.kind, &*event.decided_by), ($kind, "alice"));
        };
    }
    let document = wire::DEFAULT_POLICY.replace("{}", "{precedence: incumbent}");
    let apply = v1::ApplyPolicyRequest {
        document,
        confirm: true,
        ..Default::default()
    };
    decided!(policy, apply, "policy_applied", apply);
    west.report(vec![export("shop", "web", 1, 80)]).await;
    let release = v1::ReleasePrecedenceRequest {
        service: Some(v1::ServiceKey {
            namespace: "shop".into(),
            name: "web".into(),
        }),
        confirm: true,
        ..Default::default()
    };
    decided!(policy, release, "precedence_released", release);
    decided!(membership, rekey, "member_rekeyed", rekey(&key(1), "", true));
    let member_key = v1::RevokeMemberKeyRequest {
        cluster: "east".into(),
        key_fingerprint: key(2),
        confirm: true,
        ..Default::default()
    };
    decided!(membership, revoke_key, "member_key_revoked", member_key);
    let operator = v1::RevokeOperatorRequest {
        name: "bob".into(),
        key_fingerprint: key(3),
        confirm: true,
        ..Default::default()
    };
    decided!(membership, revoke_operator, "operator_key_revoked", operator);
    let reader = v1::RevokeReaderRequest {
        name: "dashboard".into(),
        key_fingerprint: key(4),
        confirm: true,
        ..Default::default()
    };
    decided!(membership, revoke_reader, "operator_key_revoked", reader);
    decided!(membership, evict, "member_evicted", evict("east", true));
    decided!(membership, forget, "member_forgotten", forget("gone", true));
    assert_eq!(west.cluster, cluster("west"));
}

fn drain(cluster: &str, after_millis: u64, confirm: bool) -> v1::DrainMemberRequest {
    v1::DrainMemberRequest {
        cluster: cluster.into(),
        after_millis,
        confirm,
        ..Default::default()
    }
}

fn stay(cluster: &str) -> v1::StayMemberRequest {
    v1::StayMemberRequest {
        cluster: cluster.into(),
        confirm: true,
        ..Default::default()
    }
}

#[tokio::test]
async fn a_member_is_drained_shown_as_leaving_and_stays_by_one_word() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let drains = |confirm| {
        inspected
            .membership
            .drain(by_alice(drain("east", 3_600_000, confirm)))
    };
    let dry = drains(false).await.expect("tried").into_inner();
    assert_eq!((dry.done, inspected.head()), (false, head));
    let text = dry.effects.join("\n");
    for said in [
        "east leaves in 3600 s; until then `member stay east` cancels that",
        "nobody else exports them: shop/web",
        &EAST_KEY.to_string(),
        "the id east is free",
    ] {
        assert!(text.contains(said), "{said} is not in:\n{text}");
    }
    let done = drains(true).await.expect("done").into_inner();
    assert_eq!((done.revision, &done.effects), (head + 1, &dry.effects));
    let event = last_event(&inspected).await;
    assert_eq!(event.kind, "member_leaving");
    let list = v1::ListMembersRequest::default();
    let listed = inspected
        .membership
        .list(by_alice(list.clone()))
        .await
        .expect("listed");
    let east = listed.into_inner().members.remove(0);
    let leaving = east.leaving.expect("it is to leave");
    assert_eq!((&*leaving.operator, leaving.evicts), ("alice", false));
    let again = drains(false).await.expect("tried").into_inner();
    assert!(again.effects.join("\n").contains("the time starts again"));

    let stays = || inspected.membership.stay(by_alice(stay("east")));
    assert_eq!(stays().await.expect("done").into_inner().revision, head + 2);
    assert!(stays().await.expect("answered").into_inner().nothing_to_do);
    let listed = inspected.membership.list(by_alice(list)).await.expect("listed");
    assert_eq!(listed.into_inner().members.remove(0).leaving, None);
}

#[tokio::test]
async fn what_cannot_be_of_a_drain_or_a_stay_is_a_line_and_changes_nothing() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    inspected
        .membership
        .evict(by_alice(evict("east", true)))
        .await
        .expect("done");
    let head = inspected.head();
    let unknown = inspected.membership.drain(by_alice(drain("north", 1, true)));
    assert_eq!(unknown.await.expect_err("refused").code(), Code::NotFound);
    let long = inspected
        .membership
        .drain(by_alice(drain("west", u64::MAX, true)));
    assert_eq!(long.await.expect_err("refused").code(), Code::FailedPrecondition);
    let late = inspected.membership.stay(by_alice(stay("east")));
    let late = late.await.expect_err("too late");
    assert!(late.message().starts_with("too late for east to stay"), "{late}");
    assert!(!late.message().contains('\n'));
    let operator = inspected
        .membership
        .leave(by_alice(v1::LeaveRequest::default()))
        .await;
    let operator = operator.expect_err("no member");
    assert!(operator.message().contains("member drain"), "{operator}");
    assert_eq!(inspected.head(), head);
}

#[tokio::test]
async fn a_member_leaves_with_its_own_certificate_and_hears_that_it_has_left() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let leaves = |confirm| {
        let leave = v1::LeaveRequest {
            confirm,
            ..Default::default()
        };
        inspected.membership.leave(by_east(leave))
    };
    let dry = leaves(false).await.expect("tried").into_inner();
    assert_eq!((dry.done, inspected.head()), (false, head));
    let done = leaves(true).await.expect("done").into_inner();
    assert_eq!((done.revision, &done.effects), (head + 1, &dry.effects));
    let event = last_event(&inspected).await;
    assert_eq!(
        (event.kind.as_str(), event.cluster.as_str()),
        ("member_left", "east")
    );
    let again = leaves(true).await.expect_err("it has left");
    assert_eq!(
        again.code(),
        Code::NotFound,
        "the answer got lost, and it asks again"
    );
    assert_eq!(inspected.head(), head + 1);
}
