//! What the policy of the clusterset lets one member take, and whether that is still what it was sent by. It holds the
//! rules about one member only: every change is asked about.

use shared::model::{ClusterId, Revision, ServiceKey, policy::ServiceRule};

use crate::{fold::DerivedKey, view::View};

/// The rules under which a member is sent.
#[derive(Debug, Default)]
pub(super) struct Takes {
    /// Which policy they are of; `None`: of none.
    policy: Option<Revision>,
    /// `None`: it takes everything.
    imports: Option<Vec<ServiceRule>>,
    /// The member came with what it held at this revision, and the rules of then are not known yet.
    held_at: Option<Revision>,
}

impl Takes {
    /// Those of a member that holds what it might take at that revision.
    pub(super) fn held_at(revision: Revision) -> Self {
        Self {
            held_at: Some(revision),
            ..Self::default()
        }
    }

    /// Takes over the policy of the view. True when what the member was sent was chosen by other rules, or may have been:
    /// a policy that came after a member's position says nothing of the one before it.
    pub(super) fn follow(&mut self, member: &ClusterId, view: &View) -> bool {
        let policy = view.policy();
        let revision = policy.map(|(revision, _)| *revision);
        let held_at = self.held_at.take();
        if held_at.is_none() && revision == self.policy {
            return false;
        }
        let imports = policy.and_then(|(_, policy)| policy.imports_of(member));
        let other = match held_at {
            Some(held_at) => revision > Some(held_at),
            None => imports != self.imports,
        };
        self.policy = revision;
        self.imports = imports;
        other
    }

    /// Whether the member is sent this. What is said of its own exports always is.
    pub(super) fn allow(&self, key: &DerivedKey) -> bool {
        let Some(rules) = &self.imports else { return true };
        let any = |service: &ServiceKey| rules.iter().any(|rule| rule.matches(service));
        match key {
            DerivedKey::Import(service) => any(service),
            DerivedKey::Slice(slice) => any(&slice.service),
            DerivedKey::ExportStatus(..) | DerivedKey::Profile(_) => true,
        }
    }
}
