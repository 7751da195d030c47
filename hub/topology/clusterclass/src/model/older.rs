//! Owns: what v1beta1 says of health checks, as v1beta2 writes it.

use serde_json::{Map, Value};

use super::read::{Fields, seconds};

/// `checks` of a health check, from what v1beta1 writes.
pub(super) fn older_checks(check: &Fields<'_>) -> Map<String, Value> {
    let mut all = Map::new();
    let startup = check
        .get("nodeStartupTimeout")
        .and_then(Value::as_str)
        .and_then(seconds);
    put(&mut all, "nodeStartupTimeoutSeconds", startup.map(Value::from));
    for (name, newer) in [
        ("unhealthyConditions", "unhealthyNodeConditions"),
        ("unhealthyMachineConditions", "unhealthyMachineConditions"),
    ] {
        let list = check.get(name).and_then(Value::as_array);
        let list = list.map(|list| list.iter().map(condition).collect());
        put(&mut all, newer, list.map(Value::Array));
    }
    all
}

/// A condition whose timeout is a duration, with its seconds.
fn condition(written: &Value) -> Value {
    let mut newer = written.as_object().cloned().unwrap_or_default();
    let timeout = newer.remove("timeout");
    let timeout = timeout.as_ref().and_then(Value::as_str).and_then(seconds);
    put(&mut newer, "timeoutSeconds", timeout.map(Value::from));
    Value::Object(newer)
}

/// `remediation` of a health check, from what v1beta1 writes.
pub(super) fn older_remediation(check: &Fields<'_>) -> Map<String, Value> {
    let mut trigger = Map::new();
    put(
        &mut trigger,
        "unhealthyLessThanOrEqualTo",
        check.get("maxUnhealthy").cloned(),
    );
    put(
        &mut trigger,
        "unhealthyInRange",
        check.get("unhealthyRange").cloned(),
    );
    let template = check.get("remediationTemplate").and_then(Value::as_object);
    let template = template.map(|template| {
        let known = ["apiVersion", "kind", "name"];
        let fields = template.iter().filter(|(name, _)| known.contains(&name.as_str()));
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    });
    let mut all = Map::new();
    put(&mut all, "triggerIf", some(trigger));
    put(&mut all, "templateRef", template.map(Value::Object));
    all
}

/// An object that has fields.
pub(super) fn some(object: Map<String, Value>) -> Option<Value> {
    (!object.is_empty()).then_some(Value::Object(object))
}

/// Sets a field that has a value.
pub(super) fn put(object: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Report;
    use super::*;
    use serde_json::json;

    #[test]
    fn health_checks_of_the_older_spelling_become_the_newer() {
        let older = json!({
            "nodeStartupTimeout": "3m",
            "maxUnhealthy": "33%",
            "unhealthyRange": "[1-3]",
            "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "5m"}],
            "remediationTemplate": {"apiVersion": "r/v1", "kind": "R", "name": "r", "namespace": "n"},
        });
        let mut report = Report::new("f", "o");
        let fields = Fields::open(Some(&older), "", &[], &mut report);
        assert_eq!(
            Value::Object(older_checks(&fields)),
            json!({
                "nodeStartupTimeoutSeconds": 180,
                "unhealthyNodeConditions": [{"type": "Ready", "status": "False", "timeoutSeconds": 300}],
            })
        );
        assert_eq!(
            Value::Object(older_remediation(&fields)),
            json!({
                "triggerIf": {"unhealthyLessThanOrEqualTo": "33%", "unhealthyInRange": "[1-3]"},
                "templateRef": {"apiVersion": "r/v1", "kind": "R", "name": "r"},
            })
        );
    }
}
