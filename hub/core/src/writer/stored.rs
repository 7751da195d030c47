//! Owns: which facts are stored as the difference to the one they replace: how each present fact was stored in the
//! current segment, by its revision.
//! Never: appends, or reads back; [`crate::recall`] does that.
//!
//! A base must be in the same segment, because whole segments go; and a fact must not be far from a whole one, because
//! reading one event reads the ones between. After a start nothing is known, and each fact is stored whole once.

use std::collections::BTreeMap;

use model::{Event, Fact, FactKey, Revision};

use crate::recall::DIFFERENCES_MAX;
use fold::{RecordedFact, State};

/// The stored form of the current facts, for those stored in the current segment.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// By the revision of the fact: how many differences lead to it from one that was stored whole.
    differences: BTreeMap<Revision, u8>,
}

impl Stored {
    /// The bytes of an event that follows this state. Facts of fewer than `bytes_min` are whole.
    pub(super) fn encode(&mut self, state: &State, event: &Event, bytes_min: usize) -> Vec<u8> {
        let replaced = self.replaced(state, event);
        if event.fact.bytes.len() < bytes_min || !may_be_base(&event.fact.fact) {
            return wire::encode_event(event);
        }
        let over = replaced.and_then(|(fact, differences)| {
            let differences = differences
                .checked_add(1)
                .filter(|count| *count <= DIFFERENCES_MAX)?;
            let encoded = wire::encode_event_over(event, fact.revision, &fact.bytes)?;
            Some((encoded, differences))
        });
        let (encoded, differences) = over.unwrap_or_else(|| (wire::encode_event(event), 0));
        self.differences.insert(event.revision, differences);
        encoded
    }

    /// The fact that an event replaces, if it is in this segment, and how far it is from a whole one. It is not kept as
    /// a present fact, nor is any fact that goes with a membership.
    fn replaced<'a>(&mut self, state: &'a State, event: &Event) -> Option<(&'a RecordedFact, u8)> {
        let facts = state.member(event.cluster.as_ref()?)?.facts();
        if ends_facts(&event.fact.fact) {
            for fact in facts.values() {
                self.differences.remove(&fact.revision);
            }
            return None;
        }
        let fact = facts.get(&event.fact.fact.key()?)?;
        let differences = self.differences.remove(&fact.revision)?;
        Some((fact, differences))
    }

    /// Nothing is in the segment that follows, or in the epoch.
    pub(super) fn begin(&mut self) {
        self.differences.clear();
    }
}

/// Returns true if later facts may be stored as differences to this one, and it as one itself. Health is small.
fn may_be_base(fact: &Fact) -> bool {
    fact.key().is_some_and(|key| key != FactKey::Health) && !fact.is_removal()
}

/// Returns true if the cluster has no facts afterwards.
fn ends_facts(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::MemberLeft | Fact::MemberEvicted { .. } | Fact::MemberForgotten { .. }
    )
}
