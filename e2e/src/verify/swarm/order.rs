//! Owns: the law on the order of what an agent writes while it works on one service: whatever follows our objects must
//! never see a part without what it stands on.
//! Never: asks whether anything is written that should not be.

use super::site::Site;
use crate::{
    laws::{Guarded, Law},
    oracle::{is_ours, owner},
    sim::Entry,
};

/// The status of an answer to what made an object.
const CREATED: u16 = 201;

/// Looks at the writes of one piece of work: an import goes after its slices, and slices come after their Service,
/// unless somebody else touched the service in this cluster. An import that shows IPs says of which families they are.
pub(super) fn look(site: &Site, written: &[Entry], guarded: &mut Guarded) -> Result<(), String> {
    let done: Vec<&Entry> = written
        .iter()
        .filter(|entry| entry.is_write() && entry.code < 300)
        .collect();
    let deleted = |entry: &Entry| entry.verb == "delete";
    let created = |entry: &Entry| entry.code == CREATED && !entry.status;
    let mut gone = None;
    for entry in &done {
        match entry.resource.as_str() {
            "serviceimports" if !deleted(entry) && !entry.status => families(site, entry, guarded)?,
            "serviceimports" if deleted(entry) => {
                // One of another type is made anew, and takes nothing from anybody.
                let stands = site.cluster.get("ServiceImport", &entry.namespace, &entry.name);
                gone = stands.is_none().then_some(entry);
                guarded.count(Law::Order, u64::from(gone.is_some()));
            }
            "endpointslices" if deleted(entry) => {
                if let Some(import) = gone {
                    return Err(broken(site, import, "was deleted before its slices"));
                }
            }
            _ => {}
        }
    }
    for slice in done
        .iter()
        .filter(|entry| entry.resource == "endpointslices" && created(entry))
    {
        let made = site.cluster.get("EndpointSlice", &slice.namespace, &slice.name);
        let Some(made) =
            made.filter(|made| owner(made).is_some_and(|service| !site.touched.contains(&service)))
        else {
            continue;
        };
        guarded.count(Law::Order, 1);
        let name = made["metadata"]["labels"]["kubernetes.io/service-name"]
            .as_str()
            .unwrap_or_default();
        if !name.is_empty() && site.cluster.get("Service", &slice.namespace, name).is_none() {
            return Err(broken(
                site,
                slice,
                "was created before the Service that it belongs to",
            ));
        }
    }
    Ok(())
}

fn families(site: &Site, entry: &Entry, guarded: &mut Guarded) -> Result<(), String> {
    let import = site
        .cluster
        .get("ServiceImport", &entry.namespace, &entry.name)
        .filter(is_ours);
    let has = |field: &str| {
        let list = import.as_ref().and_then(|import| import["spec"][field].as_array());
        list.is_some_and(|list| !list.is_empty())
    };
    if !has("ips") {
        return Ok(());
    }
    guarded.count(Law::Order, 1);
    if has("ipFamilies") {
        Ok(())
    } else {
        Err(broken(site, entry, "shows IPs and does not say of which families they are"))
    }
}

fn broken(site: &Site, entry: &Entry, how: &str) -> String {
    let Entry {
        resource,
        namespace,
        name,
        ..
    } = entry;
    Law::Order.broken(format!("{resource}/{namespace}/{name} in {} {how}", site.name))
}
