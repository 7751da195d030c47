//! Owns: whether another controller keeps topologies in this cluster: two that do replace each other's machines without end.
//! Never: takes what it cannot see for absent where a sign of life is seen.

use serde_json::Value;
use shared::model::UnixMillis;

use super::seen::entries_of_upstream;
use crate::desired::{compare::UPSTREAM_MANAGER, objects::text};

/// The Lease of Cluster API's own manager.
pub const UPSTREAM_LEASE: &str = "controller-leader-election-capi";
/// Its feature gate.
const GATE: &str = "ClusterTopology";
/// The gate of all that are as young as it.
const GATES_ALPHA: &str = "AllAlpha";
/// A Lease that was not renewed for so long, beyond its own time, belongs to nobody.
const LEASE_GRACE_MILLIS: u64 = 15_000;
/// Fields that Cluster API's own controller wrote within this time say that it runs.
const RECENT_MILLIS: u64 = 10 * 60 * 1_000;

/// The signs to read from a server.
#[derive(Debug, Clone, Default)]
pub struct Signs {
    /// Leases with the name of Cluster API's own, of all namespaces.
    pub leases: Vec<UpstreamLease>,
    /// Deployments of Cluster API and its providers; none if they may not be read.
    pub deployments: Option<Vec<Provider>>,
}

/// A Lease of Cluster API's manager.
#[derive(Debug, Clone, Default)]
pub struct UpstreamLease {
    /// Its namespace.
    pub namespace: String,
    /// True if the Lease names a holder.
    pub held: bool,
    /// Time at which it was renewed last, milliseconds since 1970.
    pub renewed: u64,
    /// For how long, milliseconds.
    pub lasts: u64,
}

/// A Deployment of Cluster API or of a provider.
#[derive(Debug, Clone, Default)]
pub struct Provider {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The command lines of its containers, word by word.
    pub words: Vec<String>,
}

/// The sign of another controller, if there is one.
pub fn rival(signs: &Signs, objects: &[Value], now: UnixMillis) -> Option<String> {
    let held =
        |lease: &&UpstreamLease| lease.held && lease.renewed + lease.lasts + LEASE_GRACE_MILLIS > now.0;
    let lease = signs.leases.iter().find(held);
    lease
        .and_then(|lease| behind(lease, signs.deployments.as_deref()))
        .or_else(|| objects.iter().find_map(|object| written(object, now)))
}

/// The sign of another controller if the manager that holds a Lease has its gate on, as far as can be seen.
fn behind(lease: &UpstreamLease, deployments: Option<&[Provider]>) -> Option<String> {
    let namespace = &lease.namespace;
    let held = format!("Lease {namespace}/{UPSTREAM_LEASE} is held");
    let Some(deployments) = deployments else {
        return Some(format!(
            "{held}, and Deployments there may not be read, which would say whether its ClusterTopology gate is off"
        ));
    };
    let mut there = deployments
        .iter()
        .filter(|one| one.namespace == *namespace)
        .peekable();
    if there.peek().is_none() {
        return Some(format!(
            "{held}, and no Deployment there says that its ClusterTopology gate is off"
        ));
    }
    let on = there.find(|one| is_on(&one.words))?;
    Some(format!(
        "{held}, and Deployment {namespace}/{} has {GATE}=true",
        on.name
    ))
}

/// Returns true if a command line switches the gate on, as Kubernetes reads it: the last word counts, and that of the
/// gate itself before that of all. An invalid value, such as a variable that was not replaced, may switch it on.
fn is_on(words: &[String]) -> bool {
    let parts = words
        .iter()
        .flat_map(|word| word.split(|one: char| one == ',' || one.is_whitespace()));
    let settings: Vec<(&str, &str)> = parts
        .filter_map(|part| {
            let part = part.trim_start_matches('-');
            let part = part.strip_prefix("feature-gates=").unwrap_or(part);
            part.trim_matches(['"', '\'']).split_once('=')
        })
        .collect();
    let said = |gate: &str| {
        let last = settings.iter().rev().find(|(name, _)| *name == gate)?;
        Some(!["0", "f", "F", "false", "False", "FALSE"].contains(&last.1))
    };
    said(GATE).or_else(|| said(GATES_ALPHA)).unwrap_or(false)
}

/// The sign of another controller if it wrote to an object lately.
fn written(object: &Value, now: UnixMillis) -> Option<String> {
    let mut recent = entries_of_upstream(object).filter(|entry| {
        let time = text(entry, "/time").and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let millis = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        millis.is_some_and(|millis| millis + RECENT_MILLIS > now.0)
    });
    recent.next().map(|entry| {
        let of = |value: &Value, place: &str| text(value, place).unwrap_or_default().to_owned();
        format!(
            "{UPSTREAM_MANAGER} wrote {} {}/{} at {}",
            of(object, "/kind"),
            of(object, "/metadata/namespace"),
            of(object, "/metadata/name"),
            of(entry, "/time")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 2026-11-27T05:00:00Z.
    const NOW: UnixMillis = UnixMillis(1_795_755_600_000);

    fn lease(seconds_ago: u64) -> UpstreamLease {
        UpstreamLease {
            namespace: "capi-system".to_owned(),
            held: true,
            renewed: NOW.0 - seconds_ago * 1_000,
            lasts: 60_000,
        }
    }

    fn deployment(words: &[&str]) -> Provider {
        Provider {
            namespace: "capi-system".to_owned(),
            name: "capi-controller-manager".to_owned(),
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    fn told(lease: UpstreamLease, deployments: Option<Vec<Provider>>) -> Option<String> {
        let signs = Signs {
            leases: vec![lease],
            deployments,
        };
        rival(&signs, &[], NOW)
    }

    #[test]
    fn a_manager_that_lives_is_one_unless_its_gate_is_off() {
        let alive = || lease(30);
        let on = vec![deployment(&[
            "--feature-gates=MachinePool=true,ClusterTopology=true",
        ])];
        let off = vec![deployment(&["--feature-gates=ClusterTopology=false"])];
        assert!(
            told(alive(), Some(on.clone()))
                .unwrap()
                .contains("ClusterTopology=true")
        );
        assert_eq!(told(alive(), Some(off)), None);
        assert_eq!(
            told(alive(), Some(vec![deployment(&[])])),
            None,
            "it is off unless it is said"
        );
        assert!(
            told(alive(), None).is_some(),
            "what may not be read is no sign of absence"
        );
        assert!(told(alive(), Some(Vec::new())).is_some());
        assert_eq!(told(lease(120), Some(on)), None, "it is dead");
    }

    #[test]
    fn gates_are_read_as_kubernetes_reads_them() {
        let is = |words: &[&str]| is_on(&deployment(words).words);
        for on in [
            &["--feature-gates=ClusterTopology=True"][..],
            &["--feature-gates=ClusterTopology=1"],
            &["--feature-gates=AllAlpha=true"],
            &["-feature-gates", "MachinePool=true,ClusterTopology=t"],
            &[
                "--feature-gates=ClusterTopology=false",
                "--feature-gates=ClusterTopology=true",
            ],
            &["--feature-gates=ClusterTopology=${CLUSTER_TOPOLOGY:=false}"],
            &[
                "/bin/sh",
                "-c",
                "exec /manager --feature-gates=ClusterTopology=true --v=2",
            ],
        ] {
            assert!(is(on), "{on:?}");
        }
        for off in [
            &[][..],
            &["--feature-gates=MachinePool=true"],
            &["--feature-gates=AllAlpha=true,ClusterTopology=false"],
            &["--feature-gates=AllAlpha=0"],
            &["--feature-gates=NotClusterTopology=true"],
            &["--feature-gates=ClusterTopology=F"],
        ] {
            assert!(!is(off), "{off:?}");
        }
    }

    #[test]
    fn fields_that_were_written_lately_are_a_sign_too() {
        let object = |manager: &str, time: &str| {
            json!({
                "kind": "Plane",
                "metadata": {"name": "c-x", "namespace": "ns", "managedFields": [{"manager": manager, "time": time}]},
            })
        };
        let seen = |object: Value| rival(&Signs::default(), &[object], NOW);
        assert_eq!(
            seen(object("capi-topology", "2026-11-27T04:55:00Z")).as_deref(),
            Some("capi-topology wrote Plane ns/c-x at 2026-11-27T04:55:00Z")
        );
        assert_eq!(seen(object("capi-topology", "2026-11-27T04:40:00Z")), None);
        assert_eq!(seen(object("tributary-topology", "2026-11-27T04:55:00Z")), None);
    }
}
