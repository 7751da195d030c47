//! Whose cluster this is. The certificate's id is the id: a ClusterProperty that says another one is a mistake that
//! somebody must look at. At the start it ends the agent; later it makes it unready, for what it exports is right.
//! Never changes the property, nor what is told the hub.

use anyhow::{Context, bail};
use kube::{Api, Client};
use shared::{
    api::{ClusterProperty, names},
    model::ClusterId,
    process::{Readiness, ReadyHandle},
};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::watch::{Dirty, Kept, Watched, Whole};

/// What the agent waits for while the property says another id, as people read it.
const AWAITED: &str = "a ClusterProperty cluster.clusterset.k8s.io that agrees with the certificate";

/// Refuses to start where the property says another id.
pub async fn check(client: &Client, cluster: &ClusterId) -> anyhow::Result<()> {
    let properties = Api::<ClusterProperty>::all(client.clone());
    let property = match properties.get_opt(names::PROPERTY_CLUSTER_ID).await {
        Ok(property) => property,
        // The CRD is optional for this: without it there is nothing to compare.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(error).context("cannot read the ClusterProperty cluster.clusterset.k8s.io"),
    };
    match property.and_then(|property| contradiction(cluster, &property)) {
        Some(contradiction) => bail!(contradiction),
        None => Ok(()),
    }
}

/// Compares again whenever the property changes, until `drain`; the agent is unready while they differ.
pub async fn follow(
    properties: Watched<Whole<ClusterProperty>>,
    cluster: ClusterId,
    readiness: Readiness,
    drain: CancellationToken,
) {
    let changed = Dirty::<()>::default();
    properties.mark_changes(&changed, |property| {
        (*property.head().name == *names::PROPERTY_CLUSTER_ID).then_some(())
    });
    let mut unready: Option<(String, ReadyHandle)> = None;
    while drain.run_until_cancelled(changed.taken()).await.is_some() {
        let property = properties.get("", names::PROPERTY_CLUSTER_ID);
        let found = property.and_then(|property| contradiction(&cluster, &property.object));
        match found {
            Some(found) if unready.as_ref().is_some_and(|(known, _)| *known == found) => {}
            Some(found) => {
                warn!("{found}. This agent goes on and is not ready, and will not start again");
                unready = Some((found, readiness.handle(AWAITED)));
            }
            None if unready.take().is_some() => {
                info!("the ClusterProperty agrees with the certificate again")
            }
            None => {}
        }
    }
}

fn contradiction(cluster: &ClusterId, property: &ClusterProperty) -> Option<String> {
    let stated = &property.spec.value;
    (stated != cluster.as_str()).then(|| {
        format!(
            "the certificate in --tls-cert is for cluster {cluster}, the ClusterProperty {} says {stated}: issue a \
             certificate for {stated}, or correct the property",
            names::PROPERTY_CLUSTER_ID,
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn property(value: &str, version: u64) -> ClusterProperty {
        serde_json::from_value(json!({
            "apiVersion": names::ABOUT_API_VERSION, "kind": "ClusterProperty",
            "metadata": {"name": names::PROPERTY_CLUSTER_ID, "uid": "p", "resourceVersion": version.to_string()},
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
    async fn an_agent_is_unready_while_the_property_says_another_id() {
        let properties = Watched::new(|_: &Whole<ClusterProperty>| None);
        let (readiness, drain) = (Readiness::default(), CancellationToken::new());
        let east = ClusterId::new("east").expect("an id");
        let following = follow(properties.clone(), east, readiness.clone(), drain.clone());
        let following = tokio::spawn(following);
        tokio::task::yield_now().await;
        properties.handle(Event::Apply(property("south", 1)));
        until(|| readiness.awaited() == [AWAITED]).await;
        properties.handle(Event::Apply(property("east", 2)));
        until(|| readiness.is_ready()).await;
        properties.handle(Event::Apply(property("west", 3)));
        until(|| !readiness.is_ready()).await;
        properties.handle(Event::Delete(property("west", 4)));
        until(|| readiness.is_ready()).await;
        drain.cancel();
        following.await.expect("it ends in order");
    }
}
