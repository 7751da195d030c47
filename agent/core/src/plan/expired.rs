//! Owns: what is known of the Leases of sources, as values: which have expired, and what the leader decides about them from.
//! Never: decides anything.

use std::collections::{BTreeMap, BTreeSet};

use model::{ClusterId, policy::LossAction};

/// The sources whose Leases were seen to have expired, with what becomes of their slices. A source with
/// [`LossAction::Retain`] never expires.
pub type Expired = BTreeMap<ClusterId, LossAction>;

/// The leader's knowledge of sources when it decides about their Leases.
#[derive(Debug, Clone, Default)]
pub struct Situation {
    /// Sources with slices in this cluster; never this cluster itself. Absent while the slices are not listed.
    pub here: Option<BTreeSet<ClusterId>>,
    /// Sources whose slices the hub sent, as far as it is remembered.
    pub desired: BTreeSet<ClusterId>,
    /// A hub has told everything and speaks: what is desired is what it confirms.
    pub confirmed: bool,
    /// The membership of this cluster has ended: nobody confirms any source any more, whatever the setting for a hub's
    /// loss is.
    pub ended: bool,
    /// The clusterset's policy for each source that a hub spoke of in this session.
    pub policies: BTreeMap<ClusterId, LossAction>,
}
