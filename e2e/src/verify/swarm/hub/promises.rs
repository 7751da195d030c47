//! Owns: the laws on what a hub says, judged by what the disk has at that moment: acknowledgements, positions, epochs.
//! Never: changes what is said; looks at what members make of it.

use std::collections::BTreeMap;

use hub::log::{Budget, History, Log, MemoryLog};
use shared::{
    model::{
        Cursor, Epoch, SessionId,
        sync::{AgentMessage, HubMessage},
    },
    wire,
};

use crate::verify::{
    laws::{Guarded, Law},
    swarm::network::StreamId,
};

/// What one process of a hub was told and has said.
#[derive(Debug, Default)]
pub(super) struct Promises {
    streams: BTreeMap<StreamId, Said>,
    acknowledged: BTreeMap<SessionId, u64>,
    /// The highest epoch and the cursor of every Hello.
    claims: Vec<(Option<Epoch>, Option<Cursor>)>,
    broken: Option<String>,
}

/// What was said on a stream.
#[derive(Debug, Default)]
struct Said {
    cursor: Option<Cursor>,
    session: Option<(SessionId, Epoch)>,
}

impl Promises {
    /// The first law that was broken.
    pub(super) fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }

    fn require(&mut self, law: Law, holds: bool, why: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(law.broken(why()));
        }
    }

    /// A member says something.
    pub(super) fn heard(&mut self, stream: StreamId, message: &AgentMessage) {
        if let AgentMessage::Hello(hello) = message {
            self.claims.push((hello.highest_epoch, hello.cursor));
            self.streams.entry(stream).or_default().cursor = hello.cursor;
        }
    }

    /// The hub says something: positions must be of the epoch that the session was opened in, and it resumes only
    /// what is on the history of that epoch.
    pub(super) fn said(
        &mut self,
        stream: StreamId,
        message: &HubMessage,
        log: &MemoryLog,
        guarded: &mut Guarded,
    ) {
        let said = self.streams.entry(stream).or_default();
        let epoch = match message {
            HubMessage::Welcome(welcome) => {
                said.session = Some((welcome.session, welcome.epoch));
                let cursor = said.cursor.filter(|_| welcome.resume);
                let right = |cursor: Cursor| cursor.epoch == welcome.epoch && is_on_history(log, cursor);
                guarded.count(Law::Positions, 1);
                self.require(Law::Positions, cursor.is_none_or(right), || {
                    format!(
                        "{cursor:?} is resumed in {:?} and is not on its history",
                        welcome.epoch
                    )
                });
                return;
            }
            HubMessage::Acknowledged(sequence) => {
                if let Some((session, _)) = said.session {
                    guarded.count(Law::Durable, 1);
                    self.acknowledged.insert(session, *sequence);
                }
                return;
            }
            HubMessage::SnapshotBegin { epoch, .. } => *epoch,
            HubMessage::SnapshotComplete(up_to)
            | HubMessage::UpTo(up_to)
            | HubMessage::Heartbeat(Some(up_to)) => up_to.cursor.epoch,
            _ => return,
        };
        let opened = said.session.map(|(_, opened)| opened);
        guarded.count(Law::Positions, 1);
        self.require(Law::Positions, opened == Some(epoch), || {
            format!("a session that was opened in {opened:?} is told of {epoch:?}")
        });
    }

    /// The disk has made durable what follows `before`: nobody may have been told so already.
    pub(super) fn synced(&mut self, log: &MemoryLog, before: Cursor) {
        let head = log.head();
        if head.epoch != before.epoch || head.revision == before.revision || self.broken.is_some() {
            return;
        }
        let from = before.revision.next();
        let read = move |history: &dyn History| history.read(head.epoch, from, Budget::default());
        let events = log
            .reader()
            .wait(read)
            .map(|page| page.events)
            .unwrap_or_default();
        for stored in events {
            let Ok(event) = wire::decode_event(stored.revision, stored.payload.into()) else {
                continue;
            };
            let told = self.acknowledged.get(&event.session).copied().unwrap_or_default();
            self.require(
                Law::Durable,
                event.member_sequence == 0 || told < event.member_sequence,
                || {
                    format!(
                        "fact {} of session {:?} was acknowledged before event {} was durable",
                        event.member_sequence, event.session, event.revision.0
                    )
                },
            );
        }
    }

    /// An epoch began where the log stood at `before`: somebody must have shown that this log was rewound, or have
    /// known a later epoch.
    pub(super) fn begun(&mut self, log: &MemoryLog, before: Cursor, guarded: &mut Guarded) {
        guarded.count(Law::Rewinds, 1);
        let justified = self.claims.iter().any(|(highest, cursor)| {
            let rewound = |cursor: &Cursor| cursor.epoch == before.epoch && !is_on_history(log, *cursor);
            highest.is_some_and(|highest| highest > before.epoch) || cursor.as_ref().is_some_and(rewound)
        });
        self.require(Law::Rewinds, justified, || {
            format!(
                "nobody has shown that the log of {:?} was rewound, and another epoch began",
                before.epoch
            )
        });
    }
}

/// Whether the log's history has this cursor.
pub(super) fn is_on_history(log: &MemoryLog, cursor: Cursor) -> bool {
    let question = move |history: &dyn History| history.hash_at(cursor.epoch, cursor.revision);
    log.reader().wait(question).unwrap_or_default() == Some(cursor.hash)
}
