//! Owns: defaults of variables, which are written into a Cluster before any object depends on them: another default of
//! its class then changes nothing for it.

use super::{Count, Engine, LookError, Looking, OTHER_MAY_WRITE};
use crate::{
    desired::change::{Defaulted, Plan},
    own::{
        journal::Unrecorded,
        requests,
        rules::{
            event::Event,
            ledger::About,
            said::{Said, said, said_with},
        },
        server::Server,
    },
};

/// Time before defaults that were removed from a Cluster are written again, in milliseconds.
pub(super) const AGAIN_MILLIS: u64 = 600_000;

/// Defaults that were written into a Cluster.
pub(super) struct Given {
    defaults: Vec<Defaulted>,
    /// Time in milliseconds since 1970.
    at: u64,
    /// True if a message said that another writer removes them.
    told: bool,
}

impl<S: Server> Engine<S> {
    /// Writes the defaults that a Cluster is yet to be given. Objects that use them follow at the next look, from the
    /// Cluster's new content.
    pub(super) async fn give_defaults(
        &mut self,
        looking: Looking<'_, '_>,
        plan: &Plan,
        count: &mut Count,
    ) -> Result<(), LookError> {
        let name = looking.name;
        let event = Event::Defaulted {
            cluster: name.clone(),
            uid: looking.cluster.uid.to_owned(),
            defaults: plan.defaults.clone(),
            said: self.new_words(looking, plan),
        };
        match self.record(event, looking.now).await {
            Ok(()) => {}
            Err(Unrecorded::TooLarge(bytes)) => {
                let why = format!("its variables: {}", Unrecorded::TooLarge(bytes));
                self.failed(looking, &why, count).await;
                return Ok(());
            }
            Err(failed) => return Err(failed.into()),
        }
        if self.lost.is_cancelled() {
            self.failed(looking, OTHER_MAY_WRITE, count).await;
            return Ok(());
        }
        let of = (looking.cluster.uid, looking.cluster.generation);
        let set = self
            .server
            .set_defaults(&name.namespace, &name.name, of, &plan.defaults);
        match requests::bounded(self.patience, set).await {
            Ok(()) => {
                self.retries.remove(name);
                self.given(looking, plan);
                count.working += 1;
                count.writes += 1;
            }
            Err(failed) => {
                let why = format!("its variables cannot be given their defaults: {}", failed.why());
                self.failed(looking, &why, count).await;
            }
        }
        Ok(())
    }

    /// Notes that a Cluster was given its defaults.
    fn given(&mut self, looking: Looking<'_, '_>, plan: &Plan) {
        let before = self.given.get(looking.name);
        let given = Given {
            defaults: plan.defaults.clone(),
            at: looking.now.0,
            told: before.is_some_and(|before| before.told),
        };
        self.given.insert(looking.name.clone(), given);
    }

    /// Returns true if a Cluster was given these defaults lately, so that somebody took them away. Its plan has them
    /// nevertheless, and is carried out.
    pub(super) fn are_taken_away(&mut self, looking: Looking<'_, '_>, plan: &Plan) -> bool {
        let Some(given) = self.given.get_mut(looking.name) else {
            return false;
        };
        let is_late = looking.now.0.saturating_sub(given.at) >= AGAIN_MILLIS;
        if is_late || given.defaults != plan.defaults {
            return false;
        }
        if !std::mem::replace(&mut given.told, true) {
            tracing::warn!(
                cluster = %looking.name,
                "another writer removes the defaults of variables that the hub writes into this Cluster: until it keeps them, \
                 another default of the class replaces its machines; write the variables at their source, or have that \
                 writer ignore spec.topology.variables"
            );
        }
        true
    }

    /// Values that a Cluster gets by its defaults. A value that its owner has changed since it settled stays the
    /// owner's.
    fn new_words(&self, looking: Looking<'_, '_>, plan: &Plan) -> Said {
        let About {
            said: known,
            defaulted,
            ..
        } = self.about(looking.name);
        let before = said(looking.cluster.document);
        let mut words = said_with(looking.cluster.document, &plan.defaults);
        words.retain(|place, word| {
            let was = before.get(place);
            // One that was recorded and not written, or was removed by another writer, is its class's too.
            let is_default = was.is_none() && known.get(place) == defaulted.get(place);
            was != Some(word) && (known.get(place) == was || is_default)
        });
        words
    }
}
