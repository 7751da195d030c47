//! The contents of a simulated engine: keys and values as a real one has them, and how each request changes them.

use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;

use crate::engine::{
    ANNOUNCED_SECONDS, Answer, Base, Beat, Commit, EngineBatch, EngineError, EngineStatus, Head, HubRow,
    KeyRange, Keys, READ_BATCHES_MAX, Refusal, Request, Seen, Unreadable,
};

/// Keys and values of one log.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    keys: Keys,
    values: BTreeMap<String, Bytes>,
    /// When announcements end.
    announced: BTreeMap<String, u64>,
    /// False: every request that writes a value is refused.
    pub(super) has_room: bool,
}

impl Contents {
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            values: BTreeMap::new(),
            announced: BTreeMap::new(),
            has_room: true,
        }
    }

    /// The head.
    pub(super) fn head(&self) -> Result<Option<Head>, Unreadable> {
        self.values
            .get(&self.keys.head())
            .map(|line| Head::decode(line))
            .transpose()
    }

    /// Performs a request at a time in milliseconds, all of it or nothing.
    pub(super) fn perform(&mut self, request: &Request, now: u64) -> Result<Answer, EngineError> {
        let answer = match request {
            Request::Read { from } => self.read(*from).map(Answer::Read),
            Request::Commit(commit) => return self.commit(commit),
            Request::Pulse { head, beat } => {
                return self.if_head(Some(head), true, |held| {
                    held.values.insert(held.keys.pulse(), beat.encode().into());
                    Answer::Done
                });
            }
            Request::Trim { head, below } => {
                return self.if_head(Some(head), false, |held| {
                    let range = held.keys.batches_below(below.epoch, below.revision);
                    held.values
                        .retain(|key, _| !(range.from <= *key && *key < range.to));
                    Answer::Done
                });
            }
            Request::Announce(row) => return self.announce(row, now),
            Request::Status => Ok(Answer::Status(self.status())),
        };
        answer.map_err(|unreadable| EngineError::Refused(unreadable.into()))
    }

    fn if_head(
        &mut self,
        expected: Option<&Head>,
        writes: bool,
        change: impl FnOnce(&mut Self) -> Answer,
    ) -> Result<Answer, EngineError> {
        if writes && !self.has_room {
            return Err(EngineError::Refused(Refusal::NoRoom));
        }
        // Values are compared, as a real engine does it.
        let held = self.values.get(&self.keys.head());
        if held.map(|line| &line[..]) == expected.map(Head::encode).as_deref().map(str::as_bytes) {
            return Ok(change(self));
        }
        let head = self
            .head()
            .map_err(|unreadable| EngineError::Refused(unreadable.into()))?;
        Ok(Answer::HeadIs(head))
    }

    fn commit(&mut self, commit: &Commit) -> Result<Answer, EngineError> {
        self.if_head(commit.expected.as_ref(), true, |held| {
            if let Some(batch) = &commit.batch {
                let (epoch, first) = (batch.before().epoch, batch.before().revision.next());
                held.values
                    .insert(held.keys.batch(epoch, first), batch.encoded().clone());
            }
            if let Some(base) = &commit.base {
                held.values
                    .insert(held.keys.base(base.epoch), base.encode().into());
            }
            held.values.insert(held.keys.head(), commit.next.encode().into());
            Answer::Committed
        })
    }

    fn range(&self, range: &KeyRange) -> impl DoubleEndedIterator<Item = (&String, &Bytes)> + use<'_> {
        let bounds = (
            Bound::Included(range.from.clone()),
            Bound::Excluded(range.to.clone()),
        );
        self.values.range(bounds)
    }

    fn read(&self, from: Option<crate::engine::Position>) -> Result<Seen, Unreadable> {
        let mut seen = Seen {
            head: self.head()?,
            beat: self
                .values
                .get(&self.keys.pulse())
                .map(|line| Beat::decode(line))
                .transpose()?,
            ..Seen::default()
        };
        if let Some((key, line)) = self.range(&self.keys.bases()).next_back() {
            let epoch = self.keys.parse_base(key).expect("the range has bases only");
            seen.base = Some(Base::decode(epoch, line)?);
        }
        if let Some(from) = from {
            let range = self.keys.batches_from(from.epoch, from.revision);
            for (key, bytes) in self.range(&range).take(READ_BATCHES_MAX) {
                let (epoch, first) = self.keys.parse_batch(key).expect("the range has batches only");
                seen.batches
                    .push(EngineBatch::decode(epoch, first, bytes.clone())?);
            }
        }
        Ok(seen)
    }

    fn announce(&mut self, row: &HubRow, now: u64) -> Result<Answer, EngineError> {
        if !self.has_room {
            return Err(EngineError::Refused(Refusal::NoRoom));
        }
        let key = self.keys.hub(&row.replica);
        self.values.insert(key.clone(), row.encode().into());
        self.announced
            .insert(key, now + u64::from(ANNOUNCED_SECONDS) * 1_000);
        let ended: Vec<String> = self
            .announced
            .extract_if(.., |_, until| *until <= now)
            .map(|(key, _)| key)
            .collect();
        self.values.retain(|key, _| !ended.contains(key));
        let rows = self
            .range(&self.keys.hubs())
            .map(|(_, line)| HubRow::decode(line));
        let rows = rows.collect::<Result<_, _>>();
        rows.map(Answer::Hubs)
            .map_err(|unreadable| EngineError::Refused(unreadable.into()))
    }

    fn status(&self) -> EngineStatus {
        let bytes: usize = self
            .values
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let alarms = if self.has_room {
            Vec::new()
        } else {
            vec!["NOSPACE".to_owned()]
        };
        EngineStatus {
            version: "simulated".to_owned(),
            used_bytes: bytes as u64,
            quota_bytes: 0,
            alarms,
        }
    }
}
