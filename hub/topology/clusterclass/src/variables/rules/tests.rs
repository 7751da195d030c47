//! Rules in CEL: what is refused of them, and what they say of values.

use serde_json::json;

use super::*;

fn read_one(schema: Value) -> (Rules, Vec<(String, &'static str, String)>) {
    let mut report = Report::new("f", "o");
    let schema = Placed {
        field: "s".to_owned(),
        value: schema,
    };
    let rules = read(&schema, &mut report);
    let told = report.into_findings().into_iter();
    let told = told.map(|finding| (finding.field, finding.rule, finding.message));
    (rules, told.collect())
}

fn with_rule(rule: Value) -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [rule]})
}

/// Findings when a rule is read.
fn refused(rule: Value) -> Vec<(String, &'static str, String)> {
    read_one(with_rule(rule)).1
}

/// A rule's findings about a value.
fn judged(rule: &str, value: Value, old: Option<Value>) -> Vec<(String, String)> {
    let (rules, told) = read_one(with_rule(json!({"rule": rule, "message": "no"})));
    assert_eq!(told, [], "{rule}");
    rules.problems(&value, old.as_ref(), "v")
}

#[test]
fn values_are_held_against_rules_wherever_they_stand() {
    let schema = json!({"type": "object",
        "x-kubernetes-validations": [{"rule": "self.least <= self.most", "messageExpression": "'least is ' + string(self.least)", "fieldPath": ".least"}],
        "properties": {
            "least": {"type": "integer"}, "most": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}]}},
            "of": {"type": "object", "additionalProperties": {"type": "string", "x-kubernetes-validations": [{"rule": "isQuantity(self)", "message": "no quantity"}]}}}});
    let (rules, told) = read_one(schema);
    assert_eq!(told, []);
    let good = json!({"least": 1, "most": 1, "names": ["a"], "of": {"x": "1Gi"}});
    assert_eq!(rules.problems(&good, None, "v"), []);
    let bad = json!({"least": 2, "most": 1, "names": ["a", "b"], "of": {"x": "1Xi"}});
    let mut problems = rules.problems(&bad, None, "v");
    problems.sort();
    let at = |field: &str, message: &str| (field.to_owned(), message.to_owned());
    assert_eq!(
        problems,
        [
            at("v.least", "least is 2"),
            at("v.names[1]", "failed rule: self.startsWith('a')"),
            at("v.of.x", "no quantity"),
        ]
    );
}

#[test]
fn what_names_the_value_before_is_asked_of_changes_only() {
    let rule = "self.size >= oldSelf.size";
    assert_eq!(judged(rule, json!({"size": 1}), None), []);
    assert_eq!(judged(rule, json!({"size": 1}), Some(json!({"size": 1}))), []);
    assert_eq!(
        judged(rule, json!({"size": 1}), Some(json!({"size": 2}))),
        [("v".to_owned(), "no".to_owned())]
    );
}

#[test]
fn a_rule_that_cannot_be_judged_takes_no_value() {
    let problems = judged("self.a > 1", json!({}), None);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].1.contains("evaluation error"), "{problems:?}");
}

#[test]
fn rules_are_such() {
    let bad = [
        (json!("self > 1"), "", "must be an object with a rule"),
        (json!({}), ".rule", "must be given"),
        (json!({"rule": " "}), ".rule", "must be given"),
        (json!({"rule": "self.a =="}), ".rule", "is not CEL"),
        (
            json!({"rule": "self.a", "messageExpression": "'"}),
            ".messageExpression",
            "is not CEL",
        ),
        (
            json!({"rule": "self.a", "message": "a\nb"}),
            ".message",
            "must be one line",
        ),
        (
            json!({"rule": "self.a > 0", "message": " "}),
            ".message",
            "must not be blank",
        ),
        (
            json!({"rule": "self.a > 0", "message": "a".repeat(2049)}),
            ".message",
            "must have at most 2048 bytes",
        ),
        (
            json!({"rule": "self.a \n > 0", "message": ""}),
            ".message",
            "must be given for a rule of several lines",
        ),
        (
            json!({"rule": "self.a > 0", "messageExpression": " "}),
            ".messageExpression",
            "must not be blank",
        ),
        (
            json!({"rule": "self.a > 0", "fieldPath": ".b"}),
            ".fieldPath",
            "must be the path of a field",
        ),
        (
            json!({"rule": "self.a", "reason": "Bad"}),
            ".reason",
            "must be one of FieldValueInvalid",
        ),
        (
            json!({"rule": "self.a", "optionalOldSelf": true}),
            ".optionalOldSelf",
            "no such field",
        ),
        (
            json!({"rule": "object.a"}),
            ".rule",
            "names object, and only self and oldSelf are there",
        ),
        (json!({"rule": "self.l.all(x, y)"}), ".rule", "names y,"),
        (
            json!({"rule": "now() > self.a"}),
            ".rule",
            "names the function now, which",
        ),
        (
            json!({"rule": "size(lists.range(1000000000)) > self.a"}),
            ".rule",
            "names the function lists.range",
        ),
        (
            json!({"rule": "self.a.format([1]) == ''"}),
            ".rule",
            "formats with what is no text",
        ),
        (
            json!({"rule": "'%.999999999f'.format([1.0]) == ''"}),
            ".rule",
            "formats with what is no text",
        ),
        (json!({"rule": "!!self.a"}), ".rule", "must not have !!"),
        (
            json!({"rule": "Kind{a: 1}.a == self.a"}),
            ".rule",
            "names the type Kind",
        ),
    ];
    for (rule, at, message) in bad {
        let told = refused(rule.clone());
        assert_eq!(told.len(), 1, "{rule}: {told:?}");
        assert_eq!(told[0].0, format!("s.x-kubernetes-validations[0]{at}"), "{rule}");
        assert!(told[0].2.starts_with(message), "{rule}: {told:?}");
    }
    let listed = json!({"type": "array", "items": with_rule(json!({"rule": "self == oldSelf"}))});
    assert!(
        read_one(listed).1[0]
            .2
            .starts_with("must not name oldSelf below the items")
    );
    let many = vec![json!({"rule": "true"}); RULES_MAX + 5];
    let told = read_one(json!({"type": "string", "x-kubernetes-validations": many})).1;
    assert_eq!((told.len(), told[0].1), (1, "bound"));
    assert_eq!(
        read_one(json!({"type": "string", "x-kubernetes-validations": 1}))
            .1
            .len(),
        1
    );
}

/// Whatever is read by calling itself ends the process when the stack does: nothing within the bounds does that.
#[test]
fn the_deepest_rules_are_read_and_judged() {
    let (deep, long) = (BRACKETS_MAX, RULE_BYTES_MAX);
    let chain = |piece: &str, end: &str| piece.repeat((long - end.len()) / piece.len()) + end;
    let within = [
        "(".repeat(deep) + "true" + &")".repeat(deep),
        "[".repeat(deep) + "1" + &"]".repeat(deep) + " == 1",
        "{1:".repeat(deep) + "1" + &"}".repeat(deep) + " == 1",
        "size(".repeat(deep) + "self" + &")".repeat(deep) + " == 1",
        "self.l.all(x,".repeat(deep) + "true" + &")".repeat(deep),
        chain("1+", "1 > 0"),
        chain("1==", "1"),
        chain("1 in ", "[1]"),
        chain("true||", "true"),
        "true?true:".repeat(CHOICES_MAX) + "true",
        "(".repeat(deep) + &"true?true:".repeat(CHOICES_MAX) + "true" + &")".repeat(deep),
        chain("! ", "true"),
        "self".to_owned() + &chain(".a", " == 1"),
        "self".to_owned() + &chain("[0]", " == 1")[4..],
        chain("a", ""),
        chain("\u{1f980}", ""),
    ];
    for rule in within {
        let (rules, told) = read_one(with_rule(json!({"rule": rule})));
        if told.is_empty() {
            rules.problems(&json!({"l": [1], "a": 1}), None, "v");
        }
    }
    let beyond = [
        "(".repeat(deep + 1) + "1" + &")".repeat(deep + 1),
        "true?true:".repeat(CHOICES_MAX + 1) + "true",
        "1".repeat(long + 1),
    ];
    for beyond in beyond {
        assert!(refused(json!({"rule": beyond}))[0].2.starts_with("must "));
    }
}

#[test]
fn a_value_that_its_rules_would_be_busy_with_is_refused() {
    let names = |count: usize| json!({"l": vec!["n"; count]});
    let once = "self.l.all(x, x == 'n')";
    assert_eq!(judged(once, names(10_000), None), []);
    let twice = "self.l.all(x, self.l.exists(y, y == x))";
    assert_eq!(judged(twice, names(100), None), []);
    let told = judged(twice, names(10_000), None);
    assert!(
        told[0].1.starts_with("is too large for its rules in CEL"),
        "{told:?}"
    );
    for walks in [
        "self.l.all(x, x in self.l)",
        "self.l.all(x, self.l == self.l)",
        "sets.equivalent(self.l, self.l)",
        "self.l.all(x, self.l.contains(x))",
        "size(self.l.distinct()) == size(self.l)",
    ] {
        let told = judged(walks, names(10_000), None);
        assert!(
            told[0].1.starts_with("is too large for its rules in CEL"),
            "{walks}: {told:?}"
        );
    }
    assert_eq!(judged("self.l.all(x, x in self.l)", names(100), None), []);
    let sums = "self.t+".repeat(500) + "'' != ''";
    let told = judged(&sums, json!({"t": "a".repeat(100_000)}), None);
    assert!(
        told[0].1.starts_with("is too large for its rules in CEL"),
        "{told:?}"
    );
    // Each makes the text as large as its square.
    let grows = "size(self.t.replace('', self.t).replace('', self.t)) > 0";
    assert_eq!(judged(grows, json!({"t": "abc"}), None), []);
    let told = judged(grows, json!({"t": "a".repeat(10_000)}), None);
    assert!(
        told[0].1.starts_with("is too large for its rules in CEL"),
        "{told:?}"
    );
}

const PIECES: &[&str] = &[
    "self",
    ".",
    "a",
    "l",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "?",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "<",
    "==",
    "&&",
    "||",
    " in ",
    "has(",
    "all(x,",
    "map(x,",
    "exists_one(",
    "filter(x,",
    "size(",
    "x",
    "1",
    "0",
    "-1",
    "9223372036854775807",
    "1u",
    "1.5",
    "1e400",
    "'t'",
    "b'\\xff'",
    "'\\u0000'",
    "''",
    "r'('",
    "null",
    "true",
    "matches(",
    "replace(",
    "substring(",
    "split(",
    "join(",
    "format(",
    "'%s%d%e'",
    "charAt(",
    "indexOf(",
    "slice(",
    "quantity(",
    "'1Gi'",
    "ip(",
    "'::1'",
    "cidr(",
    "'10.0.0.0/8'",
    "url(",
    "semver(",
    "duration(",
    "'1h'",
    "timestamp(",
    "int(",
    "uint(",
    "string(",
    "bytes(",
    "math.greatest(",
    "math.bitShiftLeft(",
    "sets.contains(",
    "optional.of(",
    "optional.none()",
    "orValue(",
    "flatten(",
    "sort(",
    "sum(",
    "min(",
    "base64.decode(",
    "getFullYear(",
    "oldSelf",
    "\"",
    "'",
    "\\",
    "//",
    "\n",
    "\u{1f980}",
    "msg{",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// Whatever somebody writes for a rule, nothing ends but the reading of it.
    #[test]
    fn no_rule_ends_the_process(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 1..14)) {
        let rule = json!({"rule": pieces.concat(), "messageExpression": pieces.concat()});
        let (rules, told) = read_one(with_rule(rule));
        if told.is_empty() {
            let value = json!({"a": "t", "l": [1, "t", {"a": 1.5}], "x": null});
            rules.problems(&value, Some(&json!({"a": 1})), "v");
        }
    }
}
