//! Owns: what questions are answered from: the state as of a durable batch, and what is known beside it of sessions. A
//! decision that is only tried is tried on it, by the rules by which the writer takes one.
//! Never: changes. The writer puts another in its place.

use std::{collections::BTreeSet, sync::Arc};

use model::{ClusterId, Cursor};

use super::{
    event_size::decisions_within,
    request::{Describe, Operated},
};
use event_log::Limits;
use fold::{self, Command, Draft, DraftFact, Rejection, State};

/// The state as of a durable batch.
#[derive(Debug, Clone)]
pub struct Published {
    /// The position after the batch.
    pub head: Cursor,
    /// The state at it. It shares what did not change with those before and after it.
    pub state: State,
    /// The clusters that had a session.
    pub connected: Arc<BTreeSet<ClusterId>>,
    /// The clusters that were listed in this process's life.
    pub listed: Arc<BTreeSet<ClusterId>>,
    /// Limits of an append to the log.
    pub limits: Limits,
    /// The term of this hub.
    pub term: u64,
}

impl Published {
    /// The effects that a decision would have. Nothing is decided.
    pub fn tried(&self, command: &Command, describe: Describe) -> Result<Operated, Rejection> {
        let considered = considered(&self.state, self.limits, command, describe)?;
        Ok(Operated {
            revision: None,
            kinds: considered.kinds,
            effects: considered.effects,
            as_of: self.head.revision,
        })
    }
}

/// A decision of an operator that the rules allow.
pub(super) struct Considered {
    /// Events to record.
    pub(super) drafts: Vec<Draft>,
    /// The kinds of its facts.
    pub(super) kinds: Vec<&'static str>,
    /// Its effects, for people.
    pub(super) effects: Vec<String>,
}

/// The effects of an operator's decision on this state.
pub(super) fn considered(
    state: &State,
    limits: Limits,
    command: &Command,
    describe: Describe,
) -> Result<Considered, Rejection> {
    let drafts = decisions_within(limits, fold::decide(state, command)?)?;
    Ok(Considered {
        kinds: drafts.iter().map(kind).collect(),
        effects: describe(state, command, &drafts),
        drafts,
    })
}

fn kind(draft: &Draft) -> &'static str {
    match &draft.fact {
        DraftFact::Encoded(fact) => fact.fact.kind(),
        DraftFact::Decided(fact) => fact.kind(),
    }
}
