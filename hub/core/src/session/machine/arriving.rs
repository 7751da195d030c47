//! Owns: what the session adds to the knowledge of where exports arrived, and what of it its member is told.
//! Never: decides anything by it.

use std::sync::Arc;

use model::{
    ClusterId,
    sync::{FEATURE_ARRIVALS, HubMessage, Namespaces},
};

use super::{Phase, Session};
use crate::{
    arrival::{Arrivals, Word, Words},
    view::View,
};

/// A namespace that came counts so long after it, in milliseconds: what is in it is sent and applied at positions that the
/// member has said to have applied before.
const NAMESPACES_SETTLE_MILLIS: u64 = 5_000;

/// One session's knowledge of it.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    /// Absent: the agent does not take it.
    arrivals: Option<Box<Arrivals>>,
    stated: Option<Stated>,
    /// Absent before the first statement.
    settled: Option<Arc<Namespaces>>,
}

/// The namespaces that the member said to have last.
#[derive(Debug)]
struct Stated {
    /// The generation of its interest.
    generation: u64,
    since: u64,
    namespaces: Arc<Namespaces>,
}

impl Arriving {
    pub(super) fn of(features: u64, member: &ClusterId) -> Self {
        let takes = features & FEATURE_ARRIVALS != 0;
        Self {
            arrivals: takes.then(|| Box::new(Arrivals::new(member.clone()))),
            ..Self::default()
        }
    }

    pub(super) fn take(&mut self) -> Option<HubMessage> {
        self.arrivals.as_mut()?.take()
    }

    /// The namespaces as stated, and those of them that have been there for a while.
    fn namespaces(
        &mut self,
        generation: u64,
        namespaces: &Namespaces,
        now: u64,
    ) -> (Arc<Namespaces>, Arc<Namespaces>) {
        let stated = match self.stated.take() {
            Some(stated) if stated.generation == generation => stated,
            _ => Stated {
                generation,
                since: now,
                namespaces: Arc::new(namespaces.clone()),
            },
        };
        let settled = match self.settled.take() {
            Some(settled) if now < stated.since + NAMESPACES_SETTLE_MILLIS => settled,
            _ => stated.namespaces.clone(),
        };
        let both = (stated.namespaces.clone(), settled.clone());
        (self.stated, self.settled) = (Some(stated), Some(settled));
        both
    }
}

impl Session {
    /// The member's last report on its cluster, if there is one.
    pub fn word(&mut self, now: u64) -> Option<Word> {
        let Phase::Open {
            epoch,
            push,
            following: Some(following),
            ..
        } = &self.phase
        else {
            return None;
        };
        let standing = following.standing();
        let revision = standing.revision?;
        let parked = following.parked().clone();
        let named = u32::try_from(parked.len()).unwrap_or(u32::MAX);
        let (generation, namespaces) = (push.interest_generation(), push.namespaces());
        let (namespaces, settled) = self.arriving.namespaces(generation, namespaces, now);
        Some(Word {
            epoch: *epoch,
            revision,
            namespaces,
            settled,
            parks_more: standing.parked > named,
            parked,
        })
    }

    /// Returns true if it is time to compare the members' reports with this member's exports.
    pub fn looks_at_arrivals(&self, now: u64) -> bool {
        let arrivals = self.arriving.arrivals.as_ref();
        arrivals.is_some_and(|arrivals| arrivals.is_due(now))
    }

    /// Compares what members said with this member's exports.
    pub fn look_at_arrivals(&mut self, view: &View, words: &Words, now: u64) {
        if let Some(arrivals) = &mut self.arriving.arrivals {
            arrivals.look(view, words, now);
        }
    }
}
