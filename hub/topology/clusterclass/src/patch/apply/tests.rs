//! Tests of patches on templates: their results, their order, and omissions.

use serde_json::json;

use super::*;
use crate::patch::{
    read,
    target::{Role, Workers},
};

const PLANE: &str = "PlaneTemplate";
const MACHINE: &str = "MachineTemplate";

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

fn selector(kind: &str) -> Value {
    let resources = json!({"controlPlane": true, "machineDeploymentClass": {"names": ["linux-*"]}});
    json!({"apiVersion": "g/v1", "kind": kind, "matchResources": resources})
}

/// A patch with one definition for the type.
fn patch(name: &str, kind: &str, operations: &Value) -> Value {
    json!({"name": name, "definitions": [{"selector": selector(kind), "jsonPatches": operations}]})
}

fn patches(documents: &Value) -> Vec<Patch> {
    let (patches, findings) = read::patches(Some(documents));
    assert_eq!(findings, []);
    patches
}

fn template(kind: &str) -> Value {
    let content = json!({"size": 1, "labels": {}, "list": ["a"]});
    json!({
        "apiVersion": "g/v1",
        "kind": kind,
        "metadata": {"name": "t"},
        "spec": {"template": {"spec": content}},
    })
}

fn plane() -> Target {
    let variables = json!({"tag": "plane", "builtin": {"controlPlane": {"version": "v1.30.0"}}});
    Target::new(Role::ControlPlane, &template(PLANE), map(variables))
}

fn workers(name: &str) -> Target {
    let variables =
        json!({"builtin": {"machineDeployment": {"class": "linux-worker", "topologyName": name}}});
    let role = Role::Infrastructure(Workers {
        kind: crate::model::WorkerKind::MachineDeployment,
        class: "linux-worker".to_owned(),
        name: name.to_owned(),
    });
    Target::new(role, &template(MACHINE), map(variables))
}

fn global() -> Map<String, Value> {
    map(json!({
        "tag": "all",
        "on": true,
        "nodes": [{"name": "x"}],
        "builtin": {"cluster": {"name": "c"}},
    }))
}

/// Applies to the control plane and one machine deployment.
fn applied(documents: &Value) -> Applied {
    apply(&patches(documents), &[plane(), workers("md-0")], &global())
}

/// The control plane's `spec.template.spec` afterwards.
fn content(applied: &Applied) -> &Value {
    &applied.patched[0].template["spec"]["template"]["spec"]
}

fn rules(applied: &Applied) -> Vec<Rule> {
    applied.findings.iter().map(|finding| finding.rule).collect()
}

fn add(field: &str, value: Value) -> Value {
    json!({"op": "add", "path": format!("/spec/template/spec/{field}"), "value": value})
}

fn add_from(field: &str, from: Value) -> Value {
    json!({"op": "add", "path": format!("/spec/template/spec/{field}"), "valueFrom": from})
}

#[test]
fn values_come_from_the_class_variables_and_templates() {
    let done = applied(&json!([patch(
        "p",
        PLANE,
        &json!([
            add("a", json!({"b": 1.0})),
            add_from("c", json!({"variable": "nodes[0].name"})),
            add_from("d", json!({"variable": "builtin.controlPlane.version"})),
            add_from("e", json!({"template": "{{ .builtin.cluster.name }}: {{ .tag }}"})),
            add_from("f", json!({"template": "1e+06"})),
            add_from("g", json!({"template": "# nothing"})),
            {"op": "replace", "path": "/spec/template/spec/size", "value": 2},
            {"op": "remove", "path": "/spec/template/spec/labels"},
        ])
    )]));
    assert_eq!(done.findings, []);
    assert_eq!(
        content(&done),
        &json!({
            "a": {"b": 1},
            "c": "x",
            "d": "v1.30.0",
            "e": {"c": "plane"},
            "f": 1_000_000,
            "g": null,
            "list": ["a"],
            "size": 2,
        })
    );
}

#[test]
fn each_place_has_its_own_variables() {
    let text = "{{ .tag }} {{ .builtin.machineDeployment.topologyName }}";
    let operations = json!([add_from("x", json!({ "template": text }))]);
    let list = patches(&json!([patch("p", MACHINE, &operations)]));
    let done = apply(&list, &[workers("md-0"), workers("md-1")], &global());
    let value = |at: usize| done.patched[at].template["spec"]["template"]["spec"]["x"].clone();
    assert_eq!((value(0), value(1)), (json!("all md-0"), json!("all md-1")));
}

#[test]
fn later_patches_see_what_earlier_ones_did_and_the_order_is_told() {
    let append = json!([{"op": "add", "path": "/spec/template/spec/list/-", "value": "b"}]);
    let mut twice = patch("twice", PLANE, &append);
    let first = twice["definitions"][0].clone();
    twice["definitions"] = json!([first, {"selector": selector(MACHINE), "jsonPatches": append}, first]);
    let done = applied(&json!([
        patch(
            "first",
            PLANE,
            &json!([{"op": "replace", "path": "/spec/template/spec/list", "value": []}])
        ),
        twice,
        patch(
            "same",
            PLANE,
            &json!([{"op": "replace", "path": "/spec/template/spec/size", "value": 1}])
        ),
    ]));
    assert_eq!(content(&done)["list"], json!(["b", "b"]));
    let steps: Vec<(usize, &str, usize, bool)> = (done.patched[0].steps.iter())
        .map(|step| (step.patch, step.name.as_str(), step.definition, step.changed))
        .collect();
    assert_eq!(
        steps,
        [
            (0, "first", 0, true),
            (1, "twice", 0, true),
            (1, "twice", 2, true),
            (2, "same", 0, false)
        ]
    );
    assert_eq!(done.patched[1].steps.len(), 1);
    assert_eq!(done.patched[1].steps[0].definition, 1);
}

#[test]
fn a_condition_is_asked_for_each_template_that_is_selected() {
    let conditional = |condition: &str| {
        let mut patch = patch("p", PLANE, &json!([add("x", json!(1))]));
        patch["enabledIf"] = json!(condition);
        applied(&json!([patch]))
    };
    for (condition, enabled) in [
        ("", true),
        ("{{ .on }}", true),
        ("yes", true),
        ("\"true\"", false),
        ("1", false),
        ("{{ not .on }}", false),
        ("{{ if .missing }}true{{ end }}", false),
        ("{{ eq .tag \"plane\" }}", true),
    ] {
        let done = conditional(condition);
        assert_eq!(done.findings, [], "{condition}");
        assert_eq!(content(&done).get("x").is_some(), enabled, "{condition}");
        assert_eq!(
            done.patched[1].steps,
            [],
            "the other template is not asked: {condition}"
        );
    }
    let done = conditional("{{ .tag.x }}");
    assert_eq!(rules(&done), [Rule::EnabledIf]);
    assert_eq!(content(&done).get("x"), None);
}

#[test]
fn a_definition_that_fails_changes_nothing_and_the_others_go_on() {
    for (operation, rule, field) in [
        (add("x/y", json!(1)), Rule::NotApplicable, "path"),
        (
            json!({"op": "remove", "path": "/spec/template/spec/x"}),
            Rule::NotApplicable,
            "path",
        ),
        (
            json!({"op": "add", "path": "/metadata/name", "value": 1}),
            Rule::PathOutsideSpec,
            "path",
        ),
        (
            add_from("x", json!({"variable": "nodes[1]"})),
            Rule::VariableMissing,
            "valueFrom.variable",
        ),
        (
            add_from("x", json!({"variable": "builtin.machineDeployment.class"})),
            Rule::VariableMissing,
            "valueFrom.variable",
        ),
        (
            add_from("x", json!({"template": "{{ .tag.x }}"})),
            Rule::Template,
            "valueFrom.template",
        ),
        (
            add_from("x", json!({"template": "[: {{ .tag }}"})),
            Rule::Template,
            "valueFrom.template",
        ),
        (
            add_from(
                "x",
                json!({"template": "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}"}),
            ),
            Rule::Template,
            "valueFrom.template",
        ),
        (
            add_from("x", json!({"template": "{{ range 2000000000 }}{{ end }}"})),
            Rule::Template,
            "valueFrom.template",
        ),
    ] {
        let done = applied(&json!([
            patch("bad", PLANE, &json!([add("first", json!(1)), operation])),
            patch("good", PLANE, &json!([add("second", json!(1))])),
        ]));
        assert_eq!(rules(&done), [rule], "{operation}");
        let finding = &done.findings[0];
        assert_eq!(finding.field, field, "{operation}");
        assert_eq!(finding.target.as_deref(), Some("control-plane"));
        let place = &finding.place;
        assert_eq!(
            (
                place.patch,
                place.name.as_str(),
                place.definition,
                place.operation
            ),
            (Some(0), "bad", Some(0), Some(1))
        );
        assert_eq!(content(&done).get("first"), None, "{operation}");
        assert_eq!(content(&done)["second"], json!(1), "{operation}");
        assert_eq!(done.patched[0].steps.len(), 1, "{operation}");
    }
}

#[test]
fn a_template_keeps_its_content() {
    for operation in [
        json!({"op": "remove", "path": "/spec"}),
        json!({"op": "replace", "path": "/spec", "value": {}}),
        json!({"op": "remove", "path": "/spec/template/spec"}),
        json!({"op": "add", "path": "/spec/template/spec", "valueFrom": {"template": "# nothing"}}),
        json!({"op": "replace", "path": "/spec", "value": []}),
        json!({"op": "replace", "path": "/spec/template", "value": "x"}),
    ] {
        let done = applied(&json!([
            patch("bad", PLANE, &json!([operation])),
            patch("good", PLANE, &json!([add("x", json!(1))])),
        ]));
        assert_eq!(rules(&done), [Rule::Emptied], "{operation}");
        assert_eq!(content(&done)["size"], json!(1), "{operation}");
        assert_eq!(content(&done)["x"], json!(1), "{operation}");
    }
    let replace = json!([{"op": "replace", "path": "/spec/template/spec", "value": {}}]);
    let done = applied(&json!([patch("all", PLANE, &replace)]));
    assert_eq!((rules(&done), content(&done)), (vec![], &json!({})));
}

#[test]
fn nothing_beside_spec_is_taken() {
    let done = applied(&json!([patch(
        "p",
        PLANE,
        &json!([{"op": "add", "path": "/specific", "value": 1}])
    )]));
    assert_eq!(done.patched[0].template, template(PLANE));
    assert!(!done.patched[0].steps[0].changed);
}

#[test]
fn what_has_no_value_is_written_and_told() {
    let operations = json!([add_from("x", json!({"template": "{{ .missing }}"}))]);
    let done = applied(&json!([patch("p", PLANE, &operations)]));
    assert_eq!(content(&done)["x"], json!("<no value>"));
    assert_eq!(rules(&done), [Rule::NoValue]);
    assert!(!done.findings[0].rule.is_error());
}

#[test]
fn a_patch_that_could_not_be_read_is_not_applied() {
    let mut list = patches(&json!([patch("p", PLANE, &json!([add("x", json!(1))]))]));
    list[0].whole = false;
    let done = apply(&list, &[plane()], &global());
    assert_eq!(done.patched[0].template, template(PLANE));
}

#[test]
fn values_and_templates_are_bounded() {
    let text = |length: usize| json!("x".repeat(length));
    let large = MAX_VALUE - 2;
    let one = patch("one", PLANE, &json!([add("a", text(large))]));
    let two = patch("two", PLANE, &json!([add("b", text(large))]));
    let done = applied(&json!([one, two]));
    assert_eq!(rules(&done), [Rule::Limit]);
    assert_eq!(done.findings[0].place.patch, Some(1));
    assert!(content(&done).get("a").is_some() && content(&done).get("b").is_none());

    let replace = json!({"op": "replace", "path": "/spec/template/spec/size", "value": text(large)});
    let count = MAX_VALUES / MAX_VALUE;
    let fits = applied(&json!([patch(
        "p",
        PLANE,
        &Value::from(vec![replace.clone(); count])
    )]));
    assert_eq!(fits.findings, []);
    let done = applied(&json!([patch(
        "p",
        PLANE,
        &Value::from(vec![replace; count + 1])
    )]));
    assert_eq!(rules(&done), [Rule::Limit]);

    let list = patches(&json!([patch(
        "p",
        PLANE,
        &json!([add_from("x", json!({"variable": "v"}))])
    )]));
    let done = apply(&list, &[plane()], &map(json!({ "v": text(MAX_VALUE) })));
    assert_eq!(rules(&done), [Rule::Limit]);
    assert_eq!(done.findings[0].field, "valueFrom.variable");
}

#[test]
fn all_patches_together_end() {
    let slow = add_from(
        "x",
        json!({"template": "{{ range 300000 }}{{ end }}{{ range 300000 }}{{ end }}"}),
    );
    let list = patches(&json!([
        patch("slow", MACHINE, &Value::from(vec![slow; 100])),
        patch("next", MACHINE, &json!([add("y", json!(1))])),
    ]));
    let done = apply(&list, &[workers("md-0"), workers("md-1")], &global());
    assert_eq!(rules(&done), [Rule::Limit]);
    assert_eq!(done.findings[0].place.patch, Some(0));
    assert!(done.findings[0].place.operation.is_some());
    assert_eq!(done.patched.len(), 2);
    for patched in &done.patched {
        assert_eq!(patched.template, template(MACHINE));
    }
}

#[test]
fn more_templates_than_a_cluster_has_are_left_out() {
    let done = apply(&[], &vec![workers("md"); MAX_TARGETS + 1], &global());
    assert_eq!(done.patched.len(), MAX_TARGETS);
    assert_eq!(rules(&done), [Rule::Limit]);
}
