//! Owns: what becomes of each object of the agent's in a cluster that leaves: it goes, it is given up, or it stays because
//! that was asked for.
//! Never: asks a cluster, or touches what an agent did not make.

use std::collections::BTreeSet;

use super::args::Keep;

/// The kinds that an agent writes, in the order in which they go: endpoints before the Service that they stand behind, and
/// what says who leads after everything that only the leader writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An EndpointSlice, of this cluster or another one.
    Slice,
    /// A ServiceImport.
    Import,
    /// A derived Service.
    Derived,
    /// The conditions of a ServiceExport, which belongs to a user.
    Conditions,
    /// The ClusterProperty that says which clusterset this cluster belongs to.
    Clusterset,
    /// The ClusterProperty with the cluster's id.
    ClusterId,
    /// Another ClusterProperty with the agent's label.
    Property,
    /// A Lease of a source cluster, or of an agent's process.
    Lease,
    /// The Lease of the agent that leads.
    Lead,
}

impl Kind {
    /// As Kubernetes calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slice => "EndpointSlice",
            Self::Import => "ServiceImport",
            Self::Derived => "Service",
            Self::Conditions => "ServiceExport (its conditions)",
            Self::Clusterset | Self::ClusterId | Self::Property => "ClusterProperty",
            Self::Lease | Self::Lead => "Lease",
        }
    }
}

/// An object with the agent's label, or with fields of the agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The object's kind.
    pub kind: Kind,
    /// Its namespace; empty: it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// An agent made it: its label and its fields say so.
    pub ours: bool,
    /// It is being deleted, and waits for these.
    pub finalizers: Vec<String>,
}

/// The request to keep objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wish {
    /// Objects to keep.
    pub keep: BTreeSet<Keep>,
    /// The cluster's id goes too.
    pub forget_id: bool,
}

/// The fate of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is deleted.
    Goes,
    /// The agent's fields in it are removed: the object belongs to a user.
    TakenBack,
    /// The label goes, and with it the agent's claim: the rest stays, and is the cluster's own.
    GivenUp,
    /// It stays, because that was asked for.
    Kept,
    /// It is not the agent's, though it bears its label.
    NotOurs,
}

/// Decides the fate of an object.
pub fn fate(found: &Found, wish: &Wish) -> Fate {
    if !found.ours {
        return Fate::NotOurs;
    }
    let kept = |what| wish.keep.contains(&what);
    match found.kind {
        Kind::Slice | Kind::Import | Kind::Derived if kept(Keep::Imports) => Fate::Kept,
        Kind::Conditions if kept(Keep::Conditions) => Fate::Kept,
        Kind::Conditions => Fate::TakenBack,
        Kind::ClusterId if !wish.forget_id => Fate::GivenUp,
        Kind::Slice
        | Kind::Import
        | Kind::Derived
        | Kind::Clusterset
        | Kind::ClusterId
        | Kind::Property
        | Kind::Lease
        | Kind::Lead => Fate::Goes,
    }
}

/// Returns true if leaving acts on it.
pub fn is_due(found: &Found, wish: &Wish) -> bool {
    match fate(found, wish) {
        Fate::Goes | Fate::TakenBack | Fate::GivenUp => true,
        Fate::Kept | Fate::NotOurs => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 9] = [
        Kind::Slice,
        Kind::Import,
        Kind::Derived,
        Kind::Conditions,
        Kind::Clusterset,
        Kind::ClusterId,
        Kind::Property,
        Kind::Lease,
        Kind::Lead,
    ];

    fn found(kind: Kind, ours: bool) -> Found {
        Found {
            kind,
            namespace: "shop".into(),
            name: "x".into(),
            ours,
            finalizers: Vec::new(),
        }
    }

    fn fates(wish: &Wish) -> Vec<Fate> {
        ALL.iter().map(|kind| fate(&found(*kind, true), wish)).collect()
    }

    #[test]
    fn everything_goes_but_the_clusters_id_which_becomes_its_own() {
        use Fate::{GivenUp, Goes, TakenBack};
        let wish = Wish::default();
        assert_eq!(
            fates(&wish),
            [Goes, Goes, Goes, TakenBack, Goes, GivenUp, Goes, Goes, Goes]
        );
        let wish = Wish {
            forget_id: true,
            ..wish
        };
        assert_eq!(fate(&found(Kind::ClusterId, true), &wish), Goes);
    }

    #[test]
    fn what_is_asked_to_stay_stays_and_no_more() {
        use Fate::{GivenUp, Goes, Kept, TakenBack};
        let keep = |what| Wish {
            keep: [what].into(),
            forget_id: false,
        };
        assert_eq!(
            fates(&keep(Keep::Imports)),
            [Kept, Kept, Kept, TakenBack, Goes, GivenUp, Goes, Goes, Goes]
        );
        assert_eq!(
            fates(&keep(Keep::Conditions)),
            [Goes, Goes, Goes, Kept, Goes, GivenUp, Goes, Goes, Goes]
        );
    }

    #[test]
    fn what_no_agent_made_is_not_touched() {
        for kind in ALL {
            let stranger = found(kind, false);
            assert_eq!(fate(&stranger, &Wish::default()), Fate::NotOurs);
            assert!(!is_due(&stranger, &Wish::default()));
            assert!(is_due(&found(kind, true), &Wish::default()));
        }
    }

    #[test]
    fn endpoints_go_first_and_the_leaders_lease_last() {
        let mut kinds = ALL.to_vec();
        kinds.reverse();
        kinds.sort();
        assert_eq!(kinds, ALL);
    }
}
