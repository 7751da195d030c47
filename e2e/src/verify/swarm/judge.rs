//! Owns: what the clusters of a world are compared with: the oracle, and what strangers made.
//! Never: knows facts, revisions or the hub.

use serde_json::Value;

use super::site::Site;
use crate::oracle::{self, Judgement, Picture};

/// One cluster's objects at this moment.
pub(super) fn picture(site: &Site) -> Picture {
    Picture::of(site.name.as_str(), |kind| site.cluster.objects(kind))
}

/// Compares every cluster with what it must hold. The first difference comes back in words.
pub(super) fn judge(sites: &[Site]) -> Result<Judgement, String> {
    let pictures: Vec<Picture> = sites.iter().map(picture).collect();
    let judgement = oracle::judge(&pictures);
    if let Some(wrong) = judgement.wrong().next() {
        return Err(wrong);
    }
    sites.iter().try_for_each(strangers_are_untouched)?;
    Ok(judgement)
}

/// A type that changes and the like is nobody's business; what its maker wrote is.
fn strangers_are_untouched(site: &Site) -> Result<(), String> {
    for ((kind, service), made) in &site.strangers {
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        let found = site.cluster.get(kind, &service.namespace, name);
        let same = |found: &Value| found["spec"] == made["spec"];
        if !found.as_ref().is_some_and(same) {
            return Err(format!(
                "{service} in {}: a stranger's {kind} was touched",
                site.name
            ));
        }
    }
    Ok(())
}
