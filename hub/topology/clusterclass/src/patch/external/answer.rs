//! Owns: what an extension's answer says: whether the call succeeded, the patches and the definitions in it, and templates
//! with these patches.
//! Never: takes over more than `spec` of a patched template, as upstream.

use data_encoding::BASE64;
use serde_json::Value;

use super::{
    super::{finding::shown, limits::MAX_RESULT, numbers},
    json_patch, request,
};

/// Most patches of one answer.
pub const MAX_PATCHES: usize = 10_000;

/// The effect of an answer's patches on one template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// Index of the template.
    pub index: usize,
    /// True if something else than `spec` was patched too, which is not taken over.
    pub beyond_spec: bool,
}

/// Returns an answer that says `Success`.
///
/// # Errors
///
/// One line: the failure and its message.
pub fn success(answer: &Value) -> Result<&Value, String> {
    let text = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default();
    match text("status") {
        "Success" => Ok(answer),
        "Failure" => Err(format!("it answered Failure: {}", shown(text("message")))),
        other => Err(format!(
            "it answered with status {}, which is neither Success nor Failure",
            shown(if other.is_empty() { "none" } else { other })
        )),
    }
}

/// Applies the patches of an answer to the templates of its request, in their order. `Err` leaves templates half patched.
///
/// # Errors
///
/// One line: which patch cannot be applied, and why.
pub fn patch(answer: &Value, templates: &mut [&mut Value]) -> Result<Vec<Effect>, String> {
    let items = match success(answer)?.get("items") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MAX_PATCHES => items,
        Some(Value::Array(items)) => {
            return Err(format!(
                "it answered with {} patches, more than {MAX_PATCHES}",
                items.len()
            ));
        }
        Some(_) => return Err("its answer has items that are no list".to_owned()),
    };
    let mut effects = Vec::new();
    for (at, item) in items.iter().enumerate() {
        effects.extend(one(item, templates).map_err(|why| format!("items[{at}] of its answer: {why}"))?);
    }
    Ok(effects)
}

/// Applies one patch; none if it is empty.
fn one(item: &Value, templates: &mut [&mut Value]) -> Result<Option<Effect>, String> {
    let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
    let uid = text("uid");
    let index = (0..templates.len()).find(|at| request::uid(*at) == uid);
    let Some(index) = index else {
        return Err(format!("no template of the request has uid {}", shown(uid)));
    };
    let bytes = decoded(text("patch"))?;
    let template = &mut *templates[index];
    let read =
        || serde_json::from_slice::<Value>(&bytes).map_err(|error| format!("its patch is no JSON: {error}"));
    let after = match text("patchType") {
        "JSONPatch" => {
            let operations = read()?;
            let operations = operations
                .as_array()
                .ok_or("its JSON patch is no list of operations")?;
            if operations.is_empty() {
                return Ok(None);
            }
            json_patch::apply(template, operations)?
        }
        "JSONMergePatch" if bytes.is_empty() || bytes == b"{}" => return Ok(None),
        "JSONMergePatch" => json_patch::merge(template, &read()?)?,
        other => {
            return Err(format!(
                "patchType {} is neither JSONPatch nor JSONMergePatch",
                shown(other)
            ));
        }
    };
    if after.to_string().len() > MAX_RESULT {
        return Err(format!("the template would have more than {MAX_RESULT} bytes"));
    }
    for field in ["apiVersion", "kind"] {
        if after.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(format!("its patch leaves a template without {field}"));
        }
    }
    let effect = Effect {
        index,
        beyond_spec: outside(template) != outside(&after),
    };
    if let (Some(spec), Some(fields)) = (after.get("spec"), template.as_object_mut()) {
        fields.insert("spec".to_owned(), numbers::kept(spec.clone()));
    }
    Ok(Some(effect))
}

/// A template without its `spec`.
fn outside(template: &Value) -> Value {
    let mut rest = template.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.remove("spec");
    }
    rest
}

/// Bytes as JSON has them, in base64; lines may be broken.
fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let plain: String = text.chars().filter(|one| !['\r', '\n'].contains(one)).collect();
    BASE64
        .decode(plain.as_bytes())
        .map_err(|_| "its patch is not written in base64".to_owned())
}
