//! Owns: what a review needs, read of the API server when it is asked: classes one by one, Clusters page by page.
//! Never: remembers any of it: what was true at the last review may not be so at this one.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use serde_json::Value;
use shared::api::names::CLUSTER_API_GROUP;

use super::door::Objects;
use crate::{
    admission::{Beside, Needs, Review},
    model::Key,
    observe::CLUSTERS_MAX,
};

/// Clusters of one answer.
const PAGE: u32 = 500;
/// The Lease that the leader of Cluster API's manager holds, in whatever namespace.
const LEADER_LEASE: &str = "controller-leader-election-capi";
/// A Lease renewed within this time has a live holder, or one that is restarting for an upgrade; a leader renews every
/// few seconds.
const ALIVE_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// The API server of the hub's own cluster.
pub(super) struct Server {
    client: Client,
}

impl Server {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    async fn classes(&self, version: &str, keys: impl IntoIterator<Item = Key>) -> Result<Beside, String> {
        let kind = resource(version, "ClusterClass", "clusterclasses");
        let mut beside = Beside::default();
        for (namespace, name) in keys {
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
            let found = api.get_opt(&name).await.map_err(|error| {
                format!("ClusterClass {namespace}/{name} cannot be read: {}", told(&error))
            })?;
            if let Some(class) = found {
                beside.add_class(&whole(class, &kind));
            }
        }
        Ok(beside)
    }

    async fn users_of(&self, version: &str, class: &Key) -> Result<Beside, String> {
        let kind = resource(version, "Cluster", "clusters");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let mut beside = Beside::default();
        beside.cluster_api_alive = self.cluster_api_alive().await?;
        let (mut page, mut users) = (ListParams::default().limit(PAGE), 0);
        loop {
            let listed = api.list(&page).await;
            let listed = listed.map_err(|error| format!("Clusters cannot be listed: {}", told(&error)))?;
            for cluster in listed.items {
                users += usize::from(beside.add_user(class, &whole(cluster, &kind)));
            }
            if users > CLUSTERS_MAX {
                return Err(format!("the class has more than {CLUSTERS_MAX} Clusters"));
            }
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(beside),
            }
        }
    }

    async fn cluster_api_alive(&self) -> Result<bool, String> {
        let leases: Api<Lease> = Api::all(self.client.clone());
        let of_leader = ListParams::default().fields(&format!("metadata.name={LEADER_LEASE}"));
        let listed = leases.list(&of_leader).await;
        let listed = listed.map_err(|error| format!("Leases cannot be listed: {}", told(&error)))?;
        let now = Timestamp::now();
        Ok(listed.items.iter().any(|lease| is_alive(lease, now)))
    }
}

impl Objects for Server {
    async fn read(&self, review: &Review) -> Result<Beside, String> {
        match review.needs() {
            Needs::Nothing => Ok(Beside::default()),
            Needs::Classes(version, keys) => self.classes(version, keys).await,
            Needs::UsersOf(version, class) => self.users_of(version, &class).await,
        }
    }
}

/// Returns true if the holder of a Lease renewed it lately.
fn is_alive(lease: &Lease, now: Timestamp) -> bool {
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
    let renewed = spec.and_then(|spec| spec.renew_time.as_ref());
    holder.is_some_and(|holder| !holder.is_empty())
        && renewed.is_some_and(|renewed| now.duration_since(renewed.0) < ALIVE_WITHIN)
}

/// The kind in the version of the review, which the server serves: it has asked in it.
fn resource(version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(CLUSTER_API_GROUP, version, kind), plural)
}

/// An object with its type, which those of a list lack.
fn whole(object: DynamicObject, kind: &ApiResource) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value["apiVersion"] = kind.api_version.as_str().into();
    value["kind"] = kind.kind.as_str().into();
    value
}

/// An API server's refusal in its own words.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} (HTTP {})", status.message, status.code),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_leader_is_alive_that_renewed_its_lease_of_late() {
        let now: Timestamp = "2026-11-27T08:00:00Z".parse().expect("a time");
        let alive = |spec: Value| {
            let lease = serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": spec}));
            is_alive(&lease.expect("a Lease"), now)
        };
        let renewed = |at: &str| json!({"holderIdentity": "pod-a", "renewTime": at});
        assert!(alive(renewed("2026-11-27T07:50:00.000001Z")));
        assert!(!alive(renewed("2026-11-27T07:50:00.000000Z")));
        // Its clock is ahead of ours.
        assert!(alive(renewed("2026-11-27T08:00:09.000000Z")));
        assert!(!alive(
            json!({"holderIdentity": "", "renewTime": "2026-11-27T08:00:00.000000Z"})
        ));
        assert!(!alive(json!({"holderIdentity": "pod-a"})));
        assert!(!alive(json!({})));
    }
}
