//! Owns: the functions of lists.

use super::{
    super::{
        cast::to_int,
        limits::Failure,
        meter::Meter,
        signature::{
            Body, Signature,
            Type::{Any, Int},
            any, at_least, exactly, int, list, listed,
        },
        value::{Element, List, Value},
    },
    equal::deep_equal,
};

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    let name = name.strip_prefix("must").map_or(name.to_owned(), |rest| {
        let mut rest = rest.to_owned();
        if let Some(first) = rest.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        // Some have no such sister.
        if matches!(rest.as_str(), "tuple" | "list" | "concat") {
            name.to_owned()
        } else {
            rest
        }
    });
    made(&name).or_else(|| picked(&name)).or_else(|| compared(&name))
}

fn one(body: Body) -> Option<Signature> {
    exactly(&[Any], body)
}

fn made(name: &str) -> Option<Signature> {
    match name {
        "tuple" | "list" => at_least(&[], Any, |meter, given| listed(meter, given.to_vec())),
        "append" | "push" => exactly(&[Any, Any], |meter, given| {
            let mut items = list(given, 0, "push")?.items.to_vec();
            items.push(any(given, 1).clone());
            listed(meter, items)
        }),
        "prepend" => exactly(&[Any, Any], |meter, given| {
            let mut items = vec![any(given, 1).clone()];
            items.extend_from_slice(&list(given, 0, "prepend")?.items);
            listed(meter, items)
        }),
        "reverse" => one(|meter, given| {
            let items = list(given, 0, "reverse")?.items.iter().rev().cloned().collect();
            listed(meter, items)
        }),
        "compact" => one(|meter, given| {
            let items = list(given, 0, "compact")?
                .items
                .iter()
                .filter(|item| item.truth());
            listed(meter, items.cloned().collect())
        }),
        "concat" => at_least(&[], Any, |meter, given| {
            let mut items = Vec::new();
            for at in 0..given.len() {
                let more = list(given, at, "concat")?;
                meter.items(items.len() + more.items.len())?;
                items.extend_from_slice(&more.items);
            }
            if items.is_empty() {
                return Ok(Value::List(List::nil(Element::Any)));
            }
            listed(meter, items)
        }),
        "chunk" => exactly(&[Int, Any], chunks),
        _ => None,
    }
}

fn picked(name: &str) -> Option<Signature> {
    match name {
        "first" => one(|_, given| {
            Ok(list(given, 0, "find first")?
                .items
                .first()
                .cloned()
                .unwrap_or(Value::Nil))
        }),
        "last" => one(|_, given| {
            Ok(list(given, 0, "find last")?
                .items
                .last()
                .cloned()
                .unwrap_or(Value::Nil))
        }),
        "rest" => one(|meter, given| part(meter, list(given, 0, "find rest")?, |length| (1, length))),
        "initial" => {
            one(|meter, given| part(meter, list(given, 0, "find initial")?, |length| (0, length - 1)))
        }
        "slice" => at_least(&[Any], Any, sliced),
        _ => None,
    }
}

/// Some elements; of an empty list Go's nil slice.
fn part(meter: &mut Meter, list: &List, range: fn(usize) -> (usize, usize)) -> Result<Value, Failure> {
    if list.items.is_empty() {
        return Ok(Value::List(List::nil(Element::Any)));
    }
    let (from, to) = range(list.items.len());
    listed(meter, list.items.get(from..to).unwrap_or(&[]).to_vec())
}

fn sliced(meter: &mut Meter, given: &[Value]) -> Result<Value, Failure> {
    let list = list(given, 0, "slice")?;
    if list.items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = given.get(1).map_or(Ok(0), |at| usize::try_from(to_int(at)));
    let end = given
        .get(2)
        .map_or(Ok(list.items.len()), |at| usize::try_from(to_int(at)));
    let found = start
        .ok()
        .zip(end.ok())
        .and_then(|(start, end)| list.items.get(start..end));
    let Some(items) = found else {
        return Err(Failure::new("reflect.Value.Slice: slice index out of bounds"));
    };
    meter.items(items.len())?;
    Ok(Value::List(List::new(items.to_vec(), list.element)?))
}

/// Lists of so many elements; the sizes are calculated in floats, as upstream does.
fn chunks(meter: &mut Meter, given: &[Value]) -> Result<Value, Failure> {
    let wrong = || Failure::new("runtime error: makeslice: len out of range");
    let (size, list) = (int(given, 0), list(given, 1, "chunk")?);
    let count = ((list.items.len() as f64 - 1.0) / size as f64).floor() + 1.0;
    if !(0.0..=list.items.len() as f64).contains(&count) {
        return Err(wrong());
    }
    let mut chunks = Vec::new();
    if count > 0.0 {
        let size = match usize::try_from(size) {
            Ok(size) if size > 0 => size,
            // One element modulo such a size is one.
            Err(_) if size < -1 => 1,
            _ => return Err(wrong()),
        };
        for chunk in list.items.chunks(size) {
            chunks.push(listed(meter, chunk.to_vec())?);
        }
    }
    meter.items(chunks.len())?;
    Ok(Value::List(List::new(chunks, Element::List)?))
}

fn contains(meter: &mut Meter, items: &[Value], wanted: &Value) -> Result<bool, Failure> {
    for item in items {
        if deep_equal(meter, wanted, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn compared(name: &str) -> Option<Signature> {
    match name {
        "uniq" => one(|meter, given| {
            let mut items = Vec::new();
            for item in list(given, 0, "find uniq")?.items.iter() {
                if !contains(meter, &items, item)? {
                    items.push(item.clone());
                }
            }
            listed(meter, items)
        }),
        "without" => at_least(&[Any], Any, |meter, given| {
            let mut items = Vec::new();
            for item in list(given, 0, "find without")?.items.iter() {
                if !contains(meter, given.get(1..).unwrap_or(&[]), item)? {
                    items.push(item.clone());
                }
            }
            listed(meter, items)
        }),
        "has" => exactly(&[Any, Any], |meter, given| {
            if any(given, 1).is_none() {
                return Ok(Value::Bool(false));
            }
            let items = &list(given, 1, "find has")?.items;
            Ok(Value::Bool(contains(meter, items, any(given, 0))?))
        }),
        _ => None,
    }
}
