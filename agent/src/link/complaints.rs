//! Memory of warnings, so that a problem that comes back with every session is logged once. Pure; it owns no texts and
//! logs nothing.

use std::collections::BTreeMap;

use shared::model::FactKey;

use crate::outbox::Refusal;

/// Most refused facts that are remembered. With more, all are forgotten, and may be told of once more.
const REFUSALS_TOLD_MAX: usize = 10_000;

/// Warnings made so far, over all sessions.
#[derive(Debug, Default)]
pub struct Complaints {
    too_many_namespaces: bool,
    refused: BTreeMap<FactKey, Refusal>,
}

impl Complaints {
    /// Returns true if a warning is due now that there are too many namespaces, or no longer too many.
    pub(super) fn of_namespaces(&mut self, too_many: bool) -> bool {
        let told = std::mem::replace(&mut self.too_many_namespaces, too_many);
        too_many && !told
    }

    /// Returns true if this refusal deserves a warning. A refusal for lack of room does not: the fact is valid, and the
    /// hub asks for it again.
    pub(super) fn of_refusal(&mut self, key: &FactKey, refusal: &Refusal) -> bool {
        if refusal.reason.is_for_now() || self.refused.get(key) == Some(refusal) {
            return false;
        }
        if self.refused.len() >= REFUSALS_TOLD_MAX {
            self.refused.clear();
        }
        self.refused.insert(key.clone(), refusal.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use shared::model::{FactHash, ServiceKey, sync::RefusalReason};

    use super::*;

    fn key(number: usize) -> FactKey {
        FactKey::Export(ServiceKey::new("shop", &format!("cart-{number}")).expect("a key"))
    }

    fn refusal(byte: u8, reason: RefusalReason) -> Refusal {
        Refusal {
            hash: FactHash([byte; 16]),
            reason,
            message: "rename a label".into(),
        }
    }

    #[test]
    fn a_refused_fact_is_told_of_once_until_another_one_is_refused() {
        let mut complaints = Complaints::default();
        let (first, second) = (
            refusal(1, RefusalReason::Invalid),
            refusal(2, RefusalReason::Invalid),
        );
        let told: Vec<bool> = [&first, &first, &second, &second]
            .map(|refusal| complaints.of_refusal(&key(1), refusal))
            .into();
        assert_eq!(told, [true, false, true, false]);
        assert!(complaints.of_refusal(&key(2), &first));
        let no_room = refusal(1, RefusalReason::NoRoom);
        assert!(!complaints.of_refusal(&key(3), &no_room), "it waits");
        assert!(
            !complaints.of_refusal(&key(2), &first),
            "and nothing is forgotten by it"
        );
    }

    #[test]
    fn no_more_is_remembered_than_is_bounded() {
        let mut complaints = Complaints::default();
        let refused = refusal(1, RefusalReason::Invalid);
        for number in 0..=REFUSALS_TOLD_MAX {
            assert!(complaints.of_refusal(&key(number), &refused));
        }
        assert_eq!(complaints.refused.len(), 1);
    }

    #[test]
    fn too_many_namespaces_are_told_of_when_they_become_too_many() {
        let mut complaints = Complaints::default();
        let told = [true, true, false, false, true].map(|too_many| complaints.of_namespaces(too_many));
        assert_eq!(told, [true, false, false, false, true]);
    }
}
