//! Owns: users of a real cluster and the kubeconfig files by which they connect.
//! Never: grants anything; permissions are RBAC objects that the caller applies.

use super::Error;
use super::certificates::{Authority, Pair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use std::path::{Path, PathBuf};

/// The group that may do everything.
pub const ADMINISTRATORS: &str = "system:masters";
/// The user that the harness itself acts as, so that its requests can be told from those of the tested.
pub const HARNESS_USER: &str = "tributary-harness";

/// A user of one cluster.
#[derive(Debug, Clone)]
pub struct User {
    name: String,
    kubeconfig_path: PathBuf,
    kubeconfig: Kubeconfig,
}

impl User {
    /// The name as the API server and its audit log see it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file by which any Kubernetes client connects as this user.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// The same as a value.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// A client acting as this user. It belongs to the runtime it is made in.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        Ok(kube::Client::try_from(self.config().await?)?)
    }

    /// The client's configuration, for callers that want other timeouts or no retries.
    pub async fn config(&self) -> Result<kube::Config, Error> {
        let options = KubeConfigOptions::default();
        kube::Config::from_custom_kubeconfig(self.kubeconfig.clone(), &options)
            .await
            .map_err(|error| Error::Usage(format!("the kubeconfig of {} is unusable: {error}", self.name)))
    }
}

/// Makes a user with a certificate of `authority` and writes the kubeconfig into `directory`.
pub fn create(
    authority: &Authority,
    cluster: &str,
    url: &str,
    name: &str,
    group: Option<&str>,
    directory: &Path,
) -> Result<User, Error> {
    let pair = authority.client(name, group)?;
    let kubeconfig = kubeconfig(cluster, url, name, &authority.certificate(), &pair);
    let kubeconfig_path = kubeconfig_path(directory, name);
    let text = serde_norway::to_string(&kubeconfig)
        .map_err(|error| Error::Usage(format!("the kubeconfig of {name} cannot be written: {error}")))?;
    std::fs::write(&kubeconfig_path, text).map_err(Error::io("write", &kubeconfig_path))?;
    Ok(User {
        name: name.to_owned(),
        kubeconfig_path,
        kubeconfig,
    })
}

/// Path of a user's kubeconfig.
pub fn kubeconfig_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{}.kubeconfig", file_name(name)))
}

fn kubeconfig(cluster: &str, url: &str, user: &str, authority: &str, pair: &Pair) -> Kubeconfig {
    let server = Cluster {
        server: Some(url.to_owned()),
        certificate_authority_data: Some(STANDARD.encode(authority)),
        ..Cluster::default()
    };
    let credentials = AuthInfo {
        client_certificate_data: Some(STANDARD.encode(&pair.certificate)),
        client_key_data: Some(STANDARD.encode(&pair.key).into()),
        ..AuthInfo::default()
    };
    // Of this cluster alone, so that kubectl can read several such files as one.
    let user = format!("{user}@{cluster}");
    let context = Context {
        cluster: cluster.to_owned(),
        user: Some(user.clone()),
        ..Context::default()
    };
    Kubeconfig {
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        clusters: vec![NamedCluster {
            name: cluster.to_owned(),
            cluster: Some(server),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: user,
            auth_info: Some(credentials),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: cluster.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(cluster.to_owned()),
        ..Kubeconfig::default()
    }
}

/// User names hold colons and slashes; file names should not.
fn file_name(user: &str) -> String {
    user.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '.' {
                c
            } else {
                '_'
            }
        })
        .collect()
}
