//! The laws of forbidden events, whatever went wrong: checked after every step, from the API servers' records. Only
//! people's deeds are a reason for an object to go.

use std::collections::BTreeMap;

use fold::Member;
use model::{ClusterId, ServiceKey, sync::SourceState};

use oracle::{
    import_shown, is_ours,
    laws::{Guarded, Law, Standing},
    owner,
};
use sim::Entry;

use super::{
    hostile,
    hub::Hub,
    judge::picture,
    site::{MANAGER, Site},
};

/// Most entries that an outbox may hold for each of its facts: the fact, its removal, two ends of listings.
const OUTBOX_ENTRIES_MAX: usize = 2;
/// Spare entries of every outbox.
const OUTBOX_SPARE: usize = 32;
/// Objects and tombstones that the view of a world this small can have.
const VIEW_MAX: usize = 1_000;
/// The status of an answer to what made an object.
const CREATED: u16 = 201;
/// The kinds that agents make.
const MADE: [(&str, &str); 3] = [
    ("ServiceImport", "serviceimports"),
    ("Service", "services"),
    ("EndpointSlice", "endpointslices"),
];

/// Resource, namespace and name.
type MadeObject = (String, String, String);

/// Objects of one cluster since the last rest, of services that nobody touched since.
#[derive(Debug, Default)]
pub(super) struct Stood {
    services: Standing<ServiceKey>,
    objects: BTreeMap<MadeObject, ServiceKey>,
    /// The cluster's revision at the last look.
    revision: Option<u64>,
    objects_counted: bool,
}

impl Stood {
    /// Takes note of what stands.
    pub(super) fn of(site: &Site) -> Self {
        let mut stood = Self::default();
        let picture = picture(site);
        for service in picture.services() {
            let shown = import_shown(&picture, &service);
            stood.services.stands(service, shown);
        }
        for (kind, plural) in MADE {
            for object in site.cluster.objects(kind).iter().filter(|object| is_ours(object)) {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                if let Some(service) = owner(object) {
                    let place = (plural.to_owned(), text("namespace"), text("name"));
                    stood.objects.insert(place, service);
                }
            }
        }
        stood
    }

    /// Number of objects.
    pub(super) fn objects(&self) -> u64 {
        self.objects.len() as u64
    }

    /// People touched these services: what belongs to them may go.
    pub(super) fn release(&mut self, touched: impl Fn(&ServiceKey) -> bool) {
        self.services.retain(|service| !touched(service));
        self.objects.retain(|_, service| !touched(service));
    }

    /// **What stood stays**, and the **law of deletion**, as people see them: what stood at the last rest, and
    /// belongs to a service that nobody touched since in any cluster, is neither deleted by an agent nor narrowed.
    /// Returns how many deletions were rightful.
    pub(super) fn look(
        &mut self,
        site: &Site,
        entries: &[Entry],
        guarded: &mut Guarded,
    ) -> Result<u64, String> {
        if !std::mem::replace(&mut self.objects_counted, true) {
            guarded.count(Law::Deletion, self.objects());
        }
        let rightful = self.deletions(site, entries)?;
        let revision = site.cluster.revision();
        if self.revision == Some(revision) || self.services.keys().next().is_none() {
            return Ok(rightful);
        }
        self.revision = Some(revision);
        let picture = picture(site);
        let before = self.services.guarded();
        let standing: Vec<ServiceKey> = self.services.keys().cloned().collect();
        for service in standing {
            let shown = import_shown(&picture, &service);
            let looked = self.services.look(&service, &shown);
            looked.map_err(|why| Law::Stood.broken(format!("{service} in {}: {why}", site.name)))?;
        }
        guarded.count(Law::Stood, self.services.guarded() - before);
        Ok(rightful)
    }

    fn deletions(&self, site: &Site, entries: &[Entry]) -> Result<u64, String> {
        let mut rightful = 0;
        for entry in entries {
            if entry.verb != "delete" || entry.code >= 300 || !is_agents(entry) {
                continue;
            }
            let place = (
                entry.resource.clone(),
                entry.namespace.clone(),
                entry.name.clone(),
            );
            if let Some(service) = self.objects.get(&place) {
                return Err(Law::Deletion.broken(format!(
                    "{}/{}/{} of {service} was deleted in {} though nobody touched the service",
                    entry.resource, entry.namespace, entry.name, site.name
                )));
            }
            rightful += 1;
        }
        Ok(rightful)
    }
}

/// An agent asked for it; each says under which number it holds the Lease.
fn is_agents(entry: &Entry) -> bool {
    term(entry).is_some()
}

fn term(entry: &Entry) -> Option<i64> {
    let number = entry.user_agent.strip_prefix(MANAGER)?.strip_prefix('/')?;
    number.parse().ok()
}

/// Under which number of the Lease each object was written last, in one cluster.
#[derive(Debug, Default)]
pub(super) struct Writers {
    newest: i64,
    objects: BTreeMap<MadeObject, i64>,
}

impl Writers {
    /// **Nothing of a replaced leader takes effect over a newer one's**: what a newer one has written or deleted is not
    /// changed by an older one any more. What it makes where nothing stands is no such thing.
    pub(super) fn look(
        &mut self,
        site: &Site,
        entries: &[Entry],
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let writes = entries
            .iter()
            .filter(|entry| entry.is_write() && entry.resource != "leases");
        for (entry, term) in writes.filter_map(|entry| Some((entry, term(entry)?))) {
            self.newest = self.newest.max(term);
            guarded.count(Law::Replaced, u64::from(term < self.newest));
            if entry.code >= 300 || entry.resource == "events" {
                continue;
            }
            let place = (
                entry.resource.clone(),
                entry.namespace.clone(),
                entry.name.clone(),
            );
            let before = self.objects.insert(place, term);
            if entry.code != CREATED && before.is_some_and(|before| term < before) {
                return Err(Law::Replaced.broken(format!(
                    "{} {}/{}/{} in {} by an agent of hold {term} after one of a newer hold",
                    entry.verb, entry.resource, entry.namespace, entry.name, site.name
                )));
            }
        }
        Ok(())
    }
}

/// **No write when nothing changed**: the first write of an agent, the Lease excepted, in words. A refused one, such
/// as an Event that is there already, wrote nothing.
pub(super) fn writes(site: &Site) -> Option<String> {
    let writes = site.cluster.requests().writes();
    let write = writes
        .iter()
        .find(|entry| is_agents(entry) && entry.resource != "leases" && entry.code < 300)?;
    Some(format!(
        "{} {} {}/{} in {}",
        write.verb, write.resource, write.namespace, write.name, site.name
    ))
}

/// **Bounded memory**: queues grow with keys, never with messages.
pub(super) fn bounds(sites: &[Site], hub: Option<&Hub>, guarded: &mut Guarded) -> Result<(), String> {
    for agent in sites.iter().flat_map(|site| &site.agents) {
        let (keys, entries) = agent.sizes();
        guarded.count(Law::Bounds, u64::from(entries > 0));
        // An unacknowledged entry and a later value of the same key may stand side by side.
        let most = (keys + super::site::all_keys().count() * 3) * OUTBOX_ENTRIES_MAX + OUTBOX_SPARE;
        if entries > most {
            return Err(Law::Bounds.broken(format!("an outbox holds {entries} entries for {keys} facts")));
        }
    }
    let (objects, tombstones) = hub.map(Hub::view_size).unwrap_or_default();
    guarded.count(Law::Bounds, u64::from(objects > 0));
    if objects + tombstones > VIEW_MAX {
        Err(Law::Bounds.broken(format!(
            "the view holds {objects} objects and {tombstones} tombstones"
        )))
    } else {
        Ok(())
    }
}

/// **What is said to be applied stands**: whenever an agent has heard something, of what it would say to have applied
/// then every import stands in its cluster with all its clusters, where nobody else changed what agents make. Where two
/// agents work, one does not speak for the other.
pub(super) fn applied(site: &Site, which: usize, guarded: &mut Guarded) -> Result<(), String> {
    let said = site.agents[which].says_to_stand();
    if site.leaders() > 1 {
        return Ok(());
    }
    for import in said
        .iter()
        .filter(|import| !site.disturbed.contains(&import.service))
    {
        let (namespace, name) = (&import.service.namespace, &import.service.name);
        let home = site.cluster.get("Namespace", "", namespace);
        if home.is_none_or(|home| !home["metadata"]["deletionTimestamp"].is_null()) {
            continue;
        }
        let found = site.cluster.get("ServiceImport", namespace, name);
        if found.as_ref().is_some_and(|found| !is_ours(found)) {
            continue; // the name is taken: people are told, and the position does not wait for them
        }
        let found = found.unwrap_or_default();
        let clusters = found["status"]["clusters"].as_array();
        let stands = |cluster: &ClusterId| {
            let mut stand = clusters.into_iter().flatten();
            stand.any(|stands| stands["cluster"] == cluster.as_str())
        };
        guarded.count(Law::Applied, 1);
        if let Some(missing) = import.clusters.keys().find(|cluster| !stands(cluster)) {
            return Err(Law::Applied.broken(format!(
                "{} says so of {}, whose import lacks {missing}",
                site.name, import.service
            )));
        }
    }
    Ok(())
}

/// **A refused key stays outside**: once everything is at rest, no session is open under a key that was revoked.
pub(super) fn revoked_are_gone(hub: &Hub, guarded: &mut Guarded) -> Result<(), String> {
    let (open, under_revoked_key) = hub.open_under_revoked_key();
    guarded.count(
        Law::Keys,
        if hub.state().revoked_keys().is_empty() {
            0
        } else {
            open
        },
    );
    match under_revoked_key {
        Some(cluster) => {
            Err(Law::Keys.broken(format!("{cluster} is in session with a key that was revoked")))
        }
        None => Ok(()),
    }
}

/// **Half of the fleet is not withdrawn**, but for as long only as it is away: once everything is at rest, who stays lost
/// would be withdrawn.
pub(super) fn nothing_is_preserved(hub: &Hub) -> Result<(), String> {
    match hub.state().self_preservation() {
        None => Ok(()),
        Some(_) => Err(Law::Preserved.broken("nobody is lost, and self-preservation goes on")),
    }
}

/// **Who lives is not suspect**: once everything is at rest, every member is known to live, but for one that was sent away
/// and does not come back.
pub(super) fn everybody_lives(hub: &Hub, guarded: &mut Guarded) -> Result<(), String> {
    let sent_away =
        |cluster: &ClusterId, member: &Member| *cluster == hostile::name() && !member.is_current();
    let members = hub.state().members().iter();
    for (cluster, member) in members.filter(|(cluster, member)| !sent_away(cluster, member)) {
        guarded.count(Law::Alive, 1);
        let state = member.source_state();
        if state != SourceState::Live {
            return Err(Law::Alive.broken(format!("{cluster} has a session, and is not live at rest")));
        }
    }
    Ok(())
}
