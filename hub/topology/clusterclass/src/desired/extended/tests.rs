//! Tests of extensions in plans: what they are asked, what becomes of their answers, and what is told where none is asked.

use std::{cell::RefCell, fmt};

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::{
    desired::{
        offline::{Planned, Preview, plans},
        table::{documents, table},
    },
    patch::external::{Extensions, Hook, NoExtensions},
};

const CLASS: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: k}
spec:
  infrastructure: {templateRef: {apiVersion: i.x/v1, kind: CloudTemplate, name: t}}
  controlPlane:
    templateRef: {apiVersion: c.x/v1beta1, kind: PlaneTemplate, name: t}
    machineInfrastructure: {templateRef: {apiVersion: i.x/v1, kind: HostTemplate, name: t}}
  workers:
    machineDeployments:
    - class: w
      bootstrap: {templateRef: {apiVersion: b.x/v1, kind: BootTemplate, name: t}}
      infrastructure: {templateRef: {apiVersion: i.x/v1, kind: HostTemplate, name: t}}
  variables:
  - {name: zone, schema: {openAPIV3Schema: {type: string, default: a}}}
  patches:
  - name: before
    definitions:
    - selector: {apiVersion: i.x/v1, kind: CloudTemplate, matchResources: {infrastructureCluster: true}}
      jsonPatches:
      - {op: add, path: /spec/template/spec/zone, valueFrom: {variable: zone}}
  - name: made
    external:
      generatePatchesExtension: gen.ext
      validateTopologyExtension: val.ext
      discoverVariablesExtension: dis.ext
      settings: {mode: b}
  - name: after
    definitions:
    - selector: {apiVersion: i.x/v1, kind: CloudTemplate, matchResources: {infrastructureCluster: true}}
      jsonPatches:
      - {op: replace, path: /spec/template/spec/made, value: after}
---
{apiVersion: i.x/v1, kind: CloudTemplate, metadata: {name: t}, spec: {template: {spec: {made: inline}}}}
---
{apiVersion: i.x/v1, kind: HostTemplate, metadata: {name: t}, spec: {template: {spec: {}}}}
---
{apiVersion: c.x/v1beta1, kind: PlaneTemplate, metadata: {name: t}, spec: {template: {spec: {}}}}
---
{apiVersion: b.x/v1, kind: BootTemplate, metadata: {name: t}, spec: {template: {spec: {}}}}
---
apiVersion: runtime.cluster.x-k8s.io/v1beta2
kind: ExtensionConfig
metadata: {name: ext}
spec: {settings: {mode: a, more: c}}
status:
  handlers:
  - {name: gen.ext, requestHook: {hook: GeneratePatches}}
  - {name: up.ext, requestHook: {hook: BeforeClusterUpgrade}}
"#;

fn cluster(variables: &Value) -> String {
    format!(
        "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {{name: c}}\nspec:\n  topology:\n    \
         classRef: {{name: k}}\n    version: v1.34.1\n    variables: {variables}\n    \
         workers: {{machineDeployments: [{{class: w, name: md, replicas: 1, variables: {{overrides: [{{name: size, value: 2}}]}}}}]}}\n"
    )
}

/// Answers what a test says, and keeps what it is asked.
struct Scripted<F> {
    script: F,
    asked: RefCell<Vec<(Hook, String, Value)>>,
}

impl<F: Fn(Hook, &Value) -> Option<Result<Value, String>>> Scripted<F> {
    fn new(script: F) -> Self {
        Self {
            script,
            asked: RefCell::default(),
        }
    }

    fn of(&self, hook: Hook) -> Vec<Value> {
        let asked = self.asked.borrow();
        let all = asked.iter().filter(|(asked, ..)| *asked == hook);
        all.map(|(_, _, request)| request.clone()).collect()
    }
}

impl<F> fmt::Debug for Scripted<F> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Scripted")
    }
}

impl<F: Fn(Hook, &Value) -> Option<Result<Value, String>>> Extensions for Scripted<F> {
    fn ask(&self, hook: Hook, named: &str, request: &Value) -> Option<Result<Value, String>> {
        self.asked
            .borrow_mut()
            .push((hook, named.to_owned(), request.clone()));
        (self.script)(hook, request)
    }
}

fn planned(class: &str, variables: &Value, extensions: &dyn Extensions) -> Planned {
    let text = format!("{class}{}", cluster(variables));
    Preview(extensions)
        .plans(&[("f.yaml".to_owned(), text.into_bytes())], None)
        .expect("files")
}

fn findings(planned: &Planned) -> Vec<(&'static str, String)> {
    planned
        .findings
        .iter()
        .map(|one| (one.rule, one.message.clone()))
        .collect()
}

fn object<'a>(planned: &'a Planned, kind: &str) -> &'a Value {
    let mut objects = planned.plans[0].objects();
    objects.find(|object| object["kind"] == kind).expect("planned")
}

/// An item of an answer for the template of a kind.
fn item(request: &Value, kind: &str, patch_type: &str, patch: &Value) -> Value {
    let items = request["items"].as_array().expect("items");
    let found = items
        .iter()
        .find(|item| item["object"]["kind"] == kind)
        .expect("the template");
    json!({"uid": found["uid"], "patchType": patch_type, "patch": BASE64.encode(patch.to_string().as_bytes())})
}

fn variables() -> Value {
    json!({"status": "Success", "variables": [
        {"name": "size", "required": true, "schema": {"openAPIV3Schema": {"type": "integer", "maximum": 9}}},
        {"name": "disk", "required": false, "schema": {"openAPIV3Schema": {"type": "integer", "default": 7}}},
    ]})
}

/// An extension that does a little of everything.
fn usual(hook: Hook, request: &Value) -> Option<Result<Value, String>> {
    Some(Ok(match hook {
        Hook::DiscoverVariables => variables(),
        Hook::ValidateTopology => json!({"status": "Success"}),
        Hook::GeneratePatches => {
            let add = json!([{"op": "replace", "path": "/spec/template/spec/made", "value": "by ext"}]);
            let merge = json!({"spec": {"template": {"spec": {"size": 3}}}});
            let items = [
                item(request, "CloudTemplate", "JSONPatch", &add),
                item(request, "PlaneTemplate", "JSONMergePatch", &merge),
            ];
            json!({"status": "Success", "items": items})
        }
    }))
}

#[test]
fn without_its_extension_a_class_is_planned_and_what_is_missing_is_told() {
    let planned = planned(CLASS, &json!([{"name": "size", "value": [1]}]), &NoExtensions);
    assert_eq!(findings(&planned), []);
    assert_eq!(
        object(&planned, "Cloud")["spec"],
        json!({"made": "after", "zone": "a"})
    );
    let lines = [
        "variables that extension dis.ext defines for patch made are not checked; carried as they are: size; \
         give --extension ext=URL",
        "lifecycle hooks are never called: BeforeClusterUpgrade of up.ext",
        "patch made is not applied: extension gen.ext was not asked; give --extension ext=URL",
        "the result is not validated: extension val.ext of patch made was not asked; give --extension ext=URL",
    ];
    let told: Vec<String> = planned.plans[0]
        .left_out
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(told, lines);
    for line in lines {
        let line = format!("default/c: {line}\n");
        assert!(table(&planned.plans).contains(&line), "{line}");
        assert!(documents(&planned.plans).contains(&format!("# {line}")), "{line}");
    }
}

/// The result is nothing to judge if one extension was asked and another one was not.
#[test]
fn half_of_a_topology_is_not_validated() {
    let extensions = Scripted::new(|hook, request: &Value| match hook {
        Hook::GeneratePatches => None,
        Hook::ValidateTopology => Some(Ok(json!({"status": "Failure"}))),
        Hook::DiscoverVariables => usual(hook, request),
    });
    let planned = planned(CLASS, &json!([{"name": "size", "value": 1}]), &extensions);
    assert_eq!(findings(&planned), []);
    assert_eq!(extensions.of(Hook::ValidateTopology), [] as [Value; 0]);
}

#[test]
fn who_is_no_preview_refuses_a_class_with_extensions() {
    let text = format!("{CLASS}{}", cluster(&json!([])));
    let planned = plans(&[("f.yaml".to_owned(), text.into_bytes())], None).expect("files");
    let rules: Vec<&str> = planned.findings.iter().map(|one| one.rule).collect();
    assert!(rules.contains(&"left-out"), "{rules:?}");
    assert!(planned.plans.is_empty());
}

#[test]
fn an_external_patch_is_applied_in_its_place() {
    let extensions = Scripted::new(usual);
    let planned = planned(CLASS, &json!([{"name": "size", "value": 1}]), &extensions);
    assert_eq!(findings(&planned), []);
    assert_eq!(
        object(&planned, "Cloud")["spec"],
        json!({"made": "after", "zone": "a"}),
        "the inline patch behind it has the last word"
    );
    assert_eq!(object(&planned, "Plane")["spec"]["size"], json!(3));
    let plan = &planned.plans[0];
    assert_eq!(
        plan.sources.variables["disk"],
        json!(7),
        "a default of the extension's"
    );
    let steps = &plan.sources.patches["infrastructure-cluster"];
    let steps: Vec<(&str, bool)> = steps
        .iter()
        .map(|step| (step.name.as_str(), step.changed))
        .collect();
    assert_eq!(steps, [("before", true), ("made", true), ("after", true)]);
    let left_out: Vec<String> = plan.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        left_out,
        ["lifecycle hooks are never called: BeforeClusterUpgrade of up.ext"]
    );
}

#[test]
fn a_request_says_what_cluster_api_says() {
    let extensions = Scripted::new(usual);
    let planned = planned(CLASS, &json!([{"name": "size", "value": 1}]), &extensions);
    let requests = extensions.of(Hook::GeneratePatches);
    let request = &requests[0];
    assert_eq!(request["apiVersion"], "hooks.runtime.cluster.x-k8s.io/v1alpha1");
    assert_eq!(request["kind"], "GeneratePatchesRequest");
    assert_eq!(request["settings"], json!({"mode": "b", "more": "c"}));
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.map(|one| one["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        names(&request["variables"]),
        ["disk", "size", "builtin"],
        "not those of inline patches"
    );
    let items = request["items"].as_array().expect("items");
    let name = |kind: &str| object(&planned, kind)["metadata"]["name"].clone();
    let held: Vec<Value> = items.iter().map(|item| item["holderReference"].clone()).collect();
    let holder = |version: &str, kind: &str, name: Value, field: &str| json!({"apiVersion": version, "kind": kind, "namespace": "default", "name": name, "fieldPath": field});
    let core = "cluster.x-k8s.io/v1beta2";
    let deployment = "MachineDeployment";
    assert_eq!(
        held,
        [
            holder(core, "Cluster", json!("c"), "spec.infrastructureRef"),
            holder(core, "Cluster", json!("c"), "spec.controlPlaneRef"),
            holder(
                "c.x/v1beta1",
                "Plane",
                name("Plane"),
                "spec.machineTemplate.infrastructureRef"
            ),
            holder(
                core,
                deployment,
                name(deployment),
                "spec.template.spec.bootstrap.configRef"
            ),
            holder(
                core,
                deployment,
                name(deployment),
                "spec.template.spec.infrastructureRef"
            ),
        ]
    );
    assert_eq!(
        items[0]["object"]["spec"]["template"]["spec"],
        json!({"made": "inline", "zone": "a"})
    );
    assert_eq!(items[0]["variables"], Value::Null);
    assert_eq!(names(&items[1]["variables"]), ["builtin"]);
    assert_eq!(names(&items[4]["variables"]), ["size", "builtin"], "an override");
    assert_eq!(items[4]["variables"][0]["value"], json!(2));
    let builtin = &items[4]["variables"][1]["value"]["machineDeployment"];
    assert_eq!(
        (&builtin["topologyName"], &builtin["name"]),
        (&json!("md"), &name(deployment))
    );
    let judged = &extensions.of(Hook::ValidateTopology)[0];
    assert_eq!(
        judged["items"][0]["object"]["spec"]["template"]["spec"]["made"],
        "after"
    );
    assert_eq!(judged["items"][0]["uid"], Value::Null);
    assert_eq!(
        names(&judged["variables"]),
        ["zone", "builtin"],
        "those of the last patch, as upstream"
    );
    let discovered = &extensions.of(Hook::DiscoverVariables)[0];
    assert_eq!(discovered["settings"], json!({"mode": "b", "more": "c"}));
}

#[test]
fn variables_that_an_extension_defines_are_checked() {
    let told = |values: Value, extensions: &dyn Extensions| findings(&planned(CLASS, &values, extensions));
    let extensions = Scripted::new(usual);
    let rule = |values: Value| told(values, &extensions).first().map(|one| one.0);
    assert_eq!(
        rule(json!([{"name": "size", "value": 10}])),
        Some("variable-value")
    );
    assert_eq!(rule(json!([])), Some("variable-required"));
    let other = json!([{"name": "size", "value": 1}, {"name": "other", "value": 1}]);
    assert_eq!(rule(other), Some("variable-defined"));
    let defining = |variables: Value| {
        Scripted::new(move |hook, request: &Value| match hook {
            Hook::DiscoverVariables => Some(Ok(json!({"status": "Success", "variables": variables}))),
            _ => usual(hook, request),
        })
    };
    let zone = |kind: &str| {
        let schema = json!({"type": kind, "default": "a", "uniqueItems": false});
        let size = variables()["variables"][0].clone();
        defining(json!([size, {"name": "zone", "required": false, "schema": {"openAPIV3Schema": schema}}]))
    };
    let size = json!([{"name": "size", "value": 1}]);
    assert_eq!(
        told(size.clone(), &zone("string")),
        [],
        "the same twice is no conflict"
    );
    let conflict = told(size.clone(), &zone("integer"));
    assert_eq!(conflict[0].0, "variable-conflict", "{conflict:?}");
    let broken = defining(json!([{"name": "size", "schema": {"openAPIV3Schema": {"type": "text"}}}]));
    assert_eq!(told(size, &broken)[0].0, "variable-schema");
}

/// Each failure of a call is a finding that has its reason, and there is no plan.
#[test]
fn a_call_that_fails_ends_the_plan() {
    let patches = |item: fn(&Value) -> Value| {
        move |hook: Hook, request: &Value| match hook {
            Hook::GeneratePatches => Some(Ok(json!({"status": "Success", "items": [item(request)]}))),
            _ => usual(hook, request),
        }
    };
    let failing = |failing: Hook, answer: Result<Value, String>| {
        move |hook: Hook, request: &Value| {
            if hook == failing {
                Some(answer.clone())
            } else {
                usual(hook, request)
            }
        }
    };
    let told = |extensions: &dyn Extensions| {
        let planned = planned(CLASS, &json!([{"name": "size", "value": 1}]), extensions);
        assert!(planned.plans.is_empty());
        let all = findings(&planned);
        assert_eq!(all[0].0, "extension", "{all:?}");
        all[0].1.clone()
    };
    let failure = || Ok(json!({"status": "Failure", "message": "no\nquota"}));
    for (hook, name) in [
        (Hook::GeneratePatches, "gen.ext"),
        (Hook::ValidateTopology, "val.ext"),
        (Hook::DiscoverVariables, "dis.ext"),
    ] {
        let why = told(&Scripted::new(failing(hook, failure())));
        assert!(
            why.starts_with(&format!("extension {name}: it answered Failure: no quota")),
            "{why}"
        );
        let why = told(&Scripted::new(failing(hook, Ok(json!({})))));
        assert!(why.contains("status none, which is neither"), "{why}");
        let why = told(&Scripted::new(failing(hook, Err("no answer".to_owned()))));
        assert!(why.contains("no answer"), "{why}");
    }
    let other_uid = told(&Scripted::new(patches(
        |_| json!({"uid": "x", "patchType": "JSONPatch", "patch": ""}),
    )));
    assert!(
        other_uid.contains("no template of the request has uid x"),
        "{other_uid}"
    );
    let no_type = told(&Scripted::new(patches(|request| {
        item(request, "CloudTemplate", "Patch", &json!([]))
    })));
    assert!(no_type.contains("patchType Patch is neither"), "{no_type}");
    let no_base64 = told(&Scripted::new(patches(|request| {
        let mut item = item(request, "CloudTemplate", "JSONPatch", &json!([]));
        item["patch"] = json!("[]");
        item
    })));
    assert!(no_base64.contains("base64"), "{no_base64}");
    let no_path = told(&Scripted::new(patches(|request| {
        let patch = json!([{"op": "replace", "path": "/spec/x/y", "value": 1}]);
        item(request, "CloudTemplate", "JSONPatch", &patch)
    })));
    assert!(
        no_path.contains("there is no object or list at /spec/x"),
        "{no_path}"
    );
    let no_kind = told(&Scripted::new(patches(|request| {
        item(request, "CloudTemplate", "JSONMergePatch", &json!({"kind": null}))
    })));
    assert!(no_kind.contains("without kind"), "{no_kind}");
    let large = told(&Scripted::new(patches(|request| {
        let patch = json!({"spec": {"x": "y".repeat(2 << 20)}});
        item(request, "CloudTemplate", "JSONMergePatch", &patch)
    })));
    assert!(large.contains("more than 1572864 bytes"), "{large}");
}

#[test]
fn of_a_patched_template_nothing_but_spec_is_taken_over() {
    let extensions = Scripted::new(|hook, request: &Value| match hook {
        Hook::GeneratePatches => {
            let patch = json!({"kind": "Other", "metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": {"made": null}}}});
            let nothing = item(request, "PlaneTemplate", "JSONMergePatch", &json!({}));
            let items = [nothing, item(request, "CloudTemplate", "JSONMergePatch", &patch)];
            Some(Ok(json!({"status": "Success", "items": items})))
        }
        _ => usual(hook, request),
    });
    let class = CLASS.replace(
        "{op: replace, path: /spec/template/spec/made, value: after}",
        "{op: add, path: /spec/template/spec/x, value: z}",
    );
    let planned = planned(&class, &json!([{"name": "size", "value": 1}]), &extensions);
    assert_eq!(findings(&planned), []);
    let cloud = object(&planned, "Cloud");
    assert_eq!(cloud["spec"], json!({"zone": "a", "x": "z"}));
    assert_eq!(cloud["metadata"]["labels"]["a"], Value::Null);
    let told: Vec<String> = planned.plans[0]
        .left_out
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        told.contains(
            &"extension gen.ext patches more than spec of infrastructure-cluster, which no object takes over"
                .to_owned()
        ),
        "{told:?}"
    );
}

#[test]
fn extensions_are_validated_as_by_the_webhook() {
    let told = |external: &str| {
        let class = CLASS
            .replace("      generatePatchesExtension: gen.ext\n", "")
            .replace("validateTopologyExtension: val.ext", external);
        findings(&planned(&class, &json!([]), &NoExtensions))
    };
    assert_eq!(told("")[0].0, "external");
    assert_eq!(
        told("generateExtension: gen.ext")[0].0,
        "unknown-field",
        "v1beta1's name"
    );
    let only_judges = told("validateTopologyExtension: val.ext");
    assert_eq!(only_judges[0].0, "extension");
    assert!(only_judges[0].1.contains("gives up Clusters"), "{only_judges:?}");
    let older = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: ClusterClass\nmetadata: {name: k}\nspec:\n  \
        infrastructure: {ref: {apiVersion: i.x/v1, kind: CloudTemplate, name: t}}\n  \
        controlPlane: {ref: {apiVersion: i.x/v1, kind: CloudTemplate, name: t}}\n  \
        patches: [{name: made, external: {generateExtension: gen.ext}}]\n---\n\
        {apiVersion: i.x/v1, kind: CloudTemplate, metadata: {name: t}}\n";
    let text = format!(
        "{older}{}",
        cluster(&json!([]))
            .split("    workers")
            .next()
            .unwrap_or_default()
    );
    let planned = Preview(&NoExtensions)
        .plans(&[("f.yaml".to_owned(), text.into_bytes())], None)
        .expect("files");
    assert_eq!(findings(&planned), [], "the extension would add spec.template");
}

#[test]
fn an_upgrade_plan_and_hooks_are_named() {
    let class = CLASS.replace(
        "  variables:\n",
        "  upgrade: {external: {generateUpgradePlanExtension: plan.ext}}\n  variables:\n",
    );
    let text = format!("{class}{}", cluster(&json!([])));
    let text = text.replace(
        "metadata: {name: c}",
        "metadata: {name: c, annotations: {before-upgrade.hook.cluster.cluster.x-k8s.io/x: ''}}",
    );
    let planned = Preview(&NoExtensions)
        .plans(&[("f.yaml".to_owned(), text.into_bytes())], None)
        .expect("files");
    assert_eq!(findings(&planned), []);
    let told: Vec<String> = planned.plans[0]
        .left_out
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        told[1..3],
        [
            "upgrades are planned without extension plan.ext, which is never called",
            "annotation before-upgrade.hook.cluster.cluster.x-k8s.io/x holds upgrades until it is removed; they are \
             planned as if it were",
        ]
    );
}

/// A patch behind an external one may change what that one adds.
#[test]
fn an_inline_patch_that_needs_a_missing_one_is_passed_over() {
    let class = CLASS.replace(
        "{op: replace, path: /spec/template/spec/made, value: after}",
        "{op: add, path: /spec/template/spec/list/-, value: after}",
    );
    let of = |class: &str| planned(class, &json!([]), &NoExtensions);
    let planned = of(&class);
    assert_eq!(findings(&planned), []);
    let told: Vec<String> = planned.plans[0]
        .left_out
        .iter()
        .map(ToString::to_string)
        .collect();
    let line = "patch after is not applied to infrastructure-cluster: add: there is no object or list at \
                /spec/template/spec/list; add it first; extension gen.ext, which was not asked, may add it; give \
                --extension ext=URL";
    assert!(told.contains(&line.to_owned()), "{told:?}");
    let before = class.replace(
        "{op: add, path: /spec/template/spec/zone, valueFrom: {variable: zone}}",
        "{op: replace, path: /spec/template/spec/zone, value: b}",
    );
    let told = findings(&of(&before));
    assert_eq!(told[0].0, "not-applicable", "nothing is missing before it");
}
