//! Joins with one string: makes a key, stores it first, asks the hub for a certificate, stores that too. An agent that
//! starts again after any step continues from there, with the same key.
//!
//! * `store.rs`: where key and certificate are kept: files, and in a cluster a Secret. `ask.rs`: the call.
//!
//! It prints no token and no key.

mod ask;
mod store;

use std::{fs, path::PathBuf};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use shared::{
    api::{ClusterProperty, names},
    model::{ClusterId, InvalidName, JoinString, join::JOIN_STRING_BYTES_MAX},
    tls::{HubAddress, TlsFiles, new_key},
};
use tracing::info;

pub(crate) use self::store::{Kept, Store};

/// Flags of joining.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct JoinArgs {
    /// Join string from `tributary token create`. The agent makes its key, receives a certificate, and stores both in
    /// the files of --tls-key, --tls-cert and --tls-ca; once they exist, only the hub's addresses in the string count
    #[arg(
        long,
        env = "TRIBUTARY_JOIN",
        value_name = "STRING",
        hide_env_values = true,
        conflicts_with = "join_file"
    )]
    pub join: Option<String>,
    /// A file with the join string
    #[arg(long, env = "TRIBUTARY_JOIN_FILE", value_name = "FILE")]
    pub join_file: Option<PathBuf>,
    /// Secret in the agent's namespace that stores key and certificate as well, so that every pod has the same. It must
    /// exist, and may be empty
    #[arg(long, env = "TRIBUTARY_JOIN_SECRET", value_name = "NAME")]
    pub join_secret: Option<String>,
}

impl JoinArgs {
    /// Parses the join string, if there is one.
    pub fn read(&self) -> anyhow::Result<Option<JoinString>> {
        let text = match (&self.join, &self.join_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => {
                let cannot = || format!("cannot read --join-file {}", path.display());
                let size = fs::metadata(path).with_context(cannot)?.len();
                if size > 2 * JOIN_STRING_BYTES_MAX as u64 {
                    bail!(
                        "--join-file {} is no join string: it has {size} bytes",
                        path.display()
                    );
                }
                fs::read_to_string(path).with_context(cannot)?
            }
            (None, None) => return Ok(None),
        };
        let flag = if self.join.is_some() {
            "--join"
        } else {
            "--join-file"
        };
        JoinString::parse(&text)
            .with_context(|| flag.to_owned())
            .map(Some)
    }
}

/// Addresses in a join string.
pub fn addresses(texts: &[String]) -> anyhow::Result<Vec<HubAddress>> {
    let read = texts.iter().map(|text| text.parse());
    read.collect::<Result<_, _>>()
        .context("the join string has an address that is none")
}

/// Sees to it that key, certificate and roots are in their files.
pub async fn ensure(
    join: &JoinString,
    args: &JoinArgs,
    files: &TlsFiles,
    (client, namespace): (&Client, &str),
    expected: Option<&ClusterId>,
) -> anyhow::Result<()> {
    let secret = args
        .join_secret
        .as_deref()
        .map(|name| (client.clone(), namespace, name));
    let store = Store::new(files, secret);
    let kept = store.read().await?;
    if kept.is_complete() {
        info!(
            "the join string is not used: this cluster has a certificate already. To join anew, delete it first: the Secret \
             of --join-secret, or the files of --tls-cert and --tls-key"
        );
        return store.write_files(&kept);
    }
    let cluster = match expected {
        Some(cluster) => cluster.clone(),
        None => own_id(client).await?,
    };
    let key = match kept.key {
        Some(key) => key,
        // Another replica may have been faster: what is stored is used.
        None => store.keep_key(new_key()?).await?,
    };
    let given = ask::certificate(join, &cluster, &key).await?;
    let kept = Kept {
        key: Some(key),
        certificate: Some(given.certificate),
        authorities: Some(given.authorities),
    };
    store.keep(&kept).await?;
    info!(%cluster, "joined: the hub gave this cluster a certificate");
    Ok(())
}

/// The id that the cluster states of itself, else the uid of its kube-system, which no other cluster has.
async fn own_id(client: &Client) -> anyhow::Result<ClusterId> {
    let properties = Api::<ClusterProperty>::all(client.clone());
    let stated = match properties.get_opt(names::PROPERTY_CLUSTER_ID).await {
        Ok(property) => property.map(|property| property.spec.value),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => return Err(error).context("cannot read the ClusterProperty cluster.clusterset.k8s.io"),
    };
    let id = match stated {
        Some(stated) => stated,
        None => {
            let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await;
            let namespace = namespace.context("cannot read the namespace kube-system")?;
            namespace
                .metadata
                .uid
                .context("the namespace kube-system has no uid")?
        }
    };
    ClusterId::new(&id)
        .map_err(|error: InvalidName| anyhow::anyhow!("{error}: name the cluster with --cluster-id"))
}

#[cfg(test)]
mod tests {
    use shared::model::{KeyFingerprint, TokenSecret};

    use super::*;

    /// A hub and an API server that nobody may ask.
    #[tokio::test]
    async fn who_has_a_certificate_uses_no_join_string() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| directory.path().join(name);
        let files = TlsFiles {
            cert: file("agent.crt"),
            key: file("agent.key"),
            ca: file("ca.crt"),
        };
        for path in [&files.cert, &files.key, &files.ca] {
            fs::write(path, "PEM").expect("written");
        }
        let newer = JoinString {
            doors: vec!["https://hub.example.org:8444".to_owned()],
            hubs: vec!["https://hub.example.org:8443".to_owned()],
            pin: KeyFingerprint([1; 32]),
            token: TokenSecret::new([1; 32]),
        };
        let nobody = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other(request.uri().to_string()))
        });
        let client = Client::new(nobody, "default");
        ensure(&newer, &JoinArgs::default(), &files, (&client, "default"), None)
            .await
            .expect("nothing is to do");
        fs::remove_file(&files.cert).expect("removed");
        let asked = ensure(&newer, &JoinArgs::default(), &files, (&client, "default"), None).await;
        let asked = format!("{:#}", asked.expect_err("it joins anew"));
        assert!(asked.contains("clusterset.k8s.io"), "{asked}");
    }
}
