//! Reading events back: the one loop that joins rows, checks that nothing is missing, verifies the chain.
//! It reads any store and writes none; what it cannot read it reports with its place, and stops.

use std::ops::ControlFlow;

use model::{ChainHash, Clusterset, Epoch, Revision};

use super::{
    error::{Corruption, LogError},
    group::{Group, Joiner, Row},
    key::{self, KeyKind},
    record,
    rows::ReadRows,
};

/// Sees one verified event: revision, chain hash, payload.
pub(super) type VisitEvent<'a> = dyn FnMut(Revision, ChainHash, &[u8]) -> ControlFlow<()> + 'a;

/// Visits the events `from..=to` of an epoch in order, each verified. `before` is the hash at `from - 1`, if the
/// caller knows it. Everything up to `to` must be there, unless the visitor breaks off.
pub(super) fn walk(
    rows: &impl ReadRows,
    epoch: Epoch,
    from: Revision,
    to: Revision,
    before: Option<ChainHash>,
    visit: &mut VisitEvent<'_>,
) -> Result<(), LogError> {
    if from > to {
        return Ok(());
    }
    let missing = |revision| Corruption::event(epoch, revision, "the event, or a part of it, is missing");
    let first = group_start(rows, epoch, from)?.ok_or_else(|| missing(from))?;
    let mut joiner = Joiner::new(first.0);
    let mut verifier = Verifier {
        from,
        to,
        before,
        previous: None,
        hashes: Vec::new(),
    };
    let mut outcome = Ok(ControlFlow::Continue(()));
    let to_key = key::behind(&key::event(epoch, to, u16::MAX));
    rows.scan(&key::event(epoch, first, 0), &to_key, &mut |key, value| {
        let next = Revision(joiner.next);
        let mut take = || {
            let (_, first, part) = key::parse_event(key).ok_or("a key has the wrong length")?;
            match joiner.push(first.0, part, value)? {
                Some(group) => verifier.take(&group, visit),
                None => Ok(ControlFlow::Continue(())),
            }
        };
        outcome = take().map_err(|what: String| Corruption::event(epoch, next, what));
        match outcome {
            Ok(flow) => flow,
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    let next = Revision(joiner.next);
    if outcome? == ControlFlow::Continue(()) && (next <= to || !joiner.is_between()) {
        return Err(missing(next).into());
    }
    Ok(())
}

/// Verifies groups against each other, and hands out the events that were asked for.
struct Verifier {
    from: Revision,
    to: Revision,
    /// Expected hash at `from - 1`.
    before: Option<ChainHash>,
    /// The hash at the last event of the group before.
    previous: Option<ChainHash>,
    hashes: Vec<ChainHash>,
}

impl Verifier {
    fn take(&mut self, group: &Group<'_>, visit: &mut VisitEvent<'_>) -> Result<ControlFlow<()>, String> {
        if self.previous.is_some_and(|previous| previous != group.before) {
            return Err("it does not follow the event before it".into());
        }
        self.previous = Some(group.after);
        self.hashes.clear();
        let mut hash = group.before;
        for (revision, payload) in (group.first..).zip(group.payloads()) {
            if revision == self.from.0 && self.before.is_some_and(|before| before != hash) {
                return Err("it does not follow the event before it".into());
            }
            hash = record::chain(hash, payload);
            self.hashes.push(hash);
        }
        if hash != group.after {
            return Err("its chain hash does not match its bytes and the events before".into());
        }
        for ((revision, payload), hash) in (group.first..).zip(group.payloads()).zip(&self.hashes) {
            let wanted = (self.from..=self.to).contains(&Revision(revision));
            if wanted && visit(Revision(revision), *hash, payload) == ControlFlow::Break(()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The first revision of the group that a revision is in, if it is anywhere.
fn group_start(rows: &impl ReadRows, epoch: Epoch, revision: Revision) -> Result<Option<Revision>, LogError> {
    let (from, _) = key::epoch_range(KeyKind::Event, epoch);
    let to = key::behind(&key::event(epoch, revision, u16::MAX));
    let Some((key, _)) = rows.last(&from, &to)? else {
        return Ok(None);
    };
    let wrong = || Corruption::event(epoch, revision, "a key before it has the wrong length");
    let (_, first, _) = key::parse_event(&key).ok_or_else(wrong)?;
    Ok(Some(first))
}

/// The chain hash at a revision, its group verified; `None` if the event is not there.
pub(super) fn hash_at(
    rows: &impl ReadRows,
    clusterset: &Clusterset,
    epoch: Epoch,
    revision: Revision,
) -> Result<Option<ChainHash>, LogError> {
    if revision == Revision(0) {
        return Ok(Some(record::chain_start(clusterset, epoch)));
    }
    if revision > last_revision(rows, epoch)? {
        return Ok(None);
    }
    let mut found = None;
    walk(rows, epoch, revision, revision, None, &mut |_, hash, _| {
        found = Some(hash);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The revision of an epoch's last event, 0 if there is none.
pub(super) fn last_revision(rows: &impl ReadRows, epoch: Epoch) -> Result<Revision, LogError> {
    let (from, to) = key::epoch_range(KeyKind::Event, epoch);
    let Some((key, value)) = rows.last(&from, &to)? else {
        return Ok(Revision(0));
    };
    let wrong = || {
        Corruption::new(
            format!("epoch {epoch}"),
            "the last event's key has the wrong length",
        )
    };
    let (_, first, _) = key::parse_event(&key).ok_or_else(wrong)?;
    let row = Row::decode(&value).map_err(|invalid| Corruption::event(epoch, first, invalid))?;
    Ok(Revision(first.0 + u64::from(row.items) - 1))
}
