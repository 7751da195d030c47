//! The requests of a plan.

use serde_json::json;

use super::*;

fn change(action: Action, object: Option<Value>, kind: &str, name: &str) -> Change {
    Change {
        place: "p".to_owned(),
        action,
        kind: kind.to_owned(),
        name: name.to_owned(),
        before: None,
        fields: Vec::new(),
        note: String::new(),
        object,
        machines: 0,
    }
}

fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": "ns", "uid": format!("u-{name}")},
    })
}

/// The actions, with the identities of existing objects.
fn of(changes: Vec<Change>, known: &[Value], there: &[Value]) -> Vec<(Intent, String, Option<String>)> {
    let plan = Plan {
        namespace: "ns".to_owned(),
        changes,
        ..Plan::default()
    };
    let kept = Kept {
        objects: known
            .iter()
            .map(|one| (ObjectName::of(one), one.clone()))
            .collect(),
        ..Kept::default()
    };
    let steps = steps(&plan, Some(&kept), &Objects::of(there));
    steps
        .into_iter()
        .map(|step| (step.intent, step.object.name, step.uid))
        .collect()
}

#[test]
fn what_is_known_and_as_it_should_be_is_not_asked_for() {
    let one = object("Plane", "a");
    let uid = Some("u-a".to_owned());
    let planned = |action: Action| vec![change(action, Some(one.clone()), "Plane", "a")];
    assert_eq!(
        of(
            planned(Action::Keep),
            std::slice::from_ref(&one),
            std::slice::from_ref(&one)
        ),
        []
    );
    assert_eq!(
        of(planned(Action::Keep), &[], std::slice::from_ref(&one)),
        [(Intent::Claim, "a".to_owned(), uid.clone())],
        "it was not written by us, as far as is known"
    );
    assert_eq!(of(planned(Action::Wait), &[], &[]), []);
    assert_eq!(
        of(planned(Action::Create), &[], &[]),
        [(Intent::Create, "a".to_owned(), None)]
    );
    assert_eq!(
        of(planned(Action::Create), &[], std::slice::from_ref(&one)),
        [(Intent::Claim, "a".to_owned(), None)],
        "it was made before a crash, or by somebody else"
    );
    assert_eq!(
        of(planned(Action::Update), &[], std::slice::from_ref(&one)),
        [(Intent::Update, "a".to_owned(), uid)]
    );
}

#[test]
fn templates_are_not_deleted_with_what_refers_to_them() {
    let gone = |kind: &str| vec![change(Action::Delete, None, kind, "a")];
    let there = [object("MachineDeployment", "a"), object("HostTemplate", "a")];
    let uid = Some("u-a".to_owned());
    assert_eq!(
        of(gone("MachineDeployment"), &[], &there),
        [(Intent::Delete, "a".to_owned(), uid)]
    );
    assert_eq!(of(gone("HostTemplate"), &[], &there), []);
    assert_eq!(of(gone("MachineDeployment"), &[], &[]), [], "it is gone");
}

#[test]
fn what_is_neither_there_nor_planned_is_lost() {
    let (planned, there, gone) = (object("A", "planned"), object("B", "there"), object("C", "gone"));
    let plan = Plan {
        namespace: "ns".to_owned(),
        changes: vec![change(Action::Create, Some(planned.clone()), "A", "planned")],
        ..Plan::default()
    };
    let all = [planned, there.clone(), gone.clone()];
    let kept = Kept {
        objects: all.iter().map(|one| (ObjectName::of(one), one.clone())).collect(),
        ..Kept::default()
    };
    assert_eq!(
        lost(&plan, &kept, &Objects::of([&there])),
        [ObjectName::of(&gone)]
    );
}
