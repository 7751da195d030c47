//! One kubeconfig with a context per cluster, made from one file for each, and clients made from it.
//! It moves no secret anywhere else, and the file is its owner's only.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context as _;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use cluster::{clusterset::MemberCluster, files::write_private};

/// Joins the clusters' kubeconfigs under the clusters' names.
pub(super) fn join<'a>(clusters: impl IntoIterator<Item = &'a MemberCluster>) -> anyhow::Result<Kubeconfig> {
    let mut joined = Kubeconfig {
        api_version: Some("v1".to_owned()),
        kind: Some("Config".to_owned()),
        ..Kubeconfig::default()
    };
    for member in clusters {
        let mut one = Kubeconfig::read_from(&member.kubeconfig)
            .with_context(|| format!("cannot read {}", member.kubeconfig.display()))?;
        let mut cluster = one.clusters.pop().context("a kubeconfig names its cluster")?;
        let mut user = one.auth_infos.pop().context("a kubeconfig names its user")?;
        let mut context = one.contexts.pop().context("a kubeconfig has a context")?;
        // Users of several clusters have the same name and different credentials.
        cluster.name.clone_from(&member.name);
        user.name.clone_from(&member.name);
        context.name.clone_from(&member.name);
        if let Some(context) = &mut context.context {
            context.cluster.clone_from(&member.name);
            context.user = Some(member.name.clone());
        }
        joined.current_context.get_or_insert_with(|| member.name.clone());
        joined.clusters.push(cluster);
        joined.auth_infos.push(user);
        joined.contexts.push(context);
    }
    Ok(joined)
}

/// Writes it for kubectl and for the demo's own commands.
pub(super) fn write(kubeconfig: &Kubeconfig, path: &Path) -> anyhow::Result<()> {
    let text = serde_norway::to_string(kubeconfig).context("a kubeconfig as YAML")?;
    write_private(path, text.as_bytes())
}

/// A client for every context.
pub(super) async fn clients(path: &Path) -> anyhow::Result<BTreeMap<String, Client>> {
    let kubeconfig =
        Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut clients = BTreeMap::new();
    for context in &kubeconfig.contexts {
        let options = KubeConfigOptions {
            context: Some(context.name.clone()),
            ..KubeConfigOptions::default()
        };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await;
        let config = config.with_context(|| format!("the context {} of {}", context.name, path.display()))?;
        clients.insert(context.name.clone(), Client::try_from(config)?);
    }
    Ok(clients)
}
