//! Owns: the functions of paths, which are texts with slashes.

use super::super::signature::{Signature, Type::Text, exactly, said, text};
use super::super::value::Value;

/// A function by name.
pub(super) fn find(name: &str) -> Option<Signature> {
    match name {
        "base" | "osBase" => exactly(&[Text], |meter, given| said(meter, base(text(given, 0)))),
        "dir" | "osDir" => exactly(&[Text], |meter, given| said(meter, dir(text(given, 0)))),
        "clean" | "osClean" => exactly(&[Text], |meter, given| said(meter, clean(text(given, 0)))),
        "ext" | "osExt" => exactly(&[Text], |meter, given| said(meter, ext(text(given, 0)))),
        "isAbs" | "osIsAbs" => exactly(&[Text], |_, given| {
            Ok(Value::Bool(text(given, 0).starts_with(b"/")))
        }),
        _ => None,
    }
}

fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|byte| *byte != b'/');
    let Some(end) = end else {
        return b"/";
    };
    let path = &path[..=end];
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    &path[start..]
}

fn dir(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    clean(&path[..end])
}

fn ext(path: &[u8]) -> &[u8] {
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    match path[start..].iter().rposition(|byte| *byte == b'.') {
        Some(at) => &path[start + at..],
        None => b"",
    }
}

fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match parts.last() {
                Some(last) if *last != b".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(part),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", joined.as_slice()].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
