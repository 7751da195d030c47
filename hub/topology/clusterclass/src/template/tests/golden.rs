//! Every vector of `golden.json` gives what Go's engine gave.

use serde_json::{Value, json};

use super::super::{Outcome, render};

const GOLDEN: &str = include_str!("golden.json");
/// Number of vectors: a lost one is noticed.
const VECTORS: usize = 244;

fn shown(outcome: &Outcome) -> Value {
    let mut shown: Value = serde_json::from_str(&outcome.to_json()).expect("a result is JSON");
    if let Some(fields) = shown.as_object_mut() {
        fields.remove("findings");
        fields.remove("message");
    }
    shown
}

/// Numbers by what they are, not by how they are written.
fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one.as_f64() == two.as_f64(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one
                    .iter()
                    .all(|(key, one)| two.get(key).is_some_and(|two| same(one, two)))
        }
        _ => one == two,
    }
}

#[test]
fn every_golden_vector_is_right() {
    let golden: Value = serde_json::from_str(GOLDEN).expect("the golden vectors are JSON");
    let cases = golden["cases"].as_array().expect("they are a list");
    let mut wrong = Vec::new();
    for case in cases {
        let template = case["template"].as_str().expect("a template");
        let mut expected = case.clone();
        if let Some(fields) = expected.as_object_mut() {
            for field in ["name", "template", "variables", "upstreamMessage"] {
                fields.remove(field);
            }
        }
        let found = shown(&render(template, case["variables"].to_string().as_bytes()));
        if !same(&found, &expected) {
            wrong.push(
                json!({ "name": case["name"], "template": template, "expected": expected, "found": found }),
            );
        }
    }
    println!(
        "{} of {} golden vectors are right",
        cases.len() - wrong.len(),
        cases.len()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(cases.len(), VECTORS);
}
