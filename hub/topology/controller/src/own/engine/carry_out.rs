//! Owns: the requests of one Cluster's plan: each recorded, made, and its end recorded.
//! Never: makes one that another hub may make by now.

use super::{Became, Engine, LookError, Looking, OTHER_MAY_WRITE};
use crate::{
    desired::change::Plan,
    own::{
        journal::Unrecorded,
        requests,
        rules::{
            event::Event,
            said::said_with,
            steps::{Step, lost, steps, sweep},
            told::told,
        },
        server::{Failed, Server},
    },
};

impl<S: Server> Engine<S> {
    /// Writes what is to be written, in order; ends at the first failure, since what follows refers to what is before.
    pub(super) async fn carry_out(
        &mut self,
        looking: Looking<'_, '_>,
        plan: &Plan,
    ) -> Result<Became, LookError> {
        let requests = steps(plan, self.journal.ledger().get(looking.name), looking.objects);
        // A controller that is behind would miss what is swept up.
        let requests = if requests.is_empty() && !looking.cluster.behind {
            let Looking {
                name,
                cluster,
                objects,
                ..
            } = looking;
            sweep(plan, name, cluster.uid, objects)
        } else {
            requests
        };
        for step in &requests {
            if let Err(why) = self.take(looking, step).await? {
                return Ok(Became::Failed(why));
            }
        }
        if !requests.is_empty() {
            return Ok(Became::Working(requests.len()));
        }
        self.settle(looking, plan).await
    }

    async fn settle(&mut self, looking: Looking<'_, '_>, plan: &Plan) -> Result<Became, LookError> {
        let (name, now) = (looking.name, looking.now);
        if let Some(kept) = self.journal.ledger().get(name) {
            for object in lost(plan, kept, looking.objects) {
                let cluster = name.clone();
                self.record(Event::Lost { cluster, object }, now).await?;
            }
        }
        if plan.progress.goes_on || looking.cluster.moving.is_some() {
            return Ok(Became::Working(0));
        }
        let (about, generation) = (self.about(name), looking.cluster.generation);
        let is_news =
            about.settled != Some(generation) || about.rolling_since.is_some() || about.held.is_some();
        if is_news {
            let cluster = name.clone();
            let said = said_with(looking.cluster.document, &plan.defaults);
            let settled = Event::Settled {
                cluster,
                generation,
                said,
            };
            self.record(settled, now).await?;
        }
        Ok(Became::Settled)
    }

    /// One request: recorded, made, and its end recorded. Why it failed, if it did.
    async fn take(&mut self, looking: Looking<'_, '_>, step: &Step) -> Result<Result<(), String>, LookError> {
        let (name, now) = (looking.name, looking.now);
        let uid = match (&step.content, &step.uid) {
            (Some(_), None) => match requests::is_free(&self.server, (name, looking.cluster.uid), step).await
            {
                Ok(uid) => uid,
                Err(why) => return Ok(Err(why)),
            },
            (_, uid) => uid.clone(),
        };
        if self.lost.is_cancelled() {
            return Ok(Err(format!("{}: {OTHER_MAY_WRITE}", step.object)));
        }
        match self.record(step.intended(name, looking.cluster.uid), now).await {
            Ok(()) => {}
            Err(Unrecorded::TooLarge(bytes)) => {
                return Ok(Err(format!("{}: {}", step.object, Unrecorded::TooLarge(bytes))));
            }
            Err(failed) => return Err(failed.into()),
        }
        // To record it may have taken long.
        if self.lost.is_cancelled() {
            return Ok(Err(format!("{}: {OTHER_MAY_WRITE}", step.object)));
        }
        tracing::info!(
            cluster = %name, object = %step.object, place = %step.place, action = step.intent.word(), why = step.reasons.join("; "),
            "a topology is kept"
        );
        let made = requests::make(&self.server, &name.namespace, step, uid);
        let made = requests::bounded(self.patience, made).await;
        let (cluster, object) = (name.clone(), step.object.clone());
        match made {
            Ok(()) => {
                self.record(Event::Applied { cluster, object }, now).await?;
                if let Some(told) = told(looking.cluster.document, step) {
                    self.server.tell(&told).await;
                }
                Ok(Ok(()))
            }
            Err(Failed::Immutable(why) | Failed::Refused(why)) => {
                let said = format!("{object}: {why}");
                if self.about(name).refused.as_ref() != Some(&said) {
                    tracing::warn!(cluster = %name, %said, "the API server refuses an object of a topology");
                }
                self.record(Event::Refused { cluster, object, why }, now).await?;
                Ok(Err(said))
            }
            // It stays pending: the next look sees what became of it.
            Err(Failed::Unknown(why)) => Ok(Err(format!("{object}: {why}"))),
        }
    }
}
