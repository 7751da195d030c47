//! A machine whose requests are answered by hand, on a clock that a test sets.

use bytes::Bytes;
use model::{Cursor, Epoch, UnixMillis};

use super::super::{
    AskId, Held, Input, Machine, Now, Output, Settings, Standing, TAIL_BYTES, TAIL_BYTES_MAX, TICK_MILLIS,
    TermEnd, Token, WriteError, following::epoch_start,
};
use crate::{
    engine::{
        Answer, Beat, Commit, EngineBatch, EngineError, EngineId, Head, HubRow, Instance, Replica, Request,
        Role, Seen, Term,
    },
    testing::suite::clusterset,
};

pub(super) const ENGINE: EngineId = EngineId([7; 16]);
pub(super) const FIRST_EPOCH: Epoch = Epoch {
    created_at: UnixMillis(1),
    random: 1,
};

pub(super) fn start() -> Cursor {
    epoch_start(&clusterset(), FIRST_EPOCH)
}

pub(super) fn replica(name: &str) -> Replica {
    Replica::new(name).unwrap()
}

pub(super) fn unanswered() -> Result<Answer, EngineError> {
    Err(EngineError::Unanswered("nothing came".into()))
}

/// Another hub's head over a position.
pub(super) fn foreign(term: u64, at: Cursor) -> Head {
    Head {
        engine: ENGINE,
        term: Term(term),
        at,
        replica: replica("other"),
        instance: Instance([9; 8]),
    }
}

pub(super) fn seen(head: &Head, beat: Option<Beat>) -> Seen {
    Seen {
        head: Some(head.clone()),
        beat,
        ..Seen::default()
    }
}

pub(super) fn following(head: &Head, payloads: &[&[u8]]) -> EngineBatch {
    EngineBatch::new(head.at, head.term, false, payloads.iter().copied()).unwrap()
}

/// A machine whose requests are answered by hand, on a clock that a test sets.
pub(super) struct Hub {
    pub(super) machine: Machine,
    pub(super) now: u64,
    pub(super) asked: Vec<(AskId, Request)>,
    pub(super) other: Vec<Output>,
    pub(super) hubs: Vec<HubRow>,
}

impl Hub {
    pub(super) fn new(held: Held, origin: Option<EngineId>) -> Self {
        let settings = Settings {
            clusterset: clusterset(),
            replica: replica("me"),
            instance: Instance([1; 8]),
            address: "me:1".to_owned(),
            version: "1".to_owned(),
            rules: 1,
            takeover_after_millis: 1_500,
            origin,
            random: 5,
            tail_bytes: TAIL_BYTES,
            tail_bytes_max: TAIL_BYTES_MAX,
        };
        let mut hub = Self {
            machine: Machine::new(settings, held, Self::at(0)),
            now: 0,
            asked: Vec::new(),
            other: Vec::new(),
            hubs: Vec::new(),
        };
        hub.on(Input::Able(true));
        hub
    }

    pub(super) fn with_log() -> Self {
        let held = Held {
            at: Some(start()),
            term: Term(1),
            engine: Some(ENGINE),
        };
        Self::new(held, None)
    }

    /// One that leads from the start of the first epoch, in term 1.
    pub(super) fn leading() -> Self {
        let held = Held {
            at: Some(start()),
            ..Held::default()
        };
        let mut hub = Self::new(held, Some(ENGINE));
        hub.answer_read(Ok(Answer::Read(Seen::default())));
        let commit = hub.commit();
        assert_eq!((commit.expected, commit.next.at), (None, start()));
        hub.answer_write(Ok(Answer::Committed));
        assert_eq!(hub.machine.standing(), Standing::Leads);
        hub.other.clear();
        hub
    }

    pub(super) fn at(ticks: u64) -> Now {
        Now {
            ticks,
            time: UnixMillis(1_000 + ticks),
        }
    }

    pub(super) fn on(&mut self, input: Input) {
        for output in self.machine.on(input, Self::at(self.now)) {
            match output {
                Output::Ask { ask, request } => self.asked.push((ask, request)),
                other => self.other.push(other),
            }
        }
        // Announcements are always answered.
        while let Some(index) = self
            .asked
            .iter()
            .position(|(_, request)| matches!(request, Request::Announce(_)))
        {
            let (ask, _) = self.asked.remove(index);
            let outcome = Ok(Answer::Hubs(self.hubs.clone()));
            self.on(Input::Answered { ask, outcome });
        }
    }

    pub(super) fn pass(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(TICK_MILLIS) {
            self.now += TICK_MILLIS;
            self.on(Input::Tick);
        }
    }

    pub(super) fn is_write(request: &Request) -> bool {
        matches!(request, Request::Commit(_) | Request::Pulse { .. })
    }

    pub(super) fn answer(&mut self, which: fn(&Request) -> bool, outcome: Result<Answer, EngineError>) {
        let index = self.asked.iter().position(|(_, request)| which(request));
        let (ask, _) = self.asked.remove(index.expect("such a request was asked"));
        self.on(Input::Answered { ask, outcome });
    }

    pub(super) fn answer_write(&mut self, outcome: Result<Answer, EngineError>) {
        self.answer(Self::is_write, outcome);
    }

    pub(super) fn answer_read(&mut self, outcome: Result<Answer, EngineError>) {
        self.answer(|request| matches!(request, Request::Read { .. }), outcome);
    }

    pub(super) fn writes(&self) -> Vec<&Request> {
        self.asked
            .iter()
            .map(|(_, request)| request)
            .filter(|request| Self::is_write(request))
            .collect()
    }

    pub(super) fn commit(&self) -> Commit {
        match self.writes()[..] {
            [Request::Commit(commit)] => (**commit).clone(),
            ref other => panic!("not one commit: {other:?}"),
        }
    }

    pub(super) fn append(&mut self, token: u64, before: Cursor, payloads: &[&'static [u8]]) -> Cursor {
        let after = EngineBatch::new(before, Term(1), false, payloads.iter().copied())
            .unwrap()
            .after();
        self.on(Input::Append {
            token: Token(token),
            before,
            payloads: payloads
                .iter()
                .map(|payload| Bytes::from_static(payload))
                .collect(),
        });
        after
    }

    pub(super) fn released(&mut self) -> Vec<(u64, Result<Cursor, WriteError>)> {
        let taken = self
            .other
            .extract_if(.., |output| matches!(output, Output::Released { .. }));
        taken
            .map(|output| match output {
                Output::Released { token, outcome } => (token.0, outcome),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    pub(super) fn ended(&self) -> Option<&TermEnd> {
        self.other.iter().find_map(|output| match output {
            Output::Ended(end) => Some(end),
            _ => None,
        })
    }

    /// Answers polls each 100 ms, for so long.
    pub(super) fn polls(&mut self, millis: u64, head: &Head, beat: Option<&Beat>) {
        for _ in 0..millis / 100 {
            if self.asked.is_empty() {
                self.pass(100);
            }
            if self
                .asked
                .iter()
                .any(|(_, request)| matches!(request, Request::Read { .. }))
            {
                self.answer_read(Ok(Answer::Read(seen(head, beat.cloned()))));
            }
            self.pass(100);
        }
    }
}

impl Hub {
    pub(super) fn commitless_head(&self) -> Head {
        Head {
            engine: ENGINE,
            term: Term(1),
            at: start(),
            replica: replica("me"),
            instance: Instance([1; 8]),
        }
    }
}

pub(super) fn row(name: &str, role: Role, at: Cursor) -> HubRow {
    HubRow {
        replica: replica(name),
        address: "x:1".to_owned(),
        version: "1".to_owned(),
        rules: 1,
        role,
        term: Term(1),
        synced: Some(at),
    }
}
