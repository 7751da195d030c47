//! Who may do what: the table, and a request of each kind through the services themselves.

use proto::v1::{
    self, event_log_server::EventLog, membership_server::Membership, state_server::State as StateService,
};
use shared::model::KeyFingerprint;
use tonic::Code;

use super::inspected_hub::{EAST_KEY, InspectedHub, WEST_KEY, by, by_alice, by_east, clusterset, peer};
use crate::inspect::access::{Need, check};

const KEY: KeyFingerprint = KeyFingerprint([1; 32]);

#[test]
fn operators_read_and_decide_members_read_hubs_and_strangers_do_nothing() {
    let default = "spiffe://example.org/clusterset/default";
    let table = [
        ("operator/alice", "", true, true),
        ("operator/alice", "default", true, true),
        ("operator/alice", "example.org/default", true, true),
        ("operator/alice", "other", false, false),
        ("operator/alice", "example.com/default", false, false),
        ("cluster/east", "", true, false),
        ("cluster/east", "default", true, false),
        ("cluster/east", "other", false, false),
        ("hub/hub", "", false, false),
    ];
    for (holder, named, reads, decides) in table {
        let peer = peer(&format!("{default}/{holder}"), KEY);
        assert_eq!(
            check(&clusterset(), &peer, named, Need::Read).is_ok(),
            reads,
            "{holder} reads {named:?}"
        );
        assert_eq!(
            check(&clusterset(), &peer, named, Need::Decide).is_ok(),
            decides,
            "{holder} decides {named:?}"
        );
    }
}

#[test]
fn a_refusal_says_whose_certificate_it_is() {
    for (uri, named) in [
        ("spiffe://example.org/clusterset/other/operator/alice", ""),
        ("spiffe://example.org/clusterset/other/operator/alice", "default"),
        ("spiffe://example.com/clusterset/default/operator/alice", ""),
        ("spiffe://example.org/clusterset/other/cluster/east", ""),
        ("spiffe://example.org/clusterset/default/operator/alice", "other"),
        ("spiffe://example.org/clusterset/default/hub/hub", ""),
    ] {
        let refusal = check(&clusterset(), &peer(uri, KEY), named, Need::Read).expect_err(uri);
        assert!(refusal.contains(uri), "{refusal}");
        assert!(
            refusal.contains("example.org/default") || uri.ends_with("hub/hub"),
            "{refusal}"
        );
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
