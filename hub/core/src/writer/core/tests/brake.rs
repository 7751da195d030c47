//! Tests of the mass-withdrawal hold through sessions: messages and listings that withdraw most of a member's exports.

use model::{
    Export, IpFamily, Metadata, Protocol, ServicePolicies, ServicePort, ServiceType, SessionAffinity,
    policy::BRAKE_LONGEST_MILLIS,
};

use super::*;
use crate::writer::{GRACE_AT_START_MILLIS, TICK_MILLIS};

const EXPORTS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn service(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name).expect("valid")
}

fn export(name: &str) -> EncodedFact {
    let export = Export {
        service: service(name),
        created_at: UnixMillis(1_000),
        uid: name.into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        }],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: None,
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::new(),
        annotations: Metadata::new(),
    };
    wire::encode_fact(&Fact::ExportUpserted(export.into()))
}

fn removed(name: &str) -> EncodedFact {
    wire::encode_fact(&Fact::ExportRemoved(service(name)))
}

/// Says some facts in one message, at a time of the wall clock.
fn say(core: &mut Core, session: SessionId, facts: impl IntoIterator<Item = EncodedFact>, at: u64) -> Batch {
    let observations = (1..).zip(facts);
    let request = Request::Observe {
        session,
        cluster: id("east"),
        observations: observations
            .map(|(sequence, fact)| Observation::new(sequence, ObservedItem::Fact(fact)))
            .collect(),
    };
    core.handle(request, UnixMillis(at), 1);
    core.take_batch()
}

fn kinds(batch: &Batch) -> Vec<&'static str> {
    let kind = |(_, payload): &(ChainHash, Vec<u8>)| {
        let event = wire::decode_event(Revision(0), payload.clone().into()).expect("the core wrote it");
        event.fact.fact.kind()
    };
    batch.events.iter().map(kind).collect()
}

/// East exports all of them and has listed.
fn exporting() -> (Core, SessionId) {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    say(&mut core, session, EXPORTS.map(export), 2);
    let seen = EXPORTS.map(|name| FactKey::Export(service(name))).into();
    complete(&mut core, session, seen);
    (core, session)
}

fn complete(core: &mut Core, session: SessionId, seen: BTreeSet<FactKey>) -> Batch {
    let request = Request::CompleteListing {
        session,
        cluster: id("east"),
        sequence: 9,
        group: ListingGroup::Exports,
        seen: seen.into(),
    };
    handle(core, request)
}

fn imports(core: &Core) -> usize {
    let derived = core.state().all_derived();
    derived
        .filter(|(key, _)| matches!(key, DerivedKey::Import(_)))
        .count()
}

#[test]
fn a_message_that_takes_back_most_is_held_before_the_first_of_it() {
    let (mut core, session) = exporting();
    let batch = say(&mut core, session, EXPORTS.map(removed), 3);
    let removals = ["export_removed"; 6];
    assert_eq!(kinds(&batch), [&["brake_engaged"][..], &removals].concat());
    assert!(
        matches!(
            batch.replies[..],
            [Reply::Acknowledged(_, Dealt { sequence: 6, .. })]
        ),
        "{batch:?}"
    );
    assert!(batch.publications.is_empty(), "nobody hears of it");
    assert_eq!((core.held(), imports(&core)), ((1, 6), 6));
}

#[test]
fn messages_of_a_moment_add_up_and_those_of_a_day_do_not() {
    let (mut core, session) = exporting();
    for name in &EXPORTS[..4] {
        say(&mut core, session, [removed(name)], 3);
    }
    assert_eq!((core.held(), imports(&core)), ((0, 0), 2));
    let batch = say(&mut core, session, [removed("e")], 4);
    assert_eq!(kinds(&batch), ["brake_engaged", "export_removed"]);
    assert_eq!((core.held(), imports(&core)), ((1, 5), 6));
    let (mut core, session) = exporting();
    for (name, day) in EXPORTS.iter().zip(1..) {
        say(&mut core, session, [removed(name)], day * 86_400_000);
    }
    assert_eq!((core.held(), imports(&core)), ((0, 0), 0));
}

/// By a clock that is ahead for a moment something is recorded. From then on the log's time is ahead of the clock.
#[test]
fn an_ordinary_day_behind_a_clock_that_was_ahead_holds_nobody() {
    let (mut core, session) = exporting();
    core.tick(UnixMillis(36_000_000), 1_000, [(id("east"), 1_000)]);
    say(&mut core, session, [export("z")], 36_000_000);
    for (name, minute) in EXPORTS.iter().zip(1..) {
        let now = 70_000 * minute;
        core.tick(UnixMillis(now), now, [(id("east"), now)]);
        say(&mut core, session, [removed(name)], now);
    }
    assert_eq!((core.held(), imports(&core)), ((0, 0), 1));
}

#[test]
fn a_listing_that_lacks_most_is_held_and_the_first_of_an_incarnation_says_what_there_is() {
    let (mut core, session) = exporting();
    let batch = complete(&mut core, session, BTreeSet::new());
    assert_eq!(kinds(&batch)[0], "brake_engaged");
    assert_eq!(kinds(&batch).last(), Some(&"listing_completed"));
    assert_eq!((core.held(), imports(&core)), ((1, 6), 6));
    assert!(core.listed().contains(&id("east")));
    let mut core = self::core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    say(&mut core, session, EXPORTS.map(export), 2);
    complete(&mut core, session, BTreeSet::new());
    assert_eq!((core.held(), imports(&core)), ((0, 0), 0));
}

#[test]
fn a_hub_that_starts_goes_on_holding_until_an_operator_lets_go() {
    let (mut core, session) = exporting();
    say(&mut core, session, EXPORTS.map(removed), 3);
    let mut core = started_again(core);
    core.tick(UnixMillis(86_400_000), 500, []);
    assert_eq!((core.held(), imports(&core)), ((1, 6), 6));
    let release = Command::ReleaseBrake {
        cluster: id("east"),
        operator: "alice".into(),
    };
    assert!(
        operate(&mut core, release.clone(), false).events.is_empty(),
        "a dry run"
    );
    assert_eq!(kinds(&operate(&mut core, release, true)), ["brake_released"]);
    assert_eq!((core.held(), imports(&core)), ((0, 0), 0));
}

fn policy(brake: &str) -> Command {
    let document = format!(
        "apiVersion: {}\nkind: {}\nspec:\n  brake: {brake}\n",
        wire::POLICY_API_VERSION,
        wire::POLICY_KIND
    );
    Command::ApplyPolicy {
        policy: wire::read_policy(&document).expect("a policy").into(),
        operator: "alice".into(),
    }
}

#[test]
fn what_is_held_goes_when_the_policy_says_so() {
    let (mut core, session) = exporting();
    operate(&mut core, policy("{longest: 10s}"), true);
    say(&mut core, session, EXPORTS.map(removed), 1_000);
    core.take_batch();
    // The wall clock is set forward by a day, and back to its beginning.
    for (clock, now) in [(1_500, 500), (86_400_000, 5_000), (0, 10_499)] {
        core.tick(UnixMillis(clock), now, [(id("east"), now)]);
        assert_eq!(core.held(), (1, 6), "after {now} ms");
    }
    core.tick(UnixMillis(0), 10_500, [(id("east"), 10_500)]);
    assert_eq!(kinds(&core.take_batch()), ["brake_released"]);
    assert_eq!((core.held(), imports(&core)), ((0, 0), 0));
    let (mut core, session) = exporting();
    say(&mut core, session, EXPORTS.map(removed), 3);
    operate(&mut core, policy("{enabled: false}"), true);
    core.tick(UnixMillis(4), 500, [(id("east"), 500)]);
    assert_eq!(core.held(), (0, 0));
}

/// The hub ended after its decision and before the effect.
#[test]
fn who_is_held_and_took_nothing_back_is_let_go() {
    let (mut core, _) = exporting();
    let brake = Command::Brake {
        cluster: id("east"),
        taking_back: EXPORTS.map(service).into(),
        at: UnixMillis(2),
    };
    core.decide_and_apply(&brake).expect("a member");
    assert_eq!(core.held(), (1, 0));
    core.tick(UnixMillis(3), 500, [(id("east"), 500)]);
    assert_eq!(core.held(), (0, 0));
}

/// The effects shown to an operator before the decision.
#[test]
fn a_release_says_what_would_go_and_what_would_stay() {
    let (mut core, session) = exporting();
    admit(&mut core, hello("west", "one", 1)).expect("admitted");
    say(&mut core, session, EXPORTS.map(removed), 3);
    let said = |core: &Core, cluster: &str| {
        let release = Command::ReleaseBrake {
            cluster: id(cluster),
            operator: "alice".into(),
        };
        let drafts = fold::decide(core.state(), &release).expect("a member");
        crate::effects::of(core.state(), &release, &drafts).join("; ")
    };
    let east = said(&core, "east");
    for words in [
        "6 exports that east withdrew end",
        "shop/a, shop/b, shop/c, shop/d, shop/e and 1 more",
        "imports that end with it",
        "east stays a member",
    ] {
        assert!(east.contains(words), "{words} is not in: {east}");
    }
    assert_eq!(said(&core, "west"), "nothing to do: no export of west is on hold");
}

/// A session hands a large message over in shares, and announces before the first what all of them withdraw.
#[test]
fn a_message_in_shares_that_takes_back_everything_is_held_before_the_first_of_it() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let names: Vec<String> = (0..300).map(|number| format!("s{number}")).collect();
    say(&mut core, session, names.iter().map(|name| export(name)), 2);
    let seen = names.iter().map(|name| FactKey::Export(service(name))).collect();
    complete(&mut core, session, seen);
    assert_eq!(imports(&core), 300);
    let withdraw = |session| Request::Withdraw {
        session,
        cluster: id("east"),
        services: names.iter().map(|name| service(name)).collect(),
    };
    core.handle(withdraw(SessionId(1)), UnixMillis(3), 0);
    assert_eq!(core.held(), (0, 0), "a session that was replaced says nothing");
    core.handle(withdraw(session), UnixMillis(3), 0);
    let mut gone = 0;
    for share in names.chunks(128) {
        say(&mut core, session, share.iter().map(|name| removed(name)), 3);
        gone = gone.max(300 - imports(&core));
    }
    assert_eq!(core.held(), (1, 300), "in the end all are held");
    assert_eq!(gone, 0, "imports that were gone in between");
}

/// Earlier releases had holds without an end: such exports stay until somebody had time to bring a definition back.
#[test]
fn a_hold_of_before_an_upgrade_has_its_whole_time() {
    let (mut core, session) = exporting();
    say(&mut core, session, EXPORTS.map(removed), 1_000);
    let rows = core.state().snapshot_rows().map(|row| match row {
        fold::SnapshotRow::Header(header) => fold::SnapshotRow::Header(fold::SnapshotHeader {
            fold_version: header.fold_version + 1,
            ..header
        }),
        row => row,
    });
    // A day later another version takes the log over; the hub starts once more while it holds.
    let day = 86_400_000;
    let restored = State::restore(rows).expect("its own rows");
    let mut upgraded = Core::new(restored, core.head(), UnixMillis(day), core.options.clone(), 0);
    upgraded.adopt_rules(UnixMillis(day));
    let longest = BRAKE_LONGEST_MILLIS;
    let let_go = |mut core: Core, since: u64| {
        let mut ticks = (1..).map(|tick| tick * TICK_MILLIS);
        ticks.find(|now| {
            core.tick(UnixMillis(day + since + now), *now, [(id("east"), *now)]);
            core.held() == (0, 0)
        })
    };
    let state = State::restore(upgraded.state().snapshot_rows()).expect("its own rows");
    let again = Core::new(
        state,
        upgraded.head(),
        UnixMillis(day + longest / 2),
        core.options.clone(),
        0,
    );
    assert_eq!(let_go(upgraded, 0), Some(longest));
    assert_eq!(let_go(again, longest / 2), Some(longest / 2));
}

/// While there was no hub nothing could come back, and nobody could say a word.
#[test]
fn a_hub_that_starts_counts_the_time_before_and_leaves_a_grace() {
    let (mut core, session) = exporting();
    say(&mut core, session, EXPORTS.map(removed), 1_000);
    let starts = |after: u64| {
        let clock = UnixMillis(1_000 + after);
        let mut started = Core::new(core.state().clone(), core.head(), clock, core.options.clone(), 0);
        let mut ticks = (1..).map(|tick| tick * TICK_MILLIS);
        ticks.find(|now| {
            started.tick(UnixMillis(clock.0 + now), *now, [(id("east"), *now)]);
            started.held() == (0, 0)
        })
    };
    let longest = BRAKE_LONGEST_MILLIS;
    assert_eq!(starts(0), Some(longest));
    assert_eq!(starts(longest / 2), Some(longest / 2));
    assert_eq!(starts(10 * longest), Some(TICK_MILLIS + GRACE_AT_START_MILLIS));
}
