//! Tests of definitions, of values that fit, and of defaults.

use serde_json::{Value, json};

use super::{
    super::model::{Definition, Estate, Placed},
    *,
};

fn class(definitions: &[(&str, bool, Value)]) -> Class {
    let mut estate = Estate::default();
    estate.add(
        "f",
        "{apiVersion: cluster.x-k8s.io/v1beta2, kind: ClusterClass, metadata: {name: c}, spec: {}}",
    );
    let mut class = estate.classes.into_values().next().unwrap();
    class.variables = definitions
        .iter()
        .enumerate()
        .map(|(at, (name, required, schema))| Definition {
            field: format!("v[{at}]"),
            name: (*name).to_owned(),
            required: *required,
            metadata: Default::default(),
            schema: Placed {
                field: format!("v[{at}].s"),
                value: schema.clone(),
            },
            from: Vec::new(),
        })
        .collect();
    class
}

fn given(name: &str, value: Value) -> Variable {
    Variable {
        field: format!("x[{name}]"),
        name: name.to_owned(),
        value,
    }
}

fn told(report: Report) -> Vec<(String, &'static str)> {
    let told = report.into_findings().into_iter();
    told.map(|finding| (finding.field, finding.rule)).collect()
}

/// Findings about one definition.
fn defined(name: &str, schema: Value) -> Vec<(String, &'static str)> {
    let mut report = Report::new("f", "o");
    Variables::read(&class(&[(name, false, schema)]), &mut report);
    told(report)
}

/// Messages about a value of one schema.
fn judged(schema: Value, value: Value) -> Vec<String> {
    let mut report = Report::new("f", "o");
    let variables = Variables::read(&class(&[("a", false, schema)]), &mut report);
    assert_eq!(told(report), []);
    let problems = variables.problems(&given("a", value)).into_iter();
    problems
        .map(|(field, message)| format!("{} {message}", field.trim_start_matches("x[a].value")))
        .collect()
}

#[test]
fn names_are_unique_and_none_is_reserved() {
    let text = json!({"type": "string"});
    assert_eq!(defined("a", text.clone()), []);
    for bad in ["", "builtin", "a.b"] {
        assert_eq!(
            defined(bad, text.clone()),
            [("v[0].name".to_owned(), "variable-name")]
        );
    }
    let mut report = Report::new("f", "o");
    Variables::read(
        &class(&[("a", false, text.clone()), ("a", true, text)]),
        &mut report,
    );
    assert_eq!(told(report), [("v[1].name".to_owned(), "variable-name")]);
}

#[test]
fn schemas_are_structural() {
    for (schema, field) in [
        (json!({}), "v[0].s.type"),
        (json!({"type": "null"}), "v[0].s.type"),
        (json!([]), "v[0].s"),
        (json!({"type": "array"}), "v[0].s.items"),
        (json!({"type": "string", "pattern": "("}), "v[0].s.pattern"),
        (json!({"type": "string", "maxLength": -1}), "v[0].s.maxLength"),
        (json!({"type": "integer", "minimum": 1.5}), "v[0].s.minimum"),
        (json!({"type": "string", "enum": []}), "v[0].s.enum"),
        (json!({"type": "object", "required": [1]}), "v[0].s.required"),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "v[0].s.additionalProperties",
        ),
        (
            json!({"type": "string", "items": {"type": "string"}}),
            "v[0].s.items",
        ),
        (
            json!({"type": "string", "properties": {"a": {"type": "string"}}}),
            "v[0].s.properties",
        ),
        (
            json!({"type": "string", "x-kubernetes-preserve-unknown-fields": true}),
            "v[0].s.x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"type": "string", "anyOf": [{"default": "a"}]}),
            "v[0].s.anyOf[0].default",
        ),
        (json!({"type": "string", "uniqueItems": 1}), "v[0].s.uniqueItems"),
    ] {
        let told = defined("a", schema);
        assert!(
            told.contains(&(field.to_owned(), "variable-schema")),
            "{field}: {told:?}"
        );
    }
}

#[test]
fn fields_of_schemas_that_nobody_reads_are_kept_below_the_outermost() {
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "nullable": true, "properties": {"name": {"type": "string", "title": "Name"}}}});
    assert_eq!(
        defined("a", json!({"type": "object", "properties": {"list": list}})),
        []
    );
    assert_eq!(
        defined("a", list),
        [
            ("v[0].s.x-kubernetes-list-map-keys".to_owned(), "unknown-field"),
            ("v[0].s.x-kubernetes-list-type".to_owned(), "unknown-field"),
        ]
    );
}

#[test]
fn what_is_left_out_of_schemas_is_refused() {
    let told = defined(
        "a",
        json!({"type": "object", "properties": {
            "r": {"type": "object", "$ref": "#"},
            "f": {"type": "string", "format": "email"}}}),
    );
    let at = |name: &str| format!("v[0].s.properties{name}");
    assert_eq!(
        told,
        [(at("[f].format"), "left-out"), (at("[r].$ref"), "left-out"),]
    );
}

#[test]
fn constants_fit_their_schema() {
    assert_eq!(
        defined(
            "a",
            json!({"type": "integer", "default": 1, "example": 2, "enum": [1, 2]})
        ),
        []
    );
    for (name, schema) in [
        ("default", json!({"type": "integer", "default": "1"})),
        ("example", json!({"type": "integer", "example": "1"})),
        ("enum[0]", json!({"type": "integer", "enum": ["1"]})),
        (
            "properties[b].default",
            json!({"type": "object", "properties": {"b": {"type": "integer", "default": "1"}}}),
        ),
        (
            "items.default",
            json!({"type": "array", "items": {"type": "integer", "default": "1"}}),
        ),
    ] {
        assert_eq!(
            defined("a", schema),
            [(format!("v[0].s.{name}"), "variable-constant")]
        );
    }
}

#[test]
fn values_have_their_type() {
    for (kind, good, bad) in [
        ("string", json!("a"), json!(1)),
        ("integer", json!(1.0), json!(1.5)),
        ("number", json!(1.5), json!("1")),
        ("boolean", json!(true), json!("true")),
        ("object", json!({}), json!([])),
    ] {
        assert_eq!(judged(json!({"type": kind}), good), Vec::<String>::new());
        assert_eq!(
            judged(json!({"type": kind}), bad),
            [format!(" must be of type {kind}")]
        );
        assert!(!judged(json!({"type": kind}), Value::Null).is_empty());
    }
    let either = json!({"x-kubernetes-int-or-string": true});
    assert!(judged(either.clone(), json!(1)).is_empty() && judged(either.clone(), json!("1")).is_empty());
    assert_eq!(
        judged(either, json!(true)),
        [" must be of type integer or string"]
    );
}

#[test]
fn values_keep_their_bounds() {
    for (schema, good, bad, message) in [
        (
            json!({"type": "string", "minLength": 2}),
            json!("ää"),
            json!("ä"),
            "at least 2 characters",
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("ä"),
            json!("ää"),
            "at most 1 characters",
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("aa"),
            json!("ab"),
            "match ^a+$",
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("1.2.3.4"),
            json!("1"),
            "format ipv4",
        ),
        (
            json!({"type": "string", "enum": ["a"]}),
            json!("a"),
            json!("b"),
            "one of \"a\"",
        ),
        (
            json!({"type": "number", "enum": [1]}),
            json!(1.0),
            json!(2),
            "one of 1",
        ),
        (
            json!({"type": "number", "minimum": 2}),
            json!(2),
            json!(1.9),
            "at least 2",
        ),
        (
            json!({"type": "number", "maximum": 2}),
            json!(2),
            json!(2.1),
            "at most 2",
        ),
        (
            json!({"type": "integer", "minimum": 2, "exclusiveMinimum": true}),
            json!(3),
            json!(2),
            "more than 2",
        ),
        (
            json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
            json!(1),
            json!(2),
            "less than 2",
        ),
    ] {
        assert_eq!(judged(schema.clone(), good), Vec::<String>::new());
        let told = judged(schema, bad);
        assert!(told.len() == 1 && told[0].contains(message), "{told:?} {message}");
    }
}

#[test]
fn lists_and_objects_are_judged_inside() {
    let list = json!({"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"type": "integer"}});
    assert!(judged(list.clone(), json!([1, 2])).is_empty());
    assert_eq!(judged(list.clone(), json!([])), [" must have at least 1 items"]);
    assert_eq!(
        judged(list.clone(), json!([1, 2, 3])),
        [" must have at most 2 items"]
    );
    assert_eq!(
        judged(list.clone(), json!([1, 1.0])),
        [" must not have an item twice"]
    );
    assert_eq!(judged(list, json!([1, "a"])), ["[1] must be of type integer"]);
    let object = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}, "maxProperties": 1});
    assert!(judged(object.clone(), json!({"a": "b"})).is_empty());
    assert_eq!(
        judged(object, json!({"b": 1, "c": 2})),
        [
            " must have at most 1 properties",
            ".a must be given",
            ".b no such field: remove it",
            ".c no such field: remove it"
        ]
    );
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1});
    assert_eq!(
        judged(map.clone(), json!({})),
        [" must have at least 1 properties"]
    );
    assert_eq!(judged(map, json!({"a": 1})), [".a must be of type string"]);
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert!(judged(free, json!({"a": {"b": []}})).is_empty());
}

#[test]
fn combinations_are_judged() {
    let long = json!({"minLength": 2});
    let with_a = json!({"pattern": "a"});
    let schema = |name: &str| json!({"type": "string", name: [long, with_a]});
    assert!(judged(schema("allOf"), json!("ab")).is_empty());
    assert_eq!(judged(schema("allOf"), json!("b")).len(), 2);
    assert!(judged(schema("anyOf"), json!("a")).is_empty());
    assert_eq!(
        judged(schema("anyOf"), json!("b")),
        [" must be as one of anyOf says"]
    );
    assert!(judged(schema("oneOf"), json!("a")).is_empty());
    assert_eq!(
        judged(schema("oneOf"), json!("ab")),
        [" must be as exactly one of oneOf says"]
    );
    let not = json!({"type": "string", "not": {"pattern": "a"}});
    assert!(judged(not.clone(), json!("b")).is_empty());
    assert_eq!(judged(not, json!("a")), [" must not be as not says"]);
}

#[test]
fn defaults_stick_and_reach_what_is_there() {
    let nested = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 3}}});
    let mut report = Report::new("f", "o");
    let variables = Variables::read(
        &class(&[
            ("z", true, json!({"type": "string", "default": "new"})),
            ("b", false, nested.clone()),
            ("c", false, json!({"type": "array", "items": nested})),
            (
                "a",
                false,
                json!({"type": "object", "default": {}, "properties": {"d": {"type": "string", "default": "e"}}}),
            ),
            ("none", false, json!({"type": "string"})),
        ]),
        &mut report,
    );
    assert_eq!(told(report), []);
    let values = [
        given("z", json!("old")),
        given("b", json!({"n": null})),
        given("c", json!([{}, {"n": 4}])),
    ];
    let named = |values: Vec<Variable>| -> Vec<(String, Value)> {
        values
            .into_iter()
            .map(|variable| (variable.name, variable.value))
            .collect()
    };
    let filled = [
        ("z".to_owned(), json!("old")),
        ("b".to_owned(), json!({"n": 3})),
        ("c".to_owned(), json!([{"n": 3}, {"n": 4}])),
    ];
    assert_eq!(named(variables.filled(&values)), filled);
    let mut all = filled.to_vec();
    all.push(("a".to_owned(), json!({"d": "e"})));
    let defaulted = variables.defaulted(&values, "x");
    assert_eq!(named(defaulted.clone()), all);
    assert_eq!(variables.defaulted(&defaulted, "x"), defaulted);
    assert_eq!(
        named(variables.defaulted(&[], "x"))[1],
        ("z".to_owned(), json!("new"))
    );
}

#[test]
fn values_are_defined_unique_and_complete() {
    let text = json!({"type": "string"});
    let mut report = Report::new("f", "o");
    let variables = Variables::read(
        &class(&[("a", true, text.clone()), ("b", false, text)]),
        &mut report,
    );
    variables.check(&[given("a", json!("1"))], "x", &mut report);
    variables.check_overrides(&[], &mut report);
    assert_eq!(told(report), []);
    let mut report = Report::new("f", "o");
    let values = [given("b", json!(1)), given("b", json!("1")), given("c", json!(1))];
    variables.check(&values, "x", &mut report);
    assert_eq!(
        told(report),
        [
            ("x[b].value".to_owned(), "variable-value"),
            ("x[b].name".to_owned(), "variable-unique"),
            ("x[c].name".to_owned(), "variable-defined"),
            ("x".to_owned(), "variable-required"),
        ]
    );
    assert!(variables.must_be_given("a") && !variables.must_be_given("b"));
}

#[test]
fn a_large_schema_is_told_once() {
    let many: serde_json::Map<String, Value> = (0..3_000)
        .map(|at| (format!("p{at}"), json!({"type": "string"})))
        .collect();
    let told = defined("a", json!({"type": "object", "properties": many}));
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, "bound");
    let many: Vec<Value> = (0..60).map(|_| json!({"pattern": "a"})).collect();
    let told = defined("a", json!({"type": "string", "allOf": many}));
    assert_eq!(
        told[0],
        ("v[0].s.allOf[50].pattern".to_owned(), "variable-schema")
    );
}

#[test]
fn constants_keep_the_rules_of_their_variable() {
    let with = |name: &str, value: Value| {
        let mut schema = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3"}]});
        schema[name] = value;
        defined("a", schema)
    };
    let told = |place: &str| vec![(format!("v[0].s.{place}"), "variable-constant")];
    assert_eq!(with("default", json!(5)), told("default"));
    assert_eq!(with("example", json!(5)), told("example"));
    assert_eq!(with("enum", json!([1, 5])), told("enum[1]"));
    for name in ["default", "example"] {
        assert_eq!(with(name, json!(2)), []);
    }
}

/// The cases of upstream's "fail if x-kubernetes-validations has valid rule: invalid default value (nested)", and those of
/// examples and enums.
#[test]
fn constants_keep_the_rules_of_what_is_nested() {
    let nested = |name: &str, value: Value| {
        let mut property =
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "more"}]});
        property[name] = value;
        defined(
            "a",
            json!({"type": "object", "properties": {"integer": property}}),
        )
    };
    let told = |place: &str| vec![(format!("v[0].s.properties[integer].{place}"), "variable-constant")];
    assert_eq!(nested("default", json!(0)), told("default"));
    assert_eq!(nested("example", json!(0)), told("example"));
    assert_eq!(nested("enum", json!([2, 1])), told("enum[1]"));
    assert_eq!(nested("default", json!(2)), []);
    // A default is checked by the rules of nested schemas, too; an example is not, unless its own schema has rules.
    let outer = |name: &str| {
        defined(
            "a",
            json!({"type": "object", name: {"integer": 0}, "properties": {"integer":
                {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "more"}]}}}),
        )
    };
    let at = |field: &str| vec![(format!("v[0].s.{field}"), "variable-constant")];
    assert_eq!(outer("default"), at("default.integer"));
    assert_eq!(outer("example"), []);
}

/// Upstream's "fail if field is required below properties and sets a default that misses the field".
#[test]
fn a_default_has_what_its_schema_requires() {
    let with = |default: Value| {
        let number = json!({"type": "integer", "default": 100, "minimum": 1});
        let spec = json!({"type": "object", "required": ["replicas"], "default": default,
            "properties": {"replicas": number, "value": number}});
        defined("a", json!({"type": "object", "properties": {"spec": spec}}))
    };
    let told = vec![(
        "v[0].s.properties[spec].default.replicas".to_owned(),
        "variable-constant",
    )];
    assert_eq!(with(json!({"value": 100})), told);
    assert_eq!(with(json!({"replicas": 100})), []);
}
