//! Owns: the wait until a cluster serves a definition, and describes it in its OpenAPI documents: only then does an
//! agent that starts know every field, and writes nothing a second time.
//! Never: installs a definition.

use std::time::Duration;

use anyhow::Context;
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client,
    api::Api,
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::Value;

/// A definition that is not served and described after this long never will be.
const SERVED_WAIT: Duration = Duration::from_secs(30);
/// Interval of reading the documents: nothing announces a change.
const DESCRIBED_POLL: Duration = Duration::from_millis(50);

/// Waits until the definition of this name is established, and each version that it serves is described.
pub(crate) async fn served(client: &Client, name: &str) -> anyhow::Result<()> {
    let served = async {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = await_condition(definitions, name, is_crd_established()).await?;
        let definition = definition.with_context(|| format!("{name} is gone"))?;
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            let path = format!("apis/{}/{}", definition.spec.group, version.name);
            while !is_described(client, &path, &definition.spec.names.kind).await? {
                tokio::time::sleep(DESCRIBED_POLL).await;
            }
        }
        anyhow::Ok(())
    };
    let waited = tokio::time::timeout(SERVED_WAIT, served).await;
    let late = || {
        format!(
            "{name} is not served and described after {} s",
            SERVED_WAIT.as_secs()
        )
    };
    waited
        .with_context(late)?
        .with_context(|| format!("waiting for {name} to be served"))
}

/// Returns true if the document of a group's version describes the kind. It is asked for without the hash that the
/// index states: while definitions come, that hash is soon another one.
async fn is_described(client: &Client, path: &str, kind: &str) -> anyhow::Result<bool> {
    let request = Request::get(format!("/openapi/v3/{path}"))
        .header("Accept", "application/json")
        .body(Vec::new())?;
    let document: Value = match client.request(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        document => document.with_context(|| format!("read /openapi/v3/{path}"))?,
    };
    let mut described = document["components"]["schemas"]
        .as_object()
        .into_iter()
        .flat_map(|schemas| schemas.values())
        .filter_map(|schema| schema["x-kubernetes-group-version-kind"].as_array())
        .flatten();
    Ok(described.any(|described| described["kind"] == kind))
}
