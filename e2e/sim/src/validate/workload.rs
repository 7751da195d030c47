//! Faults of the kinds that are kept for users and do nothing: Deployments and ConfigMaps. Judges mistakes of people; a
//! real server looks at much more of a pod than this.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{complain, labels, text};
use crate::status::Cause;

/// The longest key of a ConfigMap.
const KEY_LENGTH_MAX: usize = 253;

/// Faults of a Deployment; its selector cannot change.
pub(super) fn deployment(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let (spec, template) = (&object["spec"], &object["spec"]["template"]);
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0".to_owned();
        complain(causes, "spec.replicas", &replicas.into(), vec![why]);
    }
    if old.is_some_and(|old| old["spec"]["selector"] != spec["selector"]) {
        complain(
            causes,
            "spec.selector",
            &spec["selector"],
            vec!["field is immutable".to_owned()],
        );
    }
    let selected = spec["selector"]["matchLabels"].as_object();
    if spec["selector"].is_null() {
        causes.push(Cause::required("spec.selector", "Required value"));
    } else if selected.is_none_or(|labels| labels.is_empty())
        && spec["selector"]["matchExpressions"].is_null()
    {
        let why = "empty selector is invalid for deployment".to_owned();
        complain(causes, "spec.selector", &spec["selector"], vec![why]);
    }
    let has = |(key, value): (&String, &Value)| template["metadata"]["labels"][key] == *value;
    // No selector is read as one that selects nothing, which matches no labels either.
    if spec["selector"].is_null() || !selected.into_iter().flatten().all(has) {
        let why = "`selector` does not match template `labels`".to_owned();
        complain(
            causes,
            "spec.template.metadata.labels",
            &template["metadata"]["labels"],
            vec![why],
        );
    }
    labels("spec.template.labels", &template["metadata"]["labels"], causes);
    let containers = template["spec"]["containers"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        causes.push(Cause::required("spec.template.spec.containers", "Required value"));
    }
    let mut names = BTreeSet::new();
    for (at, container) in containers.iter().enumerate() {
        let path = format!("spec.template.spec.containers[{at}]");
        match container["name"].as_str().unwrap_or_default() {
            "" => causes.push(Cause::required(format!("{path}.name"), "Required value")),
            name => complain(
                causes,
                &format!("{path}.name"),
                &container["name"],
                text::label(name),
            ),
        }
        if !names.insert(container["name"].as_str().unwrap_or_default()) {
            let message = format!("Duplicate value: {}", container["name"]);
            causes.push(Cause::duplicate(format!("{path}.name"), message));
        }
        if container["image"].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required(format!("{path}.image"), "Required value"));
        }
    }
}

/// Faults of a ConfigMap's keys.
pub(super) fn config_map(object: &Value, causes: &mut Vec<Cause>) {
    for list in ["data", "binaryData"] {
        for key in object[list].as_object().into_iter().flatten().map(|(key, _)| key) {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            let shape = !key.is_empty() && key.bytes().all(letter) && key != "." && !key.starts_with("..");
            let faults = match (key.len() > KEY_LENGTH_MAX, shape) {
                (true, _) => vec![format!("must be no more than {KEY_LENGTH_MAX} characters")],
                (_, true) => Vec::new(),
                _ => vec![
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
                     'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                        .to_owned(),
                ],
            };
            complain(causes, &format!("{list}[{key}]"), &key.as_str().into(), faults);
        }
    }
}
