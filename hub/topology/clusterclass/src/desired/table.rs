//! Owns: plans as a person reads them: a row for each object that changes with its reasons, and the sum.

use std::fmt::Write;

use ::model::columns::columns;
use serde_json::Value;

use super::change::{Action, Change, Difference, LeftOut, Plan};
use crate::patch::{finding::shown, print};

/// Most reasons of one object that are shown.
const MAX_REASONS: usize = 10;
/// Longest value that is shown, characters.
const MAX_SHOWN: usize = 60;

/// Plans as a table, and their sum.
pub fn table(plans: &[Plan]) -> String {
    let header = ["CLUSTER", "ACTION", "OBJECT", "NAME", "WHY"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for plan in plans {
        let changes = plan.changes.iter().filter(|change| change.action != Action::Keep);
        for change in changes {
            rows.extend(rows_of(plan, change));
        }
    }
    let mut said = if rows.len() > 1 {
        columns(&rows).join("\n") + "\n\n"
    } else {
        String::new()
    };
    for plan in plans {
        for line in &plan.upgrade {
            let _ = writeln!(said, "{}/{}: {line}", plan.namespace, plan.name);
        }
        for one in &plan.left_out {
            let cluster = shown(&format!("{}/{}", plan.namespace, plan.name));
            let _ = writeln!(said, "{cluster}: {}", spoken(one));
        }
        for field in &plan.given {
            let cluster = shown(&format!("{}/{}", plan.namespace, plan.name));
            let _ = writeln!(said, "{cluster}: the Cluster keeps a default: {}", reason(field));
        }
    }
    said + &sum(plans)
}

fn rows_of(plan: &Plan, change: &Change) -> Vec<Vec<String>> {
    let name = match &change.before {
        Some(before) => format!("{before} -> {}", change.name),
        None => change.name.clone(),
    };
    let mut reasons = reasons(change);
    if !change.note.is_empty() {
        reasons.push(shown(&change.note));
    }
    if change.machines > 0 {
        let goes = if change.action == Action::Delete {
            "go"
        } else {
            "are replaced"
        };
        reasons.push(format!("at most {} machines {goes}", change.machines));
    }
    let mut cells = vec![
        shown(&format!("{}/{}", plan.namespace, plan.name)),
        change.action.name().to_owned(),
        shown(&change.place),
        shown(&name),
    ];
    let mut rows = Vec::new();
    for reason in if reasons.is_empty() {
        vec![String::new()]
    } else {
        reasons
    } {
        cells.push(reason);
        rows.push(std::mem::replace(&mut cells, vec![String::new(); 4]));
    }
    rows
}

/// The fields in which an object differs from the wanted one, the first of them.
pub fn reasons(change: &Change) -> Vec<String> {
    let mut reasons: Vec<String> = change.fields.iter().take(MAX_REASONS).map(reason).collect();
    if let Some(more) = change.fields.len().checked_sub(MAX_REASONS + 1) {
        reasons.push(format!("and {} more", more + 1));
    }
    reasons
}

/// The field, what it is and what it is to be.
fn reason(one: &Difference) -> String {
    let value = |value: &Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(value) => cut(&value.to_string()),
    };
    format!(
        "{}: {} -> {}",
        shown(&one.field),
        value(&one.old),
        value(&one.new)
    )
}

/// A part that a plan lacks, on one line. Names of extensions are long; nothing of them is cut.
pub(super) fn spoken(one: &LeftOut) -> String {
    let said = one.to_string();
    said.chars()
        .map(|one| if one.is_control() { ' ' } else { one })
        .collect()
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_SHOWN).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    shown(&short)
}

fn sum(plans: &[Plan]) -> String {
    let changes = || plans.iter().flat_map(|plan| &plan.changes);
    let count = |action: Action| changes().filter(|change| change.action == action).count();
    let clusters = plans.len();
    let changed = plans.iter().filter(|plan| plan.writes()).count();
    let of = match clusters {
        1 => "1 cluster".to_owned(),
        clusters => format!("{clusters} clusters"),
    };
    if changed == 0 {
        return format!("nothing changes in {of}\n");
    }
    let verbs = [
        (Action::Create, "created"),
        (Action::Update, "updated"),
        (Action::Rotate, "rotated"),
        (Action::Delete, "deleted"),
        (Action::Wait, "waiting"),
    ];
    let parts: Vec<String> = verbs
        .into_iter()
        .map(|(action, verb)| format!("{} {verb}", count(action)))
        .collect();
    let machines = |gone: bool| -> u64 {
        let all = changes().filter(|change| (change.action == Action::Delete) == gone);
        all.map(|change| change.machines).sum()
    };
    format!(
        "{changed} of {of} changed; objects: {}; machines: at most {} replaced, {} deleted\n",
        parts.join(", "),
        machines(false),
        machines(true)
    )
}

/// The objects as they should be, each under what becomes of it; then, as comments, what goes and what waits.
pub fn documents(plans: &[Plan]) -> String {
    let mut said = String::new();
    for plan in plans {
        let cluster = shown(&format!("{}/{}", plan.namespace, plan.name));
        for line in &plan.upgrade {
            let _ = writeln!(said, "# {cluster}: {}", shown(line));
        }
        for one in &plan.left_out {
            let _ = writeln!(said, "# {cluster}: {}", spoken(one));
        }
        for change in &plan.changes {
            let (action, place) = (change.action.name(), shown(&change.place));
            match &change.object {
                Some(object) => {
                    let _ = write!(
                        said,
                        "---\n# {cluster}: {action} {place}\n{}",
                        print::yaml(object)
                    );
                }
                None => {
                    let (kind, name) = (shown(&change.kind), shown(&change.name));
                    let why = match &*change.note {
                        "" => String::new(),
                        note => format!(": {}", shown(note)),
                    };
                    let _ = writeln!(said, "# {cluster}: {action} {place}, {kind} {name}{why}");
                }
            }
        }
    }
    said
}

#[cfg(test)]
mod tests;
