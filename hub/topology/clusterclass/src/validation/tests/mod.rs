//! Every rule by its name: what it takes, and what it tells of what it does not take.

mod clusters;

use serde_json::{Value, json};

use super::{super::model::Estate, validate};

/// A class that keeps every rule.
fn class() -> Value {
    let reference =
        |kind: &str| json!({"templateRef": {"apiVersion": "i.example/v1", "kind": kind, "name": "t"}});
    let worker = json!({"class": "linux", "bootstrap": reference("BTemplate"), "infrastructure": reference("MTemplate")});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": {"name": "mixed", "namespace": "bar"},
        "spec": {
            "infrastructure": reference("CTemplate"),
            "controlPlane": {
                "templateRef": {"apiVersion": "i.example/v1", "kind": "PTemplate", "name": "t"},
                "machineInfrastructure": reference("MTemplate"),
                "metadata": {"labels": {"a.example/b": "c"}},
                "healthCheck": {"checks": {"nodeStartupTimeoutSeconds": 30}},
            },
            "workers": {"machineDeployments": [worker]},
            "variables": [
                {"name": "region", "schema": {"openAPIV3Schema": {"type": "string", "maxLength": 9}}},
                {"name": "size", "required": true, "schema": {"openAPIV3Schema": {"type": "integer", "default": 1}}},
            ],
        }
    })
}

/// A cluster of it that keeps every rule.
fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "foo", "namespace": "bar", "annotations": {}},
        "spec": {"topology": {
            "classRef": {"name": "mixed"}, "version": "v1.30.1", "controlPlane": {},
            "workers": {"machineDeployments": [{"class": "linux", "name": "big"}]},
            "variables": [{"name": "region", "value": "here"}],
        }}
    })
}

fn estate(objects: &[&Value]) -> Estate {
    let mut estate = Estate::default();
    for object in objects {
        estate.add("f.yaml", &object.to_string());
    }
    estate
}

fn told(new: &[&Value], old: Option<&[&Value]>) -> Vec<(&'static str, String)> {
    let found = validate(&estate(new), old.map(estate).as_ref());
    found
        .into_iter()
        .map(|finding| (finding.rule, finding.field))
        .collect()
}

/// Sets a field by its JSON pointer's parent and name.
fn with(mut object: Value, parent: &str, name: &str, value: Value) -> Value {
    let parent = object
        .pointer_mut(parent)
        .unwrap_or_else(|| panic!("no {parent}"));
    match (parent, name.parse::<usize>()) {
        (Value::Array(items), Ok(at)) if at == items.len() => items.push(value),
        (parent, Ok(at)) if parent.is_array() => parent[at] = value,
        (parent, _) => parent[name] = value,
    }
    object
}

fn without(mut object: Value, parent: &str, name: &str) -> Value {
    object
        .pointer_mut(parent)
        .and_then(Value::as_object_mut)
        .and_then(|parent| parent.remove(name))
        .unwrap_or_else(|| panic!("no {name}"));
    object
}

/// Findings about a class with one field set.
fn of_class(parent: &str, name: &str, value: Value) -> Vec<(&'static str, String)> {
    told(&[&with(class(), parent, name, value)], None)
}

/// Findings about a cluster with one field set.
fn of_cluster(parent: &str, name: &str, value: Value) -> Vec<(&'static str, String)> {
    told(&[&class(), &with(cluster(), parent, name, value)], None)
}

fn one(rule: &'static str, field: &str) -> Vec<(&'static str, String)> {
    vec![(rule, field.to_owned())]
}

const WORKER: &str = "/spec/workers/machineDeployments/0";
const AT_WORKER: &str = "spec.workers.machineDeployments[0]";
const OF_CLUSTER: &str = "/spec/topology/workers/machineDeployments/0";
const AT_CLUSTERS: &str = "spec.topology.workers.machineDeployments[0]";

#[test]
fn what_keeps_every_rule_is_not_told_of() {
    assert_eq!(told(&[&class(), &cluster()], None), []);
    assert_eq!(told(&[&class(), &cluster()], Some(&[&class(), &cluster()])), []);
}

#[test]
fn template_reference() {
    let parent = format!("{WORKER}/bootstrap/templateRef");
    for (name, bad) in [
        ("name", ""),
        ("apiVersion", ""),
        ("kind", "B"),
        ("kind", "Template"),
    ] {
        assert_eq!(
            of_class(&parent, name, json!(bad)),
            one(
                "template-reference",
                &format!("{AT_WORKER}.bootstrap.templateRef.{name}")
            )
        );
    }
    let older = |namespace: &str| {
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass", "metadata": {"name": "a", "namespace": "bar"},
            "spec": {"infrastructure": {"ref": {"apiVersion": "i/v1", "kind": "CTemplate", "name": "t", "namespace": namespace}},
            "controlPlane": {"ref": {"apiVersion": "i/v1", "kind": "PTemplate", "name": "t"}}}})
    };
    assert_eq!(told(&[&older("bar")], None), []);
    let bad = one("template-reference", "spec.infrastructure.ref.namespace");
    assert_eq!(told(&[&older("other")], None), bad);
}

#[test]
fn worker_class_unique() {
    let worker = class().pointer(WORKER).cloned().unwrap();
    let at = "/spec/workers/machineDeployments";
    let other = with(worker.clone(), "", "class", json!("windows"));
    assert_eq!(of_class(at, "1", other), []);
    let field = "spec.workers.machineDeployments[1].class";
    assert_eq!(
        of_class(at, "1", worker.clone()),
        one("worker-class-unique", field)
    );
    let unnamed = with(worker, "", "class", json!(""));
    assert_eq!(of_class(at, "1", unnamed), one("worker-class-unique", field));
}

#[test]
fn rollout_strategy() {
    let rolling = |surge: Value, unavailable: Value| json!({"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}});
    let at = format!("{AT_WORKER}.rollout.strategy");
    assert_eq!(of_class(WORKER, "rollout", rolling(json!(1), json!("0%"))), []);
    for none in [json!(0), json!("0%")] {
        let told = of_class(WORKER, "rollout", rolling(json!(0), none));
        assert_eq!(told, one("rollout-strategy", &at));
    }
    for bad in [json!("1"), json!(-1), json!("%"), json!(1.5), json!(true)] {
        let told = of_class(WORKER, "rollout", rolling(bad, json!(1)));
        assert_eq!(
            told,
            one("rollout-strategy", &format!("{at}.rollingUpdate.maxSurge"))
        );
    }
}

#[test]
fn health_check() {
    let check = |startup: i64| json!({"checks": {"nodeStartupTimeoutSeconds": startup}});
    let at = format!("{AT_WORKER}.healthCheck");
    for good in [0, 30] {
        assert_eq!(of_class(WORKER, "healthCheck", check(good)), []);
    }
    for bad in [29, -1] {
        assert_eq!(
            of_class(WORKER, "healthCheck", check(bad)),
            one("health-check", &format!("{at}.checks.nodeStartupTimeoutSeconds"))
        );
    }
    let quantity =
        json!({"remediation": {"maxInFlight": "x", "triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}}});
    let told_of = of_class(WORKER, "healthCheck", quantity);
    assert_eq!(
        told_of,
        one("health-check", &format!("{at}.remediation.maxInFlight"))
    );
    let bare = without(class(), "/spec/controlPlane", "machineInfrastructure");
    assert_eq!(
        told(&[&bare], None),
        one("health-check", "spec.controlPlane.healthCheck")
    );
    assert_eq!(
        told(&[&without(bare, "/spec/controlPlane", "healthCheck")], None),
        []
    );
}

#[test]
fn naming_template() {
    let naming = |template: &str| json!({"template": template});
    let at = "spec.controlPlane.naming.template";
    for good in ["{{ .cluster.name }}-{{ .random }}", "a"] {
        assert_eq!(of_class("/spec/controlPlane", "naming", naming(good)), []);
    }
    for bad in [
        "{{ .cluster.nam }}",
        "{{",
        "A",
        "-a",
        "{{ .machineDeployment.topologyName }}",
        "a-",
    ] {
        assert_eq!(
            of_class("/spec/controlPlane", "naming", naming(bad)),
            one("naming-template", at),
            "{bad}"
        );
    }
    let of_worker = naming("{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}");
    assert_eq!(of_class(WORKER, "naming", of_worker), []);
}

#[test]
fn metadata() {
    let labels = |key: &str, value: &str| json!({"labels": {key: value}});
    assert_eq!(of_class(WORKER, "metadata", labels("a.example/B_c", "")), []);
    for (key, value) in [
        ("", ""),
        ("a b", ""),
        ("A.example/b", ""),
        ("a", "-"),
        ("a", "x".repeat(64).as_str()),
    ] {
        let field = format!("{AT_WORKER}.metadata.labels[{key}]");
        assert_eq!(
            of_class(WORKER, "metadata", labels(key, value)),
            one("metadata", &field)
        );
    }
    assert_eq!(
        of_class(
            WORKER,
            "metadata",
            json!({"annotations": {"A.example/b": "any\ntext"}})
        ),
        []
    );
    let field = format!("{AT_CLUSTERS}.metadata.annotations[a//b]");
    let annotations = json!({"annotations": {"a//b": ""}});
    assert_eq!(
        of_cluster(OF_CLUSTER, "metadata", annotations),
        one("metadata", &field)
    );
}

/// The cases of upstream's "fail on invalid variable label" and "... XMetadata label", and those of annotations.
#[test]
fn metadata_of_variables() {
    const SCHEMA: &str = "spec.variables[0].schema.openAPIV3Schema";
    let bad = || json!({".label-key": "v"});
    for of in ["labels", "annotations"] {
        let variable = json!([{"name": "v", "deprecatedV1Beta1Metadata": {of: bad()}, "schema": {"openAPIV3Schema": {"type": "string"}}}]);
        let field = format!("spec.variables[0].deprecatedV1Beta1Metadata.{of}[.label-key]");
        assert_eq!(of_class("/spec", "variables", variable), one("metadata", &field));
        let marked = json!({"type": "string", "x-metadata": {of: bad()}});
        for (schema, at) in [
            (marked.clone(), ""),
            (
                json!({"type": "object", "additionalProperties": marked}),
                ".additionalProperties",
            ),
            (
                json!({"type": "object", "properties": {"a": marked}}),
                ".properties[a]",
            ),
            (json!({"type": "array", "items": marked}), ".items"),
        ] {
            let variables = json!([{"name": "v", "schema": {"openAPIV3Schema": schema}}]);
            let field = format!("{SCHEMA}{at}.x-metadata.{of}[.label-key]");
            assert_eq!(of_class("/spec", "variables", variables), one("metadata", &field));
        }
    }
    let good = json!({"type": "string", "x-metadata": {"labels": {"label-key": "label-value"}, "annotations": {"annotation-key": "x y"}}});
    let variables = json!([{"name": "v", "schema": {"openAPIV3Schema": good}}]);
    assert_eq!(of_class("/spec", "variables", variables), []);
}

fn taint(key: &str) -> Value {
    json!({"key": key, "effect": "NoSchedule", "propagation": "Always"})
}

#[test]
fn taints() {
    const RULE: &str = "taints";
    const PLANE: &str = "/spec/controlPlane";
    for good in [
        json!([]),
        json!([taint("example.org/a")]),
        json!([taint("node.kubernetes.io/out-of-service")]),
        json!([taint("a"), with(taint("a"), "", "effect", json!("NoExecute"))]),
        json!([with(taint("a"), "", "value", json!("b"))]),
    ] {
        assert_eq!(of_class(WORKER, "taints", good.clone()), [], "{good}");
    }
    let control_plane = json!([taint("node-role.kubernetes.io/control-plane")]);
    assert_eq!(of_class(PLANE, "taints", control_plane.clone()), []);
    let key = format!("{AT_WORKER}.taints[0].key");
    assert_eq!(of_class(WORKER, "taints", control_plane), one(RULE, &key));
    for bad in [
        "",
        "a b",
        "node.cluster.x-k8s.io/uninitialized",
        "node.cluster.x-k8s.io/outdated-revision",
        "node-role.kubernetes.io/master",
        "node.kubernetes.io/not-ready",
        "node.cloudprovider.kubernetes.io/uninitialized",
    ] {
        assert_eq!(
            of_class(WORKER, "taints", json!([taint(bad)])),
            one(RULE, &key),
            "{bad}"
        );
        let told = of_class(PLANE, "taints", json!([taint(bad)]));
        assert_eq!(told, one(RULE, "spec.controlPlane.taints[0].key"), "{bad}");
    }
    for (name, value) in [
        ("value", json!("-")),
        ("value", json!(1)),
        ("effect", json!("NoRun")),
        ("propagation", Value::Null),
    ] {
        let field = format!("{AT_WORKER}.taints[0].{name}");
        let wrong = json!([with(taint("a"), "", name, value)]);
        assert_eq!(of_class(WORKER, "taints", wrong), one(RULE, &field));
    }
    let twice = json!([taint("a"), taint("a")]);
    let field = format!("{AT_WORKER}.taints[1]");
    assert_eq!(of_class(WORKER, "taints", twice), one(RULE, &field));
    let many: Vec<Value> = (0..65).map(|number| taint(&format!("k{number}"))).collect();
    let at = format!("{AT_WORKER}.taints");
    assert_eq!(of_class(WORKER, "taints", json!(many)), one(RULE, &at));
    assert_eq!(of_class(WORKER, "taints", json!({})), one(RULE, &at));
}

#[test]
fn kubernetes_versions() {
    // Builds with words may stand in any order, as upstream has them; numbers must rise.
    for good in [
        json!(["v1.29.1", "v1.29.2", "v1.30.1"]),
        json!(["v1.31.0+foo.1-bar.1", "v1.31.0+foo.2-bar.1"]),
        json!(["v1.31.0+foo.2-bar.1", "v1.31.0+foo.1-bar.1"]),
        json!(["v1.31.0+a.1", "v1.31.0+a.2"]),
    ] {
        assert_eq!(of_class("/spec", "kubernetesVersions", good), []);
    }
    for same in [
        json!(["v1.31.0+a", "v1.31.0+a"]),
        json!(["v1.31.0+a.2", "v1.31.0+a.1"]),
    ] {
        let told = of_class("/spec", "kubernetesVersions", same);
        assert_eq!(told, one("kubernetes-versions", "spec.kubernetesVersions[1]"));
    }
    for bad in ["v1.29.1", "v1.28.9", "v1.31.0", "v2.0.0", "1.30"] {
        let told = of_class("/spec", "kubernetesVersions", json!(["v1.29.1", bad]));
        assert_eq!(
            told,
            one("kubernetes-versions", "spec.kubernetesVersions[1]"),
            "{bad}"
        );
    }
}

/// Findings about the change of a class that a cluster uses.
fn changed(old: &Value, new: &Value, cluster: &Value) -> Vec<(&'static str, String)> {
    told(&[new, cluster], Some(&[old, cluster]))
}

#[test]
fn template_kind_kept() {
    let kind = "template-kind-kept";
    let set = |parent: &str, name: &str, value: &str| with(class(), parent, name, json!(value));
    for (parent, field) in [
        (
            "/spec/infrastructure/templateRef",
            "spec.infrastructure.templateRef".to_owned(),
        ),
        (
            "/spec/controlPlane/templateRef",
            "spec.controlPlane.templateRef".to_owned(),
        ),
        (
            "/spec/controlPlane/machineInfrastructure/templateRef",
            "spec.controlPlane.machineInfrastructure.templateRef".to_owned(),
        ),
        (
            "/spec/workers/machineDeployments/0/infrastructure/templateRef",
            format!("{AT_WORKER}.infrastructure.templateRef"),
        ),
    ] {
        assert_eq!(
            changed(&class(), &set(parent, "kind", "XTemplate"), &cluster()),
            one(kind, &field)
        );
        assert_eq!(
            changed(&class(), &set(parent, "apiVersion", "x/v1"), &cluster()),
            one(kind, &field)
        );
        assert_eq!(
            changed(&class(), &set(parent, "apiVersion", "i.example/v2"), &cluster()),
            []
        );
        assert_eq!(changed(&class(), &set(parent, "name", "other"), &cluster()), []);
    }
    let bootstrap = set(&format!("{WORKER}/bootstrap/templateRef"), "kind", "XTemplate");
    assert_eq!(changed(&class(), &bootstrap, &cluster()), []);
    let watched = without(class(), "/spec/controlPlane", "healthCheck");
    let bare = without(watched.clone(), "/spec/controlPlane", "machineInfrastructure");
    let told = one(kind, "spec.controlPlane.machineInfrastructure");
    assert_eq!(changed(&watched, &bare, &cluster()), told);
    assert_eq!(changed(&bare, &watched, &cluster()), told);
}

#[test]
fn a_class_of_pools_in_use() {
    let pool = |kind: &str| {
        let reference =
            |kind: &str| json!({"templateRef": {"apiVersion": "i/v1", "kind": kind, "name": "t"}});
        json!({"class": "spot", "bootstrap": reference("BTemplate"), "infrastructure": reference(kind)})
    };
    let with_pools = |pools: Value| with(class(), "/spec/workers", "machinePools", pools);
    let offers = with_pools(json!([pool("PTemplate")]));
    let user = with(
        cluster(),
        "/spec/topology/workers",
        "machinePools",
        json!([{"class": "spot", "name": "p"}]),
    );
    assert_eq!(changed(&offers, &class(), &cluster()), [], "nobody uses it");
    let told = changed(&offers, &class(), &user);
    assert_eq!(
        told[0],
        ("worker-class-in-use", "spec.workers.machinePools".to_owned())
    );
    // Of a pool the kind of its infrastructure stays, as upstream's webhook has it.
    let other = changed(&offers, &with_pools(json!([pool("QTemplate")])), &user);
    assert_eq!(other[0].0, "template-kind-kept");
    let twice = with_pools(json!([pool("PTemplate"), pool("PTemplate")]));
    let at = "spec.workers.machinePools[1].class";
    assert_eq!(self::told(&[&twice], None), one("worker-class-unique", at));
    // A deployment and a pool may have one name.
    let mut named = pool("PTemplate");
    named["class"] = json!("linux");
    assert_eq!(self::told(&[&with_pools(json!([named]))], None), []);
}

#[test]
fn worker_class_in_use() {
    let none = with(class(), "/spec/workers", "machineDeployments", json!([]));
    let unused = with(cluster(), "/spec/topology", "workers", json!({}));
    assert_eq!(changed(&class(), &none, &unused), []);
    let told = changed(&class(), &none, &cluster());
    assert_eq!(
        told[0],
        (
            "worker-class-in-use",
            "spec.workers.machineDeployments".to_owned()
        )
    );
}

#[test]
fn health_check_in_use() {
    let none = without(class(), "/spec/controlPlane", "healthCheck");
    assert_eq!(changed(&class(), &none, &cluster()), []);
    let relying = with(
        cluster(),
        "/spec/topology/controlPlane",
        "healthCheck",
        json!({"enabled": true}),
    );
    assert_eq!(changed(&class(), &class(), &relying), []);
    let told = changed(&class(), &none, &relying);
    assert_eq!(told[0], ("health-check-in-use", "spec.controlPlane".to_owned()));
    let watched = with(class(), WORKER, "healthCheck", json!({"checks": {}}));
    let relying = with(cluster(), OF_CLUSTER, "healthCheck", json!({"enabled": true}));
    let told = changed(&watched, &class(), &relying);
    assert_eq!(told[0], ("health-check-in-use", AT_WORKER.to_owned()));
}

#[test]
fn version_in_use_and_listed() {
    let listing = |versions: Value| with(class(), "/spec", "kubernetesVersions", versions);
    assert_eq!(
        changed(&class(), &listing(json!(["v1.30.1", "v1.31.0"])), &cluster()),
        []
    );
    let told_of = changed(&class(), &listing(json!(["v1.31.0"])), &cluster());
    assert_eq!(
        told_of,
        [
            ("version-in-use", "spec.kubernetesVersions".to_owned()),
            ("version-listed", "spec.topology.version".to_owned())
        ]
    );
}

#[test]
fn variable_in_use() {
    const RULE: &str = "variable-in-use";
    let rule = |told: Vec<(&'static str, String)>| -> Vec<String> {
        told.into_iter()
            .filter(|(rule, _)| *rule == RULE)
            .map(|(_, field)| field)
            .collect()
    };
    let removed = with(class(), "/spec", "variables", json!([]));
    assert_eq!(rule(changed(&class(), &removed, &cluster())), ["spec.variables"]);
    let unused = with(cluster(), "/spec/topology", "variables", json!([]));
    assert_eq!(rule(changed(&class(), &removed, &unused)), Vec::<String>::new());
    let schema = "/spec/variables/0/schema/openAPIV3Schema";
    let altered = with(class(), schema, "maxLength", json!(3));
    let at_schema = ["spec.variables[0].schema.openAPIV3Schema"];
    assert_eq!(rule(changed(&class(), &altered, &cluster())), at_schema);
    assert_eq!(
        rule(changed(
            &class(),
            &with(class(), schema, "maxLength", json!(4)),
            &cluster()
        )),
        Vec::<String>::new()
    );
    assert_eq!(rule(changed(&removed, &altered, &cluster())), at_schema);
    let overriding = with(
        unused.clone(),
        OF_CLUSTER,
        "variables",
        json!({"overrides": [{"name": "region", "value": "long"}]}),
    );
    assert_eq!(rule(changed(&class(), &altered, &overriding)), at_schema);
    let required = with(class(), "/spec/variables/0", "required", json!(true));
    assert_eq!(
        rule(changed(&class(), &required, &cluster())),
        Vec::<String>::new()
    );
    assert_eq!(
        rule(changed(&class(), &required, &unused)),
        ["spec.variables[0].required"]
    );
}

#[test]
fn class_in_use() {
    let plain = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "foo", "namespace": "bar"},
        "spec": {"infrastructureRef": {"name": "a"}}});
    assert_eq!(told(&[&plain], Some(&[&class()])), []);
    assert_eq!(
        told(&[&cluster()], Some(&[&class(), &cluster()])),
        [
            ("class-in-use", "metadata.name".to_owned()),
            ("class-exists", "spec.topology.classRef.name".to_owned())
        ]
    );
}

#[test]
fn patches_of_a_class() {
    let patch = |path: &str, kind: &str| {
        json!([{"name": "p", "definitions": [{
            "selector": {"apiVersion": "i.example/v1", "kind": kind, "matchResources": {"infrastructureCluster": true}},
            "jsonPatches": [{"op": "add", "path": path, "valueFrom": {"variable": "region"}}],
        }]}])
    };
    let told = |patches| of_class("/spec", "patches", patches);
    assert_eq!(told(patch("/spec/template/spec/region", "CTemplate")), []);
    let at = "spec.patches[0].definitions[0]";
    assert_eq!(
        told(patch("/status/region", "CTemplate")),
        one("path-outside-spec", &format!("{at}.jsonPatches[0].path"))
    );
    assert_eq!(
        told(json!([{"name": "p", "external": {"generatePatchesExtension": "x"}, "other": 1}])),
        [
            ("unknown-field", "spec.patches[0].other".to_owned()),
            ("left-out", "spec.patches[0].external".to_owned()),
        ]
    );
}
