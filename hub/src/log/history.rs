//! Reading events back: the one loop that joins parts, checks that nothing is missing, verifies the chain.
//! It reads any store and writes none; what it cannot read it reports with its place, and stops.

use std::ops::ControlFlow;

use shared::model::{ChainHash, Clusterset, Epoch, Revision};

use super::{
    error::{Corruption, LogError},
    key::{self, KeyKind},
    record::{self, Part},
    rows::Rows,
};

/// Sees one verified event: revision, chain hash, payload.
pub(super) type VisitEvent<'a> = dyn FnMut(Revision, ChainHash, &[u8]) -> ControlFlow<()> + 'a;

/// Visits the events `from..=to` of an epoch in order, each verified against the chain hash before it.
/// `before` is the hash at `from - 1`. Everything up to `to` must be there, unless the visitor breaks off.
pub(super) fn walk(
    rows: &impl Rows,
    epoch: Epoch,
    from: Revision,
    to: Revision,
    before: ChainHash,
    visit: &mut VisitEvent<'_>,
) -> Result<(), LogError> {
    if from > to {
        return Ok(());
    }
    let mut joiner = Joiner {
        epoch,
        next: from,
        previous: before,
        parts_seen: 0,
        payload: Vec::new(),
    };
    let mut outcome = Ok(ControlFlow::Continue(()));
    let last_key = key::event(epoch, to, u16::MAX);
    rows.scan(
        &key::event(epoch, from, 0),
        &key::behind(&last_key),
        &mut |key, value| {
            outcome = joiner.push(key, value, visit);
            match outcome {
                Ok(flow) => flow,
                Err(_) => ControlFlow::Break(()),
            }
        },
    )?;
    if outcome? == ControlFlow::Continue(()) && joiner.next != to.next() {
        return Err(Corruption::event(epoch, joiner.next, "the event, or a part of it, is missing").into());
    }
    Ok(())
}

/// Joins part rows to events and holds them against what must come next.
struct Joiner {
    epoch: Epoch,
    next: Revision,
    previous: ChainHash,
    parts_seen: u16,
    payload: Vec<u8>,
}

impl Joiner {
    fn push(
        &mut self,
        key: &[u8],
        value: &[u8],
        visit: &mut VisitEvent<'_>,
    ) -> Result<ControlFlow<()>, Corruption> {
        let wrong = |what: &str| Corruption::event(self.epoch, self.next, what);
        let (_, revision, part) = key::parse_event(key).ok_or_else(|| wrong("a key has the wrong length"))?;
        if revision != self.next || part != self.parts_seen {
            return Err(wrong(&format!(
                "part {} of it is missing, the next row is part {part} of revision {revision}",
                self.parts_seen
            )));
        }
        let row = Part::decode(value).map_err(|invalid| wrong(&invalid.to_string()))?;
        if row.part != part {
            return Err(wrong("a row's header names another part than its key"));
        }
        let whole = part + 1 == row.parts;
        if !whole || part > 0 {
            self.payload.extend_from_slice(row.payload);
        }
        if !whole {
            self.parts_seen += 1;
            return Ok(ControlFlow::Continue(()));
        }
        let payload = if part > 0 {
            self.payload.as_slice()
        } else {
            row.payload
        };
        let hash = record::chain(self.previous, payload);
        if hash != row.hash {
            return Err(wrong(
                "its chain hash does not match its bytes and the events before",
            ));
        }
        let flow = visit(revision, hash, payload);
        self.payload.clear();
        self.parts_seen = 0;
        self.previous = hash;
        self.next = revision.next();
        Ok(flow)
    }
}

/// The chain hash at a revision, as its first row states it; `None` if the event is not there.
pub(super) fn hash_at(
    rows: &impl Rows,
    clusterset: &Clusterset,
    epoch: Epoch,
    revision: Revision,
) -> Result<Option<ChainHash>, LogError> {
    if revision == Revision(0) {
        return Ok(Some(record::chain_start(clusterset, epoch)));
    }
    let Some(row) = rows.get(&key::event(epoch, revision, 0))? else {
        return Ok(None);
    };
    let part = Part::decode(&row).map_err(|invalid| Corruption::event(epoch, revision, invalid))?;
    Ok(Some(part.hash))
}

/// The revision of an epoch's last event, 0 if there is none.
pub(super) fn last_revision(rows: &impl Rows, epoch: Epoch) -> Result<Revision, LogError> {
    let (from, to) = key::epoch_range(KeyKind::Event, epoch);
    let Some((key, _)) = rows.last(&from, &to)? else {
        return Ok(Revision(0));
    };
    let wrong = || {
        Corruption::new(
            format!("epoch {epoch}"),
            "the last event's key has the wrong length",
        )
    };
    let (_, revision, _) = key::parse_event(&key).ok_or_else(wrong)?;
    Ok(revision)
}
