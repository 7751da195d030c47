//! Owns: a derived change as the view publishes it, and which events change what members hear of sources.
//! Never: publishes.

use model::{
    Fact,
    sync::{DesiredChange, DesiredItem, DesiredKey},
};

use crate::view::{Entry, Item, Publication};
use fold::{Change, DerivedContent, DerivedKey};

/// A derived change in the form in which members get it; `None` for what only the hub itself uses.
pub fn publication(change: Change) -> Option<Publication> {
    let revision = change.revision;
    let removed = change.content.is_none();
    let desired = match change.content {
        Some(DerivedContent::Import(import)) => DesiredChange::Import(import),
        Some(DerivedContent::Slice(slice)) => DesiredChange::Slice(slice),
        Some(DerivedContent::ExportStatus(status)) => DesiredChange::ExportStatus(status),
        Some(DerivedContent::Profile(_)) => return None,
        None => DesiredChange::Removed(desired_key(&change.key)?),
    };
    let item = Item::new(DesiredItem {
        revision,
        change: desired,
    });
    Some(Publication {
        key: change.key,
        entry: Entry {
            revision,
            item,
            removed,
        },
    })
}

fn desired_key(key: &DerivedKey) -> Option<DesiredKey> {
    match key {
        DerivedKey::Import(service) => Some(DesiredKey::Import(service.clone())),
        DerivedKey::Slice(slice) => Some(DesiredKey::Slice(slice.clone())),
        DerivedKey::ExportStatus(_, service) => Some(DesiredKey::ExportStatus(service.clone())),
        DerivedKey::Profile(_) => None,
    }
}

/// True for facts that members must receive as a change of a source.
pub(super) fn concerns_sources(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::MemberJoined { .. }
            | Fact::MemberLeft
            | Fact::MemberEvicted { .. }
            | Fact::MemberForgotten { .. }
            | Fact::MemberLive
            | Fact::MemberSuspect
            | Fact::MemberLost
            | Fact::MemberWithdrawn
            // what becomes of a lost source
            | Fact::PolicyApplied { .. }
    )
}
