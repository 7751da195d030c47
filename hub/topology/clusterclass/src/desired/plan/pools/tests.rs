//! Machine pools of a Cluster and their changes, by upstream's rules (Cluster API v1.13).

use serde_json::{Value, json};

use super::super::{
    super::change::Plan,
    tests::{edited, object, of, only, places, planned},
};
use crate::patch::print::yaml;

const CLASS: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: pools, namespace: ns}
spec:
  infrastructure: {templateRef: {apiVersion: infra.x/v1, kind: CloudTemplate, name: t}}
  controlPlane: {templateRef: {apiVersion: cp.x/v1, kind: PlaneTemplate, name: t}}
  workers:
    machineDeployments:
    - class: spot
      bootstrap: {templateRef: {apiVersion: boot.x/v1, kind: BootTemplate, name: t}}
      infrastructure: {templateRef: {apiVersion: infra.x/v1, kind: HostTemplate, name: t}}
    machinePools:
    - class: spot
      metadata: {labels: {tier: class, kept: "1"}, annotations: {note: class}}
      bootstrap: {templateRef: {apiVersion: boot.x/v1, kind: BootTemplate, name: t}}
      infrastructure: {templateRef: {apiVersion: infra.x/v1, kind: ScaleSetTemplate, name: t}}
      failureDomains: [a]
      naming: {template: '{{ .cluster.name }}-mp-{{ .machinePool.topologyName }}'}
      deletion: {nodeDrainTimeoutSeconds: 5, nodeDeletionTimeoutSeconds: 6}
      minReadySeconds: 7
      taints: [{key: spot, effect: NoSchedule, propagation: Always}]
  variables:
  - {name: size, required: false, schema: {openAPIV3Schema: {type: string, default: small}}}
  patches:
  - name: size
    definitions:
    - selector: {apiVersion: infra.x/v1, kind: ScaleSetTemplate, matchResources: {machinePoolClass: {names: ['sp*']}}}
      jsonPatches: [{op: add, path: /spec/template/spec/size, valueFrom: {variable: size}}]
  - name: builtin
    definitions:
    - selector: {apiVersion: boot.x/v1, kind: BootTemplate, matchResources: {machinePoolClass: {names: [spot]}}}
      jsonPatches:
      - {op: add, path: /spec/template/spec/builtin, valueFrom: {variable: builtin.machinePool}}
"#;

const TEMPLATES: &str = r#"
{apiVersion: infra.x/v1, kind: CloudTemplate, metadata: {name: t, namespace: ns}, spec: {template: {spec: {}}}}
---
{apiVersion: cp.x/v1, kind: PlaneTemplate, metadata: {name: t, namespace: ns}, spec: {template: {spec: {}}}}
---
{apiVersion: boot.x/v1, kind: BootTemplate, metadata: {name: t, namespace: ns}, spec: {template: {spec: {}}}}
---
{apiVersion: infra.x/v1, kind: HostTemplate, metadata: {name: t, namespace: ns}, spec: {template: {spec: {}}}}
---
apiVersion: infra.x/v1
kind: ScaleSetTemplate
metadata: {name: t, namespace: ns, labels: {not: taken}}
spec: {template: {metadata: {labels: {of: template}}, spec: {image: x}}}
"#;

const CLUSTER: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: ns, uid: u}
spec:
  topology:
    classRef: {name: pools}
    version: v1.31.0
    controlPlane: {}
    variables: [{name: size, value: small}]
    workers:
      machinePools:
      - class: spot
        name: mp
        replicas: 4
        metadata: {labels: {tier: topology}, annotations: {topology.cluster.x-k8s.io/defer-upgrade: ""}}
        failureDomains: [b, c]
        deletion: {nodeDrainTimeoutSeconds: 8}
        variables: {overrides: [{name: size, value: large}]}
"#;

fn labels() -> Value {
    json!({
        "tier": "topology",
        "kept": "1",
        "cluster.x-k8s.io/cluster-name": "c",
        "topology.cluster.x-k8s.io/owned": "",
        "topology.cluster.x-k8s.io/pool-name": "mp",
    })
}

/// The objects of a plan as a server would have them, the Cluster with its topology.
fn made(plan: &Plan) -> String {
    let objects = plan.objects().map(|object| {
        let mut object = object.clone();
        match object["kind"].as_str() {
            Some("Plane") => object["status"] = json!({"versions": [object["spec"]["version"]]}),
            Some("Cluster") => {
                let file = [("c.yaml".to_owned(), CLUSTER.as_bytes().to_vec())];
                let cluster = crate::patch::document::objects(&file).expect("a Cluster");
                object["spec"]["topology"] = cluster[0].1["spec"]["topology"].clone();
                object["metadata"]["uid"] = json!("u");
            }
            _ => {}
        }
        format!("---\n{}", yaml(&object))
    });
    objects.collect()
}

fn there() -> String {
    made(&only(&[CLASS, TEMPLATES, CLUSTER], None))
}

#[test]
fn a_machine_pool_is_its_class_under_its_topology() {
    let plan = only(&[CLASS, TEMPLATES, CLUSTER], None);
    assert_eq!(
        places(&plan)[3..],
        [
            "create machine-pool/mp/bootstrap",
            "create machine-pool/mp/infrastructure",
            "create machine-pool/mp"
        ]
    );
    let name = |place: &str| of(&plan, place).name.clone();
    let pool = object(&plan, "machine-pool/mp");
    assert_eq!(pool["metadata"]["name"], "c-mp-mp");
    assert_eq!(pool["metadata"]["labels"], labels());
    assert_eq!(pool["metadata"]["annotations"], json!({"note": "class"}));
    assert_eq!(
        pool["spec"],
        json!({
            "clusterName": "c",
            "replicas": 4,
            "failureDomains": ["b", "c"],
            "template": {
                "metadata": {"labels": labels(), "annotations": {"note": "class"}},
                "spec": {
                    "clusterName": "c",
                    "version": "v1.31.0",
                    "bootstrap": {"configRef": {
                        "apiGroup": "boot.x", "kind": "Boot", "name": name("machine-pool/mp/bootstrap"),
                    }},
                    "infrastructureRef": {
                        "apiGroup": "infra.x", "kind": "ScaleSet", "name": name("machine-pool/mp/infrastructure"),
                    },
                    "deletion": {"nodeDrainTimeoutSeconds": 8, "nodeDeletionTimeoutSeconds": 6},
                    "minReadySeconds": 7,
                    "taints": [{"key": "spot", "effect": "NoSchedule", "propagation": "Always"}],
                },
            },
        })
    );
}

#[test]
fn what_a_pool_refers_to_is_made_of_patched_templates() {
    let plan = only(&[CLASS, TEMPLATES, CLUSTER], None);
    let scale_set = object(&plan, "machine-pool/mp/infrastructure");
    assert_eq!(scale_set["kind"], "ScaleSet");
    assert_eq!(scale_set["spec"], json!({"image": "x", "size": "large"}));
    assert_eq!(
        scale_set["metadata"]["labels"],
        json!({
            "of": "template",
            "cluster.x-k8s.io/cluster-name": "c",
            "topology.cluster.x-k8s.io/owned": "",
            "topology.cluster.x-k8s.io/pool-name": "mp",
        })
    );
    assert_eq!(
        scale_set["metadata"]["annotations"],
        json!({
            "cluster.x-k8s.io/cloned-from-name": "t",
            "cluster.x-k8s.io/cloned-from-groupkind": "ScaleSetTemplate.infra.x",
        })
    );
    assert_eq!(scale_set["metadata"]["ownerReferences"][0]["kind"], "Cluster");
    let boot = object(&plan, "machine-pool/mp/bootstrap");
    assert_eq!(
        boot["spec"]["builtin"],
        json!({
            "class": "spot",
            "name": "c-mp-mp",
            "topologyName": "mp",
            "version": "v1.31.0",
            "replicas": 4,
            "metadata": {"labels": labels(), "annotations": {"note": "class"}},
            "bootstrap": {"configRef": {"name": boot["metadata"]["name"]}},
            "infrastructureRef": {"name": scale_set["metadata"]["name"]},
        })
    );
}

#[test]
fn a_plan_of_what_was_made_changes_nothing() {
    assert_eq!(
        places(&only(&[CLASS, TEMPLATES, &there()], None)),
        Vec::<String>::new()
    );
}

#[test]
fn the_objects_of_a_pool_change_where_they_are_and_its_machines_count_once() {
    let larger = edited(&there(), "Cluster", |one| {
        let pool = &mut one["spec"]["topology"]["workers"]["machinePools"][0];
        pool["variables"]["overrides"][0]["value"] = json!("huge");
    });
    let plan = only(&[CLASS, TEMPLATES, &larger], None);
    assert_eq!(places(&plan), ["update machine-pool/mp/infrastructure"]);
    assert_eq!(of(&plan, "machine-pool/mp/infrastructure").machines, 4);
    // Another number of machines replaces none; without a number, that of the pool counts.
    let scaled = edited(&larger, "Cluster", |one| {
        let pool = one["spec"]["topology"]["workers"]["machinePools"][0].as_object_mut();
        pool.expect("a pool").remove("replicas");
    });
    let plan = only(&[CLASS, TEMPLATES, &scaled], None);
    let machines: u64 = plan.changes.iter().map(|change| change.machines).sum();
    assert_eq!(machines, 4);
    let moved = edited(&larger, "Cluster", |one| {
        one["spec"]["topology"]["workers"]["machinePools"][0]["failureDomains"] = json!(["d"]);
    });
    let plan = only(&[CLASS, TEMPLATES, &moved], None);
    let counted: Vec<(&str, u64)> = plan
        .changes
        .iter()
        .filter(|change| change.machines > 0)
        .map(|change| (change.place.as_str(), change.machines))
        .collect();
    assert_eq!(counted, [("machine-pool/mp", 4)]);
}

#[test]
fn a_pool_that_the_topology_has_no_more_is_deleted() {
    let without = edited(&there(), "Cluster", |one| {
        one["spec"]["topology"]["workers"] = json!({})
    });
    let plan = only(&[CLASS, TEMPLATES, &without], None);
    assert_eq!(
        places(&plan),
        ["delete machine-pool/mp"],
        "what it refers to goes with it"
    );
    assert_eq!(of(&plan, "machine-pool/mp").machines, 4);
}

/// The objects with a later version in the Cluster, and the control plane there already.
fn upgraded(there: &str) -> String {
    let later = edited(there, "Cluster", |one| {
        one["spec"]["topology"]["version"] = json!("v1.32.0");
        let pool = &mut one["spec"]["topology"]["workers"]["machinePools"][0];
        pool["metadata"] = json!({"labels": {"tier": "topology"}});
    });
    edited(&later, "Plane", |one| {
        one["spec"]["version"] = json!("v1.32.0");
        one["status"] = json!({"versions": ["v1.32.0"]});
    })
}

#[test]
fn a_pool_follows_its_control_plane() {
    let begun = edited(&there(), "Cluster", |one| {
        one["spec"]["topology"]["version"] = json!("v1.32.0");
    });
    let plan = only(&[CLASS, TEMPLATES, &begun], None);
    assert_eq!(
        places(&plan),
        ["update control-plane", "update cluster", "wait machine-pool/mp"]
    );
    let plan = only(&[CLASS, TEMPLATES, &upgraded(&there())], None);
    let pool = of(&plan, "machine-pool/mp");
    assert_eq!(
        object(&plan, "machine-pool/mp")["spec"]["template"]["spec"]["version"],
        "v1.32.0"
    );
    assert_eq!(pool.machines, 4);
}

#[test]
fn a_pool_is_on_its_way_while_a_machine_or_a_node_has_another_version() {
    let name = "c-mp-mp";
    let machine = format!(
        "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Machine\nmetadata: {{name: m, namespace: ns, labels: \
         {{cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/pool-name: {name}}}}}\nspec: {{version: v1.30.0}}\n"
    );
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {nodeInfo: {kubeletVersion: v1.30.0}}\n";
    let noted = edited(&there(), "MachinePool", |one| {
        one["status"] = json!({"nodeRefs": [{"name": "node-1"}, {"name": "unknown"}]});
    });
    for (there, behind) in [(there(), machine.as_str()), (noted, node)] {
        let there = edited(&there, "Cluster", |one| {
            one["spec"]["topology"]["version"] = json!("v1.32.0");
        });
        let plan = only(&[CLASS, TEMPLATES, &there, behind], None);
        assert_eq!(
            plan.upgrade[0],
            "the control plane goes to v1.32.0 later: machine pool mp is being upgraded"
        );
        let done = behind.replace("v1.30.0", "v1.31.0");
        let plan = only(&[CLASS, TEMPLATES, &there, &done], None);
        assert_eq!(plan.upgrade[0], "the control plane goes from v1.31.0 to v1.32.0");
    }
}

#[test]
fn what_cannot_be_the_topologys_is_told() {
    let there = there();
    let unlabelled = |label: &'static str| {
        move |one: &mut Value| {
            let labels = one["metadata"]["labels"].as_object_mut();
            labels.expect("labels").remove(label);
        }
    };
    let owned = "topology.cluster.x-k8s.io/owned";
    let name = "topology.cluster.x-k8s.io/pool-name";
    for (other, rule) in [
        (edited(&there, "ScaleSet", unlabelled(owned)), "not-owned"),
        (edited(&there, "Boot", unlabelled(owned)), "not-owned"),
        (edited(&there, "MachinePool", unlabelled(name)), "pool-unnamed"),
        (
            edited(&there, "MachinePool", |one| {
                one["spec"]["template"]["spec"]["bootstrap"] = json!({"dataSecretName": "s"});
            }),
            "current-missing",
        ),
        (
            edited(&there, "MachinePool", |one| {
                one["apiVersion"] = json!("cluster.x-k8s.io/v1beta1")
            }),
            "current-version",
        ),
        (
            edited(&there, "Boot", |one| one["metadata"]["name"] = json!("other")),
            "current-missing",
        ),
    ] {
        let planned = planned(&[CLASS, TEMPLATES, &other], None);
        let rules: Vec<&str> = planned.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [rule]);
    }
}

#[test]
fn group_and_kind_of_what_a_pool_refers_to_stay() {
    let there = there();
    for (from, to) in [
        ("kind: BootTemplate", "kind: OtherTemplate"),
        ("kind: ScaleSetTemplate", "kind: OtherTemplate"),
    ] {
        let (class, templates) = (CLASS.replace(from, to), TEMPLATES.replace(from, to));
        let planned = planned(&[&class, &templates, &there], None);
        assert_eq!(planned.findings[0].rule, "kind-kept", "{to}");
    }
}
