//! The wanted profiles: one for each member, none for a former member, and no decision about clusters that this log has
//! never heard of: their objects are not touched. Observed topologies are added, which are not in the state.

use std::{collections::BTreeMap, sync::Arc};

use shared::model::{ClusterId, ClusterProperty, PropertyValue};

use crate::{
    fold::{DerivedContent, DerivedKey, Profile, State},
    topology::observe::Observation,
};

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

/// Adds to the profiles what was observed of their members' topologies.
pub(super) fn with_topologies(mut wanted: Wanted, observation: &Observation) -> Wanted {
    for (cluster, profile) in &mut wanted {
        if let Some(profile) = profile {
            let observed = observation.properties(cluster, &profile.kubernetes_version);
            with_properties(profile, observed);
        }
    }
    wanted
}

/// Adds properties to a profile; the state's own stays as it is.
pub(super) fn with_properties(
    profile: &mut Arc<Profile>,
    properties: impl IntoIterator<Item = (String, String)>,
) {
    for (name, value) in properties {
        let property = ClusterProperty {
            name: name.as_str().into(),
            value: PropertyValue::Text(value.into()),
        };
        let properties = &mut Arc::make_mut(profile).properties;
        properties.change(&name, Some(&Arc::new(property)));
    }
}
