//! Owns: dry runs of a plan: which changes change anything, and which templates have to give their place to another one.
//! Never: rotates a template unless the server confirmed that its content changes, or may not.

use super::{Engine, Looking};
use crate::{
    desired::{
        change::{Action, Plan},
        dry::unrotate,
        objects::text,
    },
    own::{
        rules::{
            event::ObjectName,
            ledger::{ROTATION_MILLIS, ROTATIONS_PER_PLACE_AND_HOUR},
        },
        server::{Failed, Server},
    },
};

impl<S: Server> Engine<S> {
    /// Asks the server which changes have an effect: needless rotations are dropped, and so are writes that the server
    /// would answer with the existing object.
    ///
    /// # Errors
    ///
    /// One line: why the Cluster is left as it is. A dry run that fails says nothing of what a change would do.
    pub(super) async fn refine(&mut self, looking: Looking<'_, '_>, plan: &mut Plan) -> Result<(), String> {
        for at in 0..plan.changes.len() {
            let change = &plan.changes[at];
            let Some(content) = &change.object else {
                continue;
            };
            let known = self.journal.ledger().get(looking.name);
            let object = ObjectName::of(content);
            let is_known = known.is_some_and(|kept| kept.objects.get(&object) == Some(content));
            let name = match (change.action, &change.before) {
                (Action::Rotate, Some(before)) => before.clone(),
                (Action::Update, _) if is_known => change.name.clone(),
                _ => continue,
            };
            let (namespace, kind) = (&plan.namespace, &object.kind);
            let version = text(content, "/apiVersion").unwrap_or_default();
            // The server answers in the version of what it is asked to write.
            let there = looking.objects.get_in(version, kind, namespace, &name);
            let Some(there) = there.or_else(|| looking.objects.get(&object.group, kind, namespace, &name))
            else {
                // Nothing can be asked of one of another kind, but it takes a template's place like any other.
                if change.action == Action::Rotate {
                    self.may_rotate(looking, plan, at)?;
                }
                continue;
            };
            let asked = self
                .asked
                .ask(&self.server, looking.name, (content, &name), there);
            match (change.action, asked.await) {
                (Action::Rotate, Ok(changed)) if !changed.content => unrotate(plan, at, changed.about),
                (Action::Rotate, Ok(_)) => self.may_rotate(looking, plan, at)?,
                (Action::Rotate, Err(Failed::Immutable(why))) => {
                    if self.is_rotated_for_it(looking, plan, at) {
                        return Err(format!(
                            "{object}: {why}; {name} was made with exactly this content, and the server keeps another one: \
                             no further template is made, write in the class what the server keeps"
                        ));
                    }
                    self.may_rotate(looking, plan, at)?;
                }
                (_, Ok(changed)) => {
                    if !changed.any() {
                        plan.changes[at].action = Action::Keep;
                        plan.changes[at].machines = 0;
                    }
                }
                (_, Err(failed)) => return Err(format!("{} {name}: {}", object.kind, failed.why())),
            }
        }
        Ok(())
    }

    /// Returns true if the template that is to give its place was made for the same content.
    fn is_rotated_for_it(&self, looking: Looking<'_, '_>, plan: &Plan, at: usize) -> bool {
        let change = &plan.changes[at];
        let (Some(content), Some(before)) = (&change.object, &change.before) else {
            return false;
        };
        let made = ObjectName {
            name: before.clone(),
            ..ObjectName::of(content)
        };
        let kept = self.journal.ledger().get(looking.name);
        kept.and_then(|kept| kept.objects.get(&made))
            .is_some_and(|made| made["spec"] == content["spec"])
    }

    /// Bounds the rotations of one place, whatever asks for them.
    fn may_rotate(&self, looking: Looking<'_, '_>, plan: &Plan, at: usize) -> Result<(), String> {
        let change = &plan.changes[at];
        let kept = self.journal.ledger().get(looking.name);
        let rotated = kept.and_then(|kept| kept.about.rotated.get(&change.place));
        let since = looking.now.0.saturating_sub(ROTATION_MILLIS);
        let lately = rotated.into_iter().flatten();
        let lately = lately.filter(|(at, name)| *at > since && *name != change.name);
        if lately.count() < ROTATIONS_PER_PLACE_AND_HOUR {
            return Ok(());
        }
        Err(format!(
            "{}: {} templates took each other's place within an hour, the most that may: the next one waits until the hour is \
             over; stop what changes the class or the templates again and again",
            change.place, ROTATIONS_PER_PLACE_AND_HOUR
        ))
    }
}
