//! Owns: defaults of variables, which are written into a Cluster before anything is made of them: another default of its class
//! changes nothing for it then.

use super::{Count, Engine, LookError, Looking};
use crate::topology::{
    desired::{change::Plan, objects::text},
    own::{
        journal::Unrecorded,
        rules::{
            event::Event,
            said::{Said, said},
        },
        server::Server,
    },
};

impl<S: Server> Engine<S> {
    /// Writes the defaults that a Cluster is yet to be given. What is made of them follows at the next look, from what the
    /// Cluster says then.
    pub(super) async fn give_defaults(
        &mut self,
        looking: Looking<'_, '_>,
        plan: &Plan,
        count: &mut Count,
    ) -> Result<(), LookError> {
        let (name, document) = (looking.name, looking.cluster.document);
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
        let version = text(document, "/metadata/resourceVersion").unwrap_or_default();
        let set = self
            .server
            .set_defaults(&name.namespace, &name.name, version, &plan.defaults);
        match set.await {
            Ok(()) => {
                self.retries.remove(name);
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

    /// What a Cluster says by its defaults and did not before. Where its owner has said something since it settled, that stays
    /// theirs.
    fn new_words(&self, looking: Looking<'_, '_>, plan: &Plan) -> Said {
        let known = self.about(looking.name).said;
        let before = said(looking.cluster.document);
        let mut filled = looking.cluster.document.clone();
        for defaults in &plan.defaults {
            defaults.write(&mut filled);
        }
        let mut words = said(&filled);
        words.retain(|place, word| {
            let was = before.get(place);
            was != Some(word) && known.get(place) == was
        });
        words
    }
}
