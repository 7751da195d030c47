//! Tests of items that wait because a member's budget has no room, and of asking for them.

use model::policy::{Limit, Usage};
use wire::read_policy;

use super::{
    given::{export, slice},
    *,
};
use crate::writer::{Total, fullest, waiting::ASKED_EVERY_MILLIS};

fn limited(limit: Limit, most: u64) -> Command {
    let document = format!(
        "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec: {{members: [{{name: small, members: [east], \
         budget: {{{}: {most}}}}}]}}\n",
        limit.field()
    );
    Command::ApplyPolicy {
        policy: read_policy(&document).expect("a policy").into(),
        operator: "alice".into(),
    }
}

/// A member whose budget is this.
fn member(core: &mut Core, limit: Limit, most: u64) -> SessionId {
    assert!(!operate(core, limited(limit, most), true).events.is_empty());
    let mut request = hello("east", "one", 1);
    request.hello.features = FEATURE_REPORT_AGAIN;
    admit(core, request).expect("nobody holds it")
}

/// Sequence numbers of what waits, and why.
fn waits(batch: &Batch) -> Vec<(u64, &str)> {
    let replies = batch.replies.iter().filter_map(|reply| match reply {
        Reply::Refused(_, refused) if refused.reason == RefusalReason::OverBudget => {
            Some((refused.sequence, &*refused.message))
        }
        _ => None,
    });
    replies.collect()
}

/// Returns true if the member is to be asked after so much time.
fn is_asked(core: &mut Core, now: u64) -> bool {
    core.tick(UnixMillis(2), now, [(id("east"), now)]);
    let replies = core.take_batch().replies;
    replies.iter().any(|reply| matches!(reply, Reply::ReportAgain(_)))
}

fn removed(name: &str) -> EncodedFact {
    wire::encode_fact(&Fact::ClusterPropertyRemoved(name.into()))
}

#[test]
fn what_is_over_the_budget_waits_until_something_is_taken_back() {
    let mut core = core();
    let session = member(&mut core, Limit::Properties, 1);
    assert_eq!(observe(&mut core, session, 1, property("a")).events.len(), 1);
    let over = observe(&mut core, session, 2, property("b"));
    let [(2, why)] = waits(&over)[..] else {
        panic!("{over:?}")
    };
    assert!(
        why.contains("cluster east has as many ClusterProperties as its budget allows, 1"),
        "{why}"
    );
    assert!(over.events.is_empty());
    // It is acknowledged nevertheless, or the window would close.
    assert!(matches!(
        over.replies[..],
        [_, Reply::Acknowledged(_, Dealt { sequence: 2, .. })]
    ));
    let known = observe(&mut core, session, 3, property("a"));
    assert!(waits(&known).is_empty(), "nothing is new about it");

    // A session may begin with items that fit by now: the member is asked once.
    is_asked(&mut core, ASKED_EVERY_MILLIS);
    assert!(!is_asked(&mut core, 3 * ASKED_EVERY_MILLIS), "nothing ended");
    assert_eq!(observe(&mut core, session, 4, removed("a")).events.len(), 1);
    assert!(is_asked(&mut core, 5 * ASKED_EVERY_MILLIS));
    assert_eq!(observe(&mut core, session, 5, property("b")).events.len(), 1);
    assert_eq!(observe(&mut core, session, 6, removed("b")).events.len(), 1);
    assert!(!is_asked(&mut core, 9 * ASKED_EVERY_MILLIS), "nothing waits");
}

#[test]
fn a_larger_budget_asks_and_a_smaller_one_takes_nothing_back() {
    let mut core = core();
    let session = member(&mut core, Limit::Properties, 2);
    for (sequence, name) in [(1, "a"), (2, "b")] {
        assert_eq!(
            observe(&mut core, session, sequence, property(name)).events.len(),
            1
        );
    }
    operate(&mut core, limited(Limit::Properties, 0), true);
    assert_eq!(core.state().fact_count(), 2);
    assert_eq!(waits(&observe(&mut core, session, 3, property("c"))).len(), 1);
    is_asked(&mut core, ASKED_EVERY_MILLIS);
    operate(&mut core, limited(Limit::Properties, 3), true);
    assert!(is_asked(&mut core, 3 * ASKED_EVERY_MILLIS));
    assert_eq!(observe(&mut core, session, 4, property("c")).events.len(), 1);
}

#[test]
fn a_member_that_changes_too_often_waits_for_time_to_pass() {
    let mut core = core();
    let session = member(&mut core, Limit::EventsPerMinute, 6);
    let mut recorded = 0;
    for sequence in 1..=10 {
        let fact = property(&format!("p-{sequence}"));
        recorded += observe(&mut core, session, sequence, fact).events.len();
    }
    assert_eq!(recorded, 6);
    let over = observe(&mut core, session, 11, property("more"));
    assert!(
        waits(&over)[0]
            .1
            .contains("changes more often than 6 times a minute"),
        "{over:?}"
    );
    // A withdrawal is recorded whatever it costs.
    assert_eq!(observe(&mut core, session, 12, removed("p-1")).events.len(), 1);
    assert!(!is_asked(&mut core, 6_000), "less than one change has come back");
    assert!(is_asked(&mut core, 12_000));
    core.handle(
        Request::Observe {
            session,
            cluster: id("east"),
            observations: vec![Observation::new(13, ObservedItem::Fact(property("more")))],
        },
        UnixMillis(2),
        12_001,
    );
    assert_eq!(core.take_batch().events.len(), 1);
}

#[test]
fn endpoints_that_are_gone_go_everywhere_however_often_their_member_changes() {
    let mut core = core();
    let session = member(&mut core, Limit::EventsPerMinute, 1);
    let slice = |name, octets: &[u8]| wire::encode_fact(&slice(name, octets));
    assert_eq!(
        observe(&mut core, session, 1, slice("a", &[1, 2, 3]))
            .events
            .len(),
        1
    );
    assert_eq!(
        waits(&observe(&mut core, session, 2, slice("b", &[1]))).len(),
        1,
        "one a minute"
    );
    for (sequence, octets) in [(3, &[1, 2][..]), (4, &[2]), (5, &[])] {
        let fewer = observe(&mut core, session, sequence, slice("a", octets));
        assert_eq!((fewer.events.len(), waits(&fewer).len()), (1, 0), "{octets:?}");
    }
    // Whatever brings an endpoint waits, also beside one that goes.
    assert_eq!(waits(&observe(&mut core, session, 6, slice("a", &[1]))).len(), 1);
}

#[test]
fn a_slice_that_shrinks_passes_no_other_limit() {
    let mut core = core();
    let session = member(&mut core, Limit::EndpointSlices, 1);
    let slice = |name, octets: &[u8]| wire::encode_fact(&slice(name, octets));
    assert_eq!(
        observe(&mut core, session, 1, slice("a", &[1, 2])).events.len(),
        1
    );
    assert_eq!(
        observe(&mut core, session, 2, slice("a", &[1])).events.len(),
        1,
        "it is one still"
    );
    assert_eq!(waits(&observe(&mut core, session, 3, slice("b", &[1]))).len(), 1);
}

#[test]
fn a_cluster_of_which_exports_wait_counts_as_listed_when_all_are_taken() {
    let mut core = core();
    let session = member(&mut core, Limit::Exports, 1);
    let fact = |name| wire::encode_fact(&export("shop", name, 1, 80));
    assert_eq!(observe(&mut core, session, 1, fact("cart")).events.len(), 1);
    assert_eq!(waits(&observe(&mut core, session, 2, fact("lamp"))).len(), 1);
    // The listing names the second only: the first is gone, and what waits is not there yet.
    let request = Request::CompleteListing {
        session,
        cluster: id("east"),
        sequence: 3,
        group: ListingGroup::Exports,
        seen: std::sync::Arc::new([fact("lamp").fact.key().expect("an export")].into()),
    };
    let listed = handle(&mut core, request);
    let kinds: Vec<_> = listed.replies.iter().collect();
    assert_eq!(listed.events.len(), 2, "removed, and listed: {kinds:?}");
    assert!(!core.listed().contains(&id("east")));
    assert!(is_asked(&mut core, ASKED_EVERY_MILLIS));
    assert_eq!(observe(&mut core, session, 4, fact("lamp")).events.len(), 1);
    assert!(core.listed().contains(&id("east")));
}

#[test]
fn another_member_is_not_touched_and_an_agent_that_cannot_be_told_is_sent_away() {
    let mut core = core();
    let session = member(&mut core, Limit::Properties, 0);
    let west = admit(&mut core, hello("west", "one", 1)).expect("nobody holds it");
    assert_eq!(waits(&observe(&mut core, session, 1, property("a"))).len(), 1);
    let request = Request::Observe {
        session: west,
        cluster: id("west"),
        observations: vec![Observation::new(1, ObservedItem::Fact(property("a")))],
    };
    assert_eq!(handle(&mut core, request).events.len(), 1);

    let older = admit(&mut core, hello("east", "one", 1)).expect("the same agent");
    let batch = observe(&mut core, older, 1, property("a"));
    assert!(batch.events.is_empty());
    assert!(
        matches!(&batch.replies[..], [Reply::Close(closed, why)] if *closed == older && why.contains("properties")),
        "{batch:?}"
    );
}

#[test]
fn what_was_recorded_before_a_start_counts() {
    let mut core = core();
    let session = member(&mut core, Limit::Properties, 1);
    observe(&mut core, session, 1, property("a"));
    let mut again = started_again(core);
    let mut request = hello("east", "one", 1);
    request.hello.features = FEATURE_REPORT_AGAIN;
    let session = admit(&mut again, request).expect("nobody holds it");
    assert_eq!(waits(&observe(&mut again, session, 1, property("b"))).len(), 1);
}

/// A hub whose members may have so many facts like this one in memory, all together.
fn with_room_for(facts: u64) -> Core {
    let one = Total::Memory.of(&Usage::of(&property("p-1")));
    let mut options = core().options;
    options.bounds.state.memory = one * facts;
    Core::new(State::new(), Cursor::default(), UnixMillis(1), options, 0)
}

/// A member that is admitted.
fn joins(core: &mut Core, cluster: &str) -> SessionId {
    let mut request = hello(cluster, "one", 1);
    request.hello.features = FEATURE_REPORT_AGAIN;
    admit(core, request).expect("nobody holds it")
}

fn says(core: &mut Core, (cluster, session): (&str, SessionId), sequence: u64, fact: EncodedFact) -> Batch {
    let request = Request::Observe {
        session,
        cluster: id(cluster),
        observations: vec![Observation::new(sequence, ObservedItem::Fact(fact))],
    };
    handle(core, request)
}

/// Members report as much as they are allowed; how much each has in the end.
fn fill(core: &mut Core, members: &[(&str, SessionId)]) -> Vec<u64> {
    let fills = |&(cluster, session): &(&str, SessionId)| {
        let recorded = (1..100).filter(|number| {
            let fact = property(&format!("p-{}", number % 10));
            let fact = if *number < 10 {
                fact
            } else {
                property(&format!("q-{number}"))
            };
            !says(core, (cluster, session), *number, fact).events.is_empty()
        });
        recorded.count() as u64
    };
    members.iter().map(fills).collect()
}

#[test]
fn no_member_takes_the_room_of_all_whatever_its_budget_and_the_policy_allow() {
    let mut core = with_room_for(27);
    let policy = limited(Limit::FactBytes, 1 << 40);
    operate(&mut core, policy, true);
    let members = ["east", "west", "north"].map(|name| (name, joins(&mut core, name)));
    // Each has two thirds of what is left, and the next one finds room.
    let recorded = fill(&mut core, &members);
    assert!(recorded[0] <= 18 && recorded[0] >= 17, "{recorded:?}");
    assert!(recorded[1] >= 5 && recorded[2] >= 1, "{recorded:?}");
    assert!(Total::Memory.of(&core.used()) <= core.bounds().state.memory);
    let refused = says(&mut core, members[0], 200, property("more"));
    let [(_, why)] = waits(&refused)[..] else {
        panic!("{refused:?}")
    };
    assert!(
        why.contains("clusterset is nearly full") && why.contains("--state-memory"),
        "{why}"
    );
    // A recorded fact may be reported again, and shrink.
    assert!(waits(&says(&mut core, members[0], 201, property("p-1"))).is_empty());
    assert_eq!(says(&mut core, members[0], 202, removed("p-1")).events.len(), 1);
}

#[test]
fn what_all_have_counts_after_a_start_and_who_waits_is_asked_when_another_takes_something_back() {
    let mut core = with_room_for(9);
    let east = joins(&mut core, "east");
    fill(&mut core, &[("east", east)]);
    let (used, bounds) = (core.used(), core.bounds());
    let mut again = started_again(core);
    assert_eq!(again.used(), used);
    assert_eq!(fullest(&bounds.state, &used).0, Total::Memory);
    let east = ("east", joins(&mut again, "east"));
    let west = ("west", joins(&mut again, "west"));
    fill(&mut again, &[west]);
    assert_eq!(waits(&says(&mut again, west, 100, property("more"))).len(), 1);
    let asked = |core: &mut Core, now| {
        core.tick(UnixMillis(2), now, [east, west].map(|(name, _)| (id(name), now)));
        let replies = core.take_batch().replies;
        let is_asked = |reply: &Reply| matches!(reply, Reply::ReportAgain(session) if *session == west.1);
        replies.iter().any(is_asked)
    };
    // A session may begin with items that fit by now: the member is asked once.
    asked(&mut again, ASKED_EVERY_MILLIS);
    assert_eq!(waits(&says(&mut again, west, 101, property("more"))).len(), 1);
    assert!(!asked(&mut again, 3 * ASKED_EVERY_MILLIS), "nothing ended");
    for number in 1..=3 {
        says(&mut again, east, number, removed(&format!("p-{number}")));
    }
    assert!(asked(&mut again, 5 * ASKED_EVERY_MILLIS));
    assert_eq!(says(&mut again, west, 102, property("more")).events.len(), 1);
}

#[test]
fn a_member_that_may_change_nothing_is_not_asked_in_vain() {
    let mut core = core();
    let session = member(&mut core, Limit::EventsPerMinute, 0);
    assert_eq!(waits(&observe(&mut core, session, 1, property("a"))).len(), 1);
    for times in 1..=10 {
        assert!(!is_asked(&mut core, times * ASKED_EVERY_MILLIS));
    }
    operate(&mut core, limited(Limit::EventsPerMinute, 60), true);
    assert!((11..=14).any(|times| is_asked(&mut core, times * ASKED_EVERY_MILLIS)));
    assert_eq!(observe(&mut core, session, 2, property("a")).events.len(), 1);
}

/// A policy resets the budget; the used part of it and the time since stay.
#[test]
fn a_policy_that_is_applied_gives_nobody_a_new_allowance_and_takes_no_time_away() {
    let mut core = core();
    let session = member(&mut core, Limit::EventsPerMinute, 6);
    for sequence in 1..=6 {
        observe(&mut core, session, sequence, property(&format!("p-{sequence}")));
    }
    assert_eq!(waits(&observe(&mut core, session, 7, property("more"))).len(), 1);
    operate(&mut core, limited(Limit::EventsPerMinute, 7), true);
    assert_eq!(
        waits(&observe(&mut core, session, 8, property("more"))).len(),
        1,
        "the allowance is used up under the policy that follows, too"
    );
    // Five seconds before another policy and five after it are enough for one event of six a minute.
    let say = |core: &mut Core, sequence, now| {
        let observe = Request::Observe {
            session,
            cluster: id("east"),
            observations: vec![Observation::new(sequence, ObservedItem::Fact(property("more")))],
        };
        core.handle(observe, UnixMillis(2), now);
        core.take_batch().events.len()
    };
    let apply = |core: &mut Core, most, now| {
        let operate = Request::Operate {
            token: 99,
            command: limited(Limit::EventsPerMinute, most),
            confirm: true,
            describe: |_, _, _| Vec::new(),
        };
        core.handle(operate, UnixMillis(2), now);
        assert!(!core.take_batch().events.is_empty());
    };
    apply(&mut core, 6, 5_000);
    assert_eq!(say(&mut core, 9, 5_001), 0);
    assert_eq!(say(&mut core, 10, 10_100), 1);
}
