//! Owns: defaults of variables, which are written into a Cluster before anything is made of them: another default of its class
//! changes nothing for it then.

use super::{Count, Engine, LookError, Looking};
use crate::topology::{
    desired::{change::Plan, objects::text},
    own::{
        journal::Unrecorded,
        rules::event::Event,
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
}
