//! Owns: the condition TopologyReconciled of a Cluster: what upstream's own controller says in the same case, word for word
//! where others read it.
//! Never: a clock; who writes it says since when.

use std::fmt::Write;

use serde_json::{Value, json};

use super::seen::Rest;
use crate::desired::change::{Plan, Progress, WorkersProgress};

/// The type of the condition.
pub const TYPE: &str = "TopologyReconciled";
/// Most names in one line; the others are counted.
const NAMES_MAX: usize = 3;
/// Longest message, characters: a condition's is bounded by the API.
const MESSAGE_MAX: usize = 4_000;

/// The condition on a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// True if everything is as it should be.
    pub status: bool,
    /// Why, in a word of upstream's.
    pub reason: &'static str,
    /// Why, for people; empty if all is well.
    pub message: String,
}

/// Why a Cluster has no plan, or what came of it.
#[derive(Debug, Clone, Copy)]
pub enum Came<'a> {
    /// Its class, or one of its templates, is wrong.
    ClassWrong(&'a [String]),
    /// It is wrong itself.
    Wrong(&'a [String]),
    /// The API server did not take what was to be written.
    Refused(&'a str),
    /// Its rollout waits, for this reason.
    Held(&'a str),
    /// It was carried out as far as it goes now.
    Planned(&'a Plan),
}

/// The condition to write; none for a Cluster that somebody else keeps.
pub fn condition(rest: Option<Rest>, came: Came<'_>, kind_of_plane: &str) -> Option<Condition> {
    let no = |reason: &'static str, message: String| Condition {
        status: false,
        reason,
        message: message.chars().take(MESSAGE_MAX).collect(),
    };
    match (rest, came) {
        (Some(Rest::Upstream | Rest::Observed), _) => None,
        (Some(Rest::Paused), _) => Some(no(
            "Paused",
            "Cluster spec.paused is set, or its annotation".to_owned(),
        )),
        (_, Came::Wrong(lines)) => Some(no("ReconcileFailed", lines.join("\n"))),
        (_, Came::Refused(why)) => Some(no("ReconcileFailed", why.to_owned())),
        (Some(Rest::Deleting), _) => Some(no("Deleting", "Cluster is being deleted".to_owned())),
        (_, Came::ClassWrong(lines)) => Some(no("ClusterClassNotReconciled", lines.join("\n"))),
        (_, Came::Held(why)) => Some(no("RolloutHeld", why.to_owned())),
        (_, Came::Planned(plan)) => Some(match upgrade(&plan.version, &plan.progress, kind_of_plane) {
            Some((reason, message)) => no(reason, message),
            None => Condition {
                status: true,
                reason: "ReconcileSucceeded",
                message: String::new(),
            },
        }),
    }
}

/// The progress of an upgrade, if one is under way.
fn upgrade(version: &str, progress: &Progress, kind_of_plane: &str) -> Option<(&'static str, String)> {
    let mut said = format!("Cluster is upgrading to {version}");
    let later = progress.plane_later.join(", ");
    match &progress.plane {
        Some(now) if later.is_empty() => {
            line(&mut said, &format!("{kind_of_plane} upgrading to version {now}"))
        }
        Some(now) => line(
            &mut said,
            &format!("{kind_of_plane} upgrading to version {now} ({later} pending)"),
        ),
        None if !later.is_empty() => line(
            &mut said,
            &format!("{kind_of_plane} pending upgrade to version {later}"),
        ),
        None => {}
    }
    let kinds = [
        ("MachineDeployment", "defer-upgrade", &progress.deployments),
        (
            "MachinePool",
            "topology.cluster.x-k8s.io/defer-upgrade",
            &progress.pools,
        ),
    ];
    for (kind, defer, of_kind) in kinds {
        workers(&mut said, (kind, defer), version, of_kind);
    }
    let moves = progress.plane.is_some()
        || !progress.plane_later.is_empty()
        || progress.deployments.moves()
        || progress.pools.moves();
    if moves {
        Some(("ClusterUpgrading", said))
    } else if !progress.deployments.deferred.is_empty() {
        Some(("MachineDeploymentsUpgradeDeferred", said))
    } else if !progress.pools.deferred.is_empty() {
        Some(("MachinePoolsUpgradeDeferred", said))
    } else {
        None
    }
}

/// The progress of machine deployments or pools, by the words that upstream has for each.
fn workers(said: &mut String, (kind, defer): (&str, &str), version: &str, progress: &WorkersProgress) {
    let mut versions: Vec<&str> = progress
        .upgrading
        .iter()
        .map(|(_, version)| version.as_str())
        .collect();
    versions.sort_unstable();
    versions.dedup();
    for to in versions {
        let going = progress.upgrading.iter().filter(|(_, version)| version == to);
        let names = named(kind, going.map(|(name, _)| name.as_str()).collect());
        line(said, &format!("{names} upgrading to version {to}"));
    }
    let mut list = |names: &[String], what: &str| {
        if !names.is_empty() {
            let names = named(kind, names.iter().map(String::as_str).collect());
            line(said, &format!("{names} {what}"));
        }
    };
    list(
        &progress.pending,
        &format!("pending upgrade to version {version}"),
    );
    list(
        &progress.deferred,
        &format!("upgrade to version {version} deferred using {defer} or hold-upgrade-sequence annotations"),
    );
    list(
        &progress.made_later,
        "creation deferred while control plane upgrade is in progress",
    );
}

fn line(said: &mut String, line: &str) {
    let _ = write!(said, "\n  * {line}");
}

/// Workers of a kind by name, sorted, the first ones.
fn named(kind: &str, mut names: Vec<&str>) -> String {
    names.sort_unstable();
    match names.len() {
        1 => format!("{kind} {}", names[0]),
        count if count <= NAMES_MAX => format!("{kind}s {}", names.join(", ")),
        count => format!(
            "{kind}s {}, ... ({} more)",
            names[..NAMES_MAX].join(", "),
            count - NAMES_MAX
        ),
    }
}

/// The condition as it is written at this time, if the Cluster does not say it already.
pub fn news(document: &Value, said: &Condition, now: &str) -> Option<Value> {
    let status = if said.status { "True" } else { "False" };
    let generation = document
        .pointer("/metadata/generation")
        .cloned()
        .unwrap_or_else(|| json!(0));
    let all = document.pointer("/status/conditions").and_then(Value::as_array);
    let mut all = all.into_iter().flatten();
    let there = all.find(|one| one["type"] == TYPE);
    let is =
        |name: &str, value: &str| there.is_some_and(|one| one[name].as_str().unwrap_or_default() == value);
    let seen = there.is_some_and(|one| one["observedGeneration"] == generation);
    if seen && is("status", status) && is("reason", said.reason) && is("message", &said.message) {
        return None;
    }
    let since = there
        .filter(|_| is("status", status))
        .and_then(|one| one["lastTransitionTime"].as_str());
    Some(json!({
        "type": TYPE,
        "status": status,
        "reason": said.reason,
        "message": said.message,
        "observedGeneration": generation,
        "lastTransitionTime": since.unwrap_or(now),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn planned(progress: Progress) -> Condition {
        let plan = Plan {
            version: "v1.32.0".to_owned(),
            progress,
            ..Plan::default()
        };
        condition(None, Came::Planned(&plan), "Plane").unwrap()
    }

    #[test]
    fn an_upgrade_is_told_line_by_line() {
        let all = planned(Progress {
            plane: Some("v1.31.0".to_owned()),
            plane_later: names(&["v1.32.0"]),
            deployments: WorkersProgress {
                upgrading: vec![("b".to_owned(), "v1.30.0".to_owned())],
                pending: names(&["e", "d", "c", "b", "a"]),
                deferred: names(&["y", "x"]),
                made_later: names(&["n"]),
            },
            pools: WorkersProgress {
                pending: names(&["q", "p"]),
                ..WorkersProgress::default()
            },
            goes_on: true,
        });
        assert_eq!((all.status, all.reason), (false, "ClusterUpgrading"));
        assert_eq!(
            all.message,
            "Cluster is upgrading to v1.32.0\n  * Plane upgrading to version v1.31.0 (v1.32.0 pending)\n  \
             * MachineDeployment b upgrading to version v1.30.0\n  \
             * MachineDeployments a, b, c, ... (2 more) pending upgrade to version v1.32.0\n  \
             * MachineDeployments x, y upgrade to version v1.32.0 deferred using defer-upgrade or hold-upgrade-sequence \
             annotations\n  * MachineDeployment n creation deferred while control plane upgrade is in progress\n  \
             * MachinePools p, q pending upgrade to version v1.32.0"
        );
        let waits = planned(Progress {
            plane_later: names(&["v1.31.0", "v1.32.0"]),
            ..Progress::default()
        });
        assert!(
            waits
                .message
                .ends_with("\n  * Plane pending upgrade to version v1.31.0, v1.32.0")
        );
        let defers = || WorkersProgress {
            deferred: names(&["x"]),
            ..WorkersProgress::default()
        };
        let mut deferred = Progress {
            pools: defers(),
            ..Progress::default()
        };
        assert_eq!(planned(deferred.clone()).reason, "MachinePoolsUpgradeDeferred");
        deferred.deployments = defers();
        assert_eq!(planned(deferred).reason, "MachineDeploymentsUpgradeDeferred");
        let done = planned(Progress::default());
        assert_eq!(
            (done.status, done.reason, done.message.as_str()),
            (true, "ReconcileSucceeded", "")
        );
    }

    #[test]
    fn what_is_worse_is_said_first() {
        let wrong = names(&["f"]);
        let of = |rest, came| condition(rest, came, "Plane").map(|one| one.reason);
        let plan = Plan::default();
        let planned = Came::Planned(&plan);
        assert_eq!(of(Some(Rest::Paused), Came::Wrong(&wrong)), Some("Paused"));
        assert_eq!(
            of(Some(Rest::Deleting), Came::Wrong(&wrong)),
            Some("ReconcileFailed")
        );
        assert_eq!(of(Some(Rest::Deleting), planned), Some("Deleting"));
        assert_eq!(
            of(None, Came::ClassWrong(&wrong)),
            Some("ClusterClassNotReconciled")
        );
        assert_eq!(of(None, Came::Refused("no")), Some("ReconcileFailed"));
        assert_eq!(of(None, Came::Held("others")), Some("RolloutHeld"));
        for rest in [Rest::Upstream, Rest::Observed] {
            assert_eq!(of(Some(rest), planned), None, "it is somebody else's to say");
        }
    }

    #[test]
    fn it_is_written_when_it_is_news_and_keeps_since_when() {
        let said = planned(Progress::default());
        let first = news(&json!({"metadata": {"generation": 2}}), &said, "now").unwrap();
        assert_eq!(
            (&first["lastTransitionTime"], &first["observedGeneration"]),
            (&json!("now"), &json!(2))
        );
        let with = |generation: i64, condition: &Value| json!({"metadata": {"generation": generation}, "status": {"conditions": [{"type": "x"}, condition]}});
        assert_eq!(news(&with(2, &first), &said, "later"), None);
        let newer = news(&with(3, &first), &said, "later").unwrap();
        assert_eq!(newer["lastTransitionTime"], "now", "its status stayed");
        let fails = condition(None, Came::Refused("no"), "Plane").unwrap();
        assert_eq!(
            news(&with(2, &first), &fails, "later").unwrap()["lastTransitionTime"],
            "later"
        );
    }
}
