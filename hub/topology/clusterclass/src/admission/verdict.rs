//! Owns: the answer, as people and API servers read it: allowed or refused, with one message and some warnings.
//! Never: decides which.

use serde_json::{Value, json};

use super::review::{API_VERSION, KIND};
use crate::model::Finding;

/// Most findings that one message names; how many more there are it says.
pub(super) const FINDINGS_TOLD_MAX: usize = 20;
/// Most warnings of one answer: what an API server passes on.
pub(super) const WARNINGS_MAX: usize = 16;
/// Longest warning, characters; API servers cut longer ones.
const WARNING_LENGTH_MAX: usize = 256;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    uid: String,
    refused: Option<(Refusal, String)>,
    warnings: Vec<String>,
}

/// Why something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It keeps a rule not.
    Invalid,
    /// Others need what would go.
    Forbidden,
    /// Nobody can say: what it is judged by cannot be read.
    Unavailable,
}

/// An answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing was found.
    Allowed,
    /// Something was, and it is allowed.
    Warned,
    /// Something was, and it is not.
    Refused,
    /// It is not, because what it is judged by could not be read.
    Unread,
}

impl Verdict {
    pub(super) fn allowed(uid: &str, warnings: Vec<String>) -> Self {
        Self {
            uid: uid.to_owned(),
            refused: None,
            warnings: bounded(warnings),
        }
    }

    /// One message with these findings; there is at least one.
    pub(super) fn refused(uid: &str, why: Refusal, findings: &[Finding], warnings: Vec<String>) -> Self {
        let mut message = match findings.len() {
            1 => String::new(),
            count => format!("{count} findings: "),
        };
        let told: Vec<String> = findings
            .iter()
            .take(FINDINGS_TOLD_MAX)
            .map(Finding::of_field)
            .collect();
        message.push_str(&told.join("; "));
        if let more @ 1.. = findings.len().saturating_sub(FINDINGS_TOLD_MAX) {
            message.push_str(&format!("; and {more} more"));
        }
        Self {
            uid: uid.to_owned(),
            refused: Some((why, message)),
            warnings: bounded(warnings),
        }
    }

    /// Nobody can say.
    pub(super) fn unread(uid: &str, reason: &str) -> Self {
        let message = format!("cannot be judged now: {reason}");
        Self {
            uid: uid.to_owned(),
            refused: Some((Refusal::Unavailable, message)),
            warnings: Vec::new(),
        }
    }

    /// The answer in one word.
    pub fn outcome(&self) -> Outcome {
        match &self.refused {
            Some((Refusal::Unavailable, _)) => Outcome::Unread,
            Some(_) => Outcome::Refused,
            None if self.warnings.is_empty() => Outcome::Allowed,
            None => Outcome::Warned,
        }
    }

    /// The answer as an API server reads it.
    pub fn to_json(&self) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": self.refused.is_none()});
        if let Some((why, message)) = &self.refused {
            let (code, reason) = match why {
                Refusal::Invalid => (422, "Invalid"),
                Refusal::Forbidden => (403, "Forbidden"),
                // As API servers report a failing webhook: after a 503 clients try again by themselves, for minutes.
                Refusal::Unavailable => (500, "InternalError"),
            };
            response["status"] =
                json!({"status": "Failure", "code": code, "reason": reason, "message": message});
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}

/// Reduces warnings to what an API server passes on; the last one counts the omitted ones.
fn bounded(mut warnings: Vec<String>) -> Vec<String> {
    if warnings.len() > WARNINGS_MAX {
        let more = warnings.len() - (WARNINGS_MAX - 1);
        warnings.truncate(WARNINGS_MAX - 1);
        warnings.push(format!("and {more} more"));
    }
    for warning in &mut warnings {
        if let Some((end, _)) = warning.char_indices().nth(WARNING_LENGTH_MAX) {
            let cut = warning[..end].char_indices().next_back().map_or(0, |(at, _)| at);
            warning.truncate(cut);
            warning.push('…');
        }
    }
    warnings
}
