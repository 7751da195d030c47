//! The errors of the simulated API server, as `metav1.Status` bodies.
//! Owns their codes, reasons and wording; never decides when one is due.

use serde_json::{Value, json};

use super::kinds::Kind;

/// The text that answers for paths that nothing serves.
const NO_SUCH_PATH: &str = "404 page not found\n";

/// A refused request.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Value,
    /// The token that an expired list can be continued with.
    again: Option<String>,
}

/// One thing that is wrong with one field.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Cause {
    pub(crate) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: message.into(),
            field: field.into(),
        }
    }

    pub(crate) fn required(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueRequired",
            message: message.into(),
            field: field.into(),
        }
    }

    pub(crate) fn unsupported(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueNotSupported",
            message: message.into(),
            field: field.into(),
        }
    }

    pub(crate) fn duplicate(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            message: message.into(),
            field: field.into(),
        }
    }

    pub(crate) fn wrong_type(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            message: message.into(),
            field: field.into(),
        }
    }

    pub(crate) fn other(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            field: field.into(),
        }
    }

    fn json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl Refusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            again: None,
        }
    }

    fn about(mut self, kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        self.details = json!({"name": name, "group": kind.group, "kind": kind.plural});
        if !causes.is_empty() {
            self.details["causes"] = causes.iter().map(Cause::json).collect();
        }
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The path names no resource that is served; as with a real server the body is no Status.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", NO_SUCH_PATH)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} {name:?} not found", kind.qualified()),
        )
        .about(kind, name, &[])
    }

    pub(crate) fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.qualified());
        Self::new(409, "AlreadyExists", message).about(kind, name, &[])
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.qualified()
        );
        Self::new(409, "Conflict", message).about(kind, name, &[])
    }

    pub(crate) fn managers(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let message = format!(
            "Apply failed with {} conflict(s): {}",
            causes.len(),
            listed(causes)
        );
        Self::new(409, "Conflict", message).about(kind, name, causes)
    }

    pub(crate) fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let message = format!(
            "{} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being \
             terminated",
            kind.qualified()
        );
        let why = format!("namespace {namespace} is being terminated");
        let cause = Cause::other("NamespaceTerminating", "metadata.namespace", why);
        Self::new(403, "Forbidden", message).about(kind, name, &[cause])
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_as(&kind.group, &kind.kind, name, causes)
    }

    /// The error's subject need not be an object that is kept: a Scale, the options of a request.
    pub(crate) fn invalid_as(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let full = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let message = format!("{full} {name:?} is invalid: {}", listed(causes));
        let mut refusal = Self::new(422, "Invalid", message);
        let causes: Vec<Value> = causes.iter().map(Cause::json).collect();
        refusal.details = json!({"name": name, "group": group, "kind": kind, "causes": causes});
        if group.is_empty() {
            refusal
                .details
                .as_object_mut()
                .map(|details| details.remove("group"));
        }
        refusal
    }

    /// An apply that does not say who applies.
    pub(crate) fn no_manager() -> Self {
        let cause = Cause::required("fieldManager", "Required value: is required for apply patch");
        let message = format!(
            "PatchOptions.meta.k8s.io \"\" is invalid: {}",
            listed(std::slice::from_ref(&cause))
        );
        let mut refusal = Self::new(422, "Invalid", message);
        refusal.details = json!({"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause.json()]});
        refusal
    }

    /// A revision that is no longer in the watch history.
    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(
            410,
            "Expired",
            format!("too old resource version: {asked} ({oldest})"),
        )
    }

    /// A list that cannot be continued as it was begun; `again` continues it as things are now.
    pub(crate) fn list_expired(again: Option<String>) -> Self {
        let message = match again {
            Some(_) => {
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results. Continuing with the provided token results in an inconsistent list - \
                 objects that were created, modified, or deleted between the time the first chunk was returned and \
                 now may show up in the list."
            }
            None => "The resourceVersion for the provided list is too old.",
        };
        let mut refusal = Self::new(410, "Expired", message);
        refusal.again = again;
        refusal
    }

    /// A revision that is not there yet.
    pub(crate) fn too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut refusal = Self::new(504, "Timeout", message);
        let cause = Cause::other("ResourceVersionTooLarge", "", "Too large resource version");
        refusal.details =
            json!({"causes": [{"reason": cause.reason, "message": cause.message}], "retryAfterSeconds": 1});
        refusal
    }

    pub(crate) fn body(&self) -> Value {
        if self.message == NO_SUCH_PATH {
            return json!(NO_SUCH_PATH);
        }
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if let Some(again) = &self.again {
            body["metadata"]["continue"] = json!(again);
        }
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        body
    }
}

fn listed(causes: &[Cause]) -> String {
    let texts: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
