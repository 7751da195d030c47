//! Owns: the requests of a rebase to the API server of a management cluster.
//! Never: writes anything of a Cluster but its class.

use anyhow::Context;
use clusterclass::model::Key;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// The field manager of a Cluster's class.
const MANAGER: &str = "clusterclass-rebase";
/// Objects of one answer.
const PAGE: u32 = 500;

/// The Clusters of an API server.
pub(super) struct Clusters {
    client: Client,
    resource: ApiResource,
}

impl Clusters {
    /// Those of a client, in the version that the server prefers.
    pub(super) async fn of(client: Client) -> anyhow::Result<Self> {
        let resource = topology_reader::kind_of_clusters(&client).await?;
        Ok(Self { client, resource })
    }

    /// Those that a selector matches, in a namespace or in all.
    pub(super) async fn matching(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> anyhow::Result<Vec<Value>> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &self.resource),
            None => Api::all_with(self.client.clone(), &self.resource),
        };
        let mut page = ListParams::default().limit(PAGE).labels(selector);
        let mut all = Vec::new();
        loop {
            let listed = api.list(&page).await;
            let listed =
                listed.with_context(|| format!("cannot list the Clusters of --clusters {selector}"))?;
            for object in listed.items {
                all.push(self.value(object)?);
            }
            match listed.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(all),
            }
        }
    }

    /// A Cluster, if it is there.
    pub(super) async fn get(&self, (namespace, name): &Key) -> anyhow::Result<Option<Value>> {
        let found = self.api(namespace).get_opt(name).await;
        let found = found.with_context(|| format!("cannot get Cluster {namespace}/{name}"))?;
        found.map(|object| self.value(object)).transpose()
    }

    /// Edits a Cluster, or asks what the server would say to that.
    pub(super) async fn edit(&self, (namespace, name): &Key, edit: Value, dry: bool) -> anyhow::Result<()> {
        let edit: Patch<DynamicObject> = Patch::Json(serde_json::from_value(edit)?);
        let parameters = PatchParams {
            dry_run: dry,
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = self.api(namespace).patch(name, &parameters, &edit).await;
        patched.with_context(|| format!("Cluster {namespace}/{name} cannot be given its class"))?;
        Ok(())
    }

    fn api(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &self.resource)
    }

    fn value(&self, object: DynamicObject) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(object)?;
        value["apiVersion"] = json!(self.resource.api_version);
        value["kind"] = json!(self.resource.kind);
        Ok(value)
    }
}
