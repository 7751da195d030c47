//! Owns: the file of access providers as it is written, with no word that is not known.
//! Never: judges what a field says.

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) clusters: Vec<ClusterGroup>,
}

/// Members, by id or pattern, and what they have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ClusterGroup {
    pub(super) ids: Vec<String>,
    pub(super) access_providers: Vec<Provider>,
}

/// One of `accessProviders`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) cluster: Cluster,
}

/// A cluster as in a kubeconfig; forbidden fields are known, so that the error can name the reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) tls_server_name: Option<String>,
    pub(super) certificate_authority: Option<String>,
    pub(super) insecure_skip_tls_verify: Option<bool>,
    pub(super) certificate_authority_data: Option<ByteString>,
    pub(super) proxy_url: Option<String>,
    pub(super) disable_compression: Option<bool>,
    #[serde(default)]
    pub(super) extensions: Vec<Extension>,
}

/// One of `extensions`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    pub(super) name: String,
    pub(super) extension: Map<String, Value>,
}

/// Reads it. The error names the place of the problem, on one line.
pub(super) fn read(text: &str) -> anyhow::Result<Document> {
    serde_norway::from_str(text).map_err(|error| {
        let said = error.to_string();
        anyhow::anyhow!("{}", said.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}
