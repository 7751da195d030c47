//! Owns: files of Kubernetes objects: several documents of YAML 1.1 or JSON in each, lists taken apart.

use serde_json::Value;

use super::finding::shown;
use crate::template::yaml_to_json;

/// Most objects of all files together.
const MAX_OBJECTS: usize = 100_000;

/// An object and the name of the file that it is in.
pub type Read<'f> = (&'f str, Value);

/// The objects of files, each a name and its bytes, in their order.
///
/// # Errors
///
/// One line: the file and the document that cannot be read, and the reason.
pub fn objects(files: &[(String, Vec<u8>)]) -> Result<Vec<Read<'_>>, String> {
    let mut objects = Vec::new();
    for (file, bytes) in files {
        for (index, document) in documents(bytes).iter().enumerate() {
            let wrong = |why: &str| format!("{file}, document {}: {}", index + 1, shown(why));
            if has_two(document) {
                return Err(wrong("it has kind twice: put a line of --- between two objects"));
            }
            let json = yaml_to_json(document).map_err(|why| wrong(&why))?;
            let value: Value = serde_json::from_str(&json).map_err(|error| wrong(&error.to_string()))?;
            match value {
                Value::Null => {}
                Value::Object(mut fields) if fields.get("kind") == Some(&Value::from("List")) => {
                    match fields.get_mut("items").map(Value::take) {
                        Some(Value::Array(items)) => {
                            objects.extend(items.into_iter().map(|item| (file.as_str(), item)))
                        }
                        _ => return Err(wrong("a List without items")),
                    }
                }
                value @ Value::Object(_) => objects.push((file.as_str(), value)),
                _ => return Err(wrong("it is no object")),
            }
            if objects.len() > MAX_OBJECTS {
                return Err(format!(
                    "the files have more than {MAX_OBJECTS} objects: give fewer"
                ));
            }
        }
    }
    Ok(objects)
}

/// Returns true if one document has two objects, of which YAML 1.1 would silently take the last.
fn has_two(document: &[u8]) -> bool {
    let lines = document.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"kind:")).count() > 1
}

/// A file taken apart before each line that begins a document.
fn documents(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut documents = vec![Vec::new()];
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let begins = line
            .strip_prefix(b"---")
            .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace));
        if begins {
            documents.push(Vec::new());
        }
        if let Some(document) = documents.last_mut() {
            document.extend_from_slice(line);
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Vec<Value>, String> {
        let files = [("f.yaml".to_owned(), text.as_bytes().to_vec())];
        objects(&files).map(|read| read.into_iter().map(|(_, object)| object).collect())
    }

    #[test]
    fn a_file_has_several_documents() {
        let text = "# first\na: yes\n--- # second\nb: |\n  ---\n---\n---\nkind: List\nitems: [{c: 0123}]\n";
        assert_eq!(
            read(text),
            Ok(vec![json!({"a": true}), json!({"b": "---\n"}), json!({"c": 83})])
        );
        assert_eq!(read("{\"a\": 1}"), Ok(vec![json!({"a": 1})]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, why) in [
            ("a: 1\n---\n- 1\n", "f.yaml, document 2: it is no object"),
            ("kind: List\n", "f.yaml, document 1: a List without items"),
            (
                "kind: A\nkind: B\n",
                "f.yaml, document 1: it has kind twice: put a line of --- between two objects",
            ),
        ] {
            assert_eq!(read(text), Err(why.to_owned()));
        }
        let why = read("a: [").expect_err("no YAML");
        assert!(why.starts_with("f.yaml, document 1: yaml: "), "{why}");
    }
}
