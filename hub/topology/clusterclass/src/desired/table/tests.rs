//! Tests of the tables that people read.

use serde_json::json;

use super::*;

fn change(action: Action, place: &str, fields: Vec<Difference>) -> Change {
    Change {
        place: place.to_owned(),
        action,
        kind: "K".to_owned(),
        name: "n".to_owned(),
        before: (action == Action::Rotate).then(|| "m".to_owned()),
        fields,
        note: String::new(),
        object: (action.writes() && action != Action::Delete).then(|| json!({"kind": "K"})),
        machines: 0,
    }
}

fn difference(field: &str) -> Difference {
    Difference {
        field: field.to_owned(),
        old: None,
        new: Some(json!("x".repeat(99))),
    }
}

fn plan(changes: Vec<Change>) -> Plan {
    Plan {
        namespace: "ns".to_owned(),
        name: "c".to_owned(),
        changes,
        ..Plan::default()
    }
}

#[test]
fn each_reason_has_a_line_and_the_sum_is_last() {
    let mut update = change(Action::Update, "md", vec![difference("spec.a")]);
    update.machines = 3;
    let mut wait = change(Action::Wait, "cp", Vec::new());
    wait.note = "later".to_owned();
    let fields: Vec<Difference> = (0..12).map(|at| difference(&format!("spec.f{at}"))).collect();
    let changes = vec![
        change(Action::Keep, "kept", Vec::new()),
        change(Action::Rotate, "t", fields),
        update,
        wait,
        Change {
            machines: 2,
            ..change(Action::Delete, "gone", Vec::new())
        },
    ];
    let mut one = plan(changes);
    one.upgrade = vec!["it goes on".to_owned()];
    let said = table(&[one, plan(vec![change(Action::Keep, "kept", Vec::new())])]);
    let x = format!("nothing -> \"{}…", "x".repeat(MAX_SHOWN - 1));
    let mut expected = vec![
        "CLUSTER  ACTION  OBJECT  NAME    WHY".to_owned(),
        format!("ns/c     rotate  t       m -> n  spec.f0: {x}"),
    ];
    let pad = " ".repeat(33);
    expected.extend((1..10).map(|at| format!("{pad}spec.f{at}: {x}")));
    expected.extend([
        format!("{pad}and 2 more"),
        format!("ns/c     update  md      n       spec.a: {x}"),
        format!("{pad}at most 3 machines are replaced"),
        "ns/c     wait    cp      n       later".to_owned(),
        "ns/c     delete  gone    n       at most 2 machines go".to_owned(),
        String::new(),
        "ns/c: it goes on".to_owned(),
        "1 of 2 clusters changed; objects: 0 created, 1 updated, 1 rotated, 1 deleted, 1 waiting; machines: at most 3 \
         replaced, 2 deleted"
            .to_owned(),
    ]);
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn nothing_is_a_line() {
    assert_eq!(table(&[plan(Vec::new())]), "nothing changes in 1 cluster\n");
}

#[test]
fn documents_are_objects_under_what_becomes_of_them() {
    let mut wait = change(Action::Wait, "cp", Vec::new());
    wait.note = "later".to_owned();
    let said = documents(&[plan(vec![
        change(Action::Create, "a", Vec::new()),
        wait,
        change(Action::Delete, "b", Vec::new()),
    ])]);
    let expected = "---\n# ns/c: create a\nkind: K\n# ns/c: wait cp, K n: later\n# ns/c: delete b, K n\n";
    assert_eq!(said, expected);
}
