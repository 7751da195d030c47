//! Both spellings mean the same; unsupported and unknown fields are reported with their path.

use serde_json::json;

use super::{limits::MAX_VARIABLES, *};

const OLDER: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: mixed, namespace: bar}
spec:
  infrastructure: {ref: {apiVersion: i/v1, kind: CTemplate, name: c}}
  infrastructureNamingStrategy: {template: "{{ .cluster.name }}"}
  controlPlane:
    ref: {apiVersion: p/v1, kind: PTemplate, name: p}
    machineInfrastructure: {ref: {apiVersion: i/v1, kind: MTemplate, name: m}}
    machineHealthCheck: {nodeStartupTimeout: 3m, maxUnhealthy: 33%}
  workers:
    machineDeployments:
    - class: linux
      template:
        metadata: {labels: {a: b}}
        bootstrap: {ref: {apiVersion: b/v1, kind: BTemplate, name: b}}
        infrastructure: {ref: {apiVersion: i/v1, kind: MTemplate, name: m}}
      strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
"#;

const NEWER: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: mixed, namespace: bar}
spec:
  infrastructure:
    templateRef: {apiVersion: i/v1, kind: CTemplate, name: c}
    naming: {template: "{{ .cluster.name }}"}
  controlPlane:
    templateRef: {apiVersion: p/v1, kind: PTemplate, name: p}
    machineInfrastructure: {templateRef: {apiVersion: i/v1, kind: MTemplate, name: m}}
    healthCheck:
      checks: {nodeStartupTimeoutSeconds: 180}
      remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 33%}}
  workers:
    machineDeployments:
    - class: linux
      metadata: {labels: {a: b}}
      bootstrap: {templateRef: {apiVersion: b/v1, kind: BTemplate, name: b}}
      infrastructure: {templateRef: {apiVersion: i/v1, kind: MTemplate, name: m}}
      rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}
"#;

fn read(text: &str) -> Estate {
    let mut estate = Estate::default();
    estate.add("f.yaml", text);
    estate
}

fn told(estate: &Estate) -> Vec<(&str, &str)> {
    estate
        .findings
        .iter()
        .map(|finding| (finding.rule, finding.field.as_str()))
        .collect()
}

#[test]
fn both_spellings_of_a_class_mean_the_same() {
    let (older, newer) = (read(OLDER), read(NEWER));
    assert_eq!(told(&older), []);
    assert_eq!(told(&newer), []);
    let key = ("bar".to_owned(), "mixed".to_owned());
    let (older, newer) = (&older.classes[&key], &newer.classes[&key]);
    assert_eq!(older.infrastructure.group_kind(), ("i", "CTemplate"));
    let naming = |class: &Class| class.infrastructure_naming.clone().unwrap().value;
    assert_eq!(naming(older), naming(newer));
    let check = |class: &Class| {
        let check = class.control_plane.health_check.clone().unwrap();
        (
            check.startup_seconds.unwrap().value,
            check.quantities[0].value.clone(),
        )
    };
    assert_eq!(check(older), (180, "33%".into()));
    assert_eq!(check(older), check(newer));
    let worker = |class: &Class| {
        let worker = class.worker("linux").unwrap();
        let surge = worker.rollout.clone().unwrap().max_surge.unwrap().value;
        (
            worker.metadata.labels.clone(),
            worker.bootstrap.kind.clone(),
            surge,
        )
    };
    assert_eq!(worker(older), worker(newer));
    assert_eq!(worker(older).1, "BTemplate");
}

#[test]
fn both_spellings_of_a_cluster_mean_the_same() {
    let older = read(
        "{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: foo}, spec: {topology: {class: c, \
        classNamespace: n, version: v1.30.0, controlPlane: {machineHealthCheck: {enable: true}, rollout: {after: a}, taints: [{key: k}]}, \
        workers: {machineDeployments: [{class: w, name: n, rollout: {after: a}, strategy: {type: OnDelete}, \
        taints: [{key: k}]}]}}}}",
    );
    let newer = read(
        "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: foo}, spec: {topology: {classRef: \
        {name: c, namespace: n}, version: v1.30.0, controlPlane: {healthCheck: {enabled: true}, rollout: {after: a}, \
        taints: [{key: k}]}, workers: {machineDeployments: [{class: w, name: n, \
        rollout: {after: a, strategy: {type: OnDelete}}, taints: [{key: k}]}]}}}}",
    );
    for estate in [older, newer] {
        assert_eq!(told(&estate), []);
        let (_, topology) = estate.users(&("n".to_owned(), "c".to_owned())).next().unwrap();
        assert_eq!(topology.version.value, "v1.30.0");
        let check = topology.control_plane.health_check.as_ref().unwrap();
        assert_eq!((check.enabled, check.defined), (Some(true), false));
        let settings = |settings: &Settings| Value::Object(settings.0.clone());
        let taints = json!([{"key": "k"}]);
        assert_eq!(
            settings(&topology.control_plane.settings),
            json!({"rollout": {"after": "a"}, "taints": taints})
        );
        assert_eq!(
            settings(&topology.workers[0].settings),
            json!({"rollout": {"after": "a", "strategy": {"type": "OnDelete"}}, "taints": taints})
        );
    }
}

#[test]
fn a_class_is_named_in_either_spelling() {
    let named = |topology: Value| class_of(&topology, "ns");
    let pair = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
    assert_eq!(named(json!({"classRef": {"name": "c"}})), pair("ns", "c"));
    assert_eq!(
        named(json!({"classRef": {"name": "c", "namespace": "x"}})),
        pair("x", "c")
    );
    assert_eq!(named(json!({"class": "c"})), pair("ns", "c"));
    assert_eq!(
        named(json!({"class": "c", "classNamespace": "x"})),
        pair("x", "c")
    );
    assert_eq!(
        named(json!({"classRef": {"name": "c", "namespace": ""}})),
        pair("ns", "c")
    );
    assert_eq!(named(json!({})), pair("ns", ""));
}

#[test]
fn the_proposals_labels_beside_metadata_are_told() {
    let estate = read(
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: foo}\nspec:\n  topology:\n    \
        class: mixed\n    version: v1.19.1\n    controlPlane: {replicas: 3, labels: {}, annotations: {}}\n    \
        workers:\n      machineDeployments:\n      - {class: a, name: b, labels: {c: d}}\n",
    );
    assert_eq!(
        told(&estate),
        [
            ("unknown-field", "spec.topology.controlPlane.annotations"),
            ("unknown-field", "spec.topology.controlPlane.labels"),
            (
                "unknown-field",
                "spec.topology.workers.machineDeployments[0].labels"
            ),
        ]
    );
}

#[test]
fn what_is_left_out_is_refused_with_its_field() {
    let estate = read(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: a}\nspec:\n  \
        patches: [{name: p, external: {generatePatchesExtension: x}}]\n  workers: {machinePools: [{class: p}]}\n  \
        upgrade: {external: {}}\n---\n\
        apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  name: c\n  \
        annotations: {before-upgrade.hook.cluster.cluster.x-k8s.io/x: ''}\nspec:\n  topology:\n    \
        variables: [{name: v, definitionFrom: x, value: 1}]\n    workers: {machinePools: [{}]}\n",
    );
    assert!(
        estate.classes.values().all(|class| class.offers_machine_pools),
        "it may offer what nobody uses"
    );
    assert_eq!(
        told(&estate),
        [
            ("left-out", "spec.upgrade"),
            ("left-out", "spec.patches[0].external"),
            (
                "left-out",
                "metadata.annotations[before-upgrade.hook.cluster.cluster.x-k8s.io/x]"
            ),
            ("left-out", "spec.topology.workers.machinePools"),
            ("left-out", "spec.topology.variables[0].definitionFrom"),
        ]
    );
}

#[test]
fn ten_thousand_variables_are_told_and_the_rest_goes_on() {
    let many = "{name: a}, ".repeat(10_000);
    let estate = read(&format!(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {{name: a}}\nspec: {{variables: [{many}], \
        x: 1}}\n---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {{name: c}}\nspec: {{}}\n"
    ));
    assert_eq!(
        told(&estate),
        [("unknown-field", "spec.x"), ("bound", "spec.variables")]
    );
    assert!(estate.findings[1].message.contains(&MAX_VARIABLES.to_string()));
    assert_eq!(estate.clusters.len(), 1);
}

#[test]
fn a_class_of_a_megabyte_is_told_and_the_next_document_is_read() {
    let large = "x".repeat(1_000_000);
    let estate = read(&format!(
        "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {{name: a}}\nspec: {{x: {large}}}\n---\n{NEWER}"
    ));
    assert_eq!(told(&estate), [("document", ".")]);
    assert_eq!(estate.findings[0].object, "document 1");
    assert_eq!(estate.classes.len(), 1);
}

#[test]
fn other_kinds_are_passed_over_and_other_texts_are_not() {
    let estate = read(
        "{apiVersion: i/v1, kind: X}\n---\n[1]\n---\n{apiVersion: cluster.x-k8s.io/v1, kind: Cluster, metadata: {name: a}}\n\
        ---\n{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster}\n",
    );
    assert_eq!(
        told(&estate),
        [
            ("document", "."),
            ("document", "apiVersion"),
            ("document", "metadata.name")
        ]
    );
}
