//! Every rule by its name, with what breaks it and what keeps to it.

use serde_json::{Value, json};

use super::*;
use crate::{
    model::Estate,
    patch::{limits::MAX_PATH, read},
};

/// A class with these patches.
fn document(patches: &Value) -> Value {
    let reference = |kind: &str| json!({"templateRef": {"apiVersion": "g/v1", "kind": kind, "name": "n"}});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "c"},
        "spec": {
            "infrastructure": reference("InfraTemplate"),
            "controlPlane": {
                "templateRef": reference("PlaneTemplate")["templateRef"],
                "machineInfrastructure": reference("MachineTemplate"),
            },
            "workers": {
                "machineDeployments": [{
                    "class": "linux-worker",
                    "bootstrap": reference("BootTemplate"),
                    "infrastructure": reference("MachineTemplate"),
                }],
                "machinePools": [{
                    "class": "spot-pool",
                    "bootstrap": reference("BootTemplate"),
                    "infrastructure": reference("PoolTemplate"),
                }],
            },
            "variables": [{"name": "image"}, {"name": "nodes"}],
            "patches": patches,
        },
    })
}

/// All rules that these patches break.
fn broken(patches: &Value) -> Vec<Rule> {
    let mut estate = Estate::default();
    estate.add_objects([("f.yaml", &document(patches))]);
    let class = estate.classes.into_values().next().expect("a class");
    let (patches, mut findings) = read::patches(Some(patches));
    findings.extend(check(&class, &patches));
    findings.iter().map(|finding| finding.rule).collect()
}

fn patch(name: &str, selector: &Value, operation: &Value) -> Value {
    json!({"name": name, "definitions": [{"selector": selector, "jsonPatches": [operation]}]})
}

fn plane() -> Value {
    json!({"apiVersion": "g/v1", "kind": "PlaneTemplate", "matchResources": {"controlPlane": true}})
}

fn workers(kind: &str, name: &str) -> Value {
    let resources = json!({"machineDeploymentClass": {"names": [name]}});
    json!({"apiVersion": "g/v1", "kind": kind, "matchResources": resources})
}

fn with_operation(operation: &Value) -> Value {
    json!([patch("p", &plane(), operation)])
}

fn with_selector(selector: &Value) -> Value {
    let operation = json!({"op": "remove", "path": "/spec/template/spec/x"});
    json!([patch("p", selector, &operation)])
}

fn with(field: &str, value: Value) -> Value {
    let mut patches = with_operation(&json!({"op": "remove", "path": "/spec/template/spec/x"}));
    patches[0][field] = value;
    patches
}

fn add(path: &str) -> Value {
    with_operation(&json!({"op": "add", "path": path, "value": 1}))
}

fn add_from(from: &Value) -> Value {
    with_operation(&json!({"op": "add", "path": "/spec/template/spec/x", "valueFrom": from}))
}

/// Each bad one breaks the rule and no other; the good ones beside it break none.
fn holds(rule: Rule, bad: &[Value], good: &[Value]) {
    for patches in bad {
        assert_eq!(broken(patches), [rule], "{} of {patches}", rule.name());
    }
    for patches in good {
        assert_eq!(broken(patches), [], "{} of {patches}", rule.name());
    }
}

#[test]
fn names() {
    holds(
        Rule::NameMissing,
        &[with("name", json!("")), with("name", Value::Null)],
        &[with("name", json!("p"))],
    );
    holds(
        Rule::NameReserved,
        &[with("name", json!("inline"))],
        &[with("name", json!("Inline"))],
    );
    let two = |first: &str, second: &str| {
        let operation = json!({"op": "remove", "path": "/spec/template/spec/x"});
        json!([
            patch(first, &plane(), &operation),
            patch(second, &plane(), &operation)
        ])
    };
    holds(Rule::NameTwice, &[two("a", "a")], &[two("a", "b")]);
}

#[test]
fn form() {
    holds(
        Rule::Malformed,
        &[
            with("description", json!(1)),
            with("enabledIf", json!(true)),
            json!({"a": "b"}),
        ],
        &[with("description", json!("1")), json!([]), Value::Null],
    );
    holds(
        Rule::UnknownField,
        &[
            with("enabledif", json!("true")),
            with_operation(&json!({"op": "remove", "path": "/spec/template/spec/x", "from": "/spec/y"})),
        ],
        &[with("enabledIf", json!("true"))],
    );
    let long = |length: usize| {
        let start = "/spec/template/spec/";
        add(&format!("{start}{}", "x".repeat(length - start.len())))
    };
    holds(Rule::Limit, &[long(MAX_PATH + 1)], &[long(MAX_PATH)]);
}

#[test]
fn what_a_patch_does() {
    let nothing = json!([{"name": "p"}]);
    let empty = json!([{"name": "p", "definitions": []}]);
    let good = with("name", json!("p"));
    holds(
        Rule::NothingDefined,
        &[nothing, empty],
        std::slice::from_ref(&good),
    );
    let external = json!({"generatePatchesExtension": "x"});
    holds(
        Rule::External,
        &[
            json!([{"name": "p", "external": {"discoverVariablesExtension": "x"}}]),
            with("external", external.clone()),
        ],
        &[
            good.clone(),
            with("external", Value::Null),
            json!([{"name": "p", "external": external}]),
        ],
    );
    let without = json!([{"name": "p", "definitions": [{"selector": plane(), "jsonPatches": []}]}]);
    holds(Rule::NoOperations, &[without], &[good]);
}

#[test]
fn selectors() {
    let plane = plane();
    let mut nameless = plane.clone();
    nameless["kind"] = json!("");
    // A kind that is not named does not match either.
    let both = [Rule::SelectorIncomplete, Rule::SelectorUnmatched];
    assert_eq!(broken(&with_selector(&nameless)), both);
    let mut empty = plane.clone();
    empty["matchResources"] =
        json!({"infrastructureCluster": false, "machineDeploymentClass": {"names": []}});
    let mut none = plane.clone();
    none["matchResources"] = Value::Null;
    holds(
        Rule::SelectorEmpty,
        &[with_selector(&empty), with_selector(&none)],
        &[with_selector(&plane)],
    );
    holds(
        Rule::SelectorName,
        &[
            with_selector(&workers("BootTemplate", "linux*worker")),
            with_selector(&workers("BootTemplate", "*linux*")),
            with_selector(&workers("BootTemplate", "linux_/*")),
        ],
        &[
            with_selector(&workers("BootTemplate", "linux-*")),
            with_selector(&workers("MachineTemplate", "*-worker")),
            with_selector(&workers("BootTemplate", "*")),
        ],
    );
    let is = |kind: &str, place: &str| json!({"apiVersion": "g/v1", "kind": kind, "matchResources": {place: true}});
    let mut other = plane;
    other["apiVersion"] = json!("g/v2");
    holds(
        Rule::SelectorUnmatched,
        &[
            with_selector(&other),
            with_selector(&is("BootTemplate", "controlPlane")),
            with_selector(&is("PlaneTemplate", "infrastructureCluster")),
            with_selector(&workers("BootTemplate", "windows-*")),
            with_selector(&workers("PlaneTemplate", "linux-worker")),
        ],
        &[
            with_selector(&is("MachineTemplate", "controlPlane")),
            with_selector(&is("InfraTemplate", "infrastructureCluster")),
            with_selector(&workers("MachineTemplate", "linux-worker")),
        ],
    );
    let pools = |kind: &str, name: &str| {
        let resources = json!({"machinePoolClass": {"names": [name]}});
        json!({"apiVersion": "g/v1", "kind": kind, "matchResources": resources})
    };
    holds(
        Rule::SelectorUnmatched,
        &[
            with_selector(&pools("MachineTemplate", "spot-pool")),
            with_selector(&pools("BootTemplate", "linux-worker")),
            with_selector(&workers("PoolTemplate", "*")),
        ],
        &[
            with_selector(&pools("BootTemplate", "spot-*")),
            with_selector(&pools("PoolTemplate", "spot-pool")),
        ],
    );
    holds(
        Rule::SelectorName,
        &[with_selector(&pools("BootTemplate", "spot*pool"))],
        &[with_selector(&pools("BootTemplate", "*"))],
    );
}

#[test]
fn operations_and_paths() {
    holds(
        Rule::OperationUnknown,
        &[
            with_operation(&json!({"op": "test", "path": "/spec/template/spec/x", "value": 1})),
            with_operation(&json!({"path": "/spec/template/spec/x", "value": 1})),
        ],
        &[
            add("/spec/template/spec/x"),
            with_operation(&json!({"op": "replace", "path": "/spec/template/spec/x", "value": 1})),
        ],
    );
    holds(
        Rule::PathOutsideSpec,
        &[
            add("/metadata/labels/x"),
            add("spec/template"),
            add(""),
            add("“/spec/x”"),
        ],
        &[add("/spec"), add("/spec/template/metadata/labels/x")],
    );
    let replace = |path: &str| with_operation(&json!({"op": "replace", "path": path, "value": 1}));
    let remove = |path: &str| with_operation(&json!({"op": "remove", "path": path}));
    holds(
        Rule::PathIndex,
        &[
            add("/spec/template/spec/l/1"),
            add("/spec/template/spec/l/-1/x"),
            replace("/spec/template/spec/l/0"),
            remove("/spec/template/spec/l/0"),
        ],
        &[
            add("/spec/template/spec/l/0"),
            add("/spec/template/spec/l/-"),
            replace("/spec/template/spec/l"),
            remove("/spec/template/spec/l-1"),
        ],
    );
    holds(
        Rule::NotTaken,
        &[
            add("/spec/x"),
            add("/specific"),
            add("/spec/template/x"),
            add("/spec/template/metadata/name"),
        ],
        &[
            add("/spec/template"),
            add("/spec/template/spec"),
            add("/spec/template/metadata/annotations"),
        ],
    );
}

#[test]
fn sources() {
    let path = "/spec/template/spec/x";
    let from = json!({"variable": "image"});
    holds(
        Rule::ValueMissing,
        &[
            with_operation(&json!({"op": "add", "path": path})),
            with_operation(&json!({"op": "add", "path": path, "value": null})),
            add_from(&json!({})),
        ],
        &[add(path), add_from(&from)],
    );
    holds(
        Rule::ValueTwice,
        &[
            with_operation(&json!({"op": "add", "path": path, "value": 1, "valueFrom": from})),
            add_from(&json!({"variable": "image", "template": "x"})),
        ],
        &[
            add(path),
            with_operation(&json!({"op": "add", "path": path, "value": false})),
        ],
    );
    holds(
        Rule::ValueOfRemove,
        &[
            with_operation(&json!({"op": "remove", "path": path, "value": 1})),
            with_operation(&json!({"op": "remove", "path": path, "valueFrom": from})),
        ],
        &[with_operation(&json!({"op": "remove", "path": path}))],
    );
    let variable = |name: &str| add_from(&json!({ "variable": name }));
    holds(
        Rule::VariableUnknown,
        &[
            variable("machineType"),
            variable("images.tag"),
            variable("builtin.cluster.nam"),
            variable("builtin[0]"),
        ],
        &[
            variable("builtin"),
            variable("image.tag"),
            variable("nodes[0].name"),
            variable("builtin.cluster.name"),
        ],
    );
}

#[test]
fn templates() {
    let template = |text: &str| add_from(&json!({ "template": text }));
    holds(
        Rule::EnabledIf,
        &[
            with("enabledIf", json!("{{ .a ")),
            with("enabledIf", json!("{{ toYaml . }}")),
        ],
        &[with("enabledIf", json!("{{ .a }}")), with("enabledIf", json!(""))],
    );
    holds(
        Rule::Template,
        &[template("{{ end }}"), template("{{ .a | unknown }}")],
        &[template("{{ .a | quote }}"), template(" ")],
    );
    holds(
        Rule::NotRepeatable,
        &[
            template("{{ if false }}{{ randInt 1 5 }}{{ end }}"),
            with("enabledIf", json!("{{ eq (shuffle \"ab\") \"ab\" }}")),
        ],
        &[template("{{ sha256sum \"ab\" }}")],
    );
}

#[test]
fn the_proposals_own_example_is_refused_for_each_of_its_mistakes() {
    let replace = |path: &str, variable: &str| json!({"op": "replace", "path": path, "valueFrom": {"variable": variable}});
    let nowhere = json!({"apiVersion": "g/v1", "kind": "InfraTemplate"});
    let mut machines = plane();
    machines["kind"] = json!("MachineTemplate");
    let patches = json!([
        patch(
            "region",
            &nowhere,
            &replace("“/spec/template/spec/region”", "image")
        ),
        patch(
            "controlPlaneMachineType",
            &machines,
            &replace("“/spec/template/spec/instanceType”", "machineType")
        ),
    ]);
    assert_eq!(
        broken(&patches),
        [
            Rule::SelectorEmpty,
            Rule::PathOutsideSpec,
            Rule::PathOutsideSpec,
            Rule::VariableUnknown
        ]
    );
}
