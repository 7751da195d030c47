//! The import filter: what the clusterset's policy lets one member import, and whether its last messages used the same
//! policy. It holds the rules about one member only; every change passes through it.

use model::{ClusterId, Revision, policy::Imports};

use crate::view::View;
use fold::DerivedKey;

/// The rules under which a member is sent.
#[derive(Debug, Default)]
pub(super) struct Takes {
    /// Since when the rules on imports are those that they are of; `None`: there are none.
    since: Option<Revision>,
    imports: Imports,
    /// The member came with what it held at this revision, and the rules of then are not known yet.
    held_at: Option<Revision>,
}

impl Takes {
    /// The objects of a member that holds everything it may import at that revision.
    pub(super) fn held_at(revision: Revision) -> Self {
        Self {
            held_at: Some(revision),
            ..Self::default()
        }
    }

    /// Takes over the rules of the view. True when what the member was sent was chosen by others, or may have been: rules
    /// that are younger than a member's position say nothing of those before them.
    pub(super) fn follow(&mut self, member: &ClusterId, view: &View) -> bool {
        let rules = view.import_rules();
        let since = rules.map(|rules| rules.since);
        let held_at = self.held_at.take();
        if held_at.is_none() && since == self.since {
            return false;
        }
        let imports = rules.map(|rules| rules.policy.imports_of(member));
        let imports = imports.unwrap_or_default();
        let other = match held_at {
            Some(held_at) => since > Some(held_at),
            None => imports != self.imports,
        };
        (self.since, self.imports) = (since, imports);
        other
    }

    /// Returns true if the member is sent this. The status of its own exports always is.
    pub(super) fn allow(&self, key: &DerivedKey) -> bool {
        match key {
            DerivedKey::Import(service) => self.imports.allow(service),
            DerivedKey::Slice(slice) => self.imports.allow(&slice.service),
            DerivedKey::ExportStatus(..) | DerivedKey::Profile(_) => true,
        }
    }
}
