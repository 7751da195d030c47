//! Which clusters of files are planned, and what is told of the others.

use super::*;

const CLASS: &str = r#"
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: k}
spec:
  infrastructure: {ref: {apiVersion: i.x/v1, kind: CloudTemplate, name: t}}
  controlPlane: {ref: {apiVersion: c.x/v1, kind: PlaneTemplate, name: t}}
---
apiVersion: i.x/v1
kind: CloudTemplate
metadata: {name: t}
spec: {template: {spec: {a: 1}}}
---
apiVersion: c.x/v1
kind: PlaneTemplate
metadata: {name: t}
spec: {template: {spec: {}}}
"#;

fn cluster(name: &str, version: &str) -> String {
    format!(
        "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec:\n  \
         topology: {{class: k, version: {version}, controlPlane: {{}}}}\n"
    )
}

fn files(texts: &[&str]) -> Vec<(String, Vec<u8>)> {
    let named = texts.iter().enumerate();
    named
        .map(|(at, text)| (format!("{at}.yaml"), text.as_bytes().to_vec()))
        .collect()
}

fn shown(planned: &Planned) -> Vec<String> {
    let plans = planned.plans.iter().map(|plan| {
        let actions: Vec<&str> = plan.changes.iter().map(|change| change.action.name()).collect();
        format!("{} {} {}", plan.name, plan.version, actions.join(","))
    });
    let findings = planned.findings.iter();
    plans
        .chain(findings.map(|one| format!("{} {}", one.object, one.rule)))
        .collect()
}

#[test]
fn one_that_is_wrong_does_not_stop_the_others() {
    let all = [
        CLASS,
        &cluster("a", "v1.30.0"),
        &cluster("b", "x"),
        &cluster("c", "1.31.0"),
    ];
    let planned = plans(&files(&all), None).expect("files");
    assert_eq!(
        shown(&planned),
        [
            "a v1.30.0 create,create,update",
            "c v1.31.0 create,create,update",
            "Cluster default/b topology-version",
        ]
    );
    assert_eq!(planned.findings[0].origin, "2.yaml");
}

#[test]
fn a_template_that_is_missing_or_empty_is_told_once_for_all_clusters() {
    for (from, to, rule) in [
        (
            "kind: CloudTemplate\nmetadata",
            "kind: OtherTemplate\nmetadata",
            "template-missing",
        ),
        ("spec: {template: {spec: {a: 1}}}", "spec: {}", "template-empty"),
    ] {
        let class = CLASS.replace(from, to);
        let all = [class.as_str(), &cluster("a", "v1.30.0"), &cluster("b", "v1.30.0")];
        let planned = plans(&files(&all), None).expect("files");
        assert_eq!(shown(&planned), [format!("ClusterClass default/k {rule}")]);
    }
}

#[test]
fn older_files_are_what_there_is() {
    let (a, b) = (cluster("a", "v1.30.0"), cluster("b", "v1.30.0"));
    let old = files(&[CLASS, &a, &b]);
    let new = files(&[CLASS, &a, &cluster("new", "v1.30.0")]);
    let planned = plans(&new, Some(&old)).expect("files");
    assert_eq!(
        shown(&planned),
        [
            "a v1.30.0 keep,keep,keep",
            "new v1.30.0 create,create,update",
            "b v1.30.0 delete,delete,delete",
        ]
    );
    let wrong = files(&[CLASS, &cluster("a", "x")]);
    let planned = plans(&new, Some(&wrong)).expect("files");
    assert_eq!(
        shown(&planned),
        ["Cluster default/a topology-version"],
        "what was is wrong"
    );
    let back = files(&[CLASS, &cluster("a", "v1.29.0")]);
    let planned = plans(&back, Some(&old)).expect("files");
    assert!(shown(&planned).contains(&"Cluster default/a version-change".to_owned()));
}

#[test]
fn files_that_cannot_be_read_are_an_error() {
    let why = plans(&files(&["a: ["]), None).expect_err("no YAML");
    assert!(why.starts_with("0.yaml, document 1"), "{why}");
}
