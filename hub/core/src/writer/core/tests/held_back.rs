//! Tests of reports held back while the disk's reserve is touched, and of asking for them again.

use super::*;

fn held_back(batch: &Batch) -> Vec<u64> {
    let replies = batch.replies.iter().filter_map(|reply| match reply {
        Reply::Refused(_, refused) if refused.reason == RefusalReason::NoRoom => Some(refused.sequence),
        _ => None,
    });
    replies.collect()
}

#[test]
fn in_the_reserve_only_what_is_taken_back_is_recorded_and_the_rest_is_asked_for_when_there_is_room() {
    let mut core = core();
    let mut request = hello("east", "one", 1);
    request.hello.features = FEATURE_REPORT_AGAIN;
    let session = admit(&mut core, request).expect("nobody holds it");
    assert_eq!(observe(&mut core, session, 1, property("cart")).events.len(), 1);

    core.set_room(DiskRoom::Reserve);
    let refused = observe(&mut core, session, 2, property("lamp"));
    assert!(refused.events.is_empty());
    assert_eq!(held_back(&refused), [2]);
    // It is acknowledged nevertheless, or the window would close.
    assert!(matches!(
        refused.replies[..],
        [_, Reply::Acknowledged(_, Dealt { sequence: 2, .. })]
    ));
    let known = observe(&mut core, session, 3, property("cart"));
    assert!(
        known.events.is_empty() && held_back(&known).is_empty(),
        "nothing is new about it"
    );
    let health = Health {
        kubernetes_version: "v1.36.0".into(),
        control_plane: ControlPlane::Ready,
        failed_checks: Vec::new(),
        verdict: None,
        nodes: None,
    };
    let health = wire::encode_fact(&Fact::HealthReported(health.into()));
    let changed = observe(&mut core, session, 4, health);
    assert!(changed.events.is_empty());
    assert_eq!(held_back(&changed), [4], "it may change as often as anything");
    let removed = wire::encode_fact(&Fact::ClusterPropertyRemoved("cart".into()));
    assert_eq!(observe(&mut core, session, 5, removed).events.len(), 1);
    assert_eq!(
        admit(&mut core, hello("west", "one", 1)),
        None,
        "a new member brings facts"
    );
    assert!(
        admit(&mut core, hello("east", "one", 1)).is_some(),
        "who is a member stays one"
    );
    assert!(
        !evict(&mut core, true).events.is_empty(),
        "decisions are recorded"
    );

    core.set_room(DiskRoom::Scarce);
    assert!(
        core.take_batch().replies.is_empty(),
        "the session that was told is over"
    );
    assert!(admit(&mut core, hello("west", "one", 1)).is_some());
}

#[test]
fn who_was_told_that_there_is_no_room_is_asked_once_and_who_cannot_be_told_is_sent_away() {
    let mut core = core();
    let mut request = hello("east", "one", 1);
    request.hello.features = FEATURE_REPORT_AGAIN;
    let session = admit(&mut core, request.clone()).expect("nobody holds it");
    core.set_room(DiskRoom::Reserve);
    observe(&mut core, session, 1, property("cart"));
    core.set_room(DiskRoom::Reserve);
    assert!(core.take_batch().replies.is_empty());
    core.set_room(DiskRoom::Enough);
    let asked = core.take_batch().replies;
    assert!(
        matches!(asked[..], [Reply::ReportAgain(again)] if again == session),
        "{asked:?}"
    );
    core.set_room(DiskRoom::Reserve);
    core.set_room(DiskRoom::Enough);
    assert!(
        core.take_batch().replies.is_empty(),
        "nothing was refused meanwhile"
    );

    core.set_room(DiskRoom::Reserve);
    request.hello.features = 0;
    let older = admit(&mut core, request).expect("the same agent");
    let batch = observe(&mut core, older, 1, property("cart"));
    assert!(batch.events.is_empty());
    assert!(
        matches!(&batch.replies[..], [Reply::Close(closed, _)] if *closed == older),
        "{batch:?}"
    );
}

#[test]
fn a_listing_of_which_something_was_held_back_is_none_and_is_made_again_when_there_is_room() {
    for room_before_the_end in [false, true] {
        let mut core = core();
        let mut request = hello("east", "one", 1);
        request.hello.features = FEATURE_REPORT_AGAIN;
        let session = admit(&mut core, request).expect("nobody holds it");
        core.set_room(DiskRoom::Reserve);
        assert_eq!(held_back(&observe(&mut core, session, 1, property("cart"))), [1]);
        if room_before_the_end {
            // Its later reports come behind the end of the listing.
            core.set_room(DiskRoom::Enough);
        }
        let listed = list(&mut core, session, ListingGroup::Properties);
        assert!(listed.events.is_empty(), "{listed:?}");
        core.set_room(DiskRoom::Enough);
        let replies: Vec<Reply> = listed
            .replies
            .into_iter()
            .chain(core.take_batch().replies)
            .collect();
        let closed = |reply: &Reply| matches!(reply, Reply::Close(closed, _) if *closed == session);
        assert_eq!(
            replies.iter().filter(|reply| closed(reply)).count(),
            1,
            "{replies:?}"
        );
        assert_eq!(core.published().connected.len(), 0);
        // The other group was listed whole.
        let again = admit(&mut core, hello("east", "one", 1)).expect("it comes again");
        assert!(!list(&mut core, again, ListingGroup::Exports).events.is_empty());
        assert!(core.listed().contains(&id("east")));
    }
}
