//! What must never happen, whatever went wrong: looked at after every step, from what the API servers recorded.
//! It knows why an object may go only by what people did.

use std::collections::BTreeMap;

use shared::model::ServiceKey;

use super::{
    hub::Hub,
    site::{MANAGER, Site, owner},
};

/// Most entries that an outbox may hold for each of its facts: the fact, its removal, two ends of listings.
const OUTBOX_ENTRIES_MAX: usize = 2;
/// What every outbox may hold beside.
const OUTBOX_SPARE: usize = 32;
/// Objects and tombstones that the view of a world this small can have.
const VIEW_MAX: usize = 1_000;

/// What the agent had made in one cluster when everything was at rest: kind and place, and the service.
#[derive(Debug, Default)]
pub(super) struct Standing(BTreeMap<(String, String, String), ServiceKey>);

impl Standing {
    /// Takes note of what stands.
    pub(super) fn of(site: &Site) -> Self {
        let mut standing = BTreeMap::new();
        for (kind, plural) in [
            ("ServiceImport", "serviceimports"),
            ("Service", "services"),
            ("EndpointSlice", "endpointslices"),
        ] {
            for object in site.ours(kind) {
                let metadata = &object["metadata"];
                let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
                if let Some(service) = owner(&object) {
                    standing.insert((plural.to_owned(), text("namespace"), text("name")), service);
                }
            }
        }
        Self(standing)
    }
}

/// **Law of deletion**, as people see it: what stood at the last rest, and belongs to a service that nobody touched
/// since in any cluster, is not deleted by an agent. Returns how many deletions were rightful.
pub(super) fn deletions(
    site: &Site,
    standing: &Standing,
    touched: impl Fn(&ServiceKey) -> bool,
) -> Result<u64, String> {
    let mut rightful = 0;
    for entry in site.cluster.requests().writes() {
        if entry.verb != "delete" || entry.code >= 300 || entry.user_agent != MANAGER {
            continue;
        }
        let place = (
            entry.resource.clone(),
            entry.namespace.clone(),
            entry.name.clone(),
        );
        match standing.0.get(&place) {
            Some(service) if !touched(service) => {
                return Err(format!(
                    "law of deletion: {}/{}/{} of {service} was deleted in {} though nobody touched the service",
                    entry.resource, entry.namespace, entry.name, site.name
                ));
            }
            _ => rightful += 1,
        }
    }
    Ok(rightful)
}

/// **No write when nothing changed**: the first write of an agent, the Lease excepted, in words. A refused one, such
/// as an Event that is there already, wrote nothing.
pub(super) fn writes(site: &Site) -> Option<String> {
    let writes = site.cluster.requests().writes();
    let write = writes
        .iter()
        .find(|entry| entry.user_agent == MANAGER && entry.resource != "leases" && entry.code < 300)?;
    Some(format!(
        "{} {} {}/{} in {}",
        write.verb, write.resource, write.namespace, write.name, site.name
    ))
}

/// **Bounded memory**: queues grow with keys, never with messages.
pub(super) fn bounds(sites: &[Site], hub: Option<&Hub>) -> Result<(), String> {
    for site in sites {
        for agent in &site.agents {
            let (keys, entries) = agent.sizes();
            // An unacknowledged entry and a later value of the same key may stand side by side.
            let most = (keys + super::site::all_keys().count() * 3) * OUTBOX_ENTRIES_MAX + OUTBOX_SPARE;
            if entries > most {
                return Err(format!(
                    "the outbox of {} holds {entries} entries for {keys} facts",
                    site.name
                ));
            }
        }
    }
    let (objects, tombstones) = hub.map(Hub::view_size).unwrap_or_default();
    match objects + tombstones > VIEW_MAX {
        true => Err(format!(
            "the view holds {objects} objects and {tombstones} tombstones"
        )),
        false => Ok(()),
    }
}
