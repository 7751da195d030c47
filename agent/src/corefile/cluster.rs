//! Owns: the Corefile of a cluster: the ConfigMap that CoreDNS reads, read once and written on condition.
//! Never: writes over what somebody else has written since it was read, or looks into the Corefile.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
};
use serde_json::json;
use shared::api_client::{ApiMetrics, api_client};

use super::{args::CorefileArgs, custom};
use crate::run;

/// Field manager of the change to the Corefile: a person wrote it with this command, no running agent.
const FIELD_MANAGER: &str = "tributary-corefile";

/// A server of names that is not CoreDNS, or one whose configuration its provider keeps.
struct OtherServer {
    name: &'static str,
    /// The namespace of its ConfigMap.
    namespace: &'static str,
    configmap: &'static str,
    /// The section of the guide.
    section: &'static str,
}

const OTHER_SERVERS: [OtherServer; 2] = [
    OtherServer {
        name: "OpenShift's DNS operator",
        namespace: "openshift-dns",
        configmap: "dns-default",
        section: "openshift",
    },
    OtherServer {
        name: "kube-dns",
        namespace: "kube-system",
        configmap: "kube-dns",
        section: "gke",
    },
];

/// One key of a ConfigMap.
pub(super) struct ClusterCorefile {
    maps: Api<ConfigMap>,
    map: String,
    key: String,
}

/// The Corefile as read from the cluster.
#[derive(Debug)]
pub(super) struct Read {
    /// The Corefile.
    pub(super) text: String,
    /// Resource version of the ConfigMap read.
    version: String,
    /// The label that says that something puts edits of it back.
    pub(super) kept_by: Option<String>,
}

/// The client of a person's cluster, and the address that its kubeconfig names.
pub(super) async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<(Client, String)> {
    let config = match kubeconfig {
        Some(path) => run::kubernetes(Some(path)).await?,
        None => Config::infer()
            .await
            .context("no cluster was found as kubectl finds one: name it with --kubeconfig")?,
    };
    let address = config.cluster_url.to_string();
    let client = api_client(config, ApiMetrics::default())?;
    Ok((client, address.trim_end_matches('/').to_owned()))
}

impl ClusterCorefile {
    /// The one that the flags name.
    pub(super) fn new(client: Client, args: &CorefileArgs) -> Self {
        Self {
            maps: Api::namespaced(client, &args.namespace),
            map: args.configmap.clone(),
            key: args.key.clone(),
        }
    }

    /// Reads it.
    pub(super) async fn read(&self) -> anyhow::Result<Read> {
        let (map, key) = (&self.map, &self.key);
        let found = self.maps.get_opt(map).await;
        let found = found.map_err(|error| refused(error, &format!("cannot read the ConfigMap {map}")))?;
        let Some(found) = found else {
            bail!(missing(map, self.other_server().await));
        };
        let mut data = found.data.unwrap_or_default();
        let Some(text) = data.remove(key) else {
            let keys: Vec<String> = data.into_keys().collect();
            let keys = if keys.is_empty() {
                "none".to_owned()
            } else {
                keys.join(", ")
            };
            bail!(
                "the ConfigMap {map} has no key {key}: --key names the one that holds the Corefile (it has: {keys})"
            );
        };
        let kept_by = custom::kept_by(&found.metadata.labels.unwrap_or_default());
        let version = found.metadata.resource_version;
        let version =
            version.with_context(|| format!("the ConfigMap {map} came without a resourceVersion"))?;
        Ok(Read {
            text,
            version,
            kept_by,
        })
    }

    /// The server that answers names where CoreDNS does not, by a ConfigMap that it alone has. One that cannot be read
    /// is none: the answer is a hint.
    async fn other_server(&self) -> Option<&'static OtherServer> {
        let client = self.maps.clone().into_client();
        for server in &OTHER_SERVERS {
            let maps = Api::<ConfigMap>::namespaced(client.clone(), server.namespace);
            if let Ok(Some(_)) = maps.get_opt(server.configmap).await {
                return Some(server);
            }
        }
        None
    }

    /// Our key in the ConfigMap beside the provider's; nothing where there is none.
    pub(super) async fn custom(&self) -> anyhow::Result<Option<String>> {
        let map = custom::CONFIGMAP;
        let found = self.maps.get_opt(map).await;
        let found = found.map_err(|error| refused(error, &format!("cannot read the ConfigMap {map}")))?;
        let data = found.and_then(|found| found.data).unwrap_or_default();
        Ok(data.get(custom::KEY).cloned())
    }

    /// Writes our key there, or removes it; other keys stay, and a ConfigMap that is missing is made.
    pub(super) async fn write_custom(&self, text: Option<&str>) -> anyhow::Result<()> {
        let map = custom::CONFIGMAP;
        let mut content = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map}});
        if let Some(text) = text {
            content["data"] = json!({custom::KEY: text});
        }
        // Applied by this command's manager: without the key it goes, and nothing else does.
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let written = self.maps.patch(map, &params, &Patch::Apply(&content)).await;
        written
            .map(drop)
            .map_err(|error| refused(error, &format!("cannot change the ConfigMap {map}")))
    }

    /// Replaces the text that was read, if it is still there.
    pub(super) async fn write(&self, read: &Read, text: &str) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": read.version},
            "data": {&self.key: text},
        }));
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        match self.maps.patch(&self.map, &params, &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Err(anyhow!(
                "somebody changed the ConfigMap {} at the same moment, and nothing was written: run the command again",
                self.map
            )),
            Err(error) => Err(refused(
                error,
                &format!("cannot change the ConfigMap {}", self.map),
            )),
        }
    }
}

/// The message for a cluster without the ConfigMap of CoreDNS.
fn missing(map: &str, other: Option<&OtherServer>) -> String {
    match other {
        Some(other) => format!(
            "{} answers names in this cluster, and cannot answer clusterset.local. Run a server for it, and have {} send \
             the zone there: docs/guides/dns.md#{}",
            other.name, other.name, other.section
        ),
        None => format!(
            "there is no ConfigMap {map} in that namespace: --namespace and --configmap name the one that CoreDNS reads"
        ),
    }
}

/// Reports the API server's refusal in its own words, with the right that is missing.
fn refused(error: kube::Error, what: &str) -> anyhow::Error {
    match error {
        kube::Error::Api(status) if status.code == 403 => anyhow!(
            "{what}: {}; it takes a kubeconfig that may get and patch it",
            status.message
        ),
        kube::Error::Api(status) => anyhow!("{what}: {}", status.message),
        error => anyhow::Error::new(error).context(what.to_owned()),
    }
}

#[cfg(test)]
mod tests;
