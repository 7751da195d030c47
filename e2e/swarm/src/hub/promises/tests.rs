//! Hubs that keep their promises, and hubs that do not.

use event_log::{Batch, MemoryDisk};
use model::{
    Clusterset, UnixMillis,
    sync::{Interest, Namespaces, PROTOCOL_VERSION, UpTo, Welcome},
};

use super::*;

const STREAM: StreamId = 1;
const SESSION: SessionId = SessionId(7);

fn epoch(millis: u64) -> Epoch {
    Epoch::default().next(UnixMillis(millis), 1)
}

/// A log whose first event, the third fact of the session, is written and not synced.
fn log() -> MemoryLog {
    let set = Clusterset::new("swarm.example", "default").expect("valid");
    let mut log = MemoryLog::open(&MemoryDisk::default(), &set, epoch(1)).expect("an empty disk");
    log.hold_syncs(true);
    let event = Event {
        revision: Revision(1),
        recorded_at: UnixMillis(1),
        cluster: None,
        incarnation: Revision(0),
        session: SESSION,
        member_sequence: 3,
        fact: wire::encode_fact(&Fact::MemberLost),
        changed_by: None,
    };
    let batch = Batch::new(log.head(), vec![wire::encode_event(&event)]).expect("small");
    log.append(batch, Box::new(|_| {}));
    log
}

fn hello(highest_epoch: Option<Epoch>, cursor: Option<Cursor>) -> AgentMessage {
    let interest = Interest {
        generation: 1,
        namespaces: Namespaces::All,
    };
    AgentMessage::Hello(Box::new(model::sync::Hello {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        agent_version: "test".into(),
        highest_epoch,
        cluster_fingerprint: "uid".into(),
        instance: "one".into(),
        lease_transitions: 1,
        cursor,
        exports_digest: None,
        properties_digest: None,
        sources_held: Default::default(),
        interest,
    }))
}

fn welcome(epoch: Epoch, resume: bool) -> HubMessage {
    HubMessage::Welcome(Box::new(Welcome {
        protocol_version: PROTOCOL_VERSION,
        features: 0,
        hub_version: "test".into(),
        hub: "hub".into(),
        epoch,
        resume,
        list_exports: false,
        list_properties: false,
        session: SESSION,
        incarnation: Revision(1),
        heartbeat_interval_millis: 1,
        silence_max_millis: 1,
        unacknowledged_max: 1,
        term: 1,
        hubs: Vec::new(),
    }))
}

/// A hub that heard this Hello and said this.
fn after(log: &MemoryLog, hello: AgentMessage, said: &[HubMessage]) -> Promises {
    let (mut promises, mut seen) = (Promises::default(), Histogram::default());
    promises.heard(STREAM, &hello, log);
    for message in said {
        promises.said(STREAM, message, log, &mut seen);
    }
    promises
}

#[test]
fn only_a_cursor_on_the_history_of_its_epoch_is_resumed() {
    let log = log();
    let foreign = Cursor {
        hash: ChainHash([9; 16]),
        ..log.head()
    };
    let broken = |cursor, resume| {
        let promises = after(&log, hello(None, cursor), &[welcome(epoch(1), resume)]);
        promises.broken().is_some()
    };
    assert!(!broken(Some(log.head()), true));
    assert!(!broken(Some(foreign), false), "a snapshot answers it");
    assert!(broken(Some(foreign), true));
    assert!(broken(None, true), "there is nothing to go on from");
    let elsewhere = after(&log, hello(None, Some(log.head())), &[welcome(epoch(2), true)]);
    assert!(elsewhere.broken().is_some());
}

#[test]
fn a_session_is_told_positions_of_its_own_epoch() {
    let log = log();
    let broken = |of: Epoch| {
        let cursor = Cursor {
            epoch: of,
            ..log.head()
        };
        let up_to = HubMessage::UpTo(UpTo {
            interest_generation: 1,
            cursor,
        });
        let promises = after(&log, hello(None, None), &[welcome(epoch(1), false), up_to]);
        promises.broken().is_some()
    };
    assert!(!broken(epoch(1)));
    assert!(broken(epoch(2)));
}

#[test]
fn what_was_acknowledged_was_durable() {
    let broken = |acknowledged| {
        let log = log();
        let said = [welcome(epoch(1), false), HubMessage::Acknowledged(acknowledged)];
        let mut promises = after(&log, hello(None, None), &said);
        let before = log.head();
        log.sync();
        promises.synced(&log, before, &mut Guarded::default());
        promises.broken().is_some()
    };
    assert!(!broken(2));
    assert!(broken(3));
}

#[test]
fn an_epoch_begins_for_a_rewind_of_the_one_before_it_or_for_a_later_one() {
    let log = log();
    let foreign = |of: Epoch| Cursor {
        epoch: of,
        revision: Revision(5),
        hash: ChainHash([9; 16]),
    };
    let broken = |highest, cursor| {
        let mut promises = after(&log, hello(highest, cursor), &[]);
        promises.begun(
            &log,
            log.head(),
            Moment {
                micros: 0,
                wall: UnixMillis(0),
            },
            &mut Guarded::default(),
        );
        promises.broken().is_some()
    };
    assert!(!broken(None, Some(foreign(epoch(1)))));
    assert!(!broken(Some(epoch(2)), None));
    assert!(broken(None, None));
    assert!(broken(Some(epoch(1)), Some(log.head())), "it is where it was");
    let before = Epoch::default();
    assert!(
        broken(Some(before), Some(foreign(before))),
        "of an epoch that is over"
    );
}
