//! Owns: whether the cluster's own statements agree with the certificate, which counts: a ClusterProperty of another
//! writer that contradicts it is a mistake that a person must look at. At the start it ends the agent; later it makes
//! it unready, although its exports are right.
//! Never: changes a property, nor what is sent to the hub.

use anyhow::{Context, bail};
use kube::{Api, Client};
use shared::{
    api::{
        ClusterProperty,
        names::{PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET},
    },
    process::{Readiness, ReadyHandle},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    Membership,
    decide::{Contradiction, Wanted},
    object,
};
use crate::watch::{Dirty, Kept, Watched, Whole};

/// Words for people while the agent waits for a property that has another value.
const AWAITED: &str =
    "ClusterProperties cluster.clusterset.k8s.io and clusterset.k8s.io that agree with the certificate";

/// Refuses to start where a property says another thing.
pub async fn check(client: &Client, membership: &Membership) -> anyhow::Result<()> {
    let properties = Api::<ClusterProperty>::all(client.clone());
    for wanted in membership.properties() {
        let property = match properties.get_opt(wanted.name).await {
            Ok(property) => property,
            // The CRD is optional for this: without it there is nothing to compare.
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => {
                return Err(error).context(format!("cannot read the ClusterProperty {}", wanted.name));
            }
        };
        if let Some(contradiction) = contradiction(&wanted, property.as_ref()) {
            bail!("{contradiction}");
        }
    }
    Ok(())
}

/// Compares again whenever a property changes, until `drain`; the agent is unready while they differ.
pub async fn follow(
    properties: Watched<Whole<ClusterProperty>>,
    membership: Membership,
    readiness: Readiness,
    drain: CancellationToken,
) {
    let changed = changes(&properties);
    let mut unready: Option<(Contradiction, ReadyHandle)> = None;
    while drain.run_until_cancelled(changed.taken()).await.is_some() {
        let found = membership.properties().into_iter().find_map(|wanted| {
            let property = properties.get("", wanted.name);
            contradiction(&wanted, property.as_ref().map(|property| &property.object))
        });
        match found {
            Some(found) if unready.as_ref().is_some_and(|(known, _)| *known == found) => {}
            Some(found) => {
                warn!("{found}. This agent goes on and is not ready, and will not start again");
                unready = Some((found, readiness.handle(AWAITED)));
            }
            None if unready.take().is_some() => {
                info!("the ClusterProperties agree with the certificate again")
            }
            None => {}
        }
    }
}

/// Marked whenever one of the two properties comes, changes or goes.
pub(super) fn changes(properties: &Watched<Whole<ClusterProperty>>) -> Dirty<()> {
    let changed = Dirty::default();
    properties.mark_changes(&changed, |property| {
        [PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET]
            .contains(&&*property.head().name)
            .then_some(())
    });
    changed
}

fn contradiction(wanted: &Wanted<'_>, property: Option<&ClusterProperty>) -> Option<Contradiction> {
    wanted.contradiction(property.map(object::standing).as_ref())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use shared::{api::names, model::ClusterId};

    use super::*;
    use crate::watch::Event;

    fn property(name: &str, value: &str, version: u64) -> ClusterProperty {
        serde_json::from_value(json!({
            "apiVersion": names::ABOUT_API_VERSION, "kind": "ClusterProperty",
            "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
            "spec": {"value": value},
        }))
        .expect("a property")
    }

    async fn until(condition: impl Fn() -> bool) {
        let met = async {
            while !condition() {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(10), met).await;
        waited.expect("it comes to that");
    }

    #[tokio::test]
    async fn an_agent_is_unready_while_a_property_says_another_thing() {
        let properties = Watched::new(|_: &Whole<ClusterProperty>| None);
        let (readiness, drain) = (Readiness::default(), CancellationToken::new());
        let membership = Membership {
            cluster: ClusterId::new("east").expect("an id"),
            clusterset: "default".into(),
        };
        let following = follow(properties.clone(), membership, readiness.clone(), drain.clone());
        let following = tokio::spawn(following);
        tokio::task::yield_now().await;
        let id = |value, version| property(names::PROPERTY_CLUSTER_ID, value, version);
        properties.handle(Event::Apply(id("south", 1)));
        until(|| readiness.awaited() == [AWAITED]).await;
        properties.handle(Event::Apply(id("east", 2)));
        until(|| readiness.is_ready()).await;
        properties.handle(Event::Apply(id("west", 3)));
        until(|| !readiness.is_ready()).await;
        properties.handle(Event::Delete(id("west", 4)));
        until(|| readiness.is_ready()).await;
        properties.handle(Event::Apply(property(names::PROPERTY_CLUSTERSET, "other", 5)));
        until(|| !readiness.is_ready()).await;
        drain.cancel();
        following.await.expect("it ends in order");
    }
}
