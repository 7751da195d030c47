//! Owns: what classes and clusters say of machines and leave to who makes them, both spellings as v1beta2 writes it.

use serde_json::{Map, Value};

use super::{
    finding::Report,
    older::{put, some},
    parts::Spelling,
    read::{Fields, seconds},
};

/// Fields that are handed on as v1beta2 writes them: `deletion`, `failureDomain`, `failureDomains`, `minReadySeconds`,
/// `readinessGates`, `remediation` (`maxInFlight` alone), `rollout`, `taints`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(pub Map<String, Value>);

impl Settings {
    /// A field's value.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// These over others: a field counts as a whole, and of `deletion` each of its own.
    pub fn over(&self, below: &Self) -> Self {
        let mut all = below.clone();
        for (name, value) in &self.0 {
            match (all.0.get_mut(name), value) {
                (Some(Value::Object(below)), Value::Object(above)) if name == "deletion" => {
                    below.extend(above.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
                _ => {
                    all.0.insert(name.clone(), value.clone());
                }
            }
        }
        all
    }
}

const SHARED: &[&str] = &[
    "failureDomain",
    "failureDomains",
    "minReadySeconds",
    "readinessGates",
    "taints",
];
const TIMEOUTS: [(&str, &str); 3] = [
    ("nodeDrainTimeout", "nodeDrainTimeoutSeconds"),
    ("nodeVolumeDetachTimeout", "nodeVolumeDetachTimeoutSeconds"),
    ("nodeDeletionTimeout", "nodeDeletionTimeoutSeconds"),
];

/// The settings of an object.
pub(super) fn settings(within: &Fields<'_>, spelling: Spelling, report: &mut Report) -> Settings {
    let mut all = Map::new();
    for name in SHARED {
        put(&mut all, name, within.get(name).cloned());
    }
    let remediation = match spelling {
        Spelling::V1Beta1 => {
            older(within, &mut all, report);
            within
                .get("strategy")
                .and_then(|one| one.pointer("/remediation/maxInFlight"))
        }
        Spelling::V1Beta2 => {
            for name in ["deletion", "rollout"] {
                put(&mut all, name, within.get(name).cloned());
            }
            within
                .get("healthCheck")
                .and_then(|one| one.pointer("/remediation/maxInFlight"))
        }
    };
    let remediation = remediation.map(|most| Map::from_iter([("maxInFlight".to_owned(), most.clone())]));
    put(&mut all, "remediation", remediation.map(Value::Object));
    Settings(all)
}

fn older(within: &Fields<'_>, all: &mut Map<String, Value>, report: &mut Report) {
    let mut deletion = Map::new();
    for (name, newer) in TIMEOUTS {
        let written = within.text(name, report);
        let read = seconds(&written);
        if read.is_none() && !written.is_empty() {
            report.say("type", within.at(name), "must be a duration such as 10m");
        }
        put(&mut deletion, newer, read.map(Value::from));
    }
    let strategy = |place: &str| within.get("strategy").and_then(|one| one.pointer(place)).cloned();
    put(&mut deletion, "order", strategy("/rollingUpdate/deletePolicy"));
    let mut rolling = Map::new();
    for name in ["maxSurge", "maxUnavailable"] {
        put(&mut rolling, name, strategy(&format!("/rollingUpdate/{name}")));
    }
    let mut newer = Map::new();
    put(&mut newer, "type", strategy("/type"));
    put(&mut newer, "rollingUpdate", some(rolling));
    let after = within.get("rollout").and_then(|rollout| rollout.get("after"));
    let mut rollout = Map::new();
    put(&mut rollout, "after", after.cloned());
    put(&mut rollout, "strategy", some(newer));
    put(all, "rollout", some(rollout));
    put(all, "deletion", some(deletion));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value, spelling: Spelling) -> Value {
        let mut report = Report::new("f", "o");
        let known: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let fields = Fields::open(Some(value), "", &known, &mut report);
        Value::Object(settings(&fields, spelling, &mut report).0)
    }

    #[test]
    fn both_spellings_become_one() {
        let older = json!({
            "nodeDrainTimeout": "1m30s",
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "deletePolicy": "Oldest"},
                "remediation": {"maxInFlight": "20%"},
            },
            "rollout": {"after": "2026-01-01T00:00:00Z"},
            "taints": [{"key": "a"}],
            "minReadySeconds": 5,
        });
        let newer = json!({
            "deletion": {"nodeDrainTimeoutSeconds": 90, "order": "Oldest"},
            "rollout": {
                "after": "2026-01-01T00:00:00Z",
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            },
            "taints": [{"key": "a"}],
            "healthCheck": {"remediation": {"maxInFlight": "20%"}},
            "minReadySeconds": 5,
        });
        let expected = json!({
            "deletion": {"nodeDrainTimeoutSeconds": 90, "order": "Oldest"},
            "rollout": {
                "after": "2026-01-01T00:00:00Z",
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            },
            "taints": [{"key": "a"}],
            "remediation": {"maxInFlight": "20%"},
            "minReadySeconds": 5,
        });
        assert_eq!(read(&older, Spelling::V1Beta1), expected);
        assert_eq!(read(&newer, Spelling::V1Beta2), expected);
        assert_eq!(read(&json!({"strategy": {}}), Spelling::V1Beta1), json!({}));
    }

    #[test]
    fn a_clusters_settings_go_over_those_of_its_class() {
        let of = |value: Value| Settings(value.as_object().cloned().unwrap());
        let class = of(json!({
            "deletion": {"order": "Oldest", "nodeDrainTimeoutSeconds": 1},
            "rollout": {"after": "x", "strategy": {}},
            "failureDomain": "a",
        }));
        let topology = of(
            json!({"deletion": {"nodeDrainTimeoutSeconds": 2}, "rollout": {"strategy": {"type": "OnDelete"}}}),
        );
        let all = topology.over(&class);
        assert_eq!(
            Value::Object(all.0.clone()),
            json!({
                "deletion": {"order": "Oldest", "nodeDrainTimeoutSeconds": 2},
                "rollout": {"strategy": {"type": "OnDelete"}},
                "failureDomain": "a",
            })
        );
        assert_eq!(all.get("failureDomain"), Some(&json!("a")));
    }
}
