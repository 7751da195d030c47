//! Owns: templates of nested calls, blocks and texts between them.
//! Never: a call that gives another result each time, or one whose order Go leaves open.

use serde_json::{Value, json};

use super::{Case, Draw, words::WORDS};

/// Deepest nesting of calls and of blocks.
const DEPTH: usize = 2;

/// A template of one action or two.
pub(super) fn case(draw: &mut Draw) -> Case {
    let pieces = if draw.percent(16) { 2 } else { 1 };
    Case {
        template: (0..pieces).map(|_| piece(draw, DEPTH)).collect(),
        variables: variables(),
    }
}

/// A call of the one function that takes a tenth of a second.
pub(super) fn password(draw: &mut Draw) -> Case {
    let counter = draw.one(&["0", "1", "42"]);
    let kind = draw.one(&["long", "maximum", "medium", "short", "basic", "pin", "other"]);
    let (word, user, site) = (text(draw), text(draw), text(draw));
    Case {
        template: format!("{{{{ derivePassword {counter} \"{kind}\" {word} {user} {site} }}}}"),
        variables: variables(),
    }
}

/// The variables of all templates.
pub(super) fn variables() -> Value {
    json!({
        "s": "Hello World", "e": "", "n": 3, "big": 123_456_789, "f": 2.5, "neg": -7, "t": true, "fa": false, "nul": null,
        "l": ["b", "a", "c", "a"], "ln": [3, 1, 2, 10], "mix": [1, "x", null, true, [1], {"k": 1}],
        "m": {"a": 1, "b": {"c": [1, 2], "d": "deep"}, "z": "last"}, "em": {}, "el": [], "v": "v1.30.2",
        "lab": {"a.b/c": "d", "env": "prod"}, "uni": "é漢", "huge": 1e21, "tiny": 1e-7,
        "lm": [{"name": "x", "v": 1}, {"name": "y"}], "num": "42", "yes": "yes",
    })
}

fn quoted(draw: &mut Draw, text: &str) -> String {
    if draw.percent(15) && !text.contains(['`', '\r']) {
        format!("`{text}`")
    } else {
        json!(text).to_string()
    }
}

fn text(draw: &mut Draw) -> String {
    if draw.percent(80) {
        let text = draw.one(&WORDS.texts);
        quoted(draw, text)
    } else {
        draw.one(&[".s", ".v", ".uni", ".num", ".m.b.d"]).to_owned()
    }
}

fn number(draw: &mut Draw) -> String {
    if draw.percent(20) {
        draw.one(&[".n", ".f", ".neg", ".big"]).to_owned()
    } else {
        draw.one(&WORDS.numbers).to_owned()
    }
}

/// An argument of a kind, or of another one now and then.
fn argument(draw: &mut Draw, kind: char, depth: usize) -> String {
    let kind = if kind != 'o' && draw.percent(4) { 'v' } else { kind };
    if matches!(kind, 's' | 'n' | 'l') && depth > 0 && draw.percent(15) {
        return format!("({})", expression(draw, depth - 1));
    }
    match kind {
        's' => text(draw),
        'n' => number(draw),
        'k' => draw.one(&["0", "1", "2", "3", "5", "-1", "-2", "10"]).to_owned(),
        'b' => draw.one(&["true", "false", ".t", ".fa"]).to_owned(),
        'l' => draw
            .one(&[
                ".l",
                ".ln",
                ".mix",
                ".el",
                "(list 1 2 3)",
                r#"(list "b" "a" "")"#,
                "(until 4)",
                r#"(splitList "," "x,y,z")"#,
                "(tuple)",
            ])
            .to_owned(),
        'm' => draw
            .one(&[
                ".m",
                ".em",
                ".lab",
                r#"(dict "a" 1 "q" "w")"#,
                r#"(dict "b" (dict "c" 5))"#,
                r#"(dict "host" "h:1" "path" "/p" "scheme" "https" "query" "a=b")"#,
                "(index .lm 0)",
            ])
            .to_owned(),
        'o' => draw
            .one(&[r#"(dict "a" 1)"#, r#"(dict 2 "b")"#, ".em"])
            .to_owned(),
        _ => anything(draw, depth),
    }
}

fn anything(draw: &mut Draw, depth: usize) -> String {
    match draw.below(20) {
        0..5 => draw.one(&WORDS.paths).to_owned(),
        5..9 => text(draw),
        9..12 => number(draw),
        12 if draw.percent(50) => draw.one(&["nil", "true", "false"]).to_owned(),
        12 if draw.percent(50) => method(draw),
        12 => method_of_a_time(draw),
        _ if depth == 0 => draw.one(&WORDS.paths).to_owned(),
        _ => format!("({})", expression(draw, depth - 1)),
    }
}

/// A method of a version.
fn method(draw: &mut Draw) -> String {
    let version = draw.one(&WORDS.versions);
    let version = quoted(draw, version);
    let method = draw.one(&WORDS.methods);
    if method.starts_with("Set") {
        return format!(
            "((semver {version}).{method} {})",
            draw.one(&[r#""rc.1""#, r#""01""#, r#""a..b""#, r#""""#])
        );
    }
    if WORDS.methods_of_two.iter().any(|one| one == method) {
        let other = draw.one(&WORDS.versions);
        return format!("((semver {version}).{method} (semver {}))", quoted(draw, other));
    }
    format!("(semver {version}).{method}")
}

/// A time, right for half of the layouts.
fn time(draw: &mut Draw) -> String {
    let (layout, moment) = if draw.percent(50) {
        let (layout, moment) = &WORDS.fitting[draw.below(WORDS.fitting.len())];
        (layout.as_str(), moment.as_str())
    } else {
        (draw.one(&WORDS.layouts), draw.one(&WORDS.moments))
    };
    format!("toDate {} {}", quoted(draw, layout), quoted(draw, moment))
}

fn method_of_a_time(draw: &mut Draw) -> String {
    let (time_of, method) = (time(draw), draw.one(&WORDS.methods_of_times));
    match method {
        "Format" => {
            let layout = draw.one(&WORDS.layouts);
            format!("(({time_of}).Format {})", quoted(draw, layout))
        }
        "Compare" | "Equal" | "Before" | "After" => format!("(({time_of}).{method} ({}))", time(draw)),
        _ => format!("({time_of}).{method}"),
    }
}

/// A call; `piped` if its last argument comes from before.
fn call(draw: &mut Draw, depth: usize, piped: bool) -> String {
    let (name, kinds) = &WORDS.signatures[draw.below(WORDS.signatures.len())];
    let name = name.as_str();
    // Of several keys Go leaves the order open: such a function is given one key only.
    let is_of_one_key = kinds.contains('o');
    if piped && is_of_one_key {
        return call(draw, depth, piped);
    }
    let mut kinds = if kinds == "?" {
        "v".repeat(draw.below(4))
    } else {
        kinds.to_owned()
    };
    if draw.percent(3) {
        kinds.pop();
    } else if draw.percent(3) && !is_of_one_key {
        kinds.push('v');
    }
    let mut arguments: Vec<String> = kinds.chars().map(|kind| argument(draw, kind, depth)).collect();
    if matches!(name, "semver" | "semverCompare") {
        let (constraint, version) = (draw.one(&WORDS.constraints), draw.one(&WORDS.versions));
        arguments = match arguments.len() {
            1 => vec![quoted(draw, version)],
            _ => vec![quoted(draw, constraint), quoted(draw, version)],
        };
    }
    if matches!(name, "toDate" | "mustToDate") && arguments.len() == 2 && draw.percent(80) {
        let called = time(draw).split_off("toDate ".len());
        arguments = vec![called];
    }
    if let ("printf", Some(first), true) = (name, arguments.first_mut(), draw.percent(90)) {
        let format = draw.one(&WORDS.formats);
        *first = quoted(draw, format);
    }
    if piped {
        arguments.pop();
    }
    arguments.insert(0, name.to_owned());
    arguments.join(" ")
}

fn expression(draw: &mut Draw, depth: usize) -> String {
    let mut expression = if draw.percent(85) {
        call(draw, depth, false)
    } else {
        argument(draw, 'v', depth)
    };
    while draw.percent(35) {
        expression.push_str(" | ");
        expression.push_str(&call(draw, depth.saturating_sub(1), true));
    }
    expression
}

fn action(draw: &mut Draw, inside: &str) -> String {
    let left = draw.one(&["{{", "{{ ", "{{", "{{ ", "{{", "{{ ", "{{", "{{- "]);
    let right = draw.one(&["}}", " }}", "}}", " }}", "}}", " }}", "}}", " -}}"]);
    format!("{left}{inside}{right}")
}

fn piece(draw: &mut Draw, depth: usize) -> String {
    match draw.below(100) {
        0..55 => {
            let inside = expression(draw, DEPTH);
            action(draw, &inside)
        }
        55..62 => draw.one(&WORDS.between).to_owned(),
        _ if depth == 0 => "z".to_owned(),
        62..72 => condition(draw, depth),
        72..84 => range(draw, depth),
        84..90 => with(draw, depth),
        90..95 => assignment(draw),
        _ => definition(draw, depth),
    }
}

fn body(draw: &mut Draw, depth: usize) -> String {
    let pieces = if draw.percent(25) { 2 } else { 1 };
    (0..pieces).map(|_| piece(draw, depth)).collect()
}

fn condition(draw: &mut Draw, depth: usize) -> String {
    let asked = format!("if {}", expression(draw, 1));
    let mut text = action(draw, &asked) + &body(draw, depth - 1);
    if draw.percent(50) {
        let otherwise = if draw.percent(50) {
            "else".to_owned()
        } else {
            format!("else if {}", expression(draw, 1))
        };
        text += &action(draw, &otherwise);
        text += &body(draw, depth - 1);
    }
    text + "{{end}}"
}

fn range(draw: &mut Draw, depth: usize) -> String {
    let names = draw.one(&["", "", "$i, $e := ", "$e := "]);
    let over = match draw.below(5) {
        0 => "3".to_owned(),
        1 => ".n".to_owned(),
        2 => argument(draw, 'l', 1),
        3 => argument(draw, 'm', 1),
        _ => argument(draw, 'v', 1),
    };
    let mut text = action(draw, &format!("range {names}{over}")) + &body(draw, depth - 1);
    text += match names {
        "" => "{{.}}",
        _ => draw.one(&["{{$e}}", "{{$i}}", "{{$e | toJson}}"]),
    };
    text += draw.one(&["", ",", "{{break}}", "{{if .}}{{continue}}{{end}}"]);
    text += draw.one(&["", "", "{{else}}none"]);
    text + "{{end}}"
}

fn with(draw: &mut Draw, depth: usize) -> String {
    let asked = format!("with {}{}", draw.one(&["", "$w := "]), expression(draw, 1));
    let mut text = action(draw, &asked) + "{{.}}" + &body(draw, depth - 1);
    text += draw.one(&["", "{{else}}no", "{{else with .s}}{{.}}"]);
    text + "{{end}}"
}

fn assignment(draw: &mut Draw) -> String {
    let declared = format!("$x := {}", expression(draw, 1));
    let mut text = action(draw, &declared) + "{{$x}}";
    if draw.percent(50) {
        text += &format!("{{{{$x = {}}}}}{{{{$x}}}}", expression(draw, 1));
    }
    text
}

fn definition(draw: &mut Draw, depth: usize) -> String {
    let (defined, called) = (draw.below(3), draw.below(3));
    let inside = body(draw, depth - 1);
    let dot = argument(draw, 'v', 1);
    format!("{{{{define \"T{defined}\"}}}}{inside}{{{{end}}}}{{{{template \"T{called}\" {dot}}}}}")
}
