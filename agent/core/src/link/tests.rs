//! Tests of a session's messages, of its reactions to the hub's, and of when it gives up the stream.

mod differences;

use bytes::Bytes;
use model::{
    ChainHash, Cursor, EncodedFact, Fact, FactHash, Revision, ServiceKey, SessionId, UnixMillis,
    sync::{Applied, DesiredChange, DesiredItem, DesiredKey, Namespaces, UpTo},
};

use super::*;

/// Start of the sessions of these tests.
const CLOCK: UnixMillis = UnixMillis(1_800_000_000_000);
const START: u64 = 70_000;

fn epoch(created_at: u64) -> Epoch {
    Epoch {
        created_at: UnixMillis(created_at),
        random: 1,
    }
}

fn service() -> ServiceKey {
    ServiceKey::new("shop", "cart").expect("valid")
}

fn up_to(revision: u64) -> UpTo {
    UpTo {
        interest_generation: 1,
        cursor: Cursor {
            epoch: epoch(5),
            revision: Revision(revision),
            hash: ChainHash([1; 16]),
        },
    }
}

fn welcome() -> Welcome {
    Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "1".into(),
        hub: "hub".into(),
        epoch: epoch(5),
        resume: false,
        list_exports: true,
        list_properties: false,
        session: SessionId(1),
        incarnation: Revision(1),
        heartbeat_interval_millis: 2_000,
        silence_max_millis: 9_000,
        unacknowledged_max: 10,
        term: 1,
        hubs: Vec::new(),
    }
}

fn fact(_: &FactKey) -> EncodedFact {
    let bytes = Bytes::from_static(b"fact");
    EncodedFact {
        fact: Fact::MemberLive,
        hash: FactHash::of(&bytes),
        bytes,
    }
}

/// Every item is taken for the removal of one import.
fn decode(_: Bytes) -> Option<Told> {
    let item = DesiredItem {
        revision: Revision(1),
        change: DesiredChange::Removed(DesiredKey::Import(service())),
    };
    Some(item.into())
}

/// A session with what it works on, told and asked by hand.
struct SessionByHand {
    session: Session,
    hello: Hello,
    outbox: Outbox,
    desired: Desired,
    reach: Reach,
}

impl SessionByHand {
    fn begin(known_epoch: Option<Epoch>) -> Self {
        let introduction = Introduction {
            agent_version: "1".into(),
            cluster_fingerprint: "uid".into(),
            instance: "one".into(),
            lease_transitions: 3,
        };
        let interest = Interest {
            generation: 1,
            namespaces: Namespaces::Only(["shop".into()].into()),
        };
        let (mut outbox, mut desired) = (Outbox::new(fact), Desired::default());
        outbox.complete(ListingGroup::Exports);
        let (session, hello) = Session::begin(Beginning {
            introduction: &introduction,
            known_epoch,
            interest,
            sources_held: BTreeSet::new(),
            outbox: &mut outbox,
            desired: &mut desired,
            now: START,
            clock: CLOCK,
        });
        Self {
            session,
            hello,
            outbox,
            desired,
            reach: Reach::default(),
        }
    }

    /// A session that was welcomed and has said all it had to say.
    fn open() -> Self {
        let mut hand = Self::begin(None);
        hand.hear(HubMessage::Welcome(Box::new(welcome())))
            .expect("in order");
        assert_eq!(hand.say(START).len(), 1, "the end of the empty listing");
        hand
    }

    fn hear(&mut self, message: HubMessage) -> Result<Reaction, Violation> {
        let (outbox, desired) = (&mut self.outbox, &mut self.desired);
        self.session.on_message(message, outbox, desired, decode, START)
    }

    fn say(&mut self, now: u64) -> Vec<AgentMessage> {
        let reach = &self.reach;
        std::iter::from_fn(|| self.session.poll(&mut self.outbox, (reach.clone(), true), now)).collect()
    }
}

#[test]
fn hello_says_what_is_known_and_nothing_that_is_not() {
    let hand = SessionByHand::begin(Some(epoch(4)));
    assert_eq!(hand.hello.highest_epoch, Some(epoch(4)));
    assert_eq!(hand.hello.lease_transitions, 3);
    assert!(hand.hello.exports_digest.is_some(), "the group is complete");
    assert_eq!(hand.hello.properties_digest, None);
    assert_eq!(hand.hello.cursor, None);
    assert!(hand.desired.cursor().is_none());
}

#[test]
fn only_a_ping_has_a_place_before_welcome_and_welcome_only_one() {
    let mut hand = SessionByHand::begin(None);
    let early = hand.hear(HubMessage::Acknowledged(1)).err();
    assert_eq!(early, Some(Violation::OutOfPlace { what: "Acknowledged" }));
    hand.hear(HubMessage::Ping(7)).expect("may come at any time");
    let pong = Pong {
        nonce: 7,
        leads: Some(true),
    };
    assert_eq!(hand.say(START), [AgentMessage::Pong(pong)]);
    assert!(!hand.session.is_open());
    let reaction = hand
        .hear(HubMessage::Welcome(Box::new(welcome())))
        .expect("in order");
    assert_eq!(reaction.welcomed, Some(Box::new(welcome())));
    assert!(hand.session.is_open());
    let what = "a second Welcome";
    let twice = hand.hear(HubMessage::Welcome(Box::new(welcome()))).err();
    assert_eq!(twice, Some(Violation::OutOfPlace { what }));
}

#[test]
fn a_neighbouring_protocol_version_is_taken_and_a_farther_one_refused() {
    let offered = |protocol_version| {
        let welcome = Welcome {
            protocol_version,
            ..welcome()
        };
        SessionByHand::begin(None)
            .hear(HubMessage::Welcome(Box::new(welcome)))
            .err()
    };
    assert_eq!(offered(PROTOCOL_VERSION + 1), None);
    let theirs = PROTOCOL_VERSION + 2;
    assert_eq!(offered(theirs), Some(Violation::Version { theirs }));
}

/// An old copy of the hub's data would have everything deleted that is newer than it.
#[test]
fn an_epoch_of_a_time_to_come_is_refused_and_not_remembered_and_one_that_is_known_is_served() {
    let day = 24 * 60 * 60 * 1_000;
    for (known, began, refused) in [
        (None, CLOCK.0 + day, false),
        (None, CLOCK.0 + day + 1, true),
        (Some(5), CLOCK.0 + day + 1, true),
        (Some(5), u64::MAX, true),
        // Somebody set this clock back since.
        (Some(CLOCK.0 + 2 * day), CLOCK.0 + 2 * day, false),
    ] {
        let mut hand = SessionByHand::begin(known.map(epoch));
        let offered = Welcome {
            epoch: epoch(began),
            ..welcome()
        };
        let heard = hand.hear(HubMessage::Welcome(Box::new(offered)));
        if let Err(error @ Violation::EpochAhead { .. }) = &heard {
            let (told, clock) = (error.to_string(), CLOCK.rfc3339());
            let times = [UnixMillis(began).rfc3339(), clock];
            assert!(times.iter().all(|time| told.contains(time)), "{told}");
        }
        let ahead = matches!(heard, Err(Violation::EpochAhead { .. }));
        assert_eq!((ahead, heard.is_err()), (refused, refused), "{known:?} {began}");
        assert_eq!(hand.session.is_open(), !refused);
    }
}

#[test]
fn a_hub_of_an_older_epoch_is_refused_before_anything_is_told_to_it() {
    let (offered, known) = (epoch(5), epoch(6));
    for resume in [false, true] {
        let mut hand = SessionByHand::begin(Some(known));
        let welcome = Welcome { resume, ..welcome() };
        let refused = hand.hear(HubMessage::Welcome(Box::new(welcome))).err();
        assert_eq!(refused, Some(Violation::OlderEpoch { offered, known }));
        assert!(!hand.session.is_open());
        assert_eq!(hand.say(START), []);
    }
}

#[test]
fn a_hub_of_the_known_epoch_or_a_later_one_is_followed() {
    for known in [4, 5] {
        let mut hand = SessionByHand::begin(Some(epoch(known)));
        let reaction = hand.hear(HubMessage::Welcome(Box::new(welcome())));
        assert!(reaction.is_ok() && hand.session.is_open());
        let said = hand.say(START);
        assert!(matches!(said[..], [AgentMessage::Observations(_)]), "{said:?}");
    }
}

#[test]
fn facts_are_sent_after_welcome_and_acknowledged() {
    let mut hand = SessionByHand::open();
    let key = FactKey::Export(service());
    hand.outbox.set(key.clone(), Some(fact(&key)));
    let said = hand.say(START);
    let [AgentMessage::Observations(observations)] = &said[..] else {
        panic!("one fact, in one message: {said:?}")
    };
    assert_eq!(observations.len(), 1);
    assert_eq!(hand.outbox.depth(), (0, 2));
    hand.hear(HubMessage::Acknowledged(2)).expect("in order");
    assert_eq!(hand.outbox.depth(), (0, 0));
}

#[test]
fn what_the_hub_sends_reaches_the_desired_state() {
    let mut hand = SessionByHand::open();
    let snapshot = HubMessage::SnapshotBegin {
        epoch: epoch(5),
        interest_generation: 1,
    };
    assert_eq!(hand.hear(snapshot).expect("in order").touched, None);
    let reaction = hand
        .hear(HubMessage::SnapshotComplete(up_to(3)))
        .expect("in order");
    assert_eq!(reaction.touched, Some(Touched::All));
    let items = HubMessage::Desired {
        interest_generation: 1,
        items: vec![Bytes::new()],
    };
    let touched = Touched::Services([service()].into());
    assert_eq!(hand.hear(items).expect("in order").touched, Some(touched));
    for (message, revision) in [
        (HubMessage::UpTo(up_to(4)), 4),
        (HubMessage::Heartbeat(Some(up_to(5))), 5),
        (HubMessage::Heartbeat(None), 5),
    ] {
        hand.hear(message).expect("in order");
        assert_eq!(hand.desired.cursor(), Some(up_to(revision).cursor));
    }
}

#[test]
fn namespaces_that_came_or_went_are_told_once() {
    let mut hand = SessionByHand::open();
    let mut generation = 1;
    let mut follow = |hand: &mut SessionByHand, names: &[&str]| {
        let present = names.iter().map(|&name| name.into()).collect();
        hand.session
            .follow_namespaces(present, &mut generation, &mut hand.desired);
    };
    follow(&mut hand, &["shop"]);
    assert_eq!(hand.say(START), [], "it is known");
    follow(&mut hand, &["bank", "shop"]);
    follow(&mut hand, &["bank"]);
    follow(&mut hand, &["bank", "shop"]);
    follow(&mut hand, &["shop"]);
    let told = |generation, added: &[&str], removed: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
        vec![AgentMessage::InterestChanged {
            generation,
            added: names(added),
            removed: names(removed),
        }]
    };
    assert_eq!(hand.say(START), told(5, &["shop"], &["bank"]));
    assert_eq!(hand.say(START), []);
    follow(&mut hand, &["shop", "bank"]);
    assert_eq!(hand.say(START), told(6, &["bank"], &[]));
    follow(&mut hand, &["shop"]);
    assert_eq!(hand.say(START), told(7, &[], &["bank"]));
}

#[test]
fn heartbeats_fill_the_silence() {
    let mut hand = SessionByHand::open();
    let due = START + 2_000;
    assert_eq!(hand.session.next_deadline(), due);
    assert_eq!(hand.say(due - 1), []);
    assert_eq!(hand.say(due), [AgentMessage::Heartbeat(None)]);
    assert_eq!(hand.session.next_deadline(), due + 2_000);
    hand.say(START + 8_000);
    let silent_at = START + 9_000;
    assert_eq!(
        hand.session.next_deadline(),
        silent_at,
        "silence ends before the next heartbeat"
    );
}

/// A session with a hub that wants the applied position.
fn asked() -> SessionByHand {
    let mut hand = SessionByHand::begin(None);
    let welcome = Welcome {
        features: FEATURE_APPLIED,
        ..welcome()
    };
    hand.hear(HubMessage::Welcome(Box::new(welcome)))
        .expect("in order");
    hand.say(START);
    hand
}

fn applied(revision: u64) -> Applied {
    Applied {
        cursor: Some(up_to(revision).cursor),
        ..Applied::default()
    }
}

#[test]
fn what_stands_is_told_to_a_hub_that_asks_for_it_and_to_no_other() {
    let (mut old, mut new) = (SessionByHand::open(), asked());
    for hand in [&mut old, &mut new] {
        let features =
            FEATURE_APPLIED | FEATURE_ARRIVALS | FEATURE_REPORT_AGAIN | FEATURE_RENEWAL | FEATURE_DIFFERENCES;
        assert_eq!(hand.hello.features, features);
        hand.reach = Reach {
            applied: applied(3),
            changes: 1,
        };
    }
    assert_eq!(old.say(START + 1_999), []);
    assert_eq!(old.say(START + 2_000), [AgentMessage::Heartbeat(None)]);
    let heartbeat = AgentMessage::Heartbeat(Some(applied(3)));
    assert_eq!(new.say(START + NEWS_INTERVAL_MILLIS), [heartbeat]);
}

#[test]
fn news_of_what_stands_are_told_soon_and_not_one_by_one() {
    let mut hand = asked();
    let (mut at, mut told) = (START, Vec::new());
    while at < START + 10_000 {
        at += 10;
        hand.reach = Reach {
            applied: applied(at),
            changes: at,
        };
        if hand.say(at).is_empty() {
            assert!(hand.session.next_deadline() < at + NEWS_INTERVAL_MILLIS);
        } else {
            told.push(at);
        }
    }
    assert_eq!(told.len() as u64, 10_000 / NEWS_INTERVAL_MILLIS);
}

#[test]
fn an_agent_that_says_other_things_all_the_time_tells_what_stands_all_the_same() {
    let mut hand = asked();
    let heartbeats = (1..=10_u64).flat_map(|round| {
        let key = FactKey::ClusterProperty(format!("p{round}").into());
        hand.outbox.set(key.clone(), Some(fact(&key)));
        hand.say(START + round * 1_000)
    });
    let heartbeats = heartbeats.filter(|said| matches!(said, AgentMessage::Heartbeat(_)));
    assert_eq!(heartbeats.count(), 5, "one in each interval of 2 s");
}

#[test]
fn a_silent_hub_is_given_up() {
    let hand = SessionByHand::begin(None);
    let silent_at = START + WELCOME_WAIT_MILLIS;
    assert_eq!(hand.session.next_deadline(), silent_at);
    assert_eq!(hand.session.check_silence(silent_at - 1), Ok(()));
    let millis = WELCOME_WAIT_MILLIS;
    assert_eq!(
        hand.session.check_silence(silent_at),
        Err(Violation::Silent { millis })
    );
    let hand = SessionByHand::open();
    assert_eq!(hand.session.check_silence(START + 8_999), Ok(()));
    let millis = 9_000;
    assert_eq!(
        hand.session.check_silence(START + 9_000),
        Err(Violation::Silent { millis })
    );
}

/// Its next Hello would resume there, and never receive the objects from before.
#[test]
fn a_position_of_an_epoch_in_which_the_session_was_not_opened_ends_it() {
    let (opened, told) = (welcome().epoch, epoch(9));
    let up_to = UpTo {
        interest_generation: 1,
        cursor: Cursor {
            epoch: told,
            ..Cursor::default()
        },
    };
    for message in [
        HubMessage::UpTo(up_to),
        HubMessage::Heartbeat(Some(up_to)),
        HubMessage::SnapshotComplete(up_to),
        HubMessage::SnapshotBegin {
            epoch: told,
            interest_generation: 1,
        },
    ] {
        let mut hand = SessionByHand::open();
        let before = hand.desired.cursor();
        let heard = hand.hear(message);
        assert_eq!(heard.err(), Some(Violation::ForeignEpoch { told, opened }));
        assert_eq!(hand.desired.cursor(), before);
    }
}

#[test]
fn a_certificate_is_asked_for_once_and_of_a_hub_that_certifies() {
    let request = || Bytes::from_static(b"request");
    let mut hand = SessionByHand::begin(None);
    assert!(
        !hand.session.ask_for_certificate(request()),
        "nobody has answered yet"
    );
    let mut hand = SessionByHand::open();
    assert!(
        !hand.session.ask_for_certificate(request()),
        "this hub signs for nobody"
    );

    let mut hand = SessionByHand::begin(None);
    let certifies = Welcome {
        features: FEATURE_RENEWAL,
        ..welcome()
    };
    hand.hear(HubMessage::Welcome(Box::new(certifies)))
        .expect("in order");
    hand.say(START);
    let early = hand.hear(HubMessage::RenewalAnswered(Err("no".into())));
    assert!(matches!(early, Err(Violation::OutOfPlace { .. })));
    assert!(hand.session.ask_for_certificate(request()));
    assert!(!hand.session.ask_for_certificate(request()), "one is open");
    assert_eq!(hand.say(START), [AgentMessage::RenewalRequested(request())]);
    assert!(!hand.session.ask_for_certificate(request()), "one is open");
    let answered = hand.hear(HubMessage::RenewalAnswered(Err("no".into())));
    assert_eq!(answered.expect("in order").renewed, Some(Err("no".into())));
    assert!(hand.session.ask_for_certificate(request()));
}
