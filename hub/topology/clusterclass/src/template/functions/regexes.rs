//! Owns: the functions of regular expressions. They take time in proportion to the text, never more.

use std::collections::BTreeMap;

use regex::bytes::{Regex, RegexBuilder};

use super::{
    super::{
        limits::{Failure, MAX_TEXT},
        meter::Meter,
        runes,
        signature::{
            Body, Signature,
            Type::{Int, Text},
            exactly, int, said, text, texts,
        },
        value::{Element, List, Value},
    },
    pattern,
};

/// Memory that one compiled expression may take, bytes.
const MAX_SIZE: usize = 4 << 20;
/// Steps that compiling an expression counts for, beside its length.
const COMPILE_STEPS: u64 = 500;

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    const PAIR: &[super::super::signature::Type] = &[Text, Text];
    const TRIPLE: &[super::super::signature::Type] = &[Text, Text, Text];
    let (fixed, body): (_, Body) = match name {
        "regexMatch" => (PAIR, |meter, given| {
            let Ok(found) = compiled(meter, given)? else {
                return Ok(Value::Bool(false));
            };
            Ok(Value::Bool(found.is_match(text(given, 1))))
        }),
        "mustRegexMatch" => (PAIR, |meter, given| {
            let found = compiled(meter, given)?.map_err(Failure::new)?;
            Ok(Value::Bool(found.is_match(text(given, 1))))
        }),
        "regexFind" | "mustRegexFind" => (PAIR, |meter, given| {
            let found = compiled(meter, given)?.map_err(Failure::new)?;
            let found = found
                .find(text(given, 1))
                .map_or(&b""[..], |found| found.as_bytes());
            said(meter, found)
        }),
        "regexReplaceAll" | "mustRegexReplaceAll" => (TRIPLE, |meter, given| replaced(meter, given, true)),
        "regexReplaceAllLiteral" | "mustRegexReplaceAllLiteral" => {
            (TRIPLE, |meter, given| replaced(meter, given, false))
        }
        "regexFindAll" | "mustRegexFindAll" => {
            return exactly(&[Text, Text, Int], found_all);
        }
        "regexSplit" | "mustRegexSplit" => {
            return exactly(&[Text, Text, Int], split);
        }
        "regexQuoteMeta" => return exactly(&[Text], |meter, given| said(meter, quoted(text(given, 0)))),
        _ => return None,
    };
    exactly(fixed, body)
}

fn compiled(meter: &mut Meter, given: &[Value]) -> Result<Result<Regex, String>, Failure> {
    let (written, subject) = (text(given, 0), text(given, 1));
    meter.step(COMPILE_STEPS + written.len() as u64)?;
    meter.read(subject.len().saturating_mul(4))?;
    let Ok(written) = std::str::from_utf8(written) else {
        return Ok(Err("error parsing regexp: invalid UTF-8".to_owned()));
    };
    Ok(compile(written).map_err(|message| format!("error parsing regexp: {message}")))
}

/// A regular expression of Go, of at most `MAX_SIZE`.
pub(crate) fn compile(written: &str) -> Result<Regex, String> {
    if !pattern::bounded(written) {
        return Err("invalid repeat count".to_owned());
    }
    RegexBuilder::new(&pattern::translated(written)?)
        .size_limit(MAX_SIZE)
        .dfa_size_limit(MAX_SIZE)
        .build()
        .map_err(|_| format!("`{written}`"))
}

fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in text {
        if b"\\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

/// At most so many; all if the number is negative.
fn most(given: &[Value], at: usize) -> usize {
    usize::try_from(int(given, at)).unwrap_or(usize::MAX)
}

/// Returns true if a match begins at a character's start: an empty one may not lie within a character.
fn begins(subject: &[u8]) -> impl Fn(usize) -> bool {
    let mut starts = vec![false; subject.len() + 1];
    runes::indexed(subject).for_each(|(at, _, _)| starts[at] = true);
    starts[subject.len()] = true;
    move |at| starts.get(at).copied().unwrap_or(false)
}

fn found_all(meter: &mut Meter, given: &[Value]) -> Result<Value, Failure> {
    let found = compiled(meter, given)?.map_err(Failure::new)?;
    let begins = begins(text(given, 1));
    let found: Vec<&[u8]> = found
        .find_iter(text(given, 1))
        .filter(|found| begins(found.start()))
        .take(most(given, 2))
        .map(|found| found.as_bytes())
        .collect();
    if found.is_empty() {
        return Ok(Value::List(List::nil(Element::Text)));
    }
    texts(meter, found)
}

/// `regexp.Split`.
fn split(meter: &mut Meter, given: &[Value]) -> Result<Value, Failure> {
    let found = compiled(meter, given)?.map_err(Failure::new)?;
    let (subject, most) = (text(given, 1), most(given, 2));
    if most == 0 {
        return Ok(Value::List(List::nil(Element::Text)));
    }
    if !text(given, 0).is_empty() && subject.is_empty() {
        return texts(meter, vec![&b""[..]]);
    }
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, 0);
    let begins = begins(subject);
    for found in found
        .find_iter(subject)
        .filter(|found| begins(found.start()))
        .take(most)
    {
        if int(given, 2) > 0 && parts.len() + 1 == most {
            break;
        }
        end = found.start();
        if found.end() != 0 {
            parts.push(&subject[start..end]);
        }
        start = found.end();
    }
    if end != subject.len() {
        parts.push(&subject[start..]);
    }
    texts(meter, parts)
}

fn replaced(meter: &mut Meter, given: &[Value], expand: bool) -> Result<Value, Failure> {
    let found = compiled(meter, given)?.map_err(Failure::new)?;
    let (subject, by) = (text(given, 1), text(given, 2));
    let begins = begins(subject);
    let mut out = Vec::new();
    let mut last = 0;
    let names = named_groups(&found);
    let most_of_one_name = names
        .values()
        .map(|groups| groups.len() as u64)
        .max()
        .unwrap_or(1);
    for groups in found.captures_iter(subject) {
        meter.step(most_of_one_name)?;
        let Some(whole) = groups.get(0).filter(|whole| begins(whole.start())) else {
            continue;
        };
        out.extend_from_slice(&subject[last..whole.start()]);
        if expand {
            expanded(&mut out, by, |name| {
                let group = match name.parse::<usize>() {
                    Ok(number) => groups.get(number),
                    Err(_) => {
                        let mut of_name = names.get(name).into_iter().flatten();
                        of_name.find_map(|at| groups.get(*at))
                    }
                };
                group.map_or(&b""[..], |group| group.as_bytes())
            });
        } else {
            out.extend_from_slice(by);
        }
        if out.len() > MAX_TEXT {
            meter.text(out.len())?;
        }
        last = whole.end();
    }
    out.extend_from_slice(&subject[last..]);
    said(meter, out)
}

/// The groups by their names; of several with one name, the first that took part in a match.
fn named_groups(found: &Regex) -> BTreeMap<String, Vec<usize>> {
    let mut groups = BTreeMap::<String, Vec<usize>>::new();
    for (at, name) in found.capture_names().enumerate() {
        if let Some(name) = name.and_then(pattern::written_name) {
            groups.entry(name.to_owned()).or_default().push(at);
        }
    }
    groups
}

/// `$name` and `${name}` as what the group found.
fn expanded<'a>(out: &mut Vec<u8>, by: &[u8], group: impl Fn(&str) -> &'a [u8]) {
    let mut rest = by;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = after;
            continue;
        }
        match named(rest) {
            Some((name, after)) => {
                out.extend_from_slice(group(&name));
                rest = after;
            }
            None => out.push(b'$'),
        }
    }
    out.extend_from_slice(rest);
}

/// The name behind a dollar, and what follows it.
fn named(text: &[u8]) -> Option<(String, &[u8])> {
    let (braced, body) = match text.strip_prefix(b"{") {
        Some(body) => (true, body),
        None => (false, text),
    };
    let length: usize = runes::indexed(body)
        .take_while(|(_, character, _)| {
            *character == '_' || runes::is_letter(*character) || runes::is_digit(*character)
        })
        .map(|(_, _, length)| length)
        .sum();
    if length == 0 {
        return None;
    }
    let (name, after) = body.split_at(length);
    let after = if braced { after.strip_prefix(b"}")? } else { after };
    Some((runes::lossy(name), after))
}
