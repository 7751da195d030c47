//! Owns: which version each part of a cluster has next: the control plane first, one minor version at a time, then its
//! workers, so many at once as the cluster says.
//! Never: lets workers be more than three minor versions behind, or ahead of their control plane.

use std::{cmp::Ordering, collections::BTreeMap};

use crate::model::{Version, WorkerKind};

/// Number of minor versions that workers may be behind.
const MAX_SKEW: u64 = 3;

/// The versions of a cluster, present and wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The version that is wanted.
    pub(super) wanted: String,
    /// The versions that the class lists, oldest first.
    pub(super) listed: Vec<String>,
    /// Most machine deployments, and most machine pools, that may be on their way at once.
    pub(super) concurrency: usize,
    /// The control plane; none if it has yet to be made.
    pub(super) plane: Option<Plane>,
    /// Machine deployments and pools, in the order of the topology.
    pub(super) workers: Vec<Worker>,
}

/// A control plane that is there.
#[derive(Debug, Clone, Default)]
pub(super) struct Plane {
    /// The version that it is to have.
    pub(super) version: String,
    /// True if it has yet to state its first version.
    pub(super) provisioning: bool,
    /// True if it is changing to its version.
    pub(super) upgrading: bool,
}

/// A machine deployment or a machine pool.
#[derive(Debug, Clone, Default)]
pub(super) struct Worker {
    /// Machine deployment or machine pool.
    pub(super) kind: WorkerKind,
    /// Its name in the topology.
    pub(super) name: String,
    /// The version that it is to have; none if it has yet to be made.
    pub(super) version: Option<String>,
    /// True if one of its machines has another version.
    pub(super) upgrading: bool,
    /// True if the upgrade stops at it.
    pub(super) holds: bool,
    /// True if the upgrade passes over it.
    pub(super) defers: bool,
}

/// The version of a part, and why it is not further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The version.
    pub(super) version: String,
    /// Why the part is left alone; empty if it is not.
    pub(super) waits: String,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The control plane's.
    pub(super) plane: Part,
    /// Those of workers, in their order; none for one that is not made yet.
    pub(super) workers: Vec<Result<Part, String>>,
    /// Steps under way, a line each; empty if everything has the wanted version.
    pub(super) lines: Vec<String>,
    /// True if versions are still to be given.
    pub(super) goes_on: bool,
    /// The versions that the control plane had still to get before this step.
    pub(super) on_the_way: Vec<String>,
}

/// The next step of a cluster.
///
/// # Errors
///
/// One line: why there is no way to the wanted version.
pub(super) fn next(state: &State) -> Result<Step, String> {
    let wanted = &state.wanted;
    let Some(plane) = &state.plane else {
        let all = |_: &Worker| Ok(at(wanted, ""));
        return Ok(Step {
            plane: at(wanted, ""),
            workers: state.workers.iter().map(all).collect(),
            lines: Vec::new(),
            goes_on: false,
            on_the_way: Vec::new(),
        });
    };
    let plans = plans(state, plane)?;
    let mut lines = Vec::new();
    let next = control_plane(plane, &plans, state);
    let waits_for_workers = next.as_ref().is_err_and(|why| why == FOR_WORKERS);
    let stable = !plane.provisioning && !plane.upgrading && next.is_err() && (plans.plane.is_empty());
    let of_plane = match next {
        Ok(version) => {
            lines.push(format!(
                "the control plane goes from {} to {version}",
                plane.version
            ));
            at(&version, "")
        }
        Err(why) => {
            if plane.upgrading {
                lines.push(format!("the control plane is on its way to {}", plane.version));
            }
            match plans.plane.first() {
                Some(next) if !why.is_empty() => {
                    lines.push(format!("the control plane goes to {next} later: {why}"));
                    at(&plane.version, &why)
                }
                _ => at(&plane.version, ""),
            }
        }
    };
    let may_go = !plane.provisioning && !plane.upgrading && (stable || waits_for_workers);
    let workers = workers(state, &plans, may_go, stable, &mut lines);
    Ok(Step {
        plane: of_plane,
        workers,
        lines,
        goes_on: !plans.plane.is_empty() || !plans.workers.is_empty(),
        on_the_way: plans.plane,
    })
}

const FOR_WORKERS: &str = "workers are upgraded first";

fn at(version: &str, waits: &str) -> Part {
    Part {
        version: version.to_owned(),
        waits: waits.to_owned(),
    }
}

/// The versions on the way.
struct Plans {
    plane: Vec<String>,
    workers: Vec<String>,
}

/// The version that the control plane gets now, or why it keeps its own; no reason if there is nothing to do.
fn control_plane(plane: &Plane, plans: &Plans, state: &State) -> Result<String, String> {
    let next = plans.plane.first().ok_or("");
    if plane.provisioning {
        return Err("it is being made".to_owned());
    }
    if plane.upgrading {
        return Err(format!("it is on its way to {}", plane.version));
    }
    if plans.workers.first() == Some(&plane.version) {
        return Err(FOR_WORKERS.to_owned());
    }
    let upgrading = state.workers.iter().find(|worker| worker.upgrading);
    if let (Some(worker), Ok(_)) = (upgrading, next) {
        return Err(format!(
            "{} {} is being upgraded",
            worker.kind.words(),
            worker.name
        ));
    }
    next.cloned().map_err(str::to_owned)
}

fn workers(
    state: &State,
    plans: &Plans,
    may_go: bool,
    stable: bool,
    lines: &mut Vec<String>,
) -> Vec<Result<Part, String>> {
    let mut going: BTreeMap<WorkerKind, usize> = BTreeMap::new();
    for worker in state.workers.iter().filter(|worker| worker.upgrading) {
        *going.entry(worker.kind).or_default() += 1;
    }
    let mut held: BTreeMap<WorkerKind, &str> = BTreeMap::new();
    let mut steps = Vec::new();
    for worker in &state.workers {
        let of = worker.kind.words();
        let going = going.entry(worker.kind).or_default();
        if worker.holds {
            held.entry(worker.kind).or_insert(&worker.name);
        }
        let Some(version) = &worker.version else {
            steps.push(if stable {
                Ok(at(&state.wanted, ""))
            } else {
                Err("it is made when the control plane has its version".to_owned())
            });
            continue;
        };
        let name = &worker.name;
        let next = plans.workers.first().filter(|next| *next != version);
        if *version == state.wanted || next.is_none() {
            if worker.upgrading {
                lines.push(format!("{of} {name} is on its way to {version}"));
            }
            let later = *version != state.wanted;
            steps.push(Ok(at(
                version,
                if later { "it waits for the others" } else { "" },
            )));
            continue;
        }
        let next = next.map_or("", String::as_str);
        let why = if worker.defers {
            Some("it is deferred by its annotation".to_owned())
        } else if let Some(held) = held.get(&worker.kind) {
            Some(format!("the upgrade is held at {of} {held}"))
        } else if worker.upgrading {
            Some(format!("it is on its way to {version}"))
        } else if !may_go {
            Some("the control plane is upgraded first".to_owned())
        } else if *going >= state.concurrency {
            Some(format!("{going} at once are on their way"))
        } else {
            None
        };
        if let Some(why) = why {
            lines.push(format!("{of} {name} goes from {version} to {next} later: {why}"));
            steps.push(Ok(at(version, &why)));
        } else {
            *going += 1;
            lines.push(format!("{of} {name} goes from {version} to {next}"));
            steps.push(Ok(at(next, "")));
        }
    }
    steps
}

fn read(version: &str) -> Result<Version, String> {
    Version::read(version).ok_or_else(|| format!("{version} is no version"))
}

fn plans(state: &State, plane: &Plane) -> Result<Plans, String> {
    let of_plane = of_plane(&plane.version, &state.wanted, &state.listed)?;
    let mut oldest: Option<(&str, Version)> = None;
    for version in state
        .workers
        .iter()
        .filter_map(|worker| worker.version.as_deref())
    {
        let read = read(version)?;
        if oldest
            .as_ref()
            .is_none_or(|(_, oldest)| read.order(oldest).is_lt())
        {
            oldest = Some((version, read));
        }
    }
    let Some((oldest, mut last)) = oldest else {
        return Ok(Plans {
            plane: of_plane,
            workers: Vec::new(),
        });
    };
    if last.order(&read(&plane.version)?).is_gt() {
        return Err(format!(
            "workers have {oldest}, which is later than the control plane's {}",
            plane.version
        ));
    }
    let on_the_way: Vec<&String> = std::iter::once(&plane.version).chain(&of_plane).collect();
    let mut workers: Vec<String> = Vec::new();
    for (index, version) in on_the_way.iter().enumerate() {
        let this = read(version)?;
        if this.numbers[1] > last.numbers[1] + MAX_SKEW {
            return Err(format!(
                "workers have {oldest}, more than {MAX_SKEW} minor versions before {version}: upgrade them first"
            ));
        }
        let beyond = match on_the_way.get(index + 1) {
            Some(next) => read(next)?.numbers[1] > last.numbers[1] + MAX_SKEW,
            None => true,
        };
        if beyond && version.as_str() != oldest {
            workers.push((*version).clone());
            last = this;
        }
    }
    Ok(Plans {
        plane: of_plane,
        workers,
    })
}

/// The versions from the control plane's to the wanted one: the last one listed of each minor version between.
fn of_plane(current: &str, wanted: &str, listed: &[String]) -> Result<Vec<String>, String> {
    if current == wanted {
        return Ok(Vec::new());
    }
    let (from, to) = (read(current)?, read(wanted)?);
    if to.order(&from) == Ordering::Less {
        return Err(format!(
            "the control plane has {current}, and versions do not go back: {wanted} is earlier"
        ));
    }
    if from.numbers[0] != to.numbers[0] {
        return Err(format!(
            "{wanted} has another major version than the control plane's {current}"
        ));
    }
    let mut steps = Vec::new();
    for minor in from.numbers[1] + 1..to.numbers[1] {
        let mut last: Option<(&String, Version)> = None;
        for version in listed {
            let read = read(version)?;
            let later = last.as_ref().is_none_or(|(_, last)| read.order(last).is_gt());
            if read.numbers[0] == from.numbers[0] && read.numbers[1] == minor && later {
                last = Some((version, read));
            }
        }
        let (version, _) = last.ok_or_else(|| {
            let major = from.numbers[0];
            format!(
                "the control plane has {current}, and it goes one minor version at a time to {wanted}: ask for a \
                 {major}.{minor}, or list one in kubernetesVersions of the class"
            )
        })?;
        steps.push(version.clone());
    }
    steps.push(wanted.to_owned());
    Ok(steps)
}

#[cfg(test)]
mod tests;
