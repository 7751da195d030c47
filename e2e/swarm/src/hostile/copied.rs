//! Owns: a copy of a member, state and key: what was recorded of it when it was copied is what it goes on to state.
//! Never: means harm, or has a cluster of its own.

use fold::Member;
use model::{ClusterId, EncodedFact, Epoch, FactKey, KeyFingerprint};

use super::{Hostile, Introduction, Network, StreamId};
use crate::histogram::Histogram;

/// Interval of attempts after a refusal, in milliseconds.
const RETRY_MILLIS: u64 = 1_000;

/// The copy, and its process once it runs.
pub(crate) struct Copied {
    cluster: ClusterId,
    key: KeyFingerprint,
    fingerprint: Box<str>,
    transitions: i64,
    known_epoch: Epoch,
    facts: Vec<(FactKey, EncodedFact)>,
    process: Option<Hostile>,
    /// Time of its last attempt.
    came_at: Option<u64>,
    held_it: bool,
}

impl Copied {
    /// A member is copied, of which this is recorded, and another one was elected so often among its agents.
    pub(crate) fn of(
        (cluster, key): (&ClusterId, KeyFingerprint),
        fingerprint: &str,
        transitions: i64,
        (member, known_epoch): (&Member, Epoch),
    ) -> Self {
        let facts = member.facts().iter();
        Self {
            cluster: cluster.clone(),
            key,
            fingerprint: fingerprint.into(),
            transitions,
            known_epoch,
            facts: facts
                .map(|(key, recorded)| (key.clone(), recorded.encoded()))
                .collect(),
            process: None,
            came_at: None,
            held_it: false,
        }
    }

    /// A process of it starts.
    pub(crate) fn run(&mut self) {
        let mut process = Hostile::new();
        // There, too, whoever starts is elected.
        self.transitions += 1;
        process.introduction = Introduction {
            agent_version: "swarm".into(),
            cluster_fingerprint: self.fingerprint.clone(),
            instance: format!("copy-of-{}", self.cluster).into(),
            lease_transitions: self.transitions,
        };
        process.known_epoch = Some(self.known_epoch);
        for (key, fact) in &self.facts {
            process.outbox.set(key.clone(), Some(fact.clone()));
        }
        self.process = Some(process);
    }

    /// Its process ends.
    pub(crate) fn end(&mut self, network: &mut Network) {
        if let Some(mut process) = self.process.take() {
            process.disconnect(network);
        }
    }

    /// A process of it runs.
    pub(crate) fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// It was welcomed once in the place of the original.
    pub(crate) fn held_it(&self) -> bool {
        self.held_it
    }

    /// Opens a session, if it runs and has none: the stream, whose it says it is, and under which key.
    pub(crate) fn connect(
        &mut self,
        network: &mut Network,
        now: u64,
    ) -> Option<(StreamId, ClusterId, KeyFingerprint)> {
        let again = self.came_at.is_none_or(|came| now >= came + RETRY_MILLIS);
        let process = self.process.as_mut().filter(|_| again)?;
        let stream = process.connect(network, now, false)?;
        self.came_at = Some(now);
        Some((stream, self.cluster.clone(), self.key))
    }

    /// Says what it has to say, and hears what there is; false when it was nothing.
    pub(crate) fn goes_on(
        &mut self,
        network: &mut Network,
        now: u64,
        (seen, trace): (&mut Histogram, &mut blake3::Hasher),
    ) -> Result<bool, String> {
        let Some(process) = &mut self.process else {
            return Ok(false);
        };
        let mut something = false;
        while process.speak(network, now, (&mut *seen, &mut *trace)) {
            something = true;
        }
        while process.listen(network, now)? {
            something = true;
        }
        let is_open = process
            .session
            .as_ref()
            .is_some_and(|open| open.machine.is_open());
        if is_open && !std::mem::replace(&mut self.held_it, true) {
            seen.count("copy of a member held it");
        }
        Ok(something)
    }
}
