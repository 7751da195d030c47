//! Tests of a batch's content and release: sessions, listings, acknowledgements, operators' decisions.

use model::{
    ClusterProperty, ControlPlane, EncodedFact, Health, KeyFingerprint, PropertyValue, Revision, ServiceKey,
    sync::{FEATURE_REPORT_AGAIN, Hello, Interest, PROTOCOL_VERSION, SourceState},
};

use super::*;
use crate::writer::request::{AdmitRequest, CursorCheck, CursorVerdict, HolderAnswer, NotAdmitted, Pinged};
use fold::{Change, DerivedKey, KeyHolder, Presented};

mod brake;
mod changed_by;
mod conflicts;
mod departures;
mod event_size;
mod given;
mod held_back;
mod holders;
mod keys;
mod lost;
mod over_budget;

fn id(name: &str) -> ClusterId {
    ClusterId::new(name).expect("a cluster id")
}

fn core() -> Core {
    let options = Options {
        hub: "hub".into(),
        hub_version: "0".into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    let mut core = Core::new(State::new(), Cursor::default(), UnixMillis(1), options, 0);
    core.take_batch();
    core
}

fn hello(cluster: &str, instance: &str, lease_transitions: i64) -> AdmitRequest {
    AdmitRequest {
        cluster: id(cluster),
        key: KeyFingerprint([1; 32]),
        hello: Hello {
            protocol_version: PROTOCOL_VERSION,
            features: 0,
            agent_version: "0".into(),
            highest_epoch: None,
            cluster_fingerprint: format!("uid-of-{cluster}").into(),
            instance: instance.into(),
            lease_transitions,
            cursor: None,
            exports_digest: None,
            properties_digest: None,
            sources_held: Default::default(),
            interest: Interest::default(),
        },
        cursor: CursorVerdict {
            under: Cursor::default(),
            check: CursorCheck::Absent,
        },
        pinged: None,
        presented: Default::default(),
    }
}

fn handle(core: &mut Core, request: Request) -> Batch {
    core.handle(request, UnixMillis(2), 1);
    core.take_batch()
}

/// Admits the agent; its session, or none when another holds the member.
fn admit(core: &mut Core, request: AdmitRequest) -> Option<SessionId> {
    let batch = handle(core, Request::Admit(1, Box::new(request)));
    batch.replies.iter().find_map(|reply| match reply {
        Reply::Admitted(1, admission) => Some(admission.welcome.session),
        _ => None,
    })
}

/// A Hello for which this holder was pinged, and said this.
fn answered(request: AdmitRequest, session: SessionId, answer: HolderAnswer) -> AdmitRequest {
    AdmitRequest {
        pinged: Some(Pinged { session, answer }),
        ..request
    }
}

fn list(core: &mut Core, session: SessionId, group: ListingGroup) -> Batch {
    let request = Request::CompleteListing {
        session,
        cluster: id("east"),
        sequence: 3,
        group,
        seen: Default::default(),
    };
    handle(core, request)
}

fn evict(core: &mut Core, confirm: bool) -> Batch {
    let command = Command::Evict {
        cluster: id("east"),
        operator: "alice".into(),
    };
    operate(core, command, confirm)
}

fn operate(core: &mut Core, command: Command, confirm: bool) -> Batch {
    let request = Request::Operate {
        token: 2,
        command,
        confirm,
        describe: |_, _, _| Vec::new(),
    };
    handle(core, request)
}

/// The process ends, and another one starts over the same log.
fn started_again(core: Core) -> Core {
    Core::new(core.state, core.head, UnixMillis(2), core.options, 0)
}

#[test]
fn a_listing_of_exports_makes_a_source_listed_and_says_so_once() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let batch = list(&mut core, session, ListingGroup::Properties);
    assert!(core.listed().is_empty() && batch.sources.is_none());
    assert!(
        matches!(batch.replies[..], [Reply::Acknowledged(of, Dealt { sequence: 3, .. })] if of == session)
    );
    let batch = list(&mut core, session, ListingGroup::Exports);
    let sources = batch.sources.expect("they changed");
    assert!(sources.len() == 1 && sources[0].listed);
    assert!(core.listed().contains(&id("east")));
    assert!(list(&mut core, session, ListingGroup::Exports).sources.is_none());
    let stale = list(&mut core, SessionId(session.0 + 1), ListingGroup::Exports);
    assert!(stale.replies.is_empty(), "{stale:?}");
}

#[test]
fn an_acknowledgement_says_how_much_others_have_to_hear_of_it() {
    let mut core = core();
    admit(&mut core, hello("west", "one", 1)).expect("admitted");
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let mut said = || {
        let facts = ["region", "zone"].map(property).into_iter().zip(1..);
        let observed = facts.map(|(fact, sequence)| Observation::new(sequence, ObservedItem::Fact(fact)));
        let request = Request::Observe {
            session,
            cluster: id("east"),
            observations: observed.collect(),
        };
        match handle(&mut core, request).replies[..] {
            [Reply::Acknowledged(_, dealt)] => (dealt.sequence, dealt.deliveries),
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(said(), (2, 4), "two events, two sessions");
    assert_eq!(said(), (2, 0), "that is no news");
}

#[test]
fn an_invalid_item_is_refused_by_its_number_and_acknowledged() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let observations = (4..6).map(|sequence| {
        Observation::new(
            sequence,
            ObservedItem::Invalid(Refused {
                sequence: 0,
                reason: RefusalReason::Invalid,
                message: "bad".into(),
            }),
        )
    });
    let request = Request::Observe {
        session,
        cluster: id("east"),
        observations: observations.collect(),
    };
    let batch = handle(&mut core, request);
    let said: Vec<_> = batch
        .replies
        .iter()
        .map(|reply| match reply {
            Reply::Refused(_, refused) => ("refused", refused.sequence),
            Reply::Acknowledged(_, dealt) => ("acknowledged", dealt.sequence),
            other => panic!("{other:?}"),
        })
        .collect();
    let want = [
        ("refused", 4),
        ("acknowledged", 4),
        ("refused", 5),
        ("acknowledged", 5),
    ];
    assert_eq!(said, want);
}

#[test]
fn a_decision_is_tried_without_a_trace_and_carried_out_to_the_end() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    list(&mut core, session, ListingGroup::Exports);
    let head = core.head();
    let operated = |batch: &Batch| {
        batch.replies.iter().find_map(|reply| match reply {
            Reply::Operated(2, Ok(operated)) => Some(operated.clone()),
            _ => None,
        })
    };
    let tried = operated(&evict(&mut core, false)).expect("it is possible");
    assert!(tried.revision.is_none() && !tried.kinds.is_empty());
    assert_eq!(core.head(), head);
    let batch = evict(&mut core, true);
    let done = operated(&batch).expect("it is possible");
    assert_eq!(
        (done.revision, done.kinds),
        (Some(core.head().revision), tried.kinds)
    );
    assert_eq!(batch.head, core.head());
    let closes = |reply: &Reply| matches!(reply, Reply::Close(of, _) if *of == session);
    assert!(batch.replies.iter().any(closes), "{:?}", batch.replies);
    assert!(core.listed().is_empty() && core.published().connected.is_empty());
    let east = &batch.sources.expect("they changed")[0];
    assert!(east.state == SourceState::Evicted && east.ended);
}

/// The log may be an old copy: that the member came back is in the part that it lacks.
#[test]
fn an_end_counts_only_in_the_life_that_saw_it() {
    let east = |batch: Batch| batch.sources.expect("they changed").remove(0);
    let mut core = core();
    admit(&mut core, hello("east", "one", 1)).expect("admitted");
    assert!(east(evict(&mut core, true)).ended);
    let mut core = started_again(core);
    let first = east(core.take_batch());
    assert!(first.state == SourceState::Evicted && !first.ended);

    let held_by_west = |core: &mut Core| {
        let mut west = hello("west", "one", 1);
        west.hello.sources_held = [id("east")].into();
        match handle(core, Request::Admit(1, Box::new(west))).replies.pop() {
            Some(Reply::Admitted(1, admission)) => admission.unknown_sources,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(held_by_west(&mut core), [id("east")], "an operator is told");

    // An operator's word counts each time, also where the log holds it already.
    let forget = Command::Forget {
        cluster: id("east"),
        operator: "alice".into(),
    };
    for _ in 0..2 {
        core = started_again(core);
        let told = east(operate(&mut core, forget.clone(), true));
        assert!(told.state == SourceState::Forgotten && told.ended);
    }
    assert!(held_by_west(&mut core).is_empty());
    let new_key = AdmitRequest {
        key: KeyFingerprint([2; 32]),
        ..hello("east", "one", 1)
    };
    let back = handle(&mut core, Request::Admit(1, Box::new(new_key)));
    assert!(!east(back).ended);
}

#[test]
fn what_waits_is_counted_and_a_closed_session_is_not_open() {
    let mut core = core();
    core.handle(
        Request::Admit(1, Box::new(hello("east", "one", 1))),
        UnixMillis(2),
        1,
    );
    let (events, bytes) = core.pending();
    assert!(events > 0 && bytes > events);
    let batch = core.take_batch();
    let sizes = batch
        .events
        .iter()
        .map(|(_, payload)| payload.len())
        .sum::<usize>();
    assert_eq!((batch.events.len(), sizes), (events, bytes));
    assert_eq!(core.pending(), (0, 0));
    let session = core.sessions[&id("east")].session;
    let closed = |session| Request::Closed {
        session,
        cluster: id("east"),
        heard_at: 1,
        goodbye: false,
    };
    handle(&mut core, closed(SessionId(session.0 + 1)));
    assert_eq!(core.published().connected.len(), 1, "that was another session");
    handle(&mut core, closed(session));
    assert_eq!(core.published().connected.len(), 0);
}

#[test]
fn silence_is_recorded_and_so_is_the_return() {
    use crate::writer::{LOST_AFTER_MILLIS, TICK_MILLIS};
    let mut core = core();
    admit(&mut core, hello("east", "one", 1));
    let mut ticked = 0;
    let mut tick = |until: u64, heard: Option<u64>| {
        while ticked < until {
            ticked += TICK_MILLIS;
            core.tick(UnixMillis(2), ticked, heard.map(|at| (id("east"), at)));
        }
        core.state().member(&id("east")).expect("known").source_state()
    };
    assert_eq!(tick(2_000, None), SourceState::Live);
    assert_eq!(tick(LOST_AFTER_MILLIS + 2_000, None), SourceState::Lost);
    let back = LOST_AFTER_MILLIS + 2_500;
    assert_eq!(tick(back, Some(back)), SourceState::Live);
}

#[test]
fn of_the_acknowledgements_of_a_batch_the_last_of_each_session_is_said() {
    let mut core = core();
    let health = |version: &str| {
        let health = Health {
            kubernetes_version: version.into(),
            control_plane: ControlPlane::Ready,
            failed_checks: Vec::new(),
            verdict: None,
            nodes: None,
        };
        ObservedItem::Fact(wire::encode_fact(&Fact::HealthReported(health.into())))
    };
    let sessions = ["east", "west"].map(|name| {
        let session = admit(&mut core, hello(name, name, 1)).expect("admitted");
        (session, id(name))
    });
    for (session, cluster) in sessions.clone() {
        let observations =
            [(1, "v1"), (2, "v2")].map(|(sequence, version)| Observation::new(sequence, health(version)));
        let request = Request::Observe {
            session,
            cluster,
            observations: observations.to_vec(),
        };
        core.handle(request, UnixMillis(2), 1);
    }
    let batch = core.take_batch();
    let said = batch.replies.iter().map(|reply| match reply {
        Reply::Acknowledged(session, dealt) => (*session, dealt.sequence),
        other => panic!("{other:?}"),
    });
    let want = sessions.map(|(session, _)| (session, 2));
    assert_eq!(said.collect::<Vec<_>>(), want);
}

#[test]
fn a_removal_is_published_to_those_who_follow_its_kind() {
    let service = ServiceKey::new("shop", "cart").expect("names");
    let gone = |key| {
        publication(Change {
            key,
            revision: Revision(7),
            content: None,
        })
    };
    for key in [
        DerivedKey::Import(service.clone()),
        DerivedKey::ExportStatus(id("east"), service),
    ] {
        let published = gone(key.clone()).expect("members follow it");
        assert!(published.entry.removed && published.key == key);
        assert_eq!(published.entry.revision, Revision(7));
    }
    assert!(
        gone(DerivedKey::Profile(id("east"))).is_none(),
        "only the hub does"
    );
}

/// Its exports would count as complete before it has said anything of them.
#[test]
fn a_member_that_was_evicted_while_it_was_away_comes_back_unlisted() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    list(&mut core, session, ListingGroup::Exports);
    let closed = Request::Closed {
        session,
        cluster: id("east"),
        heard_at: 1,
        goodbye: false,
    };
    handle(&mut core, closed);
    assert!(core.listed().contains(&id("east")), "it is only away");
    evict(&mut core, true);
    assert!(core.listed().is_empty());
    let word = Command::Rekey {
        cluster: id("east"),
        operator: "alice".into(),
        key: Some(KeyFingerprint([2; 32])),
        cluster_fingerprint: None,
    };
    operate(&mut core, word, true);
    let new_key = AdmitRequest {
        key: KeyFingerprint([2; 32]),
        ..hello("east", "one", 1)
    };
    let batch = handle(&mut core, Request::Admit(1, Box::new(new_key)));
    let sources = batch.sources.expect("it joined");
    assert!(sources[0].state == SourceState::Live && !sources[0].listed);
}

#[test]
fn a_suspect_member_that_is_heard_again_is_live() {
    use crate::writer::{SUSPECT_AFTER_MILLIS, TICK_MILLIS};
    let mut core = core();
    admit(&mut core, hello("east", "one", 1));
    let silent = SUSPECT_AFTER_MILLIS + 1;
    let state = |core: &Core| core.state().member(&id("east")).expect("known").source_state();
    for now in (TICK_MILLIS..=silent + TICK_MILLIS).step_by(TICK_MILLIS as usize) {
        core.tick(UnixMillis(2), now, []);
    }
    assert_eq!(state(&core), SourceState::Suspect);
    core.take_batch();
    let now = silent + 2 * TICK_MILLIS;
    core.tick(UnixMillis(2), now, [(id("east"), now)]);
    let batch = core.take_batch();
    assert_eq!(state(&core), SourceState::Live);
    assert_eq!(
        (batch.events.len(), batch.sources.map(|sources| sources[0].state)),
        (1, Some(SourceState::Live))
    );
    core.tick(UnixMillis(2), now + TICK_MILLIS, [(id("east"), now)]);
    assert!(core.take_batch().events.is_empty(), "once is enough");
}

#[test]
fn a_fact_is_refused_for_the_reason_that_the_rules_give() {
    let mut core = core();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let fact = ObservedItem::Fact(wire::encode_fact(&Fact::MemberLeft));
    let request = Request::Observe {
        session,
        cluster: id("east"),
        observations: vec![Observation::new(1, fact)],
    };
    let batch = handle(&mut core, request);
    let Some(Reply::Refused(of, refused)) = batch.replies.first() else {
        panic!("{:?}", batch.replies)
    };
    assert_eq!(
        (*of, refused.sequence, refused.reason),
        (session, 1, RefusalReason::NotAMembersFact)
    );
    assert!(batch.events.is_empty());
}

/// A log that other rules folded says from where on these hold, once.
#[test]
fn the_rules_of_another_version_are_followed_by_an_event() {
    let rows = State::new().into_snapshot_rows().map(|row| match row {
        fold::SnapshotRow::Header(header) => fold::SnapshotRow::Header(fold::SnapshotHeader {
            fold_version: fold::FOLD_VERSION + 1,
            ..header
        }),
        other => other,
    });
    let mut core = core();
    core.state = State::restore(rows).expect("a snapshot");
    core.adopt_rules(UnixMillis(7));
    assert_eq!(core.state().fold_version(), fold::FOLD_VERSION);
    let batch = core.take_batch();
    assert_eq!((batch.events.len(), batch.head.revision), (1, Revision(1)));
    core.adopt_rules(UnixMillis(8));
    assert!(core.take_batch().events.is_empty());
}

fn property(name: &str) -> EncodedFact {
    let property = ClusterProperty {
        name: name.into(),
        value: PropertyValue::Text("1".into()),
    };
    wire::encode_fact(&Fact::ClusterPropertyUpserted(property.into()))
}

fn observe(core: &mut Core, session: SessionId, sequence: u64, fact: EncodedFact) -> Batch {
    let observations = vec![Observation::new(sequence, ObservedItem::Fact(fact))];
    let (cluster, session) = (id("east"), session);
    handle(
        core,
        Request::Observe {
            session,
            cluster,
            observations,
        },
    )
}

#[test]
fn what_is_published_knows_sessions_as_they_are_and_who_holds_it_keeps_it() {
    let mut core = core();
    let empty = core.published();
    let session = admit(&mut core, hello("east", "one", 1)).expect("admitted");
    assert!(!core.is_idle(), "a session that was opened is to be shown");
    list(&mut core, session, ListingGroup::Exports);
    let published = core.published();
    assert!(core.is_idle());
    let (east, connected) = (id("east"), |of: &Published| of.connected.contains(&id("east")));
    assert!(connected(&published) && published.listed.contains(&east));
    assert!(!connected(&empty) && empty.listed.is_empty() && empty.state.members().is_empty());
    core.handle(
        Request::Closed {
            session,
            cluster: east.clone(),
            heard_at: 1,
            goodbye: false,
        },
        UnixMillis(2),
        1,
    );
    assert!(!core.is_idle(), "nothing is recorded, and it is to be shown");
    assert!(core.take_batch().events.is_empty());
    let closed = core.published();
    assert!(!connected(&closed) && closed.listed.contains(&east) && core.is_idle());
    evict(&mut core, true);
    let evicted = core.published();
    assert!(evicted.listed.is_empty() && connected(&published));
    assert_eq!(evicted.head.revision, evicted.state.revision());
}

#[test]
fn a_decision_that_is_tried_is_judged_as_the_one_that_is_taken_and_leaves_nothing() {
    let mut core = core();
    admit(&mut core, hello("east", "one", 1)).expect("admitted");
    let published = core.published();
    let evict = |cluster| Command::Evict {
        cluster: id(cluster),
        operator: "alice".into(),
    };
    let says = |_: &State, command: &Command, drafts: &[fold::Draft]| {
        vec![format!(
            "{} events of {}",
            drafts.len(),
            command.operator().unwrap_or_default()
        )]
    };
    let tried = published.tried(&evict("east"), says).expect("allowed");
    let head = published.head.revision;
    assert_eq!(
        (tried.revision, tried.as_of, tried.kinds),
        (None, head, vec!["member_evicted"])
    );
    assert_eq!(tried.effects, ["1 events of alice"]);
    assert_eq!(core.published().state, published.state);
    assert!(matches!(
        published.tried(&evict("west"), says),
        Err(Rejection::NotAMember { .. })
    ));
    let limits = Limits {
        event_bytes: 1,
        ..published.limits
    };
    let narrow = Published { limits, ..published };
    assert!(matches!(
        narrow.tried(&evict("east"), says),
        Err(Rejection::OperatorRefused { .. })
    ));
}
