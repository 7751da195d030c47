//! Owns: what a Cluster's conditions say of a change: carried out, on its way, or failing. Both generations of conditions are
//! read, in both spellings of the object.
//! Never: a clock.

use serde_json::Value;

use super::edit::is_paused;

/// The state of a Cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Health {
    /// Its topology is reconciled, and no machine is being replaced.
    Healthy,
    /// It is on its way; why it is not further.
    OnItsWay(String),
    /// It does not go on by itself.
    Fails(String),
}

/// The reasons of a topology that cannot be reconciled: of newer conditions, and of v1beta1 ones.
const FAILED: [&str; 2] = ["ReconcileFailed", "TopologyReconcileFailed"];

/// Reads the state of a Cluster from its conditions.
pub(super) fn health(cluster: &Value) -> Health {
    if cluster.pointer("/metadata/deletionTimestamp").is_some() {
        return Health::Fails("it is being deleted".to_owned());
    }
    if is_paused(cluster) {
        return Health::Fails("it is paused: nobody carries out what it says".to_owned());
    }
    let conditions = Conditions::of(cluster);
    let reconciled = match conditions.get("TopologyReconciled") {
        None => return Health::OnItsWay("it has no condition TopologyReconciled yet".to_owned()),
        Some(condition) => condition,
    };
    if reconciled.is_old {
        return Health::OnItsWay("its topology was not looked at yet".to_owned());
    }
    if reconciled.status != "True" {
        let why = reconciled.shown("its topology is not reconciled");
        return if FAILED.contains(&reconciled.reason) {
            Health::Fails(why)
        } else {
            Health::OnItsWay(why)
        };
    }
    match conditions.get("RollingOut") {
        Some(rolling) if rolling.is_old => {
            return Health::OnItsWay("its machines were not looked at yet".to_owned());
        }
        Some(rolling) if rolling.status != "False" => {
            return Health::OnItsWay(rolling.shown("machines are being replaced"));
        }
        _ => {}
    }
    // Cluster API up to v1.8 has neither of the first two.
    let available = conditions.get("Available").or_else(|| conditions.get("Ready"));
    match available {
        Some(available) if available.status != "True" => {
            Health::OnItsWay(available.shown("it is not available"))
        }
        Some(_) => Health::Healthy,
        None => Health::OnItsWay("it has neither a condition Available nor Ready".to_owned()),
    }
}

struct Condition<'a> {
    status: &'a str,
    reason: &'a str,
    message: &'a str,
    /// True if it is about a former `spec`.
    is_old: bool,
}

impl Condition<'_> {
    /// The reason and the first line of the message.
    fn shown(&self, what: &str) -> String {
        let line = self.message.lines().next().unwrap_or_default();
        let after = if line.is_empty() { "" } else { ": " };
        format!("{what} ({}){after}{line}", self.reason)
    }
}

struct Conditions<'a> {
    generation: i64,
    /// Newer ones first.
    lists: [Option<&'a Value>; 2],
}

impl<'a> Conditions<'a> {
    fn of(cluster: &'a Value) -> Self {
        let at = |path: &str| cluster.pointer(path);
        let lists = if cluster["apiVersion"] == "cluster.x-k8s.io/v1beta1" {
            [at("/status/v1beta2/conditions"), at("/status/conditions")]
        } else {
            [
                at("/status/conditions"),
                at("/status/deprecated/v1beta1/conditions"),
            ]
        };
        let generation = at("/metadata/generation").and_then(Value::as_i64);
        Self {
            generation: generation.unwrap_or(0),
            lists,
        }
    }

    fn get(&self, name: &str) -> Option<Condition<'a>> {
        let mut lists = self.lists.iter().flatten().filter_map(|list| list.as_array());
        let found = lists.find_map(|list| list.iter().find(|one| one["type"] == name))?;
        let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
        // Conditions of v1beta1 do not say what they are about.
        let seen = found.get("observedGeneration").and_then(Value::as_i64);
        Some(Condition {
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            is_old: seen.is_some_and(|seen| seen < self.generation),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn condition(name: &str, status: &str, reason: &str, generation: i64) -> Value {
        json!({"type": name, "status": status, "reason": reason, "message": "m\nn", "observedGeneration": generation})
    }

    fn newer(conditions: &[Value]) -> Health {
        health(&json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "metadata": {"generation": 2},
            "status": {"conditions": conditions},
        }))
    }

    fn on_its_way(why: &str) -> Health {
        Health::OnItsWay(why.to_owned())
    }

    #[test]
    fn newer_conditions_must_be_of_the_newest_spec() {
        let reconciled = condition("TopologyReconciled", "True", "R", 2);
        let still = condition("RollingOut", "False", "NotRollingOut", 2);
        let available = condition("Available", "True", "A", 2);
        let all = [reconciled.clone(), still.clone(), available.clone()];
        assert_eq!(newer(&all), Health::Healthy);
        assert_eq!(
            newer(&[]),
            on_its_way("it has no condition TopologyReconciled yet")
        );
        let old = condition("TopologyReconciled", "True", "R", 1);
        assert_eq!(
            newer(&[old, still.clone(), available.clone()]),
            on_its_way("its topology was not looked at yet")
        );
        let upgrading = condition("TopologyReconciled", "False", "ClusterUpgrading", 2);
        assert_eq!(
            newer(&[upgrading, still.clone(), available.clone()]),
            on_its_way("its topology is not reconciled (ClusterUpgrading): m")
        );
        let failed = condition("TopologyReconciled", "False", "ReconcileFailed", 2);
        assert_eq!(
            newer(&[failed, still.clone(), available.clone()]),
            Health::Fails("its topology is not reconciled (ReconcileFailed): m".to_owned())
        );
        let rolling = condition("RollingOut", "True", "RollingOut", 2);
        assert_eq!(
            newer(&[reconciled.clone(), rolling, available.clone()]),
            on_its_way("machines are being replaced (RollingOut): m")
        );
        let stale = condition("RollingOut", "False", "NotRollingOut", 1);
        assert_eq!(
            newer(&[reconciled.clone(), stale, available]),
            on_its_way("its machines were not looked at yet")
        );
        let unavailable = condition("Available", "False", "NotAvailable", 2);
        assert_eq!(
            newer(&[reconciled, still, unavailable]),
            on_its_way("it is not available (NotAvailable): m")
        );
    }

    #[test]
    fn conditions_of_v1beta1_do_too() {
        let of = |reconciled: Value, ready: &str| {
            let conditions = json!([{"type": "Ready", "status": ready, "reason": "x"}, reconciled]);
            let older = health(&json!({
                "apiVersion": "cluster.x-k8s.io/v1beta1",
                "metadata": {"generation": 2},
                "status": {"conditions": conditions},
            }));
            let converted = health(&json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "metadata": {"generation": 2},
                "status": {"deprecated": {"v1beta1": {"conditions": conditions}}},
            }));
            assert_eq!(older, converted);
            older
        };
        let done = json!({"type": "TopologyReconciled", "status": "True"});
        assert_eq!(of(done.clone(), "True"), Health::Healthy);
        assert_eq!(of(done, "False"), on_its_way("it is not available (x)"));
        let failed = json!({"type": "TopologyReconciled", "status": "False", "reason": "TopologyReconcileFailed", "message": "no"});
        let why = "its topology is not reconciled (TopologyReconcileFailed): no";
        assert_eq!(of(failed, "True"), Health::Fails(why.to_owned()));
    }

    #[test]
    fn newer_conditions_of_an_older_object_count() {
        let of = |generation: i64| {
            health(&json!({
                "apiVersion": "cluster.x-k8s.io/v1beta1",
                "metadata": {"generation": 2},
                "status": {
                    "conditions": [{"type": "TopologyReconciled", "status": "True"}],
                    "v1beta2": {"conditions": [
                        condition("TopologyReconciled", "True", "R", generation),
                        condition("Available", "True", "A", 2),
                    ]},
                },
            }))
        };
        assert_eq!(of(2), Health::Healthy);
        assert_eq!(of(1), on_its_way("its topology was not looked at yet"));
    }

    #[test]
    fn what_nobody_carries_out_fails() {
        let deleted = json!({"metadata": {"deletionTimestamp": "x"}});
        assert!(matches!(health(&deleted), Health::Fails(_)));
        assert!(matches!(
            health(&json!({"spec": {"paused": true}})),
            Health::Fails(_)
        ));
    }
}
