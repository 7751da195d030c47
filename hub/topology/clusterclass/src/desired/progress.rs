//! Owns: how far the upgrade of a cluster is, as its condition says it.

use super::upgrade::{State, Step};
use crate::model::WorkerKind;

/// The progress of an upgrade. Of machine pools it has `goes_on` alone: the controller that writes the condition keeps no pools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The version that the control plane is on its way to, if it is.
    pub plane: Option<String>,
    /// The versions that it gets later.
    pub plane_later: Vec<String>,
    /// Machine deployments that are on their way, each with its version.
    pub upgrading: Vec<(String, String)>,
    /// The parts that get a version later.
    pub pending: Vec<String>,
    /// The parts that are left alone because of an annotation.
    pub deferred: Vec<String>,
    /// The parts that are created later.
    pub made_later: Vec<String>,
    /// True if anything is under way, so that more follows by itself.
    pub goes_on: bool,
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
    let mut held = false;
    for (worker, part) in state.workers.iter().zip(&step.workers) {
        if worker.kind == WorkerKind::MachinePool {
            continue;
        }
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
            ],
        };
        let starts = told(&state);
        assert_eq!(starts.plane.as_deref(), Some("v1.31.0"));
        assert_eq!(starts.plane_later, ["v1.32.0"]);
        assert_eq!(
            (starts.pending, starts.deferred, starts.made_later),
            (vec!["a".to_owned()], vec!["b".to_owned()], vec!["new".to_owned()])
        );
        assert!(!starts.goes_on, "nothing was written yet");
        if let Some(plane) = &mut state.plane {
            plane.version = "v1.32.0".to_owned();
        }
        let workers = told(&state);
        assert_eq!(
            (workers.plane, workers.upgrading),
            (None, vec![("a".to_owned(), "v1.32.0".to_owned())])
        );
        state.plane = None;
        assert_eq!(told(&state), Progress::default());
    }
}
