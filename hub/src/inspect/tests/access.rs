//! Tests of the rights of each role: the table, and a request of each kind through the services themselves.

use proto::v1::{
    self, event_log_server::EventLog, membership_server::Membership, policy_server::Policy,
    state_server::State as StateService,
};
use shared::model::{Clusterset, KeyFingerprint};
use tonic::Code;

use super::inspected_hub::{
    EAST_KEY, InspectedHub, WEST_KEY, by, by_alice, by_dashboard, by_east, cluster, clusterset, peer,
};
use crate::{
    inspect::{
        access::{Need, check},
        concern::Sight,
    },
    membership::PolicyService,
};

const KEY: KeyFingerprint = KeyFingerprint([1; 32]);

/// The rights of each role, in the order of [`NEEDS`].
const NEEDS: [Need; 4] = [Need::Read, Need::ReadAll, Need::Decide, Need::Copy];

#[test]
fn operators_decide_readers_read_members_read_their_own_and_hubs_nothing() {
    let default = "spiffe://example.org/clusterset/default";
    let (all, reads, own, nothing) = (
        [true, true, true, true],
        [true, true, false, false],
        [true, false, false, false],
        [false; 4],
    );
    let table = [
        ("operator/alice", "", all),
        ("operator/alice", "default", all),
        ("operator/alice", "example.org/default", all),
        ("operator/alice", "other", nothing),
        ("operator/alice", "example.com/default", nothing),
        ("reader/alice", "", reads),
        ("reader/alice", "default", reads),
        ("reader/alice", "other", nothing),
        ("cluster/east", "", own),
        ("cluster/east", "default", own),
        ("cluster/east", "other", nothing),
        ("hub/hub", "", nothing),
    ];
    for (holder, named, may) in table {
        let peer = peer(&format!("{default}/{holder}"), KEY);
        let allowed = NEEDS.map(|need| check(&clusterset(), &peer, named, need).is_ok());
        assert_eq!(allowed, may, "{holder} asking {named:?} for {NEEDS:?}");
    }
    let of = |holder: &str| {
        let peer = peer(&format!("{default}/{holder}"), KEY);
        let caller = check(&clusterset(), &peer, "", Need::Read).expect("reads");
        caller.sight()
    };
    assert_eq!(of("operator/alice"), Sight::Everything);
    assert_eq!(of("reader/alice"), Sight::Everything);
    assert_eq!(of("cluster/east"), Sight::Of(cluster("east")));
}

#[test]
fn a_refusal_says_whose_certificate_it_is_and_what_would_do() {
    for (uri, named, need, told) in [
        (
            "default/operator/alice",
            "other",
            Need::Read,
            "leave clusterset empty",
        ),
        ("default/hub/hub", "", Need::Read, "certs reader"),
        ("default/reader/bob", "", Need::Decide, "only an operator decides"),
        ("default/reader/bob", "", Need::Copy, "only an operator copies"),
        (
            "default/cluster/east",
            "",
            Need::ReadAll,
            "only operators and readers",
        ),
        ("default/cluster/east", "", Need::Decide, "certs operator"),
    ] {
        let uri = format!("spiffe://example.org/clusterset/{uri}");
        let refusal = check(&clusterset(), &peer(&uri, KEY), named, need).expect_err(&uri);
        assert!(refusal.contains(&uri) && refusal.contains(told), "{refusal}");
    }
}

#[test]
fn a_stranger_hears_no_name_but_its_own() {
    let served = Clusterset::new("served.example", "secret").expect("valid");
    for uri in [
        "spiffe://served.example/clusterset/other/operator/alice",
        "spiffe://example.com/clusterset/secret/cluster/east",
        "spiffe://example.com/clusterset/other/hub/hub",
        "spiffe://example.com/clusterset/other/reader/bob",
    ] {
        for (named, need) in [("", Need::Read), ("guess", Need::Decide), ("", Need::Copy)] {
            let refusal = check(&served, &peer(uri, KEY), named, need).expect_err(uri);
            let besides = refusal.replace(uri, "");
            let clusterset = uri.split('/').nth(4).expect("its clusterset");
            let domain = uri.split('/').nth(2).expect("its domain");
            let besides = besides.replace(&format!("{domain}/{clusterset}"), "");
            for name in ["secret", "served.example", "guess"] {
                assert!(!besides.contains(name), "{refusal}");
            }
            assert!(refusal.contains("connect to the hub that does"), "{refusal}");
        }
    }
}

#[tokio::test]
async fn every_method_refuses_another_clusterset_and_a_connection_without_a_peer() {
    let inspected = InspectedHub::new();
    let (inspection, membership) = (&inspected.inspection, &inspected.membership);
    let stranger = || peer("spiffe://example.org/clusterset/other/operator/mallory", KEY);
    macro_rules! refused {
        ($service:ident, $of:expr, $method:ident, $message:expr) => {
            let status = $service::$method($of, by($message, stranger()))
                .await
                .err()
                .expect("refused");
            assert_eq!(status.code(), Code::PermissionDenied, "{status}");
            assert!(!status.message().contains("default"), "{status}");
            let bare = $service::$method($of, tonic::Request::new($message))
                .await
                .err()
                .expect("refused");
            assert_eq!(bare.code(), Code::Unauthenticated, "{bare}");
            let named = {
                let mut message = $message;
                message.clusterset.push_str("other");
                message
            };
            let status = $service::$method($of, by_alice(named))
                .await
                .err()
                .expect("refused");
            assert_eq!(status.code(), Code::PermissionDenied, "{status}");
        };
    }
    refused!(EventLog, inspection, list, v1::ListEventsRequest::default());
    refused!(EventLog, inspection, watch, v1::WatchEventsRequest::default());
    refused!(StateService, inspection, get, v1::GetStateRequest::default());
    refused!(StateService, inspection, explain, v1::ExplainRequest::default());
    refused!(Membership, membership, list, v1::ListMembersRequest::default());
    refused!(Membership, membership, rekey, v1::RekeyMemberRequest::default());
    refused!(Membership, membership, evict, v1::EvictMemberRequest::default());
    refused!(Membership, membership, forget, v1::ForgetMemberRequest::default());
    refused!(
        Membership,
        membership,
        revoke_key,
        v1::RevokeMemberKeyRequest::default()
    );
    refused!(
        Membership,
        membership,
        revoke_operator,
        v1::RevokeOperatorRequest::default()
    );
    refused!(
        Membership,
        membership,
        revoke_reader,
        v1::RevokeReaderRequest::default()
    );
    refused!(EventLog, inspection, backup, v1::BackupRequest::default());
    let policy = &PolicyService::new(membership.clone());
    refused!(Policy, policy, get, v1::GetPolicyRequest::default());
    refused!(Policy, policy, apply, v1::ApplyPolicyRequest::default());
    refused!(Policy, policy, release, v1::ReleasePrecedenceRequest::default());
}

#[tokio::test]
async fn a_member_reads_and_does_not_decide() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let head = inspected.head();
    let evict = v1::EvictMemberRequest {
        cluster: "west".into(),
        confirm: true,
        ..Default::default()
    };
    let status = inspected
        .membership
        .evict(by_east(evict))
        .await
        .expect_err("refused");
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("cluster/east"), "{status}");
    assert_eq!(inspected.head(), head, "nothing was recorded");
    let list = EventLog::list(&inspected.inspection, by_east(v1::ListEventsRequest::default()));
    assert_eq!(list.await.expect("answered").get_ref().head_revision, head);
}

#[tokio::test]
async fn a_reader_reads_all_that_an_operator_reads_and_decides_nothing_not_even_dry() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let (inspection, membership) = (&inspected.inspection, &inspected.membership);
    let policy = &PolicyService::new(membership.clone());
    let head = inspected.head();
    macro_rules! same {
        ($service:ident, $of:expr, $method:ident, $message:expr) => {
            let operators = $service::$method($of, by_alice($message))
                .await
                .expect("read");
            let readers = $service::$method($of, by_dashboard($message))
                .await
                .expect("read");
            assert_eq!(operators.into_inner(), readers.into_inner());
        };
    }
    same!(EventLog, inspection, list, v1::ListEventsRequest::default());
    same!(StateService, inspection, get, v1::GetStateRequest::default());
    let cart = || v1::ExplainRequest {
        namespace: "shop".into(),
        name: "cart".into(),
        ..Default::default()
    };
    same!(StateService, inspection, explain, cart());
    same!(Membership, membership, list, v1::ListMembersRequest::default());
    same!(Policy, policy, get, v1::GetPolicyRequest::default());
    EventLog::watch(inspection, by_dashboard(v1::WatchEventsRequest::default()))
        .await
        .expect("watched");
    macro_rules! refused {
        ($service:ident, $of:expr, $method:ident, $message:ident) => {
            for confirm in [false, true] {
                let message = v1::$message {
                    confirm,
                    ..Default::default()
                };
                let status = $service::$method($of, by_dashboard(message))
                    .await
                    .expect_err("refused");
                assert_eq!(status.code(), Code::PermissionDenied, "{status}");
                assert!(
                    status.message().contains("only an operator decides"),
                    "{status}"
                );
            }
        };
    }
    refused!(Membership, membership, rekey, RekeyMemberRequest);
    refused!(Membership, membership, evict, EvictMemberRequest);
    refused!(Membership, membership, forget, ForgetMemberRequest);
    refused!(Membership, membership, revoke_key, RevokeMemberKeyRequest);
    refused!(Membership, membership, revoke_operator, RevokeOperatorRequest);
    refused!(Membership, membership, revoke_reader, RevokeReaderRequest);
    refused!(Policy, policy, apply, ApplyPolicyRequest);
    refused!(Policy, policy, release, ReleasePrecedenceRequest);
    let copied = EventLog::backup(inspection, by_dashboard(v1::BackupRequest::default())).await;
    let status = copied.err().expect("refused");
    assert!(status.message().contains("only an operator copies"), "{status}");
    assert_eq!(inspected.head(), head, "nothing was recorded");
}

#[tokio::test]
async fn a_member_that_was_evicted_reads_no_more_with_its_key() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
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
    let get = |key| {
        let east = peer("spiffe://example.org/clusterset/default/cluster/east", key);
        inspected.inspection.get(by(v1::GetStateRequest::default(), east))
    };
    let status = get(EAST_KEY).await.expect_err("refused");
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains(&EAST_KEY.to_string()), "{status}");
    get(WEST_KEY).await.expect("a certificate with a new key reads");
}
