//! Owns: that Clusters with machine pools are left as they are: waves do not count machines that a pool replaces by itself.

use crate::{desired::offline::Planned, model::Finding};

/// The start of the places of machine pools.
const POOLS: &str = "machine-pool/";

/// Takes the plans of Clusters that have machine pools, or are to have some, and says so of each.
pub(in crate::own) fn leave(planned: &mut Planned) {
    let Planned { plans, findings } = planned;
    plans.retain(|plan| {
        let mut places = plan.changes.iter().map(|change| change.place.as_str());
        let Some(place) = places.find(|place| place.starts_with(POOLS)) else {
            return true;
        };
        findings.push(Finding {
            origin: "server".to_owned(),
            object: format!("Cluster {}/{}", plan.namespace, plan.name),
            field: "spec.topology.workers.machinePools".to_owned(),
            rule: "machine-pools",
            message: format!(
                "this hub does not keep machine pools yet, and leaves the whole Cluster as it is ({place}): have Cluster API's \
                 own controller keep it"
            ),
        });
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::change::{Action, Change, Plan};

    #[test]
    fn clusters_with_pools_are_told_and_the_others_kept() {
        let plan = |name: &str, places: &[&str]| Plan {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            changes: places
                .iter()
                .map(|place| Change {
                    place: (*place).to_owned(),
                    action: Action::Delete,
                    kind: String::new(),
                    name: String::new(),
                    before: None,
                    fields: Vec::new(),
                    note: String::new(),
                    object: None,
                    machines: 0,
                })
                .collect(),
            ..Plan::default()
        };
        let mut planned = Planned {
            plans: vec![
                plan("a", &["control-plane", "machine-deployment/machine-pool"]),
                plan("b", &["control-plane", "machine-pool/mp"]),
            ],
            ..Planned::default()
        };
        leave(&mut planned);
        let kept: Vec<&str> = planned.plans.iter().map(|plan| plan.name.as_str()).collect();
        assert_eq!(kept, ["a"]);
        assert_eq!(planned.findings[0].object, "Cluster ns/b");
        assert!(planned.findings[0].message.contains("machine-pool/mp"));
    }
}
