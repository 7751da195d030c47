//! Owns: the plan of machine pools: their objects are no templates, and are changed where they are.

use super::{
    super::{
        change::{Action, Change},
        changes::{self, Place},
        named::NamedWorker,
        parts::{object, take},
        upgrade::Part,
        workers::machine_pool,
    },
    Planner,
};
use crate::{
    model::{Metadata, WorkerClass, WorkerTopology},
    patch::owned::{self, POOL_NAME},
};

impl Planner<'_, '_> {
    /// Plans the objects that a machine pool refers to, and itself.
    pub(super) fn pool(
        &self,
        class: &WorkerClass,
        said: &WorkerTopology,
        named: &NamedWorker,
        part: &Part,
        changes: &mut Vec<Change>,
    ) {
        let at = format!("{}/{}", said.kind.place(), said.name);
        let current = self.current.worker(said.kind, &said.name);
        let mut labels = owned::labels(&self.cluster.name);
        labels.insert(POOL_NAME.to_owned(), said.name.clone());
        let mut made = Vec::new();
        for (which, name, there) in [
            (
                "bootstrap",
                &named.bootstrap,
                current.and_then(|one| one.bootstrap),
            ),
            (
                "infrastructure",
                &named.machines,
                current.and_then(|one| one.machines),
            ),
        ] {
            let place = format!("{at}/{which}");
            let Some((target, reference, patched)) = self.template(&place) else {
                continue;
            };
            let about = Metadata {
                labels: labels.clone(),
                ..Metadata::default()
            };
            let mut wanted = object(target, reference, self.cluster, name, about);
            take(&mut wanted, "/spec", patched);
            made.push(changes::object(Place::of(&place, self.current), there, wanted));
        }
        let wanted = machine_pool(class, self.cluster, said, named, &part.version);
        let there = current.map(|one| one.object);
        let pool = changes::object(Place::of(&at, self.current), there, wanted).with_machines();
        let replicas = pool
            .replicas()
            .or_else(|| there?.pointer("/spec/replicas")?.as_u64());
        changes.extend(counted(made, pool, replicas.unwrap_or(1)));
    }
}

/// Counts the machines of a pool once, at most: with the pool, or else with the object that replaces them.
fn counted(mut made: Vec<Change>, mut pool: Change, replicas: u64) -> Vec<Change> {
    let replaces = |change: &&mut Change| {
        let mut fields = change.fields.iter();
        change.action == Action::Update && fields.any(|one| one.field.starts_with("spec"))
    };
    if pool.machines > 0 {
        pool.machines = replicas;
    } else if let Some(change) = made.iter_mut().rev().find(replaces) {
        change.machines = replicas;
    }
    made.push(pool);
    made
}

#[cfg(test)]
mod tests;
