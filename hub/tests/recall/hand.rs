//! A hub's mind over a log, moved by hand: it reports, seals, ends and starts again, and knows what it recorded.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use shared::{
    model::{
        ClusterId, Clusterset, Cursor, EncodedFact, Endpoint, EndpointSlice, Epoch, Fact, IpFamily,
        KeyFingerprint, Revision, ServiceKey, SessionId, SliceKey, UnixMillis,
        sync::{Hello, Interest, Observation, ObservedItem, PROTOCOL_VERSION},
    },
    wire::{self, StoredFact},
};

use hub::{
    log::{self, Batch, Budget, History, Log, LogError, MemoryDisk, MemoryLog, Retention},
    recall::{self, RecallError},
    replay::replay,
    snapshot,
    writer::{AdmitRequest, Core, CursorCheck, CursorVerdict, Options, Reply, Request},
};

/// Removes every segment that is not needed.
pub(super) const KEEP_NOTHING: Retention = Retention {
    age_millis: 0,
    bytes: 0,
};

/// The place of a log.
#[derive(Clone)]
pub(super) enum Place {
    Memory(MemoryDisk),
    Sled(PathBuf),
}

impl Place {
    pub(super) fn memory() -> Self {
        Self::Memory(MemoryDisk::default())
    }

    pub(super) fn sled(path: &Path) -> Self {
        Self::Sled(path.to_path_buf())
    }

    pub(super) fn open(&self) -> Box<dyn Log> {
        let epoch = Epoch::default().next(UnixMillis(1_000), 7);
        match self {
            Self::Memory(disk) => Box::new(MemoryLog::open(disk, &clusterset(), epoch).expect("it opens")),
            Self::Sled(path) => log::open(path, &clusterset(), epoch).expect("it opens"),
        }
    }
}

pub(super) fn clusterset() -> Clusterset {
    Clusterset::new("example.org", "default").expect("a clusterset")
}

pub(super) fn east() -> ClusterId {
    ClusterId::new("east").expect("a cluster id")
}

pub(super) fn slice_key(name: u8) -> SliceKey {
    SliceKey {
        service: ServiceKey::new("shop", "cart").expect("a service"),
        name: format!("cart-{name}").into(),
    }
}

/// A slice of so many endpoints, one of which has the number `version`.
pub(super) fn slice(name: u8, endpoints: u8, changed: u8, version: u8) -> Fact {
    let endpoint = |number: u8| Endpoint {
        addresses: vec![[10, name, if number == changed { version } else { 0 }, number].into()],
        ready: Some(true),
        serving: Some(true),
        terminating: Some(false),
        hostname: Some(format!("cart-{number}").into()),
        zone: Some(format!("zone-{}", number % 3).into()),
    };
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        key: slice_key(name),
        address_type: IpFamily::V4,
        ports: Vec::new(),
        endpoints: (0..endpoints).map(endpoint).collect(),
    }))
}

/// The mind and its log, everything of it durable.
pub(super) struct Hand {
    place: Place,
    pub(super) log: Option<Box<dyn Log>>,
    core: Core,
    session: SessionId,
    sequence: u64,
    /// The whole facts that were reported and recorded in this epoch.
    pub(super) recorded: BTreeMap<Revision, Bytes>,
}

impl Hand {
    pub(super) fn over(place: Place) -> Self {
        let log = place.open();
        let mut hand = Self {
            place,
            core: core_over(&*log),
            log: Some(log),
            session: SessionId(0),
            sequence: 0,
            recorded: BTreeMap::new(),
        };
        hand.adopt_rules();
        hand.admit();
        hand
    }

    /// Records that these rules fold the log, as a hub that starts does, unless it is recorded.
    fn adopt_rules(&mut self) {
        self.core.adopt_rules(UnixMillis(2_000));
        drop(self.append());
    }

    pub(super) fn log(&mut self) -> &mut dyn Log {
        &mut **self.log.as_mut().expect("it is open")
    }

    pub(super) fn head(&self) -> Cursor {
        self.core.head()
    }

    fn handle(&mut self, request: Request) -> Vec<Reply> {
        self.core.handle(request, UnixMillis(2_000), 1);
        self.append()
    }

    fn append(&mut self) -> Vec<Reply> {
        let batch = self.core.take_batch();
        if !batch.events.is_empty() {
            let follows = self.log().head();
            let appended = Batch::chained(follows, batch.events).expect("within the bounds");
            let head = self.log().append_and_wait(appended).expect("it is durable");
            assert_eq!(head, batch.head);
        }
        batch.replies
    }

    fn admit(&mut self) {
        let request = AdmitRequest {
            cluster: east(),
            key: KeyFingerprint([7; 32]),
            presented: hub::fold::Presented::default(),
            hello: Hello {
                protocol_version: PROTOCOL_VERSION,
                features: 0,
                agent_version: "0".into(),
                highest_epoch: None,
                cluster_fingerprint: "uid-of-east".into(),
                instance: "one".into(),
                lease_transitions: 1,
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
        };
        let replies = self.handle(Request::Admit(1, Box::new(request)));
        let session = replies.iter().find_map(|reply| match reply {
            Reply::Admitted(_, admission) => Some(admission.welcome.session),
            _ => None,
        });
        self.session = session.expect("nobody else holds it");
    }

    /// Reports facts in one batch, and gives the revision of the last one.
    pub(super) fn report(&mut self, facts: impl IntoIterator<Item = Fact>) -> Revision {
        let facts: Vec<EncodedFact> = facts.into_iter().map(|fact| wire::encode_fact(&fact)).collect();
        let mut at = self.core.head().revision;
        for fact in &facts {
            let known = fact.fact.key().and_then(|key| self.current(&key));
            let is_news = known.as_ref() != Some(&fact.bytes) && !(known.is_none() && fact.fact.is_removal());
            // Two reports in a batch are judged one by one, so each is handed over alone.
            self.sequence += 1;
            let observations = vec![Observation::new(self.sequence, ObservedItem::Fact(fact.clone()))];
            let (session, cluster) = (self.session, east());
            self.handle(Request::Observe {
                session,
                cluster,
                observations,
            });
            if is_news {
                at = at.next();
                self.recorded.insert(at, fact.bytes.clone());
            }
        }
        assert_eq!(self.core.head().revision, at);
        at
    }

    fn current(&self, key: &shared::model::FactKey) -> Option<Bytes> {
        let facts = self.core.state().member(&east())?.facts();
        facts.get(key).map(|recorded| recorded.bytes.clone())
    }

    /// A new segment begins.
    pub(super) fn seal(&mut self) {
        let rows = snapshot::rows(self.core.state().clone());
        self.core.segment_begun();
        self.log()
            .seal_and_wait(UnixMillis(2_000), Box::new(rows))
            .expect("it is sealed");
    }

    pub(super) fn snapshot(&mut self) {
        let (head, rows) = (self.core.head(), snapshot::rows(self.core.state().clone()));
        self.log()
            .write_snapshot_and_wait(head, Box::new(rows))
            .expect("it is written");
    }

    pub(super) fn retain(&mut self) {
        self.log().retain_and_wait(KEEP_NOTHING, UnixMillis(3_000));
        let (head, rows) = (self.core.head(), snapshot::rows(self.core.state().clone()));
        let _ = self.log().write_snapshot_and_wait(head, Box::new(rows));
    }

    /// Another epoch begins with this state.
    pub(super) fn begin_epoch(&mut self) {
        let epoch = self.core.head().epoch.next(UnixMillis(2_000), 7);
        let mut carried = self.core.state().clone();
        carried.begin_epoch();
        let rows = Box::new(snapshot::rows(carried.clone()));
        let head = self.log().begin_epoch(epoch, rows).expect("it begins");
        self.core.epoch_begun(head, carried);
        self.recorded.clear();
        self.admit();
    }

    /// The process ends, and another one starts over the same log.
    pub(super) fn restart(&mut self) {
        drop(self.log.take());
        let log = self.place.open();
        let core = core_over(&*log);
        assert!(
            core.state() == self.core.state(),
            "the replay agrees with the state"
        );
        (self.log, self.core) = (Some(log), core);
        self.admit();
    }

    /// Returns true if the event at a revision stores its fact as a difference.
    pub(super) fn is_difference(&mut self, revision: Revision) -> bool {
        let stored = self.payload(revision);
        let recorded = wire::parse_event(revision, stored.into()).expect("it was recorded");
        matches!(recorded.fact(), StoredFact::Over(_))
    }

    pub(super) fn payload(&mut self, revision: Revision) -> Vec<u8> {
        let epoch = self.core.head().epoch;
        let read = move |history: &dyn History| recall::payload_at(history, epoch, revision);
        let read = self.log().reader().wait(read);
        read.expect("it can be read").expect("it is kept")
    }

    /// Checks that the kept part of the epoch reads back as it was recorded, in pages of any size, from anywhere.
    pub(super) fn check(&mut self, budget: Budget) {
        let (head, first) = (self.core.head(), self.log().stats().oldest_revision);
        for start in [
            Revision(0),
            Revision((first.0 + head.revision.0) / 2).max(first),
            head.revision.max(first),
        ] {
            let mut next = start;
            loop {
                let page = read(self.log(), head.epoch, next, budget).expect("it can be read");
                let Some((last, _)) = page.events.last() else {
                    break;
                };
                for (event, _) in &page.events {
                    assert!(next == Revision(0) || event.revision == next, "no gap");
                    next = event.revision.next();
                    if let Some(fact) = self.recorded.get(&event.revision) {
                        assert_eq!(event.fact.bytes, fact, "event {}", event.revision);
                    }
                }
                assert_eq!(last.revision.next(), next);
            }
            assert_eq!(
                next.0.max(first.0),
                head.revision.0.max(first.0 - 1) + 1,
                "to the head"
            );
        }
        let (state, at) = replay(&self.log().reader()).expect("it is whole");
        assert_eq!(at, head);
        assert!(state == *self.core.state(), "the replay agrees with the state");
    }
}

fn core_over(log: &dyn Log) -> Core {
    let (state, head) = replay(&log.reader()).expect("it is whole");
    let options = Options {
        hub: "hub".into(),
        hub_version: "0".into(),
        adopt_epoch: false,
        bounds: Default::default(),
    };
    let recorded_at = state.recorded_at();
    Core::new(state, head, recorded_at, options, 0)
}

pub(super) fn read(
    log: &dyn Log,
    epoch: Epoch,
    from: Revision,
    budget: Budget,
) -> Result<recall::Page, RecallError> {
    let read = move |history: &dyn History| Ok::<_, LogError>(recall::read(history, epoch, from, budget));
    log.reader().wait(read)?
}
