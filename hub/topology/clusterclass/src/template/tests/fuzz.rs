//! Random templates, from the parts of real ones: each one ends, gives the same twice, and never panics. `corpus.txt`
//! has those that once went wrong here or were answered otherwise by Go, one a line, as JSON strings.

use std::time::{Duration, Instant};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::super::render;

const CORPUS: &str = include_str!("corpus.txt");
const VARIABLES: &str = r#"{"s": "Hello World", "e": "", "n": 3, "f": 2.5, "t": true, "nul": null, "l": ["a", 1, null],
    "m": {"a": 1, "b": {"c": [1]}}, "v": "v1.30.2-rc.1"}"#;
/// Number of templates drawn from a seed.
const DRAWN: u32 = 2_000;
/// In the environment: for how many seconds templates are drawn, and from which seed on.
const SECONDS: &str = "TRIBUTARY_FUZZ_SECONDS";
const FIRST_SEED: &str = "TRIBUTARY_FUZZ_SEED";
/// Most words of one.
const WORDS: usize = 14;

const PIECES: [&str; 104] = [
    "{{",
    "}}",
    "{{-",
    "-}}",
    "{{ ",
    " }}",
    "if",
    "else",
    "end",
    "range",
    "with",
    "define",
    "template",
    "block",
    "break",
    "continue",
    ".s",
    ".m",
    ".l",
    ".n",
    ".missing.x",
    "$",
    "$x",
    "$i, $e",
    ":=",
    "=",
    "|",
    "(",
    ")",
    "\"a\"",
    "`r`",
    "'c'",
    "'",
    "\"",
    "`",
    "\\",
    "1",
    "-1",
    "2.5",
    "0x",
    "1i",
    "nil",
    "true",
    "/*",
    "*/",
    ",",
    "\n",
    " ",
    "é",
    "\u{2028}",
    "eq",
    "index",
    "len",
    "printf",
    "\"%5.2f %v %[3]d %*d\"",
    "and",
    "or",
    "not",
    "html",
    "js",
    "slice",
    "upper",
    "title",
    "snakecase",
    "camelcase",
    "wrap",
    "wrapWith",
    "abbrevboth",
    "substr",
    "trunc",
    "repeat",
    "splitn",
    "join",
    "regexReplaceAll",
    "\"(a|b)*[^c]\"",
    "\"${1}$x\"",
    "regexSplit",
    "semverCompare",
    "\">=1 <2 || 1.2 - 3\"",
    "semver",
    "dict",
    "set",
    "merge",
    "dig",
    "list",
    "append",
    "chunk",
    "concat",
    "untilStep",
    "round",
    "divf",
    "mulf",
    "toJson",
    "fromJson",
    "b64dec",
    "b32dec",
    "urlParse",
    "\"http://[::1%25x]:80/%zz\"",
    "toDate",
    "durationRound",
    "a: ",
    "- ",
    "&x [*x, {? : }]",
    "|+2\n  ",
];

fn template() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        9 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    let words = proptest::collection::vec(word, 0..WORDS);
    (words, any::<bool>()).prop_map(|(words, action)| {
        if action {
            format!("{{{{ {} }}}}", words.join(" "))
        } else {
            words.concat()
        }
    })
}

fn holds(template: &str) -> Result<(), TestCaseError> {
    let once = render(template, VARIABLES.as_bytes());
    prop_assert_eq!(&once, &render(template, VARIABLES.as_bytes()));
    prop_assert!(once.value.is_some() != once.problem.is_some(), "{:?}", once);
    let line = once.to_json();
    prop_assert!(!line.contains('\n'));
    prop_assert!(
        serde_json::from_str::<serde_json::Value>(&line).is_ok(),
        "{}",
        line
    );
    Ok(())
}

#[test]
fn templates_that_once_went_wrong_do_not() {
    for line in CORPUS.lines() {
        let template: String = serde_json::from_str(line).expect("a JSON string");
        holds(&template).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    assert!(CORPUS.lines().count() > 20);
}

/// Draws templates from a seed.
fn drawn(seed: u64) {
    let config = Config {
        cases: DRAWN,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(config, random)
        .run(&template(), |template| holds(&template))
        .unwrap_or_else(|error| panic!("seed {seed} ({FIRST_SEED}={seed}): {error}"));
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

/// With [`SECONDS`] in the environment for so long, a seed after another.
#[test]
fn random_templates_end_and_give_the_same_twice() {
    let first = from_environment(FIRST_SEED).unwrap_or(0);
    let lasting = Duration::from_secs(from_environment(SECONDS).unwrap_or(0));
    let began = Instant::now();
    let mut seeds = 0;
    loop {
        drawn(first + seeds);
        seeds += 1;
        if began.elapsed() >= lasting {
            break;
        }
    }
    println!(
        "{} templates of the seeds {first} to {} in {} s: none went wrong",
        seeds * u64::from(DRAWN),
        first + seeds - 1,
        began.elapsed().as_secs()
    );
}
