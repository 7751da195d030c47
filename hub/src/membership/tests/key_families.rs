//! Keys that are revoked together with another: shown before, refused together, and their connections ended.

use proto::v1::{self, membership_server::Membership};
use shared::model::{KeyFingerprint, UnixMillis};

use crate::{
    fold::Command,
    inspect::tests::inspected_hub::{EAST_KEY, InspectedHub, by_alice, cluster},
};

const THIRD_KEY: KeyFingerprint = KeyFingerprint([3; 32]);
const FOURTH_KEY: KeyFingerprint = KeyFingerprint([4; 32]);

/// East's key got another one certified, and that a third.
async fn renewed_twice() -> InspectedHub {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    for (key, by) in [(THIRD_KEY, EAST_KEY), (FOURTH_KEY, THIRD_KEY)] {
        let certify = Command::CertifyKey {
            cluster: cluster("east"),
            key,
            by,
            issuer: "CN=joining".into(),
            not_after: UnixMillis(u64::MAX),
            at: UnixMillis(1_000),
        };
        let operated = inspected.hub.writer.operate(certify, true, |_, _, _| Vec::new());
        operated.await.expect("the writer runs").expect("certified");
    }
    inspected
}

fn revoke(key: KeyFingerprint, confirm: bool) -> v1::RevokeMemberKeyRequest {
    v1::RevokeMemberKeyRequest {
        cluster: "east".into(),
        key_fingerprint: key.to_string(),
        confirm,
        ..Default::default()
    }
}

async fn keys(inspected: &InspectedHub) -> (usize, usize) {
    let list = by_alice(v1::ListMembersRequest::default());
    let listed = inspected
        .membership
        .list(list)
        .await
        .expect("answered")
        .into_inner();
    (
        listed.members[0].key_fingerprints.len(),
        listed.revoked_keys.len(),
    )
}

#[tokio::test]
async fn keys_that_were_certified_over_a_revoked_one_are_told_and_go_with_it() {
    let inspected = renewed_twice().await;
    let head = inspected.head();
    let revokes = |confirm| {
        inspected
            .membership
            .revoke_key(by_alice(revoke(EAST_KEY, confirm)))
    };
    let dry = revokes(false).await.expect("tried").into_inner();
    assert_eq!((inspected.head(), keys(&inspected).await), (head, (3, 0)));
    let expected = [
        format!("key {EAST_KEY} is refused for ever, in any certificate; its open connections end"),
        format!("key {THIRD_KEY} of east was certified over its sessions, and is refused for ever with it"),
        format!("key {FOURTH_KEY} of east was certified over its sessions, and is refused for ever with it"),
        "east has no other key: it stays a member with its exports, and cannot connect until an operator admits a new \
         one (`member rekey`)"
            .to_owned(),
    ];
    assert_eq!(dry.effects, expected);
    let done = revokes(true).await.expect("done").into_inner();
    assert_eq!(done.effects, expected);
    assert_eq!((inspected.head(), keys(&inspected).await), (head + 3, (0, 3)));
    assert!(revokes(true).await.expect("answered").into_inner().nothing_to_do);
}

#[tokio::test]
async fn the_key_before_stays_when_a_later_one_is_revoked() {
    let inspected = renewed_twice().await;
    let revoked = inspected.membership.revoke_key(by_alice(revoke(THIRD_KEY, true)));
    let done = revoked.await.expect("done").into_inner();
    assert_eq!(done.effects.len(), 3, "{:?}", done.effects);
    assert_eq!(done.effects[2], "east keeps 1 other keys");
    assert_eq!(keys(&inspected).await, (1, 2));
}
