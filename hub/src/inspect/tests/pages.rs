//! Answers in pages: all of one revision while everything changes, nothing twice, nothing missing, and what becomes of
//! tokens that nobody gave out or whose revision is not kept any more.

use prost::Message as _;
use proto::v1::{self, membership_server::Membership, state_server::State as StateService};
use shared::model::{Fact, KeyFingerprint, sync::MESSAGE_BYTES_MAX};
use tonic::{Code, Status};

use super::inspected_hub::{InspectedHub, Member, by_alice, export, service};
use crate::inspect::{PAGE_BYTES_MAX, PAGE_OBJECTS_DEFAULT, PINNED_FOR_PEOPLE_MAX};

async fn get(inspected: &InspectedHub, request: v1::GetStateRequest) -> Result<v1::GetStateResponse, Status> {
    let got = inspected.inspection.get(by_alice(request)).await?;
    Ok(got.into_inner())
}

async fn list(inspected: &InspectedHub, page_size: u32, page_token: &str) -> v1::ListMembersResponse {
    let request = v1::ListMembersRequest {
        page_size,
        page_token: page_token.into(),
        ..Default::default()
    };
    let listed = Membership::list(&inspected.membership, by_alice(request)).await;
    listed.expect("listed").into_inner()
}

fn of_size(page_size: u32, page_token: &str) -> v1::GetStateRequest {
    v1::GetStateRequest {
        page_size,
        page_token: page_token.into(),
        ..Default::default()
    }
}

/// All pages of a request as one answer; between two pages something is done.
async fn walked(
    inspected: &InspectedHub,
    request: v1::GetStateRequest,
    mut between: impl AsyncFnMut(usize),
) -> (v1::GetStateResponse, usize) {
    let mut all = get(inspected, request.clone()).await.expect("answered");
    let mut pages = 1;
    while !all.next_page_token.is_empty() {
        between(pages).await;
        let next = v1::GetStateRequest {
            page_token: all.next_page_token.clone(),
            ..request.clone()
        };
        let page = get(inspected, next).await.expect("answered");
        assert_eq!((page.revision, &page.epoch), (all.revision, &all.epoch));
        assert!(page.encoded_len() <= MESSAGE_BYTES_MAX);
        all.members.extend(page.members);
        all.exports.extend(page.exports);
        all.imports.extend(page.imports);
        all.profiles.extend(page.profiles);
        all.next_page_token = page.next_page_token;
        pages += 1;
    }
    (all, pages)
}

/// Without what an answer says of the time.
fn content(state: v1::GetStateResponse) -> v1::GetStateResponse {
    v1::GetStateResponse {
        answered_by: None,
        ..state
    }
}

async fn with_exports(count: usize) -> (InspectedHub, Member, Member) {
    let (inspected, mut east, west) = InspectedHub::with_two_members().await;
    let exports = (0..count).map(|number| {
        export(
            &format!("team-{}", number % 3),
            &format!("service-{number}"),
            100,
            80,
        )
    });
    east.report(exports.collect()).await;
    (inspected, east, west)
}

#[tokio::test]
async fn all_pages_are_of_one_revision_whatever_happens_between_them() {
    let (inspected, mut east, _west) = with_exports(20).await;
    let whole = get(&inspected, of_size(0, "")).await.expect("answered");
    assert_eq!(whole.next_page_token, "");
    assert_eq!(
        (
            whole.members.len(),
            whole.exports.len(),
            whole.imports.len(),
            whole.profiles.len()
        ),
        (2, 23, 22, 2)
    );
    for page_size in [1, 2, 7, 48, 49, u32::MAX] {
        let whole = get(&inspected, of_size(0, "")).await.expect("answered");
        let change = async |number: usize| {
            let (new, old) = (format!("new-{number}"), format!("service-{}", number % 20));
            let renewed = export("team-0", &format!("service-{}", 3 * number % 20), 100, 81);
            east.report(vec![
                export("team-1", &new, 100, 80),
                Fact::ExportRemoved(service("team-2", &old)),
                renewed,
            ])
            .await;
        };
        let (paged, pages) = walked(&inspected, of_size(page_size, ""), change).await;
        let objects = whole.members.len() + whole.exports.len() + whole.imports.len() + whole.profiles.len();
        assert_eq!(pages, objects.div_ceil(page_size as usize), "of {page_size}");
        assert_eq!(content(paged), content(whole), "in pages of {page_size}");
    }
}

#[tokio::test]
async fn pages_are_narrowed_as_whole_answers_are() {
    let (inspected, ..) = with_exports(20).await;
    let narrowed = [
        ("east", "", vec![]),
        ("west", "", vec![]),
        ("", "team-1", vec![]),
        (
            "east",
            "shop",
            vec![v1::StatePart::Imports, v1::StatePart::StateExports],
        ),
        ("", "", vec![v1::StatePart::Profiles, v1::StatePart::Members]),
        ("nobody", "", vec![]),
    ];
    for (cluster, namespace, parts) in narrowed {
        let request = v1::GetStateRequest {
            cluster: cluster.into(),
            namespace: namespace.into(),
            parts: parts.into_iter().map(Into::into).collect(),
            ..Default::default()
        };
        let whole = get(&inspected, request.clone()).await.expect("answered");
        for page_size in [1, 3] {
            let request = v1::GetStateRequest {
                page_size,
                ..request.clone()
            };
            let (paged, _) = walked(&inspected, request, async |_| {}).await;
            assert_eq!(
                content(paged),
                content(whole.clone()),
                "{cluster:?} {namespace:?}"
            );
        }
    }
}

#[tokio::test]
async fn members_and_refused_keys_come_in_pages_too() {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    for number in 1..=3 {
        let revoke = v1::RevokeMemberKeyRequest {
            cluster: "east".into(),
            key_fingerprint: KeyFingerprint([number; 32]).to_string(),
            confirm: true,
            ..Default::default()
        };
        let revoked = inspected.membership.revoke_key(by_alice(revoke)).await;
        revoked.expect("revoked");
    }
    let whole = list(&inspected, 0, "").await;
    assert_eq!(
        (
            whole.members.len(),
            whole.revoked_keys.len(),
            whole.next_page_token.as_str()
        ),
        (2, 3, "")
    );
    for page_size in 1..=5 {
        let (mut members, mut keys, mut token) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = list(&inspected, page_size, &token).await;
            members.extend(page.members);
            keys.extend(page.revoked_keys);
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(
            (&members, &keys),
            (&whole.members, &whole.revoked_keys),
            "in pages of {page_size}"
        );
    }
}

#[tokio::test]
async fn a_revision_that_is_not_kept_any_more_says_to_start_again() {
    let (inspected, mut east, _west) = with_exports(3).await;
    let mut tokens = Vec::new();
    for number in 0..=PINNED_FOR_PEOPLE_MAX {
        let page = get(&inspected, of_size(1, "")).await.expect("answered");
        tokens.push(page.next_page_token);
        east.report(vec![export("shop", &format!("new-{number}"), 100, 80)])
            .await;
    }
    let gone = get(&inspected, of_size(1, &tokens[0]))
        .await
        .expect_err("one too many");
    assert_eq!(gone.code(), Code::Aborted);
    assert!(
        gone.message().contains("Start again, without page_token"),
        "{gone}"
    );
    for token in &tokens[1..] {
        let page = get(&inspected, of_size(1, token)).await.expect("kept");
        let age = page.answered_by.map(|by| (by.revision, by.age_millis));
        assert_eq!(age.map(|(revision, _)| revision), Some(page.revision));
    }
    let head = inspected.head();
    let newest = get(&inspected, of_size(1, "")).await.expect("answered");
    assert_eq!(newest.revision, head);
    let second = get(&inspected, of_size(1, &newest.next_page_token))
        .await
        .expect("kept");
    assert_eq!(
        second.answered_by.map(|by| by.age_millis),
        Some(0),
        "it is the newest there is"
    );
}

#[tokio::test]
async fn a_token_that_nobody_gave_out_is_refused_and_changes_nothing() {
    let (inspected, ..) = with_exports(3).await;
    let first = get(&inspected, of_size(2, "")).await.expect("answered");
    let token = first.next_page_token;
    let head = inspected.head();
    for bad in [
        "x",
        "1:2:3",
        &token[1..],
        &format!("{token}x:"),
        &"1".repeat(100_000),
    ] {
        let refused = get(&inspected, of_size(2, bad)).await.expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("leave it empty"), "{refused}");
    }
    let another = v1::GetStateRequest {
        cluster: "east".into(),
        ..of_size(2, &token)
    };
    let refused = get(&inspected, another).await.expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("another request"), "{refused}");
    let of_list = list(&inspected, 1, "").await.next_page_token;
    let refused = get(&inspected, of_size(2, &of_list)).await.expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(inspected.head(), head);
    let second = get(&inspected, of_size(5, &token))
        .await
        .expect("the size of pages is free");
    assert_eq!(second.exports.len() + second.members.len(), 5);
}

#[tokio::test]
async fn a_fleet_of_a_thousand_is_shown_in_full() {
    let inspected = InspectedHub::new();
    let mut fleet = Vec::new();
    for number in 0..1_000_u32 {
        let mut key = [0xff; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        fleet.push(
            inspected
                .join(&format!("member-{number:04}"), KeyFingerprint(key))
                .await,
        );
    }
    let listed = list(&inspected, 0, "").await;
    assert_eq!(
        (listed.members.len(), listed.next_page_token.as_str()),
        (1_000, "")
    );
    let (state, pages) = walked(&inspected, of_size(0, ""), async |_| {}).await;
    assert_eq!((state.members.len(), state.profiles.len()), (1_000, 1_000));
    assert_eq!(pages, 2_000_usize.div_ceil(PAGE_OBJECTS_DEFAULT as usize));
    assert!(state.members.iter().all(|member| member.connected));
}

#[tokio::test]
async fn pages_are_cut_before_they_are_too_large() {
    let (inspected, mut east, _west) = InspectedHub::with_two_members().await;
    let large = |number: usize| {
        let Fact::ExportUpserted(export) = export("shop", &format!("large-{number}"), 100, 80) else {
            panic!("another fact");
        };
        let mut export = (*export).clone();
        let note = ("example.org/note".into(), "x".repeat(30_000).into());
        export.annotations = [note].into_iter().collect();
        Fact::ExportUpserted(export.into())
    };
    for batch in 0..10 {
        east.report((0..10).map(|number| large(10 * batch + number)).collect())
            .await;
    }
    let first = get(&inspected, of_size(0, "")).await.expect("answered");
    let bytes = first.encoded_len();
    assert!(
        bytes > PAGE_BYTES_MAX - 40_000 && bytes < PAGE_BYTES_MAX + 10_000,
        "{bytes}"
    );
    let (all, pages) = walked(&inspected, of_size(0, ""), async |_| {}).await;
    assert!(pages >= 3, "{pages}");
    assert_eq!((all.exports.len(), all.imports.len()), (103, 102));
}
