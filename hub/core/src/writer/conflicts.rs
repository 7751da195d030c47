//! Counters of exports in conflict or refused, by reason, updated with every change: counting all exports each time
//! would cost more than the changes. Pure; it decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use model::{ConflictReason, DenialReason};

use fold::{DerivedContent, DerivedKey};

/// The exports in conflict. No larger than the exports that are.
#[derive(Debug, Default)]
pub(super) struct OpenConflicts {
    exports: BTreeMap<DerivedKey, BTreeSet<ConflictReason>>,
    counts: BTreeMap<ConflictReason, u64>,
    /// The ones that are refused at all.
    refused: BTreeMap<DerivedKey, DenialReason>,
}

impl OpenConflicts {
    /// A derived object is like this now; `None`: it is gone.
    pub(super) fn changed(&mut self, key: &DerivedKey, content: Option<&DerivedContent>) {
        if !matches!(key, DerivedKey::ExportStatus(..)) {
            return;
        }
        self.refused.remove(key);
        for reason in self.exports.remove(key).into_iter().flatten() {
            *self.counts.entry(reason).or_default() -= 1;
        }
        let Some(DerivedContent::ExportStatus(status)) = content else {
            return;
        };
        if let Some(denial) = &status.denial {
            self.refused.insert(key.clone(), denial.reason);
        }
        let reasons: BTreeSet<ConflictReason> =
            status.conflicts.iter().map(|conflict| conflict.reason).collect();
        for reason in &reasons {
            *self.counts.entry(*reason).or_default() += 1;
        }
        if !reasons.is_empty() {
            self.exports.insert(key.clone(), reasons);
        }
    }

    /// Number of refused exports for a reason. Few are refused.
    pub(super) fn refused(&self, reason: DenialReason) -> u64 {
        self.refused.values().filter(|one| **one == reason).count() as u64
    }

    /// Number of exports in conflict for a reason.
    pub(super) fn count(&self, reason: ConflictReason) -> u64 {
        self.counts.get(&reason).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{ClusterId, Conflict, ExportStatus, ServiceKey};

    use super::*;

    #[test]
    fn an_export_counts_once_for_each_reason_until_it_is_settled_or_gone() {
        use ConflictReason::{Labels, Port};
        let service = || ServiceKey::new("shop", "cart").expect("valid");
        let key = |cluster| DerivedKey::ExportStatus(ClusterId::new(cluster).expect("valid"), service());
        let status = |reasons: &[ConflictReason]| {
            let conflict = |&reason| Conflict {
                reason,
                message: "differs".into(),
            };
            DerivedContent::ExportStatus(Arc::new(ExportStatus {
                service: service(),
                uid: "uid".into(),
                generation: 1,
                conflicts: reasons.iter().map(conflict).collect(),
                exporters: 2,
                denial: None,
                left_out: "".into(),
            }))
        };
        let mut open = OpenConflicts::default();
        let counts = |open: &OpenConflicts| (open.count(Port), open.count(Labels));
        open.changed(&key("east"), Some(&status(&[Port, Port, Labels])));
        open.changed(&key("west"), Some(&status(&[Port])));
        assert_eq!(counts(&open), (2, 1));
        open.changed(&key("east"), Some(&status(&[Port])));
        assert_eq!(counts(&open), (2, 0));
        open.changed(&key("west"), None);
        open.changed(&key("east"), Some(&status(&[])));
        assert_eq!(counts(&open), (0, 0));
        assert!(open.exports.is_empty(), "nothing settled is kept");
    }
}
