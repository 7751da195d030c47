//! Whatever a template says, it ends, and says why.

use super::super::{Stage, limits, render};

fn stopped(template: &str, why: &str) {
    let outcome = render(template, br#"{"s": "0123456789"}"#);
    let problem = outcome
        .problem
        .unwrap_or_else(|| panic!("{template:.60} goes on"));
    assert!(
        problem.message.contains(why),
        "{template:.60}: {}",
        problem.message
    );
}

#[test]
fn work_is_counted() {
    stopped(
        "{{ range until 2000 }}{{ range until 2000 }}{{ end }}{{ end }}",
        "steps",
    );
    stopped(
        "{{ range until 99999 }}{{ $.s }}{{ $.s }}{{ end }}",
        "renders more than",
    );
    stopped("{{ range 9000000000000000000 }}{{ end }}", "steps");
    stopped("{{ until 100000000 }}", "elements");
    stopped("{{ repeat 1000000000 .s }}", "bytes");
    stopped("{{ indent 1000000000 .s }}", "bytes");
    stopped("{{ printf \"%1000000d%1000000d%1000000d\" 1 1 1 }}", "bytes");
    stopped(
        "{{ $x := .s }}{{ range until 40 }}{{ $x = cat $x $x }}{{ end }}",
        "bytes",
    );
    stopped(
        "{{ $x := list 1 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}",
        "elements",
    );
    stopped(
        "{{ range until 20 }}{{ derivePassword 1 \"long\" \"p\" \"u\" \"s\" }}{{ end }}",
        "steps",
    );
}

#[test]
fn nesting_is_counted() {
    stopped(
        "{{ define \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}",
        "depth",
    );
    stopped(&"{{ if 1 }}".repeat(10_000), "nested");
    stopped(
        &format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)),
        "nested",
    );
    stopped(
        "{{ $x := list }}{{ range until 1000 }}{{ $x = list $x }}{{ end }}{{ $x }}",
        "nested",
    );
    stopped(
        "{{ $x := dict }}{{ range until 9000 }}{{ $x = dict \"a\" $x }}{{ end }}{{ $x }}",
        "nested",
    );
    stopped("{{ $x := dict }}{{ $y := set $x \"a\" $x }}{{ $x }}", "nested");
    stopped(
        "{{ $x := dict }}{{ $y := set $x \"a\" $x }}{{ toJson $x }}",
        "nested",
    );
    stopped("{{ fromJson (repeat 100000 \"[\") | toJson }}x: [", "yaml");
    stopped(&"[".repeat(100_000), "max depth");
    stopped(&"- ".repeat(100_000), "max depth");
    stopped(&"a: ".repeat(100), "mapping values");
}

#[test]
fn aliases_stand_for_no_millions() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    stopped(&bomb, "aliasing");
}

#[test]
fn a_template_has_a_longest_length() {
    let outcome = render(&" ".repeat(limits::MAX_SOURCE + 1), b"{}");
    assert_eq!(outcome.problem.map(|problem| problem.stage), Some(Stage::Parse));
}
