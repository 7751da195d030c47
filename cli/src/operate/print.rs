//! Answers as people and as programs read them: columns that align, or one JSON document.

mod brake;
mod events;
mod leaving;
mod members;

pub(super) use events::events;
pub(super) use members::members;
pub(crate) use members::{applied, is_contested, parked, state};

use prost_types::Timestamp;
use proto::v1;
use serde_json::json;

use crate::output::Output;

/// Digits of a key fingerprint that a column shows; JSON has all of them.
const KEY_DIGITS: usize = 16;
/// Longest version that a column shows, in characters; JSON has all of it.
const VERSION_CHARACTERS_MAX: usize = 24;

/// The outcome of a decision, or of its dry run with the command that confirms it.
pub(super) fn decision(response: &v1::MemberDecisionResponse, confirm: &str, output: Output) -> String {
    let v1::MemberDecisionResponse {
        done,
        revision,
        effects,
        nothing_to_do,
        ..
    } = response;
    if output.is_document() {
        let mut document = json!({
            "done": done,
            "revision": revision,
            "effects": effects,
            "nothingToDo": nothing_to_do,
        });
        if !done && !nothing_to_do {
            document["confirm"] = confirm.into();
        }
        return output.document(&document);
    }
    let effects: String = effects.iter().map(|effect| format!("  * {effect}\n")).collect();
    match (done, revision) {
        (false, _) if *nothing_to_do => {
            format!("Nothing has changed, and --confirm would change nothing:\n{effects}")
        }
        (false, _) => format!("Nothing has changed yet. With --confirm:\n{effects}To do it:\n  {confirm}\n"),
        (true, 0) => format!("Nothing was recorded:\n{effects}"),
        (true, revision) => format!("Done, recorded at revision {revision}:\n{effects}"),
    }
}

/// The policy in force: the document itself, so that it can be changed and applied again.
pub(super) fn policy(response: &v1::GetPolicyResponse, output: Output) -> String {
    let v1::GetPolicyResponse {
        document,
        revision,
        operator,
        applied_at,
        ..
    } = response;
    if output.is_document() {
        let document = json!({
            "document": document,
            "revision": revision,
            "operator": operator,
            "appliedAt": time(applied_at.as_ref()),
        });
        return output.document(&document);
    }
    let at = time(applied_at.as_ref());
    let said = match (applied_at, revision) {
        (None, _) => "# No policy was applied; without one, this holds.\n".to_owned(),
        // Revisions of an epoch mean nothing in the next one.
        (Some(_), 0) => format!("# Applied by {operator} at {at}, before this epoch of the log began.\n"),
        (Some(_), revision) => format!("# Applied by {operator} at {at}, revision {revision}.\n"),
    };
    format!(
        "{said}{document}{}",
        if document.ends_with('\n') { "" } else { "\n" }
    )
}

/// The end of a line that says who answered.
pub(crate) fn said_by(answered_by: Option<&v1::AnsweredBy>) -> String {
    let said = answered_by.map(|by| format!(", says hub {} ({})", by.hub, version(&by.hub_version)));
    said.unwrap_or_default()
}

/// A time span as a person would say it.
pub(crate) fn span(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..60 => format!("{seconds}.{}s", millis % 1_000 / 100),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

pub(crate) fn time(at: Option<&Timestamp>) -> String {
    let at = at.and_then(|at| jiff::Timestamp::new(at.seconds, at.nanos).ok());
    at.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}"))
}

pub(crate) fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// A version as a column shows it: what a member states of itself is cut.
pub(crate) fn version(text: &str) -> String {
    let shown: String = text.chars().take(VERSION_CHARACTERS_MAX).collect();
    or_dash(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_an_earlier_epoch_is_in_force_and_not_none() {
        let shown = |revision, applied| {
            let response = v1::GetPolicyResponse {
                document: "spec: {}".into(),
                revision,
                operator: "alice".into(),
                applied_at: applied,
                ..Default::default()
            };
            policy(&response, Output::Text)
        };
        let at = Some(prost_types::Timestamp::default());
        assert!(shown(0, None).starts_with("# No policy was applied"));
        let earlier = shown(0, at);
        assert!(earlier.starts_with("# Applied by alice at ") && earlier.contains("before this epoch"));
        assert!(shown(7, at).contains(", revision 7.\n"));
    }
}
