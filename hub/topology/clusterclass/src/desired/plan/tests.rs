//! Tests of one cluster's objects, and of their changes when the class, the Cluster or the objects change.

use serde_json::json;

use super::super::{
    change::Action,
    offline::{Planned, plans},
};
use super::*;
use crate::patch::print::yaml;

const CLASS: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: small, namespace: ns}
spec:
  infrastructure:
    templateRef: {apiVersion: infra.x/v1beta2, kind: CloudTemplate, name: cloud}
  controlPlane:
    templateRef: {apiVersion: cp.x/v1beta2, kind: PlaneTemplate, name: plane}
    machineInfrastructure:
      templateRef: {apiVersion: infra.x/v1beta2, kind: MachineTemplate, name: machines}
    metadata: {labels: {tier: class, kept: "1"}}
    healthCheck: {checks: {nodeStartupTimeoutSeconds: 60}}
    deletion: {nodeDrainTimeoutSeconds: 30}
  workers:
    machineDeployments:
    - class: linux
      bootstrap: {templateRef: {apiVersion: boot.x/v1beta2, kind: BootTemplate, name: boot}}
      infrastructure: {templateRef: {apiVersion: infra.x/v1beta2, kind: MachineTemplate, name: machines}}
      healthCheck: {checks: {nodeStartupTimeoutSeconds: 90}, remediation: {maxInFlight: 1}}
      deletion: {order: Oldest, nodeDrainTimeoutSeconds: 5}
  variables:
  - {name: image, required: true, schema: {openAPIV3Schema: {type: string, default: standard}}}
  patches:
  - name: image
    definitions:
    - selector:
        apiVersion: infra.x/v1beta2
        kind: MachineTemplate
        matchResources: {controlPlane: true, machineDeploymentClass: {names: [linux]}}
      jsonPatches:
      - {op: add, path: /spec/template/spec/image, valueFrom: {variable: image}}
  - name: named
    definitions:
    - selector: {apiVersion: cp.x/v1beta2, kind: PlaneTemplate, matchResources: {controlPlane: true}}
      jsonPatches:
      - op: add
        path: /spec/template/spec/of
        valueFrom:
          template: '{{ .builtin.controlPlane.name }} {{ .builtin.controlPlane.version }}'
      - {op: add, path: /spec/template/spec/version, value: v9.9.9}
"#;

const TEMPLATES: &str = r#"
apiVersion: infra.x/v1beta2
kind: CloudTemplate
metadata: {name: cloud, namespace: ns, labels: {not: taken}}
spec: {template: {metadata: {labels: {of: template}}, spec: {region: here}}}
---
apiVersion: cp.x/v1beta2
kind: PlaneTemplate
metadata: {name: plane, namespace: ns}
spec: {template: {spec: {machineTemplate: {metadata: {labels: {tier: template, own: "1"}}}}}}
---
apiVersion: infra.x/v1beta2
kind: MachineTemplate
metadata: {name: machines, namespace: ns, labels: {of: template}}
spec: {template: {spec: {size: 1}}}
---
apiVersion: boot.x/v1beta2
kind: BootTemplate
metadata: {name: boot, namespace: ns}
spec: {template: {spec: {files: []}}}
"#;

const CLUSTER: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c, namespace: ns, uid: u}
spec:
  topology:
    classRef: {name: small}
    version: v1.31.0
    controlPlane: {replicas: 3, metadata: {labels: {tier: topology}}}
    workers:
      machineDeployments:
      - {class: linux, name: md-0, replicas: 2, deletion: {nodeDrainTimeoutSeconds: 7}}
"#;

pub(super) fn files(texts: &[&str]) -> Vec<(String, Vec<u8>)> {
    let named = texts.iter().enumerate();
    named
        .map(|(at, text)| (format!("{at}.yaml"), text.as_bytes().to_vec()))
        .collect()
}

pub(super) fn planned(texts: &[&str], old: Option<&[&str]>) -> Planned {
    let old = old.map(files);
    plans(&files(texts), old.as_deref()).expect("files that can be read")
}

/// The one plan, without findings.
pub(super) fn only(texts: &[&str], old: Option<&[&str]>) -> Plan {
    let mut planned = planned(texts, old);
    assert_eq!(planned.findings, []);
    assert_eq!(planned.plans.len(), 1);
    planned.plans.remove(0)
}

pub(super) fn of<'p>(plan: &'p Plan, place: &str) -> &'p Change {
    let found = plan.changes.iter().find(|change| change.place == place);
    found.unwrap_or_else(|| panic!("no {place} in {:?}", places(plan)))
}

pub(super) fn object<'p>(plan: &'p Plan, place: &str) -> &'p Value {
    of(plan, place).object.as_ref().expect("an object")
}

/// What becomes of what, without what is kept.
pub(super) fn places(plan: &Plan) -> Vec<String> {
    let changes = plan.changes.iter().filter(|change| change.action != Action::Keep);
    changes
        .map(|change| format!("{} {}", change.action.name(), change.place))
        .collect()
}

/// The objects of a plan as a file, as a server would have them.
fn made(plan: &Plan) -> String {
    let objects = plan.objects().map(|object| {
        let mut object = object.clone();
        match object["kind"].as_str() {
            Some("Plane") => object["status"] = json!({"versions": [object["spec"]["version"]]}),
            Some("Cluster") => {
                object["spec"]["topology"] = topology();
                object["spec"]["topology"]["variables"] = json!([{"name": "image", "value": "standard"}]);
            }
            _ => {}
        }
        if object["kind"] == "Cluster" {
            object["metadata"]["uid"] = json!("u");
        }
        format!("---\n{}", yaml(&object))
    });
    objects.collect()
}

/// A file of objects, those of a kind changed.
pub(super) fn edited(there: &str, kind: &str, edit: impl Fn(&mut Value)) -> String {
    let file = files(&[there]);
    let objects = crate::patch::document::objects(&file).expect("objects");
    let mut known = false;
    let objects = objects.into_iter().map(|(_, mut object)| {
        if object["kind"] == kind {
            known = true;
            edit(&mut object);
        }
        format!("---\n{}", yaml(&object))
    });
    let text = objects.collect();
    assert!(known, "there is no {kind}");
    text
}

fn topology() -> Value {
    let file = files(&[CLUSTER]);
    let objects = crate::patch::document::objects(&file).expect("a Cluster");
    objects[0].1["spec"]["topology"].clone()
}

#[test]
fn a_new_cluster_is_made_in_the_order_in_which_objects_refer_to_each_other() {
    let plan = only(&[CLASS, TEMPLATES, CLUSTER], None);
    assert_eq!(
        places(&plan),
        [
            "create infrastructure-cluster",
            "create control-plane/health-check",
            "create control-plane-machines",
            "create control-plane",
            "update cluster",
            "create machine-deployment/md-0/health-check",
            "create machine-deployment/md-0/bootstrap",
            "create machine-deployment/md-0/infrastructure",
            "create machine-deployment/md-0",
        ]
    );
    assert_eq!((plan.version.as_str(), plan.writes()), ("v1.31.0", true));
    assert_eq!(plan.upgrade, Vec::<String>::new());
}

#[test]
fn objects_are_made_of_templates() {
    let plan = only(&[CLASS, TEMPLATES, CLUSTER], None);
    let owner =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c", "uid": "u"}]);
    let cloud = &of(&plan, "infrastructure-cluster").name;
    assert_eq!(
        *object(&plan, "infrastructure-cluster"),
        json!({
            "apiVersion": "infra.x/v1beta2",
            "kind": "Cloud",
            "metadata": {
                "name": cloud,
                "namespace": "ns",
                "labels": {
                    "of": "template",
                    "cluster.x-k8s.io/cluster-name": "c",
                    "topology.cluster.x-k8s.io/owned": "",
                },
                "annotations": {
                    "cluster.x-k8s.io/cloned-from-name": "cloud",
                    "cluster.x-k8s.io/cloned-from-groupkind": "CloudTemplate.infra.x",
                },
                "ownerReferences": owner,
            },
            "spec": {"region": "here"},
        })
    );
    let template = object(&plan, "machine-deployment/md-0/infrastructure");
    assert_eq!(template["kind"], "MachineTemplate");
    assert_eq!(
        template["spec"],
        json!({"template": {"spec": {"size": 1, "image": "standard"}}})
    );
    assert_eq!(
        template["metadata"]["labels"],
        json!({
            "of": "template",
            "cluster.x-k8s.io/cluster-name": "c",
            "topology.cluster.x-k8s.io/owned": "",
            "topology.cluster.x-k8s.io/deployment-name": "md-0",
        })
    );
    assert_eq!(
        object(&plan, "control-plane-machines")["metadata"]["labels"].get("own"),
        None
    );
}

#[test]
fn the_control_plane_keeps_what_the_topology_says_of_it() {
    let plan = only(&[CLASS, TEMPLATES, CLUSTER], None);
    let (plane, machines) = (of(&plan, "control-plane"), of(&plan, "control-plane-machines"));
    let owned = json!({"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""});
    let with = |more: Value| {
        let mut all = owned.clone();
        crate::patch::values::merge(&mut all, &more);
        all
    };
    assert_eq!(
        object(&plan, "control-plane")["spec"],
        json!({
            "of": format!("{} v1.31.0", plane.name),
            "replicas": 3,
            "version": "v1.31.0",
            "machineTemplate": {
                "metadata": {"labels": with(json!({"tier": "topology", "kept": "1", "own": "1"}))},
                "spec": {
                    "infrastructureRef": {"apiGroup": "infra.x", "kind": "MachineTemplate", "name": machines.name},
                    "deletion": {"nodeDrainTimeoutSeconds": 30},
                },
            },
        })
    );
    let labels = &object(&plan, "control-plane")["metadata"]["labels"];
    assert_eq!(*labels, with(json!({"tier": "topology", "kept": "1"})));
}

#[test]
fn a_provider_of_the_older_contract_is_told_in_its_places() {
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: planes.cp.x, labels: {cluster.x-k8s.io/v1beta1: v1beta2}}
spec: {group: cp.x, names: {kind: Plane}}
";
    let plan = only(&[CLASS, TEMPLATES, CLUSTER, definition], None);
    let machines = &object(&plan, "control-plane")["spec"]["machineTemplate"];
    assert_eq!(machines["infrastructureRef"]["apiVersion"], "infra.x/v1beta2");
    assert_eq!(machines["infrastructureRef"]["namespace"], "ns");
    assert_eq!(machines["nodeDrainTimeout"], "30s");
    assert_eq!(machines.get("spec"), None);
}

#[test]
fn a_machine_deployment_is_its_class_under_its_topology() {
    let plan = only(&[CLASS, TEMPLATES, CLUSTER], None);
    let name = |place: &str| of(&plan, place).name.clone();
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "c",
        "topology.cluster.x-k8s.io/owned": "",
        "topology.cluster.x-k8s.io/deployment-name": "md-0",
    });
    assert_eq!(
        object(&plan, "machine-deployment/md-0")["spec"],
        json!({
            "clusterName": "c",
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "deletion": {"order": "Oldest"},
            "remediation": {"maxInFlight": 1},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "clusterName": "c",
                    "version": "v1.31.0",
                    "bootstrap": {"configRef": {
                        "apiGroup": "boot.x",
                        "kind": "BootTemplate",
                        "name": name("machine-deployment/md-0/bootstrap"),
                    }},
                    "infrastructureRef": {
                        "apiGroup": "infra.x",
                        "kind": "MachineTemplate",
                        "name": name("machine-deployment/md-0/infrastructure"),
                    },
                    "deletion": {"nodeDrainTimeoutSeconds": 7},
                },
            },
        })
    );
    let health = object(&plan, "machine-deployment/md-0/health-check");
    assert_eq!(health["spec"]["checks"], json!({"nodeStartupTimeoutSeconds": 90}));
    assert_eq!(health["metadata"]["name"], json!(name("machine-deployment/md-0")));
    let labels = &health["metadata"]["labels"];
    assert_eq!(
        *labels,
        json!({"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""})
    );
}

#[test]
fn what_is_as_it_should_be_is_kept() {
    let first = only(&[CLASS, TEMPLATES, CLUSTER], None);
    let there = made(&first);
    let again = only(&[CLASS, TEMPLATES, &there], None);
    assert_eq!(places(&again), Vec::<String>::new());
    assert!(!again.writes());
    let names = |plan: &Plan| -> Vec<String> { plan.changes.iter().map(|one| one.name.clone()).collect() };
    assert_eq!(names(&first), names(&again), "names stay");
    let compared = only(&[CLASS, TEMPLATES, CLUSTER], Some(&[CLASS, TEMPLATES, CLUSTER]));
    assert_eq!(places(&compared), Vec::<String>::new());
}

#[test]
fn a_plan_of_what_was_just_made_changes_nothing_for_every_builtin() {
    let all = |selector: &str| {
        format!(
            "    - selector: {{{selector}}}\n      \
             jsonPatches: [{{op: add, path: /spec/template/spec/all, valueFrom: {{variable: builtin}}}}]\n"
        )
    };
    let class = format!(
        "{CLASS}  - name: all\n    definitions:\n{}{}{}{}",
        all(
            "apiVersion: infra.x/v1beta2, kind: CloudTemplate, matchResources: {infrastructureCluster: true}"
        ),
        all("apiVersion: cp.x/v1beta2, kind: PlaneTemplate, matchResources: {controlPlane: true}"),
        all(
            "apiVersion: infra.x/v1beta2, kind: MachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: [linux]}}"
        ),
        all(
            "apiVersion: boot.x/v1beta2, kind: BootTemplate, matchResources: {machineDeploymentClass: {names: [linux]}}"
        ),
    );
    let templates = TEMPLATES.replace(
        "spec: {template: {spec: {machineTemplate",
        "spec: {template: {metadata: {labels: {of: plane}, annotations: {by: template}}, spec: {machineTemplate",
    );
    assert_ne!(templates, TEMPLATES);
    let first = only(&[&class, &templates, CLUSTER], None);
    let plane = &object(&first, "control-plane")["spec"]["all"]["controlPlane"]["metadata"];
    assert_eq!(
        plane["labels"],
        object(&first, "control-plane")["metadata"]["labels"]
    );
    assert_eq!(
        plane["annotations"],
        object(&first, "control-plane")["metadata"]["annotations"]
    );
    let again = only(&[&class, &templates, &made(&first)], None);
    assert_eq!(places(&again), Vec::<String>::new());
}

#[test]
fn a_template_whose_content_changes_gives_its_place_to_another() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let larger = TEMPLATES.replace("size: 1", "size: 2");
    let live = only(&[CLASS, &larger, &there], None);
    let compared = only(&[CLASS, &larger, CLUSTER], Some(&[CLASS, TEMPLATES, CLUSTER]));
    assert_eq!(live, compared, "the same whether it is there or was planned");
    assert_eq!(
        places(&live),
        [
            "rotate control-plane-machines",
            "update control-plane",
            "rotate machine-deployment/md-0/infrastructure",
            "update machine-deployment/md-0",
        ]
    );
    let rotated = of(&live, "machine-deployment/md-0/infrastructure");
    assert_eq!(
        rotated.fields,
        [super::super::change::Difference {
            field: "spec.template.spec.size".to_owned(),
            old: Some(json!(1)),
            new: Some(json!(2)),
        }]
    );
    assert_ne!(rotated.before.as_ref(), Some(&rotated.name));
    let deployment = of(&live, "machine-deployment/md-0");
    let reference =
        &object(&live, "machine-deployment/md-0")["spec"]["template"]["spec"]["infrastructureRef"];
    assert_eq!(reference["name"], json!(rotated.name));
    assert_eq!((deployment.machines, of(&live, "control-plane").machines), (2, 3));
}

#[test]
fn labels_of_templates_change_in_place() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let labelled = TEMPLATES.replace(
        "labels: {of: template}}\nspec: {template: {spec: {size",
        "labels: {of: other}}\nspec: {template: {spec: {size",
    );
    let plan = only(&[CLASS, &labelled, &there], None);
    assert_eq!(
        places(&plan),
        [
            "update control-plane-machines",
            "update machine-deployment/md-0/infrastructure"
        ]
    );
    assert!(plan.changes.iter().all(|change| change.machines == 0));
}

#[test]
fn what_others_set_is_theirs() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let defaulted = edited(&there, "MachineDeployment", |one| {
        one["spec"]["paused"] = json!(false)
    });
    assert_eq!(
        places(&only(&[CLASS, TEMPLATES, &defaulted], None)),
        Vec::<String>::new()
    );
    let scaled = edited(&there, "MachineDeployment", |one| {
        one["spec"]["replicas"] = json!(5)
    });
    let plan = only(&[CLASS, TEMPLATES, &scaled], None);
    assert_eq!(places(&plan), ["update machine-deployment/md-0"]);
    assert_eq!(
        of(&plan, "machine-deployment/md-0").machines,
        0,
        "none is replaced"
    );
}

#[test]
fn an_upgrade_goes_through_the_control_plane_first() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let newer = edited(&there, "Cluster", |one| {
        one["spec"]["topology"]["version"] = json!("v1.32.0")
    });
    let plan = only(&[CLASS, TEMPLATES, &newer], None);
    assert_eq!(
        places(&plan),
        [
            "update control-plane",
            "update cluster",
            "wait machine-deployment/md-0"
        ]
    );
    assert_eq!(
        object(&plan, "control-plane")["spec"]["of"],
        json!(format!("{} v1.32.0", of(&plan, "control-plane").name))
    );
    let step = &object(&plan, "cluster")["metadata"]["annotations"]["topology.internal.cluster.x-k8s.io/upgrade-step"];
    assert_eq!(*step, json!("v1.32.0"));
    assert_eq!(plan.upgrade.len(), 2);
    // The control plane is there: workers follow, and the step's annotation goes with the last.
    let done = edited(&newer, "Plane", |one| {
        one["spec"]["version"] = json!("v1.32.0");
        one["status"]["versions"] = json!(["v1.32.0"]);
    });
    let plan = only(&[CLASS, TEMPLATES, &done], None);
    let said = places(&plan);
    assert!(
        said.contains(&"update machine-deployment/md-0".to_owned()),
        "{said:?}"
    );
    assert_eq!(of(&plan, "machine-deployment/md-0").machines, 2);
}

#[test]
fn a_control_plane_on_its_way_makes_workers_wait() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let busy = edited(&there, "Plane", |one| {
        one["status"]["versions"] = json!(["v1.30.0"])
    });
    let busy = edited(&busy, "Cluster", |one| {
        one["spec"]["topology"]["workers"]["machineDeployments"][0]["name"] = json!("md-1");
    });
    let plan = only(&[CLASS, TEMPLATES, &busy], None);
    let waiting = of(&plan, "machine-deployment/md-1");
    assert_eq!(waiting.action, Action::Wait);
    assert!(waiting.note.contains("made when"), "{}", waiting.note);
    assert!(
        plan.changes
            .iter()
            .any(|change| change.place == "machine-deployment/md-0" && change.action == Action::Delete)
    );
}

#[test]
fn a_machine_deployment_that_goes_takes_its_own_with_it() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let without = edited(&there, "Cluster", |one| {
        one["spec"]["topology"]["workers"]["machineDeployments"] = json!([]);
    });
    let plan = only(&[CLASS, TEMPLATES, &without], None);
    assert_eq!(
        places(&plan),
        [
            "delete machine-deployment/md-0/health-check",
            "delete machine-deployment/md-0",
            "delete machine-deployment/md-0/bootstrap",
            "delete machine-deployment/md-0/infrastructure",
        ]
    );
    assert_eq!(of(&plan, "machine-deployment/md-0").machines, 2);
}

#[test]
fn a_health_check_that_is_switched_off_goes() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let off = edited(&there, "Cluster", |one| {
        one["spec"]["topology"]["controlPlane"]["healthCheck"] = json!({"enabled": false});
    });
    assert_eq!(
        places(&only(&[CLASS, TEMPLATES, &off], None)),
        ["delete control-plane/health-check"]
    );
}

#[test]
fn what_is_not_ours_is_not_taken() {
    let there = made(&only(&[CLASS, TEMPLATES, CLUSTER], None));
    let unlabelled = |label: &'static str| {
        move |one: &mut Value| {
            let labels = one["metadata"]["labels"].as_object_mut();
            labels.expect("labels").remove(label);
        }
    };
    let renamed = |one: &mut Value| one["metadata"]["name"] = json!("other");
    let going = |one: &mut Value| one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (other, rule) in [
        (edited(&there, "Cloud", renamed), "current-missing"),
        (edited(&there, "BootTemplate", renamed), "current-missing"),
        (edited(&there, "Plane", unlabelled(owned::OWNED)), "not-owned"),
        (
            edited(&there, "MachineDeployment", unlabelled(owned::DEPLOYMENT_NAME)),
            "deployment-unnamed",
        ),
        (edited(&there, "Plane", going), "being-deleted"),
        (
            edited(&there, "Plane", |one| one["spec"]["version"] = Value::Null),
            "control-plane-version",
        ),
    ] {
        let planned = planned(&[CLASS, TEMPLATES, &other], None);
        let rules: Vec<&str> = planned.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [rule]);
        assert!(planned.plans.is_empty());
    }
}
