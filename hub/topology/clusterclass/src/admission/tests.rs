//! Tests of the answer to each kind of request: pass, refusal, warning, and bounds.

use serde_json::{Value, json};

use super::{
    Beside, Needs, Outcome, Review,
    verdict::{FINDINGS_TOLD_MAX, WARNINGS_MAX},
};

fn class() -> Value {
    let reference =
        |kind: &str| json!({"templateRef": {"apiVersion": "i.example/v1", "kind": kind, "name": "t"}});
    let worker = |class: &str| json!({"class": class, "bootstrap": reference("BTemplate"), "infrastructure": reference("MTemplate")});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "mixed", "namespace": "bar"},
        "spec": {
            "infrastructure": reference("CTemplate"),
            "controlPlane": {"templateRef": {"apiVersion": "i.example/v1", "kind": "PTemplate", "name": "t"}},
            "workers": {"machineDeployments": [worker("linux"), worker("arm")]},
            "variables": [
                {"name": "region", "schema": {"openAPIV3Schema": {"type": "string", "maxLength": 9}}},
            ],
        }
    })
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "foo", "namespace": "bar"},
        "spec": {"topology": {
            "classRef": {"name": "mixed"}, "version": "v1.30.1",
            "workers": {"machineDeployments": [{"class": "linux", "name": "big"}]},
            "variables": [{"name": "region", "value": "here"}],
        }}
    })
}

fn without_topology() -> Value {
    with(cluster(), "/spec", json!({"infrastructureRef": {"kind": "X"}}))
}

/// The object with the value at a JSON pointer replaced; `null` takes it away.
fn with(mut object: Value, at: &str, value: Value) -> Value {
    let (parent, name) = at.rsplit_once('/').expect("a pointer");
    let parent = object.pointer_mut(parent).expect("a parent");
    match (parent, name.parse::<usize>(), value) {
        (Value::Array(items), Ok(at), Value::Null) => drop(items.remove(at)),
        (Value::Array(items), Ok(at), value) => items[at] = value,
        (Value::Object(fields), _, Value::Null) => drop(fields.remove(name)),
        (parent, _, value) => parent[name] = value,
    }
    object
}

fn body(operation: &str, new: Option<&Value>, old: Option<&Value>) -> Value {
    let object = new.or(old).expect("an object");
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": operation, "dryRun": false,
            "kind": {"group": group, "version": version, "kind": object["kind"]},
            "object": new, "oldObject": old,
        }
    })
}

fn read(body: &Value) -> Review {
    Review::read(body.to_string().as_bytes()).expect("a review")
}

/// An answer: the outcome, the message, the warnings.
type Answer = (Outcome, String, Vec<String>);

/// Gives what is needed of these objects, and nothing else.
fn ask(body: &Value, there: &[Value], alive: bool) -> Answer {
    let review = read(body);
    let mut beside = Beside::default();
    beside.cluster_api_alive = alive;
    let key = |object: &Value| {
        let text = |name: &str| object["metadata"][name].as_str().unwrap().to_owned();
        (text("namespace"), text("name"))
    };
    match review.needs() {
        Needs::Nothing => {}
        Needs::Classes(version, keys) => {
            assert_eq!(version, "v1beta2");
            let classes = there.iter().filter(|object| object["kind"] == "ClusterClass");
            classes
                .filter(|class| keys.contains(&key(class)))
                .for_each(|class| beside.add_class(class));
        }
        Needs::UsersOf(version, of) => {
            assert_eq!(version, "v1beta2");
            let clusters = there.iter().filter(|object| object["kind"] == "Cluster");
            for cluster in clusters {
                beside.add_user(&of, cluster);
            }
        }
    }
    let verdict = review.judge(&beside);
    let said = verdict.to_json();
    assert_eq!(said["apiVersion"], "admission.k8s.io/v1");
    let response = &said["response"];
    assert_eq!(response["uid"], "u-1");
    let refused = matches!(verdict.outcome(), Outcome::Refused | Outcome::Unread);
    assert_eq!(response["allowed"], !refused);
    assert_eq!(response["status"].is_null(), !refused);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let warnings = response["warnings"].as_array().into_iter().flatten();
    (
        verdict.outcome(),
        text(&response["status"]["message"]),
        warnings.map(text).collect(),
    )
}

fn create(object: &Value, there: &[Value]) -> Answer {
    ask(&body("CREATE", Some(object), None), there, false)
}

fn update(old: &Value, new: &Value, there: &[Value]) -> Answer {
    ask(&body("UPDATE", Some(new), Some(old)), there, false)
}

fn delete(object: &Value, there: &[Value]) -> Answer {
    ask(&body("DELETE", None, Some(object)), there, false)
}

fn allowed() -> Answer {
    (Outcome::Allowed, String::new(), Vec::new())
}

fn refused(message: &str) -> Answer {
    (Outcome::Refused, message.to_owned(), Vec::new())
}

fn warned(warning: &str) -> Answer {
    (Outcome::Warned, String::new(), vec![warning.to_owned()])
}

const NO_CLASS: &str = "spec.topology.classRef.name: class-exists: there is no such class: make it first, nothing is \
                        held to it yet";

#[test]
fn what_keeps_the_rules_is_allowed() {
    assert_eq!(create(&class(), &[]), allowed());
    assert_eq!(create(&cluster(), &[class()]), allowed());
    let bigger = with(
        class(),
        "/spec/variables/0/schema/openAPIV3Schema/maxLength",
        json!(99),
    );
    assert_eq!(update(&class(), &bigger, &[cluster()]), allowed());
    let later = with(cluster(), "/spec/topology/version", json!("v1.31.0"));
    assert_eq!(update(&cluster(), &later, &[class()]), allowed());
}

#[test]
fn what_is_needed_follows_from_the_question() {
    let key = |name: &str| ("bar".to_owned(), name.to_owned());
    let needs =
        |operation: &str, new: Option<&Value>, old: Option<&Value>| read(&body(operation, new, old)).needs();
    let (of_class, of_cluster) = (class(), cluster());
    assert_eq!(needs("CREATE", Some(&of_class), None), Needs::Nothing);
    let users = || Needs::UsersOf("v1beta2", key("mixed"));
    assert_eq!(needs("DELETE", None, Some(&of_class)), users());
    let edited = with(class(), "/spec/variables", json!([]));
    assert_eq!(needs("UPDATE", Some(&edited), Some(&of_class)), users());
    let classes = |names: &[&str]| {
        let keys = names.iter().map(|name| key(name));
        Needs::Classes("v1beta2", keys.collect())
    };
    assert_eq!(needs("CREATE", Some(&of_cluster), None), classes(&["mixed"]));
    let rebased = with(cluster(), "/spec/topology/classRef/name", json!("other"));
    let both = needs("UPDATE", Some(&rebased), Some(&of_cluster));
    assert_eq!(both, classes(&["mixed", "other"]));
    assert_eq!(needs("DELETE", None, Some(&of_cluster)), Needs::Nothing);
    assert_eq!(
        needs("UPDATE", Some(&of_cluster), Some(&of_cluster)),
        Needs::Nothing
    );
}

/// It may be somebody else than an API server who asks.
#[test]
fn nothing_is_needed_that_could_be_no_object() {
    let needed = |namespace: &str, name: &str| {
        let named = json!({"name": name, "namespace": namespace});
        let named = with(cluster(), "/spec/topology/classRef", named);
        match read(&body("CREATE", Some(&named), None)).needs() {
            Needs::Classes(_, keys) => keys.len(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(needed("a-1", "b.c"), 1);
    assert_eq!(needed("bar", &"a".repeat(253)), 1);
    for no_name in [
        "..",
        ".a",
        "../secrets/a",
        "a?watch=true",
        "A",
        "a%2f",
        &"a".repeat(254),
    ] {
        assert_eq!(needed("bar", no_name), 0, "{no_name}");
        assert_eq!(needed(no_name, "a"), 0, "{no_name}");
    }
    assert_eq!(needed("bar", ""), 0);
}

#[test]
fn what_breaks_a_rule_is_refused_with_its_field_and_the_reason() {
    let unnamed = with(class(), "/spec/infrastructure/templateRef/name", json!(""));
    let message = "spec.infrastructure.templateRef.name: template-reference: must be given";
    assert_eq!(create(&unnamed, &[]), refused(message));
    let long = with(
        cluster(),
        "/spec/topology/variables/0/value",
        json!("far too long"),
    );
    let (outcome, message, _) = create(&long, &[class()]);
    assert_eq!(outcome, Outcome::Refused);
    assert!(
        message.starts_with("spec.topology.variables[0].value: variable-value: "),
        "{message}"
    );
    let both = with(long, "/spec/topology/version", json!("1"));
    let (_, message, _) = create(&both, &[class()]);
    assert!(
        message.starts_with("2 findings: spec.topology.version: topology-version: "),
        "{message}"
    );
    assert!(
        message.contains("; spec.topology.variables[0].value: "),
        "{message}"
    );
}

#[test]
fn only_what_is_asked_about_is_judged() {
    let mut bad = class();
    bad["spec"]["unheard"] = json!(1);
    assert_eq!(create(&cluster(), &[bad]), allowed());
    let mut odd = cluster();
    odd["spec"]["unheard"] = json!(1);
    let smaller = with(class(), "/spec/workers/machineDeployments/1", Value::Null);
    assert_eq!(update(&class(), &smaller, &[odd]), allowed());
}

#[test]
fn a_change_that_takes_away_what_is_used_is_refused() {
    let smaller = with(class(), "/spec/workers/machineDeployments/0", Value::Null);
    let (outcome, message, _) = update(&class(), &smaller, &[cluster()]);
    assert_eq!(outcome, Outcome::Refused);
    assert!(
        message.contains("worker-class-in-use: class linux is used by cluster bar/foo and must stay"),
        "{message}"
    );
    let of_other = with(cluster(), "/spec/topology/classRef/name", json!("other"));
    assert_eq!(
        update(&class(), &smaller, &[of_other, without_topology()]),
        allowed()
    );
    let back = with(cluster(), "/spec/topology/version", json!("v1.29.0"));
    let (_, message, _) = update(&cluster(), &back, &[class()]);
    assert!(message.contains("version-change: must not go back"), "{message}");
}

#[test]
fn a_class_in_use_is_not_deleted() {
    let body = body("DELETE", None, Some(&class()));
    let review = read(&body);
    let mut beside = Beside::default();
    assert!(beside.add_user(&("bar".to_owned(), "mixed".to_owned()), &cluster()));
    let said = review.judge(&beside).to_json();
    assert_eq!(said["response"]["status"]["code"], 403);
    assert_eq!(
        said["response"]["status"]["message"],
        "metadata.name: class-in-use: is used by cluster bar/foo and must not be deleted"
    );
    assert_eq!(delete(&class(), &[without_topology()]), allowed());
    // However it is written: it is going.
    let mut odd = class();
    odd["spec"]["unheard"] = json!(1);
    assert_eq!(delete(&odd, &[]), allowed());
    assert_eq!(delete(&cluster(), &[]), allowed());
}

#[test]
fn a_variable_in_use_stays_unless_cluster_api_decides() {
    let without = with(class(), "/spec/variables", json!([]));
    let question = body("UPDATE", Some(&without), Some(&class()));
    let message = "spec.variables: variable-in-use: variable region is used by cluster bar/foo and must stay";
    assert_eq!(ask(&question, &[cluster()], false), refused(message));
    assert_eq!(ask(&question, &[cluster()], true), warned(message));
    // Nothing else is decided by it.
    let smaller = with(without, "/spec/workers/machineDeployments/0", Value::Null);
    let (outcome, refusal, warnings) = ask(
        &body("UPDATE", Some(&smaller), Some(&class())),
        &[cluster()],
        true,
    );
    assert_eq!(outcome, Outcome::Refused);
    assert!(refusal.contains("worker-class-in-use") && !refusal.contains("variable-in-use"));
    assert_eq!(warnings, [message]);
}

#[test]
fn a_cluster_may_come_before_its_class_and_not_change_to_none() {
    assert_eq!(create(&cluster(), &[]), warned(NO_CLASS));
    let later = with(cluster(), "/spec/topology/version", json!("v1.31.0"));
    assert_eq!(update(&cluster(), &later, &[]), refused(NO_CLASS));
    let elsewhere = with(cluster(), "/spec/topology/classRef/name", json!("none"));
    assert_eq!(update(&cluster(), &elsewhere, &[class()]), refused(NO_CLASS));
    let referring = with(cluster(), "/spec/infrastructureRef", json!({"kind": "X"}));
    assert_eq!(update(&cluster(), &referring, &[]), warned(NO_CLASS));
}

#[test]
fn what_was_wrong_before_warns_and_holds_nothing_up() {
    let mut bad = cluster();
    let hook = "before-upgrade.hook.cluster.cluster.x-k8s.io/x";
    bad["metadata"]["annotations"] = json!({hook: ""});
    let message =
        format!("metadata.annotations[{hook}]: left-out: lifecycle hooks are not supported: remove it");
    let message = message.as_str();
    assert_eq!(create(&bad, &[class()]), refused(message));
    let referring = with(bad.clone(), "/spec/infrastructureRef", json!({"kind": "X"}));
    assert_eq!(update(&bad, &referring, &[class()]), warned(message));
    // Something else that is wrong is refused beside it.
    let worse = with(referring, "/spec/topology/version", json!("1"));
    let (outcome, refusal, warnings) = update(&bad, &worse, &[class()]);
    assert_eq!((outcome, warnings), (Outcome::Refused, vec![message.to_owned()]));
    assert!(
        refusal.starts_with("spec.topology.version: topology-version: "),
        "{refusal}"
    );
    // A class is judged by the same.
    let unnamed = with(class(), "/spec/infrastructure/templateRef/name", json!(""));
    let edited = with(unnamed.clone(), "/spec/workers/machineDeployments/1", Value::Null);
    let message = "spec.infrastructure.templateRef.name: template-reference: must be given";
    assert_eq!(update(&unnamed, &edited, &[cluster()]), warned(message));
    assert_eq!(update(&class(), &unnamed, &[cluster()]), refused(message));
}

#[test]
fn where_nothing_of_the_spec_changes_nothing_is_judged() {
    let mut bad = cluster();
    bad["spec"]["unheard"] = json!(1);
    let mut marked = bad.clone();
    marked["metadata"]["finalizers"] = json!(["a"]);
    marked["metadata"]["labels"] = json!({"a": "b"});
    marked["status"] = json!({"phase": "Ready"});
    assert_eq!(update(&bad, &marked, &[]), allowed());
    // Annotations say something that is judged, until it is being deleted.
    marked["metadata"]["annotations"] = json!({"topology.cluster.x-k8s.io/upgrade-concurrency": "0"});
    let (outcome, message, _) = update(&bad, &marked, &[class()]);
    assert_eq!(outcome, Outcome::Refused);
    assert!(
        message.contains("upgrade-concurrency") && !message.contains("unheard"),
        "{message}"
    );
    marked["metadata"]["deletionTimestamp"] = json!("2026-11-27T00:00:00Z");
    assert_eq!(update(&bad, &marked, &[]), allowed());
    // Its spec is judged nevertheless.
    marked["spec"]["topology"]["version"] = json!("1");
    assert_eq!(update(&bad, &marked, &[class()]).0, Outcome::Refused);
    let mut odd = class();
    odd["spec"]["unheard"] = json!(1);
    let mut annotated = odd.clone();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    assert_eq!(update(&odd, &annotated, &[]), allowed());
}

#[test]
fn clusters_without_a_topology_are_not_judged_and_none_is_added_or_taken() {
    let plain = without_topology();
    let mut changed = plain.clone();
    changed["spec"]["unheard"] = json!(1);
    assert_eq!(create(&changed, &[]), allowed());
    assert_eq!(update(&plain, &changed, &[]), allowed());
    let (_, message, _) = update(&cluster(), &plain, &[class()]);
    assert!(
        message.contains("topology-kept: must not be removed"),
        "{message}"
    );
    let (_, message, _) = update(&plain, &cluster(), &[class()]);
    assert!(message.contains("topology-kept: must not be added"), "{message}");
}

#[test]
fn other_kinds_subresources_and_operations_pass() {
    let mut machine = with(cluster(), "/kind", json!("Machine"));
    machine["spec"]["topology"]["version"] = json!("1");
    assert_eq!(create(&machine, &[]), allowed());
    let other = with(machine, "/kind", json!("Cluster"));
    let other_group = with(other.clone(), "/apiVersion", json!("other.example/v1beta2"));
    assert_eq!(create(&other_group, &[]), allowed());
    let mut status = body("UPDATE", Some(&other), Some(&cluster()));
    status["request"]["subResource"] = json!("status");
    assert_eq!(ask(&status, &[], false), allowed());
    assert_eq!(ask(&body("CONNECT", Some(&other), None), &[], false), allowed());
}

#[test]
fn both_spellings_are_judged_and_no_other() {
    let older = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "foo", "namespace": "bar"},
        "spec": {"topology": {"class": "mixed", "classNamespace": "infra", "version": "v1.30.1"}},
    });
    let review = read(&body("CREATE", Some(&older), None));
    let key = ("infra".to_owned(), "mixed".to_owned());
    assert_eq!(review.needs(), Needs::Classes("v1beta1", [key].into()));
    let newest = with(older, "/apiVersion", json!("cluster.x-k8s.io/v1beta9"));
    let review = read(&body("CREATE", Some(&newest), None));
    assert_eq!(review.needs(), Needs::Nothing);
    let said = review.judge(&Beside::default()).to_json();
    assert_eq!(
        said["response"]["status"]["message"],
        "apiVersion: document: must be v1beta1 or v1beta2 of cluster.x-k8s.io"
    );
}

#[test]
fn what_cannot_be_judged_is_refused_and_says_why() {
    let review = read(&body("CREATE", Some(&cluster()), None));
    let verdict = review.unread("the API server is silent");
    assert_eq!(verdict.outcome(), Outcome::Unread);
    let status = &verdict.to_json()["response"]["status"];
    assert_eq!(status["code"], 500);
    assert_eq!(
        status["message"],
        "cannot be judged now: the API server is silent"
    );
    let mut deep = json!(1);
    for _ in 0..70 {
        deep = json!([deep]);
    }
    let nested = with(cluster(), "/spec/topology/variables/0/value", deep);
    let (outcome, message, _) = create(&nested, &[class()]);
    assert_eq!(outcome, Outcome::Refused);
    assert!(message.contains("nested deeper than"), "{message}");
}

#[test]
fn what_is_no_review_is_told_so() {
    let told = |body: &Value| Review::read(body.to_string().as_bytes()).expect_err("no review");
    assert!(told(&json!({"a": 1})).starts_with("is no AdmissionReview of admission.k8s.io/v1 in JSON: "));
    let good = body("UPDATE", Some(&cluster()), Some(&cluster()));
    assert!(
        told(&with(
            good.clone(),
            "/apiVersion",
            json!("admission.k8s.io/v1beta1")
        ))
        .starts_with("must be")
    );
    assert!(told(&with(good.clone(), "/kind", json!("Review"))).starts_with("must be"));
    assert_eq!(
        told(&with(good.clone(), "/request", Value::Null)),
        "has no request"
    );
    assert_eq!(
        told(&with(good.clone(), "/request/object", Value::Null)),
        "has no object"
    );
    assert_eq!(
        told(&with(good, "/request/oldObject", Value::Null)),
        "has no oldObject"
    );
    let error = Review::read(b"{").expect_err("no JSON");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn a_message_names_so_many_findings_and_warnings_are_short() {
    let mut many = cluster();
    let names = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|at| json!({"class": "none", "name": format!("w{at}")}))
            .collect()
    };
    many["spec"]["topology"]["workers"]["machineDeployments"] = json!(names(FINDINGS_TOLD_MAX));
    let (_, message, _) = create(&many, &[class()]);
    assert!(
        message.starts_with("20 findings: ") && message.contains("[19].class: "),
        "{message}"
    );
    assert!(!message.contains("more"), "{message}");
    many["spec"]["topology"]["workers"]["machineDeployments"] = json!(names(FINDINGS_TOLD_MAX + 1));
    let (_, message, _) = create(&many, &[class()]);
    assert!(
        message.starts_with("21 findings: ") && message.ends_with("; and 1 more"),
        "{message}"
    );
    assert!(!message.contains("[20].class: "), "{message}");
    let referring = with(many.clone(), "/spec/infrastructureRef", json!({"kind": "X"}));
    let (outcome, _, warnings) = update(&many, &referring, &[class()]);
    assert_eq!((outcome, warnings.len()), (Outcome::Warned, WARNINGS_MAX));
    assert_eq!(warnings[WARNINGS_MAX - 1], "and 6 more");
    let mut long = cluster();
    long["spec"]["x".repeat(300)] = json!(1);
    let referring = with(long.clone(), "/spec/infrastructureRef", json!({"kind": "X"}));
    let (_, _, warnings) = update(&long, &referring, &[class()]);
    assert_eq!(warnings[0].chars().count(), 256);
    assert!(warnings[0].ends_with('…'), "{warnings:?}");
}

/// The class that the proposal shows, as it is written there: a variable that nobody defines, quotation marks of prose, a
/// selector of nothing; and the templates that "other fields" leave out.
#[test]
fn the_proposals_own_example_is_refused_for_each_of_its_mistakes() {
    let reference = |kind: &str| json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "t"});
    let example = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass",
        "metadata": {"name": "my-cluster-class", "namespace": "bar"},
        "spec": {
            "infrastructure": {"ref": reference("AWSClusterTemplate")},
            "controlPlane": {
                "ref": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlaneTemplate", "name": "t"},
                "machineInfrastructure": {"ref": reference("AWSMachineTemplate")},
            },
            "variables": [
                {"name": "region", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
                {"name": "controlPlaneMachineType",
                 "schema": {"openAPIV3Schema": {"type": "string", "default": "t3.large"}}},
            ],
            "patches": [
                {"name": "region", "definitions": [{
                    "selector": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSClusterTemplate"},
                    "jsonPatches": [{"op": "replace", "path": "“/spec/template/spec/region”",
                                     "valueFrom": {"variable": "region"}}],
                }]},
                {"name": "controlPlaneMachineType", "definitions": [{
                    "selector": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSMachineTemplate",
                                 "matchResources": {"controlPlane": true}},
                    "jsonPatches": [{"op": "replace", "path": "“/spec/template/spec/instanceType”",
                                     "valueFrom": {"variable": "machineType"}}],
                }]},
            ],
        }
    });
    let review = read(&body("CREATE", Some(&example), None));
    let said = review.judge(&Beside::default()).to_json();
    let message = said["response"]["status"]["message"].as_str().expect("refused");
    for mistake in [
        "4 findings",
        "selector-empty",
        "path-outside-spec",
        "variable-unknown",
        "machineType",
    ] {
        assert!(message.contains(mistake), "{mistake} is not in: {message}");
    }
    let mut mended = example;
    let patches = &mut mended["spec"]["patches"];
    patches[0]["definitions"][0]["selector"]["matchResources"] = json!({"infrastructureCluster": true});
    patches[0]["definitions"][0]["jsonPatches"][0]["path"] = json!("/spec/template/spec/region");
    patches[1]["definitions"][0]["jsonPatches"][0]["path"] = json!("/spec/template/spec/instanceType");
    patches[1]["definitions"][0]["jsonPatches"][0]["valueFrom"]["variable"] =
        json!("controlPlaneMachineType");
    let review = read(&body("CREATE", Some(&mended), None));
    let verdict = review.judge(&Beside::default());
    assert_eq!(verdict.outcome(), Outcome::Allowed, "{}", verdict.to_json());
}
