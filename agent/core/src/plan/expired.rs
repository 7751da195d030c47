//! Owns: what is known of the Leases of sources, as values: which have expired, and what the leader decides about them from.
//! Never: decides anything.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterId, policy::LossAction};

/// The sources whose Leases were seen to have expired, with what becomes of their slices. One of which nothing is taken
/// away ([`LossAction::Retain`]) never expires.
pub type Expired = BTreeMap<ClusterId, LossAction>;

/// The leader's knowledge of sources when it decides about their Leases.
#[derive(Debug, Clone, Default)]
pub struct Situation {
    /// Sources of which slices stand here; never this cluster itself. Absent while the slices are not listed.
    pub here: Option<BTreeSet<ClusterId>>,
    /// Sources of which the hub sent slices, as far as it is remembered.
    pub desired: BTreeSet<ClusterId>,
    /// A hub has told everything and speaks: what is desired is what it confirms.
    pub confirmed: bool,
    /// The membership of this cluster has ended: nobody speaks for any source any more, whatever is said for a hub's loss.
    pub ended: bool,
    /// The clusterset's policy for each source that a hub spoke of in this session.
    pub policies: BTreeMap<ClusterId, LossAction>,
}
