//! Owns: the comparison of our templates with Go's own engine, sprig and YAML, in the versions that Cluster API v1.13.6 is
//! built from: the text, its value as YAML, and the stage of an error are the same.
//! Never: renders a template itself; `hub::topology::template` does.

mod draw;
mod guarded;
mod judge;

use std::sync::LazyLock;

use anyhow::{bail, ensure};
use hub::topology::template::render;
use regex::Regex;
use serde_json::Value;

use self::{
    draw::{Case, WORDS},
    guarded::{Guarded, Seen},
    judge::{Judge, Said},
};
use advice::compare_templates;
use cluster::real::module::Module;

/// Most seeds of one run.
pub const SEEDS_MAX: u32 = 10_000;
/// Most cases of one seed.
pub const CASES_MAX: u32 = 100_000;
/// Differences of one seed that are shown.
const SHOWN_MAX: usize = 5;
/// Number of repetitions in Go of a case in which ours differs.
const ASKED_AGAIN: usize = 32;
/// Go's text was longer than the judge reads.
const BOUND: &str = "bound";

/// Regular expressions that the hub refuses and Go does not: a group of flags that is repeated (adr/0048).
static REFUSED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\(\?[imsU-]+\)[*+?{]").expect("an expression"));

/// The command's arguments.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u32,
    /// Cases of each seed.
    pub cases: u32,
}

/// Builds the judge and plays all seeds. Returns how much was seen.
///
/// # Errors
///
/// What Go did in another way, with the seed; a function of sprig that is not drawn, or of which no call gave a value.
pub fn compare(module: &Module, told: Told) -> anyhow::Result<String> {
    ensure!(
        (1..=SEEDS_MAX).contains(&told.seeds) && (1..=CASES_MAX).contains(&told.cases),
        "one run plays 1 to {SEEDS_MAX} seeds, with 1 to {CASES_MAX} cases each"
    );
    let judge = Judge::built(module)?;
    let known =
        |name: &String| WORDS.signatures.iter().any(|(one, _)| one == name) || WORDS.left_out.contains(name);
    let unknown: Vec<String> = judge
        .functions()?
        .into_iter()
        .filter(|name| !known(name))
        .collect();
    ensure!(
        unknown.is_empty(),
        "functions that are not drawn: {}",
        unknown.join(", ")
    );
    let mut guarded = Guarded::default();
    for seed in (told.first..).take(told.seeds as usize) {
        played(&judge, seed, told.cases as usize, &mut guarded)?;
        eprintln!("seed {seed}: {}", guarded.shown());
    }
    guarded.complete()?;
    let (seeds, first, cases) = (told.seeds, told.first, told.cases);
    Ok(format!(
        "{seeds} seeds from {first}, {cases} cases each; {}",
        guarded.shown()
    ))
}

fn played(judge: &Judge, seed: u64, count: usize, guarded: &mut Guarded) -> anyhow::Result<()> {
    let cases = draw::cases(seed, count);
    let theirs = judge.judge(&cases)?;
    let mut differences = Vec::new();
    for (case, theirs) in cases.iter().zip(&theirs) {
        let ours: Said = serde_json::from_str(&rendered(case))?;
        match judged(case, &ours, theirs.as_ref()) {
            Ok(seen) => guarded.add(case, seen),
            Err(_) if is_open(judge, case, &ours)? => guarded.add(case, Seen::Open),
            Err(what) => differences.push(format!("{what}\n  {}", told(case, &ours, theirs.as_ref()))),
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    let count = differences.len();
    differences.truncate(SHOWN_MAX);
    let again = compare_templates(seed, cases.len());
    bail!(
        "seed {seed}: {count} of {} cases differ; `{again}` plays it again\n{}",
        cases.len(),
        differences.join("\n")
    )
}

/// Returns true if Go gives one result and another, and ours is one of them: where two keys of a map are one in JSON.
fn is_open(judge: &Judge, case: &Case, ours: &Said) -> anyhow::Result<bool> {
    let again = judge.judge(&vec![case.clone(); ASKED_AGAIN])?;
    Ok(again
        .iter()
        .any(|theirs| judged(case, ours, theirs.as_ref()).is_ok()))
}

fn rendered(case: &Case) -> String {
    render(&case.template, case.variables.to_string().as_bytes()).to_json()
}

/// The result of a case, or its difference.
fn judged(case: &Case, ours: &Said, theirs: Option<&Said>) -> Result<Seen, &'static str> {
    let is_bounded = ours.message.as_deref().is_some_and(is_of_a_bound);
    match theirs {
        None if ours.error.is_some() => Ok(Seen::NoEnd),
        None => Err("Go's process ended, and ours gives a value"),
        _ if is_bounded => Ok(Seen::Bound),
        Some(theirs) if theirs.error.is_none() && is_refused(case, ours) => Ok(Seen::Refused),
        Some(theirs) if theirs.error.as_deref() == Some(BOUND) => Err("Go's text is longer than we allow"),
        Some(theirs) if theirs.error != ours.error => Err("the stage of the error"),
        Some(theirs) if theirs.rendered != ours.rendered => Err("the text"),
        Some(theirs) if theirs.value != ours.value => Err("the value"),
        Some(theirs) => Ok(match theirs.error.as_deref() {
            None => Seen::Value,
            Some("parse") => Seen::NoTemplate,
            Some("execute") => Seen::NotExecuted,
            Some(_) => Seen::NoYaml,
        }),
    }
}

/// Returns true if a message says that something takes more than `limits` of the templates allow, where Go has no
/// limit.
fn is_of_a_bound(message: &str) -> bool {
    [
        "takes more than ",
        "makes more than ",
        "renders more than ",
        " of more than ",
        "nested deeper than ",
    ]
    .iter()
    .any(|said| message.contains(said))
}

/// Returns true if it calls a function with another result each time (`durationRound` of a time), or has an expression
/// that the hub refuses.
fn is_refused(case: &Case, ours: &Said) -> bool {
    let says = |what: &str| {
        ours.message
            .as_deref()
            .is_some_and(|message| message.contains(what))
    };
    let expression = case.variables["p"].as_str().unwrap_or_default();
    says("is refused: it does not give the same result twice")
        // A wrong expression is an error, or matches nothing.
        || REFUSED.is_match(expression) && (says("error parsing regexp") || case.template.contains("regexMatch "))
}

fn told(case: &Case, ours: &Said, theirs: Option<&Said>) -> String {
    let one = |said: &Said| {
        let text = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
        let value = said.value.clone().unwrap_or_default();
        format!(
            "error {}, rendered {}, value {value}, message {}",
            text(&said.error),
            text(&said.rendered),
            text(&said.message)
        )
    };
    let theirs = theirs.map_or_else(|| "no answer".to_owned(), one);
    format!(
        "template:  {}\n  variables: {}\n  Go:        {theirs}\n  ours:      {}",
        Value::String(case.template.clone()),
        case.variables,
        one(ours)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(error: Option<&str>, text: &str, message: &str) -> Said {
        Said {
            rendered: error.is_none().then(|| text.to_owned()),
            value: error.is_none().then(|| Value::String(text.to_owned())),
            error: error.map(str::to_owned),
            message: error.map(|_| message.to_owned()),
        }
    }

    #[test]
    fn what_differs_from_go_is_told_and_what_a_bound_refuses_is_not_taken_for_it() {
        let mut case = Case {
            template: String::new(),
            variables: json!({"p": "a+"}),
        };
        let good = said(None, "a", "");
        assert_eq!(judged(&case, &good, Some(&good)), Ok(Seen::Value));
        assert_eq!(judged(&case, &good, Some(&said(None, "b", ""))), Err("the text"));
        let mut other = good.clone();
        other.value = Some(Value::Bool(true));
        assert_eq!(judged(&case, &good, Some(&other)), Err("the value"));
        let failed = said(Some("execute"), "", "wrong type");
        assert_eq!(judged(&case, &failed, Some(&good)), Err("the stage of the error"));
        assert_eq!(
            judged(&case, &failed, Some(&said(Some("yaml"), "", ""))),
            Err("the stage of the error")
        );
        assert_eq!(
            judged(&case, &failed, Some(&said(Some("execute"), "", "said otherwise"))),
            Ok(Seen::NotExecuted)
        );
        let bounded = said(Some("execute"), "", "makes a text of more than 1048576 bytes");
        assert_eq!(judged(&case, &bounded, Some(&good)), Ok(Seen::Bound));
        assert!(judged(&case, &good, Some(&said(Some(BOUND), "", ""))).is_err());
        assert_eq!(judged(&case, &failed, None), Ok(Seen::NoEnd));
        assert!(judged(&case, &good, None).is_err());
        let expression = said(Some("execute"), "", "error parsing regexp: `a(?i)*`");
        assert!(judged(&case, &expression, Some(&good)).is_err());
        case.variables = json!({"p": "a(?i)*"});
        assert_eq!(judged(&case, &expression, Some(&good)), Ok(Seen::Refused));
    }
}
