//! Owns: the law on the order of what an agent writes while it works on one service: whatever follows our objects must
//! never see a part without what it stands on.
//! Never: asks whether anything is written that should not be.

use oracle::{
    is_ours,
    laws::{Guarded, Law},
    owner,
};
use sim::Entry;

use super::site::Site;

/// The status of an answer to what made an object.
const CREATED: u16 = 201;

/// Looks at the writes of one piece of work: an import goes after its slices, and slices come after their Service,
/// unless somebody else touched the service in this cluster, a second agent too. An import that shows IPs says of which
/// families they are.
/// `before` is the cluster's revision when that work began.
pub(super) fn look(
    site: &Site,
    (before, written): (u64, &[Entry]),
    guarded: &mut Guarded,
) -> Result<(), String> {
    families(site, before, guarded)?;
    let done: Vec<&Entry> = written
        .iter()
        .filter(|entry| entry.is_write() && entry.code < 300)
        .collect();
    let deleted = |entry: &Entry| entry.verb == "delete";
    let created = |entry: &Entry| entry.code == CREATED && !entry.status;
    let mut gone = None;
    for entry in &done {
        match entry.resource.as_str() {
            "serviceimports" if deleted(entry) => {
                let stands = site.cluster.get("ServiceImport", &entry.namespace, &entry.name);
                gone = (stands.is_none() && !is_made_anew(entry, written)).then_some(entry);
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
    if site.leaders() > 1 {
        // What one of them has just deleted the other does not know yet; a Lease ends that in time.
        return Ok(());
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

/// Returns true if the agent asked for the import that it deleted once more: one of another type takes nothing from
/// anybody, even where the API server refuses it.
fn is_made_anew(deleted: &Entry, written: &[Entry]) -> bool {
    written
        .iter()
        .skip_while(|entry| !std::ptr::eq(*entry, deleted))
        .any(|later| {
            later.verb != "delete"
                && later.is_write()
                && later.resource == deleted.resource
                && (&later.namespace, &later.name) == (&deleted.namespace, &deleted.name)
        })
}

/// Whoever watches imports sees each of these versions.
fn families(site: &Site, before: u64, guarded: &mut Guarded) -> Result<(), String> {
    for import in site.cluster.versions_since("ServiceImport", before) {
        let has = |field: &str| {
            import["spec"][field]
                .as_array()
                .is_some_and(|list| !list.is_empty())
        };
        if !is_ours(&import) || !has("ips") {
            continue;
        }
        guarded.count(Law::Order, 1);
        if !has("ipFamilies") {
            let metadata = &import["metadata"];
            return Err(Law::Order.broken(format!(
                "serviceimports/{}/{} in {} showed IPs, and not of which families they are",
                metadata["namespace"].as_str().unwrap_or_default(),
                metadata["name"].as_str().unwrap_or_default(),
                site.name
            )));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verb: &'static str, resource: &str, name: &str, code: u16) -> Entry {
        Entry {
            verb,
            resource: resource.into(),
            namespace: "pay".into(),
            name: name.into(),
            code,
            ..Entry::default()
        }
    }

    /// The creation was refused, and a slice went after the import: the import was still to be of another type.
    #[test]
    fn an_import_whose_creation_is_refused_was_not_taken_for_good() {
        let written = [
            entry("delete", "serviceimports", "cart", 200),
            entry("delete", "endpointslices", "cart-1", 200),
            entry("patch", "serviceimports", "cart", 500),
        ];
        assert!(is_made_anew(&written[0], &written));
    }

    #[test]
    fn an_import_that_only_went_was_taken_for_good() {
        let written = [
            entry("patch", "serviceimports", "cart", 200),
            entry("delete", "serviceimports", "cart", 200),
            entry("delete", "serviceimports", "cart", 404),
            entry("patch", "serviceimports", "other", 500),
            entry("patch", "services", "cart", 200),
        ];
        assert!(!is_made_anew(&written[1], &written));
    }
}
