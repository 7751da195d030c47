//! Tests of a member's sight: its own state, and the part of others' that every member gets. Each call once, and the
//! rule as a table.

use futures::StreamExt;
use proto::v1::{self, event_log_server::EventLog, membership_server::Membership, state_server::State as _};
use shared::model::{ClusterId, Event, Fact, KeyFingerprint, Revision, SessionId, UnixMillis};
use tonic::{Code, Status};

use super::inspected_hub::{InspectedHub, WEST_KEY, by_alice, by_east, by_west, cluster, service};
use crate::{
    fold::KeyHolder,
    inspect::concern::{Shown, Sight},
};

fn event(of: Option<&str>, fact: Fact) -> Event {
    let encoded = shared::wire::encode_fact(&fact);
    Event {
        revision: Revision(1),
        recorded_at: UnixMillis(1),
        cluster: of.map(cluster),
        incarnation: Revision(1),
        session: SessionId(0),
        member_sequence: 0,
        fact: encoded,
        changed_by: None,
    }
}

#[test]
fn a_member_is_concerned_by_its_own_and_by_imports() {
    let east = Sight::Of(cluster("east"));
    let (own, other): (ClusterId, ClusterId) = (cluster("east"), cluster("west"));
    let claim = |id: &str| shared::model::PrecedenceClaim {
        cluster: cluster(id),
        uid: "uid".into(),
        created_at: UnixMillis(1),
    };
    let contested = Fact::PrecedenceContested {
        service: service("shop", "cart"),
        standing: claim("west"),
        challenger: claim("east"),
        held: false,
    };
    let events = [
        (event(Some("east"), Fact::MemberLost), true),
        (event(Some("west"), Fact::MemberLost), false),
        (event(None, Fact::TombstonesBounded { max: 1 }), false),
        (event(Some("east"), contested), false),
    ];
    for (event, shown) in &events {
        assert_eq!(east.shows(Shown::Event(event)), *shown, "{event:?}");
        assert!(Sight::Everything.shows(Shown::Event(event)));
    }
    let holders = [
        (KeyHolder::Member(own.clone()), true),
        (KeyHolder::Member(other.clone()), false),
        (KeyHolder::Operator("east".into()), false),
        (KeyHolder::Reader("east".into()), false),
    ];
    for (holder, shown) in &holders {
        assert_eq!(east.shows(Shown::RevokedKey(holder)), *shown, "{holder:?}");
        assert!(Sight::Everything.shows(Shown::RevokedKey(holder)));
    }
    assert!(east.shows(Shown::Cluster(&own)) && !east.shows(Shown::Cluster(&other)));
    assert!(east.shows(Shown::Import) && Sight::Everything.shows(Shown::Cluster(&other)));
}

#[tokio::test]
async fn a_member_gets_its_own_state_and_every_import() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let get = v1::GetStateRequest::default;
    let all = inspected.inspection.get(by_alice(get())).await.expect("all");
    let got = inspected.inspection.get(by_west(get())).await.expect("got");
    let (all, got) = (all.into_inner(), got.into_inner());
    assert_eq!(
        (all.members.len(), all.exports.len(), all.profiles.len()),
        (2, 3, 2)
    );
    let of_west = |clusters: Vec<&String>| clusters.into_iter().all(|cluster| cluster == "west");
    assert!(got.members.len() == 1 && of_west(got.members.iter().map(|it| &it.cluster).collect()));
    assert!(got.exports.len() == 1 && of_west(got.exports.iter().map(|it| &it.cluster).collect()));
    assert!(got.profiles.len() == 1 && of_west(got.profiles.iter().map(|it| &it.cluster).collect()));
    assert_eq!((got.imports, got.revision), (all.imports, all.revision));
}

#[tokio::test]
async fn a_member_that_names_another_is_refused_whether_there_is_one_or_not() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let get = |cluster: &str, parts: &[v1::StatePart]| {
        let request = v1::GetStateRequest {
            cluster: cluster.into(),
            parts: parts.iter().map(|part| (*part).into()).collect(),
            ..Default::default()
        };
        inspected.inspection.get(by_west(request))
    };
    let list = |cluster: &str| {
        let filter = Some(v1::EventFilter {
            cluster: cluster.into(),
            ..Default::default()
        });
        let request = v1::ListEventsRequest {
            filter,
            ..Default::default()
        };
        EventLog::list(&inspected.inspection, by_west(request))
    };
    let told = |status: Status, name: &str| {
        assert_eq!(status.code(), Code::PermissionDenied);
        status.message().replace(name, "NAME")
    };
    let east = told(get("east", &[]).await.expect_err("refused"), "east");
    let nobody = told(get("nobody", &[]).await.expect_err("refused"), "nobody");
    assert_eq!(east, nobody);
    for part in [
        v1::StatePart::Members,
        v1::StatePart::StateExports,
        v1::StatePart::Profiles,
    ] {
        told(get("east", &[part]).await.expect_err("refused"), "east");
    }
    let east = told(list("east").await.expect_err("refused"), "east");
    let nobody = told(list("nobody").await.expect_err("refused"), "nobody");
    assert_eq!(east, nobody);
    get("west", &[]).await.expect("its own");
    list("west").await.expect("its own");
    let imports = get("east", &[v1::StatePart::Imports]).await.expect("imports");
    assert_eq!(imports.get_ref().imports.len(), 2, "imports show their clusters");
}

#[tokio::test]
async fn a_member_lists_itself_and_its_own_revoked_keys() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let membership = &inspected.membership;
    for (cluster, byte) in [("east", 7_u8), ("west", 8)] {
        let revoke = v1::RevokeMemberKeyRequest {
            cluster: cluster.into(),
            key_fingerprint: KeyFingerprint([byte; 32]).to_string(),
            confirm: true,
            ..Default::default()
        };
        membership.revoke_key(by_alice(revoke)).await.expect("revoked");
    }
    let reader = v1::RevokeReaderRequest {
        name: "west".into(),
        key_fingerprint: KeyFingerprint([9; 32]).to_string(),
        confirm: true,
        ..Default::default()
    };
    membership.revoke_reader(by_alice(reader)).await.expect("revoked");
    let list = v1::ListMembersRequest::default;
    let all = membership.list(by_alice(list())).await.expect("all").into_inner();
    assert_eq!((all.members.len(), all.revoked_keys.len()), (2, 3));
    assert_eq!(all.revoked_keys[2].reader, "west");
    let own = membership.list(by_west(list())).await.expect("own").into_inner();
    assert_eq!((own.members.len(), own.revoked_keys.len()), (1, 1));
    assert_eq!(own.members[0].key_fingerprints, [WEST_KEY.to_string()]);
    assert_eq!(own.revoked_keys[0].cluster, "west");
}

#[tokio::test]
async fn a_member_reads_and_watches_the_events_of_its_own_cluster() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let list = v1::ListEventsRequest::default;
    let all = EventLog::list(&inspected.inspection, by_alice(list())).await;
    let all = all.expect("all").into_inner();
    let own = EventLog::list(&inspected.inspection, by_west(list())).await;
    let own = own.expect("own").into_inner();
    let wests: Vec<&v1::Event> = all
        .events
        .iter()
        .filter(|event| event.cluster == "west")
        .collect();
    assert!(wests.len() > 2 && wests.len() < all.events.len());
    assert_eq!(
        own.events.iter().collect::<Vec<_>>(),
        wests,
        "with the revisions that they have"
    );
    assert_eq!(own.head_revision, all.head_revision);

    let request = v1::WatchEventsRequest {
        from_revision: Some(0),
        ..Default::default()
    };
    let watched = inspected.inspection.watch(by_west(request)).await;
    let watched = watched.expect("begun").into_inner().take(wests.len());
    let watched: Vec<v1::Event> = watched
        .map(|item| item.expect("open").event.expect("set"))
        .collect()
        .await;
    assert_eq!(watched.iter().collect::<Vec<_>>(), wests);
}

#[tokio::test]
async fn an_explanation_tells_a_member_of_its_own_export_and_of_others_what_the_import_says() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let cart = || v1::ExplainRequest {
        namespace: "shop".into(),
        name: "cart".into(),
        ..Default::default()
    };
    let all = inspected.inspection.explain(by_alice(cart())).await;
    let all = all.expect("all").into_inner();
    assert_eq!((all.candidates.len(), all.conflicts.len()), (2, 1));
    let own = inspected.inspection.explain(by_west(cart())).await;
    let own = own.expect("own").into_inner();
    assert_eq!(own.import, all.import);
    assert_eq!(own.conflicts, all.conflicts, "as the status of its export shows");
    assert_eq!(own.candidates, all.candidates[1..], "its own alone");
    assert!(own.decisions.is_empty(), "east won them all");
    assert!(own.events.iter().all(|event| event.cluster == "west") && !own.events.is_empty());
    assert_eq!(own.events_out_of_reach, 0);
    assert_eq!(
        own.summary,
        "shop/cart is imported from 2 clusters; the export of west is number 2 in the order of precedence."
    );

    let web = v1::ExplainRequest {
        name: "web".into(),
        ..cart()
    };
    let own = inspected.inspection.explain(by_west(web)).await;
    let own = own.expect("own").into_inner();
    assert!(own.import.is_some() && own.candidates.is_empty() && own.events.is_empty());
    assert_eq!(
        own.summary,
        "shop/web is imported from 1 cluster; west does not export it."
    );
}

#[tokio::test]
async fn a_member_learns_of_no_export_of_others_that_is_not_imported() {
    let (inspected, mut east, _west) = InspectedHub::with_two_members().await;
    east.report(vec![super::inspected_hub::export("kube-system", "dns", 1, 53)])
        .await;
    let explain = |name: &str| v1::ExplainRequest {
        namespace: "kube-system".into(),
        name: name.into(),
        ..Default::default()
    };
    let of_east = inspected.inspection.explain(by_east(explain("dns"))).await;
    let of_east = of_east.expect("own").into_inner();
    assert_eq!(of_east.refused.len(), 1, "{of_east:?}");
    assert!(
        of_east.summary.contains("the export of east is not taken"),
        "{of_east:?}"
    );
    let ask = async |name: &str| {
        let answer = inspected.inspection.explain(by_west(explain(name))).await;
        let mut answer = answer.expect("answered").into_inner();
        answer.summary = answer.summary.replace(name, "NAME");
        answer
    };
    assert_eq!(ask("dns").await, ask("nothing").await);
}
