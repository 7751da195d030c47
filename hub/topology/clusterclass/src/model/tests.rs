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
        let worker = class.worker(WorkerKind::MachineDeployment, "linux").unwrap();
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
        patches: [{name: p, external: {generatePatchesExtension: x}}]\n  \
        upgrade: {external: {}}\n---\n\
        apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata:\n  name: c\n  \
        annotations: {before-upgrade.hook.cluster.cluster.x-k8s.io/x: ''}\nspec:\n  topology:\n    \
        variables: [{name: v, definitionFrom: x, value: 1}]\n",
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
            ("left-out", "spec.topology.variables[0].definitionFrom"),
        ]
    );
}

#[test]
fn machine_pools_of_both_spellings_are_one() {
    let pools = |version: &str, class: &str, pool: &str| {
        read(&format!(
            "apiVersion: cluster.x-k8s.io/{version}\nkind: ClusterClass\nmetadata: {{name: k}}\nspec: {{workers: \
            {{machineDeployments: [{{class: a}}], machinePools: [{class}]}}}}\n---\napiVersion: \
            cluster.x-k8s.io/{version}\nkind: Cluster\nmetadata: {{name: c}}\nspec: {{topology: {{workers: \
            {{machinePools: [{pool}]}}}}}}\n"
        ))
    };
    let older = pools(
        "v1beta1",
        "{class: a, template: {metadata: {labels: {l: '1'}}, bootstrap: {ref: {kind: B}}, infrastructure: {ref: {kind: \
         I}}}, failureDomains: [x], namingStrategy: {template: t}, nodeDrainTimeout: 1m, taints: [{key: k}], \
         minReadySeconds: 3}",
        "{class: a, name: p, failureDomains: [y], nodeDeletionTimeout: 5s, replicas: 2, variables: {overrides: [{name: \
         v, value: 1}]}}",
    );
    let newer = pools(
        "v1beta2",
        "{class: a, metadata: {labels: {l: '1'}}, bootstrap: {templateRef: {kind: B}}, infrastructure: {templateRef: \
         {kind: I}}, failureDomains: [x], naming: {template: t}, deletion: {nodeDrainTimeoutSeconds: 60}, taints: \
         [{key: k}], minReadySeconds: 3}",
        "{class: a, name: p, failureDomains: [y], deletion: {nodeDeletionTimeoutSeconds: 5}, replicas: 2, variables: \
         {overrides: [{name: v, value: 1}]}}",
    );
    for estate in [&older, &newer] {
        assert_eq!(told(estate), []);
        let class = estate.classes.values().next().expect("a class");
        let pool = class.worker(WorkerKind::MachinePool, "a").expect("its pools");
        assert_eq!(pool.field, "spec.workers.machinePools[0]");
        assert_eq!(
            (pool.bootstrap.kind.as_str(), pool.machines.kind.as_str()),
            ("B", "I")
        );
        assert_eq!(pool.metadata.labels["l"], "1");
        assert_eq!(pool.naming.as_ref().map(|one| one.value.as_str()), Some("t"));
        assert_eq!(
            pool.settings.get("deletion"),
            Some(&json!({"nodeDrainTimeoutSeconds": 60}))
        );
        assert_eq!(pool.settings.get("failureDomains"), Some(&json!(["x"])));
        let cluster = estate.clusters.values().next().expect("a Cluster");
        let said = &cluster.topology.as_ref().expect("a topology").workers[0];
        assert_eq!((said.kind, said.name.as_str()), (WorkerKind::MachinePool, "p"));
        assert_eq!(said.settings.get("failureDomains"), Some(&json!(["y"])));
        assert_eq!(
            said.settings.get("deletion"),
            Some(&json!({"nodeDeletionTimeoutSeconds": 5}))
        );
        assert_eq!(
            (said.replicas.as_ref().map(|one| one.value), said.overrides.len()),
            (Some(2), 1)
        );
    }
    let both = pools(
        "v1beta2",
        "{class: a, healthCheck: {}}",
        "{class: a, name: p, failureDomain: x}",
    );
    assert_eq!(
        told(&both),
        [
            ("unknown-field", "spec.workers.machinePools[0].healthCheck"),
            (
                "unknown-field",
                "spec.topology.workers.machinePools[0].failureDomain"
            ),
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
