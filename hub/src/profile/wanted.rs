//! What the state says of profiles: one for each member, none for a cluster that is a member no more, and nothing
//! about clusters that this log has never heard of: their objects are not touched.

use std::{collections::BTreeMap, sync::Arc};

use shared::model::ClusterId;

use crate::fold::{DerivedContent, DerivedKey, Profile, State};

/// For each known cluster its profile, or `None` where the membership ended.
pub(super) type Wanted = BTreeMap<ClusterId, Option<Arc<Profile>>>;

/// Reads them from the state.
pub(super) fn of(state: &State) -> Wanted {
    let wanted = state.members().iter().filter_map(|(cluster, member)| {
        let profile = match state
            .derived(&DerivedKey::Profile(cluster.clone()))
            .map(|derived| &derived.content)
        {
            Some(DerivedContent::Profile(profile)) => Some(profile.clone()),
            _ => None,
        };
        // A member without a profile is none of the two cases.
        (member.is_current() == profile.is_some()).then(|| (cluster.clone(), profile))
    });
    wanted.collect()
}
