//! A writer over a log that several hubs share: what has no event is not released on the word of this process alone.

use std::sync::{Arc, Mutex};

use replication::{
    engine::{Answer, Answered, Engine, EngineId, Head, Instance, Keys, LogName, Replica, Request},
    machine::{Now, Settings, TAIL_BYTES, TAIL_BYTES_MAX},
    testing::{LinkFaults, SimulatedEngine},
};

use super::*;
use crate::{following::Following, writer::Takeover};
use event_log::{
    LogError as Error,
    replicated::{Happened, Part, Stepped},
};

/// The engine as a hub reaches it.
struct Route {
    engine: SimulatedEngine,
    link: Mutex<LinkFaults>,
}

impl Engine for Route {
    fn ask(&self, request: Request, done: Answered) {
        let link = *self.link.lock().unwrap();
        self.engine.ask_over(link, request, done);
    }
}

struct Shared {
    hand: Hand,
    part: Stepped<Following>,
    route: Arc<Route>,
    now: u64,
}

fn at(ticks: u64) -> Now {
    Now {
        ticks,
        time: UnixMillis(2_000 + ticks),
    }
}

fn settings(clusterset: Clusterset) -> Settings {
    Settings {
        clusterset,
        replica: Replica::new("hub-1").unwrap(),
        instance: Instance([1; 8]),
        address: "hub:1".to_owned(),
        version: "1".to_owned(),
        rules: 1,
        takeover_after_millis: 1_500,
        origin: Some(EngineId([7; 16])),
        random: 1,
        tail_bytes: TAIL_BYTES,
        tail_bytes_max: TAIL_BYTES_MAX,
    }
}

/// A hub that leads.
fn shared() -> Shared {
    let clusterset = Clusterset::new("example.org", "default").expect("a clusterset");
    let keys = Keys::new(&clusterset, LogName::Events);
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    let log = MemoryLog::open(&MemoryDisk::default(), &clusterset, epoch).expect("it opens");
    let route = Arc::new(Route {
        engine: SimulatedEngine::new(keys, 1),
        link: Mutex::default(),
    });
    let part = Part {
        settings: settings(clusterset),
        engine: Arc::clone(&route) as Arc<dyn Engine>,
        replica: Some(Box::new(log.clone())),
        refold: Box::new(|reader| {
            Following::replayed(reader).map_err(|error| Error::Refused(error.to_string()))
        }),
        new_replica: Box::new(|_| Err(Error::Closed)),
    };
    let part = Stepped::start(part, at(0)).expect("it starts");
    part.set_able(true);
    let mut now = 0;
    let lead = loop {
        now += 25;
        let led = part
            .advance(at(now))
            .into_iter()
            .find_map(|happened| match happened {
                Happened::Leads(lead) => Some(lead),
                _ => None,
            });
        if let Some(lead) = led {
            break lead;
        }
        assert!(now < 5_000, "it does not lead");
    };
    let (state, ended) = lead.fold.into_parts();
    let options = Options {
        hub: "hub".into(),
        hub_version: "0".into(),
        adopt_epoch: false,
        bounds: Bounds::default(),
    };
    let (writer, _, completed) = Writer::new(state, lead.log, options, WriterMetrics::default(), AT);
    let takeover = Takeover {
        replica: "hub-1".into(),
        ended,
    };
    let mut writer = writer.taking_over(takeover, AT);
    writer.begin(AT);
    let mut hand = Hand {
        writer,
        log,
        completed,
    };
    hand.settle().expect("who leads is durable");
    Shared {
        hand,
        part,
        route,
        now,
    }
}

impl Shared {
    fn lose_answers(&self, lose: bool) {
        *self.route.link.lock().unwrap() = LinkFaults {
            requests: false,
            answers: lose,
        };
    }

    fn pass(&mut self, millis: u64) -> Result<(), WriterError> {
        for _ in 0..millis / 25 {
            self.now += 25;
            self.route.engine.advance(self.now);
            let _ = self.part.advance(at(self.now));
            self.hand.settle()?;
        }
        Ok(())
    }

    /// Something is tried that leads to no event.
    fn try_something(&mut self) -> oneshot::Receiver<Result<Operated, Rejection>> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Forget {
            cluster: ClusterId::new("gone").expect("a cluster id"),
            operator: "alice".into(),
        };
        let work = Work::Operate {
            command,
            confirm: false,
            describe: |_, _, _| Vec::new(),
            reply,
        };
        self.hand.writer.take(work, AT);
        answer
    }

    /// Another hub takes the lead.
    fn take_over(&self) {
        let head = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&head);
        let done = move |answer| {
            if let Ok(Answer::Read(read)) = answer {
                *seen.lock().unwrap() = read.head;
            }
        };
        self.route
            .engine
            .ask(Request::Read { from: None }, Box::new(done));
        let head: Head = head.lock().unwrap().take().expect("there is a head");
        let next = Head {
            term: head.term.next(),
            instance: Instance([2; 8]),
            ..head.clone()
        };
        let seal = replication::engine::Commit::seal(head, next);
        self.route.engine.ask(Request::from(seal), Box::new(|_| {}));
    }
}

#[test]
fn who_leads_is_recorded_first_and_everything_is_appended_as_ever() {
    let mut shared = shared();
    assert_eq!(shared.hand.writer.core().state().term(), 1);
    shared.hand.record(1);
    let head = shared.hand.writer.durable;
    assert_eq!(
        (shared.hand.shown(), shared.hand.log.head()),
        (head.revision, head)
    );
}

#[test]
fn a_batch_without_events_waits_until_the_lead_is_confirmed() {
    let mut shared = shared();
    let mut answer = shared.try_something();
    shared.hand.settle().expect("it leads");
    assert!(matches!(answer.try_recv(), Ok(Ok(_))));
    shared.lose_answers(true);
    let mut answer = shared.try_something();
    shared.pass(500).expect("it may still lead");
    assert!(answer.try_recv().is_err(), "nobody said that it leads");
    assert!(!shared.hand.writer.is_idle());
    shared.lose_answers(false);
    shared.pass(500).expect("it leads");
    assert!(matches!(answer.try_recv(), Ok(Ok(_))));
}

#[test]
fn nothing_without_an_event_is_released_by_a_hub_that_leads_no_more() {
    let mut shared = shared();
    shared.take_over();
    let mut answer = shared.try_something();
    let ended = shared.pass(500).expect_err("another hub leads");
    assert!(ended.ends_term(), "{ended}");
    assert!(answer.try_recv().is_err());
}

#[test]
fn what_was_not_decided_for_certain_is_dropped_with_the_term() {
    let mut shared = shared();
    shared.lose_answers(true);
    let mut answer = shared.hand.decide(1);
    let shown = shared.hand.shown();
    let ended = shared.pass(4_000).expect_err("nobody knows");
    assert!(ended.ends_term(), "{ended}");
    assert_eq!((answer.try_recv().is_err(), shared.hand.shown()), (true, shown));
}
