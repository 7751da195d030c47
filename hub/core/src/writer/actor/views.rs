//! Owns: the view of a state, as a whole.

use model::Cursor;

use crate::{
    view::{ImportRules, View},
    writer::publication::publication,
};
use fold::{Change, State};

/// The view of a state in which everything is durable.
pub fn view_of(state: &State, head: Cursor) -> View {
    let mut view = View::new(head, state.tombstone_floor());
    let objects = state.all_derived().map(|(key, derived)| Change {
        key: key.clone(),
        revision: derived.revision,
        content: Some(derived.content.clone()),
    });
    let removed = state.tombstones().map(|(key, revision)| Change {
        key: key.clone(),
        revision,
        content: None,
    });
    view.publish(
        head,
        objects.chain(removed).filter_map(publication).collect(),
        state.tombstones_max() as usize,
    );
    view.set_import_rules(import_rules_of(state));
    view
}

/// The rules on imports in force, as the view has them.
pub(super) fn import_rules_of(state: &State) -> Option<ImportRules> {
    let applied = state.policy()?;
    Some(ImportRules {
        since: applied.imports_since?,
        policy: applied.policy.clone(),
    })
}
