//! Owns: what `valueFrom.variable` means: a variable, or a part of one by names and places in lists, `a.b[0].c`.
//! Never: panics, whatever the text says.

use serde_json::{Map, Value};

use super::finding::shown;

/// The value at a path of variables.
pub(super) fn value<'a>(variables: &'a Map<String, Value>, path: &str) -> Result<&'a Value, String> {
    let mut parts = path.split('.');
    let (name, place) = segment(parts.next().unwrap_or_default())?;
    let variable = variables
        .get(name)
        .ok_or_else(|| format!("variable {} has no value here", shown(name)))?;
    let mut at = element(variable, name, place)?;
    for part in parts {
        let (name, place) = segment(part)?;
        let below = match at {
            Value::Object(fields) => fields.get(name),
            // Upstream takes a number for the name of an element, too.
            Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
            _ => None,
        };
        let below =
            below.ok_or_else(|| format!("variable {} has no value here: no {}", shown(path), shown(name)))?;
        at = element(below, name, place)?;
    }
    Ok(at)
}

/// The name of the variable that a path begins with.
pub(super) fn base(path: &str) -> &str {
    path.split(['.', '[']).find(|part| !part.is_empty()).unwrap_or("")
}

/// A name and the place in the list that it names. The rest after the first bracket's end has no meaning.
fn segment(text: &str) -> Result<(&str, Option<usize>), String> {
    let refused = || format!("{} is no name with a place in a list", shown(text));
    match (text.find('['), text.find(']')) {
        (None, None) => Ok((text, None)),
        (Some(open), Some(close)) if open < close => {
            let place = text[open + 1..close].parse().map_err(|_| refused())?;
            Ok((&text[..open], Some(place)))
        }
        _ => Err(refused()),
    }
}

fn element<'a>(value: &'a Value, name: &str, place: Option<usize>) -> Result<&'a Value, String> {
    let Some(place) = place else {
        return Ok(value);
    };
    let items = value
        .as_array()
        .ok_or_else(|| format!("{} is no list", shown(name)))?;
    items
        .get(place)
        .ok_or_else(|| format!("the list {} has no element {place}", shown(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_found() {
        let Value::Object(variables) = json!({
            "a": {"b": [{"c": 1}, [2]], "n": null},
            "l": ["x", "y"],
        }) else {
            panic!("an object")
        };
        for (path, found) in [
            ("a.b[0].c", json!(1)),
            ("a.b.0.c", json!(1)),
            ("l[1]", json!("y")),
            ("l[+1]", json!("y")),
            ("a.b[1][0]", json!([2])),
            ("a.n", json!(null)),
            ("l", json!(["x", "y"])),
        ] {
            assert_eq!(value(&variables, path), Ok(&found), "{path}");
        }
        for path in [
            "b", "a.x", "a.n.x", "l[2]", "l[-1]", "l[x]", "l[0", "l]0[", "a[0]", "l.2", "l.x", "", "l[]",
        ] {
            assert!(value(&variables, path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_path_begins_with_its_variable() {
        for (path, name) in [("a", "a"), ("a.b", "a"), ("a[0].b", "a"), (".a", "a"), ("", "")] {
            assert_eq!(base(path), name);
        }
    }
}
