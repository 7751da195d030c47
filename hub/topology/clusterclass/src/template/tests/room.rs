//! Tests beyond the golden vectors: findings, refusals, and cases in which upstream is not repeatable.

use super::super::{Stage, render};

fn problem(template: &str, variables: &str) -> (Stage, String) {
    let problem = render(template, variables.as_bytes()).problem.expect("it fails");
    (problem.stage, problem.message)
}

fn text(template: &str, variables: &str) -> String {
    let outcome = render(template, variables.as_bytes());
    let rendered = outcome
        .rendered
        .unwrap_or_else(|| panic!("{template}: {:?}", outcome.problem));
    String::from_utf8(rendered).expect("UTF-8")
}

#[test]
fn a_value_that_is_missing_is_written_and_reported() {
    let outcome = render("a: {{ .a }}\nb: {{ .b }}", br#"{"b": 1}"#);
    assert_eq!(
        outcome.value.as_deref(),
        Some(r#"{"a":"\u003cno value\u003e","b":1}"#)
    );
    assert_eq!(outcome.findings, ["template: tpl:1:6: writes <no value>"]);
    assert!(outcome.problem.is_none());
}

#[test]
fn what_is_not_repeatable_is_refused_where_it_is_reached() {
    for call in [
        "randInt 1 5",
        "shuffle \"ab\"",
        "genCA \"a\" 1",
        "bcrypt \"a\"",
        "ago 1",
        "encryptAES \"k\" \"v\"",
    ] {
        let (stage, message) = problem(&format!("{{{{ {call} }}}}"), "{}");
        assert_eq!(stage, Stage::Execute, "{call}");
        assert!(
            message.contains("does not give the same result twice"),
            "{message}"
        );
        let unreached = render(&format!("{{{{ if false }}}}{{{{ {call} }}}}{{{{ end }}}}"), b"{}");
        assert_eq!(unreached.problem, None, "{call}");
        assert_eq!(unreached.findings.len(), 1, "{call}");
    }
    let (stage, message) = problem("{{ now }}", "{}");
    assert_eq!(stage, Stage::Parse);
    assert_eq!(
        message,
        "template: tpl:1: function \"now\" not defined: it gives another result each time or place"
    );
}

#[test]
fn keys_and_values_go_by_the_keys() {
    let variables = r#"{"m": {"b": 1, "a": 2, "c": 0}}"#;
    assert_eq!(
        text("{{ keys .m }} {{ values .m }}", variables),
        "[a b c] [2 1 0]"
    );
}

#[test]
fn the_place_of_a_failure_is_told() {
    let (_, message) = problem("x\n{{ .a }}{{ index .l 7 }}", r#"{"l": []}"#);
    assert_eq!(
        message,
        "template: tpl:2:11: executing \"tpl\": error calling index: index out of range: 7"
    );
    let (_, message) = problem("x\n{{ if }}", "{}");
    assert_eq!(message, "template: tpl:2: missing value for if");
}

#[test]
fn yaml_is_that_of_version_1_1() {
    for (written, meant) in [
        (
            "[yes, No, on, y, ~, 'yes']",
            "[true,false,true,true,null,\"yes\"]",
        ),
        ("[0123, 1_000, 0b11, 1:30, 1.30]", "[83,1000,3,\"1:30\",1.3]"),
        ("a: 1\n---\nb: 2", "{\"a\":1}"),
        (
            "{1: a, true: b, 1.5: c}",
            "{\"1\":\"a\",\"1.5\":\"c\",\"true\":\"b\"}",
        ),
        (
            "a: &x {k: 1}\nb: {k: 2, <<: *x}",
            "{\"a\":{\"k\":1},\"b\":{\"k\":1}}",
        ),
        // An entry that a later one replaces may have any key.
        ("a: {~: 1}\nb: 2\na: 3", "{\"a\":3,\"b\":2}"),
        ("!!binary /w==: 1", r#"{"\ufffd":1}"#),
        ("\u{feff}\u{feff}a: \u{feff}b", "{\"a\":\"\u{feff}b\"}"),
    ] {
        assert_eq!(render(written, b"{}").value.as_deref(), Some(meant), "{written}");
    }
    for wrong in ["~: 1", "a: [{null: 1}]", "a: {<<: {~: 1}}", "{? : 1}"] {
        assert_eq!(
            problem(wrong, "{}"),
            (Stage::Yaml, "yaml: unsupported map key".to_owned()),
            "{wrong}"
        );
    }
}

#[test]
fn numbers_at_their_ends_are_those_of_go() {
    for (template, rendered) in [
        (
            r#"{{ float64 "inf" }} {{ float64 "-inf" }} {{ float64 "nan" }}"#,
            "+Inf -Inf NaN",
        ),
        (
            r#"{{ printf "%6.1f|%-6v|%06v|% v" (round 2 308) (round 2 308) (round 2 308) (round 2 308) }}"#,
            "  +Inf|+Inf  |  +Inf| Inf",
        ),
        (
            "{{ round -7 100 }} {{ round 1000 97 }} {{ round 123.555 2 }}",
            "-7 1000 123.56",
        ),
        (
            "{{ round 9e30 -29 }} {{ round 3.7 -400 }} {{ round 0.1 320 }}",
            "8.999999999999999e+30 NaN NaN",
        ),
        (
            r#"{{ printf "%#x %#X %#.3x %#g %#.0g %#e %#x" 2.0 2.0 10.5 0.0 1.5 2.0 0.0 }}"#,
            "0x1.0000p+01 0X1.P+01 0x1.500p+03 0.00000 2. 2.000000e+00 0x0.0000p+00",
        ),
        ("{{ chunk -2 (list 1) }} {{ chunk -2 (list 1 2 3) }}", "[[1]] []"),
    ] {
        assert_eq!(
            render(template, b"{}").rendered.as_deref(),
            Some(rendered.as_bytes()),
            "{template}"
        );
    }
    for panics in [
        "chunk -1 (list 1)",
        "chunk -2 (list)",
        "chunk -2 (list 1 2 3 4 5)",
        "chunk 0 (list 1)",
    ] {
        assert_eq!(
            problem(&format!("{{{{ {panics} }}}}"), "{}").0,
            Stage::Execute,
            "{panics}"
        );
    }
}

#[test]
fn classes_of_characters_are_those_of_go() {
    let found = |pattern: &str| {
        let variables = serde_json::json!({ "p": pattern }).to_string();
        let rendered = render("{{ regexFind .p `+<ab>-Z` | quote }}", variables.as_bytes()).rendered;
        rendered.map(|rendered| String::from_utf8_lossy(&rendered).into_owned())
    };
    for (pattern, text) in [
        ("[<n]", "<"),
        ("[<>]a", "<a"),
        (r"\<a", "<a"),
        ("[+--]<", "+<"),
        (r"[\d-Z]$", "Z"),
        ("[b-]+", "b"),
        (r"[^\ +]", "<"),
        ("[>[:^alpha:]]Z", "-Z"),
    ] {
        assert_eq!(
            found(pattern).as_deref(),
            Some(&*format!("{text:?}")),
            "{pattern}"
        );
    }
    for none in ["[a--b]", "[[:x:]]", r"[+-\d]", r"\C", "[z-a]", "[a-"] {
        assert_eq!(found(none), None, "{none}");
    }
}

#[test]
fn several_groups_may_have_one_name() {
    for (pattern, by, rendered) in [
        ("(?P<n>a)|(?P<n>b)", "<$n>", "<a><b>c"),
        ("(?P<n>a)(?P<n>b)", "<$n$2>", "<ab>c"),
        ("(?P<1>a)(?P<n>b)", "<$1${n}$m>", "<ab>c"),
    ] {
        let variables = serde_json::json!({"p": pattern, "b": by}).to_string();
        let outcome = render("{{ regexReplaceAll .p `abc` .b }}", variables.as_bytes());
        assert_eq!(
            outcome.rendered.as_deref(),
            Some(rendered.as_bytes()),
            "{pattern}"
        );
    }
}

#[test]
fn a_prerelease_meets_conditions_of_which_one_has_a_prerelease() {
    for (constraint, met) in [
        (">=1.30.0-0, <1.32", "true"),
        ("^1.30, !=1.30.2-0", "true"),
        ("!=1.30.2", "false"),
        ("<1.31 || >=1.31.0-0", "true"),
        ("<1.32 || =1.31.0-0", "false"),
    ] {
        let variables = serde_json::json!({"c": constraint}).to_string();
        let outcome = render(r#"{{ semverCompare .c "v1.31.0-rc.1" }}"#, variables.as_bytes());
        assert_eq!(outcome.rendered.as_deref(), Some(met.as_bytes()), "{constraint}");
    }
}

#[test]
fn a_copy_of_a_version_has_nothing_of_it() {
    for (template, rendered) in [
        (r#"{{ deepCopy (list (semver "1.2")) }}"#, "[0.0.0]"),
        (r#"{{ (deepCopy (semver "v1.2")).Original | quote }}"#, "\"\""),
        (r#"{{ (semver "1.2.3-a").SetPrerelease "" }}"#, "1.2.3"),
    ] {
        let outcome = render(template, b"{}");
        assert_eq!(
            outcome.rendered.as_deref(),
            Some(rendered.as_bytes()),
            "{template}"
        );
    }
    let empty_part = r#"{{ (semver "1.2.3").SetPrerelease "a..b" }}"#;
    assert_eq!(problem(empty_part, "{}").0, Stage::Execute);
}

#[test]
fn integers_are_what_stands_before_the_point() {
    for (written, int) in [
        ("1.5", "1"),
        ("-2.7", "-2"),
        ("+3.", "3"),
        (".5", "0"),
        ("-.5", "0"),
        (".", "0"),
        ("010.9", "8"),
        ("12.00", "12"),
        ("1.2.3", "0"),
        ("1e3.0", "0"),
        ("1e3", "0"),
        ("0x1F.5", "0"),
        ("1 .5", "0"),
        ("9223372036854775807.9", "9223372036854775807"),
    ] {
        let variables = serde_json::json!({"v": written}).to_string();
        let outcome = render("{{ int .v }}", variables.as_bytes());
        assert_eq!(outcome.rendered.as_deref(), Some(int.as_bytes()), "{written}");
    }
}

#[test]
fn secrets_that_upstream_wrote_are_read() {
    let template = "{{ decryptAES \"key\" .s }}";
    let variables = r#"{"s": "MDAwMDAwMDAwMDAwMDAwMA=="}"#;
    assert_eq!(problem(template, variables).0, Stage::Execute);
}
