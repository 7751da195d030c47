//! Owns: files of cases: a template and its variables each, as a list, as an object with `cases`, or one a line.

use std::collections::BTreeMap;

use super::{
    json::{self, Style},
    meter::Meter,
    runes,
    value::{Text, Value},
};

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The template.
    pub template: String,
    /// The variables, a JSON object.
    pub variables: Vec<u8>,
}

/// Reads the cases of a file; an error says which one is wrong.
pub fn read(file: &[u8]) -> Result<Vec<Case>, String> {
    let mut meter = Meter::of_a_file();
    let whole = match json::read(&mut meter, file) {
        Ok(whole) => whole,
        Err(failure) => return lines(&mut meter, file).map_err(|line| line.unwrap_or(failure.message)),
    };
    match &whole {
        Value::List(list) => numbered(list.items.iter()),
        Value::Dict(dict) => match dict.get(b"cases") {
            Some(Value::List(list)) => numbered(list.items.iter()),
            _ => numbered(std::iter::once(&whole)),
        },
        _ => Err("it is neither a list of cases nor an object".to_owned()),
    }
}

/// One case a line; without a message if not even the first line is JSON.
fn lines(meter: &mut Meter, file: &[u8]) -> Result<Vec<Case>, Option<String>> {
    let mut values = Vec::new();
    for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match json::read(meter, line) {
            Ok(value) => values.push(value),
            Err(_) if values.is_empty() => return Err(None),
            Err(failure) => return Err(Some(format!("line {}: {}", at + 1, failure.message))),
        }
    }
    numbered(values.iter()).map_err(Some)
}

fn numbered<'a>(values: impl Iterator<Item = &'a Value>) -> Result<Vec<Case>, String> {
    let case = |(at, value)| case(value).map_err(|message| format!("case {}: {message}", at + 1));
    values.enumerate().map(case).collect()
}

fn case(value: &Value) -> Result<Case, String> {
    let Value::Dict(dict) = value else {
        return Err("it is no object".to_owned());
    };
    let entries: BTreeMap<Text, Value> = dict.snapshot();
    let text = |name: &str| match entries.get(name.as_bytes()) {
        Some(Value::Text(text)) => Some(runes::lossy(text)),
        _ => None,
    };
    let variables = match entries.get(&b"variables"[..]) {
        None => b"{}".to_vec(),
        Some(variables) => {
            json::write(&mut Meter::of_a_file(), variables, Style::Raw).map_err(|failure| failure.message)?
        }
    };
    Ok(Case {
        name: text("name"),
        template: text("template").ok_or("it has no text `template`")?,
        variables,
    })
}
