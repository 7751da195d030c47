//! The steps by which a log on disk follows the engine's, judged from one answer.

use model::{ChainHash, Clusterset, Cursor, Revision};

use crate::engine::{Base, EngineBatch, Head, Seen, Term};

/// One step of following.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Append this batch.
    Apply(EngineBatch),
    /// Begin this epoch over the state at the log's head.
    BeginEpoch(Base),
}

/// The relation of the log to the engine's after those steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// It ends at the head.
    Level,
    /// It ends before the head, and the next poll goes on.
    Behind,
    /// The next batch is not in the engine any more.
    Gap,
    /// The engine lost what the log has: its contents went back.
    Ahead,
    /// The log has events that never were in the engine's.
    Diverged,
}

/// Judges an answer for a log that ends at a position and has seen a term.
pub(super) fn follow(
    clusterset: &Clusterset,
    applied: Cursor,
    term: Term,
    head: &Head,
    seen: &Seen,
) -> (Vec<Step>, Cursor, Relation) {
    let (mut steps, mut at) = (Vec::new(), applied);
    for batch in &seen.batches {
        if batch.before().epoch != at.epoch {
            begin_epoch(clusterset, &mut steps, &mut at, seen.base);
        }
        let before = batch.before();
        if before.epoch == at.epoch && before.revision == at.revision && before.hash != at.hash {
            return (steps, at, inconsistent(head, term));
        }
        if before != at {
            break;
        }
        at = batch.after();
        steps.push(Step::Apply(batch.clone()));
    }
    if at.epoch != head.at.epoch {
        begin_epoch(clusterset, &mut steps, &mut at, seen.base);
    }
    let relation = relation(at, !steps.is_empty(), term, head, seen.base);
    (steps, at, relation)
}

/// Goes into the newest epoch if it takes over exactly the state at this position.
fn begin_epoch(clusterset: &Clusterset, steps: &mut Vec<Step>, at: &mut Cursor, base: Option<Base>) {
    if let Some(base) = base.filter(|base| base.over == *at) {
        steps.push(Step::BeginEpoch(base));
        *at = epoch_start(clusterset, base.epoch);
    }
}

/// The position before the first event of an epoch.
pub(super) fn epoch_start(clusterset: &Clusterset, epoch: model::Epoch) -> Cursor {
    Cursor {
        epoch,
        revision: Revision(0),
        hash: ChainHash::start(clusterset, epoch),
    }
}

fn relation(at: Cursor, has_moved: bool, term: Term, head: &Head, base: Option<Base>) -> Relation {
    let further = if has_moved {
        Relation::Behind
    } else {
        Relation::Gap
    };
    if at == head.at {
        return Relation::Level;
    }
    if at.epoch == head.at.epoch && at.revision < head.at.revision {
        return further;
    }
    if at.epoch >= head.at.epoch {
        return inconsistent(head, term);
    }
    let over = base.filter(|base| base.epoch == head.at.epoch && base.over.epoch == at.epoch);
    match over {
        Some(base) if base.over.revision > at.revision => further,
        Some(_) => Relation::Diverged,
        None => Relation::Gap,
    }
}

/// A head of a later term was written by a hub that followed the engine as it was, so this log has diverged.
/// Under a term that this log knows already, the engine's contents went back.
fn inconsistent(head: &Head, term: Term) -> Relation {
    if head.term > term {
        Relation::Diverged
    } else {
        Relation::Ahead
    }
}
