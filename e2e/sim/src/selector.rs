//! Label and field selectors.
//! Parses and matches; never lists.

use serde_json::Value;

use super::status::Refusal;

/// A parsed labelSelector and fieldSelector.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector {
    labels: Vec<(String, Test)>,
    fields: Vec<(String, String, bool)>,
}

#[derive(Debug, Clone)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Selector {
    pub(crate) fn parse(labels: &str, fields: &str, event: bool) -> Result<Self, Refusal> {
        let labels = split(labels)
            .iter()
            .map(|term| label_term(term))
            .collect::<Result<_, _>>()?;
        let mut parsed = Vec::new();
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            let (path, value, equal) = match term.split_once("!=") {
                Some((path, value)) => (path, value, false),
                None => {
                    let (path, value) = term.split_once('=').ok_or_else(|| bad("field", term))?;
                    (path, value.trim_start_matches('='), true)
                }
            };
            if !event && !matches!(path, "metadata.name" | "metadata.namespace") {
                return Err(Refusal::bad_request(format!("field label not supported: {path}")));
            }
            parsed.push((
                format!(
                    "/{}",
                    path.replace("involvedObject", "regarding").replace('.', "/")
                ),
                value.to_owned(),
                equal,
            ));
        }
        Ok(Self {
            labels,
            fields: parsed,
        })
    }

    /// Returns true if it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |name: &str| object["metadata"]["labels"].get(name).and_then(Value::as_str);
        let labels = self.labels.iter().all(|(name, test)| match (label(name), test) {
            (value, Test::Exists) => value.is_some(),
            (value, Test::Absent) => value.is_none(),
            (value, Test::In(allowed)) => {
                value.is_some_and(|value| allowed.iter().any(|other| other == value))
            }
            (value, Test::NotIn(refused)) => {
                value.is_none_or(|value| refused.iter().all(|other| other != value))
            }
        });
        let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        labels
            && self
                .fields
                .iter()
                .all(|(path, wanted, equal)| (field(path) == wanted) == *equal)
    }
}

fn bad(what: &str, term: &str) -> Refusal {
    Refusal::bad_request(format!("unable to parse {what} selector requirement {term:?}"))
}

/// Splits at the commas that stand outside of parentheses.
fn split(text: &str) -> Vec<String> {
    let (mut terms, mut depth) = (vec![String::new()], 0);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match terms.last_mut() {
            Some(last) if letter != ',' || depth > 0 => last.push(letter),
            _ => terms.push(String::new()),
        }
    }
    terms
        .iter()
        .map(|term| term.trim().to_owned())
        .filter(|term| !term.is_empty())
        .collect()
}

fn label_term(term: &str) -> Result<(String, Test), Refusal> {
    let values = |text: &str| {
        text.split(',')
            .map(|value| value.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let (name, test) =
        if let Some((name, list)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) {
            let name = name.trim();
            match (name.strip_suffix(" notin"), name.strip_suffix(" in")) {
                (Some(name), _) => (name, Test::NotIn(values(list))),
                (_, Some(name)) => (name, Test::In(values(list))),
                _ => return Err(bad("label", term)),
            }
        } else if let Some((name, value)) = term.split_once("!=") {
            (name, Test::NotIn(values(value)))
        } else if let Some((name, value)) = term.split_once('=') {
            (name, Test::In(values(value.trim_start_matches('='))))
        } else if let Some(name) = term.strip_prefix('!') {
            (name, Test::Absent)
        } else {
            (term, Test::Exists)
        };
    let name = name.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        Err(bad("label", term))
    } else {
        Ok((name.into(), test))
    }
}
