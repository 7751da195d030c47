//! Tests of the clusters in files that are planned, and of the messages about others.

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

/// Classes can be written to wear out their reader: each is reported with its place, and the other clusters are
/// planned.
#[test]
fn classes_that_are_too_much_are_told_and_the_others_go_on() {
    let many: String = (0..10_000)
        .map(|at| format!("  - {{name: v{at}, schema: {{openAPIV3Schema: {{type: string}}}}}}\n"))
        .collect();
    let patched = |operation: &str| {
        format!(
            "  patches:\n  - name: p\n    definitions:\n    - selector: {{apiVersion: i.x/v1, kind: CloudTemplate, \
             matchResources: {{infrastructureCluster: true}}}}\n      jsonPatches: [{operation}]\n"
        )
    };
    let template = |text: &str| {
        patched(&format!(
            "{{op: add, path: /spec/template/spec/x, valueFrom: {{template: '{text}'}}}}"
        ))
    };
    let large = format!(
        "{{op: add, path: /spec/template/spec/x, value: {}}}",
        "x".repeat(1 << 20)
    );
    for (more, rule) in [
        (format!("  variables:\n{many}"), "bound"),
        (
            template(r#"{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}"#),
            "template",
        ),
        (template("{{ range 1000000000 }}x{{ end }}"), "template"),
        (template("{{ repeat 1000000000 \"x\" }}"), "template"),
        (patched("{op: remove, path: /spec/template/spec}"), "emptied"),
        (
            "  variables:\n  - {name: v, schema: {openAPIV3Schema: {$ref: '#'}}}\n".to_owned(),
            "left-out",
        ),
        (patched(&large), "limit"),
    ] {
        let (class, templates) = CLASS.split_once("---\n").expect("several documents");
        let other = class.replace("name: k}", "name: other}");
        let texts = [
            &format!("{class}{more}---\n{templates}"),
            &other,
            &cluster("a", "v1.30.0"),
            &cluster("b", "v1.30.0").replace("class: k", "class: other"),
        ];
        let planned = plans(&files(&texts.map(String::as_str)), None).expect("files");
        let said = shown(&planned);
        assert_eq!(said[0], "b v1.30.0 create,create,update", "{rule}: {said:?}");
        assert!(
            said[1..].iter().any(|one| one.ends_with(rule)),
            "{rule}: {:?}",
            planned.findings
        );
        assert_eq!(planned.plans.len(), 1, "{rule}");
        assert!(planned.findings.iter().all(|one| !one.field.is_empty()), "{rule}");
    }
}

fn class_with(default: &str) -> String {
    let patch = r#"
  variables:
  - name: size
    schema: {openAPIV3Schema: {type: object, properties: {cpus: {type: integer, default: DEFAULT}}, default: {}}}
  patches:
  - name: size
    definitions:
    - selector: {apiVersion: i.x/v1, kind: CloudTemplate, matchResources: {infrastructureCluster: true}}
      jsonPatches: [{op: add, path: /spec/template/spec/cpus, valueFrom: {variable: size.cpus}}]
---
apiVersion: i.x/v1"#;
    let patch = patch.replace("DEFAULT", default);
    CLASS.replacen("\n---\napiVersion: i.x/v1", &patch, 1)
}

/// The objects after the Cluster was made, as a server has them.
fn made_by(class: &str) -> String {
    let mut planned = plans(&files(&[class, &cluster("a", "v1.30.0")]), None).expect("files");
    assert_eq!(planned.findings, []);
    let plan = planned.plans.remove(0);
    let objects = plan.objects().map(|object| {
        let mut object = object.clone();
        if object["kind"] == "Cluster" {
            object["spec"]["topology"] =
                serde_json::json!({"classRef": {"name": "k"}, "version": "v1.30.0", "controlPlane": {}});
            for defaults in &plan.defaults {
                defaults.write(&mut object);
            }
        }
        format!("---\n{}", crate::patch::print::yaml(&object))
    });
    objects.collect()
}

fn fields(planned: &Planned) -> Vec<String> {
    assert_eq!(planned.findings, []);
    let changes = planned.plans.iter().flat_map(|plan| &plan.changes);
    let writes = changes.filter(|change| change.action.writes());
    writes
        .flat_map(|change| &change.fields)
        .map(|field| field.field.clone())
        .collect()
}

#[test]
fn a_default_is_given_once_and_another_one_changes_nothing() {
    let there = made_by(&class_with("1"));
    assert!(there.contains("cpus: 1"), "{there}");
    let of = |class: &str, there: &str| fields(&plans(&files(&[class, there]), None).expect("files"));
    assert_eq!(of(&class_with("1"), &there), Vec::<String>::new());
    assert_eq!(
        of(&class_with("2"), &there),
        Vec::<String>::new(),
        "it has its own"
    );
    let without = there.replace("value:\n        cpus: 1", "value: {}");
    assert_ne!(without, there);
    let class = class_with("2");
    assert_eq!(of(&class, &without), ["spec.cpus"]);
    let planned = plans(&files(&[&class, &without]), None).expect("files");
    let told = crate::desired::table::table(&planned.plans);
    let line = r#"default/a: the Cluster keeps a default: spec.topology.variables[size]: {} -> {"cpus":2}"#;
    assert!(told.contains(line), "{told}");
}

#[test]
fn what_the_older_class_gave_stays_when_files_are_compared() {
    let of = |old: &str, new: &str, say: &str| {
        let cluster =
            cluster("a", "v1.30.0").replace("controlPlane: {}", &format!("controlPlane: {{}}{say}"));
        let (old, new) = (files(&[old, &cluster]), files(&[new, &cluster]));
        fields(&plans(&new, Some(&old)).expect("files"))
    };
    let (one, two) = (class_with("1"), class_with("2"));
    assert_eq!(of(&one, &two, ""), Vec::<String>::new());
    let said = ", variables: [{name: size, value: {}}]";
    assert_eq!(of(&one, &two, said), Vec::<String>::new());
    assert_eq!(
        of(CLASS, &two, ""),
        ["spec.cpus"],
        "a variable that is new has the default of now"
    );
}

#[test]
fn a_template_without_content_is_planned_if_a_patch_adds_it() {
    let empty = CLASS.replace("\nspec: {template: {spec: {a: 1}}}", "");
    assert_ne!(empty, CLASS);
    let all = |class: &str| plans(&files(&[class, &cluster("a", "v1.30.0")]), None).expect("files");
    assert_eq!(shown(&all(&empty)), ["ClusterClass default/k template-empty"]);
    let patched = |enabled: &str| {
        let patch = format!(
            "\n  patches:\n  - name: content\n    enabledIf: '{enabled}'\n    definitions:\n    \
             - selector: {{apiVersion: i.x/v1, kind: CloudTemplate, matchResources: {{infrastructureCluster: true}}}}\n      \
             jsonPatches: [{{op: add, path: /spec, value: {{template: {{spec: {{a: 2}}}}}}}}]\n---\napiVersion: i.x/v1"
        );
        all(&empty.replacen("\n---\napiVersion: i.x/v1", &patch, 1))
    };
    let planned = patched("true");
    assert_eq!(shown(&planned), ["a v1.30.0 create,create,update"]);
    let cloud = planned.plans[0].objects().next().expect("infrastructure");
    assert_eq!(cloud["spec"], serde_json::json!({"a": 2}));
    assert_eq!(shown(&patched("false")), ["Cluster default/a template-empty"]);
}

#[test]
fn a_class_that_offers_machine_pools_is_planned_for_clusters_that_use_none() {
    let pools = "\n  workers:\n    machinePools:\n    - {class: p, template: {bootstrap: {ref: {apiVersion: b.x/v1, kind: BootTemplate, \
                 name: t}}, infrastructure: {ref: {apiVersion: i.x/v1, kind: PoolTemplate, name: t}}}}\n  patches:\n  - name: \
                 pools\n    definitions:\n    - selector: {apiVersion: i.x/v1, kind: PoolTemplate, matchResources: \
                 {machinePoolClass: {names: [p]}}}\n      jsonPatches: [{op: add, path: /spec/template/spec/b, value: 1}]\n---\n\
                 apiVersion: i.x/v1";
    let class = CLASS.replacen("\n---\napiVersion: i.x/v1", pools, 1);
    let using = cluster("b", "v1.30.0").replace(
        "controlPlane: {}",
        "controlPlane: {}, workers: {machinePools: [{class: p, name: q}]}",
    );
    let planned = plans(&files(&[&class, &cluster("a", "v1.30.0")]), None).expect("files");
    assert_eq!(shown(&planned), ["a v1.30.0 create,create,update"]);
    let planned = plans(&files(&[&class, &cluster("a", "v1.30.0"), &using]), None).expect("files");
    let missing = "ClusterClass default/k template-missing";
    assert_eq!(
        shown(&planned),
        [missing, missing],
        "one that uses it needs its templates"
    );
    let templates = "---\n{apiVersion: b.x/v1, kind: BootTemplate, metadata: {name: t}, spec: {template: {spec: {}}}}\n---\n\
                     {apiVersion: i.x/v1, kind: PoolTemplate, metadata: {name: t}, spec: {template: {spec: {}}}}\n";
    let all = [&class, &cluster("a", "v1.30.0"), &using, templates];
    assert_eq!(
        shown(&plans(&files(&all), None).expect("files")),
        [
            "a v1.30.0 create,create,update",
            "b v1.30.0 create,create,update,create,create,create"
        ]
    );
}

/// Providers store their templates with defaults, and Cluster API patches those.
#[test]
fn a_replacement_without_a_place_in_a_file_is_told_where_it_may_have_one() {
    let patched = CLASS.replacen(
        "---\n",
        "  patches:\n  - name: p\n    definitions:\n    - selector: {apiVersion: i.x/v1, kind: CloudTemplate, \
         matchResources: {infrastructureCluster: true}}\n      \
         jsonPatches: [{op: replace, path: /spec/template/spec/bastion/enabled, value: true}]\n---\n",
        1,
    );
    let stored = "kind: CloudTemplate\nmetadata: {name: t, resourceVersion: '1'}";
    for (class, hinted) in [
        (patched.clone(), true),
        (
            patched.replace("kind: CloudTemplate\nmetadata: {name: t}", stored),
            false,
        ),
    ] {
        let all = [class.as_str(), &cluster("a", "v1.30.0")];
        let planned = plans(&files(&all), None).expect("files");
        assert_eq!(shown(&planned), ["Cluster default/a not-applicable"]);
        let message = &planned.findings[0].message;
        assert_eq!(message.contains("--kubeconfig reads those"), hinted, "{message}");
    }
}
