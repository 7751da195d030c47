//! Owns: what a class or a topology may say of the taints of nodes: upstream's rules for keys, and its API's for the rest.
//! Never: asks whether Cluster API sets taints; its gate `MachineTaintPropagation` is for its own webhooks.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::model::{Report, Settings},
    names::{is_key, is_label_value},
};

/// Most taints of a machine.
const TAINTS_MAX: usize = 64;
/// Keys that Cluster API sets itself, and one that Kubernetes has given up.
const KEYS_TAKEN: [&str; 3] = [
    "node.cluster.x-k8s.io/uninitialized",
    "node.cluster.x-k8s.io/outdated-revision",
    "node-role.kubernetes.io/master",
];
/// Prefixes of keys that nodes, the lifecycle of nodes, and clouds set.
const PREFIXES_TAKEN: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// The one of them that people set.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// Taints of control planes alone.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const PROPAGATIONS: [&str; 2] = ["Always", "OnInitialization"];

/// The machines that taints are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machines {
    OfControlPlane,
    OfWorkers,
}

/// Tells which taints no API server and no webhook of Cluster API would take; `field` is the path of what says them.
pub(super) fn check_taints(machines: Machines, settings: &Settings, field: &str, report: &mut Report) {
    const RULE: &str = "taints";
    let Some(written) = settings.get("taints") else {
        return;
    };
    let at = format!("{field}.taints");
    let Some(taints) = written.as_array() else {
        report.say(RULE, at, "must be a list");
        return;
    };
    if taints.len() > TAINTS_MAX {
        report.say(RULE, at, format!("are more than {TAINTS_MAX}"));
        return;
    }
    let mut known = BTreeSet::new();
    for (number, taint) in taints.iter().enumerate() {
        let at = format!("{at}[{number}]");
        let text = |name: &str| taint.get(name).and_then(Value::as_str).unwrap_or_default();
        if let Some(message) = wrong_key(machines, text("key")) {
            report.say(RULE, format!("{at}.key"), message);
        }
        if !known.insert((text("key"), text("effect"))) {
            report.say(RULE, &at, "is given twice: one of a key and effect is enough");
        }
        if taint
            .get("value")
            .is_some_and(|value| !value.as_str().is_some_and(is_label_value))
        {
            let message = "must be a value of a label: at most 63 letters, digits, -, _ and .";
            report.say(RULE, format!("{at}.value"), message);
        }
        for (name, listed) in [("effect", &EFFECTS[..]), ("propagation", &PROPAGATIONS)] {
            if !listed.contains(&text(name)) {
                let message = format!("must be one of {}", listed.join(", "));
                report.say(RULE, format!("{at}.{name}"), message);
            }
        }
    }
}

fn wrong_key(machines: Machines, key: &str) -> Option<&'static str> {
    let taken = KEYS_TAKEN.contains(&key) || PREFIXES_TAKEN.iter().any(|prefix| key.starts_with(prefix));
    if !is_key(key) {
        Some("must be a key as labels have, such as example.org/name")
    } else if taken && key != OUT_OF_SERVICE {
        Some("is a key that Kubernetes or Cluster API keeps for itself: choose another")
    } else if machines == Machines::OfWorkers && key == CONTROL_PLANE {
        Some("is a key of control planes: workers may not have it")
    } else {
        None
    }
}
