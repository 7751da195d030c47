//! Owns: how far the upgrade of a cluster is, as its condition says it.

use super::upgrade::{State, Step};
use crate::model::WorkerKind;

/// The progress of an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The version that the control plane is on its way to, if it is.
    pub plane: Option<String>,
    /// The versions that it gets later.
    pub plane_later: Vec<String>,
    /// Machine deployments.
    pub deployments: WorkersProgress,
    /// Machine pools.
    pub pools: WorkersProgress,
    /// True if anything is under way, so that more follows by itself.
    pub goes_on: bool,
}

/// The progress of machine deployments or machine pools, by their names in the topology.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkersProgress {
    /// Those that are on their way, each with its version.
    pub upgrading: Vec<(String, String)>,
    /// Those that get a version later.
    pub pending: Vec<String>,
    /// Those that are left alone because of an annotation.
    pub deferred: Vec<String>,
    /// Those that are created later.
    pub made_later: Vec<String>,
}

impl WorkersProgress {
    /// Returns true if something changes without a person.
    pub fn moves(&self) -> bool {
        !self.upgrading.is_empty() || !self.pending.is_empty() || !self.made_later.is_empty()
    }
}

/// The progress after a step.
pub(super) fn progress(state: &State, step: &Step) -> Progress {
    let mut progress = Progress::default();
    let Some(plane) = &state.plane else {
        return progress;
    };
    progress.goes_on = plane.provisioning || plane.upgrading || state.workers.iter().any(|one| one.upgrading);
    if plane.upgrading || step.plane.version != plane.version {
        progress.plane = Some(step.plane.version.clone());
    }
    let later = step
        .on_the_way
        .iter()
        .filter(|version| **version != step.plane.version);
    progress.plane_later = later.cloned().collect();
    for kind in WorkerKind::ALL {
        let of_kind = workers(state, step, kind);
        match kind {
            WorkerKind::MachineDeployment => progress.deployments = of_kind,
            WorkerKind::MachinePool => progress.pools = of_kind,
        }
    }
    progress
}

fn workers(state: &State, step: &Step, kind: WorkerKind) -> WorkersProgress {
    let mut progress = WorkersProgress::default();
    let mut held = false;
    let all = state.workers.iter().zip(&step.workers);
    for (worker, part) in all.filter(|(worker, _)| worker.kind == kind) {
        held |= worker.holds;
        let name = || worker.name.clone();
        match part {
            Err(_) => progress.made_later.push(name()),
            Ok(part)
                if worker.upgrading || worker.version.as_ref().is_some_and(|one| *one != part.version) =>
            {
                progress.upgrading.push((name(), part.version.clone()));
            }
            Ok(part) if part.version == state.wanted => {}
            Ok(_) if worker.defers || held => progress.deferred.push(name()),
            Ok(_) => progress.pending.push(name()),
        }
    }
    progress
}

#[cfg(test)]
mod tests {
    use super::{
        super::upgrade::{Plane, Worker, next},
        *,
    };

    fn worker(name: &str, version: &str) -> Worker {
        Worker {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            ..Worker::default()
        }
    }

    fn told(state: &State) -> Progress {
        progress(state, &next(state).unwrap())
    }

    #[test]
    fn what_is_on_its_way_and_what_waits_is_told_apart() {
        let mut state = State {
            wanted: "v1.32.0".to_owned(),
            listed: vec!["v1.31.0".to_owned(), "v1.32.0".to_owned()],
            concurrency: 1,
            plane: Some(Plane {
                version: "v1.30.0".to_owned(),
                ..Plane::default()
            }),
            workers: vec![
                worker("a", "v1.30.0"),
                Worker {
                    defers: true,
                    ..worker("b", "v1.30.0")
                },
                Worker {
                    version: None,
                    ..worker("new", "")
                },
                Worker {
                    kind: WorkerKind::MachinePool,
                    ..worker("pool", "v1.30.0")
                },
            ],
        };
        let starts = told(&state);
        assert_eq!(starts.plane.as_deref(), Some("v1.31.0"));
        assert_eq!(starts.plane_later, ["v1.32.0"]);
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let told_of = |of: &WorkersProgress| (of.pending.clone(), of.deferred.clone(), of.made_later.clone());
        assert_eq!(
            told_of(&starts.deployments),
            (names(&["a"]), names(&["b"]), names(&["new"]))
        );
        assert_eq!(told_of(&starts.pools), (names(&["pool"]), names(&[]), names(&[])));
        assert!(!starts.goes_on, "nothing was written yet");
        if let Some(plane) = &mut state.plane {
            plane.version = "v1.32.0".to_owned();
        }
        let workers = told(&state);
        assert_eq!(
            (workers.plane, workers.deployments.upgrading),
            (None, vec![("a".to_owned(), "v1.32.0".to_owned())])
        );
        state.plane = None;
        assert_eq!(told(&state), Progress::default());
    }
}
