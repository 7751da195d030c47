//! Owns: the path of a field in a rule of a schema: `.a.b`, `['a.b']`; that it leads to a field of the schema, as an API
//! server demands.

use serde_json::Value;

/// Follows a path from a schema to a field.
///
/// # Errors
///
/// Why it does not.
pub(super) fn leads_somewhere(path: &str, schema: &Value) -> Result<(), String> {
    if path.contains(['\n', '\r']) {
        return Err("it has more than one line".into());
    }
    let (mut rest, mut schema) = (path, schema);
    while !rest.is_empty() {
        let name;
        (name, rest) = step(rest)?;
        schema = below(schema, &name).ok_or_else(|| format!("there is no field {name:?}"))?;
    }
    Ok(())
}

/// The next name of a path, and what is behind it.
fn step(path: &str) -> Result<(String, &str), String> {
    if let Some(rest) = path.strip_prefix('.') {
        // A delimiter is a name, too, which no field has.
        let first = rest.chars().next().ok_or("it ends with a dot")?;
        let end = match first {
            '.' | '[' | ']' => 1,
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        return Ok((rest[..end].to_owned(), &rest[end..]));
    }
    let quoted = path.strip_prefix('[').ok_or("a name has . or [ before it")?;
    let text = quoted
        .strip_prefix('\'')
        .ok_or("between [ and ] there must be a name in single quotation marks")?;
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => {
                let rest = text[at + 1..].strip_prefix(']').ok_or("a ] is missing")?;
                return Ok((name, rest));
            }
            '\\' => name.push(escaped(letters.next().map(|(_, letter)| letter))?),
            letter => name.push(letter),
        }
    }
    Err("a quotation mark is missing".into())
}

fn escaped(letter: Option<char>) -> Result<char, String> {
    Ok(match letter {
        Some('a') => '\u{7}',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\u{b}',
        Some(same @ ('\\' | '\'' | '"')) => same,
        _ => return Err("a backslash stands before a letter that it does not go with".into()),
    })
}

fn below<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    match schema
        .get("properties")
        .filter(|properties| !properties.is_null())
    {
        Some(properties) => properties.get(name),
        None => schema.get("additionalProperties"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The cases of upstream's test "fail if x-kubernetes-validations has invalid fieldPath", for arrays and objects.
    #[test]
    fn paths_are_those_of_an_api_server() {
        let number = json!({"type": "number"});
        let schema = json!({"type": "object", "properties": {
            "a.c": number, "special.character.34$": number,
            "foo": {"type": "object", "properties": {"b.c": {"type": "object", "properties": {"c\u{7}": number}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": number}}},
            "a": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": number}}}},
            "map": {"type": "object", "additionalProperties": number},
        }});
        for good in [
            ".foo['b.c']['c\\a']",
            "['a.c']",
            "['special.character.34$']",
            ".list",
            ".a.b.c",
            ".map.any",
            "",
        ] {
            assert_eq!(leads_somewhere(good, &schema), Ok(()), "{good}");
        }
        for bad in [
            ".a.c",
            ".list[0]",
            "   ",
            ".",
            "..",
            ".list[0].b",
            ".list[0.b",
            ".list0].b",
            ".a.b.d",
            ".a\n",
            "['a.c'",
            "['a.c",
            "a",
        ] {
            assert!(leads_somewhere(bad, &schema).is_err(), "{bad}");
        }
    }
}
