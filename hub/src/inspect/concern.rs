//! Owns: what of a clusterset concerns whom. Operators and readers see everything; a member sees what is its own, and what
//! every member is sent. Pure; docs/protocol.md, "Who may ask what", has it as a table.
//! Never: refuses anybody (`access.rs` does); makes messages.

use shared::model::{ClusterId, Event, ExportStatus, Fact};

use crate::fold::{Explanation, KeyHolder};

/// The reader of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    /// An operator's or a reader's.
    #[default]
    Everything,
    /// The member's of this cluster.
    Of(ClusterId),
}

/// Something that an answer may show.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown<'a> {
    /// The cluster itself: its membership with its keys, its exports, its profile.
    Cluster(&'a ClusterId),
    /// An import with the clusters behind it: every member may be sent it.
    Import,
    /// A recorded event.
    Event(&'a Event),
    /// A key that is refused for ever.
    RevokedKey(&'a KeyHolder),
}

impl Sight {
    /// The member's cluster, if it is one's.
    pub(super) fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Everything => None,
            Self::Of(cluster) => Some(cluster),
        }
    }

    /// Returns true if it may be shown. A member sees nothing that belongs to no cluster, or to another cluster beside
    /// its own.
    pub(super) fn shows(&self, what: Shown<'_>) -> bool {
        let Self::Of(own) = self else {
            return true;
        };
        match what {
            Shown::Cluster(cluster) => cluster == own,
            Shown::Import => true,
            // One of two sides of a dispute is another cluster's export, with its age.
            Shown::Event(event) => {
                event.cluster.as_ref() == Some(own)
                    && !matches!(event.fact.fact, Fact::PrecedenceContested { .. })
            }
            Shown::RevokedKey(KeyHolder::Member(cluster)) => cluster == own,
            Shown::RevokedKey(KeyHolder::Operator(_) | KeyHolder::Reader(_)) => false,
        }
    }

    /// An explanation without what does not concern whom it is for: of other clusters' exports remains what the import
    /// and the status of one's own export say of them. `status` is that of one's own export.
    pub(super) fn narrowed(&self, shown: Explanation, status: Option<&ExportStatus>) -> Explanation {
        let Self::Of(own) = self else {
            return shown;
        };
        let Explanation {
            service,
            revision,
            import,
            mut candidates,
            mut decisions,
            mut refused,
            ..
        } = shown;
        candidates.retain(|candidate| self.shows(Shown::Cluster(&candidate.cluster)));
        refused.retain(|refused| self.shows(Shown::Cluster(&refused.cluster)));
        decisions.retain(|decision| self.shows(Shown::Cluster(&decision.winner)));
        for decision in &mut decisions {
            decision
                .losers
                .retain(|loser| self.shows(Shown::Cluster(&loser.cluster)));
        }
        let imported = match import.as_ref().map(|(_, import)| import.clusters.len()) {
            None => format!("{service} is not imported"),
            Some(1) => format!("{service} is imported from 1 cluster"),
            Some(clusters) => format!("{service} is imported from {clusters} clusters"),
        };
        let own_export = match (candidates.first(), refused.first()) {
            (Some(candidate), _) => {
                let place = candidate.precedence;
                format!("the export of {own} is number {place} in the order of precedence")
            }
            (None, Some(refused)) => {
                format!("the export of {own} is not taken: {}", refused.denial.message)
            }
            (None, None) => format!("{own} does not export it"),
        };
        Explanation {
            service,
            revision,
            summary: format!("{imported}; {own_export}."),
            import,
            conflicts: status
                .filter(|_| !candidates.is_empty())
                .map(|status| status.conflicts.clone())
                .unwrap_or_default(),
            candidates,
            decisions,
            refused,
            precedence: None,
            ended: None,
        }
    }
}
