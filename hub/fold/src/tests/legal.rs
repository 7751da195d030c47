//! Properties of every state, whatever event it is at. They do not say what an import should be.

use model::Event;
use proptest::{prelude::*, test_runner::TestCaseError};

use crate::{DerivedContent, DerivedKey, MemberStatus, State};

/// Fails where the state after `event` contradicts itself.
pub(super) fn check(state: &State, event: &Event) -> Result<(), TestCaseError> {
    prop_assert_eq!(state.revision(), event.revision);
    prop_assert!(state.recorded_at() >= event.recorded_at);
    members(state)?;
    for (key, derived) in state.all_derived() {
        prop_assert!(derived.revision <= state.revision(), "{key:?} is of the future");
        prop_assert!(state.tombstone(key).is_none(), "{key:?} stands and is removed");
        stands_on_something(state, key, &derived.content)?;
    }
    for (key, revision) in state.tombstones() {
        prop_assert!(
            revision <= state.revision() && state.derived(key).is_none(),
            "{key:?}"
        );
    }
    Ok(())
}

/// Facts are those of current members, each under its own key, and everybody who exports is found by the service.
fn members(state: &State) -> Result<(), TestCaseError> {
    for (cluster, member) in state.members().iter() {
        let is_current = member.status() == MemberStatus::Joined;
        prop_assert!(
            is_current || member.facts().is_empty(),
            "{cluster} left and has facts"
        );
        prop_assert_eq!(is_current, state.current_member(cluster).is_some());
        for (key, recorded) in member.facts().iter() {
            prop_assert_eq!(recorded.encoded().fact.key(), Some(key.clone()));
            prop_assert!(recorded.revision <= state.revision());
        }
        for (_, export) in member.exports() {
            let mut exporters = state.exporters(&export.service);
            prop_assert!(
                exporters.any(|exporter| exporter == cluster),
                "{cluster} {}",
                export.service
            );
        }
    }
    Ok(())
}

/// Nothing that is derived is left over from what it was derived from.
fn stands_on_something(
    state: &State,
    key: &DerivedKey,
    content: &DerivedContent,
) -> Result<(), TestCaseError> {
    let imported = |service| state.derived(&DerivedKey::Import(service)).is_some();
    match content {
        DerivedContent::Import(import) => {
            prop_assert!(!import.clusters.is_empty(), "{key:?} comes from nobody");
            for cluster in import.clusters.keys() {
                let mut exporters = state.exporters(&import.service);
                prop_assert!(
                    exporters.any(|exporter| exporter == cluster),
                    "{key:?} of {cluster}"
                );
            }
        }
        DerivedContent::Slice(slice) => {
            let source = state.current_member(&slice.key.source_cluster);
            prop_assert!(source.is_some(), "{key:?} comes from nobody");
            prop_assert!(
                imported(slice.key.service.clone()),
                "{key:?} belongs to no import"
            );
        }
        DerivedContent::ExportStatus(status) => {
            let taken = status.denial.is_none();
            prop_assert!(
                !taken || imported(status.service.clone()),
                "{key:?} belongs to no import"
            );
        }
        DerivedContent::Profile(_) => {}
    }
    Ok(())
}
