//! Files in, YAML and findings out.

use super::*;

const CLASS: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: quick, namespace: classes}
spec:
  infrastructure:
    ref: {apiVersion: infra.x/v1, kind: CloudTemplate, name: cloud}
  controlPlane:
    ref: {apiVersion: cp.x/v1, kind: PlaneTemplate, name: plane}
  workers:
    machineDeployments:
    - class: linux
      template:
        bootstrap:
          ref: {apiVersion: boot.x/v1, kind: BootTemplate, name: boot}
        infrastructure:
          ref: {apiVersion: infra.x/v1, kind: MachineTemplate, name: machine}
  variables:
  - name: region
  patches:
  - name: region
    description: Where it runs
    definitions:
    - selector:
        apiVersion: infra.x/v1
        kind: CloudTemplate
        matchResources: {infrastructureCluster: true}
      jsonPatches:
      - {op: add, path: /spec/template/spec/region, valueFrom: {variable: region}}
  - name: version
    definitions:
    - selector:
        apiVersion: infra.x/v1
        kind: MachineTemplate
        matchResources: {machineDeploymentClass: {names: ["*"]}}
      jsonPatches:
      - op: add
        path: /spec/template/spec/image
        valueFrom: {template: "{{ .builtin.machineDeployment.version | quote }}"}
"#;

const TEMPLATES: &str = r#"
apiVersion: infra.x/v1
kind: CloudTemplate
metadata: {name: cloud, namespace: elsewhere}
spec: {template: {spec: {other: true}}}
---
apiVersion: infra.x/v1
kind: CloudTemplate
metadata: {name: cloud}
spec: {template: {spec: {}}}
---
apiVersion: cp.x/v1
kind: PlaneTemplate
metadata: {name: plane, namespace: classes}
spec: {template: {spec: {}}}
---
apiVersion: boot.x/v1
kind: BootTemplate
metadata: {name: boot}
spec: {template: {spec: {}}}
---
apiVersion: infra.x/v1
kind: MachineTemplate
metadata: {name: machine}
spec: {template: {spec: {}}}
"#;

const CLUSTER: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: c}
spec:
  topology:
    classRef: {name: quick}
    version: "1.30"
    variables: [{name: region, value: "no"}]
    workers: {machineDeployments: [{class: linux, name: md-0}]}
"#;

fn run(texts: &[&str], wanted: &[&str]) -> Result<Report, String> {
    let files: Vec<(String, Vec<u8>)> = texts
        .iter()
        .map(|text| ("f.yaml".to_owned(), text.as_bytes().to_vec()))
        .collect();
    let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    patch(&files, &Map::new(), &wanted)
}

#[test]
fn templates_are_printed_with_what_patched_them() {
    let report = run(
        &[CLASS, TEMPLATES, CLUSTER],
        &["infrastructure-cluster", "machine-deployment/md-0/infrastructure"],
    )
    .expect("a report");
    let expected = "\
---
# infrastructure-cluster
# patch \"region\", definition 0, changed it: Where it runs
apiVersion: infra.x/v1
kind: CloudTemplate
metadata:
  name: cloud
spec:
  template:
    spec:
      region: \"no\"
---
# machine-deployment/md-0/infrastructure
# patch \"version\", definition 0, changed it
apiVersion: infra.x/v1
kind: MachineTemplate
metadata:
  name: machine
spec:
  template:
    spec:
      image: \"1.30\"
";
    assert_eq!((report.text.as_str(), report.errors), (expected, 0));
}

#[test]
fn without_a_cluster_each_class_of_machines_is_patched_and_findings_are_told() {
    let report = run(&[CLASS, TEMPLATES], &[]).expect("a report");
    assert_eq!(report.errors, 1);
    let comments: Vec<&str> = report
        .text
        .lines()
        .filter(|line| line.starts_with("# "))
        .collect();
    assert_eq!(
        comments,
        [
            "# infrastructure-cluster",
            "# control-plane",
            "# machine-deployment/linux/bootstrap",
            "# machine-deployment/linux/infrastructure",
            "# patch \"version\", definition 0, changed it",
            "# error variable-missing: spec.patches[0].definitions[0].jsonPatches[0].valueFrom.variable (patch \
             \"region\", infrastructure-cluster): variable region has no value here",
        ]
    );
}

#[test]
fn files_that_do_not_fit_are_told_in_one_line() {
    let twice = CLASS.replace("name: quick", "name: other");
    let later = CLASS.replace("x-k8s.io/v1beta1", "x-k8s.io/v1beta3");
    let unnamed = CLUSTER.replace("{name: c}", "{}");
    for (texts, wanted, why) in [
        (vec![TEMPLATES], vec![], "the files have no ClusterClass"),
        (vec![CLASS, &twice], vec![], "more than one ClusterClass"),
        (
            vec![&later],
            vec![],
            "the ClusterClass cannot be read: apiVersion: must be v1beta1 or v1beta2",
        ),
        (
            vec![CLASS, &unnamed],
            vec![],
            "the Cluster cannot be read: metadata.name",
        ),
        (vec![CLASS, CLUSTER, CLUSTER], vec![], "more than one Cluster"),
        (
            vec![CLASS],
            vec![],
            "the files have no CloudTemplate cloud of infra.x/v1",
        ),
        (
            vec![CLASS, TEMPLATES],
            vec!["plane"],
            "there is no target \"plane\"; there are infrastructure-cluster, control-plane",
        ),
        (vec!["{"], vec![], "f.yaml, document 1"),
    ] {
        let said = run(&texts, &wanted).expect_err("it does not fit");
        assert!(said.contains(why) && !said.contains('\n'), "{said}");
    }
}

#[test]
fn what_the_model_leaves_out_is_told() {
    let other_spelling = CLASS.replace(
        "    ref: {apiVersion: infra.x/v1, kind: CloudTemplate, name: cloud}",
        "    ref: {apiVersion: infra.x/v1, kind: CloudTemplate, name: cloud}\n    templateRef: {name: cloud}",
    );
    let no_text = CLUSTER.replace("metadata: {name: c}", "metadata: {name: c, labels: {a: 1}}");
    let sound = run(&[CLASS, TEMPLATES, CLUSTER], &[]).expect("a report");
    for (class, cluster, field) in [
        (
            other_spelling.as_str(),
            CLUSTER,
            "spec.infrastructure.templateRef: unknown-field:",
        ),
        (CLASS, no_text.as_str(), "metadata.labels"),
    ] {
        let report = run(&[class, TEMPLATES, cluster], &[]).expect("a report");
        assert_eq!(report.errors, sound.errors + 1, "{}", report.text);
        let told = report.text.lines().last().expect("lines");
        assert!(
            told.starts_with("# error files: ") && told.contains(field),
            "{told}"
        );
    }
}
